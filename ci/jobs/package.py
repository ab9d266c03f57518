"""Installation and lib's tests by CMake, use by others; --all: Debian's packages.

These are tests that `bazel test //...` leaves out. Compiles each header by itself, in each
standard, with libstdc++ and libc++; tests the installation by find_package() and pkg-config, and
the tree as part of another CMake project; analyzes another Bazel workspace that uses this one as a
repository; compares CMake's sources of the program with Bazel's; builds and runs lib's tests with
CMake. With --all also the slow tests: builds that workspace, and builds Debian's packages without a
network, checks them with lintian, unpacks and uses them.
Exit codes: 0 all passed, 1 something failed, 2 usage or environment.
"""
import json
import pathlib
import shutil
import tempfile

from jobs import another_workspace, cases, debian_packages, test_job, usage
from jobs import results as reports
from jobs.checkout import ROOT
from jobs.checks import Failed, check

TESTS = [
    *(f"//ci/packaging:{name}_test" for name in ("install_shared", "install_static")),
    "//ci/packaging:subdirectory_test",
    *(f"//lib/perfring:headers_{name}_test" for name in ("libcxx", "standards")),
]
SOURCES = "filter('^//(lib|harness).*[.]cc$', kind('source file', deps(//harness/cli:perfring)))"


def program_sources(log, folder):
    """Compares the sources that CMake compiles with those of Bazel's target."""
    options = ["-DPERFRING_BUILD_PROGRAM=ON", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"]
    log.run("cmake", "-S", ".", "-B", folder / "sources", *options)
    queried = log.output("bazel", "query", "--noshow_progress", SOURCES)
    wanted = {label.removeprefix("//").replace(":", "/") for label in queried.split()}
    compiled = compiled_by_cmake(folder / "sources/compile_commands.json")
    if not wanted:
        raise Failed("bazel query names no source of //harness/cli:perfring")
    if wanted != compiled:
        raise Failed(
            f"in Bazel only {sorted(wanted - compiled)}; in CMake only {sorted(compiled - wanted)}"
        )


def compiled_by_cmake(commands):
    """Returns the sources of the program, from ROOT on."""
    entries = json.loads(commands.read_text(encoding="utf-8"))
    return {
        each["file"].removeprefix(f"{ROOT}/")
        for each in entries
        if "perfring_program" in each["command"] and each["file"].startswith(f"{ROOT}/")
    }


def lib_tests(log, folder):
    """Builds and runs lib's C++ tests with CMake, as a packager does."""
    build = folder / "lib_tests"
    options = ["-DPERFRING_BUILD_TESTS=ON", "-DCMAKE_BUILD_TYPE=", "-DCMAKE_CXX_FLAGS=-O0"]
    log.run("cmake", "-S", ".", "-B", build, *options)
    log.run("cmake", "--build", build, "--parallel", "2", "--target", "perfring_tests")
    ways = ["--parallel", "2", "--no-tests=error", "--output-on-failure"]
    log.run("ctest", "--test-dir", build, *ways)


def main(arguments):
    parser = usage.Parser("package", __doc__)
    parser.add_argument(
        "--all", action="store_true", help="the slow tests too: 10 minutes on 2 cores"
    )
    slow = parser.parse_args(arguments).all
    results = cases.RESULTS / "package"
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = pathlib.Path(name)
        # Bazel's tests come first, because they delete the job's earlier reports.
        status = test_job.test("package", [], TESTS)
        if status == 2:
            cases.write_one(
                "package", "bazel test", "failed", "Bazel refused: see the job's output"
            )
        check("package", "another Bazel workspace", another_workspace.builds, folder, slow)
        check("package", "the program's sources, in Bazel and in CMake", program_sources, folder)
        check("package", "lib's tests, by CMake", lib_tests, folder)
        if slow:
            debian_packages.check_all(results, folder)
    return reports.finish("package")
