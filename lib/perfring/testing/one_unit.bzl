"""Sources that compile as one unit.

Most of the compile time of a small source goes to the headers that it shares with its neighbors: a
dozen sources compile in a third of the time together. A name must mean the same in all.
"""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library", "cc_test")

def _unit(ctx):
    unit = ctx.actions.declare_file(ctx.attr.unit)
    includes = [
        "#include \"{}\"\n".format(source.short_path)
        for source in ctx.files.srcs
        if source.extension == "cc"
    ]
    ctx.actions.write(unit, "".join(includes))
    return DefaultInfo(files = depset([unit]))

one_unit = rule(
    implementation = _unit,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cc", ".h"], mandatory = True),
        "unit": attr.string(doc = "its file", mandatory = True),
    },
)

def _headers_of_unit(ctx):
    return [
        CcInfo(
            compilation_context = ctx.attr.headers[CcInfo].compilation_context,
            linking_context = ctx.attr.unit[CcInfo].linking_context,
        ),
        DefaultInfo(
            files = ctx.attr.unit[DefaultInfo].files,
            runfiles = ctx.attr.unit[DefaultInfo].default_runfiles,
        ),
        coverage_common.instrumented_files_info(ctx, dependency_attributes = ["unit"]),
    ]

headers_of_unit = rule(
    implementation = _headers_of_unit,
    attrs = {
        "headers": attr.label(providers = [CcInfo], mandatory = True),
        "unit": attr.label(providers = [CcInfo], mandatory = True),
    },
    doc = "A library for those who include its headers: its sources are no business of theirs.",
)

def cc_unit_library(name, srcs, hdrs = [], deps = [], strip_include_prefix = None, alwayslink = False, **kwargs):
    """A cc_library that compiles its sources as one unit. `srcs` may contain headers, too."""
    sources = [each for each in srcs if each.endswith(".cc")]
    inner = {key: kwargs[key] for key in ["testonly", "tags"] if key in kwargs}
    one_unit(
        name = name + "_unit",
        srcs = sources,
        unit = "all_{}.cc".format(name),
        **inner
    )
    cc_library(
        name = name + "_headers",
        hdrs = hdrs,
        strip_include_prefix = strip_include_prefix,
        deps = deps,
        **inner
    )
    cc_library(
        name = name + "_compiled",
        srcs = [name + "_unit"] + [each for each in srcs if each not in sources],
        textual_hdrs = sources,
        alwayslink = alwayslink,
        deps = [name + "_headers"],
        **inner
    )
    headers_of_unit(
        name = name,
        headers = name + "_headers",
        unit = name + "_compiled",
        **kwargs
    )

def _cc_unit_program(rule, name, srcs, deps, testonly = False, **kwargs):
    one_unit(
        name = name + "_unit",
        testonly = testonly,
        srcs = srcs,
        unit = "all_{}.cc".format(name),
    )
    cc_library(
        name = name + "_sources",
        testonly = testonly,
        textual_hdrs = srcs,
    )
    rule(
        name = name,
        testonly = testonly,
        srcs = [name + "_unit"],
        deps = deps + [name + "_sources"],
        **kwargs
    )

def cc_unit_binary(name, srcs, deps, **kwargs):
    """A cc_binary that compiles its `srcs` as one unit. They may contain headers, too."""
    _cc_unit_program(cc_binary, name, srcs, deps, **kwargs)

def cc_unit_test(name, srcs, deps, size = "medium", **kwargs):
    """A cc_test that compiles its `srcs` as one unit: one program for the tests of a package.

    Its size is medium because it takes long on emulated processors and under the sanitizers.
    """
    _cc_unit_program(cc_test, name, srcs, deps, testonly = True, size = size, **kwargs)
