"""`stepladder try` where something is in the way: repositories in the checkout, budgets, errors, kills, secrets."""
import json
import os
import pathlib
import random
import signal
import subprocess
import time
import unittest

from program import PATIENCE_S
from tried_checkout import CANNOT_TELL, FAILED, GUARD, KEPT, TRAIN, TriedCheckout


class Cases(TriedCheckout):
    def error(self, *arguments, expect):
        status, out, err = self.run_here(*arguments)
        self.assertEqual((status, out), (expect, ""), err)
        return json.loads(err.splitlines()[-1])["error"]

    def embed(self, folder):
        (self.repository / folder).mkdir(parents=True)
        self.git("init", "-q", "-b", "main", folder)
        (self.repository / folder / "code.py").write_text("x = 1\n")
        self.git("-C", folder, "add", "-A")
        self.git("-C", folder, "commit", "-q", "-m", "Vendored")

    def test_a_repository_in_the_checkout(self):
        self.embed("vendor/lib")
        began = self.begin("--metric", "val_bpb", "--runs", "3", text=TRAIN + "import sys; sys.path.append('vendor/lib'); import code\n")
        self.assertIn("vendor/lib", began["linked"])
        (self.repository / "vendor" / "lib" / "code.py").write_text("x = 2\n")
        self.assertIn("vendor/lib in the checkout has changes", self.error("-m", "its file", "--json", expect=2)["message"])
        self.git("-C", "vendor/lib", "commit", "-qam", "Another")
        self.assertIn("another commit", self.error("-m", "its commit", "--json", expect=2)["message"])
        self.git("-C", "vendor/lib", "reset", "-q", "--hard", "HEAD~")
        self.change("GAIN = 0.0", "GAIN = 0.02")
        self.assertEqual(self.json("-m", "a gain")["verdict"], "kept")
        self.git("init", "-q", "empty")
        self.assertIn("has no commit", self.error("-m", "an empty one", "--json", expect=2)["message"])

    def test_a_begin_that_fails_leaves_nothing(self):
        folder = pathlib.Path(str(self.place.database) + ".tries")
        self.commit()
        error = self.error("begin", "--metric", "val_bpb", "--seal", "nowhere", "--json", "--", "python3", "train.py", expect=2)
        self.assertIn("nowhere", error["message"])
        self.assertFalse(folder.exists())
        error = self.error("begin", "--metric", "none", "--json", "--", "python3", "train.py", expect=FAILED)
        self.assertEqual(error["code"], "command-failed")
        self.assertIn("has no none", error["message"])
        self.assertFalse(folder.exists())
        status, out, _ = self.place.run("show", error["value"], "--console")
        self.assertIn("val_bpb", out)
        self.begin_here("--metric", "val_bpb", "--runs", "3")
        self.assertEqual(len(list(folder.iterdir())), 1)

    def test_an_interrupt_is_an_error_of_one_line(self):
        self.begin("--metric", "val_bpb", "--runs", "3")
        self.change("GAIN = 0.0", "GAIN = 0.01")
        wait = pathlib.Path(str(self.counted) + ".wait")
        wait.write_text("")
        process = self.place.start("try", "-m", "interrupted", "--json", cwd=self.repository)
        deadline = time.time() + PATIENCE_S
        while len(self.counted.read_text().split()) == 3 and time.time() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual((process.returncode, out), (130, ""))
        error = json.loads(err.splitlines()[-1])["error"]
        self.assertEqual(error["code"], "interrupted")
        self.assertIn("try -m", error["hint"])
        wait.unlink()
        self.assertEqual(self.json("-m", "interrupted")["verdict"], "kept")

    def test_the_budget_binds_the_end(self):
        self.begin("--metric", "val_bpb", "--runs", "4", "--budget-runs", "13")
        self.change("GAIN = 0.0", "GAIN = 0.03")
        kept = self.json("-m", "a gain")
        left = kept["runs_left"]
        end = self.json("end", expect=KEPT if left >= 4 else CANNOT_TELL)
        self.assertEqual(end["runs"], left - left % 2)
        self.assertIn("budget", end["reason"])
        self.assertLessEqual(len(self.counted.read_text().split()), 13)
        self.assertEqual(self.json("status")["state"], "ended")

    def test_held_out_runs_at_the_end_only(self):
        text = TRAIN + 'open("made.txt", "w").write(str(GAIN))\n'
        hold = ("echo H >> $RUNS.held; python3 -c \"import os, random; "
                "g = float(open('made.txt').read()); r = random.Random(os.environ['STEPLADDER_RUN']); "
                "print('val_bpb:', 1.2 + g + r.gauss(0, 0.0001))\"")
        (self.repository / ".gitignore").parent.mkdir(exist_ok=True)
        (self.repository / ".gitignore").write_text("made.txt\n")
        self.begin("--metric", "val_bpb", "--runs", "4", "--holdout", hold, text=text)
        self.change("GAIN = 0.0", "GAIN = 0.01")
        self.json("-m", "better on what is seen")
        held = pathlib.Path(str(self.counted) + ".held")
        self.assertFalse(held.exists())
        end = self.json("end", "--runs", "3", expect=GUARD)
        self.assertEqual(len(held.read_text().split()), 6)
        self.assertEqual((end["verdict"], end["holdout"]["verdict"]), ("guard", "worse"))
        self.assertTrue(0.009 < end["holdout"]["difference"] < 0.011, end)
        self.assertLess(end["difference"], 0)

    def test_commit(self):
        self.begin("--metric", "val_bpb", "--runs", "4")
        self.git("config", "user.name", "Tester")
        self.git("config", "user.email", "tester@example.org")
        (self.repository / ".git" / "hooks" / "pre-commit").write_text("#!/bin/sh\ntouch " + str(self.place.path / "hooked") + "\n")
        (self.repository / ".git" / "hooks" / "pre-commit").chmod(0o755)
        self.change("GAIN = 0.0", "GAIN = 0.01")
        (self.repository / "new.py").write_text("x = 1\n")
        (self.repository / ".env").write_text("KEY=1\n")
        kept = self.json("-m", "a gain to commit", "--commit")
        self.assertEqual(kept["commit"], self.git("rev-parse", "HEAD"))
        self.assertEqual(self.git("log", "-1", "--format=%s %an"), "a gain to commit Tester")
        self.assertEqual(self.git("show", "--name-only", "--format=").split(), ["new.py", "train.py"])
        self.assertEqual(self.git("status", "--porcelain"), "?? .env")
        self.assertFalse((self.place.path / "hooked").exists())
        self.assertNotIn("KEY=1", self.run_here("diff", "1")[1])
        self.assertEqual(self.git("fsck", "--strict"), "")
        self.change("GAIN = 0.01", "GAIN = 0.0")
        self.run_here("-m", "a step back", "--commit", "--revert-if-dropped")
        self.assertEqual(self.git("rev-parse", "HEAD"), kept["commit"])
        self.assertIn("GAIN = 0.01", (self.repository / "train.py").read_text())

    def test_a_patch_that_was_tried_is_named(self):
        self.begin("--metric", "val_bpb", "--runs", "4")
        self.change("GAIN = 0.0", "GAIN = -0.02")
        self.assertEqual(self.run_here("-m", "worse", "--revert-if-dropped")[0], 10)
        (self.repository / "other.py").write_text("# of no consequence\n")
        self.change("GAIN = 0.0", "GAIN = 0.03")
        self.json("-m", "a gain")
        self.change("GAIN = 0.03", "GAIN = -0.02")
        self.run_here("-m", "the same value, another patch")
        _, _, err = self.run_here("-m", "once more")
        self.assertIn("this patch was tried as 3: worse", err)

    def test_kills_at_random_moments(self):
        self.begin("--metric", "val_bpb", "--runs", "4", text=TRAIN.replace("MEMORY = 100", "MEMORY = 100\ntime.sleep(0.05)"))
        self.change("GAIN = 0.0", "GAIN = 0.01")
        chance = random.Random(5)
        answer = None
        for _ in range(60):
            process = self.place.start("try", "-m", "killed at any moment", "--json", cwd=self.repository)
            try:
                out, err = process.communicate(timeout=chance.uniform(0.02, 0.5))
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                continue
            if process.returncode == KEPT:
                answer = json.loads(out)
                break
            self.assertNotEqual(process.returncode, 1, err)
        answer = answer or self.json("-m", "killed at any moment")
        self.assertEqual((answer["try"], answer["verdict"]), (1, "kept"))
        runs = self.place.json("runs")
        self.assertEqual(len(runs), len(self.counted.read_text().split()), "none is lost, and none was repeated")
        self.assertEqual(len(runs), 4 + answer["runs"])


if __name__ == "__main__":
    unittest.main()
