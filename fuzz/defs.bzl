"""cc_fuzz_test, with the interface and the target names of rules_fuzzing's."""

def _folder(name, kind):
    """The workspace path of fuzz/NAME_KIND, if there is anything in it."""
    folder = "{}_{}".format(name, kind)
    files = native.glob([folder + "/**"], allow_empty = True)
    return files, ["{}/{}".format(native.package_name(), folder)] if files else []

def cc_fuzz_test(name, corpus = None, dicts = None, tags = None, **binary_kwargs):
    """A fuzz target: LLVMFuzzerTestOneInput() in `srcs`.

    X         test: runs the corpus and the regressions, and nothing else
    X_bin     the program: libFuzzer's under --config=fuzz, else one that runs files
    X_run     fuzzes: bazel run --config=fuzz X_run -- [libFuzzer's options]
    X_corpus  the files of `corpus`, and those of X_seeds/, X_corpus/ and X_regressions/
    X_dict    the dictionary
    X_oss_fuzz  what OSS-Fuzz takes: the program, its corpus and its dictionary as a tar file

    Args:
      name: X.
      corpus: labels of further inputs.
      dicts: the label of a dictionary in libFuzzer's format; at most one.
      tags: of the test.
      **binary_kwargs: as for cc_binary.
    """
    folders = []
    files = list(corpus or [])
    for kind in ["seeds", "corpus", "regressions"]:
        in_folder, path = _folder(name, kind)
        files += in_folder
        folders += path

    code = name + "_code"
    native.cc_library(
        name = code,
        testonly = True,
        srcs = binary_kwargs.pop("srcs"),
        deps = binary_kwargs.pop("deps", []),
        alwayslink = True,
    )
    engine = dict(
        deps = [":" + code] + select({
            "//:libfuzzer": [],
            "//conditions:default": ["//fuzz:replay"],
        }),
        linkopts = select({
            "//:libfuzzer": ["-fsanitize=fuzzer"],
            "//conditions:default": [],
        }),
        **binary_kwargs
    )
    native.cc_binary(name = name + "_bin", testonly = True, **engine)
    native.filegroup(name = name + "_corpus", srcs = files)
    native.filegroup(name = name + "_dict", srcs = dicts or [])
    native.cc_test(
        name = name,
        size = "medium",
        args = ["-runs=0"] + folders,
        data = files,
        tags = (tags or []) + ["fuzz-test"],
        **engine
    )
    dictionary = "$(rootpath {})".format(dicts[0]) if dicts else "-"
    native.sh_binary(
        name = name + "_run",
        testonly = True,
        srcs = ["//fuzz:run.sh"],
        args = ["$(rootpath :{}_bin)".format(name), dictionary] + folders,
        data = files + (dicts or []) + [":{}_bin".format(name)],
    )
    native.genrule(
        name = name + "_oss_fuzz",
        testonly = True,
        srcs = [":{}_{}".format(name, kind) for kind in ["bin", "corpus", "dict"]],
        outs = [name + "_oss_fuzz.tar"],
        cmd = "$(location //fuzz:package.sh) {0} $@ $(location :{0}_bin) '{1}' {2}".format(
            name,
            "$(locations :{}_dict)".format(name) if dicts else "",
            "$(locations :{}_corpus)".format(name) if files else "",
        ),
        tags = ["manual"],
        tools = ["//fuzz:package.sh"],
    )
