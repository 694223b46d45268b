"""`stepladder try` on git checkouts with made-up trainings: verdicts, exit statuses, kills, seals, patches."""
import json
import pathlib
import shutil
import time
import unittest

from program import PATIENCE_S
from tried_checkout import CANNOT_TELL, FAILED, GUARD, INVALID, KEPT, TRAIN, WORSE, TriedCheckout

# Prints steps whose times and losses it makes up.
STEPS = """
import os, random
MS = 100.0
LOSS = 0.0
noise = random.Random(f"{os.environ['STEPLADDER_RUN']} 3")
ms = MS * noise.gauss(1, 0.005)
for step in range(1, 41):
    print(f"step:{step}/40 train_loss:{5 - step / 20 + LOSS:.4f} train_time:{step * ms:.3f}ms step_avg:{ms:.3f}ms", flush=True)
"""


class Tries(TriedCheckout):
    def test_the_loop(self):
        began = self.begin("--metric", "val_bpb")
        self.assertEqual((began["metric"], began["better"], began["runs"]), ("val_bpb", "lower", 6))
        self.assertTrue(0.0001 < began["noise_sd"] < 0.002, began)
        before = (self.git("status", "--porcelain"), self.git("worktree", "list"))
        self.assertEqual(before[0], "")
        (self.repository / "notes.txt").write_text("not tracked\n")
        status, out, err = self.run_here("-m", "only a note", "--json")
        self.assertNotEqual(status, KEPT)
        self.assertIn("notes.txt isn't tracked", err)
        self.assertEqual(out.count("\n"), 1, "one line")
        (self.repository / "notes.txt").unlink()
        self.change("GAIN = 0.0", "GAIN = 0.01")
        runs = self.counted.read_text()
        dry = self.json("--dry-run")
        self.assertEqual([dry[key] for key in ("dry_run", "try", "against", "changed", "tried_as", "refused")], [True, 2, 0, ["train.py"], None, None])
        self.assertEqual((self.counted.read_text(), len(self.json("log"))), (runs, 1), "nothing ran, and nothing is kept")
        self.assertIn("Try 2 would judge 1 changed file against the first state", self.run_here("--dry-run")[1])
        kept = self.json("-m", "a real gain")
        self.assertEqual((kept["try"], kept["verdict"], kept["metric"]), (2, "kept", "val_bpb"))
        self.assertTrue(kept["ci95"][0] <= kept["difference"] <= kept["ci95"][1] < 0, kept)
        self.assertGreater(kept["e_value"], 100)
        self.assertEqual(kept["commit"], self.git("rev-parse", "HEAD"))
        self.change("GAIN = 0.01", "GAIN = 0.002")
        self.assertEqual(self.json("-m", "a step back", expect=WORSE)["verdict"], "worse")
        self.assertEqual(self.json("--dry-run")["tried_as"], 3)
        self.assertEqual(self.run_here("revert")[0], 0)
        self.assertIn("GAIN = 0.01", (self.repository / "train.py").read_text())
        self.assertEqual(self.git("status", "--porcelain"), "M train.py", "nothing but the files has changed")
        log = self.json("log")
        self.assertEqual([(each["try"], each["verdict"], each["message"], each["parent"]) for each in log][1:],
                         [(2, "kept", "a real gain", 0), (3, "worse", "a step back", 2)])
        self.assertGreater(log[1]["patch_bytes"], 50)
        patch = self.run_here("diff", "2")[1]
        self.assertIn("+GAIN = 0.01", patch)
        self.assertIn("+not tracked", self.run_here("diff", "1")[1])
        tsv = self.run_here("log", "--tsv")[1].splitlines()
        self.assertEqual(tsv[0].split("\t")[:2], ["commit", "val_bpb"])
        self.assertEqual([line.split("\t")[3] for line in tsv[1:]], ["keep", "discard", "keep", "discard"])
        (self.place.path / "results.tsv").write_text("\n".join(tsv) + "\n")
        replay = self.place.json("try", "replay", self.place.path / "results.tsv", "--noise", "0.0005")
        self.assertEqual((replay["metric"], replay["tries"]), ("val_bpb", 4))
        self.assertEqual([(keep["description"], keep["supported"]) for keep in replay["keeps"]], [("a real gain", True)])
        self.assertAlmostEqual(replay["keeps"][0]["gain"], 0.01, delta=0.002)
        runs = self.place.json("runs")
        self.assertEqual(len(runs), len(self.counted.read_text().split()), "each run is in the project, once")
        self.assertEqual(len({run["ladder"] for run in runs}), 1)
        self.assertEqual(self.run_here("show", "2")[0], 0)
        end = self.json("end")
        self.assertTrue(-0.012 < end["difference"] < -0.008, end)
        self.assertEqual(self.json("status")["state"], "ended")
        self.assertEqual(self.run_here("-m", "too late")[0], 2)

    def test_reverting_keeps_what_was_never_tried(self):
        self.begin("--metric", "val_bpb")
        self.change("GAIN = 0.0", "GAIN = 0.0123")
        (self.repository / "new.py").write_text("x = 1\n")
        status, out, err = self.run_here("revert", "--json")
        saved = pathlib.Path(json.loads(out)["saved"])
        self.assertIn("0.0123", saved.read_text())
        self.assertIn("x = 1", saved.read_text())
        self.assertFalse((self.repository / "new.py").exists())
        self.assertEqual(self.git("status", "--porcelain"), "")
        self.git("apply", str(saved))
        self.assertIn("0.0123", (self.repository / "train.py").read_text())

    def test_throughput_is_guarded_by_the_loss(self):
        began = self.begin(text=STEPS)
        self.assertEqual(began["metric"], "dt_ms")
        self.change("MS = 100.0", "MS = 80.0")
        kept = self.json("-m", "faster")
        self.assertTrue(1.2 < kept["factor"] < 1.3 and kept["difference"] < -15, kept)
        self.change("LOSS = 0.0", "LOSS = 0.7")
        self.change("MS = 80.0", "MS = 60.0")
        self.assertIn("loss", self.json("-m", "faster still, another loss", expect=GUARD)["reason"])
        self.change("MS = 60.0", "MS = 120.0")
        self.json("-m", "slower", expect=WORSE)
        with (self.repository / "train.py").open("a") as file:
            file.write("raise SystemExit(3)\n")
        self.assertIn("exit status 3", self.json("-m", "broken", expect=FAILED)["reason"])

    def test_the_end_asks_what_each_try_was_asked(self):
        worse_at_the_end = 'LOSS += 0.7 * (MS < 100 and int(os.environ["STEPLADDER_SEED"]) > 1_000_000)\n'
        self.begin(text=STEPS.replace("LOSS = 0.0\n", "LOSS = 0.0\n" + worse_at_the_end))
        self.change("MS = 100.0", "MS = 80.0")
        self.assertIn("nobody measured", self.json("-m", "faster")["reason"])  # steps of 80 ms in a process of less
        self.assertIn("loss is worse", self.json("end", expect=GUARD)["reason"])

    def test_guards_and_seals(self):
        (self.repository / "data").mkdir()
        (self.repository / "data" / "val.bin").write_text("held out\n")
        (self.repository / ".gitignore").write_text("data\n")
        (self.repository / "evaluate.py").write_text("# the judge\n")
        began = self.begin("--metric", "val_bpb", "--also", "memory_mb=2%", "--seal", "evaluate.py", "--seal",
                           "data/val.bin", text=TRAIN + 'open("data/val.bin").read()\n')
        self.assertEqual(began["linked"], ["data"])
        self.change("GAIN = 0.0", "GAIN = 0.02")
        self.change("MEMORY = 100", "MEMORY = 110")
        self.assertIn("memory_mb", self.json("-m", "more memory", expect=GUARD)["reason"])
        self.change("MEMORY = 110", "MEMORY = 101")
        self.change("judge", "friend", "evaluate.py")
        runs = len(self.counted.read_text().split())
        self.assertIn("evaluate.py", self.json("-m", "touches the judge", expect=INVALID)["reason"])
        self.assertEqual(len(self.counted.read_text().split()), runs, "nothing ran")
        self.change("friend", "judge", "evaluate.py")
        (self.repository / "data" / "val.bin").write_text("easier\n")
        self.assertIn("val.bin", self.json("-m", "touches the data", expect=INVALID)["reason"])
        (self.repository / "data" / "val.bin").write_text("held out\n")
        self.json("-m", "a little more memory")

    def test_a_kill_loses_no_run_and_repeats_none(self):
        self.begin("--metric", "val_bpb", "--runs", "4")
        self.change("GAIN = 0.0", "GAIN = 0.01")
        wait = pathlib.Path(str(self.counted) + ".wait")
        wait.write_text("")
        for again in range(3):  # the program goes on meanwhile
            process = self.place.start("try", "-m", "killed again and again", cwd=self.repository)
            deadline = time.time() + PATIENCE_S
            while len(self.counted.read_text().split()) == 4 and time.time() < deadline:
                time.sleep(0.01)
            time.sleep(0.3 * again)
            process.kill()
            process.communicate()
        wait.unlink()
        answer = self.json("-m", "killed again and again")
        self.assertEqual((answer["try"], answer["verdict"]), (1, "kept"))
        self.assertEqual(len(self.counted.read_text().split()), 4 + answer["runs"])
        self.assertEqual(len(self.place.json("runs")), 4 + answer["runs"])

    def test_an_interrupted_try_gives_way_to_another_change(self):
        self.begin("--metric", "val_bpb", "--runs", "4")
        self.change("GAIN = 0.0", "GAIN = 0.01")
        wait = pathlib.Path(str(self.counted) + ".wait")
        wait.write_text("")
        process = self.place.start("try", "-m", "first idea", cwd=self.repository)
        deadline = time.time() + PATIENCE_S
        while len(self.counted.read_text().split()) == 4 and time.time() < deadline:
            time.sleep(0.01)
        status, _, err = self.run_here("-m", "at the same time")
        self.assertEqual(status, 2, err)
        self.assertEqual(self.json("status")["state"], "running")
        process.kill()
        process.communicate()
        self.change("GAIN = 0.01", "GAIN = 0.02")
        other = self.place.start("try", "-m", "second idea", "--json", cwd=self.repository)
        time.sleep(0.5)
        wait.unlink()
        out, err = other.communicate(timeout=PATIENCE_S)
        self.assertEqual(json.loads(out)["verdict"], "kept", err)
        self.assertEqual([(each["try"], each["verdict"]) for each in self.json("log")], [(1, "cannot-tell"), (2, "kept")])

    def test_budget(self):
        began = self.begin("--metric", "val_bpb", "--budget-runs", "7")
        self.assertEqual(began["runs_left"], 1)
        self.change("GAIN = 0.0", "GAIN = 0.01")
        answer = self.json("-m", "a gain", expect=CANNOT_TELL)
        self.assertEqual((answer["runs"], answer["runs_left"]), (1, 0))
        self.assertIn("budget", answer["reason"])

    def test_what_cannot_be_judged_says_why(self):
        status, _, err = self.run_here("begin", "--", "true")
        self.assertEqual(status, 2)
        self.assertIn("git init", err)
        self.commit("raise SystemExit(5)\n")
        status, out, err = self.run_here("begin", "--", "python3", "train.py")
        self.assertEqual(status, FAILED)
        self.assertIn("exit status 5", err)
        for printed, why in (("1", "has no val_bpb"), ("'val_bpb: nan'", "no finite val_bpb")):
            (self.repository / "train.py").write_text(f"print({printed})\n")
            status, _, err = self.run_here("begin", "--metric", "val_bpb", "--", "python3", "train.py")
            self.assertEqual(status, FAILED)
            self.assertIn(why, err)
        (self.repository / "train.py").write_text("print('val_bpb: 0.99')\n")
        self.assertEqual(self.begin_here("--metric", "val_bpb")["flags"], ["equal-repeats"])
        (self.repository / "train.py").write_text("print('val_bpb: 0.5')\n")
        self.assertIn("equal", self.json("-m", "half", expect=CANNOT_TELL)["reason"])
        self.assertEqual(self.run_here("revert")[0], 0)
        status, _, err = self.run_here("-m", "nothing")
        self.assertEqual(status, 2)
        self.assertIn("nothing has changed", err)
        (self.repository / ".git" / "MERGE_HEAD").write_text("")
        status, _, err = self.run_here("-m", "in the middle")
        self.assertEqual(status, 2)
        self.assertIn("merge", err)

    def test_a_project_from_elsewhere_starts_nothing(self):
        self.begin("--metric", "val_bpb")
        shutil.move(self.place.path / "state", self.place.path / "another")
        self.change("GAIN = 0.0", "GAIN = 0.01")
        runs = self.counted.read_text()
        status, _, err = self.run_here("-m", "as a stranger")
        self.assertEqual(status, 2)
        self.assertIn("begun elsewhere", err)
        self.assertEqual(self.counted.read_text(), runs)
        self.assertEqual(self.run_here("log")[0], 0, "it can be read")

    def test_a_folder_of_the_checkout_and_paths_of_it(self):
        (self.repository / "sub").mkdir()
        (self.repository / "sub" / "run.sh").write_text("exec python3 $1\n")
        self.commit()
        process = self.place.start("try", "begin", "--json", "--metric", "val_bpb", "--", "sh", "run.sh",
                                   str(self.repository / "train.py"), cwd=self.repository / "sub")
        out, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 0, err)
        self.change("GAIN = 0.0", "GAIN = 0.01")
        answer = self.json("-m", "the path names the copy")
        self.assertEqual(answer["verdict"], "kept", "the kept state ran the kept file")

    def test_replay(self):
        ledger = self.place.path / "results.tsv"
        ledger.write_text("commit\tval_bpb\tmemory_gb\tstatus\tdescription\n"
                          "a1\t0.997900\t44.0\tkeep\tbaseline\n"
                          "b2\t0.997600\t44.0\tkeep\twithin the noise\n"
                          "c3\t1.005000\t44.0\tdiscard\tworse\n"
                          "d4\t0.000000\t0.0\tcrash\tout of memory\n"
                          "e5\t0.990000\t44.2\tkeep\treal\n")
        replay = self.place.json("try", "replay", ledger, "--noise", "0.00023")
        self.assertEqual([(keep["description"], keep["supported"], keep["holds_together"]) for keep in replay["keeps"]],
                         [("within the noise", False, False), ("real", True, True)])
        lines = self.place.path / "log.jsonl"
        lines.write_text('{"type":"config","metricName":"total_ms","bestDirection":"lower"}\n'
                         '{"run":1,"commit":"a","metric":100,"status":"keep","description":"baseline"}\n'
                         '{"run":2,"commit":"b","metric":90,"status":"keep","description":"real"}\n'
                         '{"run":3,"commit":"c","metric":89.9,"status":"keep","description":"noise"}\n')
        replay = self.place.json("try", "replay", lines, "--noise", "1")
        self.assertEqual([keep["supported"] for keep in replay["keeps"]], [True, False])
        self.assertEqual(self.place.run("try", "replay", ledger)[0], 2)

    def test_no_ops_are_not_kept(self):
        self.begin("--metric", "val_bpb")
        verdicts = []
        for i in range(20):
            with (self.repository / "train.py").open("a") as file:
                file.write(f"# {i}\n")
            status, out, err = self.run_here("-m", f"comment {i}", "--json")
            self.assertIn(status, (KEPT, WORSE, CANNOT_TELL), err)
            verdicts.append(json.loads(out))
        self.assertLessEqual(sum(each["verdict"] == "kept" for each in verdicts), 1)
        self.assertLess(sum(each["runs"] for each in verdicts) / len(verdicts), 3)


if __name__ == "__main__":
    unittest.main()
