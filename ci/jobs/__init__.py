"""CI's jobs and the other commands of `ci/run`, each a module with main(arguments), and what they
share. The first line of a command's docstring is its line in `ci/run --help`."""
