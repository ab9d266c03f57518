"""Checks of the job package: Debian's packages are built without a network, and used."""
import gzip
import os
import re
import subprocess

from jobs import checkout
from jobs.another_workspace import consumer_works
from jobs.checkout import ROOT
from jobs.checks import Failed, check

CONSUMER = """cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES CXX)
find_package(perfring {version} CONFIG REQUIRED)
include({root}/ci/packaging/consumer/targets.cmake)
"""


def build(log, results):
    tried = subprocess.run(["unshare", "-rn", "true"], stderr=subprocess.DEVNULL)
    offline = ["unshare", "-rn"] if tried.returncode == 0 else []
    log.run(*offline, ROOT / "ci/run", "deb", results)


def unpack(log, results, unpacked):
    packages = sorted(results.glob("*.deb"))
    if not packages:
        raise Failed(f"no package in {results}")
    for package in packages:
        log.run("dpkg-deb", "-x", package, unpacked)


def lintian(log, results):
    log.run("lintian", "--fail-on", "error", *sorted(results.glob("*.changes")))


def subcommands(help_text):
    """Returns the names in a help's list of subcommands. (CLI11 2.6 has its title in capitals.)"""
    found = re.search(r"^subcommands:\n(.*?)(?:^$|\Z)", help_text, re.M | re.S | re.I)
    return re.findall(r"^  ([a-z]+) ", found[1], re.M) if found else []


def text_of(unpacked, page):
    """Returns a manual page, which may be compressed."""
    for path in (unpacked / "usr/share/man/man1").glob(f"{page}*"):
        data = path.read_bytes()
        return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    raise Failed(f"{page} is not in the packages")


def program(log, unpacked):
    """Runs the program, and compares its manual page with its help."""
    perfring = unpacked / "usr/bin/perfring"
    version = log.output(perfring, "--version").strip()
    if version != f"perfring {checkout.version()}":
        raise Failed(f"--version prints {version}")
    log.run(perfring, "--simulated", "--seconds", "0.5")
    page = text_of(unpacked, "perfring.1").splitlines()
    names = subcommands(log.output(perfring, "--help"))
    if not names:
        raise Failed("--help has no list of subcommands")
    missing = [name for name in names if f".B {name}" not in page]
    if missing:
        raise Failed(f"perfring.1 does not name {' '.join(missing)}")


def by_cmake(log, unpacked, folder):
    consumer = folder / "consumer"
    consumer.mkdir()
    text = CONSUMER.format(version=checkout.version(), root=ROOT)
    (consumer / "CMakeLists.txt").write_text(text, encoding="utf-8")
    prefix = f"-DCMAKE_PREFIX_PATH={unpacked}/usr"
    log.run("cmake", "-S", consumer, "-B", consumer / "build", prefix)
    log.run("cmake", "--build", consumer / "build")
    consumer_works(log, consumer / "build/consumer")


def by_pkg_config(log, unpacked, folder):
    found = next(unpacked.rglob("perfring.pc"), None)
    if found is None:
        raise Failed("perfring.pc is not in the packages")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(found.parent)}
    flags = log.output("pkg-config", "--cflags", "--libs", "perfring", env=environment).split()
    built = folder / "by_pkg_config"
    source = ROOT / "ci/packaging/consumer/consumer.cc"
    log.run("g++", "-std=c++2b", source, "-o", built, *flags)
    consumer_works(log, built)


def check_all(results, folder):
    """Runs all of these checks, if the packages can be built."""
    unpacked = folder / "root"
    if not check("package", "dpkg-buildpackage", build, results):
        return
    check("package", "the packages unpack", unpack, results, unpacked)
    check("package", "lintian finds no error", lintian, results)
    check("package", "the program of the package", program, unpacked)
    of_library = "the library of the package, by"
    check("package", f"{of_library} find_package()", by_cmake, unpacked, folder)
    check("package", f"{of_library} pkg-config", by_pkg_config, unpacked, folder)
