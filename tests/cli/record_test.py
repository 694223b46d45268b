"""`stepladder record` on generated logs: figures, verdicts, exit statuses, flags, and bad input."""
import json
import math
import pathlib
import sqlite3
import statistics
import unittest
import xml.etree.ElementTree
import zlib

from program import Workplace

SCRIPT = "import os\nimport torch\n\ndef main():\n    return 1  # the rate\n"
FIELDS = {"n", "mean", "std", "p", "time_mean_s", "time_median_s", "baseline_time_mean_s", "speedup", "ci95", "needed_n",
          "verdict", "flags", "excluded"}
LOSSES = [3.2781, 3.2769, 3.2790, 3.2775, 3.2772, 3.2779]


def log_text(loss, step_ms=97.5, offset=0.0, hour=12, steps=300, printed=None, script=SCRIPT):
    lines = [script, "=" * 100, "Running PyTorch 2.9.0 compiled for CUDA 12.6", f"Wed Sep  3 {hour}:58:00 2025",
             "| NVIDIA-SMI 560.35.03   Driver Version: 560.35.03   CUDA Version: 12.6 |",
             *(f"|   {i}  NVIDIA H100 80GB HBM3   On  |   00000000:19:0{i}.0 Off |      0 |" for i in range(8)), "=" * 100]
    for step in range((printed or steps) + 1):
        clock = f"train_time:{step * step_ms:.0f}ms step_avg:{step_ms:.2f}ms"
        if step:
            lines.append(f"step:{step}/{steps} {clock}")
        if step == steps:
            lines.append(f"step:{step}/{steps} val_loss:{loss:.4f} {clock}")
        elif step % 50 == 0:
            lines.append(f"step:{step}/{steps} val_loss:{10 - step / 50 + offset:.4f} {clock}")
    return "\n".join(lines) + "\n"


