#!/usr/bin/env python3
"""`stepladder try parts` against the truth: five flags of our engine, all 32 combinations measured once.

Usage: try_parts.py [--steps 30] [--program build/stepladder]
Prints each flag's effect on a step's time from the 32 runs, and from those of `try parts`, and both orders."""
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

FLAGS = ["--batch 8", "--layers 3", "--d-model 96", "--seq 96", "--threads 2"]
TRAIN = """import json, os, subprocess, sys
PENALTY = 1000
words = {{"--batch": "4", "--layers": "2", "--d-model": "64", "--seq": "64", "--threads": "1"}}
words.update(zip(sys.argv[1::2], sys.argv[2::2]))
done = subprocess.run([{program!r}, "--db", os.environ["TRUTH_DB"], "train", "--model", "nano", "--heads", "2", "--steps", "{steps}",
                       "--json", *(word for pair in words.items() for word in pair)], check=True, capture_output=True, text=True)
runs = json.loads(subprocess.run([{program!r}, "--db", os.environ["TRUTH_DB"], "show", "latest", "--json"], check=True,
                                 capture_output=True, text=True).stdout)
print("step_ms:", runs["dt_ms_median"] + PENALTY)
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
        call(program, "try", "begin", "--metric", "step_ms", "--runs", "3", "--", sys.executable, "train.py")
        script.write_text(text.replace("PENALTY = 1000", "PENALTY = 0"))
        call(program, "try", "-m", "no penalty")
        cells = {}
        for cell in itertools.product((0, 1), repeat=len(FLAGS)):
            words = [word for flag, on in zip(FLAGS, cell) if on for word in flag.split()]
            cells[cell] = float(call(sys.executable, "train.py", *words).split("step_ms:")[1])
        parts = json.loads(call(program, "try", "parts", "1", "--json", *(f"--flag={flag}" for flag in FLAGS)))
    mean = lambda i, on: statistics.mean(value for cell, value in cells.items() if cell[i] == on)
    truth = [mean(i, 1) - mean(i, 0) for i in range(len(FLAGS))]
    found = [part["difference"] for part in parts["parts"]]
    order = lambda effects: [FLAGS[i] for i in sorted(range(len(FLAGS)), key=lambda i: effects[i])]
    print(f"ms a step, mean of {len(cells)} runs: {statistics.mean(cells.values()):.2f}; `try parts` made {parts['runs']} runs\n")
    print("| flag | 32 runs (ms) | `try parts` (ms) | 95 % interval |\n| --- | --- | --- | --- |")
    for flag, true, part in zip(FLAGS, truth, parts["parts"]):
        low, high = part["ci95"] or (math.nan, math.nan)
        print(f"| `{flag}` | {true:.2f} | {part['difference']:.2f} | {low:.2f} to {high:.2f} |")
    print(f"\norder of the 32: {', '.join(order(truth))}\norder of parts:  {', '.join(order(found))}")


if __name__ == "__main__":
    main()
