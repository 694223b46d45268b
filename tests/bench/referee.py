#!/usr/bin/env python3
"""A night of changes judged by the rules in use and by `stepladder try`, on a made-up training of known noise.

Usage: referee.py [--tries 100] [--gains 8] [--size 4] [--program build/stepladder] [--seed 1]
       referee.py --real SECONDS [--keep FOLDER]: the training is our engine's on this CPU, of about so much CPU time, which
       is what counts, since neighbours disturb it less than a clock's; the gains are 1 to 10 % of its steps, the others are
       comments, names in another order and other seeds. FOLDER gets the night's project, night-of-tries.db
The other rules judge the same night many times in memory; the program is run once, on a real git checkout. In a real
night they judge the very runs that the program made: the first one of each change.
"""
import argparse
import json
import math
import os
import pathlib
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile

TRAIN = """import os, random
GAIN = 0
print(f"val_bpb: {100 - GAIN + random.Random(os.urandom(8)).gauss(0, 1):.6f}")
"""
REAL = """import {names}
STEPS = {steps}
SEED = int(os.environ["STEPLADDER_SEED"]) + {seed}
subprocess.run(["stepladder", "--db", os.environ["STEPLADDER_REAL_DB"], "train", "--model", "nano", "--layers", "2", "--d-model", "64",
                "--heads", "2", "--batch", "4", "--seq", "64", "--threads", "1", "--steps", str(STEPS),
                "--seed", str(SEED)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print("cpu_s:", resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime)
"""
NAMES = ["os", "resource", "subprocess", "sys"]
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


def kept_project(place, folder):
    """The night's project, with a home folder in the place of this machine's."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "night-of-tries.db"
    file.unlink(missing_ok=True)
    with sqlite3.connect(place / "runs.db") as night:
        night.execute("VACUUM INTO ?", (str(file),))
    copy = sqlite3.connect(file)
    for (table,) in copy.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").fetchall():
        for column in copy.execute(f"SELECT name FROM pragma_table_info('{table}') WHERE type = 'TEXT'").fetchall():
            copy.execute(f"UPDATE {table} SET {column[0]} = replace({column[0]}, ?, '/home/me') WHERE instr({column[0]}, ?) > 0", (str(place), str(place)))
    copy.commit()
    copy.execute("VACUUM")
    copy.execute("PRAGMA journal_mode = DELETE")
    copy.close()


def real_night(effects, program, seconds, keep):
    """False keeps, gains found, runs a change, the gain that `try end` measured, and the noise of each first run, as logarithms."""
    with tempfile.TemporaryDirectory(prefix="stepladder-referee-") as folder:
        place = pathlib.Path(folder)
        environment = dict(os.environ, STEPLADDER_DB=str(place / "runs.db"), XDG_STATE_HOME=str(place / "state"),
                           STEPLADDER_REAL_DB=str(place / "real.db"), STEPLADDER_SEED="1", OMP_NUM_THREADS="1",
                           PATH=f"{pathlib.Path(program).parent}:{os.environ['PATH']}")
        checkout = place / "nano"
        checkout.mkdir()
        script = checkout / "train.py"

        def call(*arguments):
            return subprocess.run(arguments, cwd=checkout, env=environment, text=True, capture_output=True)

        kept = {"note": "", "names": NAMES, "seed": 0}

        def write(steps, change):
            state = dict(kept, **change)
            script.write_text(REAL.format(steps=round(steps), names=", ".join(state["names"]), seed=state["seed"]) +
                              state["note"])
            return state

        def no_op(i):
            return [("a comment", {"note": f"# {i}\n"}), ("another seed", {"seed": i}),
                    ("imports in another order", {"names": random.Random(i).sample(NAMES, len(NAMES)), "note": f"# {i}\n"})][i % 3]

        base = 200  # steps; then as many as take the time that is asked for
        write(base, {})
        base = max(20, base * seconds / float(call("python3", "train.py").stdout.split()[-1]))
        write(base, {})
        call("git", "init", "-q")
        begun = call("stepladder", "try", "begin", "--metric", "cpu_s", "--lower", "--runs", str(BEFOREHAND), "--", "python3", "train.py")
        assert begun.returncode == 0, begun.stderr

        def first_runs(number):
            shown = json.loads(call("stepladder", "try", "show", str(number), "--json").stdout)
            return [-math.log(run["value"]) for run in shown["runs_made"] if run["state"] == number]

        noise = first_runs(0)
        zero = statistics.mean(noise)
        noise = [value - zero for value in noise]
        level = runs = false = found = 0
        for i, effect in enumerate(effects):
            message, change = (f"{100 * (1 - math.exp(-effect)):.1f} % fewer steps", {}) if effect else no_op(i)
            state = write(base * math.exp(-level - effect), change)
            answer = call("stepladder", "try", "-m", message, "--json")
            runs += json.loads(answer.stdout)["runs"]
            noise.append(first_runs(i + 1)[0] - zero - level - effect)
            if answer.returncode == 0:
                kept = state
                level += effect
                found += effect > 0
                false += effect == 0
        ended = call("stepladder", "try", "end", "--json")
        if keep:
            kept_project(place, pathlib.Path(keep))
        return false, found, runs / len(effects), json.loads(ended.stdout), noise


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tries", type=int, default=100)
    parser.add_argument("--gains", type=int, default=8)
    parser.add_argument("--size", type=float, default=4)
    parser.add_argument("--nights", type=int, default=1, help="how many the program judges")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", default="build/stepladder")
    parser.add_argument("--real", type=float, help="seconds of a real training")
    parser.add_argument("--keep", help="a folder that gets the real night's project")
    options = parser.parse_args()
    program = str(pathlib.Path(options.program).resolve())
    source = random.Random(options.seed)
    if options.real:
        places = sorted(source.sample(range(options.tries), options.gains))
        effects = [0.0] * options.tries
        for i, place in enumerate(places):
            effects[place] = math.log(1 + 0.01 + 0.09 * i / max(1, options.gains - 1))
        false, found, runs, ended, noise = real_night(effects, program, options.real, options.keep)
        print(f"{options.tries} changes, {options.gains} of them gains of 1 to 10 %, of a training of {options.real:g} s of CPU time; one run's "
              f"standard deviation {100 * statistics.stdev(noise[:BEFOREHAND]):.2f} %\n")
        print("| rule | false keeps | gains found | runs a change |\n| --- | --- | --- | --- |")
        for name, rule in RULES.items():
            print("| {} | {} | {} | 1 |".format(name, *judged(effects, iter(noise), rule)))
        print(f"| `stepladder try` | {false} | {found} | {runs:.2f} |\n")
        print(f"all runs' first values scatter by {100 * statistics.stdev(noise[BEFOREHAND:]):.2f} %; at the end: {json.dumps(ended)}")
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
