"""Launch by mouse and keyboard: data from a file of one's own, and a run that is continued from its checkpoint."""
import sys
import unittest

from desktop_driver import Desktop, missing_tools


class Launch(unittest.TestCase):
    def setUp(self):
        self.desktop = Desktop()
        self.addCleanup(self.desktop.close)

    def runs(self):
        return self.desktop.rows("select status, planned_steps, runs.source_path from runs join ladders on ladders.id = runs.ladder_id "
                                 "where ladders.name = 'mine'")

    def test_a_file_of_ones_own_and_resume(self):
        desktop = self.desktop
        book = desktop.path / "a book.txt"
        book.write_text("All happy families are alike; each unhappy family is unhappy in its own way.\n" * 400)
        desktop.start()
        desktop.go("side.launch", "launch.rungs.none")
        desktop.click("launch.rungs.none")
        desktop.click("launch.data")
        self.desktop.anchor("launch.data.file")
        desktop.click("launch.data.file")
        self.desktop.anchor("launch.file.browse")
        self.desktop.enter("launch.file", str(book))
        for name, text in (("steps", "6"), ("batch", "2"), ("seq", "32"), ("name", "mine")):
            self.desktop.enter(f"launch.{name}", text)
        desktop.click("launch.group.4")
        self.desktop.anchor("launch.save_every")
        self.desktop.enter("launch.save_every", "3")
        desktop.picture("launch-file")
        desktop.start_ladder()
        desktop.wait(self.runs, "the run to start")
        desktop.wait(lambda: self.runs() == [("finished", 6, str(book))], "its end")

        desktop.go("side.launch", "launch.resume")
        run = desktop.rows("select max(id) from runs")[0][0]
        desktop.go("launch.resume", f"launch.resume.{run}")
        desktop.click(f"launch.resume.{run}")
        self.desktop.anchor("launch.resume.steps")
        self.desktop.enter("launch.resume.steps", "9")
        desktop.picture("launch-resume")
        desktop.click("launch.resume.start")
        desktop.wait(lambda: self.runs() == [("finished", 9, str(book))], "the end of the resumed run")
        self.assertEqual(desktop.rows("select count(*), max(step) from steps where run_id = ?", run), [(9, 9)])
        self.assertEqual(desktop.stop(), 0)


if __name__ == "__main__":
    if missing_tools():
        print("skipped: needs", ", ".join(missing_tools()))
        sys.exit(77)
    unittest.main(verbosity=2)
