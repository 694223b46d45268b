"""Damaged databases: what `doctor` says of them, and what `doctor --rescue` saves."""
import json
import shutil
import sqlite3
import stat
import unittest

from program import Workplace

STEPS = 4000
LOG = "".join(f"step {i} | loss {5 - i / 1000:.3f} | dt 100.0ms | tok/sec 40960\n" for i in range(1, STEPS + 1))


class Rescue(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.addCleanup(self.place.close)
        self.damaged = self.place.path / "damaged.stepladder"
        self.out = self.place.path / "saved.stepladder"
        log = self.place.path / "mine.log"
        log.write_text(LOG)
        self.place.json("import", log)

    def damage(self, page):
        content = bytearray(self.place.database.read_bytes())
        size = int.from_bytes(content[16:18], "big")
        content[(page - 1) * size:page * size] = bytes(size)
        self.damaged.write_bytes(content)

    def page_of_steps(self):
        database = sqlite3.connect(self.place.database)
        root, = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'steps'").fetchone()
        database.close()
        return root

    def test_a_sound_file_is_saved_whole(self):
        code, out, err = self.place.run("doctor", "--rescue", self.out)
        self.assertEqual((code, err), (0, ""), out)
        self.assertIn("has 1 run with 4,000 steps; nothing is lost\n", out)
        self.assertEqual(stat.S_IMODE(self.out.stat().st_mode), 0o600)
        run, = self.place.json("runs", "--db", self.out)
        self.assertEqual((run["steps"], run["status"]), (STEPS, "finished"))

    def test_what_a_damaged_page_costs_is_said(self):
        self.damage(self.page_of_steps())  # the root of the largest tree
        code, out, err = self.place.run("doctor", "--database", "--db", self.damaged)
        self.assertEqual(code, 1, out)
        self.assertIn("is damaged", out)
        self.assertIn(f"`stepladder doctor --rescue OUT --db {self.damaged}`", err)
        code, out, err = self.place.run("show", "1", "--steps", "--db", self.damaged)
        self.assertEqual(code, 1)
        self.assertIn("`stepladder doctor --rescue OUT", err)
        self.assertEqual(len(err.splitlines()), 1, err)

        code, out, err = self.place.run("doctor", "--rescue", self.out, "--json", "--db", self.damaged)
        self.assertEqual(code, 1, err)
        said = json.loads(out)
        damaged, = said["damaged_runs"]
        self.assertFalse(said["whole"])
        self.assertGreaterEqual(said["steps_saved"], STEPS * 98 // 100)
        self.assertEqual(damaged["missing_steps"], STEPS - said["steps_saved"])
        run, = self.place.json("runs", "--db", self.out)
        self.assertEqual((run["steps"], run["status"]), (said["steps_saved"], "interrupted"))
        self.assertIn("rescued from a damaged file", run["reason"])
        self.assertEqual(self.place.run("doctor", "--database", "--db", self.out)[0], 0)

    def test_bad_requests_are_refused(self):
        self.out.write_text("mine")
        code, out, err = self.place.run("doctor", "--rescue", self.out)
        self.assertEqual((code, out, err), (1, "", f"stepladder: {self.out} exists already\n"))
        self.assertEqual(self.out.read_text(), "mine")
        self.assertEqual(self.place.run("doctor", "--rescue", "")[0], 2)
        self.assertEqual(self.place.run("doctor", "--rescue", "x", "--database")[0], 2)
        reader = sqlite3.connect(self.place.database)
        reader.execute("SELECT count(*) FROM runs").fetchall()
        code, out, err = self.place.run("doctor", "--rescue", self.place.path / "new.db")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("is open in another process", err)
        reader.close()

    def test_a_damaged_log_is_not_taken_for_sound(self):
        writer = sqlite3.connect(self.place.database, isolation_level=None)
        for i in range(20):
            writer.execute("UPDATE runs SET name = ?", (f"name {i}",))
        shutil.copy(self.place.database, self.damaged)
        content = bytearray((self.place.path / "runs.db-wal").read_bytes())
        writer.close()
        content[32 + 24 + 500] ^= 0xff  # in the first of twenty transactions
        log = self.place.path / "damaged.stepladder-wal"
        log.write_bytes(content)
        for command in (("doctor", "--database"), ("runs",)):
            code, out, err = self.place.run(*command, "--db", self.damaged)
            self.assertEqual(code, 1, out)
            self.assertIn("-wal is damaged: opening the file would drop the last 19 transactions", out + err)
            self.assertIn("--rescue", err)
            self.assertEqual(log.read_bytes(), content, "it can still be rescued")
        code, out, err = self.place.run("import", self.damaged)
        self.assertEqual(code, 1)
        self.assertIn("has a damaged log (-wal)", err)
        code, out, err = self.place.run("doctor", "--rescue", self.out, "--db", self.damaged)
        self.assertEqual(code, 0, out)
        self.assertIn("which SQLite would drop, were read", err)
        run, = self.place.json("runs", "--db", self.out)
        self.assertEqual((run["name"], run["steps"]), ("name 19", STEPS))


if __name__ == "__main__":
    unittest.main()
