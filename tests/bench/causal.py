"""Whether a trace's prediction agrees with slowing all else down, which needs no trace (Coz, SOSP 2015).

    ninja -C build slowed_step && python tests/bench/causal.py build [--factor 2] [--rounds 3] [--model nano] [--steps 100]

Each kind of work is made FACTOR times as fast in two ways: `stepladder predict --scale KIND=1/FACTOR` plays the trace again, and a training in which
everything else takes FACTOR times as long, over FACTOR. Prints for each kind what it would save, in per cent of the step, both ways.
"""
import argparse
import json
import os
import pathlib
import sqlite3
import statistics
import subprocess
import tempfile

KINDS = ["matrix products", "softmax and loss", "layer norm", "GELU", "element-wise", "copies and casts", "optimiser"]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("build", type=pathlib.Path)
    options.add_argument("--factor", type=float, default=2)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--model", default="nano")
    options.add_argument("--steps", type=int, default=100)
    options = options.parse_args()
    build, factor = options.build.resolve(), options.factor
    with tempfile.TemporaryDirectory(prefix="stepladder-causal-") as folder:
        environment = dict(os.environ, STEPLADDER_DB=f"{folder}/causal.db", XDG_CONFIG_HOME=folder)

        def stepladder(*arguments):
            return subprocess.run([build / "stepladder", *map(str, arguments)], env=environment, text=True, check=True,
                                  capture_output=True).stdout

        run = json.loads(stepladder("train", "--model", options.model, "--batch", 4, "--seq", 64, "--threads", 1, "--steps", options.steps,
                                    "--json"))
        stepladder("profile", "run", run["id"], "--after", 5, "--traced", 10)
        with sqlite3.connect(f"{folder}/causal.db") as database:
            recipe, = database.execute("select recipe from runs where id = ?", (run["id"],)).fetchone()
        predicted = {}
        for kind in KINDS:
            made = json.loads(stepladder("predict", run["id"], "--scale", f"{kind}={1 / factor}", "--json"))
            predicted[kind] = 100 * (1 - 1 / made["factor"])
        slowed = {}
        out = subprocess.run([build / "slowed_step", recipe, str(factor), str(options.rounds), *KINDS],
                             text=True, check=True, capture_output=True).stdout
        for line in map(json.loads, out.splitlines()):
            slowed.setdefault(line["kind"], []).append(100 * (1 - line["slowed_ms"] / factor / line["plain_ms"]))
    print(f"| kind, {factor:g} times as fast | from the trace | all else slowed: median of {options.rounds} (lowest to highest) |")
    print("| --- | --- | --- |")
    for kind in KINDS:
        each = slowed[kind]
        print(f"| {kind} | {predicted[kind]:.1f} % | {statistics.median(each):.1f} % ({min(each):.1f} to {max(each):.1f}) |")


if __name__ == "__main__":
    main()
