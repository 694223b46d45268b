"""Closing the window while runs train: in the background they go on, and the next window follows, pauses and stops them."""
import pathlib
import signal
import subprocess
import sys
import time
import unittest

from desktop_driver import BUILD, Desktop, missing_tools
from drag_source import CLIENT_MESSAGE, Event, library

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "faults"))
from faults import PATIENCE_S, SMALLEST  # noqa: E402


class Close(unittest.TestCase):
    def setUp(self):
        self.desktop = Desktop()
        self.addCleanup(self.desktop.close)
        self.background = None

    def train(self):
        """Begins a long run in the window, as a repeat of one that was stopped; returns its id."""
        command = [BUILD / "stepladder", "train", *map(str, SMALLEST), "--steps", "2000000"]
        first = subprocess.Popen(command, env=self.desktop.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait_for("select count(*) > 20 from steps")
        first.send_signal(signal.SIGINT)
        first.wait(timeout=PATIENCE_S)
        self.desktop.start()
        self.press_again()
        return self.wait_for("select id from runs where status = 'running'")

    def queue_another(self):
        """The run once more, behind all others; returns its id."""
        before = self.desktop.rows("select max(id) from runs")[0][0]
        self.press_again()
        return self.wait_for("select max(id) from runs where status = 'queued' and id > ?", before)

    def press_again(self):
        """Presses the Run view's button and waits for Live."""
        self.desktop.go("side.run", "run.again")
        self.desktop.click("run.again")
        self.desktop.wait(lambda: "run.again" not in self.desktop.ui_test_anchors(), "the run to be repeated")

    def waiting(self):
        return [id for id, in self.desktop.rows("select run_id from queue join runs on id = run_id where status = 'queued' "
                                                "order by place")]

    def wait_for(self, query, *values):
        return self.desktop.wait(lambda: (self.desktop.rows(query, *values) or [(None,)])[0][0], query)

    def steps_of(self, run):
        return self.desktop.rows("select count(*) from steps where run_id = ?", run)[0][0]

    def windows(self):
        return subprocess.run(["xdotool", "search", "--name", "^Stepladder$"], env=self.desktop.environment,
                              capture_output=True, text=True).stdout.split()

    def ask_to_close(self):
        """As the window manager's button does (ICCCM 4.2.8.1)."""
        x = library()
        display = x.XOpenDisplay(self.desktop.environment["DISPLAY"].encode())
        for window in map(int, self.windows()):
            event = Event()
            event.message.type, event.message.window, event.message.format = CLIENT_MESSAGE, window, 32
            event.message.message_type = x.XInternAtom(display, b"WM_PROTOCOLS", 0)
            event.message.data[0] = x.XInternAtom(display, b"WM_DELETE_WINDOW", 0)
            x.XSendEvent(display, window, 0, 0, event)
        x.XFlush(display)
        x.XCloseDisplay(display)

    def leave_to_background(self):
        self.background, self.desktop.program = self.desktop.program, None
        self.addCleanup(lambda: (self.background.kill(), self.background.wait()))

    def test_training_goes_on_and_the_next_window_has_it(self):
        run = self.train()
        queued = [self.queue_another(), self.queue_another()]
        self.ask_to_close()
        self.desktop.wait(lambda: "closing.background" in self.desktop.ui_test_anchors(), "the question")
        self.desktop.picture("closing")
        self.desktop.click("closing.cancel")
        self.desktop.wait(lambda: "closing.background" not in self.desktop.ui_test_anchors(), "the window")
        self.ask_to_close()
        self.desktop.wait(lambda: "closing.background" in self.desktop.ui_test_anchors(), "the question again")
        self.desktop.keys("Return")
        self.leave_to_background()
        self.desktop.wait(lambda: not self.windows(), "no window")
        before = self.steps_of(run)
        self.desktop.wait(lambda: self.steps_of(run) > before, "more steps without a window")
        self.assertIsNone(self.background.poll())

        self.desktop.start()
        self.desktop.go("side.live", "live.pause")
        self.desktop.picture("followed")
        self.desktop.click("live.pause")
        self.desktop.wait(lambda: self.desktop.stands_still(lambda: self.steps_of(run)), "the pause")
        self.assertEqual(self.wait_for("select paused from queue where run_id = ? and paused", run), 1)
        self.desktop.picture("followed-paused")
        self.desktop.wait(lambda: self.waiting() == queued, "both in the order of their launch")
        self.desktop.go("side.launch", "launch.queue.1.up")
        self.desktop.click("launch.queue.1.up")
        self.desktop.wait(lambda: self.waiting() == queued[::-1], "the other order")
        self.desktop.picture("followed-queue")
        self.desktop.go("side.live", "live.pause")
        self.desktop.click("live.pause")
        before = self.steps_of(run)
        self.desktop.wait(lambda: self.steps_of(run) > before, "steps after the pause")
        self.desktop.click("live.stop_all")
        self.assertEqual(self.wait_for("select status from runs where id = ? and status <> 'running'", run), "stopped")
        self.desktop.wait(lambda: "live.stop" not in self.desktop.ui_test_anchors(), "its end in the window")
        self.assertEqual(self.background.wait(timeout=PATIENCE_S), 0)
        # Nothing trains now, so the window closes unasked.
        self.ask_to_close()
        self.assertEqual(self.desktop.program.wait(timeout=PATIENCE_S), 0)
        self.desktop.program = None

    def test_stop_after_this_step(self):
        run = self.train()
        self.ask_to_close()
        self.desktop.click("closing.stop")
        self.assertEqual(self.desktop.program.wait(timeout=PATIENCE_S), 0)
        self.desktop.program = None
        self.assertEqual(self.desktop.rows("select status from runs where id = ?", run)[0][0], "stopped")

    def test_logging_out_is_a_clean_stop(self):
        run = self.train()
        self.desktop.program.send_signal(signal.SIGHUP)
        self.assertEqual(self.desktop.program.wait(timeout=PATIENCE_S), 0)
        self.desktop.program = None
        self.assertEqual(self.desktop.rows("select status from runs where id = ?", run)[0][0], "stopped")
        last = self.desktop.rows("select max(step) from steps where run_id = ?", run)[0][0]
        folders = [path.name for path in pathlib.Path(f"{self.desktop.database}.checkpoints").rglob("step-*")]
        self.assertIn(f"step-{last:08d}", folders)


if __name__ == "__main__":
    if missing_tools() or not library():
        print("skipped: needs", ", ".join(missing_tools() or ["libX11"]))
        sys.exit(77)
    unittest.main(verbosity=2)
