"""Drops files on the real window, as a file manager does: the Import view reads logs and reports other files."""
import subprocess
import sys
import time
import unittest

from desktop_driver import IMPORTED, Desktop, missing_tools
from drag_source import DragSource, library


def log_of(steps):
    return "".join(f"iter {i}: loss {4 - 0.01 * i:.4f}, time {20 + i % 3}.00ms, mfu 10.00%\n" for i in range(steps))


class Drop(unittest.TestCase):
    def setUp(self):
        self.desktop = Desktop()
        self.addCleanup(self.desktop.close)
        self.desktop.start()
        self.desktop.go("start.a100-three-rungs.csv", "ladder.rung.2")
        self.source = DragSource(self.desktop.environment["DISPLAY"])
        self.addCleanup(self.source.close)
        found = subprocess.run(["xdotool", "search", "--onlyvisible", "--class", "^Stepladder$"], env=self.desktop.environment,
                               capture_output=True, text=True, check=True)
        self.window = int(found.stdout.split()[0])

    def drop(self, *paths):
        self.source.drop(self.window, 800, 450, *paths)

    def imported(self):
        return self.desktop.rows("select name, (select count(*) from steps where run_id = runs.id) from runs "
                                 f"where {IMPORTED} and hidden = 0 order by name")

    def test_what_is_dropped_is_understood_and_then_kept(self):
        desktop = self.desktop
        log = desktop.path / "dropped here & there 100%.log"
        log.write_text(log_of(60))
        self.drop(log)
        desktop.wait(lambda: "import.keep" in desktop.ui_test_anchors(), "what was understood")
        self.assertEqual(self.imported(), [], "nothing is kept before it was asked for")
        desktop.picture("dropped")
        desktop.click("import.keep")
        desktop.wait(lambda: self.imported() == [("dropped here & there 100%", 60)], "the run")

        # The same file again is recognised; the import is undone and can be repeated.
        self.drop(log)
        desktop.wait(lambda: "import.skipped.again" in desktop.ui_test_anchors(), "that it is in the project")
        self.assertNotIn("import.keep", desktop.ui_test_anchors())
        desktop.picture("dropped-again")
        desktop.keys("ctrl+z")
        in_bin = "select count(*) from curation where deleted_at is not null"
        desktop.wait(lambda: desktop.rows(in_bin) == [(1,)], "the run in the bin")
        self.drop(log)
        desktop.wait(lambda: "import.keep" in desktop.ui_test_anchors(), "the preview again")
        desktop.click("import.keep")
        desktop.wait(lambda: "import.undo" in desktop.ui_test_anchors(), "the button that undoes it")
        desktop.picture("imported")
        desktop.click("import.undo")
        desktop.wait(lambda: desktop.rows(in_bin) == [(2,)], "both in the bin")
        self.drop(log)
        desktop.wait(lambda: "import.keep" in desktop.ui_test_anchors(), "the preview once more")
        desktop.click("import.keep")
        desktop.wait(lambda: len(self.imported()) == 3, "the run that stays")

        # A folder is a ladder, or repeats; two files are dropped together.
        folder = desktop.path / "sweep"
        folder.mkdir()
        for name in ("a", "b"):
            (folder / f"{name}.log").write_text(log_of(30))
        desktop.click("side.ladder")
        self.drop(folder)
        desktop.wait(lambda: {"import.row.0", "import.row.1", "import.keep"} <= set(desktop.ui_test_anchors()), "both files of the folder")
        self.drop(folder / "a.log", folder / "b.log", log)
        desktop.wait(lambda: {"import.row.1", "import.skipped.again", "import.keep"} <= set(desktop.ui_test_anchors()), "the two new files")
        self.assertEqual(len(self.imported()), 3)

        # A file deleted meanwhile is reported, and nothing can be imported.
        self.drop(desktop.path / "gone.log")
        def nothing_to_keep():
            return "import.forget" in desktop.ui_test_anchors() and not {"import.keep", "import.row.0"} & set(desktop.ui_test_anchors())
        desktop.wait(nothing_to_keep, "what went wrong")
        time.sleep(1)
        self.assertTrue(nothing_to_keep(), "not only while it was read")
        desktop.picture("dropped-gone")
        self.assertEqual(desktop.stop(), 0)

    def test_a_project_is_no_log(self):
        desktop = self.desktop
        project = desktop.path / "other.stepladder"
        subprocess.run(["sqlite3", desktop.database, f".backup '{project}'"], check=True)
        before = project.read_bytes()
        self.drop(project)
        desktop.wait(lambda: "message.dismiss" in desktop.ui_test_anchors(), "the message")
        self.assertNotIn("import.keep", desktop.ui_test_anchors())
        self.assertIn("ladder.rung.2", desktop.ui_test_anchors(), "the view stays")
        desktop.picture("dropped-project")
        self.assertEqual(project.read_bytes(), before)
        # A log dropped beside it is still read.
        log = desktop.path / "beside.log"
        log.write_text(log_of(30))
        self.drop(project, log)
        desktop.wait(lambda: {"import.keep", "message.dismiss"} <= set(desktop.ui_test_anchors()), "the log, and the message")
        self.assertEqual(desktop.stop(), 0)


if __name__ == "__main__":
    if missing_tools() or not library():
        print("skipped: needs", ", ".join(missing_tools() or ["libX11"]))
        sys.exit(77)
    unittest.main(verbosity=2)
