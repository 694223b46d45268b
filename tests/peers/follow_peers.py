#!/usr/bin/env python3
"""`stepladder follow` beside real writers: TensorBoard, W&B, MLflow, Trackio, and the Trainers of transformers and Lightning.

    python tests/peers/follow_peers.py [--program build/stepladder] [KIND...]

Run it with a Python that has the libraries; a kind whose library is missing is skipped and named. While each writes, the
follower is killed with -9 again and again. Then every number that the library's own reader reads back must be in the
database once, to the bit (of wandb, which has no reader in Python any more: every number that was handed to it). Prints a line for each kind, with the library's version.
"""
import argparse
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import random
import sqlite3
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
NEEDS = {"tensorboard": ["tensorboard", "torch"], "wandb": ["wandb"], "mlflow": ["mlflow"], "trackio": ["trackio"],
         "transformers": ["transformers", "accelerate", "tensorboard", "torch"], "lightning": ["lightning", "tensorboard", "torch"]}
PATIENCE_S = 1200


def stored_runs(database):
    """Each run as the library's reader shows one: every value of every metric, the older attempts first."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=60) as rows:
        runs = {}
        for run, in rows.execute("SELECT id FROM runs ORDER BY id"):
            metrics = runs.setdefault(run, {})
            for metric, name, field in rows.execute("SELECT id, name, field FROM metrics WHERE run_id = ?", [run]).fetchall():
                if field:
                    found = rows.execute(
                        f"SELECT step, attempt, value FROM (SELECT step, 1000000000 AS attempt, {field} AS value FROM steps WHERE run_id = ?1 "
                        f"UNION ALL SELECT step, attempt, {field} FROM superseded_steps WHERE run_id = ?1) WHERE value IS NOT NULL "
                        "ORDER BY step, attempt", [run])
                else:
                    found = rows.execute(
                        "SELECT step, 1000000000 AS attempt, value FROM metric_values WHERE metric_id = ?1 UNION ALL "
                        "SELECT step, attempt, value FROM superseded_metric_values WHERE metric_id = ?1 ORDER BY step, 2", [metric])
                points = []
                for step, _, value in found:
                    if not points or points[-1] != (step, float(value).hex()):  # a kept attempt may repeat the other loss
                        points.append((step, float(value).hex()))
                if points:
                    metrics[name] = points
        return runs


def follow(kind, program, folder):
    database = folder / "runs.db"
    stores = folder / "stores"
    stores.mkdir()
    environment = {**os.environ, "STEPLADDER_DB": str(database)}
    writer = subprocess.Popen([sys.executable, HERE / "writers.py", kind, stores], stdout=subprocess.DEVNULL,
                              stderr=(folder / "writer.err").open("wb"))
    choose, kills, deadline = random.Random(kind), 0, time.monotonic() + PATIENCE_S
    while writer.poll() is None and time.monotonic() < deadline:
        follower = subprocess.Popen([program, "follow", stores], env=environment, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL)
        time.sleep(choose.uniform(0.2, 1.5))
        follower.kill()
        follower.wait()
        kills += 1
    if writer.wait(timeout=60) != 0:
        return kills, f"the writer failed: {(folder / 'writer.err').read_text()[-400:]}"
    last = subprocess.run([program, "follow", stores, "--once", "--json"], env=environment, capture_output=True, text=True)
    if last.returncode != 0:
        return kills, f"follow ended with {last.returncode}: {last.stderr}"
    expected = json.loads((stores / f"{kind}.json").read_text())["runs"]
    # The same value of the same step again, as Lightning's `epoch` at a validation, is kept once.
    expected = [{name: sorted(dict.fromkeys(map(tuple, points)), key=lambda point: point[0]) for name, points in run.items()
                 if points} for run in expected]
    expected = [run for run in expected if run]
    stored = stored_runs(database)
    for run in expected:
        candidates = [each for each in stored.values() if set(run) <= set(each)]
        if not any(all(each[name] == points for name, points in run.items()) for each in candidates):
            wrong = [(name, len(points), len(each[name])) for each in candidates for name, points in run.items() if each[name] != points]
            return kills, f"differs (name, values of the library, of ours): {wrong or sorted(run)[:5]}; stored: {[sorted(each)[:5] for each in stored.values()]}"
    if len(stored) != len(expected):
        return kills, f"{len(stored)} runs, not {len(expected)}"
    values = sum(len(points) for run in expected for points in run.values())
    return kills, f"ok: {len(expected)} run(s), {values} values, each once, to the bit"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=str(HERE.parents[1] / "build/stepladder"))
    parser.add_argument("kinds", nargs="*", default=list(NEEDS))
    options = parser.parse_args()
    failed = 0
    for kind in options.kinds:
        missing = [package for package in NEEDS[kind] if importlib.util.find_spec(package) is None]
        if missing:
            print(f"{kind}: skipped, not installed: {', '.join(missing)}", flush=True)
            continue
        versions = ", ".join(f"{package} {importlib.metadata.version(package)}" for package in NEEDS[kind])
        with tempfile.TemporaryDirectory(prefix="stepladder-peers-") as folder:
            kills, outcome = follow(kind, options.program, pathlib.Path(folder))
        failed += not outcome.startswith("ok")
        print(f"{kind} ({versions}): {outcome}; the follower was killed {kills} times", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
