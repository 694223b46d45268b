"""A start from an icon never ends without a word: projects that can't be opened, or may only be read, open a window that says so."""
import os
import subprocess
import sys
import unittest

from desktop_driver import BUILD, PATIENCE_S, Desktop, missing_tools


class Open(unittest.TestCase):
    def setUp(self):
        self.desktop = Desktop(1280, 720)
        self.addCleanup(self.desktop.close)

    def import_a_log(self):
        log = self.desktop.path / "a.log"
        log.write_text("B=8 T=1024\n" + "".join(f"step {i} | loss {11 - i / 10} | dt 100.00ms\n" for i in range(40)))
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
