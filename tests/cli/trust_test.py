"""Nothing misleads, and nothing is done unasked: marks, gates, files that aren't there, the bin. Nothing is trained."""
import contextlib
import json
import os
import pty
import signal
import sqlite3
import subprocess
import sys
import unittest

from program import PATIENCE_S, PROGRAM, Workplace, read_terminal


def log(dt_ms, loss, steps=40, gpu="NVIDIA GeForce RTX 3080"):
    """A log whose throughput is 2,048 tokens in dt_ms."""
    lines = [f"{gpu}", "number of parameters: 124.44M"]
    for i in range(steps):
        dt = dt_ms * (1 + 0.002 * (i % 5))
        lines.append(f"step {i} | loss: {loss + 2 / (i + 1):.6f} | dt: {dt:.3f}ms | tok/sec: {2048000 / dt:.2f}")
    return "\n".join(lines) + "\n"


class Trust(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.addCleanup(self.place.close)

    def take_in(self, name, text, *options):
        path = self.place.path / name
        path.write_text(text)
        return self.place.json("import", path, *options)["runs"][0]["id"]

    def impossible(self, name="fast.log"):
        return self.take_in(name, log(1, 3), "--gpu", "rtx3080", "--params", "124439808", "--tokens-per-step", "2048")

    def possible(self, name="slow.log", dt_ms=200, loss=3.0):
        return self.take_in(name, log(dt_ms, loss), "--gpu", "rtx3080", "--params", "124439808", "--tokens-per-step", "2048")

    def test_tables_mark_impossible_runs(self):
        self.possible()
        out = self.place.run("runs")[1]
        self.assertNotIn("trust", out, "no column without a doubt")
        path = self.place.path / "fast.log"
        path.write_text(log(1, 3))
        status, out, _ = self.place.run("import", path, "--gpu", "rtx3080", "--params", "124439808", "--tokens-per-step", "2048")
        self.assertEqual(status, 0)
        self.assertEqual(out.splitlines()[-1], "1 of 1 run impossible: stepladder check")
        out = self.place.run("runs")[1]
        self.assertEqual(out.splitlines()[-1], "1 of 2 runs impossible: stepladder check")
        self.assertEqual([("impossible" in line) for line in out.splitlines()[1:3]], [False, True])

    def test_a_loss_that_is_not_a_number_makes_a_run_doubtful(self):
        text = log(200, 3).replace("step 20 | loss: 3.095238", "step 20 | loss: inf")
        self.assertIn("inf", text)
        run = self.place.json("show", self.take_in("lost.log", text), "--steps")
        self.assertEqual((run["trust"], run["data"][20]["loss"]), ("doubtful", "Infinity"))
        self.assertIn("nonfinite-loss", run["flags"])
        self.assertEqual(self.place.json("runs", "--columns", "at(loss,20)")[0]["at(loss, 20)"], "Infinity")
        self.assertEqual(len(self.place.json("runs", "--filter", "max(loss)<9 at(loss,20)=inf at(loss,20)>1e300")), 1)
        self.assertEqual(self.place.run("runs")[1].splitlines()[-1], "1 of 1 run doubtful: stepladder check")

    def test_a_clock_that_nobody_knows_is_named_beside_trust(self):
        self.assertRegex(self.place.run("show", self.possible())[1], "trust +trusted, timing sync unknown")

    def test_two_machines_have_no_factor(self):
        base = self.possible()
        other = self.take_in("a100.log", log(20, 3.0, gpu="NVIDIA A100-SXM4-40GB"), "--gpu", "a100", "--tokens-per-step", "2048")
        row = self.place.json("compare", base, other)["runs"][0]
        self.assertEqual((row["speedup"], row["ci95"], row["against_previous"], row["verdict"]), (None, None, None, "cannot-tell"))
        self.assertEqual(row["trust"], "doubtful")
        self.assertIn("other-machine", row["flags"])
        status, out, _ = self.place.run("compare", base, other)
        line = next(line for line in out.splitlines() if line.startswith(f"{other:3d}"))
        self.assertIn("doubtful", line)
        self.assertNotIn(" x ", line)
        self.assertEqual(self.place.run("compare", base, other, "--gate")[0], 11)

    def test_a_baseline_that_is_impossible_taints_the_comparison(self):
        base, run = self.impossible(), self.possible()
        compared = self.place.json("compare", base, run)
        self.assertEqual((compared["base_trust"], compared["runs"][0]["trust"]), ("impossible", "impossible"))
        self.assertEqual(self.place.run("compare", base, run, "--gate")[0], 12)

    def test_the_gate_never_passes_a_loss_that_is_not_comparable(self):
        base = self.possible()
        faster = self.take_in("faster.log", log(150, 3).replace("loss:", "reward:"), "--gpu", "rtx3080", "--tokens-per-step", "2048")
        row = self.place.json("compare", base, faster)["runs"][0]
        self.assertEqual((row["loss"]["verdict"], row["verdict"]), ("not-comparable", "faster"))
        self.assertEqual(self.place.run("compare", base, faster, "--gate")[0], 11)
        self.assertEqual(self.place.run("compare", base, faster, "--gate", "--ignore-loss")[0], 0)
        self.assertEqual(self.place.run("compare", faster, base, "--gate", "--ignore-loss")[0], 10)
        self.assertEqual(self.place.run("compare", base, faster, "--ignore-loss")[0], 2, "it says how a gate judges")

    def test_the_gate_passes_nothing_that_is_doubtful(self):
        base = self.possible()
        devices = self.take_in("eight.log", "world_size: 8\n" + log(150, 3), "--gpu", "rtx3080", "--tokens-per-step", "2048")
        one = self.take_in("one.log", "world_size: 1\n" + log(200, 3), "--gpu", "rtx3080", "--tokens-per-step", "2048")
        holes = "\n".join(line for i, line in enumerate(log(150, 3).splitlines()) if i < 2 or i % 5 != 1) + "\n"
        holes = self.take_in("holes.log", holes, "--gpu", "rtx3080", "--tokens-per-step", "2048")
        for pair, flag in (((one, devices), "other-machine"), ((base, holes), "missing-steps")):
            row = self.place.json("compare", *pair)["runs"][0]
            self.assertEqual((row["trust"], flag in row["flags"]), ("doubtful", True), row)
            self.assertEqual(self.place.run("compare", *pair, "--gate", "--ignore-loss")[0], 11)

    def test_a_file_that_calls_its_runs_launched_is_asked_the_same(self):
        stamped = "".join(f"[2026-09-03 12:{step // 60:02d}:{step % 60:02d}.5] {line}\n"
                          for step, line in enumerate(log(200, 3).splitlines(), -2) if step >= 0)
        run = self.take_in("stamped.log", stamped)
        self.assertIn("wall-clock-mismatch", self.place.json("show", run)["flags"])
        with contextlib.closing(sqlite3.connect(self.place.database)) as database, database:
            database.execute("UPDATE runs SET source = 'launched'")
        shown = self.place.json("show", run)
        self.assertEqual((shown["trust"], "wall-clock-mismatch" in shown["flags"]), ("doubtful", True), shown)

    def test_a_log_whose_other_figures_deny_its_times(self):
        def take_in(name, dt_ms, other, tail=""):
            lines = [f"iter {i}: loss {3 + int(name[0]) / 100 + 2 / (i + 1):.4f}, time {dt_ms + i % 5 / 10 + i % 7 / 100:.2f}ms{other}" for i in range(60)]
            return self.take_in(name, "\n".join(lines) + "\n" + tail)
        for i, (theirs, ours, flag) in enumerate((((", mfu 29.20%", ""), (", mfu 29.20%", ""), "dt-throughput-mismatch"),
                                                  ((", mfu 29.20%", ""), (", mfu 36.50%", ""), None),
                                                  ((", 2.000 it/s", ""), (", 2.000 it/s", ""), "dt-throughput-mismatch"),
                                                  (("", "Total time: 31 seconds\n"), ("", "Total time: 33 seconds\n"), "wall-clock-mismatch"),
                                                  (("", "Total time: 41 seconds\n"), ("", "Total time: 35 seconds\n"), None),
                                                  ((", forward 300.00ms, backward 200.00ms", ""), (", forward 300.00ms, backward 200.00ms", ""),
                                                   "dt-throughput-mismatch"))):
            base, run = take_in(f"{i}a.log", 500, *theirs), take_in(f"{i}b.log", 400, *ours)
            row = self.place.json("compare", base, run)["runs"][0]
            self.assertEqual((row["trust"], flag is None or flag in row["flags"]), ("doubtful" if flag else "trusted", True), (i, row))

    def test_a_loss_that_only_the_baseline_validated_proves_nothing(self):
        validated = "".join(f"{line}\n" + (f"step {i} | val_loss: {3 + 2 / (i + 1):.4f}\n" if i >= 0 and i % 5 == 0 else "")
                            for i, line in enumerate(log(200, 3).splitlines(), -2))
        base = self.take_in("validated.log", validated, "--gpu", "rtx3080", "--tokens-per-step", "2048")
        row = self.place.json("compare", base, self.possible("plain.log", 150))["runs"][0]
        self.assertEqual((row["loss"]["verdict"], row["loss_doubt"]), ("inconclusive", "only the baseline was validated"))

    def test_a_ladder_says_what_is_in_the_bin(self):
        folder = self.place.path / "logs"
        folder.mkdir()
        for name, dt_ms in (("base", 200), ("fast", 100)):
            for seed in range(3):
                text = f"Namespace(compile={name == 'fast'}, seed={seed})\n" + log(dt_ms + seed / 7, 3)
                (folder / f"{name}_{seed}.log").write_text(text)
        self.place.json("import", folder, "--gpu", "rtx3080", "--tokens-per-step", "2048")
        ladder = self.place.json("ladder", "show")
        self.assertEqual(ladder["binned_runs"], 0)
        self.assertNotIn("in the bin", self.place.run("ladder", "show")[1])
        self.place.run("delete", ladder["rungs"][1]["runs"][0])
        self.assertEqual(self.place.json("ladder", "show")["binned_runs"], 1)
        self.assertIn("1 further run is in the bin.", self.place.run("ladder", "show")[1])

    def test_compare_has_all_fields(self):
        row = self.place.json("compare", self.possible(), self.possible("b.log", 201))["runs"][0]
        self.assertLessEqual({"id", "speedup", "ci95", "verdict", "against_previous", "loss", "spread_from", "needed_runs", "trust"}, set(row))
        self.assertEqual(set(row["loss"]), {"verdict", "max_gap", "at_step", "ci95", "tolerance", "by", "runs"})

    def test_a_named_database_that_is_not_there(self):
        for missing in (self.place.path / "typo.db", "/nonexistent/a/b.db"):
            for words in (["runs"], ["show", "1"], ["get", "1", "id"], ["check"], ["check", "1"], ["compare", "1", "2"], ["ladders"],
                          ["ladder", "show"], ["sweep", "show"], ["sweep", "--of", "1"], ["bin"], ["bin", "1"], ["bin", "--empty"],
                          ["restore", "1"], ["edit", "1", "--pin"], ["operators", "1"], ["machines"], ["machines", "check", "x"],
                          ["machines", "follow"], ["profile", "list"], ["profile", "passes"], ["stop", "1"], ["confirm", "2"],
                          ["export", "1", "--format", "json", "--out", "-"], ["watch", "--attach", "1"], ["mfu", "--published"],
                          ["train", "--resume", "1"], ["doctor"], ["doctor", "--database"], ["doctor", "--backup", "x.db"],
                          ["screenshot", "--view", "run", "--out", "x.png"]):
                status, out, err = self.place.run("--db", missing, *words)
                self.assertEqual((status, out), (1, ""), (words, err))
                self.assertIn(f"{missing} does not exist", err, words)
        self.assertFalse((self.place.path / "typo.db").exists())
        status, out, err = self.place.run("runs", "--json")
        self.assertEqual((status, json.loads(out)), (0, []), "a new project may be named before it is there")
        self.assertIn("STEPLADDER_DB names, does not exist yet", err)

    def test_the_bin_is_emptied_only_if_that_was_said(self):
        run = self.possible()
        self.place.run("bin", run)
        status, out, err = self.place.run("bin", "--empty")
        self.assertEqual((status, out), (2, ""))
        self.assertIn("slow", err, "it lists what would go")
        self.assertIn("--yes", err)
        for answer, left in ((b"n\n", 1), (b"y\n", 0)):
            ours, theirs = pty.openpty()
            process = subprocess.Popen([PROGRAM, "bin", "--empty"], stdin=theirs, stdout=theirs, stderr=theirs, env=self.place.environment)
            os.close(theirs)
            os.write(ours, answer)
            shown = read_terminal(ours).decode()
            process.wait()
            self.assertIn("Delete 1 run permanently", shown)
            self.assertEqual(len(self.place.json("bin")), left)
        self.assertEqual(self.place.run("bin", "--empty")[0], 0, "nothing is lost")

    def test_a_question_does_not_outlive_an_interrupt(self):
        self.place.run("bin", self.possible())
        ours, theirs = pty.openpty()
        process = subprocess.Popen([PROGRAM, "bin", "--empty"], stdin=theirs, stdout=theirs, stderr=theirs, env=self.place.environment)
        os.close(theirs)
        shown = b""
        while b"[y/N]" not in shown:
            shown += os.read(ours, 4096)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(PATIENCE_S), 130)
        os.close(ours)
        self.assertEqual(len(self.place.json("bin")), 1)

    def test_the_bin_is_emptied_at_once_with_yes(self):
        self.place.run("bin", self.possible())
        self.place.json("bin", "--empty", "--yes")
        self.place.run("bin", self.possible("again.log"))
        self.assertEqual(self.place.json("bin", "--empty", "--yes")["runs"], [2])

    def test_ranges_with_holes_are_refused(self):
        for i, name in enumerate("abcde"):
            self.possible(f"{name}.log", 200 + i)
        self.assertEqual(self.place.json("bin", "2")["deleted"], [2])
        for words in (["bin", "4-99999"], ["bin", "1-3"], ["show", "1-3"], ["compare", "1", "2-4"], ["export", "1-3", "--out", "-", "--format", "md"],
                      ["check", "7-9"], ["bin", "5-4"], ["bin", "4", "999"], ["edit", "1-9", "--pin"]):
            status, out, err = self.place.run(*words)
            self.assertEqual((status, out), (2 if "5-4" in words else 1, ""), (words, err))
        self.assertIn("only 4-5 are runs", self.place.run("bin", "4-99999")[2])
        self.assertEqual(len(self.place.json("runs")), 4)
        self.assertIn("stepladder restore 2", self.place.run("show", "2")[2])
        self.assertEqual(self.place.json("bin", "1,3-5")["deleted"], [1, 3, 4, 5])
        self.assertEqual(self.place.json("restore", "1-3", "name=d")["restored"], [1, 2, 3, 4])
        self.assertEqual(self.place.json("bin", "--restore", "latest")["restored"], [5])

    def test_importing_can_be_tried(self):
        path = self.place.path / "a.log"
        path.write_text(log(1, 3))
        tried = self.place.json("import", "--dry-run", path, "--gpu", "rtx3080", "--params", "124439808", "--tokens-per-step", "2048")
        self.assertEqual(([run["id"] for run in tried["runs"]], tried["dry_run"]), ([None], True))
        self.assertEqual((tried["runs"][0]["steps"], tried["runs"][0]["trust"]), (40, "impossible"))
        self.assertFalse(self.place.database.exists())
        self.assertIn("1 run would be imported; nothing was, and the ids above aren't final", self.place.run("import", "--dry-run", path)[2])
        self.place.json("import", path)
        status, _, err = self.place.run("import", "--dry-run", path)
        self.assertEqual(status, 0)
        self.assertIn("no run would be imported", err)
        self.assertIn("--again imports it once more", err)
        self.assertEqual(len(self.place.json("runs")), 1)

    def test_watch_says_how_its_program_ended(self):
        steps = "; ".join(f"print('step {i} loss 2.{i}')" for i in range(1, 6))
        for status, name in ((0, "good"), (3, "bad"), (12, "twelve")):
            code, out, err = self.place.run("watch", "--json", "--name", name, "--", sys.executable, "-c", f"{steps}; exit({status})")
            run = json.loads(out)
            self.assertEqual((code, run["exit_status"], run["steps"], run["name"]), (status, status, 5, name))
            self.assertIn("step 5 loss 2.5", err, "its output is on stderr")
            self.assertEqual(self.place.json("show", name)["exit_status"], status)
        code, out, err = self.place.run("watch", "--json", "--", sys.executable, "-c", "import os; os.kill(os.getpid(), 9)")
        self.assertEqual((code, json.loads(out)["exit_status"]), (137, 137))
        code, out, err = self.place.run("watch", "--json", "--", "true")
        run = json.loads(out)
        self.assertEqual((code, run["exit_status"], run["status"]), (1, 0, "failed"), "no step, though the program is content")
        self.assertIn(f"run {run['id']} is kept as failed", err)
        self.assertIsNone(self.place.json("show", self.possible())["exit_status"], "an import has none")

    def test_a_picture_is_called_one(self):
        self.assertEqual(self.place.run("screenshot", "--view", "ladder", "--out", self.place.path / "x.txt")[0], 2)
        self.assertFalse((self.place.path / "x.txt").exists())


