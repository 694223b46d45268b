"""Measures what the window takes from a training on the same processors, view by view.

    python tests/bench/beside.py [--rounds 3] [--steps 400] [--views live,ladder,history]

In turns, in random order: a training by the command line without a window, and one with the window in a view. Prints the share of one
core that the window's process and its display server take, the training's ms a step against the turn without a window,
and the flags that its run gets. On a
display of its own (Xvfb, software rendering). Used by hand; a quiet machine is needed for figures worth quoting.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "desktop"))
from desktop_driver import BUILD, Desktop, missing_tools
from window import cpu_seconds


def train(desktop, steps):
    """Runs a training; returns its ms a step, its flags and its seconds."""
    begun = time.monotonic()
    program = [BUILD / "stepladder", "--db", desktop.database]
    environment = {**desktop.environment, "OMP_NUM_THREADS": str(os.cpu_count())}
    subprocess.run([*program, "train", "--steps", str(steps), "--eval-every", "0"], env=environment, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seconds = time.monotonic() - begun
    shown = json.loads(subprocess.run([*program, "show", "latest", "--json"], env=environment, check=True,
                                      stdout=subprocess.PIPE).stdout)
    return shown["dt_ms_median"], [flag if isinstance(flag, str) else flag["id"] for flag in shown["flags"]], seconds


def beside(desktop, view, steps):
    """Trains beside the window in this view; also returns the shares of a core of the window and of its display."""
    desktop.start()
    time.sleep(4)  # hardware detection loads LibTorch
    desktop.click("side." + view)
    desktop.xdotool("mousemove", 2, 2)
    time.sleep(1)
    pids = [desktop.program.pid, desktop.display_server.pid]
    before = [cpu_seconds(pid) for pid in pids]
    dt_ms, flags, seconds = train(desktop, steps)
    shares = [100 * (cpu_seconds(pid) - was) / seconds for pid, was in zip(pids, before)]
    desktop.stop()
    return dt_ms, flags, *shares


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--views", default="live,ladder,history")
    arguments = parser.parse_args()
    if missing_tools():
        sys.exit("needs " + ", ".join(missing_tools()))
    views = arguments.views.split(",")
    found = {view: [] for view in views}
    desktop = Desktop()
    try:
        train(desktop, 50)
        for number in range(arguments.rounds):
            for view in views:
                if random.random() < 0.5:
                    alone, flags, _ = train(desktop, arguments.steps)
                    dt_ms, beside_flags, window, display = beside(desktop, view, arguments.steps)
                else:
                    dt_ms, beside_flags, window, display = beside(desktop, view, arguments.steps)
                    alone, flags, _ = train(desktop, arguments.steps)
                found[view].append((window, dt_ms / alone))
                print(f"{view:10} {alone:.2f} ms a step without a window ({', '.join(flags) or 'no flag'}), {dt_ms:.2f} "
                      f"beside it ({', '.join(beside_flags) or 'no flag'}): {dt_ms / alone:.3f}; window {window:.1f} % of "
                      f"a core, display {display:.1f} %", flush=True)
    finally:
        desktop.close()
    ratios = [ratio for each in found.values() for _, ratio in each]
    for view in views:
        print(f"{view:10} window {statistics.median(share for share, _ in found[view]):.1f} % of a core, steps "
              f"{statistics.median(ratio for _, ratio in found[view]):.3f} of those without a window")
    if len(ratios) > 1:
        error = statistics.stdev(ratios) / len(ratios) ** 0.5
        print(f"all views  steps {statistics.mean(ratios):.3f} of those without a window, standard error {error:.3f}")


if __name__ == "__main__":
    main()
