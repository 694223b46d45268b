"""Copies of the database on demand: `doctor --backup`."""
import contextlib
import sqlite3
import stat
import threading
import unittest

from program import Workplace

STEPS = 3000
LOG = "".join(f"step {i} | loss {5 - i / 1000:.3f} | dt 100.0ms | tok/sec 40960\n" for i in range(1, STEPS + 1))


class Backup(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.addCleanup(self.place.close)
        self.out = self.place.path / "copy.db"
        log = self.place.path / "mine.log"
        log.write_text(LOG)
        self.place.json("import", log)

    def test_it_is_complete_and_says_what_it_holds(self):
        said = self.place.json("doctor", "--backup", self.out)
        self.assertEqual((said["runs"], said["steps"], said["bytes"]), (1, STEPS, self.out.stat().st_size))
        self.assertEqual((said["database"], said["backup"]), (str(self.place.database), str(self.out)))
        self.assertEqual(stat.S_IMODE(self.out.stat().st_mode), 0o600)
        run, = self.place.json("runs", "--db", self.out)
        self.assertEqual(run["steps"], STEPS)
        status, out, _ = self.place.run("doctor", "--backup", self.place.path / "second.db")
        self.assertEqual(status, 0)
        self.assertIn("with 1 run and 3,000 steps (", out)

    def test_it_never_replaces_a_file(self):
        self.out.write_text("mine")
        status, out, err = self.place.run("doctor", "--backup", self.out)
        self.assertEqual((status, out), (1, ""))
        self.assertIn(f"the copy {self.out} could not be written: it exists already", err)
        self.assertEqual(self.out.read_text(), "mine")
        for name, said in ((self.place.database, "is the database itself"), (f"{self.place.database}-wal", "belongs to"),
                           ("", "the file name is empty")):
            status, _, err = self.place.run("doctor", f"--backup={name}" if name else "--backup=")
            self.assertNotEqual(status, 0, name)
            self.assertIn(said if name else "--backup", err)

    def test_others_write_meanwhile(self):
        ended = threading.Event()
        self.addCleanup(ended.set)

        def write():
            with contextlib.closing(sqlite3.connect(self.place.database, isolation_level=None)) as database:
                step = STEPS
                while not ended.is_set():
                    database.execute("begin immediate")
                    for _ in range(10):
                        step += 1
                        database.execute("insert into steps (run_id, step, loss) values (1, ?, 1.5)", (step,))
                    database.execute("commit")

        writer = threading.Thread(target=write)
        writer.start()
        try:
            said = [self.place.json("doctor", "--backup", self.place.path / f"copy-{i}.db") for i in range(3)]
        finally:
            ended.set()
            writer.join()
        for one in said:
            self.assertEqual(one["steps"] % 10, 0, "a part of a transaction")
            with contextlib.closing(sqlite3.connect(one["backup"])) as copy:
                self.assertEqual(copy.execute("select count(*), max(step) from steps").fetchone(), (one["steps"],) * 2)
                self.assertEqual(copy.execute("pragma integrity_check").fetchone(), ("ok",))


if __name__ == "__main__":
    unittest.main()
