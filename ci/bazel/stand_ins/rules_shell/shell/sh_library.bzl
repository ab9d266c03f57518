"""Stands in for rules_shell, which Debian does not package: Bazel up to 7 has these rules itself."""

sh_library = native.sh_library
