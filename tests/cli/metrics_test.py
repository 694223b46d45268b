"""Any number that a run logs: kept from logs, tables and running programs, shown, compared and exported."""
import contextlib
import csv
import io
import json
import math
import sqlite3
import sys
import unittest

from program import Workplace

LOG = """step 1 | loss 4.21 | acc: 0.10 | reward=1.5 | dt 50.1ms
step 2 | loss 4.01 | acc: 0.12 | reward=nan | dt 50.2ms
step 3 | loss 3.91 | acc: 0.15 | reward=2.5 | dt 50.3ms
{"step": 3, "eval/acc": 0.5, "eval/f1": 0.25}
step 4 | loss 3.81 | acc: 0.25 | reward=3.5 | dt 50.4ms
"""
REWARD = [[1, 1.5], [2, "NaN"], [3, 2.5], [4, 3.5]]


class Metrics(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.addCleanup(self.place.close)

    def file(self, name, text):
        path = self.place.path / name
        path.write_text(text)
        return path

    def metrics(self, run):
        return self.place.json("show", run, "--metrics")["metrics"]

    def test_a_log_keeps_what_no_step_has_a_field_for(self):
        self.place.json("import", self.file("a.log", LOG))
        metrics = self.metrics(1)
        self.assertEqual(list(metrics), ["loss", "dt_ms", "acc", "eval/acc", "eval/f1", "reward"])
        self.assertEqual(metrics["reward"], REWARD)
        self.assertEqual(metrics["eval/f1"], [[3, 0.25]])
        self.assertEqual(metrics["loss"][3], [4, 3.81])
        self.assertEqual(self.place.json("show", 1)["steps"], 4)

    def test_a_loss_of_other_data_is_no_better_loss(self):
        for name, data, slope in (("a", "owt", 100), ("b", "owt", 30), ("c", "tiny", 30)):
            folder = self.place.path / name
            folder.mkdir()
            for seed in (1, 2, 3):
                rows = [f"step {i} | loss {5 - i / slope + seed / 1000 + i % 3 / 500:.4f} | dt {50 + i % 3}ms" for i in range(1, 31)]
                (folder / f"{seed}.log").write_text(f"dataset = {data}\nseed = {seed}\n" + "\n".join(rows) + "\n")
            self.place.json("import", folder)
        same, other = self.place.json("compare", "1", "4", "7", "--metric", "loss", "--lower")["metric"]["runs"][1:]
        self.assertEqual((same["verdict"], same["doubt"]), ("better", None))
        self.assertEqual((other["verdict"], other["needed_runs"]), ("cannot-tell", None))
        self.assertIn("other data", other["doubt"])
        self.assertIn("run 7: nothing follows from it: the losses can't be compared", self.place.run("compare", "1", "7", "--metric", "loss")[1])

    def test_a_run_of_very_many_metrics_is_shown_in_part(self):
        self.place.json("import", self.file("a.log", LOG))
        many = 20_000
        with contextlib.closing(sqlite3.connect(self.place.database)) as database, database:
            database.executemany("insert into metrics (id, run_id, name) values (?, 1, ?)",
                                 [(100 + i, f"layer/{i:05}") for i in range(many)])
            database.executemany("insert into metric_values (metric_id, step, value) values (?, ?, ?)",
                                 [(100 + i, step, i + step) for i in range(many - 1) for step in (1, 2)])
        status, out, error = self.place.run("show", 1, "--metrics")
        self.assertEqual(status, 0, error)
        self.assertIn("layer/00990", out)
        self.assertNotIn("layer/01000", out)
        self.assertIn(f"and {many + 4 - 1000:,} more metrics; --json lists all", out)
        metrics = self.metrics(1)
        self.assertEqual(len(metrics), many + 6)
        self.assertEqual(metrics["layer/00007"], [[1, 8], [2, 9]])
        self.assertEqual(metrics[f"layer/{many - 1:05}"], [])
        table = self.place.path / "all.csv"
        self.assertEqual(self.place.run("export", 1, "--format", "csv", "--metrics", "long", "--out", table)[0], 0)
        with open(table) as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), sum(map(len, metrics.values())))
        self.assertIn({"run_id": "1", "name": "a", "metric": "layer/00007", "step": "2", "value": "9", "at_unix_s": ""}, rows)
        status, _, error = self.place.run("export", 1, "--format", "csv", "--metrics", "wide", "--force", "--out", table)
        self.assertEqual(status, 2)
        self.assertIn("run 1 has 20,004 metrics, and a table may have 16,384 columns; `--metrics long`", error)
        status, _, error = self.place.run("compare", 1, 1, "--metric", "nothing")
        self.assertEqual(status, 2)

    def test_runs_are_filtered_by_metrics_and_listed_with_them(self):
        self.place.json("import", self.file("a.log", LOG))
        self.place.json("import", self.file("b.log", LOG.replace("acc: 0.25", "acc: 0.35")))
        ids = lambda *words: [run["id"] for run in self.place.json("runs", "--filter", " ".join(words))]
        self.assertEqual(ids("last(acc) >= 0.3"), [2])
        self.assertEqual(ids("acc<0.3", "min(reward)=1.5", "max(reward)>3"), [1])
        self.assertEqual(ids("at(reward, 2)=nan", "at(reward, 3) < 3", "\"eval/f1\" = 0.25"), [1, 2])
        self.assertEqual(ids("at(eval/acc, 2)=null"), [1, 2])
        self.assertEqual(ids("median(loss) < 3.9"), [])
        columns = "id,min(acc),acc,status,at(reward, 2)"
        self.assertEqual(self.place.json("runs", "--columns", columns),
                         [{"id": 1, "min(acc)": 0.1, "last(acc)": 0.25, "status": "finished", "at(reward, 2)": "NaN"},
                          {"id": 2, "min(acc)": 0.1, "last(acc)": 0.35, "status": "finished", "at(reward, 2)": "NaN"}])
        status, out, _ = self.place.run("runs", "--columns", "name,max(reward),at(acc, 9)", "--filter", "b")
        self.assertEqual((status, out.split()), (0, ["name", "max(reward)", "at(acc,", "9)", "b", "3.5", "-"]))
        for option, wrong, said in (("--filter", "nothing(acc)<3", "nothing(acc)"), ("--filter", "min(akk)<3", "did you mean acc?"),
                                    ("--filter", "name~b min(acc", "at character 15"), ("--columns", "id,,name", "at character 4"),
                                    ("--columns", "id,colour", "colour")):
            status, _, error = self.place.run("runs", option, wrong)
            self.assertEqual(status, 2, wrong)
            self.assertIn(said, error)

    def test_json_lines_without_any_loss_are_a_run_too(self):
        lines = "".join(json.dumps({"step": i, "reward": i / 4, "entropy": math.inf if i == 2 else 1.0}) + "\n"
                        for i in range(1, 4))
        self.place.json("import", self.file("rl.jsonl", lines))
        metrics = self.metrics(1)
        self.assertEqual(metrics["reward"], [[1, 0.25], [2, 0.5], [3, 0.75]])
        self.assertEqual(self.place.json("show", 1)["last_step"], 3)

    def test_a_table_goes_out_and_comes_back_value_by_value(self):
        table = "step,loss,val_acc,gpu,note\n1,4.0,0.1,50,x\n2,3.9,,inf,y\n3,3.8,0.30000000000000004,NaN,z\n"
        self.place.json("import", self.file("a.csv", table))
        self.place.json("import", self.file("b.log", LOG))
        first = self.metrics(1)
        self.assertEqual(first["gpu"], [[1, 50], [2, "Infinity"], [3, "NaN"]])
        self.assertEqual(first["val_acc"], [[1, 0.1], [3, 0.30000000000000004]])
        self.assertNotIn("note", first)
        for form in ("long", "wide"):
            out = self.place.path / f"{form}.csv"
            status, _, error = self.place.run("export", 1, 2, "--metrics", form, "--out", out)
            self.assertEqual(status, 0, error)
            imported = self.place.json("import", out)
            again = [run["id"] for run in imported["runs"]]
            self.assertEqual([self.metrics(run) for run in again], [first, self.metrics(2)], form)
        rows = list(csv.DictReader(io.StringIO((self.place.path / "wide.csv").read_text())))
        self.assertEqual([row["reward"] for row in rows], ["", "", "", "1.5", "NaN", "2.5", "3.5"])
        status, _, error = self.place.run("export", 1, "--metrics", "long", "--format", "json", "--out", "-")
        self.assertEqual(status, 2)
        self.assertIn("--metrics has no effect with --format json", error)

    def test_a_metric_is_compared_with_the_baselines(self):
        for name, factor in (("a", 1), ("b", 2)):
            self.place.json("import", self.file(f"{name}.csv", "step,loss,acc\n" + "".join(
                f"{i},{5 - i / 10},{i * factor / 100}\n" for i in range(1, 11))))
        metric = self.place.json("compare", 1, 2, "--metric", "acc")["metric"]
        self.assertEqual((metric["name"], metric["runs"][0]["last"], metric["runs"][1]["last"]), ("acc", 0.1, 0.2))
        self.assertAlmostEqual(metric["runs"][1]["delta"], 0.1)
        self.assertAlmostEqual(metric["runs"][1]["factor"], 2)
        loss = self.place.json("compare", 1, 2, "--metric", "loss")["metric"]
        self.assertEqual((loss["direction"], loss["runs"][1]["best_delta"]), ("lower", 0))
        status, out, _ = self.place.run("compare", 1, 2, "--metric", "acc")
        self.assertEqual(status, 0)
        self.assertIn("2.00", out)
        status, _, error = self.place.run("compare", 1, 2, "--metric", "val/acc")
        self.assertEqual(status, 2)
        self.assertIn("none of these runs has 'val/acc'; they have acc, loss", error)

    def test_a_watched_program_is_kept_in_the_same_way(self):
        program = f"import sys\nsys.stdout.write({LOG!r})"
        status, _, error = self.place.run("watch", "--name", "w", "--", sys.executable, "-c", program)
        self.assertEqual(status, 0, error)
        metrics = self.metrics(1)
        self.assertEqual(metrics["reward"], REWARD)
        self.assertEqual(metrics["eval/acc"], [[3, 0.5]])


if __name__ == "__main__":
    unittest.main()
