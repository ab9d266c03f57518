"""Arguments, and errors in usage or environment: exit code 2."""
import argparse
import shutil

LARGEST = 10_000_000


class Unusable(Exception):
    """An error in usage or environment. The message says what to change."""


class Parser(argparse.ArgumentParser):
    """Reads the arguments of a command of `ci/run`. `description`: the docstring of its module."""

    def __init__(self, command, description, **options):
        super().__init__(
            prog=f"ci/run {command}",
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            **options,
        )

    def check_names(self, names, accepted, kind):
        """Refuses a name that is not among those accepted; `kind`, such as "a target", is theirs."""
        for name in names:
            if name not in accepted:
                self.error(f"'{name}' is not {kind}; choose from: {', '.join(accepted)}")


def add_bazel(parser, command):
    """Adds the option --bazel=OPTION: a list."""
    parser.add_argument(
        "--bazel",
        action="append",
        default=[],
        metavar="OPTION",
        help=f"for bazel {command}, as in --bazel=--jobs=1; repeatable",
    )


def number(text):
    """Reads a whole number, for argparse."""
    value = int(text) if text.isdecimal() else 0
    if not 1 <= value <= LARGEST:
        raise argparse.ArgumentTypeError(f"'{text}' is not accepted: give a whole number from 1 on")
    return value


def require(program, setup="ci/setup"):
    """Raises Unusable if a program is not installed; `setup` installs it."""
    if shutil.which(program) is None:
        raise Unusable(f"{program} is not installed: run {setup}")
