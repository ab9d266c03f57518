#!/usr/bin/env python3
"""Tests ci/run and its jobs without running their programs."""
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path("ci/tests").resolve()))
import support

MODULES = "arguments_test hooks_test jobs_test oss_fuzz_test reports_test series_test".split()

if __name__ == "__main__":
    support.answer(sys.argv[1:], "usage: ci/tests/ci_test.py, in the workspace's folder")
    unittest.main(module=None, argv=[sys.argv[0], *MODULES])
