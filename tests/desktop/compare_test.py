"""Compare by real mouse: the legend hides a line, a colour is chosen, a chart is dragged, and the arrangement comes back."""
import json
import sys
import time
import unittest

from desktop_driver import Desktop, missing_tools


class Compare(unittest.TestCase):
    def setUp(self):
        self.desktop = Desktop()
        self.addCleanup(self.desktop.close)
        self.desktop.start()
        self.desktop.go("start.a100-three-rungs.csv", "ladder.rung.2")
        self.desktop.go("ladder.compare", "compare.axis")
        self.waits_for("compare.row.3")

    def waits_for(self, *anchors):
        self.desktop.wait(lambda: set(anchors) <= set(self.desktop.ui_test_anchors()), ", ".join(anchors))

    def waits_without(self, anchor):
        self.desktop.wait(lambda: anchor not in self.desktop.ui_test_anchors(), "no " + anchor)

    def click_until(self, name, is_so):
        """Clicks, well apart from the last click, until it has had its effect."""
        self.desktop.xdotool("mousemove", 5, 5)
        time.sleep(0.6)
        self.desktop.click(name)
        self.desktop.wait(is_so, "the effect of a click on " + name)

    def right_click(self, name, anchor):
        x0, y0, x1, y1 = self.desktop.wait(lambda: self.desktop.ui_test_anchors().get(name), name)
        self.desktop.xdotool("mousemove", int((x0 + x1) / 2), int((y0 + y1) / 2))
        time.sleep(0.3)
        self.desktop.xdotool("click", 3)
        self.waits_for(anchor)

    def kept(self):
        settings = json.loads((self.desktop.path / "config" / "stepladder" / "desktop.json").read_text())
        return settings, json.loads(next(iter(settings["projects"].values()))["views"]["compare"])

    def test_lines_are_hidden_and_coloured_in_the_legend(self):
        shown = lambda anchor: lambda: anchor in self.desktop.ui_test_anchors()
        self.click_until("chart.loss.legend.1", shown("compare.hidden.2"))
        self.desktop.picture("compare-hidden")
        self.click_until("chart.loss.legend.1", lambda: "compare.hidden.2" not in self.desktop.ui_test_anchors())
        self.click_until("compare.row.3", shown("compare.hidden.3"))
        self.click_until("compare.show_all", lambda: "compare.hidden.3" not in self.desktop.ui_test_anchors())
        # A double click shows one line alone.
        x0, y0, x1, y1 = self.desktop.ui_test_anchors()["compare.row.2"]
        self.desktop.xdotool("mousemove", int((x0 + x1) / 2), int((y0 + y1) / 2))
        time.sleep(0.6)
        self.desktop.xdotool("click", "--repeat", 2, "--delay", 90, 1)
        self.waits_for("compare.hidden.1", "compare.hidden.3")
        self.click_until("compare.show_all", lambda: "compare.hidden.1" not in self.desktop.ui_test_anchors())
        self.right_click("chart.loss.legend.0", "compare.colour.7")
        self.desktop.picture("compare-menu")
        self.desktop.click("compare.colour.7")
        self.waits_without("compare.colour.7")
        self.assertEqual(self.desktop.stop(), 0)
        settings, _ = self.kept()
        self.assertEqual(settings["projects"][str(self.desktop.database)]["colours"], {"1": 7})

    def test_the_arrangement_comes_back(self):
        self.desktop.click("compare.add")
        self.waits_for("compare.add.lr")
        self.desktop.click("compare.add.grad_norm")
        self.waits_for("compare.chart.4")
        # The first chart is dragged by its title to the place of the fourth.
        anchors = self.desktop.ui_test_anchors()
        x0, y0, x1, y1 = anchors["compare.chart.0"]
        u0, v0, u1, v1 = anchors["compare.chart.3"]
        self.desktop.xdotool("mousemove", int(x0 + 30), int((y0 + y1) / 2))
        time.sleep(0.3)
        self.desktop.xdotool("mousedown", 1)
        for step in range(1, 9):
            self.desktop.xdotool("mousemove", int(x0 + 30 + (u0 - x0) * step / 8), int((y0 + y1) / 2 + (v0 - y0 + 60) * step / 8))
            time.sleep(0.1)
        self.desktop.xdotool("mouseup", 1)
        before = anchors["chart.loss"]
        self.desktop.wait(lambda: self.desktop.ui_test_anchors().get("chart.loss", before)[1] > before[1] + 50, "the loss in the second row")
        self.desktop.click("compare.layout")
        self.waits_for("compare.columns.3")
        self.desktop.click("compare.columns.3")
        self.desktop.keys("Escape")
        self.waits_without("compare.columns.3")
        self.desktop.click("compare.views")
        self.waits_for("views.name")
        self.desktop.fill("views.name", "six")
        self.desktop.keys("Return")
        self.waits_for("views.open.six")
        self.desktop.picture("compare-views")
        self.desktop.keys("Escape")
        self.waits_without("views.open.six")
        # The space below a row sets the height of all.
        x0, y0, x1, y1 = self.desktop.ui_test_anchors()["compare.rows.0"]
        self.desktop.xdotool("mousemove", int(x0 + 40), int((y0 + y1) / 2))
        time.sleep(0.3)
        self.desktop.xdotool("mousedown", 1)
        for step in range(1, 7):
            self.desktop.xdotool("mousemove", int(x0 + 40), int((y0 + y1) / 2 + 10 * step))
            time.sleep(0.1)
        self.desktop.xdotool("mouseup", 1)
        self.desktop.wait(lambda: self.desktop.ui_test_anchors()["compare.rows.0"][1] > y0 + 30, "higher rows")
        places = {name: box for name, box in self.desktop.settled().items() if name.startswith("compare.chart.")}
        self.assertEqual(self.desktop.stop(), 0)
        _, view = self.kept()
        now = view["charts"]
        saved = json.loads(self.desktop.rows("SELECT value FROM settings WHERE key = 'view:six'")[0][0])["states"]["compare"]["charts"]
        names = [chart["metric"] + (".gap" if chart["gap"] else "") for chart in now["charts"]]
        self.assertEqual(names, ["loss.gap", "tokens_per_s", "dt_ms", "loss", "grad_norm"])
        self.assertEqual((now["columns"], saved["columns"], saved["row_height"]), (3, 3, 0))
        self.assertGreater(now["row_height"], 0)

        self.desktop.start()
        self.waits_for("compare.row.3", "chart.loss", "compare.chart.4")
        back = self.desktop.settled()
        for name, box in places.items():
            for was, now_is in zip(box, back[name]):
                self.assertAlmostEqual(was, now_is, delta=3, msg=name)
        self.desktop.picture("compare-restored")
        self.assertEqual(self.desktop.stop(), 0)


if __name__ == "__main__":
    if missing_tools():
        print("skipped: needs", ", ".join(missing_tools()))
        sys.exit(77)
    unittest.main(verbosity=2)
