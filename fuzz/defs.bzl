"""cc_fuzz_test."""

load("@rules_cc//cc:defs.bzl", "cc_binary")
load("@rules_shell//shell:sh_binary.bzl", "sh_binary")
load("@rules_shell//shell:sh_test.bzl", "sh_test")

def _fuzz_seeds(ctx):
    folder = ctx.actions.declare_directory(ctx.label.name)
    ctx.actions.run_shell(
        command = 'python3 "$@"',
        arguments = [ctx.file._program.path, ctx.attr.target, folder.path],
        inputs = [ctx.file._program] + ctx.files._sources,
        outputs = [folder],
        mnemonic = "FuzzSeeds",
        use_default_shell_env = True,
    )
    return [DefaultInfo(
        files = depset([folder]),
        runfiles = ctx.runfiles([folder]),
    )]

# Makes a folder of the seeds that seeds.py writes.
_fuzz_seeds_rule = rule(
    implementation = _fuzz_seeds,
    attrs = {
        "target": attr.string(doc = "its folder and name in fuzz/", mandatory = True),
        "_program": attr.label(default = "//fuzz:seeds.py", allow_single_file = True),
        "_sources": attr.label(default = "//fuzz:seed_sources"),
    },
)

def cc_fuzz_test(name, dictionary, library, tags = []):
    """Declares a fuzz target: void X(std::string_view input) in perfring::fuzz.

    X        the test: replays every input of X_seeds, X_regressions/ and X_corpus.zip
    X_seeds  a folder of the seeds that seeds.py writes
    X_bin    the program: linked to libFuzzer under --config=fuzz, else to a driver that runs files
    X_run    fuzzes: bazel run --config=fuzz X_run -- [libFuzzer's options]; or replays one
             input: X_run -- FILE, or the name of an input that the test replays

    Args:
      name: X.
      dictionary: label of a dictionary in libFuzzer's format.
      library: the library with the function X.
      tags: tags of the test.
    """
    folder = native.package_name().partition("fuzz/")[2]
    _fuzz_seeds_rule(
        name = name + "_seeds",
        testonly = True,
        target = folder + "/" + name if folder else name,
    )
    inputs = [name + "_seeds"] + native.glob(
        [name + "_regressions/*", name + "_corpus.zip"],
    )
    cc_binary(
        name = name + "_bin",
        testonly = True,
        visibility = ["//:__pkg__"],  # for ci_test
        srcs = ["//fuzz:target.cc"],
        local_defines = ["TARGET=" + name],
        linkopts = select({
            "//:libfuzzer": ["-fsanitize=fuzzer"],
            "//conditions:default": [],
        }),
        deps = [library] + select({
            "//:libfuzzer": [],
            "//conditions:default": ["//fuzz:replay"],
        }),
    )
    runs = dict(
        srcs = ["//fuzz:run.sh"],
        data = inputs + [dictionary, name + "_bin"],
    )
    args = [
        "//{}:{}_run".format(native.package_name(), name),
        "$(rootpath {}_bin)".format(name),
        "$(rootpath {})".format(dictionary),
    ] + ["$(rootpath {})".format(each) for each in inputs] + ["--"]
    sh_binary(name = name + "_run", testonly = True, args = args, **runs)
    sh_test(
        name = name,
        size = "medium",
        args = args + ["--replay"],
        tags = tags + ["fuzz-test"],
        **runs
    )