class Record(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()

    def tearDown(self):
        self.place.close()

    def pool(self, name, losses, step_ms, offset):
        folder = self.place.path / name
        folder.mkdir()
        for i, loss in enumerate(losses):
            (folder / f"{i}.txt").write_text(log_text(loss, step_ms + 0.05 * i, offset + i / 1000, 10 + i))
        return folder

    def judge(self, *arguments):
        status, out, err = self.place.run("record", *arguments, "--json")
        self.assertIn(status, (0, 11, 12, 13), err)
        return status, json.loads(out)

    def test_a_record_and_what_spoils_it(self):
        runs = self.pool("runs", LOSSES, 97.5, 0)
        before = self.pool("before", [3.2788, 3.2779, 3.2791, 3.2782], 101, 0.5)
        against = ("--baseline", before, "--rule", "modded-nanogpt-1")
        status, claim = self.judge(runs, *against)
        self.assertEqual((status, claim["verdict"], claim["flags"], claim["excluded"]), (0, "record", [], []), claim)
        self.assertLessEqual(FIELDS, claim.keys())
        self.assertEqual(claim["n"], 6)
        self.assertAlmostEqual(claim["mean"], statistics.mean(LOSSES), places=12)
        self.assertAlmostEqual(claim["std"], statistics.stdev(LOSSES), places=12)
        times = [round(300 * (97.5 + 0.05 * i)) / 1000 for i in range(6)]
        theirs = [round(300 * (101 + 0.05 * i)) / 1000 for i in range(4)]
        self.assertAlmostEqual(claim["time_mean_s"], statistics.mean(times), places=9)
        self.assertAlmostEqual(claim["time_median_s"], statistics.median(times), places=9)
        self.assertAlmostEqual(claim["speedup"], statistics.mean(theirs) / statistics.mean(times), places=9)
        self.assertTrue(1 < claim["ci95"][0] < claim["speedup"] < claim["ci95"][1])
        self.assertTrue(0 < claim["p"] < 0.01)
        self.assertFalse(self.place.database.exists(), "nothing is imported")

        # In words, without --json, with the same status.
        status, out, _ = self.place.run("record", runs, *against)
        self.assertEqual(status, 0)
        self.assertIn("A record: ", out)

        # Without a baseline the rule can't be met; without a rule there is no p.
        self.assertEqual(self.judge(runs, "--rule", "modded-nanogpt-1")[1]["verdict"], "cannot-tell")
        status, claim = self.judge(runs)
        self.assertEqual((status, claim["p"], claim["speedup"]), (11, None, None))
        self.assertEqual(self.judge(before, *against[:2], "--rule", "modded-nanogpt-2")[0], 13)

        # Unfinished, empty and foreign logs are listed and not counted; other files aren't read.
        (runs / "cut.txt").write_text(log_text(3.1, printed=120))
        (runs / "empty.txt").write_text("")
        (runs / "foreign.log").write_bytes(bytes(range(256)) * 50)
        (runs / "README.md").write_text("step:1/1 val_loss:1 train_time:1ms")
        status, claim = self.judge(runs, *against)
        self.assertEqual((status, claim["n"]), (12, 6))
        self.assertEqual([flag["id"] for flag in claim["flags"]], ["unfinished-logs"])
        why = {pathlib.Path(it["file"]).name: it["why"] for it in claim["excluded"]}
        self.assertEqual(set(why), {"cut.txt", "empty.txt", "foreign.log"})
        self.assertEqual(why["cut.txt"], "ends at step 120 of 300; its last val_loss is that of step 100")
        for name in why:
            (runs / name).unlink()

        # A copy, and a log of another script.
        (runs / "copy.txt").write_text((runs / "0.txt").read_text())
        other = log_text(3.2777, 97.6, 0.2, 17, script=SCRIPT.replace("1", "2"))
        (runs / "other.txt").write_text(other)
        status, claim = self.judge(runs, *against)
        self.assertEqual(status, 12)
        self.assertEqual([flag["id"] for flag in claim["flags"]], ["same-curve", "several-scripts"])
        self.assertIn("- return 1 | + return 2", claim["flags"][1]["why"])

        # The script, and what changed.
        status, out, _ = self.place.run("record", "source", runs / "0.txt")
        self.assertEqual((status, out.strip()), (0, SCRIPT.strip()))
        status, out, _ = self.place.run("record", "source", runs / "0.txt", "--out", self.place.path / "a.py")
        self.assertEqual((status, (self.place.path / "a.py").read_text().strip()), (0, SCRIPT.strip()))
        status, out, _ = self.place.run("record", "diff", runs / "0.txt", runs / "other.txt")
        self.assertEqual((status, out), (0, "- 5:     return 1  # the rate\n+ 5:     return 2  # the rate\n"))
        (runs / "commented.txt").write_text(log_text(3.2, script=SCRIPT.replace("the rate", "a rate")))
        diff = self.place.json("record", "diff", runs / "0.txt", runs / "commented.txt")
        self.assertEqual([line["kind"] for line in diff], ["removed", "added"])
        self.assertEqual(self.place.json("record", "diff", runs / "0.txt", runs / "commented.txt", "--ignore-comments"), [])

    def test_more_gpus_than_nvidia_smi_shows(self):
        before = self.pool("before", [3.2788, 3.2779, 3.2791, 3.2782], 101, 0.5)
        for i, line in enumerate(("world_size=16", "torchrun --nnodes=2 --nproc_per_node=8 train_gpt.py")):
            runs = self.pool(f"runs{i}", LOSSES, 97.5, 0)
            for log in runs.iterdir():
                log.write_text(log.read_text().replace("Running PyTorch", line + "\nRunning PyTorch"))
            status, claim = self.judge(runs, "--baseline", before, "--rule", "modded-nanogpt-1")
            self.assertEqual((status, [flag["id"] for flag in claim["flags"]]), (12, ["gpu-counts"]), claim)

    def test_submission(self):
        runs = self.pool("runs", LOSSES, 97.5, 0)
        before = self.pool("before", [3.2788, 3.2779, 3.2791, 3.2782], 101, 0.5)
        (runs / "cut.txt").write_text(log_text(3.1, printed=120))
        out = self.place.path / "submission"
        asked = ("record", "export", runs, "--baseline", before, "--rule", "modded-nanogpt-1", "--out", out)
        status, _, err = self.place.run(*asked)
        self.assertEqual((status, out.exists()), (12, False))
        self.assertIn("unfinished-logs: ", err)
        why = "the machine was restarted | <b>"
        status, _, err = self.place.run(*asked, "--explain", f"unfinished-logs={why}")
        self.assertEqual(status, 0, err)

        # Read back: the logs are the same bytes, and judging the folder's own gives what it says.
        made = json.loads((out / "submission.json").read_text())
        for name, folder in (("logs", runs), ("baseline", before)):
            self.assertEqual({it.name: it.read_bytes() for it in (out / name).iterdir()},
                             {it.name: it.read_bytes() for it in folder.iterdir()})
        self.assertEqual({it["file"] for it in made["files"] if not it["counts"]}, {"logs/cut.txt"})
        for it in made["files"]:
            data = (out / it["file"]).read_bytes()
            self.assertEqual((it["bytes"], int(it["crc32"], 16)), (len(data), zlib.crc32(data)))
        self.assertEqual(made["explanations"], {"unfinished-logs": why})
        arguments = [str(out / word) if word in ("logs", "baseline") else word for word in made["check"].split()[2:]]
        again = self.judge(*arguments)[1]
        same = lambda claim: {key: value for key, value in claim.items() if key not in ("excluded", "flags")}
        self.assertEqual(same(again), same(made["claim"]))
        readme = (out / "README.md").read_text()
        self.assertIn("| mean val_loss | 3.27777 | 3.27850 |", readme)
        self.assertIn("unfinished-logs", readme)
        self.assertNotIn("<b>", readme)
        statistics_text = (out / "statistics.md").read_text()
        t = (made["claim"]["mean"] - 3.28) / (made["claim"]["std"] / math.sqrt(6))
        self.assertIn(f"= {t:.4f}", statistics_text)
        figures = {it.name: xml.etree.ElementTree.parse(it) for it in (out / "figures").iterdir()}
        self.assertEqual(set(figures), {"losses.svg", "p.svg", "times.svg"})
        self.assertIn("target", "".join(figures["losses.svg"].getroot().itertext()))

        for more, code, said in (((), 2, "exists already"), (("--explain", "unfinished-logs"), 2, "ID=TEXT"),
                                 (("--explain", "unfinished-logs=a", "--explain", "no-script=b"), 2, "no such flag")):
            status, _, err = self.place.run(*asked[:-1], out if not more else out / "new",
                                            *(more or ("--explain", "unfinished-logs=x")))
            self.assertEqual(status, code, err)
            self.assertIn(said, err)

    def test_a_pool_takes_no_file_through_a_link(self):
        """A folder from elsewhere may hold links to private files, and files that are no logs: none is in a claim."""
        private = self.place.path / "private.txt"
        private.write_text("a secret\n")
        runs = self.pool("runs", LOSSES, 97.5, 0)
        before = self.pool("before", [3.2788, 3.2779, 3.2791, 3.2782], 101, 0.5)
        elsewhere = self.pool("elsewhere", [3.2], 90, 0.7) / "0.txt"
        for folder in (runs, before):
            (folder / "passwd.txt").symlink_to(private)
            (folder / "id_rsa").symlink_to("../private.txt")
            (folder / "fast.txt").symlink_to(elsewhere)
            (folder / "notes.txt").write_text("a secret, with no step\n")
        (runs / "cut.txt").write_text(log_text(3.1, printed=120))
        against = ("--baseline", before, "--rule", "modded-nanogpt-1")
        status, claim = self.judge(runs, *against)
        self.assertEqual((claim["n"], len(claim["excluded"])), (6, 9))
        self.assertEqual({it["why"] for it in claim["excluded"] if "fast" in it["file"]},
                         {"is a link, which a pool doesn't follow; name the log itself"})
        out = self.place.path / "claim"
        status, _, err = self.place.run("record", "export", runs, *against, "--out", out, "--explain", "unfinished-logs=x")
        self.assertEqual(status, 0, err)
        self.assertEqual({it.name for it in (out / "logs").iterdir()}, {*(f"{i}.txt" for i in range(6)), "cut.txt"})
        self.assertEqual({it.name for it in (out / "baseline").iterdir()}, {f"{i}.txt" for i in range(4)})
        for file in out.rglob("*"):
            self.assertNotIn("a secret", file.read_text() if file.is_file() else "", file)

        # What the user names is read, a link too; a folder of links alone says why it has no log.
        links = self.place.path / "links"
        links.mkdir()
        (links / "fast.txt").symlink_to(elsewhere)
        self.assertEqual(self.judge(links / "fast.txt")[1]["n"], 1)
        for command in (("record", links), ("record", "gate", links, "--out", self.place.path / "gate.json")):
            status, _, err = self.place.run(*command)
            self.assertEqual(status, 1, err)
            self.assertIn("links", err)

    def test_trade_of_steps_for_loss(self):
        for name, steps, losses in (("short", 300, LOSSES), ("long", 400, [loss - 0.005 for loss in LOSSES]),
                                    ("candidate", 350, [loss - 0.006 for loss in LOSSES])):
            (self.place.path / name).mkdir()
            for i, loss in enumerate(losses):
                (self.place.path / name / f"{i}.log").write_text(log_text(loss, 100 + 0.1 * i, i / 1000, steps=steps))
        short, long, candidate = (self.place.path / name for name in ("short", "long", "candidate"))
        trade = self.place.json("record", "trade", short, long)
        self.assertAlmostEqual(trade["metric_per_step"]["value"], -0.00005, places=9)
        self.assertAlmostEqual(trade["s_per_step"]["value"], 0.10025, places=6)
        self.assertIsNone(trade["at"])
        trade = self.place.json("record", "trade", long, short, "--at", "3.275")
        low, high = trade["time_at_s"]["ci95"]
        self.assertTrue(30 < low < trade["time_at_s"]["value"] < high < 40)
        self.assertFalse(trade["extrapolated"])
        status, out, _ = self.place.run("record", "trade", short, long, "--candidate", candidate, "--json")
        trade = json.loads(out)
        self.assertEqual((status, trade["candidate"]["n"], trade["extrapolated"]), (0, 6, True))
        self.assertGreater(trade["speedup_at"]["ci95"][0], 1)
        status, out, _ = self.place.run("record", "trade", short, long, "--candidate", short)
        self.assertEqual(status, 11, out)
        self.assertIn("speed-up   at equal val_loss", out)
        for arguments, said in (((short, short), "two step counts"), ((short, self.place.path / "none"), "none")):
            status, _, err = self.place.run("record", "trade", *arguments)
            self.assertEqual(status, 1)
            self.assertIn(said, err)

    def test_runs_of_the_database(self):
        self.place.database.touch()
        self.place.json("runs")
        database = sqlite3.connect(self.place.database)
        database.execute("insert into ladders (id, name, source, created_at) values (1, 'tests', 'import', 0)")
        for run, loss in enumerate([3.25, 3.26, 3.27], 1):
            database.execute("insert into runs (id, name, status, source, created_at, tokens_per_step, params, device, "
                             "hardware, precision, rung, repeat, ladder_id) values (?, ?, 'finished', 'import', 1000, 10, 10, "
                             "'cuda', 'NVIDIA A100', 'bf16', 0, ?, 1)", (run, f"r{run}", run))
            database.executemany("insert into steps (run_id, step, loss, val_loss, dt_ns, tokens) values (?, ?, 4, ?, ?, 10)",
                                 [(run, step, loss if step == 20 else None, 1e8 + run * 1e6) for step in range(1, 21)])
        database.commit()
        database.close()
        status, claim = self.judge("1", "2", "r3", "--rule", "modded-nanogpt-3")
        for names, n in ((("filter:name=r1",), 1), (("filter:val_loss_last<3.265",), 2),
                         (("1", "filter:val_loss_last<3.265"), 2),  # each run counts once
                         (("rung:tests/0",), 3), (("rung:1/0", "--baseline", "filter:r1"), 3)):
            self.assertEqual(self.judge(*names)[1]["n"], n, names)
        self.assertEqual(claim["n"], 3, claim)
        self.assertAlmostEqual(claim["mean"], 3.26)
        self.assertAlmostEqual(claim["time_mean_s"], 2.04)
        self.assertEqual((status, [flag["id"] for flag in claim["flags"]]), (12, ["no-script"]))

    def test_bad_input_is_named(self):
        empty = self.place.path / "empty"
        (empty / "inside").mkdir(parents=True)
        rules = pathlib.Path(self.place.environment["XDG_CONFIG_HOME"]) / "stepladder" / "rules"
        rules.mkdir(parents=True)
        (rules / "bad.json").write_text('{"title": "Bad", "metric": "speed"}')
        log = self.place.path / "log.txt"
        log.write_text("step:1/1 val_loss:3.2 train_time:5ms\n")
        for arguments, status, parts in (
                ((), 2, ["folder of logs"]),
                ((empty,), 1, [str(empty), "subfolders"]),
                ((self.place.path / "missing",), 1, ["missing does not exist"]),
                (("7",), 1, ["7"]),
                (("rung:1/0",), 1, ["rung:1/0", "database"]),
                ((log, "--rule", "nothing"), 1, ["--rule", "nothing", "modded-nanogpt-1"]),
                ((log, "--rule", "bad"), 1, ["bad.json", '"metric"', "val_bpb"]),
                ((log, "--plan", "0"), 2, ["--plan"]),
                (("source", log), 1, ["log.txt embeds no script"]),
                (("source", self.place.path / "none.txt"), 1, ["none.txt"])):
            got, _, err = self.place.run("record", *arguments)
            self.assertEqual(got, status, (arguments, err))
            for part in parts:
                self.assertIn(part, err, arguments)
        status, claim = self.judge(log, "--rule", "modded-nanogpt-1")
        self.assertEqual((claim["n"], claim["std"], claim["p"], claim["ci95"]), (1, None, None, None))
        self.assertTrue(math.isclose(claim["mean"], 3.2))

    def test_rules_of_the_user_go_first(self):
        rules = pathlib.Path(self.place.environment["XDG_CONFIG_HOME"]) / "stepladder" / "rules"
        rules.mkdir(parents=True)
        (rules / "modded-nanogpt-1.json").write_text(json.dumps(
            {"title": "Mine", "metric": "val_loss", "direction": "lower", "target": 4, "test": "t", "alpha": 0.05,
             "source": "me", "date": "2026-01-01"}))
        status, claim = self.judge(self.pool("runs", LOSSES, 97.5, 0), "--rule", "modded-nanogpt-1")
        self.assertEqual((status, claim["verdict"], claim["target"]), (0, "record", 4))


if __name__ == "__main__":
    unittest.main()
