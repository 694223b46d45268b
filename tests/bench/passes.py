"""`stepladder profile --model seed-small` beside Python's timeit on the same module, in turns. Prints the medians of each side and the median of the turns' ratios.

    python tests/bench/passes.py [--rounds 8] [--precision fp32|bf16] [--calls 5]

A turn is a few seconds of each side, and who begins changes from turn to turn: a machine's speed drifts. Within a turn both sides take the passes by turns as well.
A measurement, not a test: on a busy machine the two differ by what the others take.
"""
import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import timeit

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "parity"))
from gpt2 import Gpt2  # noqa: E402

BUILD = pathlib.Path(os.environ.get("STEPLADDER_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build"))
BATCH, SEQ, VOCAB = 2, 64, 10_000
PASSES = ("forward", "backward", "forward_backward")


class Python:
    """The same module under timeit's clock."""

    def __init__(self, precision):
        torch.manual_seed(20230310)
        torch.set_num_threads(len(os.sched_getaffinity(0)))
        self.model = Gpt2(12, 12, 768, VOCAB, SEQ, variant=True)
        self.inputs, self.targets = torch.randint(VOCAB, (2, BATCH, SEQ))
        self.scope = contextlib.nullcontext if precision == "fp32" else lambda: torch.autocast("cpu", torch.bfloat16)

    def loss(self):
        with self.scope():
            return self.model(self.inputs, self.targets)

    def ms(self, name):
        loss = self.loss() if name == "backward" else None
        clock = timeit.default_timer()
        if name == "forward":
            loss = self.loss()
        else:
            (self.loss() if loss is None else loss).backward()
        return (timeit.default_timer() - clock) * 1000

    def medians(self, calls):
        times = {name: [] for name in PASSES}
        for _ in range(1 + calls):  # the first isn't timed
            for name in PASSES:
                times[name].append(self.ms(name))
        return {name: statistics.median(times[name][1:]) for name in PASSES}


def ours(precision, calls):
    command = [BUILD / "stepladder", "profile", "--model", "seed-small", "--device", "cpu", "--batch", BATCH, "--seq", SEQ, "--precision", precision, "--steps", calls, "--warmup", 1,
               "--time", 0, "--no-keep", "--json"]
    rows = json.loads(subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
    return {row["computation"]: row["median_ms"] for row in rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--calls", type=int, default=5)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    options = parser.parse_args()
    python = Python(options.precision)
    turns = []
    for turn in range(options.rounds):
        sides = [("here", lambda: ours(options.precision, options.calls)), ("python", lambda: python.medians(options.calls))]
        turns.append({side: measure() for side, measure in (sides if turn % 2 == 0 else reversed(sides))})
        print(" ".join(f"{name} {turns[-1]['here'][name]:.0f}/{turns[-1]['python'][name]:.0f}" for name in PASSES), flush=True)
    for name in PASSES:
        ratios = sorted(turn["here"][name] / turn["python"][name] for turn in turns)
        median = {side: statistics.median(turn[side][name] for turn in turns) for side in ("here", "python")}
        print(f"{name:17} {median['here']:8.1f} ms here, {median['python']:8.1f} ms in Python: {statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})")
    for side in ("here", "python"):
        shares = [(turn[side]["forward"] + turn[side]["backward"]) / turn[side]["forward_backward"] for turn in turns]
        print(f"forward + backward against both, {side}: {statistics.median(shares):.3f}")


if __name__ == "__main__":
    main()
