"""`stepladder try` where something is in the way: repositories in the checkout, budgets, errors, kills, secrets."""
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import time
import unittest

from program import PATIENCE_S, PROGRAM
from tried_checkout import CANNOT_TELL, FAILED, GUARD, INVALID, KEPT, TRAIN, TriedCheckout


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

    def test_a_repository_in_the_checkout_runs_nothing(self):
        self.embed("sub")
        mark = self.place.path / "MARK"
        self.git("-C", "sub", "config", "filter.x.clean", f"sh -c 'touch {mark}; cat'")
        (self.repository / "sub" / ".git" / "info" / "attributes").write_text("* filter=x\n")
        stamps = iter(range(1, 100))
        def touch():  # so that git would have to read the file
            os.utime(self.repository / "sub" / "code.py", (1, next(stamps)))
        touch()
        self.begin("--metric", "val_bpb", "--runs", "3")
        self.git("config", "user.name", "Tester")
        self.git("config", "user.email", "tester@example.org")
        self.assertEqual(self.git("ls-files", "--stage", "sub").split()[0], "160000")
        mark.unlink(missing_ok=True)
        touch()
        self.change("GAIN = 0.0", "GAIN = 0.02")
        self.assertEqual(self.json("-m", "a gain", "--commit")["verdict"], "kept")
        self.assertFalse(mark.exists())
        touch()
        self.change("GAIN = 0.02", "GAIN = 0.0")
        self.json("revert")
        self.assertFalse(mark.exists())
        self.assertIn("GAIN = 0.02", (self.repository / "train.py").read_text())
        self.assertEqual(self.git("ls-tree", "HEAD", "sub").split()[2], self.git("-C", "sub", "rev-parse", "HEAD"))

    def test_a_commit_while_git_packs_its_references(self):
        self.git_at_first_run = TRAIN + "import subprocess; subprocess.run(['git', '-C', os.environ['HERE'], 'pack-refs', '--all'])\n"
        self.place.environment["HERE"] = str(self.repository)
        self.begin("--metric", "val_bpb", "--runs", "3")
        self.git("config", "user.name", "Tester")
        self.git("config", "user.email", "tester@example.org")
        first = self.git("rev-parse", "HEAD")
        (self.repository / "train.py").write_text(self.git_at_first_run.replace("GAIN = 0.0", "GAIN = 0.02"))
        self.assertFalse((self.repository / ".git" / "packed-refs").exists())
        self.assertEqual(self.json("-m", "a gain", "--commit")["verdict"], "kept")
        self.assertTrue((self.repository / ".git" / "packed-refs").exists())
        self.assertEqual(self.git("rev-parse", "HEAD~"), first)

    def test_an_end_that_failed_before_another_change_was_kept(self):
        text = TRAIN + ('if runs.with_name("fail").exists() and len(runs.read_text().split()) == int(runs.with_name("fail").read_text()):\n'
                        '    sys.exit(1)\n')
        self.begin("--metric", "val_bpb", "--runs", "3", text=text)
        self.change("GAIN = 0.0", "GAIN = 0.02")
        self.assertEqual(self.json("-m", "a gain")["verdict"], "kept")
        (self.place.path / "fail").write_text(str(len(self.counted.read_text().split()) + 3))
        self.assertEqual(self.run_here("end", "--runs", "3")[0], 1)
        self.change("GAIN = 0.02", "GAIN = 0.1")
        self.assertEqual(self.json("-m", "a larger one")["verdict"], "kept")
        end = self.json("end", "--runs", "2")
        self.assertTrue(-0.105 < end["difference"] < -0.095, end)

    def test_an_end_without_budget_cannot_tell(self):
        self.begin("--metric", "val_bpb", "--runs", "3", "--budget-time", "1h")
        self.change("GAIN = 0.0", "GAIN = 0.02")
        self.assertEqual(self.json("-m", "a gain")["verdict"], "kept")
        with contextlib.closing(sqlite3.connect(self.place.database)) as database, database:
            database.execute("UPDATE try_series SET begun_at = begun_at - 7200")
        end = self.json("end", expect=CANNOT_TELL)
        self.assertEqual((end["verdict"], end["runs"]), (None, 0))

    def test_no_patch(self):
        self.begin("--metric", "val_bpb", "--runs", "3")
        self.change("GAIN = 0.0", "GAIN = 0.02")
        self.assertEqual(self.json("-m", "a gain", "--no-patch")["verdict"], "kept")
        self.assertEqual(self.json("log")[-1]["patch_bytes"], 0)
        with contextlib.closing(sqlite3.connect(self.place.database)) as database:
            self.assertEqual(database.execute("SELECT count(*) FROM patches").fetchone(), (0,))

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

    def test_an_end_asks_that_held_out_data_see_the_gain(self):
        hold = ("python3 -c \"import os, random; r = random.Random(os.environ['STEPLADDER_RUN']); "
                "print('val_bpb:', 1.2 + r.gauss(0, 0.0001))\"")
        self.begin("--metric", "val_bpb", "--runs", "4", "--holdout", hold)
        self.change("GAIN = 0.0", "GAIN = 0.01")
        self.json("-m", "better on what is seen")
        end = self.json("end", "--runs", "3", expect=CANNOT_TELL)
        self.assertIn("less than half of the gain", end["reason"])

    def test_a_guard_that_is_gone_was_not_measured(self):
        self.begin("--metric", "val_bpb", "--runs", "4", "--also", "memory_mb=2%")
        self.change("MEMORY = 100", "MEMORY = 0")
        self.change("GAIN = 0.0", "GAIN = 0.01")
        answer = self.json("-m", "no memory at all", expect=GUARD)
        self.assertIn("nobody measured it", answer["reason"])

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

    def test_a_commit_has_all_that_was_measured(self):
        self.begin("--metric", "val_bpb", "--runs", "4")
        self.git("config", "user.name", "Tester")
        self.git("config", "user.email", "tester@example.org")
        (self.repository / "new.py").write_text("x = 1\n")
        self.change("GAIN = 0.0", "GAIN = 0.02")
        self.json("-m", "a gain with a new file")
        (self.repository / ".env").write_text("KEY=1\n")
        self.change("GAIN = 0.02", "GAIN = 0.04")
        status, _, err = self.run_here("-m", "another gain", "--commit")
        self.assertEqual(status, KEPT, err)
        self.assertEqual(self.git("show", "--name-only", "--format=").split(), ["new.py", "train.py"])
        self.assertIn(".env looks like a secret, so it isn't committed", err)

    def test_large_changes_are_left_out_of_the_patch(self):
        (self.repository / "weights").write_bytes(os.urandom(5 << 20))
        self.begin("--metric", "val_bpb", "--runs", "3")
        (self.repository / "weights").write_bytes(os.urandom(5 << 20))
        self.change("GAIN = 0.0", "GAIN = 0.02")
        _, _, err = self.run_here("-m", "a gain")
        self.assertIn("weights is large", err)
        self.assertIn("+GAIN = 0.02", self.run_here("diff", "1")[1])
        run = next(run["id"] for run in self.place.json("runs") if run["name"].endswith("try 1"))
        self.assertEqual(self.place.json("show", run)["patch_left_out"], ["weights"])

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

    def test_each_bad_input_says_what_to_do_and_loses_nothing(self):
        other = self.place.path / "plain"
        other.mkdir()
        process = self.place.start("try", "begin", "--json", "--", "true", cwd=other)
        out, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual((process.returncode, out), (2, ""))
        self.assertIn("git init", json.loads(err.splitlines()[-1])["error"]["hint"])
        self.begin("--metric", "val_bpb", "--runs", "3")
        self.change("GAIN = 0.0", "GAIN = 0.01")
        self.json("-m", "kept first")
        runs, tries = len(self.place.json("runs")), self.json("log")
        text = (self.repository / "train.py").read_text()
        for name, what in (("MERGE_HEAD", "merge"), ("CHERRY_PICK_HEAD", "cherry-pick"), ("REVERT_HEAD", "revert")):
            (self.repository / ".git" / name).write_text("0" * 40)
            self.assertIn(what, self.error("-m", "under way", "--json", expect=2)["message"])
            (self.repository / ".git" / name).unlink()
        (self.repository / ".git" / "rebase-merge").mkdir()
        self.assertIn("rebase", self.error("-m", "under way", "--json", expect=2)["message"])
        (self.repository / ".git" / "rebase-merge").rmdir()
        self.assertIn("nothing has changed", self.error("-m", "nothing", "--json", expect=2)["message"])
        for arguments in (["-m", ""], [], ["show", "9"], ["diff", "9"], ["revert", "9"], ["parts", "9"]):
            self.error(*arguments, "--json", expect=2)
        for option in (["--also", "x"], ["--budget-time", "soon"], ["--budget-runs", "3"], ["--runs", "2"], ["--holdout", "true"]):
            self.error("begin", *option, "--json", "--", "true", expect=2)
        self.assertIn("under way", self.error("begin", "--json", "--", "true", expect=2)["message"])
        self.assertEqual(len(self.place.json("runs")), runs)
        self.assertEqual(self.json("log"), tries)
        self.assertEqual((self.repository / "train.py").read_text(), text)

    def test_metrics_that_never_come(self):
        self.begin("--metric", "val_bpb", "--runs", "3")
        for line, why in (("print('nothing')", "has no val_bpb"), ("print('val_bpb: nan')", "no finite val_bpb"),
                          ("raise SystemExit(9)", "exit status 9"), ("os.kill(os.getpid(), 9)", "exit status 137")):
            (self.repository / "train.py").write_text("import os\n" + line + "\n")
            answer = self.json("-m", why, expect=FAILED)
            self.assertIn(why, answer["reason"])
            self.assertEqual((answer["verdict"], answer["runs"]), ("failed", 1))
        self.assertEqual(self.run_here("revert")[0], 0)
        self.change("GAIN = 0.0", "GAIN = 0.02")
        self.assertEqual(self.json("-m", "a gain all the same")["verdict"], "kept")

    def test_a_script_that_edits_tries_and_obeys(self):
        self.begin("--metric", "val_bpb")
        self.git("config", "user.name", "Tester")
        self.git("config", "user.email", "tester@example.org")
        script = """
            kept=0; dropped=0; failed=0
            while IFS='|' read -r message edit; do
                sed -i "$edit" train.py
                "$0" try -m "$message" --commit --revert-if-dropped --json >answer.json 2>/dev/null; status=$?
                case $status in
                    0) kept=$((kept + 1)) ;;
                    10|11|13) dropped=$((dropped + 1)) ;;
                    14) failed=$((failed + 1)) ;;
                    *) echo "cannot obey $status"; exit 1 ;;
                esac
            done
            echo "$kept $dropped $failed"
        """
        edits = ["a comment|$ a # nothing", "a real gain|s/^GAIN = .*/GAIN = 0.01/", "worse|s/^GAIN = .*/GAIN = -0.01/",
                 "a syntax error|$ a )", "renamed|s/noise/scatter/", "another gain|s/^GAIN = .*/GAIN = 0.02/",
                 "more memory|s/^MEMORY = .*/MEMORY = 120/"]
        (self.repository / ".git" / "info" / "exclude").write_text("answer.json\n")
        done = subprocess.run(["sh", "-c", script, str(PROGRAM)], cwd=self.repository, env=self.place.environment, text=True,
                              input="\n".join(edits) + "\n", capture_output=True, timeout=PATIENCE_S)
        self.assertEqual(done.stdout, "2 4 1\n", done.stderr)
        self.assertEqual(self.git("log", "--format=%s").splitlines(), ["another gain", "a real gain", "First"])
        self.assertEqual(self.git("status", "--porcelain"), "")
        self.assertIn("GAIN = 0.02", (self.repository / "train.py").read_text())
        self.assertEqual([each["message"] for each in self.json("log")], [edit.split("|")[0] for edit in edits])

    def test_a_begin_that_failed_hides_no_series(self):
        self.begin("--metric", "val_bpb", "--runs", "3")
        self.change("GAIN = 0.0", "GAIN = 0.02")
        self.json("-m", "a gain")
        self.json("end", "--runs", "2")
        self.error("begin", "--metric", "none", "--json", "--", "python3", "train.py", expect=FAILED)
        for arguments in (["status"], ["log"], ["show", "1"], ["diff", "1"]):
            status, out, err = self.run_here(*arguments, "--json")
            self.assertEqual(status, 0, err)
            self.assertIn("a later `try begin` failed", err)
        self.assertEqual((self.json("status")["state"], self.json("status")["kept"]), ("ended", 1))
        self.begin_here("--metric", "val_bpb", "--runs", "3")
        status, out, err = self.run_here("status", "--json")
        self.assertEqual((json.loads(out)["tries"], err), (0, ""))

    def waiting_try(self, *arguments):
        wait = pathlib.Path(str(self.counted) + ".wait")
        wait.write_text("")
        runs = len(self.counted.read_text().split()) if self.counted.exists() else 0
        process = self.place.start("try", *arguments, cwd=self.repository)
        deadline = time.time() + PATIENCE_S
        while (len(self.counted.read_text().split()) if self.counted.exists() else 0) == runs and time.time() < deadline:
            time.sleep(0.01)
        return process, wait

    def test_a_killed_try_is_interrupted(self):
        self.begin("--metric", "val_bpb", "--runs", "3")
        self.change("GAIN = 0.0", "GAIN = 0.02")
        process, wait = self.waiting_try("-m", "killed")
        self.assertEqual(self.json("status")["state"], "running")
        self.assertIn("running", self.run_here("log")[1])
        process.kill()
        process.communicate()
        status = self.json("status")
        self.assertEqual((status["state"], status["verdicts"]), ("interrupted", {"interrupted": 1}))
        self.assertIn("interrupted", self.run_here("log")[1])
        self.assertIn("interrupted", self.json("show", "1")["reason"])
        wait.unlink()
        self.assertEqual(self.json("-m", "killed")["verdict"], "kept")
        self.assertEqual(len(self.place.json("runs")), len(self.counted.read_text().split()))

    def test_an_interrupted_begin_of_another_state_counts_for_nothing(self):
        self.commit()
        process, wait = self.waiting_try("begin", "--metric", "val_bpb", "--runs", "3", "--", "python3", "train.py")
        process.kill()
        process.communicate()
        self.assertEqual(self.json("status")["state"], "interrupted")
        self.change("MEMORY = 100", "MEMORY = 90")
        self.assertIn("has changed", self.error("begin", "--json", expect=2)["message"])
        wait.unlink()
        status, out, err = self.run_here("begin", "--metric", "val_bpb", "--runs", "3", "--json", "--", "python3", "train.py")
        self.assertEqual(status, 0, err)
        self.assertIn("was interrupted, and the checkout has changed since", err)
        self.assertEqual(json.loads(out)["runs"], 3)
        self.assertEqual(self.json("status")["runs"], 3)
        self.assertEqual(len(list(pathlib.Path(str(self.place.database) + ".tries").iterdir())), 1)

    def test_equal_differences_are_no_evidence_of_low_noise(self):
        seeded = TRAIN.replace("os.environ['STEPLADDER_RUN']", "os.environ['STEPLADDER_SEED']").replace(".6f", ".17g")
        began = self.begin("--metric", "val_bpb", text=seeded)
        self.change("GAIN = 0.0", "GAIN = 0.0001")  # a fifth of one run's noise
        self.json("-m", "less than the noise", expect=CANNOT_TELL)
        self.change("GAIN = 0.0001", "GAIN = 0.02")
        self.assertEqual(self.json("-m", "a gain")["verdict"], "kept")
        end = self.json("end", "--runs", "3")
        self.assertGreater(end["ci95"][1] - end["ci95"][0], began["noise_sd"])
        self.assertIn("all differences are equal", end["reason"])

    def test_the_runs_of_an_end_that_was_broken_off_are_of_then(self):
        text = TRAIN + 'print("extra:", runs.with_name("extra").read_text() if runs.with_name("extra").exists() else 0)\n'
        self.begin("--metric", "val_bpb", "--runs", "3", text=text)
        self.change("GAIN = 0.0", "GAIN = 0.02")
        self.assertEqual(self.json("-m", "a gain")["verdict"], "kept")
        process, wait = self.waiting_try("end", "--runs", "3")
        wait.unlink()
        while len(self.counted.read_text().split()) % 2 == 0 and process.poll() is None:
            time.sleep(0.01)
        process.kill()
        process.communicate()
        self.change("GAIN = 0.02", "GAIN = 0.1")
        self.assertEqual(self.json("-m", "a larger one")["verdict"], "kept")
        self.json("end", "--runs", "2")
        with contextlib.closing(sqlite3.connect(self.place.database)) as database:
            last = database.execute("SELECT max(place) FROM try_runs WHERE during > 0").fetchone()[0]
            after = database.execute("SELECT state, count(*) FROM try_runs WHERE during = -1 AND place > ? GROUP BY state", (last,)).fetchall()
        self.assertEqual(after, [(0, 2), (2, 2)], "each turn's two runs are of one time")

    def test_a_project_in_the_checkout(self):
        self.place.environment["STEPLADDER_DB"] = str(self.repository / "runs.db")
        self.commit()
        run = lambda *words: subprocess.run([PROGRAM, *words], cwd=self.repository, env=self.place.environment, text=True,
                                            capture_output=True, timeout=PATIENCE_S)
        began = run("try", "begin", "--metric", "val_bpb", "--runs", "3", "--json", "--", "python3", "train.py")
        self.assertEqual(began.returncode, 0, began.stderr)
        self.assertIn("runs.db and its files are in the checkout", began.stderr)
        self.assertEqual(json.loads(began.stdout)["linked"], [])
        nothing = run("try", "-m", "nothing", "--json")
        self.assertEqual(nothing.returncode, 2, "the project's own growth is no change")
        self.change("GAIN = 0.0", "GAIN = 0.02")
        kept = run("try", "-m", "a gain", "--json")
        self.assertEqual(kept.returncode, KEPT, kept.stderr)
        self.assertNotIn("runs.db", run("try", "diff", "1").stdout)
        shown = json.loads(run("show", "latest", "--json").stdout)
        self.assertEqual(shown["patch_left_out"], [])
        self.assertEqual(run("try", "revert").returncode, 0)
        trained = run("train", "--model", "nano", "--layers", "1", "--d-model", "16", "--heads", "1", "--steps", "2", "--json")
        self.assertEqual(trained.returncode, 0, trained.stderr)
        self.assertEqual(json.loads(run("show", "latest", "--json").stdout)["patch_left_out"], [])

    def begin_beside_its_project(self, file, ignored=""):
        shutil.rmtree(self.repository)
        self.repository.mkdir()
        if ignored:
            (self.repository / ".gitignore").write_text(ignored)
        (self.repository / file).parent.mkdir(exist_ok=True)
        self.place.environment["STEPLADDER_DB"] = str(self.repository / file)
        return self.begin("--metric", "val_bpb", "--runs", "3")

    def test_wherever_the_project_is_in_the_checkout(self):
        for file, ignored in (("runs.db", ""), ("runs.db", "*.db*\n"), ("runs/q.db", "runs/\n"), ("runs/q.db", "/runs/*\n!*.db\n"),
                              ("[a] *?.db", "*.db*\n"), ("[a] *?.db", ""), ("train", "")):
            with self.subTest(file=file, ignored=ignored):
                self.assertFalse(self.begin_beside_its_project(file, ignored)["dirty"])
                self.assertIn("nothing has changed", self.error("-m", "nothing", "--json", expect=2)["message"])
                self.change("GAIN = 0.0", "GAIN = 0.02")
                self.assertEqual(self.json("-m", "a gain")["verdict"], "kept")
                self.change("GAIN = 0.02", "GAIN = 0.0")
                self.assertEqual(self.run_here("revert")[0], 0)
                self.assertIn("GAIN = 0.02", (self.repository / "train.py").read_text())
                self.assertEqual(self.json("status")["kept"], 1)

    def test_a_submodule_in_an_ignored_folder(self):
        self.embed("vendor/lib")
        (self.repository / ".gitignore").write_text("vendor/\n")
        self.git("init", "-q", "-b", "main")
        self.git("add", "-f", "vendor/lib")
        self.assertIn("vendor/lib", self.begin("--metric", "val_bpb", "--runs", "3")["linked"])
        self.change("GAIN = 0.0", "GAIN = 0.02")
        self.assertEqual(self.json("-m", "a gain")["verdict"], "kept")

    def test_a_revert_leaves_all_of_the_project_alone(self):
        files = {"runs.db.checkpoints/run-1/weights": b"1", "runs.db.before-24": b"2", "runs.db.before-24-2": b"3", "runs.db-old": b"4"}
        self.begin_beside_its_project("runs.db")
        for name, content in files.items():
            (self.repository / name).parent.mkdir(exist_ok=True, parents=True)
            (self.repository / name).write_bytes(content)
        self.assertIn("nothing has changed", self.error("-m", "nothing", "--json", expect=2)["message"])
        (self.repository / "new.py").write_text("x = 1\n")
        self.assertEqual(self.run_here("revert")[0], 0)
        self.assertFalse((self.repository / "new.py").exists())
        self.assertEqual({name: (self.repository / name).read_bytes() for name in files}, files)
        self.run_here("end")
        self.git("add", "runs.db", "runs.db.before-24")
        self.git("commit", "-q", "-m", "With the project")
        self.assertFalse(self.begin_here("--metric", "val_bpb", "--runs", "3")["dirty"])

    def test_a_state_of_an_older_version_never_replaces_the_project(self):
        self.begin_beside_its_project("runs.db")
        store = next((self.repository / "runs.db.tries").iterdir()) / "store" / ".git"
        git = lambda *words: subprocess.run(["git", f"--git-dir={store}", *words], env=dict(self.place.environment, GIT_INDEX_FILE=str(self.place.path / "index")),
                                            check=True, text=True, input="old", capture_output=True).stdout.strip()
        with contextlib.closing(sqlite3.connect(self.repository / "runs.db")) as database, database:
            git("read-tree", database.execute("SELECT tree FROM tries").fetchone()[0])
            git("update-index", "--add", "--cacheinfo", f"100644,{git('hash-object', '-w', '--stdin')},runs.db.spill")
            database.execute("UPDATE tries SET tree = ?", (git("write-tree"),))
        (self.repository / "new.py").write_text("x = 1\n")
        self.assertIn("older version", self.error("revert", "--json", expect=2)["message"])
        self.assertTrue((self.repository / "new.py").exists())
        self.assertFalse((self.repository / "runs.db.spill").exists())

    def test_an_interrupted_begin_with_seals_goes_on(self):
        (self.repository / "data").mkdir()
        (self.place.path / "x").mkdir()
        for file in (self.repository / "data" / "a.txt", self.place.path / "x" / "val.bin", self.repository / "eval.py"):
            file.write_text("1")
        (self.repository / "link").symlink_to("eval.py")
        self.commit()
        begin = ["begin", "--metric", "val_bpb", "--runs", "3", "--seal", "data/", "--seal", "../x/val.bin", "--seal",
                 self.repository / "eval.py", "--seal", "./link", "--json", "--", "python3", "train.py"]
        process, wait = self.waiting_try(*begin)
        process.kill()
        process.communicate()
        wait.unlink()
        status, out, err = self.run_here(*begin)
        self.assertEqual(status, 0, err)
        self.assertNotIn("don't count", err)
        self.assertEqual(len(self.counted.read_text().split()), 3)
        (self.place.path / "x" / "val.bin").write_text("2")
        self.assertIn("val.bin is sealed", self.json("-m", "x", expect=INVALID)["reason"])

    def test_a_left_run_keeps_its_copy(self):
        whole = "import sys\nbefore = open(sys.argv[0]).read()\n" + TRAIN + "assert open(sys.argv[0]).read() == before\n"
        self.begin("--metric", "val_bpb", "--runs", "3", text=whole)
        self.change("GAIN = 0.0", "GAIN = 0.02")
        (self.repository / "train.py").write_text((self.repository / "train.py").read_text() + "# the end\n")
        self.assertEqual(self.json("-m", "two parts")["verdict"], "kept")
        for first, second in ((["parts"], ["-m", "another"]), (["end", "--runs", "2"], ["parts", "1"])):
            process, wait = self.waiting_try(*first)
            process.kill()
            process.communicate()
            runs = len(self.counted.read_text().split())
            self.change("GAIN = 0.02" if second[0] == "-m" else "GAIN = 0.03", "GAIN = 0.03")
            process = self.place.start("try", *second, "--json", cwd=self.repository)
            line = process.stderr.readline()
            while line and "waiting for the run" not in line:
                line = process.stderr.readline()
            self.assertIn("waiting for the run", line)
            self.assertEqual(len(self.counted.read_text().split()), runs)
            wait.unlink()
            out, err = process.communicate(timeout=PATIENCE_S)
            self.assertEqual(process.returncode, 0, err)
        self.assertEqual(json.loads(out)["failed_runs"], 0)
        self.assertEqual(self.json("end", "--runs", "2")["verdict"], "kept")
        with contextlib.closing(sqlite3.connect(self.place.database)) as database:
            self.assertEqual(database.execute("SELECT count(*) FROM try_runs WHERE exit_status != 0").fetchone(), (0,))

    def test_an_interrupt_ends_the_waiting_for_a_left_run(self):
        self.begin("--metric", "val_bpb", "--runs", "3")
        self.change("GAIN = 0.0", "GAIN = 0.02")
        (self.repository / "train.py").write_text((self.repository / "train.py").read_text() + "# the end\n")
        self.assertEqual(self.json("-m", "two parts")["verdict"], "kept")
        process, wait = self.waiting_try("parts")
        process.kill()
        process.communicate()
        runs = len(self.counted.read_text().split())
        self.change("GAIN = 0.02", "GAIN = 0.03")
        process = self.place.start("try", "-m", "another", "--json", cwd=self.repository)
        line = process.stderr.readline()
        while line and "waiting for the run" not in line:
            line = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual((process.returncode, out), (130, ""), err)
        self.assertRegex(err, r"the run parts-1-\S+-01 of a program that was killed goes on; its output is in .*/runs/parts-1-\S+-01.log")
        self.assertEqual(len(self.counted.read_text().split()), runs)
        wait.unlink()
        self.assertEqual(self.json("-m", "another")["verdict"], "kept")

    def test_an_end_that_was_killed_repeats_no_held_out_run(self):
        hold = ('echo H >> $RUNS.held; n=$(grep -c H $RUNS.held); while [ -e $RUNS.held.wait.$n ]; do sleep 0.01; done; '
                'echo "val_bpb: 1.$STEPLADDER_RUN"')
        self.begin("--metric", "val_bpb", "--runs", "3", "--holdout", hold)
        self.change("GAIN = 0.0", "GAIN = 0.02")
        self.assertEqual(self.json("-m", "a gain")["verdict"], "kept")
        held, before = pathlib.Path(str(self.counted) + ".held"), len(self.counted.read_text().split())
        for kill in range(1, 5):  # each held-out run is under way when the program is killed, and over when the next one begins
            wait = pathlib.Path(f"{held}.wait.{kill}")
            wait.write_text("")
            process = self.place.start("try", "end", "--runs", "2", cwd=self.repository)
            deadline = time.time() + PATIENCE_S
            while (len(held.read_text().split()) if held.exists() else 0) < kill and time.time() < deadline:
                time.sleep(0.01)
            process.kill()
            process.communicate()
            wait.unlink()
        self.run_here("end", "--runs", "2")
        self.assertEqual((len(held.read_text().split()), len(self.counted.read_text().split()) - before), (4, 4))
        self.assertEqual(self.json("status")["state"], "ended")

    def test_a_commit_leaves_the_project_as_it_was_committed(self):
        self.place.environment["STEPLADDER_DB"] = str(self.repository / "runs.db")
        self.commit()
        (self.repository / "runs.db").write_bytes(b"")
        self.git("add", "-A")
        self.git("config", "user.name", "Tester")
        self.git("config", "user.email", "tester@example.org")
        self.git("commit", "-q", "-m", "With the project")
        self.begin_here("--metric", "val_bpb", "--runs", "3")
        self.change("GAIN = 0.0", "GAIN = 0.02")
        kept = self.json("-m", "a gain", "--commit")
        self.assertEqual(kept["commit"], self.git("rev-parse", "HEAD"))
        self.assertEqual(self.git("show", "--name-only", "--format=").split(), ["train.py"])
        self.assertIn("M runs.db", self.git("status", "--porcelain"), "it has changed, and nobody committed it")

    def test_a_linked_worktree_ignores_what_its_repository_does(self):
        self.commit()
        (self.repository / ".git" / "info" / "exclude").write_text("scratch.txt\n")
        linked = self.place.path / "linked"
        self.git("worktree", "add", "-q", str(linked))
        self.repository = linked
        (linked / "scratch.txt").write_text("1\n")
        self.begin_here("--metric", "val_bpb", "--runs", "3")
        (linked / "scratch.txt").write_text("2\n")
        self.assertIn("nothing has changed", self.error("-m", "nothing", "--json", expect=2)["message"])

    def test_nothing_is_taken_apart_while_a_try_is_open(self):
        self.begin("--metric", "val_bpb", "--runs", "3")
        self.change("GAIN = 0.0", "GAIN = 0.02")
        (self.repository / "train.py").write_text((self.repository / "train.py").read_text() + "# the end\n")
        self.assertEqual(self.json("-m", "two parts")["verdict"], "kept")
        self.change("GAIN = 0.02", "GAIN = 0.04")
        process, wait = self.waiting_try("-m", "left open")
        process.kill()
        process.communicate()
        runs = len(self.counted.read_text().split())
        self.assertIn("try 2 hasn't been measured to the end", self.error("parts", "--json", expect=2)["message"])
        self.assertEqual(len(self.counted.read_text().split()), runs)
        wait.unlink()
        self.assertEqual(self.json("-m", "left open")["verdict"], "kept")

    def test_an_abandoned_try_answers_nothing_later(self):
        self.begin("--metric", "val_bpb", "--runs", "3")
        self.change("GAIN = 0.0", "GAIN = 0.02")
        process, wait = self.waiting_try("-m", "X")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
        wait.unlink()
        self.change("GAIN = 0.02", "GAIN = 0.0")
        self.assertIn("nothing has changed", self.error("-m", "X", "--json", expect=2)["message"])
        self.change("GAIN = 0.0", "GAIN = 0.02")
        self.assertEqual(self.json("-m", "X")["verdict"], "kept")

    def test_the_ledger_names_commits_that_have_the_state(self):
        self.begin("--metric", "val_bpb", "--runs", "3")
        self.git("config", "user.name", "Tester")
        self.git("config", "user.email", "tester@example.org")
        first = self.git("rev-parse", "HEAD")
        self.change("GAIN = 0.0", "GAIN = -0.02")
        self.assertTrue(self.json("-m", "not committed", expect=10)["dirty"])
        self.change("GAIN = -0.02", "GAIN = 0.02")
        self.assertFalse(self.json("-m", "committed by try", "--commit")["dirty"])
        second = self.git("rev-parse", "HEAD")
        self.change("GAIN = 0.02", "GAIN = 0.01")
        self.git("commit", "-qam", "By hand")
        third = self.git("rev-parse", "HEAD")
        self.json("-m", "committed before", expect=10)
        rows = [line.split("\t")[0] for line in self.run_here("log", "--tsv")[1].splitlines()[1:]]
        self.assertEqual(rows, [first[:7], "-", second[:7], third[:7]])
        self.assertEqual(len(self.run_here("log", "--tsv", "--limit", "2")[1].splitlines()), 3)

    def test_one_value_at_first_and_texts(self):
        self.begin("--metric", "val_bpb", "--runs", "3")
        self.change("GAIN = 0.0", "GAIN = 0.02")
        self.json("-m", "a gain")
        status = self.json("status")
        with contextlib.closing(sqlite3.connect(self.place.database)) as database:
            values = [row[0] for row in database.execute("SELECT value FROM try_runs WHERE state = 0")]
        self.assertGreater(len(values), 3)
        self.assertAlmostEqual(status["mean"], sum(values) / len(values), delta=1e-12)
        first = next(line for line in self.run_here("log")[1].splitlines() if " first " in line)
        self.assertIn(f"{status['mean']:.4f}"[:6], first)
        text = self.run_here("show", "1")[1]
        self.assertTrue(text.startswith("Try 1: kept, a gain\n"), text)
        self.assertIn("reason   better, with an e-value", text)
        self.assertIn("with changes that aren't in it", text)
        self.assertEqual(json.loads(self.run_here("show", "1", "--json")[1])["try"], 1)
        self.assertIn("began with", self.run_here("show", "0")[1])
        self.change("GAIN = 0.02", "GAIN = 0.0")
        self.json("-m", "back", expect=10)
        self.assertEqual([each["try"] for each in self.json("log", "--limit", "1")], [2])
        self.assertEqual([each["try"] for each in self.json("log", "--limit", "0")], [1, 2])

    def test_an_answer_that_was_never_given_is_given_again(self):
        self.begin("--metric", "val_bpb", "--runs", "3")
        folder = next(pathlib.Path(str(self.place.database) + ".tries").iterdir())
        unreported = folder / ".state" / "unreported"
        self.assertFalse(unreported.exists())
        for edit, options, status in (("0.02", [], KEPT), ("-0.02", ["--revert-if-dropped"], 10)):
            self.change("GAIN = " + ("0.0\n" if edit == "0.02" else "0.02\n"), f"GAIN = {edit}\n")
            answer = self.json("-m", edit, *options, expect=status)
            runs = len(self.counted.read_text().split())
            unreported.write_text(str(answer["try"]))  # as if it was killed before it printed
            self.assertEqual(self.json("-m", edit, *options, expect=status), answer)
            self.assertEqual(len(self.counted.read_text().split()), runs)
            self.assertFalse(unreported.exists())
        self.assertIn("nothing has changed", self.error("-m", "-0.02", "--json", expect=2)["message"])

    def test_a_begin_that_was_killed_leaves_no_folder(self):
        tries = pathlib.Path(str(self.place.database) + ".tries")
        (tries / ("0" * 32) / ".state").mkdir(parents=True)
        (tries / ("0" * 32) / "runs").mkdir()
        (tries / ("0" * 32) / ".state" / "held").write_text("")
        (tries / "mine").mkdir()
        self.begin("--metric", "val_bpb", "--runs", "3")
        left = {path.name for path in tries.iterdir()}
        self.assertIn("mine", left)
        self.assertEqual(len(left), 2, left)

    @unittest.skipUnless(os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0,
                         "needs a mount namespace")
    def test_a_full_disk(self):
        self.begin("--metric", "val_bpb", "--runs", "3")
        self.change("GAIN = 0.0", "GAIN = 0.02")
        # The project and all that try writes move to a small disk; it is filled, and emptied again.
        script = f"""
            set -e
            cp -a {self.place.path} {self.place.path}.copy
            mount -t tmpfs -o size=24m none {self.place.path}
            cp -a {self.place.path}.copy/. {self.place.path}/
            cd {self.repository}
            dd if=/dev/zero of={self.place.path}/filler bs=4k 2>/dev/null || true
            set +e
            "$0" try -m "on a full disk" --json; echo "status $?"
            rm {self.place.path}/filler
            "$0" try -m "on a full disk" --json; echo "status $?"
            "$0" runs --json | grep -c '"id"'
            wc -l < {self.counted}
        """
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, str(PROGRAM)], env=self.place.environment, text=True,
                              capture_output=True, timeout=PATIENCE_S)
        subprocess.run(["rm", "-rf", f"{self.place.path}.copy"], check=True)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0], "status 1", done.stdout + done.stderr)
        error = json.loads(next(line for line in done.stderr.splitlines() if line.startswith('{"error"')))["error"]
        self.assertRegex(error["message"], "full|no space")
        self.assertEqual((json.loads(lines[1])["verdict"], lines[2]), ("kept", "status 0"), done.stdout + done.stderr)
        self.assertEqual(lines[3], lines[4], "no run was lost")


if __name__ == "__main__":
    unittest.main()
