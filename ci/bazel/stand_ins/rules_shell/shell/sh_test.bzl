"""Replaces rules_shell, which Debian does not package. Bazel up to 7 has these rules built in."""

sh_test = native.sh_test
