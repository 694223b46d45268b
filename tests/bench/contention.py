"""Measures what an import costs a training that writes to the same file, and how long others wait for the write lock:
python tests/bench/contention.py [MILLION ROWS] [ROUNDS] [BUILD]. Alone and beside the import in turns."""
import contextlib
import json
import os
import pathlib
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

MILLIONS = float(sys.argv[1]) if len(sys.argv) > 1 else 10
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 3
PROGRAM = pathlib.Path(sys.argv[3] if len(sys.argv) > 3 else "build") / "stepladder"

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "faults"))
from faults import SMALLEST, LockWatch  # noqa: E402

TRAIN = ["train", *map(str, SMALLEST), "--steps", "1000000000", "--name", "training"]


def main():
    with tempfile.TemporaryDirectory(prefix="stepladder-bench-") as name:
        folder = pathlib.Path(name)
        database, table = folder / "runs.db", folder / "big.csv"
        with table.open("w") as file:
            file.write("step,loss,dt_ms,tokens\n")
            file.writelines(f"{i},{3 + i % 7 / 10},{40 + i % 5},8192\n" for i in range(1, round(MILLIONS * 1e6) + 1))
        environment = dict(os.environ, STEPLADDER_DB=str(database), XDG_CACHE_HOME=name)
        training = subprocess.Popen([PROGRAM, *TRAIN], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(5)
        phases = []
        for _ in range(ROUNDS):
            begun = time.time()
            with LockWatch(database) as lock:
                status = subprocess.run([PROGRAM, "import", table], env=environment, capture_output=True).returncode
            ended, waits = time.time(), sorted(lock.waits)
            log = folder / "runs.db-wal"
            phases.append({"import_s": round(ended - begun, 1), "exit": status, "asked": len(waits),
                           "p99_ms": round(1000 * waits[len(waits) * 99 // 100], 1), "longest_ms": round(1000 * waits[-1], 1),
                           "log_mb": round(log.stat().st_size / 1e6, 1), "span": (begun, ended)})
            time.sleep(10)
        stopped = time.time()
        training.send_signal(signal.SIGINT)
        error = training.communicate(timeout=300)[1]
        with contextlib.closing(sqlite3.connect(database)) as connection:
            run, = connection.execute("select id from runs where source = 'launched'").fetchone()
            steps = connection.execute("select step, dt_ms, at from steps where run_id = ? order by step", (run,)).fetchall()
        spans = [phase.pop("span") for phase in phases]
        for i, (begun, ended) in enumerate(spans):
            until = spans[i + 1][0] if i + 1 < len(spans) else stopped
            phases[i]["dt_ms_beside"] = statistics.median([dt for _, dt, at in steps if begun <= at < ended] or [0])
            phases[i]["dt_ms_alone"] = statistics.median([dt for _, dt, at in steps if ended <= at < until] or [0])
            print(json.dumps(phases[i]))
        print(json.dumps({"rows": round(MILLIONS * 1e6), "steps": len(steps), "last_step": steps[-1][0],
                          "steps_lost": steps[-1][0] - len(steps), "training": error.strip().splitlines()[-1:]}))


if __name__ == "__main__":
    main()
