"""Bad input gives a sentence that names the mistake and exit status 1 or 2; nothing is lost or left half-done."""
import json
import os
import pathlib
import sqlite3
import struct
import subprocess
import unittest

from program import TINY, Workplace


class BadInput(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.addCleanup(self.place.close)

    def refused(self, status, words, *arguments):
        """The program ends with `status` and one sentence on stderr that contains all `words`."""
        code, out, err = self.place.run(*arguments)
        self.assertEqual(code, status, f"{arguments}: {err}")
        self.assertEqual(out, "")
        for word in words:
            self.assertIn(word, err)
        self.assertNotIn("terminate called", err)
        self.assertLess(len(err.strip().splitlines()), 4, err)
        return err

    def file(self, name, content):
        path = self.place.path / name
        path.write_bytes(content)
        return path

    def train(self, *arguments):
        return ("train", *TINY, "--steps", 2, *arguments)

    def test_data_files(self):
        self.refused(1, ["nothing.txt"], *self.train("--data", self.place.path / "nothing.txt"))
        self.refused(1, ["empty.txt", "empty"], *self.train("--data", self.file("empty.txt", b"")))
        self.refused(1, ["one.txt"], *self.train("--data", self.file("one.txt", b"x")))
        self.refused(1, ["binary.txt", "binary"], *self.train("--data", self.file("binary.txt", os.urandom(65536))))
        self.refused(1, [str(self.place.path), "folder"], *self.train("--data", self.place.path))
        self.refused(1, ["odd.bin"], *self.train("--data", self.file("odd.bin", b"\1\2\3" * 1001)))
        self.refused(1, ["high.bin"], *self.train("--data", self.file("high.bin", b"\xff\xff" * 4000)))

        def llmc(magic, claimed, held):
            header = struct.pack("<256i", magic, 1, claimed, *[0] * 253)
            return header + struct.pack(f"<{held}H", *[i % 1000 for i in range(held)])

        self.refused(1, ["magic.bin", "20240520", "12345"], *self.train("--data", self.file("magic.bin", llmc(12345, 5000, 5000))))
        self.refused(1, ["model.bin", "20240520", "20240326"],
                     *self.train("--data", self.file("model.bin", llmc(20240326, 5000, 5000))))
        self.refused(1, ["short.bin", "5,000", "4,000"], *self.train("--data", self.file("short.bin", llmc(20240520, 5000, 4000))))
        self.assertEqual(self.place.json("runs"), [], "nothing was made")

        code, _, err = self.place.run(*self.train("--data", self.file("good.bin", llmc(20240520, 5000, 5000))))
        self.assertEqual(code, 0, err)

    def test_recipes(self):
        self.refused(2, ["--heads", "3"], "train", "--heads", 3)
        self.refused(2, ["--steps", "0"], "train", "--steps", 0)
        self.refused(2, ["--steps"], "train", "--steps", "many")
        self.refused(2, ["--batch"], "train", "--batch", -1)
        self.refused(2, ["--lr"], "train", "--lr", "nan")
        self.refused(2, ["--model", "nano"], "train", "--model", "nanno")
        self.refused(2, ["flash", "flash-attention"], "train", "--stage", "flash")
        self.refused(2, ["fused-adam", "fused-adamw"], "ladder", "--stages", "baseline,fused-adam")
        for other in (["--stages", "bf16"], ["--only", "bf16"], ["--without", "ddp"], ["--all"]):
            self.refused(2, ["--plan", other[0], "excludes"], "ladder", "--plan", "a100", *other)
        self.refused(2, ["--nonsense"], "train", "--nonsense")
        self.refused(2, ["frobnicate"], "frobnicate")
        self.refused(1, ["99"], "--db", self.made(), "show", 99)
        self.refused(2, ["colour"], "runs", "--filter", "colour=red")
        self.refused(2, ["--size"], "screenshot", "--view", "ladder", "--out", "x.png", "--size", "big")

    def made(self):
        self.place.json("train", *TINY, "--steps", 2)
        return self.place.database

    def test_databases(self):
        text = self.file("text.db", b"This is not a database, it is a sentence.\n" * 100)
        self.refused(1, ["text.db", "not a", "database"], "--db", text, *self.train())
        self.refused(1, ["text.db"], "--db", text, "runs")
        self.assertTrue(text.read_bytes().startswith(b"This is not"))

        newer = self.made()
        with sqlite3.connect(newer) as database:
            database.execute("pragma user_version = 9999")
        database.close()
        self.refused(1, ["runs.db", "newer"], *self.train())
        self.refused(1, ["runs.db", "newer"], "runs")

        self.refused(1, [str(self.place.path)], "--db", self.place.path, *self.train())
        self.refused(1, ["nowhere.db"], "--db", self.place.path / "nowhere.db", "show", 1)
        self.refused(1, ["/proc"], "--db", "/proc/stepladder.db", *self.train())

    def test_a_damaged_database(self):
        database = self.made()
        code, out, _ = self.place.run("--db", database, "doctor", "--database", "--json")
        self.assertEqual((code, json.loads(out)["sound"]), (0, True))
        with sqlite3.connect(database) as file:
            file.execute("pragma wal_checkpoint(truncate)")
            (page,), = file.execute("select rootpage from sqlite_master where name = 'runs_by_ladder'").fetchall()
            (size,), = file.execute("pragma page_size").fetchall()
        with open(database, "r+b") as file:
            file.seek((page - 1) * size + 8)
            file.write(b"\xff" * 64)
        code, out, err = self.place.run("--db", database, "doctor", "--database", "--json")
        self.assertEqual(code, 1, err)
        found = json.loads(out)
        self.assertFalse(found["sound"])
        self.assertTrue(found["damage"])
        self.refused(1, ["none.db"], "--db", self.place.path / "none.db", "doctor", "--database")

    def test_a_database_that_may_only_be_read(self):
        database = self.made()
        for name in self.place.path.glob("runs.db*"):
            name.chmod(0o444)
        if os.geteuid() == 0:  # root may write anything except an immutable file or a read-only volume
            if subprocess.run(["mount", "--bind", self.place.path, self.place.path], capture_output=True).returncode != 0:
                self.skipTest("root, and nothing can be mounted here")
            self.addCleanup(subprocess.run, ["umount", "-l", self.place.path], capture_output=True)
            if subprocess.run(["mount", "-o", "remount,ro,bind", self.place.path], capture_output=True).returncode != 0:
                self.skipTest("root, and nothing can be mounted read-only here")
        self.assertEqual(len(self.place.json("--db", database, "runs")), 1)
        self.refused(1, ["runs.db", "read-only"], "--db", database, *self.train())

    def test_no_space_left(self):
        volume = self.place.path / "small"
        volume.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", volume], capture_output=True).returncode != 0:
            self.skipTest("no tmpfs can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", volume], capture_output=True)
        database = volume / "runs.db"
        code, _, err = self.place.run("--db", database, "train", *TINY, "--steps", 100000)
        self.assertEqual(code, 1, err)
        self.assertIn("space", err)
        self.assertIn("runs.db", err)
        if database.exists():
            check = subprocess.run(["sqlite3", "-readonly", database, "pragma integrity_check"], capture_output=True, text=True)
            self.assertEqual(check.stdout.strip(), "ok", check.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
