#!/usr/bin/env python3
"""`stepladder try begin --on MACHINE`: series whose runs are done elsewhere, with links that are lost and programs that are killed.

The machine is this one, through a program in ssh's place, and once more a real sshd, where machines.py can work.
"""
import json
import os
import pathlib
import shutil
import signal
import sys
import time
import unittest

from in_place_of_ssh import end_all_there, put_in_place_of_ssh
from machines import Sshd, missing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from program import PATIENCE_S  # noqa: E402
from tried_checkout import CANNOT_TELL, FAILED, GUARD, KEPT, TRAIN, WORSE, TriedCheckout  # noqa: E402


class Series:
    """A checkout here, whose series are measured at `box`. Its training counts its runs in a file, the machine's environment isn't ours."""

    def prepare(self, ssh):
        self.place.environment["STEPLADDER_SSH"] = str(ssh)
        del self.place.environment["RUNS"]
        self.place.run("machines", "add", "box")
        self.there = self.place.path / "there"
        (self.there / "data").mkdir(parents=True)
        (self.there / "data" / "tokens").write_text("of the machine\n")
        self.train = TRAIN.replace('os.environ["RUNS"]', repr(str(self.counted))) + (
            'assert open("data/tokens").read() == "of the machine\\n"\n'
            'assert "/.stepladder/tries/" in os.getcwd(), os.getcwd()\n')

    def ignore(self, ignored="data\nmade.txt\n"):
        (self.repository / "data").mkdir(exist_ok=True)
        (self.repository / "data" / "tokens").write_text("of this machine\n")
        (self.repository / ".gitignore").write_text(ignored)

    def begin_there(self, *options, text=None, command=("python3", "train.py"), ignored="data\nmade.txt\n"):
        self.ignore(ignored)
        return self.begin("--on", "box", "--there", self.there, "--metric", "val_bpb", *options, text=text or self.train, command=command)

    def counted_runs(self):
        return len(self.counted.read_text().split())

    def wait(self, what, condition):
        end = time.monotonic() + PATIENCE_S
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.02)

    def waiting_try(self, *arguments):
        """A try whose run has begun there, and waits until the file is gone."""
        wait = pathlib.Path(str(self.counted) + ".wait")
        wait.write_text("")
        before = self.counted_runs()
        process = self.place.start("try", *arguments, cwd=self.repository)
        self.wait("a run there", lambda: self.counted_runs() > before)
        return process, wait

    def check_that_each_run_is_stored_once(self):
        runs = self.place.json("runs")
        self.assertEqual(len(runs), self.counted_runs())
        self.assertEqual({run["machine"] for run in runs}, {"box"})
        left = list((self.place.path / "runs.db.machines").glob("*")) if (self.place.path / "runs.db.machines").exists() else []
        self.assertEqual(left, [], "what was copied from there is a log of the series now")
        return runs


