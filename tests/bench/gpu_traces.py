"""Imports two large synthetic GPU traces of known sums (tests/cli/gpu_trace.py), subtracts them, checks every sum, and reports time and memory.

    python tests/bench/gpu_traces.py [KERNELS]     # default 1,000,000: about a gigabyte of JSON each
"""
import os
import pathlib
import resource
import subprocess
import json
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from gpu_trace import check_difference, check_sums, write  # noqa: E402

BUILD = pathlib.Path(os.environ.get("STEPLADDER_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build"))
STEPS, CUT_US = 10, 10


def main():
    kernels = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    case = unittest.TestCase()
    with tempfile.TemporaryDirectory(prefix="stepladder-gpu-traces-") as folder:
        def stepladder(*arguments):
            return json.loads(subprocess.run([BUILD / "stepladder", "--db", f"{folder}/runs.db", "profile", *map(str, arguments), "--json"],
                                             check=True, capture_output=True, text=True).stdout)

        path = pathlib.Path(folder) / "trace.json"
        for name, cut in (("before", 0), ("after", CUT_US)):
            per_step = write(path, kernels, STEPS, cut=cut, has_copies=cut == 0)
            began = time.monotonic()
            shown = stepladder("import", path, "--name", name)
            print(f"{name}: {shown['slices']:,} kernels in steps, {path.stat().st_size / 1e6:.0f} MB: {time.monotonic() - began:.1f} s, peak so far "
                  f"{resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:.0f} MB")
            if cut == 0:
                check_sums(case, shown, per_step)
        began = time.monotonic()
        check_difference(case, stepladder("diff", "before", "after"), per_step, CUT_US)
        print(f"difference: {time.monotonic() - began:.1f} s; all sums are right")


if __name__ == "__main__":
    main()
