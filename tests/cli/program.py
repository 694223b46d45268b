"""Starts the built program; shared by the tests of the command line."""
import json
import os
import pathlib
import subprocess
import tempfile

BUILD = pathlib.Path(os.environ.get("STEPLADDER_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build"))
PROGRAM = BUILD / "stepladder"
TEXT = pathlib.Path(__file__).resolve().parents[2] / "assets" / "tinyshakespeare.txt"

# How long a test waits for what must come. Only a hang takes so long, on a machine ten times slower too.
PATIENCE_S = 400

# A model that trains in milliseconds a step.
TINY = ["--model", "nano", "--layers", "2", "--d-model", "32", "--heads", "2", "--batch", "4", "--seq", "32"]

# A model that does about a thousand steps a second on one core.
SMALLEST = [*TINY, "--layers", "1", "--heads", "1", "--d-model", "16", "--batch", "1", "--seq", "8", "--vocab", "256",
            "--threads", "1"]


def read_terminal(ours):
    """All that is written to a pseudo-terminal until the last program has closed it; closes this side, too."""
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    return shown


class Workplace:
    """A temporary folder with a database, and no display."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="stepladder-cli-")
        self.path = pathlib.Path(self.folder.name)
        self.database = self.path / "runs.db"
        self.environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
        self.environment.update(STEPLADDER_DB=str(self.database), XDG_CONFIG_HOME=str(self.path / "config"),
                                XDG_DATA_HOME=str(self.path / "data"), XDG_STATE_HOME=str(self.path / "state"),
                                OMP_NUM_THREADS="1")  # other tests run beside this one

    def close(self):
        self.folder.cleanup()

    def start(self, *arguments, **options):
        return subprocess.Popen([PROGRAM, *map(str, arguments)], env=self.environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    def run(self, *arguments, timeout=PATIENCE_S):
        process = self.start(*arguments)
        out, err = process.communicate(timeout=timeout)
        return process.returncode, out, err

    def json(self, *arguments):
        status, out, err = self.run(*arguments, "--json")
        assert status == 0, f"{arguments}: exit {status}: {err}"
        return json.loads(out)
