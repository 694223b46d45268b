"""The main workflow by mouse and keyboard: launch a ladder, watch it, stop it, compare it."""
import sys
import time
import unittest

from desktop_driver import Desktop, missing_tools


class MainJob(unittest.TestCase):
    def setUp(self):
        self.desktop = Desktop()
        self.addCleanup(self.desktop.close)

    def test_launch_watch_stop_compare(self):
        desktop = self.desktop
        print(f"first frame after {desktop.start():.2f} s", file=sys.stderr)

        # The first launch offers examples, and stores none until one is opened.
        desktop.anchor("start.a100-three-rungs.csv")
        self.assertEqual(desktop.rows("select count(*) from runs"), [(0,)])
        desktop.go("start.a100-three-rungs.csv", "ladder.rung.2")
        self.assertEqual(desktop.rows("select count(*) from runs"), [(3,)])
        desktop.picture("first-launch")

        # Launch: fewer rungs, a custom name, more steps than anyone waits for.
        desktop.go("side.launch", "launch.rungs.none")
        desktop.click("launch.rungs.none")
        desktop.click("launch.rung.weight-tying")
        desktop.click("launch.rung.bf16")
        desktop.fill("launch.steps", "100000")
        desktop.fill("launch.name", "by hand")
        desktop.picture("launch")
        desktop.wait(lambda: self.press_start(), "the ladder to start")

        # Watch: steps arrive.
        desktop.wait(lambda: "live.stop" in desktop.ui_test_anchors(), "the Live view")
        running = "select id from runs where status = 'running'"
        desktop.wait(lambda: self.steps_of_running() > 30, "thirty steps")
        desktop.picture("live")

        # Pause: no step runs until Resume.
        desktop.click("live.pause")
        desktop.wait(lambda: desktop.stands_still(self.steps_of_running), "the pause")
        held = self.steps_of_running()
        desktop.picture("paused")
        desktop.click("live.pause")
        desktop.wait(lambda: self.steps_of_running() > held + 5, "steps after the pause")
        first = desktop.rows(running)[0][0]

        # Stop this run: the next rung takes its turn. Then stop the rest.
        desktop.click("live.stop")
        desktop.wait(lambda: any(run != first for (run,) in desktop.rows(running)), "the next rung")
        desktop.wait(lambda: self.steps_of_running() > 30, "thirty more steps")
        desktop.click("live.stop_all")
        desktop.wait(lambda: not desktop.rows("select id from runs where status in ('running', 'queued')"), "everything to stop")
        kept = desktop.rows("select id, status, (select count(*) from steps where run_id = runs.id), "
                            "(select max(step) from steps where run_id = runs.id) from runs where source = 'launched' order by id")
        self.assertEqual({status for _, status, _, _ in kept}, {"stopped"})
        self.assertEqual(len(kept), 3, "the baseline and the two rungs that were chosen")
        for _, _, count, last in kept[:2]:
            self.assertGreater(count, 30)
            self.assertEqual(count, last, "every step is kept")

        # Compare: the ladder, then runs over each other.
        desktop.click("side.ladder")
        desktop.click("ladder.rung.1")
        desktop.picture("ladder")
        desktop.click("side.history")
        desktop.fill("history.filter", "by hand")
        desktop.wait(lambda: f"history.run.{first}" in desktop.ui_test_anchors() and "history.run.1" not in desktop.ui_test_anchors(),
                     "the filter to hold")
        desktop.wait(lambda: self.overlay(kept[0][0], kept[1][0]), "the overlay")
        desktop.picture("history")

        # By keyboard: views, theme. Side by side with Ctrl held down.
        desktop.keys("Escape", "ctrl+3")
        desktop.wait(lambda: "ladder.rung.1" in desktop.ui_test_anchors(), "Ctrl+3 to show the ladder")
        self.assertLess(desktop.brightness(), 60)
        desktop.keys("ctrl+t")
        desktop.wait(lambda: desktop.brightness() > 200, "the light theme")
        desktop.picture("ladder-light")
        desktop.click("side.history", modifier="ctrl")
        desktop.wait(lambda: {"ladder.rung.1", "history.filter"} <= set(desktop.ui_test_anchors()), "two panels side by side")
        desktop.picture("side-by-side")

        # Launch says that a file is missing, and starts nothing.
        desktop.click("side.launch")
        desktop.click("launch.data")
        desktop.keys("Down", "Return")
        desktop.fill("launch.file", "/nowhere/at/all.txt")
        desktop.wait(lambda: "launch.problem" in desktop.ui_test_anchors(), "the problem")
        desktop.picture("problem")
        before = desktop.rows("select count(*) from runs")
        desktop.click("launch.start")
        self.assertEqual(desktop.rows("select count(*) from runs"), before)
        self.assertEqual(desktop.stop(), 0)

        # The theme was remembered, and so was the example.
        desktop.start()
        desktop.wait(lambda: desktop.brightness() > 200, "the light theme again")
        self.assertEqual(desktop.rows("select count(*) from runs where source = 'import'"), [(3,)])
        self.assertEqual(desktop.stop(), 0)

    def test_the_window_fits_on_a_small_screen(self):
        self.desktop.close()
        self.desktop = Desktop(1280, 720)
        self.addCleanup(self.desktop.close)
        self.desktop.start()
        self.desktop.go("side.launch", "launch.start")
        boxes = self.desktop.ui_test_anchors()
        self.assertLessEqual(max(x1 for _, _, x1, _ in boxes.values()), 1280)
        self.assertLessEqual(boxes["launch.start"][3], 720)

    def press_start(self):
        """Until the hardware is detected, the button is disabled."""
        self.desktop.click("launch.start")
        time.sleep(0.5)
        return self.desktop.rows("select 1 from ladders where name = 'by hand'")

    def overlay(self, *runs):
        """Selects runs in History; a slow window may miss clicks."""
        self.desktop.click(f"history.run.{runs[0]}")
        for run in runs[1:]:
            self.desktop.click(f"history.box.{run}")
        deadline = time.monotonic() + 5
        while "history.clear" not in self.desktop.ui_test_anchors() and time.monotonic() < deadline:
            time.sleep(0.05)
        return "history.clear" in self.desktop.ui_test_anchors()

    def steps_of_running(self):
        return self.desktop.rows("select count(*) from steps join runs on id = run_id where status = 'running'")[0][0]


if __name__ == "__main__":
    if missing_tools():
        print("skipped: needs", ", ".join(missing_tools()))
        sys.exit(77)
    unittest.main(verbosity=2)
