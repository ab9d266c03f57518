"""A rule for headers that are precompiled for g++."""

load("@rules_cc//cc:defs.bzl", "cc_toolchain")
load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _precompiled(ctx):
    toolchain = find_cpp_toolchain(ctx)
    headers = ctx.attr.headers[CcInfo].compilation_context
    header = ctx.actions.declare_file(ctx.label.name + ".h")
    ctx.actions.write(header, "".join(["#include <{}>\n".format(each) for each in ctx.attr.includes]))
    files = [header]
    if toolchain.compiler in ["gcc", "compiler"]:  # g++ in ci/bazel/cross, and as Bazel detects it
        files.append(ctx.actions.declare_file(ctx.label.name + ".h.gch"))
        features = cc_common.configure_features(
            ctx = ctx,
            cc_toolchain = toolchain,
            requested_features = ctx.features,
            unsupported_features = ctx.disabled_features,
        )
        command = cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
            variables = cc_common.create_compile_variables(
                feature_configuration = features,
                cc_toolchain = toolchain,
                source_file = header.path,
                output_file = files[1].path,
                system_include_directories = headers.system_includes,
                use_pic = toolchain.needs_pic_for_dynamic_libraries(feature_configuration = features),
                user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts,
            ),
        )
        ctx.actions.run(
            executable = toolchain.compiler_executable,
            arguments = ["-xc++-header"] + command,
            inputs = depset([header], transitive = [headers.headers, toolchain.all_files]),
            outputs = [files[1]],
            mnemonic = "CppPrecompile",
        )
    return CcInfo(compilation_context = cc_common.create_compilation_context(headers = depset(files)))

# Writes NAME.h, which includes `includes`, for the option -include NAME.h. If the compiler is g++,
# NAME.h is precompiled with `copts`; for a source with other options g++ reads it as text.
precompiled = rule(
    implementation = _precompiled,
    attrs = {
        "copts": attr.string_list(),
        "headers": attr.label(mandatory = True, providers = [CcInfo]),
        "includes": attr.string_list(mandatory = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
