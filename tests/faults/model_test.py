"""The shim and the model of power failures themselves, on a few lines of Python whose possible outcomes are known."""
import errno
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

from faults import SHIM, Rules
from power import Log, chances

HEAD = """
import os
def write(path, data, *, sync):
    file = os.open(path, os.O_CREAT | os.O_WRONLY)
    os.write(file, data)
    if sync: os.fsync(file)
    os.close(file)
def sync_folder(path):
    folder = os.open(path, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
"""


class Model(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="stepladder-model-")
        self.addCleanup(temporary.cleanup)
        self.path = pathlib.Path(temporary.name).resolve()
        self.folder = self.path / "folder"
        self.folder.mkdir()
        self.rules = Rules(self.path / "rules")
        self.addCleanup(self.rules.close)

    def run_lines(self, lines):
        environment = dict(os.environ, LD_PRELOAD=str(SHIM), FAULTS_FOLDER=str(self.folder), FAULTS_LOG=str(self.path / "log"),
                           FAULTS_CONTROL=str(self.path / "rules"))
        return subprocess.run([sys.executable, "-c", HEAD + lines], env=environment, cwd=self.folder, capture_output=True,
                              text=True)

    def outcomes(self, lines):
        """Every folder that 150 failures after the last line leave, as {path: bytes}, each once."""
        done = self.run_lines(lines)
        self.assertEqual(done.returncode, 0, done.stderr)
        log, dice, found = Log(self.path / "log"), random.Random(7), []
        end = len(log.entries)
        for _ in range(150):
            with tempfile.TemporaryDirectory() as folder:
                log.write_to(folder, end, log.durable_at(end), chances(dice))
                state = {str(p.relative_to(folder)): p.read_bytes() for p in pathlib.Path(folder).rglob("*") if p.is_file()}
            if state not in found:
                found.append(state)
        return found

    def test_without_a_sync_anything_may_be_there(self):
        found = self.outcomes("write('part', b'x' * 1024, sync=False); os.rename('part', 'whole')")
        self.assertIn({}, found)
        self.assertIn({"whole": b"x" * 1024}, found)
        self.assertIn({"whole": b""}, found)
        self.assertIn({"part": b"x" * 1024}, found)
        self.assertIn({"whole": bytes(512) + b"x" * 512}, found)  # torn

    def test_a_synced_file_is_whole_under_whichever_name(self):
        found = self.outcomes("write('part', b'x' * 1024, sync=True); os.rename('part', 'whole')")
        self.assertIn({}, found)
        self.assertEqual({data for state in found for data in state.values()}, {b"x" * 1024})

    def test_with_the_folder_synced_nothing_is_open(self):
        self.assertEqual(self.outcomes("write('part', b'x', sync=True); os.rename('part', 'whole'); sync_folder('.')"),
                         [{"whole": b"x"}])

    def test_a_removal_may_come_late_and_a_folder_needs_its_own_parent(self):
        found = self.outcomes("write('a', b'1', sync=True); sync_folder('.'); os.unlink('a'); os.mkdir('b');"
                              "write('b/c', b'2', sync=True); sync_folder('b')")
        self.assertEqual(sorted(map(str, found)), sorted(map(str, [{}, {"a": b"1"}, {"b/c": b"2"}, {"a": b"1", "b/c": b"2"}])))

    def test_calls_fail_as_they_are_told(self):
        self.rules.fail(Rules.WRITE, errno.ENOSPC, nth=2, pattern="b*")
        done = self.run_lines("write('a', b'1', sync=True); write('b', b'1', sync=True); write('b', b'2', sync=True)")
        self.assertIn("No space left on device", done.stderr)
        self.assertEqual((self.rules.injected, self.rules.active, self.rules.last), (1, False, "write b"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
