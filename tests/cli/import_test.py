"""`import`: runs arrive completely or not at all."""
import contextlib
import gzip
import json
import os
import pathlib
import random
import sqlite3
import subprocess
import unittest

from program import Workplace

SHARED = pathlib.Path(__file__).resolve().parents[2] / ".." / "shared"
STEPS = "".join(f"step {i} | loss {5 - i / 100:.2f} | dt 100.0ms | tok/sec 40960\n" for i in range(1, 11))


class Case(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.addCleanup(self.place.close)

    def file(self, name, content):
        path = self.place.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path


class Import(Case):
    def test_a_log_becomes_a_run(self):
        log = self.file("mine.log", STEPS)
        told = self.place.json("import", log)
        self.assertEqual(set(told), {"runs", "notes", "skipped", "errors", "groupings", "traces", "passes", "dry_run"})
        run, = told["runs"]
        self.assertTrue(run["name"].startswith("mine"))
        self.assertEqual((run["steps"], run["first_step"], run["last_step"]), (10, 1, 10))
        self.assertEqual((run["status"], run["source"], run["source_path"], run["sync"]),
                         ("finished", "import", str(log), "unknown"))
        self.assertEqual((run["tokens_per_step"], run["dt_ms_median"], run["tokens_per_s"]), (4096, 100, 40960))
        self.assertEqual(run["unit"], "tokens/s")
        for note in told["notes"]:
            self.assertEqual(set(note), {"file", "line", "text"})

    def test_what_the_user_knows_counts_more(self):
        run, = self.place.json("import", self.file("a.log", "step 1 loss 2 dt 100ms\nstep 2 loss 1 dt 100ms\n"),
                               "--tokens-per-step", 1000, "--params", 7, "--gpu", "NVIDIA H100")["runs"]
        self.assertEqual((run["tokens_per_step"], run["params"], run["hardware"]), (1000, 7, "NVIDIA H100"))

    def test_a_printed_throughput_that_does_not_fit_is_flagged(self):
        line = "step {} loss 3.5 dt 250.0ms | tok/sec {}\n"
        fits = self.file("fits.log", "B = 4 ; T = 1024\n" + "".join(line.format(i, 16384) for i in range(1, 30)))
        odd = self.file("odd.log", "B = 4 ; T = 1024\n" + "".join(line.format(i, 30000) for i in range(1, 30)))
        runs = self.place.json("import", fits, odd)["runs"]
        flags = {run["id"]: {flag["id"] for flag in run["flags"]} for run in self.place.json("check")}
        self.assertNotIn("dt-throughput-mismatch", flags[runs[0]["id"]])
        self.assertIn("dt-throughput-mismatch", flags[runs[1]["id"]])

    def test_a_profilers_trace_in_a_folder_is_taken_for_what_it_is(self):
        folder = self.file("all/run.log", STEPS).parent
        self.file("all/step.pt.trace.json", '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 4}]}')
        code, out, err = self.place.run("import", folder, "--dry-run", "--json")
        self.assertEqual((code, len(json.loads(out)["runs"]), json.loads(out)["traces"]), (0, 1, []), err)
        self.assertIn("step.pt.trace.json would be imported as a profiler's trace", err)
        told = self.place.json("import", folder)
        self.assertEqual((len(told["runs"]), len(told["traces"]), told["errors"]), (1, 1, []))
        self.assertFalse([note for note in told["notes"] if "trace" in note["file"]])
        self.assertEqual(len(self.place.json("profile", "list")), 1)
        only = self.file("only/a.json", (folder / "step.pt.trace.json").read_text()).parent
        told = self.place.json("import", only)
        self.assertEqual((told["runs"], len(told["traces"]), told["errors"]), ([], 1, []))

    def test_what_follow_has_stored_is_not_imported_and_the_reverse(self):
        table = self.file("a.csv", "step,loss,dt_ms\n" + "".join(f"{i},{5 - i / 10},100.{i}\n" for i in range(1, 9)))
        other = self.file("b.csv", table.read_text().replace("100.", "200."))
        self.assertEqual(len(self.place.json("import", table)["runs"]), 1)
        status, out, err = self.place.run("follow", "--once", table, "--json")
        self.assertEqual((status, json.loads(out)), (0, []), err)
        self.assertIn("a.csv is in the project already (run 1)", err)
        self.assertEqual(self.place.run("follow", "--once", other)[0], 0)
        told = self.place.json("import", other)
        self.assertEqual((told["runs"], [skipped["runs"] for skipped in told["skipped"]]), ([], [[2]]))
        self.assertEqual(len(self.place.json("import", other, "--again")["runs"]), 1)
        with table.open("a") as more:
            more.write("9,4.0,100.9\n")
        self.assertEqual(self.place.run("follow", "--once", table)[0], 0)
        self.assertEqual([run["steps"] for run in self.place.json("runs")], [8, 8, 8, 9])

    def test_configurations_make_rungs_with_repeats_named_after_them(self):
        steps = "".join(f"step {i} | loss {4 - i / 100:.2f} | dt 100.{i}ms\n" for i in range(1, 21))
        headers = {"ns": "Namespace(lr={lr}, seed={seed})\n", "list": "  lr ............... {lr}\n  seed ............. {seed}\n",
                   "eq": "lr = {lr}\nseed = {seed}\n"}
        for kind, header in headers.items():
            for lr in (0.001, 0.002):
                for seed in (1, 2, 3):
                    log = self.file(f"{kind}/{lr}-{seed}.log", header.format(lr=lr, seed=seed) + steps)
            told = self.place.json("import", log.parent)
            self.assertEqual([(run["rung"], run["repeat"]) for run in told["runs"]], [(rung, i) for rung in (0, 1) for i in (0, 1, 2)])
            self.assertEqual([run["stage"] for run in told["runs"]], ["lr 0.001"] * 3 + ["lr 0.002"] * 3)
            self.assertIn("lr differs: 0.001, 0.002", told["groupings"][0]["reason"])

    def test_settings_in_the_names_of_files_make_repeats_and_sweeps(self):
        for i, (lr, seed) in enumerate((lr, seed) for lr in ("1e-3", "3e-4", "1e-4") for seed in range(1, 9)):
            log = self.file(f"names/lr{lr}_seed{seed}.log", "".join(f"step {k} | loss {4 - k / 100:.2f} | dt {100 + 9 * i}.{k}ms\n" for k in range(1, 21)))
        told = self.place.json("import", log.parent)
        self.assertEqual([(run["rung"], run["repeat"]) for run in told["runs"]], [(rung, i) for rung in range(3) for i in range(8)])
        self.assertEqual([run["title"] for run in told["runs"][::8]], ["lr 0.0001", "lr 0.0003", "lr 0.001"])
        self.assertIn("lr differs", told["groupings"][0]["reason"])
        self.assertIn("its name was read as lr 0.001, seed 1", " ".join(note["text"] for note in told["notes"]))
        log = self.file("lr9e-9.log", "Namespace(learning_rate=0.002)\n" + STEPS)
        run, = self.place.json("import", log)["runs"]
        self.assertNotIn("9e-09", str(self.place.json("show", run["id"])))

    def test_a_note_of_unknown_tokens_names_the_option(self):
        log = self.file("a.log", "step 1 loss 2 dt 100ms\nstep 2 loss 1 dt 100ms\nstep 3 loss 1 dt 100ms\n")
        self.assertIn("; --tokens-per-step N gives them", self.place.run("import", "--dry-run", log)[2])
        self.assertIn("; --again --tokens-per-step N imports it with them", self.place.run("import", log)[2])

    def test_a_stage_on_a_line_of_its_own_is_a_heading(self):
        log = self.file("ladder.log", "Baseline\n\n" + STEPS + "\nFlash attention\n\n" + STEPS)
        runs = self.place.json("import", log)["runs"]
        self.assertEqual([run["stage"] for run in runs], ["Baseline", "Flash attention"])

    def test_the_example_is_a_ladder(self):
        runs = self.place.json("import", pathlib.Path(__file__).parents[2] / "assets" / "examples" / "a100-three-rungs.csv")["runs"]
        self.assertEqual([(run["ladder"], run["rung"], run["stage"], run["steps"]) for run in runs],
                         [(1, 0, "baseline", 50), (1, 1, "unnamed-change", 50), (1, 2, "tf32", 50)])

    def test_bad_files_are_a_sentence_and_change_nothing(self):
        bad = {"empty.log": b"", "blank.log": b"\r\n \n", "binary.log": os.urandom(70000), "nul.log": bytes(5000),
               "prose.log": b"Nothing here.\n", "cut.log": b"\xff\xfes", "long.log": b"x" * 100_000_000,
               "utf16.log": "Nothing here.\n".encode("utf-16-be"), "elf.log": b"\x7fELF\2\1\1" + bytes(200),
               "gzip.log": b"\x1f\x8b\x08\0" + os.urandom(500)}
        for name, content in bad.items():
            code, out, err = self.place.run("import", self.file(name, content))
            self.assertEqual((code, out), (1, ""), name)
            self.assertIn(name, err)
            self.assertEqual(len(err.strip().splitlines()), 1, err)
            self.assertFalse(self.place.database.exists(), name)
        self.assertEqual(self.place.run("import", self.place.path / "none.log")[0], 1)
        self.assertEqual(self.place.run("import")[0], 2)
        self.assertEqual(self.place.run("import", "--as", "nonsense", "x")[0], 2)
        self.place.json("import", self.file("good.log", STEPS))
        before = sqlite3.connect(self.place.database).execute("select count(*) from runs").fetchone()
        self.assertEqual(self.place.run("import", self.place.path / "prose.log", self.file("other.log", STEPS + "step 11 | loss 4.89\n"))[0], 1)
        after = sqlite3.connect(self.place.database).execute("select count(*) from runs").fetchone()
        self.assertEqual(after[0], before[0] + 1, "the good one is kept")

    def test_any_encoding_and_end_of_line(self):
        contents = {"crlf": STEPS.replace("\n", "\r\n").encode(), "mark": b"\xef\xbb\xbf" + STEPS.encode(),
                    "le": b"\xff\xfe" + STEPS.encode("utf-16-le"), "be": b"\xfe\xff" + STEPS.encode("utf-16-be"),
                    "nul": STEPS.encode() + b"step 11 | lo\0ss 3\n", "long": STEPS.encode() + b"x" * 3_000_000,
                    "cut": STEPS.encode() + b"step 11 | lo", "latin": "Läuft auf Gerät 0\n".encode("latin-1") + STEPS.encode()}
        for name, content in contents.items():
            run, = self.place.json("import", self.file(name + ".log", content))["runs"]
            self.assertEqual((run["steps"], run["last_step"], run["loss_last"]), (10, 10, 4.9), name)

    def test_packed_logs_are_read_and_bombs_refused(self):
        run, = self.place.json("import", self.file("mine.log.gz", gzip.compress(STEPS.encode())))["runs"]
        self.assertEqual((run["steps"], run["tokens_per_step"]), (10, 4096))
        again = self.place.json("import", self.file("again.log.gz", gzip.compress(STEPS.encode())))
        self.assertEqual((again["runs"], len(again["skipped"])), ([], 1))
        folder = self.file("logs/other.log.gz", gzip.compress(STEPS.replace("loss 4", "loss 3").encode())).parent
        self.assertEqual(len(self.place.json("import", folder)["runs"]), 1)
        bomb = self.file("bomb.log.gz", gzip.compress(b"step 1 loss 3.2 dt 100ms\n" * 4_000_000))
        failed = json.loads(self.place.run("import", bomb, "--json")[1])
        self.assertIn("200 times its size", failed["errors"][0])
        cut = self.file("cut.log.gz", gzip.compress(random.Random(1).randbytes(100).hex().encode() + STEPS.encode())[:-20])
        self.assertIn("has no end", json.loads(self.place.run("import", cut, "--json")[1])["errors"][0])
        self.assertEqual(len(self.place.json("runs")), 2)

    def test_two_trainings_in_one_file_are_refused(self):
        lines = STEPS.splitlines(keepends=True)
        log = self.file("two.log", "".join("[a] " + line + "[b] " + line.replace("loss ", "loss 1") for line in lines))
        self.assertIn("several trainings", json.loads(self.place.run("import", log, "--json")[1])["errors"][0])

    def test_standard_input(self):
        process = self.place.start("import", "-", "--json", stdin=subprocess.PIPE)
        out, err = process.communicate(STEPS)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(json.loads(out)["runs"][0]["steps"], 10)

    def test_a_folder_is_a_ladder_of_stages_and_repeats(self):
        for name in ("base/1.log", "base/2.log", "fast/1.log"):
            self.file("ladder/" + name, STEPS)
        self.file("ladder/README.md", "Not a log.\n")
        runs = self.place.json("import", self.place.path / "ladder")["runs"]
        self.assertEqual([(r["stage"], r["rung"], r["repeat"]) for r in runs],
                         [("base", 0, 0), ("base", 0, 1), ("fast", 1, 0)])
        self.assertEqual(len({r["ladder"] for r in runs}), 1)
        flat = self.place.json("import", "--again", "--flat", self.place.path / "ladder")["runs"]
        self.assertEqual([(r["rung"], r["repeat"]) for r in flat], [(0, 0), (1, 0), (2, 0)])

    def test_a_folder_of_ladders_has_no_ladder_of_its_own(self):
        blocks = "".join(f"## {stage}\n{STEPS}" for stage in ("Baseline", "TF32"))
        for name in ("a.log", "b.log"):
            self.file("ladders/" + name, blocks)
        runs = self.place.json("import", self.place.path / "ladders")["runs"]
        self.assertEqual(len(runs), 4)
        with contextlib.closing(sqlite3.connect(self.place.database)) as project:
            names = [name for name, in project.execute("SELECT name FROM ladders ORDER BY id")]
        self.assertEqual(names, ["a", "b"])

    def folder(self, name, times, head="", scatter=0.5):
        for file, dt in times.items():
            steps = "".join(f"step {i} | loss {5 - i / 100:.2f} | dt {dt + scatter * (i % 3 - 1):.2f}ms\n" for i in range(1, 41))
            self.file(f"{name}/{file}.log", head + steps)
        return self.place.path / name

    def test_two_step_times_make_two_rungs_with_a_factor(self):
        told = self.place.json("import", self.folder("steps", {"1-eager": 100, "2-compiled": 67}))
        grouping, = told["groupings"]
        self.assertEqual((grouping["decision"], grouping["files"], grouping["asked"]), ("rungs", 2, False))
        self.assertRegex(grouping["reason"], r"67(\.0\d)? to 100 ms")
        self.assertEqual([(r["rung"], r["repeat"], r["stage"]) for r in told["runs"]],
                         [(0, 0, "1-eager"), (1, 0, "2-compiled")])
        compared, = self.place.json("compare", *(r["id"] for r in told["runs"]))["runs"]
        self.assertAlmostEqual(compared["speedup"], 100 / 67, delta=0.02)
        self.assertEqual(compared["verdict"], "faster")
        code, out, err = self.place.run("import", "--again", self.place.path / "steps")
        self.assertEqual(code, 0)
        self.assertIn("2 files are a rung each", err)
        self.assertIn("--as-repeats", err)

    def test_rounded_clocks_claim_no_more_than_they_resolve(self):
        """Steps of 53.40 and 53.62 ms that differ by less than a printed millisecond: a factor of 0.9959."""
        def steps(ms, seed):
            noise = random.Random(seed)
            return [noise.gauss(ms, 0.004 * ms) for _ in range(1500)]
        clock = lambda i, times: f"train_time:{sum(times[:i]):.0f}ms"
        rounded = lambda i, times: f"dt {times[i - 1]:.0f}ms"
        for name, printed, verdicts in (("clock", clock, {"same"}), ("rounded", rounded, {"same", "cannot-tell"})):
            runs = []
            for ms, seed in ((53.40, 1), (53.62, 2)):
                times = steps(ms, seed)
                path = self.file(f"{name}-{ms}.log", "".join(
                    f"step:{i}/1500 train_loss:{10 - i / 200:.4f} {printed(i, times)}\n" for i in range(1, 1501)))
                runs.append(self.place.json("import", path)["runs"][0]["id"])
            compared, = self.place.json("compare", *runs)["runs"]
            low, high = compared["ci95"]
            self.assertLess(low, 0.9959)
            self.assertGreater(high, 0.9959)
            self.assertLess(low, high)
            self.assertIn(compared["verdict"], verdicts)
            self.assertEqual((compared["spread_from"], compared["runs"]), ("prior", 1))

    def test_validation_losses_alone_are_compared(self):
        """Speed-run logs print no training loss and no tokens."""
        runs = []
        for seed, off in ((1, 0), (2, 0.001), (3, 0.2)):
            path = self.file(f"val-{seed}.log", "".join(
                f"step:{i}/1500 val_loss:{3.28 + off + 7 * 0.99 ** i:.4f} train_time:{i * 53 + 7 * seed}ms step_avg:53.1ms\n"
                if i % 125 == 0 else f"step:{i}/1500 train_time:{i * 53 + 7 * seed}ms step_avg:53.1ms\n" for i in range(1501)))
            runs.append(self.place.json("import", path)["runs"][0]["id"])
        same, worse = (row["loss"] for row in self.place.json("compare", *runs)["runs"])
        self.assertEqual((same["verdict"], same["by"]), ("same", "val_loss"))
        self.assertEqual((worse["verdict"], worse["by"]), ("worse", "val_loss"))

    def test_seeds_of_one_script_are_repeats(self):
        told = self.place.json("import", self.folder("seeds", {"a": 100, "b": 101.2, "c": 99.1}))
        self.assertEqual(told["groupings"][0]["decision"], "repeats")
        self.assertEqual([(r["rung"], r["repeat"], r["stage"]) for r in told["runs"]],
                         [(0, 0, "seeds"), (0, 1, "seeds"), (0, 2, "seeds")])

    def test_other_source_code_makes_rungs(self):
        rule = "=" * 100 + "\n"
        for name, rate in (("a", 1), ("b", 2)):
            self.folder("code", {name: 100}, head=f"import torch\nlr = {rate}\n{rule}")
        grouping, = self.place.json("import", self.place.path / "code")["groupings"]
        self.assertEqual((grouping["decision"], grouping["reason"]), ("rungs", "the source code differs"))

    def test_the_user_can_say_what_the_files_are(self):
        folder = self.folder("steps", {"eager": 100, "compiled": 67})
        told = self.place.json("import", "--repeats", folder)
        self.assertEqual([(r["rung"], r["repeat"]) for r in told["runs"]], [(0, 0), (0, 1)])
        self.assertEqual((told["groupings"][0]["decision"], told["groupings"][0]["asked"]), ("repeats", True))
        told = self.place.json("import", "--flat", self.folder("seeds", {"a": 102, "b": 101}))
        self.assertEqual([(r["rung"], r["stage"]) for r in told["runs"]], [(0, "a"), (1, "b")])
        self.assertEqual(self.place.run("import", "--flat", "--repeats", folder)[0], 2)

    def test_a_last_line_that_may_be_cut_is_left_out(self):
        note = "the last line has no end and was left out: it may be cut"
        line = "step {} | loss {:.3f} | dt {}ms\n".format
        lines = "".join(line(i, 20 - i, 100) for i in range(8, 11))
        ends_in_loss = "".join(f"step {i} | loss {20 - i:.3f}\n" for i in range(8, 11))
        record = "".join(json.dumps({"step": i, "loss": 20.125 - i}) + "\n" for i in range(8, 11))
        for number, (text, last, is_left_out) in enumerate((
                (ends_in_loss + "step 11 | loss 1", 10, True), (ends_in_loss + "step 11 | loss 1.23", 10, True),
                (ends_in_loss + "step 11 | loss 1.234", 11, False), (ends_in_loss + "step 11 | loss 1\n", 11, False),
                (ends_in_loss + "step 11 | lo", 10, True), (ends_in_loss + "the end", 10, False),
                (lines + "step 11 | loss 9.000 | dt 10", 10, True), (lines + "step 11 | loss 9.000", 10, True),
                (lines + "step 11 | loss 9.000 | dt 100ms", 11, False),
                (record + '{"step": 11, "loss": 9.12', 10, True), (record + '{"step": 11, "loss": 9}', 11, False))):
            with self.subTest(text[-30:]):
                told = self.place.json("import", self.file(f"{number}.log", text))
                self.assertEqual(told["runs"][0]["last_step"], last)
                self.assertEqual([each["text"] for each in told["notes"] if each["text"] == note], [note] * is_left_out)
        process = self.place.start("import", "-", "--json", stdin=subprocess.PIPE)
        out, err = process.communicate(ends_in_loss + "step 11 | loss 2")
        self.assertEqual(json.loads(out)["runs"][0]["last_step"], 11, err)  # as a user pastes it

    def test_what_the_project_has_is_skipped(self):
        log = self.file("a.log", STEPS)
        code, out, err = self.place.run("import", log)
        self.assertIn("imported run 1; `stepladder bin 1` undoes it", err)
        code, out, err = self.place.run("import", self.file("copy.log", STEPS))
        self.assertEqual((code, out), (0, ""))
        self.assertIn("copy.log is in the project already (run 1); --again imports it once more", err)
        told = self.place.json("import", log)
        self.assertEqual((told["runs"], told["skipped"]), ([], [{"file": str(log), "runs": [1]}]))
        process = self.place.start("import", "-", stdin=subprocess.PIPE)
        self.assertIn("in the project already", process.communicate(STEPS)[1])
        self.assertEqual(len(self.place.json("runs")), 1)
        self.assertEqual(len(self.place.json("import", "--again", log)["runs"]), 1)

    def test_an_import_is_undone_by_its_numbers(self):
        folder = self.folder("steps", {"a": 100, "b": 67, "c": 50})
        code, out, err = self.place.run("import", folder)
        self.assertIn("imported runs 1 - 3; `stepladder bin 1-3` undoes it", err)
        self.assertEqual(self.place.run("bin", "1-3")[0], 0)
        self.assertEqual(self.place.json("runs"), [])
        self.assertEqual(len(self.place.json("bin")), 3)
        self.assertEqual(self.place.json("bin", "--restore", "2")["restored"], [2])
        self.assertEqual([run["id"] for run in self.place.json("runs")], [2])
        self.assertEqual(self.place.run("bin", "17")[0], 1)
        self.assertEqual(len(self.place.json("import", folder)["skipped"]), 1)

    def test_a_rate_without_tokens_and_columns_that_never_change(self):
        rows = "".join(f"{i},{5 - i / 10},{1000 + i},16,3e-4\n" for i in range(1, 12))
        run, = self.place.json("import", self.file("t.csv", "step,loss,tokens_per_sec,batch_size,lr\n" + rows))["runs"]
        self.assertEqual((run["tokens_per_s"], run["tokens_per_step"], run["unit"]), (1006, None, "tokens/s"))
        self.assertEqual(run["flags"], ["missing-dt"])
        self.place.json("import", self.file("u.csv", "step,loss,batch_size\n" + "".join(f"{i},{6 - i / 10},32\n" for i in range(1, 9))))
        self.assertEqual([r["name"] for r in self.place.json("runs", "--filter", "batch_size=16")], ["t"])
        self.assertEqual([r["name"] for r in self.place.json("runs", "--filter", "batch_size>16")], ["u"])
        self.assertEqual([r["name"] for r in self.place.json("runs", "--filter", "lr=0.0003")], ["t"])
        self.assertEqual(self.place.run("runs", "--filter", "batchsize=16")[0], 2)

    def test_the_seed_files(self):
        seeds = sorted((SHARED / "seeds").glob("*.txt"))
        if not seeds:
            self.skipTest("the seed files are not here")
        told = self.place.json("import", *seeds)
        by_file = {}
        for run in told["runs"]:
            by_file.setdefault(pathlib.Path(run["source_path"]).stem, []).append(run)
        self.assertEqual({k: len(v) for k, v in by_file.items()},
                         {"a100-three-rungs": 3, "rtx3080-4090-ladder": 13, "mps-then-cuda": 7})
        for runs in by_file.values():
            self.assertEqual(len({r["ladder"] for r in runs}), 1)
            self.assertEqual([r["rung"] for r in runs], list(range(len(runs))))
            for run in runs:
                self.assertTrue(run["unit"])
                if run["tokens_per_s"] and run["steps"]:
                    self.assertAlmostEqual(run["tokens_per_s"], run["tokens_per_step"] * 1000 / run["dt_ms_median"], places=3)
        reported = [r for runs in by_file.values() for r in runs if r["tokens_per_s"] and not r["steps"]]
        self.assertEqual([(r["stage"], r["tokens_per_s"]) for r in reported], [("DDP", 211646)])
        ladder = by_file["rtx3080-4090-ladder"]
        self.assertEqual([r["status"] for r in ladder], 11 * ["finished"] + 2 * ["reported"])
        self.assertEqual((reported[0]["trust"], reported[0]["flags"]), ("doubtful", ["missing-steps", "unknown-hardware"]))
        self.assertEqual([r["stage"] for r in by_file["a100-three-rungs"]], ["BASELINE", "BASELINE CHANGE", "OPTIMIZATION #1"])
        for name in ("mosaic-mfu-tables", "timeit-profiler"):
            self.assertTrue(any(name in n["file"] and "no training steps" in n["text"] for n in told["notes"]))
        self.assertEqual([passes["model"] for passes in told["passes"]], ["small", "medium"])
        for passes in told["passes"]:
            shown = self.place.json("profile", "passes", passes["id"])
            self.assertEqual((len(shown["rows"]), shown["batch"], shown["seq"], shown["vocab"], shown["device"]), (12, 16, 128, 10000, "cuda"))
        self.assertEqual(len(self.place.json("mfu", "--published")), 87)


class Tables(Case):
    TIMINGS = """batch_size: int = 4
2026-01-02 03:04:05,678 - INFO - Running profile for: tiny_forward_warmup_1
{
    "d_model": 64,
    "context_length": 32,
    "vocab_size": 100
}
{
    "computation": "forward",
    "warmup_steps": 1,
    "profile_steps": 3,
    "mixed_precision": false
}
{
    "computation": "forward",
    "times": [0.010, 0.011, 0.012],
    "mean_time": 0.011,
    "median_time": 0.011,
    "std_dev": 0.0008,
    "profile_steps": 3
}
"""
    UTILISATION = """| Model | SeqLen (T) | GPUType | MFU* | MFU | HFU* | HFU | Throughput (T/s) | Throughput (S/s) | ParamCount | ActCkpt | NumGPUs |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| mine1b | 2048 | 8xH100_80GB | 0.4000 | 0.4200 | 0.4000 | 0.4200 | 500000.00 | 244.1406 | 1000000000 | False | 8 |
"""

    def test_timings_of_a_script_are_passes(self):
        table = self.place.path / "timings.txt"
        table.write_text(self.TIMINGS)
        for _ in range(2):  # the second time it is there already
            [passes] = self.place.json("import", table)["passes"]
            self.assertEqual(len(self.place.json("profile", "passes")), 1)
        [row] = self.place.json("profile", "passes", passes["id"])["rows"]
        self.assertEqual((row["computation"], row["precision"], row["warmup"]), ("forward", "fp32", 1))
        self.assertAlmostEqual(row["mean_ms"], 11)
        self.assertEqual((passes["model"], passes["batch"], passes["seq"], passes["vocab"]), ("tiny", 4, 32, 100))

    def test_published_utilisation_is_beside_the_shipped_rows(self):
        table = self.place.path / "mfu.md"
        table.write_text(self.UTILISATION)
        for _ in range(2):
            self.place.json("import", table)
            rows = self.place.json("mfu", "--published")
            self.assertEqual(len(rows), 88)
        mine = rows[-1]
        self.assertEqual((mine["model"], mine["gpu"], mine["gpus"]), ("mine1b", "h100_80gb", 8))
        self.assertAlmostEqual(mine["computed"]["mfu_star"], 6e9 * 500000 / (8 * 989.4e12), places=6)
        self.assertIsNone(mine["computed"]["mfu"])  # the table doesn't have layers and width


class Projects(Case):
    def test_the_runs_of_a_file_that_is_refused(self):
        log = self.place.path / "theirs.log"
        log.write_text("".join(f"step {i} | loss {5 - i / 100:.2f} | dt 100.0ms\n" for i in range(1, 31)))
        theirs = self.place.path / "theirs.stepladder"
        self.place.json("import", log, "--db", theirs)
        database = sqlite3.connect(theirs)
        database.executescript("CREATE TRIGGER t AFTER INSERT ON steps BEGIN DELETE FROM steps; END;"
                               "CREATE VIEW endless AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n")
        database.close()
        content = theirs.read_bytes()
        code, out, err = self.place.run("runs", "--db", theirs)
        self.assertEqual(code, 1)
        self.assertIn("Import it to take its runs into your own file.", err)
        told = self.place.json("import", theirs)
        run, = told["runs"]
        self.assertEqual((run["name"], run["steps"], run["status"]), ("theirs", 30, "finished"))
        self.assertEqual(run["source_path"], str(theirs))
        self.assertEqual(theirs.read_bytes(), content)

    def test_a_file_is_not_imported_into_itself(self):
        log = self.place.path / "mine.log"
        log.write_text("step 1 | loss 2 | dt 100.0ms\n")
        self.place.json("import", log)
        code, out, err = self.place.run("import", self.place.database)
        self.assertEqual(code, 1)
        self.assertIn("is the file that its runs would go to", err)
        self.assertEqual(len(self.place.json("runs")), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
