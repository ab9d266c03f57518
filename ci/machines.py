"""The processors and kernels beside this machine's: machines.json."""
import json
import pathlib

_READ = json.loads(pathlib.Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
PROCESSORS = _READ["processors"]  # by Debian's names
SUITES = _READ["suites"]  # kernels of other releases, as ARCHITECTURE-SUITE
CI = _READ["ci"]  # what CI's jobs run on: 32 bits, and the other byte order
