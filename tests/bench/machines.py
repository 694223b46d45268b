#!/usr/bin/env python3
"""How late a step of another machine is here: from its end there to the moment when another reader finds it in the database.

The other machine is this one, through a program in ssh's place, so the network's own time comes on top.
Usage: machines.py [STEPS_PER_SECOND] [SECONDS]
"""
import pathlib
import sqlite3
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/machines"))
from near_test import Box  # noqa: E402


def main():
    rate = float(sys.argv[1]) if len(sys.argv) > 1 else 100
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 20
    steps = int(rate * seconds)
    box = Box()
    try:
        box.succeeds("machines", "add", "box")
        tracker = box.start("watch", "--on", "box", "--there", str(box.path), "--", sys.executable, "logger.py", str(steps),
                            str(1 / rate))
        seen = {}
        while tracker.poll() is None:
            time.sleep(0.01)
            try:
                with sqlite3.connect(f"file:{box.database}?mode=ro", uri=True) as database:
                    rows = database.execute("SELECT step, at FROM steps WHERE step > ?", (max(seen, default=0),)).fetchall()
            except sqlite3.Error:  # there is no table yet
                continue
            now = time.time()
            seen.update({step: now - at for step, at in rows})
        late = sorted(seen.values())
        if len(late) < steps // 2:
            sys.exit(f"only {len(late)} of {steps} steps were seen: {tracker.stderr.read()}")
        print(f"{len(late)} steps at {rate:g} a second: p50 {1000 * late[len(late) // 2]:.0f} ms, "
              f"p95 {1000 * late[len(late) * 95 // 100]:.0f} ms, most {1000 * late[-1]:.0f} ms")
    finally:
        box.close()


if __name__ == "__main__":
    main()
