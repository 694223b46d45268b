#!/usr/bin/env python3
"""A night of changes judged by the rules in use and by `stepladder try`, on a made-up training of known noise.

Usage: referee.py [--tries 100] [--gains 8] [--size 4] [--program build/stepladder] [--seed 1]
       referee.py --real SECONDS: the training is our engine's on this CPU, of about so much CPU time, which is what counts,
       since neighbours disturb it less than a clock's; the gains are 1 to 10 % of its steps
The other rules judge the same night many times in memory; the program is run once, on a real git checkout. In a real
night they judge the very runs that the program made: the first one of each change.
"""
import argparse
import json
import math
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
REAL = """import os, resource, subprocess, sys
STEPS = {steps}
subprocess.run([{program!r}, "--db", os.environ["STEPLADDER_REAL_DB"], "train", "--model", "nano", "--layers", "2", "--d-model", "64",
                "--heads", "2", "--batch", "4", "--seq", "64", "--threads", "1", "--steps", str(STEPS),
                "--seed", os.environ["STEPLADDER_SEED"]], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print("cpu_s:", resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime)
"""
BEFOREHAND = 6


def night(options, source):
    places = set(source.sample(range(options.tries), options.gains))
    return [options.size if i in places else 0.0 for i in range(options.tries)]


def judged(effects, noise, is_kept):
    """False keeps and gains found, of one run a change; `is_kept` sees the gain over the kept value and all values."""
    level, values = 0.0, [next(noise) for _ in range(BEFOREHAND)]
    kept, false, found = statistics.mean(values), 0, 0
    for effect in effects:
        value = level + effect + next(noise)
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


def real_night(effects, program, seconds):
    """False keeps, gains found and runs a change of `stepladder try`, and the noise of each first run, as logarithms."""
    with tempfile.TemporaryDirectory(prefix="stepladder-referee-") as folder:
        place = pathlib.Path(folder)
        environment = dict(os.environ, STEPLADDER_DB=str(place / "runs.db"), XDG_STATE_HOME=str(place / "state"),
                           STEPLADDER_REAL_DB=str(place / "real.db"), STEPLADDER_SEED="1", OMP_NUM_THREADS="1")
        checkout = place / "checkout"
        checkout.mkdir()
        script = checkout / "train.py"

        def call(*arguments):
            return subprocess.run(arguments, cwd=checkout, env=environment, text=True, capture_output=True)

        def write(steps, note):
            script.write_text(REAL.format(steps=round(steps), program=program) + note)

        base = 200  # steps; then as many as take the time that is asked for
        write(base, "")
        base = max(20, base * seconds / float(call(sys.executable, "train.py").stdout.split()[-1]))
        write(base, "")
        call("git", "init", "-q")
        begun = call(program, "try", "begin", "--metric", "cpu_s", "--lower", "--runs", str(BEFOREHAND), "--", sys.executable, "train.py")
        assert begun.returncode == 0, begun.stderr

        def first_runs(number):
            shown = json.loads(call(program, "try", "show", str(number), "--json").stdout)
            return [-math.log(run["value"]) for run in shown["runs_made"] if run["state"] == number]

        noise = first_runs(0)
        zero = statistics.mean(noise)
        noise = [value - zero for value in noise]
        level = runs = false = found = 0
        for i, effect in enumerate(effects):
            write(base * math.exp(-level - effect), f"# {i}\n")
            answer = call(program, "try", "-m", f"change {i}", "--json")
            runs += json.loads(answer.stdout)["runs"]
            noise.append(first_runs(i + 1)[0] - zero - level - effect)
            if answer.returncode == 0:
                level += effect
                found += effect > 0
                false += effect == 0
        return false, found, runs / len(effects), noise


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tries", type=int, default=100)
    parser.add_argument("--gains", type=int, default=8)
    parser.add_argument("--size", type=float, default=4)
    parser.add_argument("--nights", type=int, default=1, help="how many the program judges")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", default="build/stepladder")
    parser.add_argument("--real", type=float, help="seconds of a real training")
    options = parser.parse_args()
    program = str(pathlib.Path(options.program).resolve())
    source = random.Random(options.seed)
    if options.real:
        places = sorted(source.sample(range(options.tries), options.gains))
        effects = [0.0] * options.tries
        for i, place in enumerate(places):
            effects[place] = math.log(1 + 0.01 + 0.09 * i / max(1, options.gains - 1))
        false, found, runs, noise = real_night(effects, program, options.real)
        print(f"{options.tries} changes, {options.gains} of them gains of 1 to 10 %, of a training of {options.real:g} s of CPU time; one run's "
              f"standard deviation {100 * statistics.stdev(noise[:BEFOREHAND]):.2f} %\n")
        print("| rule | false keeps | gains found | runs a change |\n| --- | --- | --- | --- |")
        for name, rule in RULES.items():
            print("| {} | {} | {} | 1 |".format(name, *judged(effects, iter(noise), rule)))
        print(f"| `stepladder try` | {false} | {found} | {runs:.1f} |")
        return
    print(f"{options.tries} changes, {options.gains} of them gains of {options.size:g} standard deviations of a run\n")
    print("| rule | false keeps | gains found | runs a change |\n| --- | --- | --- | --- |")
    for name, rule in RULES.items():
        results = [judged(night(options, source), iter(lambda: source.gauss(0, 1), None), rule) for _ in range(300)]
        false, found = (statistics.mean(column) for column in zip(*results))
        print(f"| {name} | {false:.1f} | {found:.1f} | 1 |", flush=True)
    nights = [by_program(night(options, source), program) for _ in range(options.nights)]
    false, found, runs = (statistics.mean(column) for column in zip(*nights))
    print(f"| `stepladder try`, {options.nights} nights | {false:.2g} | {found:.2g} | {runs:.2f} |")


if __name__ == "__main__":
    main()
