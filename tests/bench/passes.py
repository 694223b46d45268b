"""`stepladder profile --model seed-small` beside Python's timeit on the same module, in turns. Prints the medians and their ratios.

    python tests/bench/passes.py [ROUNDS]      # default 3

A measurement, not a test: on a busy machine the two differ by what the others take.
"""
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
BATCH, SEQ, VOCAB, CALLS = 2, 64, 10_000, 5


def python_times(model, inputs, targets):
    """The median of each pass in milliseconds after one untimed call, pass by pass as `stepladder profile` has them."""
    def median_ms(work, prepare=lambda: None):
        times = []
        for _ in range(1 + CALLS):
            given = prepare()
            clock = timeit.default_timer()
            result = work(given)
            times.append((timeit.default_timer() - clock) * 1000)
            del given, result
        return statistics.median(times[1:])

    def forward(_=None):
        return model(inputs, targets)

    return {"forward": median_ms(forward), "backward": median_ms(lambda loss: loss.backward(), forward),
            "forward_backward": median_ms(lambda _: forward().backward())}


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    torch.manual_seed(20230310)
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    model = Gpt2(12, 12, 768, VOCAB, SEQ, variant=True)
    inputs, targets = torch.randint(VOCAB, (2, BATCH, SEQ))
    ours, theirs = {}, {}
    for _ in range(rounds):
        rows = json.loads(subprocess.run([BUILD / "stepladder", "profile", "--model", "seed-small", "--device", "cpu", "--batch", str(BATCH), "--seq",
                                          str(SEQ), "--steps", str(CALLS), "--warmup", "1", "--json"], check=True, capture_output=True).stdout)
        for row in rows:
            if row["precision"] == "fp32":
                ours.setdefault(row["computation"], []).append(row["median_ms"])
        for name, ms in python_times(model, inputs, targets).items():
            theirs.setdefault(name, []).append(ms)
    for name in theirs:
        mine, python = statistics.median(ours[name]), statistics.median(theirs[name])
        print(f"{name:17} {mine:8.1f} ms here, {python:8.1f} ms in Python: {mine / python:.3f}")
    print(f"forward + backward against both: {(statistics.median(ours['forward']) + statistics.median(ours['backward'])) / statistics.median(ours['forward_backward']):.3f}")


if __name__ == "__main__":
    main()
