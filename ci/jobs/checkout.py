"""The checkout that the jobs work on."""
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def version():
    """Returns the version in lib/perfring/version.h, such as 0.1.0."""
    text = (ROOT / "lib/perfring/version.h").read_text(encoding="utf-8")
    numbers = re.findall(
        r"^#define PERFRING_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", text, re.MULTILINE
    )
    return ".".join(numbers)


def files():
    """Returns the paths, from ROOT on, of git's tracked files and new ones; of all files in an
    unpacked archive. A file whose deletion is not yet committed is not among them."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    names = listing.stdout.decode().split("\0") if listing.returncode == 0 else walk()
    return [name for name in names if name and (ROOT / name).is_file()]


def walk():
    for folder, folders, names in os.walk(ROOT):
        here = pathlib.Path(folder).relative_to(ROOT)
        folders[:] = [each for each in folders if each != "__pycache__"]
        if here == pathlib.Path():  # Bazel's links, and results
            folders[:] = [
                each for each in folders if not each.startswith("bazel-") and each != "ci-results"
            ]
        for name in names:
            yield str(here / name)
