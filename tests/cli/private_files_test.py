"""What Stepladder writes on its own account only its owner may read, whatever the umask."""
import os
import sqlite3
import stat
import sys
import unittest

from program import SMALLEST, Workplace


class PrivateFiles(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.addCleanup(self.place.close)
        before = os.umask(0)
        self.addCleanup(os.umask, before)
        self.database = self.place.path / "project" / "runs.db"
        self.place.environment.update(STEPLADDER_DB=str(self.database), HOME=str(self.place.path / "home"),
                                      XDG_CACHE_HOME=str(self.place.path / "cache"),
                                      XDG_STATE_HOME=str(self.place.path / "state"))

    def open_to_others(self):
        found = []
        for path in self.place.path.rglob("*"):
            mode = path.lstat().st_mode
            if stat.S_IMODE(mode) & 0o077 and not stat.S_ISLNK(mode):
                found.append(f"{stat.S_IMODE(mode):o} {path.relative_to(self.place.path)}")
        return found

    def done(self, *arguments):
        status, _, error = self.place.run(*arguments)
        self.assertEqual(status, 0, error)

    def test_nothing_is_open_to_others(self):
        small = [*SMALLEST, "--steps", 20]
        self.done("train", *small, "--save-every", 10)
        self.done("train", *small, "--save-every", 10, "--journal", self.place.path / "journals" / "deep")
        self.done("train", *small, "--stage", "compile")
        program = "for i in range(1, 9): print(f'step {i} | loss {3 - i / 10}', flush=True)"
        self.done("watch", "--", sys.executable, "-c", program)
        self.done("doctor", "--backup", self.place.path / "backup.db")
        self.done("doctor", "--share", self.place.path / "shared.db")
        self.place.run("doctor", "--rescue", self.place.path / "rescued.db")
        self.assertEqual(self.open_to_others(), [])
        for name in ("project/runs.db.checkpoints", "journals/deep", "backup.db", "shared.db", "rescued.db"):
            self.assertTrue((self.place.path / name).exists(), name)

    def test_the_copy_before_a_migration_is_private_too(self):
        self.done("train", *SMALLEST, "--steps", 2)
        with sqlite3.connect(self.database) as database:
            version, = database.execute("pragma user_version").fetchone()
            database.execute(f"pragma user_version = {version - 1}")
        self.place.run("runs")  # the last migration may refuse a file that has had it
        self.assertEqual(self.open_to_others(), [])

    def test_what_a_user_exports_follows_the_umask(self):
        self.done("train", *SMALLEST, "--steps", 2)
        out = self.place.path / "run.csv"
        self.done("export", 1, "--format", "csv", "--out", out)
        self.assertEqual(stat.S_IMODE(out.stat().st_mode), 0o666)


if __name__ == "__main__":
    unittest.main(verbosity=2)
