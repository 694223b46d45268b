"""Runs a script with stepladder.py and reads the journals that it writes; shared by the tests of this folder."""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULE = ROOT / "python"

# How long a test waits for what must come. Only a hang takes so long, on a machine ten times slower too.
PATIENCE_S = 400

NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def events_of(data):
    """The events of a journal's bytes up to the first line that isn't whole, and the bytes that they take."""
    events, good = [], 0
    while True:
        end = data.find(b"\n", good)
        line = data[good:end]
        if end < 0 or line[-9:-8] != b"\t" or line[-8:] != b"%08x" % zlib.crc32(line[:-9]):
            return events, good
        events.append(json.loads(line[:-9]))
        good = end + 1


def read(path):
    data = pathlib.Path(path).read_bytes()
    events, good = events_of(data)
    assert good == len(data), f"{path}: byte {good} of {len(data)} is bad"
    return events


def of_kind(events, kind):
    return [event for event in events if event["e"] == kind]


def values(events, name):
    """[(step, value)] of a metric."""
    return [(event["s"], NOT_FINITE.get(event["v"][name], event["v"][name]))
            for event in of_kind(events, "log") if name in event["v"]]


class JournalTest(unittest.TestCase):
    """A folder of its own for the journals of each test."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="stepladder-python-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.journals = self.folder / "journals"
        launched = ("RANK", "WORLD_SIZE", "LOCAL_", "SLURM_", "OMPI_", "STEPLADDER_", "TORCHELASTIC_")
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(launched)}
        self.environment.update(PYTHONPATH=str(MODULE), STEPLADDER_DIR=str(self.journals), PYTHONDONTWRITEBYTECODE="1")

    def start(self, script, *arguments, **environment):
        path = self.folder / "demo.py"
        written = path.with_suffix(".part")
        written.write_text(textwrap.dedent(script))
        written.rename(path)  # another process may be about to read it
        return subprocess.Popen([sys.executable, path, *map(str, arguments)], cwd=self.folder, text=True,
                                env={**self.environment, **{k: str(v) for k, v in environment.items()}},
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run_script(self, script, *arguments, status=0, **environment):
        """Runs it to its end; its standard output and error."""
        process = self.start(script, *arguments, **environment)
        out, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, status, err)
        return out, err

    def paths(self):
        return sorted(self.journals.glob("*/rank-*.jsonl"))

    def only(self):
        """The events of the one journal that there is."""
        paths = self.paths()
        self.assertEqual(len(paths), 1, paths)
        return read(paths[0])

    def events(self, script, *arguments, **options):
        self.run_script(script, *arguments, **options)
        return self.only()
