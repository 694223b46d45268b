"""A sweep by mouse and keyboard: typed in Launch, trained, and read in Ladder; the command line gives the same figures."""
import json
import subprocess
import sys
import unittest

from desktop_driver import BUILD, Desktop, missing_tools


class Sweep(unittest.TestCase):
    def setUp(self):
        self.desktop = Desktop()
        self.addCleanup(self.desktop.close)

    def runs(self):
        return self.desktop.rows("select status from runs join ladders on ladders.id = runs.ladder_id where ladders.name = 'grid'")

    def test_sweep(self):
        desktop = self.desktop
        desktop.start()
        desktop.go("side.launch", "launch.lr")
        for name, text in (("steps", "5"), ("batch", "2, 4"), ("seq", "32"), ("lr", "1e-4, 1e-3"), ("seed", "1,2"), ("name", "grid")):
            self.desktop.enter(f"launch.{name}", text)
        desktop.click("launch.group.1")
        self.desktop.anchor("launch.layers")
        self.desktop.enter("launch.layers", "1")
        self.desktop.anchor("launch.combination.3")
        desktop.picture("sweep-launch")
        desktop.start_ladder()
        desktop.wait(lambda: self.runs() == [("finished",)] * 8, "its runs")
        desktop.go("side.ladder", "ladder.sweep.row.3")
        self.desktop.anchor("chart.sweep")
        desktop.picture("sweep-results")
        desktop.click("ladder.sweep.result")
        self.desktop.anchor("ladder.sweep.result.tokens_per_s")
        desktop.click("ladder.sweep.result.tokens_per_s")
        self.desktop.anchor("ladder.sweep.best")
        desktop.picture("sweep-throughput")
        desktop.click("ladder.sweep")
        self.desktop.anchor("ladder.rung.3")
        self.assertEqual(desktop.stop(), 0)

        told = subprocess.run([BUILD / "stepladder", "sweep", "--of", "grid", "--json"], env=desktop.environment, check=True,
                              capture_output=True, text=True)
        rungs = json.loads(told.stdout)["rungs"]
        self.assertEqual([rung["over"] for rung in rungs],
                         [{"batch": batch, "lr": lr} for batch in (2, 4) for lr in (1e-4, 1e-3)])
        self.assertEqual([rung["results"]["loss_last"]["runs"] for rung in rungs], [2] * 4)


if __name__ == "__main__":
    if missing_tools():
        print("skipped: needs", ", ".join(missing_tools()))
        sys.exit(77)
    unittest.main(verbosity=2)
