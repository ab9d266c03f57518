"""Replaces rules_shell, which Debian does not package. Bazel up to 7 has these rules built in."""

sh_binary = native.sh_binary
