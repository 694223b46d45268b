#!/usr/bin/env python3
"""A night of changes judged by the rules in use and by `stepladder try`, on a made-up training of known noise.

Usage: referee.py [--tries 100] [--gains 8] [--size 4] [--program build/stepladder] [--seed 1]
The other rules judge the same night many times in memory; the program is run once, on a real git checkout.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

TRAIN = """import os, random
GAIN = 0
print(f"val_bpb: {100 - GAIN + random.Random(os.urandom(8)).gauss(0, 1):.6f}")
"""
BEFOREHAND = 6


def night(options, source):
    places = set(source.sample(range(options.tries), options.gains))
    return [options.size if i in places else 0.0 for i in range(options.tries)]


def judged(effects, source, is_kept):
    """False keeps and gains found, of one run a change; `is_kept` sees the gain over the kept value and all values."""
    level, values = 0.0, [source.gauss(0, 1) for _ in range(BEFOREHAND)]
    kept, false, found = statistics.mean(values), 0, 0
    for effect in effects:
        value = level + effect + source.gauss(0, 1)
        if is_kept(value - kept, values):
            kept, level = value, level + effect
            found += effect > 0
            false += effect == 0
        values.append(value)
    return false, found


def mad(values):
    middle = statistics.median(values)
    return statistics.median(abs(value - middle) for value in values)


RULES = {
    "keep if the number is better": lambda gain, values: gain > 0,
    "2 standard deviations": lambda gain, values: gain > 2 * statistics.stdev(values[:BEFOREHAND]),
    "2 x MAD": lambda gain, values: gain > 2 * mad(values),
}


def by_program(effects, program):
    """False keeps, gains found and runs a change of `stepladder try`."""
    with tempfile.TemporaryDirectory(prefix="stepladder-referee-") as folder:
        place = pathlib.Path(folder)
        environment = dict(os.environ, STEPLADDER_DB=str(place / "runs.db"), XDG_STATE_HOME=str(place / "state"))
        checkout = place / "checkout"
        checkout.mkdir()
        script = checkout / "train.py"
        script.write_text(TRAIN)

        def call(*arguments):
            return subprocess.run(arguments, cwd=checkout, env=environment, text=True, capture_output=True)

        call("git", "init", "-q")
        call(program, "try", "begin", "--metric", "val_bpb", "--runs", str(BEFOREHAND), "--", sys.executable, "train.py")
        gain = runs = false = found = 0
        for i, effect in enumerate(effects):
            before = script.read_text()
            script.write_text(before.replace(f"GAIN = {gain:g}\n", f"GAIN = {gain + effect:g}\n") + f"# {i}\n")
            answer = call(program, "try", "-m", f"change {i}", "--json")
            runs += json.loads(answer.stdout)["runs"]
            if answer.returncode == 0:
                gain += effect
                found += effect > 0
                false += effect == 0
            else:
                script.write_text(before)
        return false, found, runs / len(effects)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tries", type=int, default=100)
    parser.add_argument("--gains", type=int, default=8)
    parser.add_argument("--size", type=float, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", default="build/stepladder")
    options = parser.parse_args()
    source = random.Random(options.seed)
    print(f"{options.tries} changes, {options.gains} of them gains of {options.size:g} standard deviations of a run\n")
    print("| rule | false keeps | gains found | runs a change |\n| --- | --- | --- | --- |")
    for name, rule in RULES.items():
        results = [judged(night(options, source), source, rule) for _ in range(300)]
        false, found = (statistics.mean(column) for column in zip(*results))
        print(f"| {name} | {false:.1f} | {found:.1f} | 1 |", flush=True)
    false, found, runs = by_program(night(options, source), str(pathlib.Path(options.program).resolve()))
    print(f"| `stepladder try`, one night | {false} | {found} | {runs:.1f} |")


if __name__ == "__main__":
    main()
