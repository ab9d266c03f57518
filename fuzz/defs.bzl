"""cc_fuzz_test, with the interface and the target names of rules_fuzzing's."""

def cc_fuzz_test(
        name,
        corpus = None,
        dicts = None,
        size = "medium",
        tags = None,
        timeout = None,
        testonly = True,
        **binary_kwargs):
    """A fuzz target: LLVMFuzzerTestOneInput() in `srcs`.

    X         test: runs each file of the corpus, and nothing else
    X_bin     the program: libFuzzer's under --config=fuzz, else one that runs files
    X_run     fuzzes: bazel run --config=fuzz X_run -- [libFuzzer's options]
    X_corpus  the files of `corpus`
    X_dict    the dictionaries, as one: X.dict
    X_oss_fuzz  what OSS-Fuzz takes: the program, its corpus and its dictionary as a tar file

    Unlike rules_fuzzing's it takes no `engine`: --config=fuzz says which.

    Args:
      name: X.
      corpus: labels of inputs.
      dicts: labels of dictionaries in libFuzzer's format.
      size: of the test.
      tags: of the test. With "no-oss-fuzz", OSS-Fuzz passes it over.
      timeout: of the test.
      testonly: of everything.
      **binary_kwargs: as for cc_binary.
    """
    code = name + "_code"
    native.cc_library(
        name = code,
        testonly = testonly,
        srcs = binary_kwargs.pop("srcs"),
        deps = binary_kwargs.pop("deps", []),
        alwayslink = True,
    )
    engine = dict(
        testonly = testonly,
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
    native.cc_binary(name = name + "_bin", **engine)
    native.filegroup(name = name + "_corpus", testonly = testonly, srcs = corpus or [])
    inputs = ["$(rootpaths :{}_corpus)".format(name)] if corpus else []
    data = [":{}_corpus".format(name)]
    native.cc_test(
        name = name,
        size = size,
        timeout = timeout,
        args = ["-runs=0"] + inputs,
        data = data,
        tags = (tags or []) + ["fuzz-test"],
        **engine
    )
    dictionary, dictionary_path = [], "-"
    if dicts:
        dictionary = [":{}_dict".format(name)]
        dictionary_path = "$(rootpath :{}_dict)".format(name)
        native.genrule(
            name = name + "_dict",
            testonly = testonly,
            srcs = dicts,
            outs = [name + ".dict"],
            cmd = "cat $(SRCS) >$@",
        )
    native.sh_binary(
        name = name + "_run",
        testonly = testonly,
        srcs = ["//fuzz:run.sh"],
        args = ["$(rootpath :{}_bin)".format(name), dictionary_path] + inputs + ["--"],
        data = data + dictionary + [":{}_bin".format(name)],
    )
    native.genrule(
        name = name + "_oss_fuzz",
        testonly = testonly,
        srcs = [":{}_bin".format(name)] + dictionary + data,
        outs = [name + "_oss_fuzz.tar"],
        cmd = "$(location //fuzz:package.sh) {0} $@ $(location :{0}_bin) '{1}' {2}".format(
            name,
            "$(location :{}_dict)".format(name) if dicts else "",
            "$(locations :{}_corpus)".format(name) if corpus else "",
        ),
        tags = ["manual"],
        tools = ["//fuzz:package.sh"],
    )
