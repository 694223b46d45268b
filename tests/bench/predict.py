"""How good the laws of the stages are: measures the rungs of a ladder in turns, traces each, and predicts the next one from the trace.

    python tests/bench/predict.py build/stepladder [--models nano,gpt2] [--repeats 3] [--threads N] [--table FILE]

Prints a table in Markdown, and with --table writes its rows as assets/predictions.csv has them (--setting says where). Predictions are made from a copy of
the assets without past ones, so no law is corrected by what it is judged by. Needs a quiet machine for figures worth quoting.
"""

import argparse
import csv
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# One after the other.
RUNGS = ["weight-tying", "init-scaling", "bf16-matmul", "bf16", "flash-attention", "gpt3-adamw", "cosine-lr", "decay-groups",
         "fused-adamw", "padded-vocab", "compile", "compile-max"]
# What the model has already; of GPT-2, whose steps take a second, also what changes no row.
LEFT_OUT = {"nano": {"padded-vocab"}, "gpt2": {"weight-tying", "init-scaling", "bf16-matmul", "cosine-lr", "decay-groups"}}
STEPS = {"nano": 120, "gpt2": 6}
TRACED = {"nano": (5, 5), "gpt2": (1, 4)}  # steps before the traced ones, and traced
HEAD = ["stage", "device", "bound", "predicted", "measured", "setting", "source"]


class Program:
    def __init__(self, path, folder):
        self.path = Path(path).resolve()
        assets = folder / "assets"
        shutil.copytree(self.path.parent / "assets", assets)
        (assets / "predictions.csv").write_text(",".join(HEAD) + "\n")
        self.environment = dict(os.environ, STEPLADDER_DB=str(folder / "predict.db"), STEPLADDER_ASSETS=str(assets),
                                XDG_CONFIG_HOME=str(folder / "config"))

    def run(self, *arguments):
        done = subprocess.run([self.path, *map(str, arguments)], env=self.environment, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
        if done.returncode not in (0, 11):
            sys.exit(f"{' '.join(map(str, arguments))}: {done.stderr}")
        return done.stdout

    def json(self, *arguments):
        return json.loads(self.run(*arguments, "--json"))


def measured(program, model, recipe, stages, repeats):
    """Of each rung a run, its step, and how far its repeats are apart, as a share. Other programs only make a step slower, so a run's step
    is the lower quartile of its steps, and a rung's that of its least disturbed repeat."""
    program.run("ladder", *recipe, "--steps", STEPS[model], "--stages", ",".join(["baseline", *stages]), "--repeats", repeats,
                "--interleave", "--name", model)
    ladder = program.json("ladders")[-1]["id"]
    rungs = {}
    for run in program.json("runs"):
        if run["ladder"] == ladder:
            steps = sorted(step["dt_ms"] for step in program.json("show", run["id"], "--steps")["data"][1:] if step["dt_ms"])
            rungs.setdefault(run["stage"], []).append((steps[len(steps) // 4], run["id"]))
    return {stage: (min(all)[1], min(all)[0], max(all)[0] / min(all)[0] - 1) for stage, all in rungs.items()}


def predictions(program, model, runs, stages):
    """Of each rung from a trace of a run of the one before it."""
    made = []
    skipped, traced = TRACED[model]
    for place, stage in enumerate(stages):
        run = runs[stages[place - 1] if place else "baseline"][0]
        program.run("profile", "run", run, "--after", skipped, "--traced", traced)
        made.append(program.json("predict", run, "--stage", stage))
        print(f"{model}: {stage} predicted", file=sys.stderr)
    return made


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("program")
    options.add_argument("--models", default="nano,gpt2")
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--threads", type=int, default=0, help="of each run; 0: all cores")
    options.add_argument("--table", type=Path)
    options.add_argument("--setting", default="")
    options = options.parse_args()
    rows, lines = [], []
    with tempfile.TemporaryDirectory(prefix="stepladder-predict-") as folder:
        program = Program(options.program, Path(folder))
        program.run("doctor", "--probe")
        for model in options.models.split(","):
            recipe = ["--model", model, "--batch", 4, "--seq", 64, *(["--threads", options.threads] if options.threads else [])]
            stages = [stage for stage in RUNGS if stage not in LEFT_OUT[model]]
            runs = measured(program, model, recipe, stages, options.repeats)
            made = predictions(program, model, runs, stages)
            for place, (stage, prediction) in enumerate(zip(stages, made)):
                _, before, spread_before = runs[stages[place - 1] if place else "baseline"]
                _, after, spread = runs[stage]
                noise = math.hypot(spread, spread_before)
                ratio = after / before
                lines.append((model, stage, before, prediction, ratio, noise))
                if prediction["bound"] != "unknown":
                    rows.append([stage, "cpu", prediction["bound"], f"{1 / prediction['factor']:.4f}", f"{ratio:.4f}",
                                 f"{model} B 4 T 64", options.setting])
    print("| model | stage | step before | predicted | measured | noise | off |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for model, stage, before, prediction, ratio, noise in lines:
        bound, factor = prediction["bound"], prediction["factor"]
        if bound == "unknown":
            predicted, off = prediction["why_unknown"], "-"
        elif bound == "at most":
            predicted = f"at most {factor:.2f} x"
            off = "holds" if 1 / ratio <= factor * (1 + noise) else f"broken by {100 * (1 / ratio / factor - 1):.0f} %"
        else:
            predicted = f"{factor:.2f} x"
            off = f"{100 * abs(1 / factor / ratio - 1):.1f} %"
        print(f"| {model} | `{stage}` | {before:.1f} ms | {predicted} | {1 / ratio:.2f} x | {100 * noise:.0f} % | {off} |")
    if options.table:
        with options.table.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(rows)


if __name__ == "__main__":
    main()
