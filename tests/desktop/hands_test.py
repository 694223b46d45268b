"""What hands do: the mouse rests, keys are hit for an instant, several tags are typed at once, and a filter hides selected runs."""
import pathlib
import signal
import sys
import time
import unittest

from desktop_driver import Desktop, missing_tools


class Hands(unittest.TestCase):
    def setUp(self):
        self.desktop = Desktop()
        self.addCleanup(self.desktop.close)
        self.desktop.start()
        self.desktop.go("start.a100-three-rungs.csv", "ladder.rung.2")

    def test_a_tooltip_appears_while_the_mouse_rests_and_then_the_window_sleeps(self):
        desktop = self.desktop
        x0, y0, x1, y1 = desktop.ui_test_anchors()["side.theme"]
        desktop.xdotool("mousemove", int((x0 + x1) / 2), int((y0 + y1) / 2))
        desktop.wait(lambda: "tooltip" in desktop.ui_test_anchors(), "the tooltip")

        def cpu_ticks():
            stat = pathlib.Path(f"/proc/{desktop.program.pid}/task/{desktop.program.pid}/stat")  # of the window's own thread
            fields = stat.read_text().rpartition(")")[2].split()
            return int(fields[11]) + int(fields[12])

        def rests():
            before = cpu_ticks()
            time.sleep(1)
            return cpu_ticks() == before
        desktop.wait(rests, "the window to sleep under a resting mouse")

    def test_a_chord_hit_for_an_instant_counts_whichever_key_is_released_first(self):
        desktop = self.desktop
        dark = True
        for released in (("ctrl", "t"), ("t", "ctrl")):
            for _ in range(3):
                desktop.xdotool("keydown", "ctrl", "keydown", "t", "keyup", released[0], "keyup", released[1])
                dark = not dark
                desktop.wait(lambda: (desktop.brightness() < 100) == dark, f"the {'dark' if dark else 'light'} theme")

    def test_several_tags_at_once_and_delete_with_a_filter(self):
        desktop = self.desktop
        desktop.click("side.history")
        desktop.wait(lambda: "history.run.1" in desktop.ui_test_anchors(), "the table of runs")
        for run in (1, 2, 3):
            desktop.click(f"history.box.{run}")
        desktop.click("history.tag")
        desktop.wait(lambda: "history.tag.field" in desktop.ui_test_anchors(), "the field for tags")
        desktop.xdotool("type", "--delay", 30, "night, good, third")
        desktop.keys("Return")
        desktop.wait(lambda: [row[0] for row in desktop.rows("select tags from curation order by run_id")] == ["night, good, third"] * 3,
                     "three tags on three runs")
        desktop.picture("history-tags")

        name = desktop.rows("select name from runs where id = 2")[0][0].split()[-1]
        desktop.fill("history.filter", name)
        desktop.wait(lambda: "history.run.1" not in desktop.ui_test_anchors() and "history.hidden" in desktop.ui_test_anchors(), "two hidden runs")
        desktop.picture("history-hidden")
        desktop.click("history.metric.1")  # takes the focus from the field
        desktop.keys("Delete")
        binned = "select run_id from curation where deleted_at is not null order by run_id"
        desktop.wait(lambda: desktop.rows(binned) == [(2,)], "one run in the bin")
        time.sleep(0.5)
        self.assertEqual(desktop.rows(binned), [(2,)])


    def test_nothing_is_lost_of_what_comes_while_the_window_hangs(self):
        """As on a machine that trains: all of it arrives in one frame."""
        desktop = self.desktop

        def at_once(*words):
            desktop.program.send_signal(signal.SIGSTOP)
            time.sleep(0.1)
            for each in words:
                desktop.xdotool(*each)
            time.sleep(0.1)
            desktop.program.send_signal(signal.SIGCONT)

        def click(name):
            x0, y0, x1, y1 = desktop.ui_test_anchors()[name]
            return "mousemove", int((x0 + x1) / 2), int((y0 + y1) / 2), "click", 1
        palette = ("keydown", "ctrl", "key", "k", "keyup", "ctrl")
        at_once(palette, ("type", "history"), ("key", "Return"))
        desktop.wait(lambda: "history.run.2" in desktop.ui_test_anchors(), "the view that the palette opens")
        desktop.settled()
        at_once(click("history.run.2"), ("key", "F2"), ("key", "ctrl+a"), ("type", "renamed at once"), ("key", "Return"))
        desktop.wait(lambda: desktop.rows("select id from runs where name = 'renamed at once'") == [(2,)], "the chosen run's new name")
        desktop.settled()
        at_once(click("history.filter"), ("type", "at once"))
        desktop.wait(lambda: "history.run.1" not in desktop.ui_test_anchors() and "history.run.2" in desktop.ui_test_anchors(), "the filter")
        at_once(("key", "ctrl+a"), ("key", "BackSpace"), ("key", "Return"), palette, ("type", "mfu"), ("key", "Return"))
        desktop.wait(lambda: "title.MFU" in desktop.ui_test_anchors(), "the next view")


if __name__ == "__main__":
    if missing_tools():
        print("skipped: needs", ", ".join(missing_tools()))
        sys.exit(77)
    unittest.main(verbosity=2)
