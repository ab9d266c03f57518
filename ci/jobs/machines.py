"""The processors and kernels beside this machine's: ci/machines.json."""
import json

from jobs.checkout import ROOT

_READ = json.loads((ROOT / "ci/machines.json").read_text(encoding="utf-8"))
PROCESSORS = _READ["processors"]  # by Debian's names
SUITES = _READ["suites"]  # kernels of other releases, as ARCHITECTURE-SUITE
CI = _READ["ci"]  # what CI's jobs run on: 32 bits, and the other byte order
