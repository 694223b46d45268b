#!/usr/bin/env python3
"""`stepladder try parts` against the truth: five flags of our engine, all 32 combinations measured once.

Usage: try_parts.py [--steps 30] [--program build/stepladder]
Prints each flag's effect on a step's CPU time, which neighbours disturb less than a clock's, from the 32 runs and from those of
`try parts`, and both orders."""
import argparse
import itertools
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

FLAGS = ["--batch 16", "--d-model 96", "--layers 3", "--seq 80", "--lr 1e-4"]
TRAIN = """import os, resource, subprocess, sys
PENALTY = 1000
words = {{"--batch": "4", "--layers": "2", "--d-model": "64", "--seq": "64", "--lr": "1e-3"}}
words.update(zip(sys.argv[1::2], sys.argv[2::2]))
done = subprocess.run([{program!r}, "--db", os.environ["TRUTH_DB"], "train", "--model", "nano", "--heads", "2", "--threads", "1", "--steps", "{steps}",
                       *(word for pair in words.items() for word in pair)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
ms = 1e3 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime / {steps}
for step in range(1, {steps} + 1):
    print(f"step {{step}} | loss 3.0 | dt {{ms + PENALTY:.4f}}ms")
print("median:", ms)
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--program", default="build/stepladder")
    options = parser.parse_args()
    program = str(pathlib.Path(options.program).resolve())
    with tempfile.TemporaryDirectory(prefix="stepladder-parts-") as folder:
        place = pathlib.Path(folder)
        environment = dict(os.environ, STEPLADDER_DB=str(place / "runs.db"), XDG_STATE_HOME=str(place / "state"), TRUTH_DB=str(place / "truth.db"))
        checkout = place / "checkout"
        checkout.mkdir()
        script = checkout / "train.py"

        def call(*arguments):
            done = subprocess.run(arguments, cwd=checkout, env=environment, text=True, capture_output=True)
            assert done.returncode == 0, done.stderr
            return done.stdout

        text = TRAIN.format(program=program, steps=options.steps)
        script.write_text(text)
        call("git", "init", "-q")
        call(program, "try", "begin", "--runs", "3", "--", sys.executable, "train.py")
        script.write_text(text.replace("PENALTY = 1000", "PENALTY = 0"))
        call(program, "try", "-m", "no penalty")
        cells = {}
        for cell in itertools.product((0, 1), repeat=len(FLAGS)):
            words = [word for flag, on in zip(FLAGS, cell) if on for word in flag.split()]
            cells[cell] = math.log(float(call(sys.executable, "train.py", *words).split("median:")[1]))
        parts = json.loads(call(program, "try", "parts", "1", "--json", *(f"--flag={flag}" for flag in FLAGS)))
    mean = lambda i, on: statistics.mean(value for cell, value in cells.items() if cell[i] == on)
    truth = [mean(i, 1) - mean(i, 0) for i in range(len(FLAGS))]
    found = [-math.log(part["factor"]) for part in parts["parts"]]  # of the time
    order = lambda effects: [FLAGS[i] for i in sorted(range(len(FLAGS)), key=lambda i: effects[i])]
    print(f"`try parts` made {parts['runs']} runs. By how much a step takes longer:\n")
    print("| flag | 32 runs | `try parts` | 95 % interval |\n| --- | --- | --- | --- |")
    for flag, true, part in zip(FLAGS, truth, parts["parts"]):
        low, high = part["ci95"] or (math.nan, math.nan)
        print(f"| `{flag}` | {math.exp(true):.2f} | {1 / part['factor']:.2f} | {1 / high:.2f} to {1 / low:.2f} |")
    print(f"\norder of the 32: {', '.join(order(truth))}\norder of parts:  {', '.join(order(found))}")


if __name__ == "__main__":
    main()
