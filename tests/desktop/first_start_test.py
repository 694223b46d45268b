"""The first start of ./run, whose trainer is still being built, and the start after a crash."""
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest

from desktop_driver import BUILD, PATIENCE_S, Desktop, missing_tools


class FirstStart(unittest.TestCase):
    def setUp(self):
        self.desktop = Desktop(1280, 720)
        self.addCleanup(self.desktop.close)

    @unittest.skipUnless((BUILD / "libstepladder_trainer.so").exists(), "this build has no trainer")
    def test_training_begins_when_the_trainer_is_built(self):
        folder = self.desktop.path / "built"
        folder.mkdir()
        self.desktop.executable = shutil.copy(BUILD / "stepladder", folder)
        for beside in ("assets", "stepladder-far"):
            (folder / beside).symlink_to(BUILD / beside)
        progress = folder / "trainer.progress"
        (folder / "trainer.failed").write_text("the log is in trainer.log\n")
        self.assertIn("the trainer could not be built; the log is in trainer.log", self.complaint())
        (folder / "trainer.failed").unlink()
        progress.write_text("35 of 92 files, about 06:12 left\n")
        self.assertIn("the trainer is still being built: 35 of 92 files", self.complaint())
        self.desktop.start()
        self.desktop.go("side.launch", "launch.start")
        time.sleep(2)
        self.assertNotIn("launch.estimate", self.desktop.ui_test_anchors())
        self.desktop.picture("trainer_is_being_built")
        (folder / "libstepladder_trainer.so").symlink_to(BUILD / "libstepladder_trainer.so")
        time.sleep(2)
        self.assertNotIn("launch.estimate", self.desktop.ui_test_anchors())  # it may be half written
        progress.unlink()
        self.desktop.anchor("launch.estimate")
        self.desktop.picture("trainer_is_built")
        self.assertEqual(self.desktop.stop(), 0)

    def complaint(self):
        process = subprocess.run([self.desktop.executable, "stages"], env=self.desktop.environment, stderr=subprocess.PIPE, text=True)
        self.assertEqual(process.returncode, 1)
        return process.stderr

    @unittest.skipIf(os.environ.get("STEPLADDER_SANITIZED"), "sanitizers report crashes themselves")
    def test_a_crash_is_told_once(self):
        reports = self.desktop.path / "config" / "stepladder"
        self.desktop.start()
        self.desktop.program.send_signal(signal.SIGSEGV)
        self.assertEqual(self.desktop.program.wait(timeout=PATIENCE_S), -signal.SIGSEGV)
        self.assertIn("SIGSEGV", (reports / "crash.txt").read_text())
        self.desktop.start()
        self.desktop.wait(lambda: not (reports / "crash.txt").exists(), "the report to be told")
        self.desktop.picture("after_a_crash")
        self.assertEqual(len(list(reports.glob("crash-*.txt"))), 1)
        self.assertEqual(self.desktop.stop(), 0)


if __name__ == "__main__":
    if missing_tools():
        print(f"skipped: {', '.join(missing_tools())} not found")
        sys.exit(77)
    unittest.main()
