"""Measures the time to the window's first frame, and its CPU time while idle.

    python tests/bench/window.py [--rounds 5] [--idle-seconds 10]

Prints the seconds from the program's start to its first frame, and the share of one core that it takes while idle, on a
display of its own (Xvfb, software rendering). Used by hand; a quiet machine is needed for figures worth quoting.
"""
import argparse
import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "desktop"))
from desktop_driver import Desktop, missing_tools


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--idle-seconds", type=float, default=10)
    arguments = parser.parse_args()
    if missing_tools():
        sys.exit("needs " + ", ".join(missing_tools()))
    first_frames = []
    idle = []
    for _ in range(arguments.rounds):
        desktop = Desktop()
        try:
            first_frames.append(desktop.start())
            time.sleep(4)  # hardware detection loads LibTorch
            before = cpu_seconds(desktop.program.pid)
            time.sleep(arguments.idle_seconds)
            idle.append((cpu_seconds(desktop.program.pid) - before) / arguments.idle_seconds)
            desktop.stop()
        finally:
            desktop.close()
    print(f"first frame   {statistics.median(first_frames):.3f} s (median of {len(first_frames)}, "
          f"{min(first_frames):.3f} to {max(first_frames):.3f})")
    print(f"idle          {100 * statistics.median(idle):.2f} % of a core ({100 * min(idle):.2f} to {100 * max(idle):.2f})")


if __name__ == "__main__":
    main()
