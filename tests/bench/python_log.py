"""What one call that logs a step of three metrics costs its caller: stepladder.py and four other trackers, in turns.

    python tests/bench/python_log.py [--rounds 3] [--calls 20000] [--waits 100]

Needs tensorboard, wandb, mlflow-skinny (with SQLAlchemy and alembic) and trackio beside torch, as in
tests/importers/stores/requirements.txt; a tracker that can't be imported is left out. Each measurement is a process of its
own, with the cost of making the dict subtracted from the busy loop. mlflow's loop is a hundredth as long. "queue" only
appends the time, the step and a copy of the dict to a deque, which is the least that a call can do.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

TRACKERS = ("queue", "written queue", "stepladder", "trackio", "tensorboard", "wandb", "mlflow")
WAIT_S = 0.05


def written_queue():
    """The same beside a thread that writes it, as something that keeps the rows must: every 0.08 s, a JSON line each."""
    import collections
    import threading
    queue, ends = collections.deque(), threading.Event()

    def write():
        with open("queue.jsonl", "w") as file:
            while not ends.wait(0.08):
                while queue:
                    file.write(json.dumps(queue.popleft()) + "\n")
                file.flush()

    threading.Thread(target=write, daemon=True).start()
    return lambda row, step: queue.append((time.time(), step, row.copy())), ends.set


def opened(tracker):
    """A function that logs a dict, and one that ends."""
    if tracker == "queue":  # the least that a call can do
        import collections
        queue = collections.deque(maxlen=1000)
        return lambda row, step: queue.append((time.time(), step, row.copy())), lambda: None
    if tracker == "written queue":
        return written_queue()
    if tracker == "stepladder":
        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
        import stepladder
        stepladder.init()
        return lambda row, step: stepladder.log(row), stepladder.finish
    if tracker == "trackio":
        import trackio
        trackio.init(project="bench")
        return lambda row, step: trackio.log(row), trackio.finish
    if tracker == "tensorboard":
        from torch.utils.tensorboard import SummaryWriter
        writer = SummaryWriter()

        def log(row, step):
            for name, value in row.items():
                writer.add_scalar(name, value, step)
        return log, writer.close
    if tracker == "wandb":
        import wandb
        wandb.init(project="bench", mode="offline")
        return lambda row, step: wandb.log(row), wandb.finish
    import mlflow
    mlflow.set_tracking_uri("sqlite:///mlflow.db")
    mlflow.start_run()
    return lambda row, step: mlflow.log_metrics(row, step=step), mlflow.end_run


def measure(tracker, calls, waits):
    log, end = opened(tracker)
    calls = calls // 100 if tracker == "mlflow" else calls
    for i in range(20):
        log({"loss": 1.5, "lr": 3e-4, "acc": 0.5}, i)
    time.sleep(1)
    begin = time.perf_counter()
    for i in range(calls):
        row = {"loss": 1.5, "lr": 3e-4, "acc": 0.5}
    dicts = time.perf_counter() - begin
    begin = time.perf_counter()
    for i in range(calls):
        log({"loss": 1.5, "lr": 3e-4, "acc": 0.5}, 20 + i)
    busy = (time.perf_counter() - begin - dicts) / calls
    time.sleep(1)
    single = []
    for i in range(waits):
        time.sleep(WAIT_S)
        row = {"loss": 1.5, "lr": 3e-4, "acc": 0.5}
        begin = time.perf_counter()
        log(row, 20 + calls + i)
        single.append(time.perf_counter() - begin)
    end()
    single.sort()
    return {"busy": busy * 1e6, "p50": single[len(single) // 2] * 1e6, "p99": single[len(single) * 99 // 100] * 1e6}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=20000)
    parser.add_argument("--waits", type=int, default=100)
    parser.add_argument("--only", default=",".join(TRACKERS), help="of: %(default)s")
    parser.add_argument("--one")
    options = parser.parse_args()
    if options.one:
        print("RESULT " + json.dumps(measure(options.one, options.calls, options.waits)))
        return
    found = {}
    for _ in range(options.rounds):
        for tracker in options.only.split(","):
            with tempfile.TemporaryDirectory() as folder:
                environment = dict(os.environ, HOME=folder, TRACKIO_DIR=folder, WANDB_SILENT="true", PYTHONWARNINGS="ignore",
                                   STEPLADDER_SILENT="1")
                run = subprocess.run([sys.executable, pathlib.Path(__file__).resolve(), "--one", tracker, "--calls",
                                      str(options.calls), "--waits", str(options.waits)], cwd=folder, env=environment,
                                     capture_output=True, text=True)
            result = [line for line in run.stdout.splitlines() if line.startswith("RESULT ")]
            if not result:
                print(f"{tracker}: {(run.stderr or run.stdout).strip().splitlines()[-1:]}", file=sys.stderr)
                continue
            found.setdefault(tracker, []).append(json.loads(result[0][7:]))
    print("| us a call | busy loop | p50 at 50 ms | p99 at 50 ms |\n| --- | --- | --- | --- |")
    for tracker, results in found.items():
        columns = []
        for key in ("busy", "p50", "p99"):
            figures = [result[key] for result in results]
            columns.append(f"{statistics.median(figures):.1f} ({min(figures):.1f} - {max(figures):.1f})")
        print(f"| {tracker} | {' | '.join(columns)} |")


if __name__ == "__main__":
    main()
