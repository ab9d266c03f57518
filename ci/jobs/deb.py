"""Debian's packages libperfring-dev and perfring, in ci-results/deb.

Builds them of this checkout, with dpkg-buildpackage. DEBFULLNAME and DEBEMAIL are the maintainer,
as for Debian's own tools. Exit codes: 0 built, 2 usage or environment, or dpkg-buildpackage's.
"""
import os
import pathlib
import shutil
import tempfile

from jobs import cases, checkout, processes, usage
from jobs.checkout import ROOT

DEBIAN = ROOT / "ci/packaging/debian"
NOBODY = "the perfring authors <change-this@packager.invalid>"  # in DEBIAN


def copy_sources(source):
    """Makes a source package, which has debian/ at its top."""
    for name in checkout.files():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, source / name, follow_symlinks=False)
    shutil.copytree(DEBIAN, source / "debian")
    if address := os.environ.get("DEBEMAIL"):
        maintainer = f"{os.environ.get('DEBFULLNAME') or 'the perfring authors'} <{address}>"
        for name in ("control", "changelog"):
            path = source / "debian" / name
            path.write_text(
                path.read_text(encoding="utf-8").replace(NOBODY, maintainer), encoding="utf-8"
            )


def main(arguments):
    parser = usage.Parser("deb", __doc__)
    parser.add_argument(
        "folder",
        metavar="FOLDER",
        nargs="?",
        default=cases.RESULTS / "deb",
        help="where the packages are put [ci-results/deb]",
    )
    results = ROOT / parser.parse_args(arguments).folder
    if not shutil.which("dpkg-buildpackage") or not shutil.which("dh"):
        raise usage.Unusable("dpkg-buildpackage or debhelper is not installed: run ci/setup deb")
    results.mkdir(parents=True, exist_ok=True)
    version = processes.output(
        ["dpkg-parsechangelog", "-l", DEBIAN / "changelog", "-S", "Version"]
    ).strip()
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / f"perfring-{version}"
        source.mkdir()
        copy_sources(source)
        built = processes.run(["dpkg-buildpackage", "-us", "-uc"], cwd=source)
        if built.returncode != 0:
            return processes.exit_code(built)
        for old in results.glob(f"*perfring*_{version}*"):
            old.unlink()
        for package in pathlib.Path(folder).glob(f"*perfring*_{version}*"):
            shutil.copy(package, results)
    print("deb:", *(f"./{each.name}" for each in sorted(results.glob("*.deb"))))
    return 0
