#!/usr/bin/env python3
"""Makes the pictures of README.md from the program itself: docs/pictures.py build/stepladder LOG [NAME...]

LOG is the A100's log of which assets/examples/a100-three-rungs.csv has the figures. ladder.gif needs Pillow and trains
a short ladder here, whose figures are this machine's, so let nothing else run; it takes about two minutes.
"""
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import time

DOCS = pathlib.Path(__file__).resolve().parent
LADDER = ["ladder", "--name", "nano, four rungs", "--model", "nano", "--data", DOCS.parent / "assets" / "tinyshakespeare.txt",
          "--steps", "60", "--repeats", "3", "--interleave", "--stages", "baseline,flash-attention,compile,compile-max"]
FRAME_S, WIDTH, HEIGHT, COLOURS = 0.5, 1280, 720, 128


class Program:
    def __init__(self, program, folder):
        self.program = pathlib.Path(program).resolve()
        self.folder = folder
        self.environment = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY")}
        self.environment.update({f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("CONFIG", "DATA", "STATE")})

    def run(self, *arguments):
        subprocess.run([self.program, *map(str, arguments)], env=self.environment, cwd=self.folder, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def start(self, *arguments):
        return subprocess.Popen([self.program, *map(str, arguments)], env=self.environment, cwd=self.folder,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def picture(self, database, view, out, size="1600x900", theme="dark"):
        self.run("--db", database, "screenshot", "--view", view, "--theme", theme, "--size", size, "--out", out)


def of_a_log(program, log, name, view):
    database = program.folder / f"{name}.db"
    copy = shutil.copy(log, program.folder)  # the picture shows where it was read
    program.run("--db", database, "import", copy)
    program.picture(database, view, DOCS / f"{name}.png")


def began():
    """When this process began, in the kernel's ticks, as the program identifies processes."""
    return int(pathlib.Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19])


def ladder_gif(program):
    """Frames of Ladder while a ladder trains, the last one for five seconds. They are drawn afterwards: drawing would disturb it."""
    from PIL import Image
    database = program.folder / "growing.db"
    training = program.start("--db", database, *LADDER)
    copies = []
    while training.poll() is None:
        time.sleep(FRAME_S)
        if database.exists():
            copies.append(program.folder / f"frame{len(copies)}.db")
            with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as now, sqlite3.connect(copies[-1]) as copy:
                now.backup(copy)
                # This script is alive when they are drawn, so the runs are shown as they were.
                copy.execute("UPDATE runs SET owner_pid = ?, owner_start = ? WHERE status IN ('running', 'queued')", (os.getpid(), began()))
    if training.returncode != 0:
        sys.exit("the ladder failed")
    frames = []
    for copy in [*copies, database]:
        file = copy.with_suffix(".png")
        program.picture(copy, "ladder", file, f"{WIDTH}x{HEIGHT}")
        frames.append(Image.open(file).convert("RGB"))
    frames = [frame for i, frame in enumerate(frames) if i == 0 or frame.tobytes() != frames[i - 1].tobytes()]
    colours = frames[-1].quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE)
    shown = [frame.quantize(palette=colours, dither=Image.Dither.NONE) for frame in frames]
    shown[0].save(DOCS / "ladder.gif", save_all=True, append_images=shown[1:], loop=0, optimize=True,
                  duration=[12000 // len(shown)] * (len(shown) - 1) + [5000])


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    examples = DOCS.parent / "assets" / "examples"
    folder = pathlib.Path("/tmp/logs")
    folder.mkdir()
    try:
        program = Program(sys.argv[1], folder)
        makers = {"impossible": lambda: of_a_log(program, examples / "rtx3080-ladder.txt", "impossible", "ladder"),
                  "compare": lambda: of_a_log(program, sys.argv[2], "compare", "compare"),
                  "tries": lambda: of_a_log(program, examples / "night-of-tries.db", "tries", "tries"),
                  "gif": lambda: ladder_gif(program)}
        for name in sys.argv[3:] or makers:
            makers[name]()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
