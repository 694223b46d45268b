"""A start from an icon never ends without a word: projects that can't be opened, or may only be read, open a window that says so."""
import os
import sqlite3
import subprocess
import sys
import unittest

from desktop_driver import BUILD, PATIENCE_S, Desktop, missing_tools


class Open(unittest.TestCase):
    def setUp(self):
        self.desktop = Desktop(1280, 720)
        self.addCleanup(self.desktop.close)

    def import_a_log(self, steps=40):
        log = self.desktop.path / "a.log"
        log.write_text("B=8 T=1024\n" + "".join(f"step {i} | loss {11 - i / steps} | dt 100.00ms\n" for i in range(steps)))
        subprocess.run([BUILD / "stepladder", "import", log], env=self.desktop.environment, check=True, capture_output=True)

    def ended(self):
        status = self.desktop.program.wait(timeout=PATIENCE_S)
        self.desktop.program = None
        return status, (self.desktop.path / "log").read_text()

    def test_a_damaged_project_is_rescued(self):
        self.import_a_log()
        whole = self.desktop.database.read_bytes()
        damaged = b"\0" * 40 + whole[40:]
        self.desktop.database.write_bytes(damaged)
        self.desktop.start()
        self.desktop.anchor("problem.why")
        self.desktop.picture("damaged_project")
        self.desktop.click("problem.rescue")
        self.desktop.anchor("problem.rescued")
        self.desktop.picture("rescued_project")
        self.desktop.go("problem.open", "side.history")
        self.desktop.go("side.history", "history.run.1")
        self.assertEqual(self.desktop.database.read_bytes(), damaged)
        self.assertTrue((self.desktop.path / "runs.rescued.db").exists())
        self.assertEqual(self.desktop.stop(), 0)

    def damage_a_page_of_steps(self, which):
        """The database finds out only when it reads that page."""
        project = sqlite3.connect(self.desktop.database)
        size, = project.execute("PRAGMA page_size").fetchone()
        pages = [page for page, in project.execute("SELECT pageno FROM dbstat WHERE name = 'steps' AND pagetype = 'leaf' ORDER BY path")]
        project.close()
        damaged = bytearray(self.desktop.database.read_bytes())
        at = (pages[which] - 1) * size
        damaged[at:at + size] = bytes(i * 37 % 256 for i in range(size))
        self.desktop.database.write_bytes(damaged)

    def test_damage_that_opening_overlooks_is_said_with_the_way_out(self):
        self.import_a_log(steps=3000)
        subprocess.run([BUILD / "stepladder", "bin", "1"], env=self.desktop.environment, check=True, capture_output=True)
        self.import_a_log()
        self.damage_a_page_of_steps(2)  # of the run in the bin, which no view reads
        self.desktop.start()
        self.desktop.anchor("damaged")
        self.desktop.picture("overlooked_damage")
        self.desktop.go("damaged.rescue", "problem.rescue")
        self.desktop.go("problem.rescue", "problem.rescued")
        self.desktop.picture("rescued_with_losses")
        self.desktop.go("problem.open", "side.history")
        self.assertTrue((self.desktop.path / "runs.rescued.db").exists())
        self.assertEqual(self.desktop.stop(), 0)

    def test_damage_that_the_first_view_finds_opens_a_window_all_the_same(self):
        self.import_a_log()
        self.damage_a_page_of_steps(0)
        self.desktop.start()
        self.desktop.go("problem.rescue", "problem.rescued")
        self.assertEqual(self.desktop.stop(), 1)

    def test_a_file_of_another_kind(self):
        self.desktop.database.write_text("no project " * 1000)
        self.desktop.start()
        self.desktop.anchor("problem.again")
        self.desktop.picture("foreign_file")
        self.desktop.click("problem.quit")
        status, said = self.ended()
        self.assertEqual(status, 1)
        self.assertIn("is not a SQLite database", said)

    def test_a_project_that_may_only_be_read(self):
        folder = self.desktop.path / "archive"
        folder.mkdir()
        self.desktop.database = folder / "runs.db"
        self.desktop.environment["STEPLADDER_DB"] = str(self.desktop.database)
        self.import_a_log()
        if subprocess.run(["mount", "--bind", folder, folder], capture_output=True).returncode != 0:
            self.skipTest("nothing can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", folder], capture_output=True)
        if subprocess.run(["mount", "-o", "remount,ro,bind", folder], capture_output=True).returncode != 0:
            self.skipTest("nothing can be mounted read-only here")
        self.desktop.start()
        self.desktop.go("side.history", "history.run.1")
        self.desktop.anchor("read_only")
        self.assertNotIn("message.dismiss", self.desktop.ui_test_anchors(), "nothing covers the view")
        self.desktop.click("history.run.1")
        self.desktop.anchor("history.delete")
        self.desktop.picture("read_only_project")
        self.desktop.click("history.delete")
        self.desktop.go("side.run", "run.pin")
        self.desktop.click("run.pin")
        self.desktop.settled()
        self.assertNotIn("message.dismiss", self.desktop.ui_test_anchors(), "a button that can't work does nothing")
        self.desktop.picture("read_only_change")
        self.desktop.go("side.launch", "launch.problem")
        self.assertEqual(self.desktop.stop(), 0)


if __name__ == "__main__":
    if missing_tools():
        print(f"skipped: {', '.join(missing_tools())} not found")
        sys.exit(77)
    unittest.main()
