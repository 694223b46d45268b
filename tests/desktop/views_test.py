"""Runs are organised, viewed and compared by mouse and keyboard alone; the next start restores the screen."""
import json
import shutil
import subprocess
import sys
import time
import unittest

from desktop_driver import BUILD, IMPORTED, Desktop, missing_tools


class Views(unittest.TestCase):
    def setUp(self):
        self.desktop = Desktop()
        self.addCleanup(self.desktop.close)
        self.desktop.start()
        self.desktop.go("start.a100-three-rungs.csv", "ladder.rung.2")

    def curated(self, run):
        rows = self.desktop.rows("select tags, pinned, archived, deleted_at is not null from curation where run_id = ?", run)
        return rows[0] if rows else None

    def palette(self, words, anchor):
        """Ctrl+K, a few letters, Enter."""
        desktop = self.desktop
        desktop.keys("ctrl+k")
        desktop.wait(lambda: "palette.typed" in desktop.ui_test_anchors(), "the palette")
        desktop.xdotool("type", "--delay", 30, words)
        time.sleep(0.3)
        desktop.keys("Return")
        desktop.wait(lambda: anchor in desktop.ui_test_anchors() and "palette.typed" not in desktop.ui_test_anchors(), anchor)

    def test_tag_pin_archive_delete_undo_rename(self):
        desktop = self.desktop
        self.palette("show history", "history.filter")
        desktop.picture("history-first")
        desktop.click("history.run.1")
        desktop.keys("F2")
        desktop.anchor("history.name.field")
        desktop.keys("Escape")  # then the keys are the table's again
        desktop.wait(lambda: "history.name.field" not in desktop.ui_test_anchors(), "the end of the renaming")
        desktop.keys("Return")
        desktop.anchor("run.picker")
        self.palette("show history", "history.filter")
        desktop.click("history.run.1")
        desktop.click("history.box.2")
        desktop.wait(lambda: "history.tag" in desktop.ui_test_anchors(), "the selection's buttons")

        desktop.click("history.tag")
        desktop.wait(lambda: "history.tag.field" in desktop.ui_test_anchors(), "the field for a tag")
        desktop.xdotool("type", "--delay", 30, "night")
        desktop.keys("Return")
        desktop.wait(lambda: (self.curated(1) or [""])[0] == "night" and (self.curated(2) or [""])[0] == "night", "two tags")
        desktop.fill("history.filter", "tags~night")
        desktop.wait(lambda: "history.run.3" not in desktop.ui_test_anchors() and "history.run.2" in desktop.ui_test_anchors(), "the filter by tag")
        desktop.fill("history.filter", " ")

        desktop.click("history.pin")
        desktop.wait(lambda: self.curated(1)[1] == 1, "the pin")
        desktop.click("history.archive")
        desktop.wait(lambda: self.curated(1)[2] == 1 and "history.run.1" not in desktop.ui_test_anchors(), "the archive")
        desktop.keys("Escape", "ctrl+z")
        desktop.wait(lambda: self.curated(1)[2] == 0 and "history.run.1" in desktop.ui_test_anchors(), "the archive taken back")

        desktop.click("history.delete")
        desktop.wait(lambda: self.curated(2)[3] == 1 and "history.run.2" not in desktop.ui_test_anchors(), "the bin")
        desktop.picture("history-deleted")
        desktop.click("notice.undo")
        desktop.wait(lambda: self.curated(2)[3] == 0 and "history.run.2" in desktop.ui_test_anchors(), "both runs back")
        self.assertIn("history.clear", desktop.ui_test_anchors(), "and selected, as they were")
        self.assertEqual(desktop.rows("select count(*) from steps where run_id = 2")[0][0],
                         desktop.rows("select count(*) from latest_steps where run_id = 2")[0][0])

        # Groups, and the user's choice of columns.
        desktop.click("history.columns")
        desktop.wait(lambda: "history.column.precision" in desktop.ui_test_anchors(), "the list of columns")
        desktop.click("history.column.precision")
        desktop.keys("Escape")
        desktop.picture("history-columns")

        # The run alone: its name, a note.
        desktop.click("history.run.3")
        self.palette("run tf32", "run.tab.Recipe")
        desktop.click("run.tab.Note")
        desktop.wait(lambda: "run.note" in desktop.ui_test_anchors(), "the note")
        desktop.click("run.note")
        desktop.xdotool("type", "--delay", 30, "worth another look")
        desktop.click("run.tags")
        desktop.wait(lambda: desktop.rows("select 1 from curation where note = 'worth another look'"), "the note to be kept")
        desktop.picture("run")
        self.assertEqual(desktop.stop(), 0)

    def test_baseline_lens_compare_and_what_comes_back(self):
        desktop = self.desktop
        desktop.click("ladder.rung.1")
        desktop.keys("b")
        desktop.wait(lambda: "ladder.baseline.1" in desktop.ui_test_anchors(), "another baseline")
        desktop.keys("t", "w")
        desktop.picture("ladder-waterfall")

        desktop.click("ladder.compare")
        desktop.wait(lambda: "compare.axis" in desktop.ui_test_anchors(), "Compare with the ladder's runs")
        desktop.wait(lambda: "compare.row.3" in desktop.ui_test_anchors(), "the three runs")
        desktop.click("compare.log_y")
        desktop.click("compare.ratio")
        desktop.click("compare.row.2")
        # Zoom with the wheel over the first chart, then set both cursors.
        x0, _, x1, y1 = desktop.ui_test_anchors()["compare.metric.0"]
        desktop.xdotool("mousemove", int(x0 - 200), int(y1 + 90))
        time.sleep(0.2)
        desktop.xdotool("click", "--repeat", 3, "--delay", 150, 4)
        desktop.keys("a")
        desktop.xdotool("mousemove", int(x0 - 100), int(y1 + 90))
        time.sleep(0.2)
        desktop.keys("b")
        desktop.picture("compare")

        desktop.keys("Escape", "ctrl+t")
        desktop.wait(lambda: desktop.brightness() > 200, "the light theme")
        desktop.click("side.history", modifier="ctrl")
        desktop.wait(lambda: {"compare.axis", "history.filter"} <= set(desktop.ui_test_anchors()), "two views side by side")
        self.assertEqual(desktop.stop(), 0)
        kept = json.loads((desktop.path / "config" / "stepladder" / "desktop.json").read_text())
        self.assertEqual(kept["projects"][str(desktop.database)]["panels"], ["compare", "history"])
        self.assertEqual(sorted(kept["projects"][str(desktop.database)]["runs"]), [1, 2, 3])

        desktop.start()
        desktop.wait(lambda: {"compare.row.3", "history.filter"} <= set(desktop.ui_test_anchors()), "the same two views and runs")
        desktop.wait(lambda: desktop.brightness() > 200, "the light theme again")
        view = json.loads(kept["projects"][str(desktop.database)]["views"]["compare"])
        self.assertTrue(view["log_y"])
        low, high = view["zoom"]
        self.assertLess(high - low, 45, "the wheel has zoomed into 50 steps")
        desktop.picture("came-back")
        desktop.keys("ctrl+BackSpace")
        desktop.wait(lambda: "history.filter" not in desktop.ui_test_anchors() and "compare.axis" in desktop.ui_test_anchors(), "the first layout")
        self.assertEqual(desktop.stop(), 0)

    def test_ladders_side_by_side(self):
        desktop = self.desktop
        folder = desktop.path / "colleague"
        folder.mkdir()
        log = folder / "other machine.txt"
        log.write_text("".join(f"{title}\n" + "".join(f"step {i}, loss: {6 - i / 10:.4f}, dt: {dt + i % 3:.2f}ms, tok/sec: {4096e3 / (dt + i % 3):.2f}\n"
                                                       for i in range(1, 13))
                               for title, dt in (("Baseline", 400), ("TF32 precision", 200), ("Flash attention", 100))))
        subprocess.run([BUILD / "stepladder", "--db", str(desktop.database), "import", str(log)], check=True, capture_output=True)
        (number,), = desktop.rows("select max(id) from ladders")
        self.assertEqual(len(desktop.rows("select id from runs where ladder_id = ?", number)), 3)
        desktop.keys("F5")  # the example stays on the screen
        imported = f"ladder.beside.{number}"

        def listed():
            if imported not in desktop.ui_test_anchors():
                desktop.click("ladder.beside")
                time.sleep(0.5)
            return imported in desktop.ui_test_anchors()

        desktop.wait(listed, "the imported ladder in the list of ladders")
        desktop.click(imported)
        desktop.keys("Escape")
        desktop.wait(lambda: "ladder.others.0" in desktop.ui_test_anchors(), "a row that only the other ladder has")
        desktop.picture("ladder-beside")

    def exported(self, ending):
        return [path for path in (self.desktop.path / "exports").glob("*" + ending) if path.stat().st_size > 0]

    def test_exports(self):
        desktop = self.desktop
        desktop.go("ladder.export", "ladder.export.html")
        desktop.click("ladder.export.html")
        report = desktop.wait(lambda: self.exported(".html"), "the report")[0].read_text()
        self.assertIn("a100-three-rungs", report)
        self.assertNotIn("<script", report)
        desktop.picture("exported")
        desktop.click("ladder.export")
        desktop.click("ladder.export.md")
        self.assertIn("| --- |", desktop.wait(lambda: self.exported(".md"), "the table")[0].read_text().replace("---:", "--- |"))
        # The chart under the mouse, by one key.
        x0, _, x1, y1 = desktop.ui_test_anchors()["ladder.axis"]
        desktop.xdotool("mousemove", int(x0 - 150), int(y1 + 50))
        time.sleep(0.3)
        desktop.keys("ctrl+e")
        picture = desktop.wait(lambda: self.exported(".png"), "the chart")[0]
        self.assertEqual(picture.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual(desktop.stop(), 0)

    def test_import_by_path_and_by_paste(self):
        desktop = self.desktop
        lines = [f"iter {i}: loss {4 - 0.01 * i:.4f}, time {20 + i % 3}.00ms, mfu 10.00%" for i in range(60)]
        log = desktop.path / "by-path.log"
        log.write_text("\n".join(lines) + "\n")
        self.palette("show import", "import.path")
        desktop.picture("import-empty")
        desktop.fill("import.path", str(log))
        desktop.keys("Return")
        desktop.wait(lambda: "import.keep" in desktop.ui_test_anchors(), "what was understood")
        self.assertEqual(desktop.rows(f"select count(*) from runs where {IMPORTED}"), [(0,)], "nothing is kept before it was asked for")
        desktop.picture("import-understood")
        desktop.click("import.keep")
        desktop.wait(lambda: desktop.rows(f"select name from runs where {IMPORTED} and hidden = 0") == [("by-path",)], "the run")
        self.assertEqual(desktop.rows(f"select count(*) from steps join runs on id = run_id where {IMPORTED}"), [(60,)])
        desktop.picture("import-kept")

        if not shutil.which("xclip"):
            self.skipTest("xclip is not there: nothing was pasted")
        subprocess.run(["xclip", "-selection", "clipboard"], input="\n".join(lines[:40]), text=True, env=desktop.environment, check=True)
        desktop.click("import.forget")
        desktop.wait(lambda: "import.keep" not in desktop.ui_test_anchors(), "the empty view")
        desktop.click("side.import")
        desktop.keys("ctrl+v")
        desktop.wait(lambda: "import.keep" in desktop.ui_test_anchors(), "what was pasted")
        desktop.click("import.keep")
        desktop.wait(lambda: desktop.rows(f"select count(*) from runs where {IMPORTED} and hidden = 0") == [(2,)], "the second run")
        self.assertEqual(desktop.stop(), 0)


if __name__ == "__main__":
    if missing_tools():
        print("skipped: needs", ", ".join(missing_tools()))
        sys.exit(77)
    unittest.main(verbosity=2)