class Notes(unittest.TestCase):
    """What people add to runs, and how runs are found by it."""

    def setUp(self):
        self.place = Workplace()
        self.addCleanup(self.place.close)
        for i, name in enumerate(("one", "two", "three")):
            path = self.place.path / f"{name}.log"
            path.write_text(log(100 - 10 * i, 3 + i))
            self.place.json("import", path, "--tokens-per-step", "2048")

    def ids(self, *arguments):
        return [run["id"] for run in self.place.json("runs", *arguments)]

    def test_edit(self):
        edited = self.place.json("edit", "1-2", "--tag", "a,b", "--note", "good", "--pin", "--archive")
        self.assertEqual([(r["tags"], r["note"], r["pinned"], r["archived"]) for r in edited], [(["a", "b"], "good", True, True)] * 2)
        edited = self.place.json("edit", "1", "--untag", "a", "--tag", "c", "--note", "", "--unpin", "--unarchive", "--name", "first")[0]
        self.assertEqual((edited["tags"], edited["note"], edited["pinned"], edited["archived"], edited["name"]), (["b", "c"], None, False, False, "first"))
        self.assertEqual(self.place.json("show", "first")["tags"], ["b", "c"])
        self.assertEqual(self.ids("--filter", "tags=a"), [2])
        self.assertEqual(self.ids("--filter", "tags=a,c"), [1, 2])
        self.assertEqual(self.place.json("runs", "--columns", "id,tags,note")[2], {"id": 3, "tags": [], "note": None})
        for wrong in (["1"], ["1-2", "--name", "x"], ["1", "--name", ""], ["1", "--pin", "--unpin"], ["1", "--tag", ""]):
            self.assertEqual(self.place.run("edit", *wrong)[0], 2, wrong)
        self.assertEqual(self.place.run("edit", "99", "--pin")[0], 1)

    def test_lists_are_sorted_and_cut(self):
        self.assertEqual(self.ids("--limit", "2"), [2, 3], "the newest")
        self.assertEqual(self.ids("--reverse", "--limit", "2"), [3, 2])
        self.assertEqual(self.ids("--sort", "tokens_per_s"), [1, 2, 3])
        self.assertEqual(self.ids("--sort", "tokens_per_s", "--reverse", "--limit", "1"), [3])
        self.assertEqual(self.ids("--sort", "mfu", "--limit", "0"), [1, 2, 3], "0 is all, as in show")
        status, _, err = self.place.run("runs", "--limit", "1")
        self.assertIn("2 more runs", err)
        for wrong in (["--sort", "los"], ["--sort", "id,name"], ["--limit", "-1"], ["--since", "soon"], ["--since", "7"]):
            self.assertEqual(self.place.run("runs", *wrong)[0], 2, wrong)

    def test_times(self):
        run = self.place.json("show", 1)
        self.assertRegex(run["created_at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertIn("ended_at", run)
        self.assertEqual(self.ids("--since", "7d"), [1, 2, 3])
        self.assertEqual(self.ids("--since", "2020-01-01"), [1, 2, 3])
        self.assertEqual(self.ids("--since", "2999"), [])
        self.assertEqual(self.ids("--since", "7d", "--filter", "id=1 or id=3"), [1, 3])
        self.assertEqual(self.ids("--filter", f"created_at={run['created_at'][:10]}"), [1, 2, 3])
        self.assertEqual(self.ids("--filter", "created_at<2020"), [])

    def test_filters(self):
        for expression, ids in (("id=1 or id=3", [1, 3]), ("not id=2", [1, 3]), ("id=2-3", [2, 3]), ("status=finished,failed", [1, 2, 3]),
                                ("(one or two) not id=1", [2]), ("not (one or two)", [3])):
            self.assertEqual(self.ids("--filter", expression), ids, expression)
        status, out, err = self.place.run("runs", "--filter", "status=finshed", "--json")
        self.assertEqual((status, out), (2, ""))
        self.assertIn("did you mean finished?", err)

    def test_one_value(self):
        speed = self.place.json("show", 2)["tokens_per_s"]
        status, out, _ = self.place.run("get", "2", "tokens_per_s")
        self.assertEqual((status, float(out), out.count("\n")), (0, speed, 1))
        for words, printed in ((["1", "status"], "finished"), (["thr", "id"], "3"), (["1", "val_loss_last"], "null"), (["latest", "pinned"], "false"),
                               (["1,3", "id,name"], "1\tone\n3\tthree"), (["1", "min(loss)"], "3.05")):
            self.assertEqual(self.place.run("get", *words)[1], printed + "\n", words)
        self.assertEqual(self.place.json("get", "2", "tokens_per_s"), speed)
        self.assertEqual(self.place.json("get", "1-2", "id"), [{"id": 1}, {"id": 2}])
        self.assertEqual(self.place.run("get", "1", "tokens_per_sec")[0], 2)
        self.assertEqual(self.place.run("get", "9", "id")[0], 1)

    def test_runs_are_named_alike_everywhere(self):
        self.assertEqual([run["id"] for run in self.place.json("show", "1,3")], [1, 3])
        self.assertEqual([run["id"] for run in self.place.json("show", "id=2")], [2], "what may name several is a list")
        self.assertEqual(self.place.json("show", "two")["id"], 2)
        self.assertEqual([run["id"] for run in self.place.json("check", "2-3", "latest")], [2, 3])
        self.assertEqual([run["id"] for run in self.place.json("compare", "one", "2-3")["runs"]], [2, 3])
        exported = json.loads(self.place.run("export", "id=1", "--format", "json", "--table", "--out", "-")[1])
        self.assertEqual([run["id"] for run in exported], [1], "a list of one")
        self.assertEqual([each["id"] for each in self.place.json("operators", "1-2")], [1, 2])
        self.assertEqual(self.place.run("compare", "1-2", "3")[0], 2, "one baseline")


if __name__ == "__main__":
    unittest.main(verbosity=2)