class Near(Series, TriedCheckout):
    def setUp(self):
        super().setUp()
        self.ssh = self.place.path / "ssh"
        self.prepare(put_in_place_of_ssh(self.ssh))
        self.far = self.ssh / "home" / ".stepladder"

    def tearDown(self):
        end_all_there(self.ssh)
        super().tearDown()

    def cut(self):
        """The link is down, and what was open is cut."""
        (self.ssh / "down").touch()
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if str(self.far).encode() in words[0] and b"talk" in words:
                os.kill(int(entry.name), signal.SIGKILL)

    def mend(self):
        (self.ssh / "down").unlink()

    def test_a_series_from_its_beginning_to_its_end(self):
        text = self.train + 'open("made.txt", "w").write(str(GAIN))\n'
        hold = ("python3 -c \"import os, random; g = float(open('made.txt').read()); r = random.Random(os.environ['STEPLADDER_RUN']); "
                "print('val_bpb:', 1.2 + g + r.gauss(0, 0.0001))\"")
        began = self.begin_there("--runs", "4", "--holdout", hold, text=text, command=("python3", self.repository / "train.py"))
        self.assertEqual((began["machine"], began["runs"], began["linked"]), ("box", 4, ["data"]))
        self.assertEqual(self.json("status")["machine"], "box")
        self.assertIn("at box", self.run_here("status")[1])
        (self.repository / "notes.txt").write_text("not tracked, and sent\n")
        with (self.repository / "train.py").open("a") as file:
            file.write('assert open("notes.txt").read()\n')
        self.change("GAIN = 0.0", "GAIN = 0.01")
        self.assertEqual(self.json("-m", "a real gain")["verdict"], "kept")
        self.change("GAIN = 0.01", "GAIN = 0.002")
        (self.repository / "notes.txt").unlink()
        broken = self.json("-m", "without a file that it needs", expect=FAILED)
        self.assertIn("exit status 1", broken["reason"])
        self.assertIn("notes.txt", self.run_show_console())
        self.assertEqual(self.run_here("revert")[0], 0)
        end = self.json("end", "--runs", "2", expect=GUARD)
        self.assertEqual((end["verdict"], end["holdout"]["verdict"]), ("guard", "worse"))
        self.assertTrue(-0.012 < end["difference"] < -0.008, end)
        self.assertEqual(self.counted_runs() + 4, len(self.place.json("runs")), "and four of the held-out command")
        self.assertFalse((self.far / "tries").exists(), "copies outlive no series")
        parts = self.json("parts", "1", "--flag=--a", "--flag=--b")
        self.assertEqual((parts["runs"], parts["failed_runs"]), (8, 0), "also after the end")
        self.assertEqual({run["machine"] for run in self.place.json("runs")}, {"box"})
        self.assertFalse((self.far / "tries").exists())

    def run_show_console(self):
        return self.place.run("show", "latest", "--console")[1]

    def test_a_lost_link_loses_and_doubles_nothing(self):
        self.begin_there("--runs", "3")
        self.change("GAIN = 0.0", "GAIN = 0.01")
        process, wait = self.waiting_try("-m", "through a bad link", "--json")
        self.cut()
        wait.unlink()
        self.wait("a word", lambda: "can't be reached" in process.stderr.readline())
        self.mend()
        out, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual((process.returncode, json.loads(out)["verdict"]), (KEPT, "kept"), err)
        self.check_that_each_run_is_stored_once()

    def test_kills_lose_no_run_and_repeat_none(self):
        self.begin_there("--runs", "3")
        self.change("GAIN = 0.0", "GAIN = 0.01")
        for again in range(3):  # while it connects, sends, and waits
            wait = pathlib.Path(str(self.counted) + ".wait")
            wait.write_text("")
            process = self.place.start("try", "-m", "killed again and again", cwd=self.repository)
            if again == 2:
                self.wait("a run there", lambda: self.counted_runs() > 3)
            time.sleep(0.4 * again)
            process.kill()
            process.communicate()
        wait.unlink()
        self.wait("its end there", lambda: self.counted_runs() == 4)
        answer = self.json("-m", "killed again and again")
        self.assertEqual((answer["try"], answer["verdict"]), (1, "kept"))
        self.assertEqual(self.counted_runs(), 3 + answer["runs"])
        self.check_that_each_run_is_stored_once()

    def test_an_interrupt_ends_the_waiting_and_not_the_run(self):
        self.begin_there("--runs", "3")
        self.change("GAIN = 0.0", "GAIN = 0.01")
        process, wait = self.waiting_try("-m", "interrupted", "--json")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual((process.returncode, out), (130, ""), err)
        self.assertIn("the run goes on at box", err)
        self.assertEqual(json.loads(err.splitlines()[-1])["error"]["code"], "interrupted")
        wait.unlink()
        answer = self.json("-m", "interrupted")
        self.assertEqual((answer["verdict"], self.counted_runs()), ("kept", 3 + answer["runs"]))

    def test_the_run_of_a_given_up_try_is_ended_there(self):
        self.begin_there("--runs", "3")
        self.change("GAIN = 0.0", "GAIN = 0.01")
        process, wait = self.waiting_try("-m", "first idea")
        process.kill()
        process.communicate()
        self.change("GAIN = 0.01", "GAIN = 0.02")
        process = self.place.start("try", "-m", "second idea", "--json", cwd=self.repository)
        self.wait("its own run", lambda: self.counted_runs() > 4)
        wait.unlink()
        out, err = process.communicate(timeout=PATIENCE_S)
        self.assertIn("ending the run of try 1", err)
        self.assertEqual((process.returncode, json.loads(out)["verdict"]), (KEPT, "kept"), err)
        self.assertEqual(len(self.place.json("runs")), self.counted_runs() - 1, "that was ended counts for nothing")

    def test_a_run_that_was_asked_to_end_never_counts(self):
        asked = self.place.path / "asked"
        text = f"import signal\nsignal.signal(signal.SIGTERM, lambda *_: open({str(asked)!r}, 'w'))\n" + self.train + (
            f"if os.path.exists({str(asked)!r}): os.rename({str(asked)!r}, {str(asked)!r} + '.ended')\n")
        self.begin_there("--runs", "3", text=text)
        self.change("GAIN = 0.0", "GAIN = 0.01")
        process, wait = self.waiting_try("-m", "first idea")
        process.kill()
        process.communicate()
        self.change("GAIN = 0.01", "GAIN = 0.02")
        process = self.place.start("try", "-m", "second idea", cwd=self.repository)
        self.wait("the signal there", asked.exists)
        process.kill()
        process.communicate()
        wait.unlink()
        self.wait("its end, with 0", pathlib.Path(str(asked) + ".ended").exists)
        orders = [file.read_text() for file in self.place.path.glob("runs.db.tries/*/.state/*.json.far")]
        self.assertEqual([text.splitlines()[1:] for text in orders], [["given up"]], "the next program has to know it")
        self.assertEqual(self.json("-m", "second idea")["verdict"], "kept")
        self.assertEqual(len(self.place.json("runs")), self.counted_runs() - 1, "that was ended counts for nothing")

    def test_a_copy_that_was_changed_or_removed_there_is_made_anew(self):
        self.begin_there("--runs", "3")
        self.change("GAIN = 0.0", "GAIN = 0.01")
        for holds in (self.far / "tries").glob("*/*.holds"):
            holds.write_text("0" * 40)
        self.assertEqual(self.json("-m", "a gain")["verdict"], "kept")
        shutil.rmtree(self.far / "tries")
        self.change("GAIN = 0.01", "GAIN = 0.02")
        self.assertEqual(self.json("-m", "another")["verdict"], "kept")

    def test_data_there_outlives_tries_that_track_it(self):
        config = self.there / "data" / "config.json"
        config.write_text("of the machine")
        (self.there / "settings").write_text("of the machine")
        (self.repository / "settings").write_text("of the try")
        text = self.train.replace('assert open("data/tokens")', 'print("gain", GAIN, "config", open("data/config.json").read(), "settings", open("settings").read())\n0 and open("data/tokens")')
        self.begin_there("--runs", "3", text=text, ignored="data\nsettings\n")
        gain = 0.0
        for ignored, words in (("data\nsettings\n", "config of the machine settings of the machine"),
                               ("data/*\n!data/config.json\n", "config of the try settings of the try"),
                               ("data\n", "config of the machine settings of the try"),
                               ("data\nsettings\n", "config of the machine settings of the machine")):
            (self.repository / ".gitignore").write_text(ignored)
            for name in ("data/config.json", "settings"):
                (self.repository / name).unlink(missing_ok=True)  # else it stays in the states, ignored or not
                if f"{pathlib.Path(name).stem} of the try" in words:
                    (self.repository / name).write_text("of the try")
            self.change(f"GAIN = {gain}", f"GAIN = {gain - 0.01}")
            gain -= 0.01
            self.json("-m", f"worse, {words}", expect=WORSE)
            logs = "".join(log.read_text() for log in self.place.path.glob("runs.db.tries/*/runs/*.log"))
            self.assertIn(f"gain {gain} {words}", logs)
            self.assertEqual((config.read_text(), (self.there / "settings").read_text()), ("of the machine", "of the machine"))

    def test_each_run_gets_the_files_as_they_were_sent(self):
        tokens = self.there / "data" / "tokens"
        for folder in ("src", "other"):
            (self.repository / folder).mkdir()
            (self.repository / folder / "tokens").write_text("as sent")
        (self.there / "src").mkdir()
        (self.there / "src" / "tokens").write_text("of the machine")
        text = self.train + f"""
for folder in ("src", "other"):
    assert open(folder + "/tokens").read() == "as sent"
import shutil
open("src/tokens", "w").write("of a run")
shutil.rmtree("src"), os.symlink({str(self.there / "src")!r}, "src")
os.unlink("other/tokens"), os.symlink({str(tokens)!r}, "other/tokens")
open("left_by_a_run", "a").write("1")
print("left:", open("left_by_a_run").read())
"""
        self.begin_there("--runs", "3", text=text)
        self.assertIn("left: 111", self.run_show_console())
        self.change("GAIN = 0.0", "GAIN = 0.01")
        self.assertEqual(self.json("-m", "a gain")["verdict"], "kept")
        self.assertEqual((tokens.read_text(), (self.there / "src" / "tokens").read_text()), ("of the machine\n", "of the machine"))

    def test_a_machine_that_is_away_at_the_end_removes_the_copies_later(self):
        self.begin_there("--runs", "3")
        self.assertEqual(len(list((self.far / "tries").iterdir())), 1)
        self.cut()
        status, out, err = self.run_here("end", "--json")
        self.assertEqual((status, json.loads(out)["reason"]), (0, "nothing was kept"), err)
        self.assertIn("as soon as it is reached again", err)
        self.mend()
        self.begin_here("--on", "box", "--there", self.there, "--metric", "val_bpb", "--runs", "3")
        self.place.run("machines", "check", "box")
        self.wait("their end", lambda: len(list((self.far / "tries").iterdir())) == 1)

    def test_a_begin_that_is_stopped_while_it_ends_a_run_keeps_the_folder_that_knows_of_it(self):
        self.ignore()
        self.commit(self.train)
        wait = pathlib.Path(str(self.counted) + ".wait")
        wait.write_text("")
        begin = ["try", "begin", "--on", "box", "--there", self.there, "--metric", "val_bpb", "--runs", "3", "--", "python3", "train.py"]
        first = self.place.start(*begin, cwd=self.repository)
        self.wait("a run there", lambda: self.counted.exists() and self.counted_runs() == 1)
        first.kill()
        first.communicate()
        self.cut()
        self.change("GAIN = 0.0", "GAIN = 0.01")
        second = self.place.start(*begin, cwd=self.repository)
        self.wait("a word", lambda: "can't be reached" in second.stderr.readline())
        second.send_signal(signal.SIGINT)
        second.communicate(timeout=PATIENCE_S)
        orders = list(self.place.path.glob("runs.db.tries/*/.state/*.json.far"))
        self.assertEqual(len(orders), 1, "it still runs there, and this file is what knows of it")
        self.mend()
        third = self.place.start(*begin[:2], "--json", *begin[2:], cwd=self.repository)
        self.wait("its own run", lambda: self.counted_runs() == 2)
        wait.unlink()
        out, err = third.communicate(timeout=PATIENCE_S)
        self.assertEqual(third.returncode, 0, err)
        self.assertEqual(json.loads(out)["runs"], 3)
        self.assertEqual(self.counted_runs(), 1 + 3)

    def test_one_value_and_a_command_that_is_not_there(self):
        self.commit("print('val_bpb: 0.99')\n")
        status, _, err = self.run_here("begin", "--on", "box", "--metric", "val_bpb", "--json", "--", "no-such-program")
        self.assertEqual(status, FAILED, err)
        self.assertIn("exit status 127", err)
        self.assertIn("no-such-program", self.run_show_console())
        begun = self.begin_here("--on", "box", "--metric", "val_bpb", "--runs", "3")
        self.assertAlmostEqual(begun["mean"], 0.99)
        self.assertEqual(begun["flags"], ["equal-repeats"])

    def test_what_cannot_be_done_there_says_why(self):
        self.commit(self.train)
        self.place.run("machines", "add", "cluster", "--slurm")
        outside = self.place.path / "val.bin"
        outside.write_text("1")
        for options, code, words in ((["--on", "nowhere"], 1, "machines add nowhere"), (["--on", "cluster"], 2, "Slurm"),
                                     (["--on", "box", "--when-quiet"], 2, "this machine"), (["--there", "/x"], 2, "--on"),
                                     (["--on", "box", "--there", "x"], 2, "--there"),
                                     (["--on", "box", "--seal", outside], 2, "are sent to box")):
            status, out, err = self.run_here("begin", *options, "--metric", "val_bpb", "--", "python3", "train.py")
            self.assertEqual((status, out), (code, ""), err)
            self.assertIn(words, err)
        self.assertEqual(self.place.json("runs"), [])
        self.begin_there("--runs", "3")
        self.place.run("machines", "remove", "box")
        self.change("GAIN = 0.0", "GAIN = 0.01")
        status, _, err = self.run_here("-m", "nowhere to run")
        self.assertEqual(status, 2, err)
        self.assertIn("machines add box", err)
        self.place.run("machines", "add", "box")
        self.assertEqual(self.json("-m", "nowhere to run")["verdict"], "kept")

    def test_large_files_are_not_sent(self):
        (self.repository / "weights").write_bytes(b"1" * (101 << 20))
        self.commit(self.train)
        status, _, err = self.run_here("begin", "--on", "box", "--metric", "val_bpb", "--", "python3", "train.py")
        self.assertEqual(status, 1, err)
        self.assertIn("weights", err)
        self.assertIn("let git ignore it", err)


class Ssh(Series, TriedCheckout):
    @classmethod
    def setUpClass(cls):
        if why := missing():
            raise unittest.SkipTest(why)
        cls.box = cls.enterClassContext(Sshd())

    def setUp(self):
        super().setUp()
        self.prepare(self.box.ssh)

    def test_a_night_at_a_real_sshd(self):
        self.begin_there("--runs", "3")
        self.change("GAIN = 0.0", "GAIN = 0.01")
        process, wait = self.waiting_try("-m", "through a bad link", "--json")
        self.box.link_down()
        wait.unlink()
        self.wait("a word", lambda: "can't be reached" in process.stderr.readline())
        self.box.link_up()
        out, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual((process.returncode, json.loads(out)["verdict"]), (KEPT, "kept"), err)
        with (self.repository / "train.py").open("a") as file:
            file.write("# of no effect\n")
        self.json("-m", "a comment", expect=CANNOT_TELL)
        self.assertEqual(self.run_here("revert")[0], 0)
        self.assertEqual(self.json("end", "--runs", "2")["verdict"], "kept")
        runs = self.check_that_each_run_is_stored_once()
        self.assertEqual({run["host"] for run in runs}, {"box"})


if __name__ == "__main__":
    unittest.main(verbosity=2)
