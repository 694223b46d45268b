"""Copies for others: `doctor --share`."""
import contextlib
import json
import os
import socket
import sqlite3
import stat
import sys
import unittest

from program import SMALLEST, Workplace

SECRET = "s3cr3t"  # in everything that must not be in a copy


class Share(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.addCleanup(self.place.close)
        self.out = self.place.path / "shared.db"
        data = self.place.path / f"{SECRET}-home" / "book.txt"
        data.parent.mkdir()
        data.write_text("to be or not to be " * 400)
        self.place.environment["STEPLADDER_SHARE_TEST"] = SECRET
        self.place.json("train", *SMALLEST, "--steps", 30, "--data", data, "--name", "kept run")
        self.place.json("ladder", *SMALLEST, "--steps", 5, "--stages", "baseline,weight-tying")
        log = self.place.path / f"{SECRET}-logs" / "mine.log"
        log.parent.mkdir()
        log.write_text("".join(f"step {i} | loss {5 - i / 100:.3f} | dt 100.0ms | tok/sec 40960\n" for i in range(1, 30)))
        self.place.json("import", log)
        printed = f"print('step 1 | loss 2.5 | {SECRET}', flush=True)"
        self.place.run("watch", "--name", "watched", "--", sys.executable, "-c", printed, f"--api-key={SECRET}")
        self.execute("update runs set reason = ?, changed = ? where id = 1",
                     f"cannot read /home/{SECRET}/a.txt on {SECRET}-host", f"data /x/{SECRET}/b.txt -> c.txt")
        self.execute("update runs set recipe = json_set(recipe, '$.wandb_api_key', ?, '$.args', json(?)) where id = 1",
                     SECRET, json.dumps(["--token", SECRET, f"--password={SECRET}", "--lr", "0.1"]))
        self.execute("update runs set environment = json_set(environment, '$.host', ?) where id = 1", f"{SECRET}-host")
        self.execute("insert into traces(name, source_path, format, imported_at, on_gpu, has_steps, ranks, slices, host) "
                     "values(?, '', 'kineto', 1, 0, 0, 1, 0, ?)",
                     f"{SECRET}-node_7.1", f"{SECRET}-node")
        self.execute("insert into curation (run_id, tags, note) values (1, ?, ?)", f"fast,private: {SECRET}",
                     f"a good one\nprivate: {SECRET}\n{SECRET}")
        self.execute("insert into curation (run_id, tags, note) values (2, 'private', ?)", SECRET)
        self.execute("insert into curation (run_id, note) values (3, 'for all')")
        self.execute("insert into machines (alias, folder, added_at, facts) values (?, ?, 1, ?)", *[SECRET] * 3)
        self.execute("insert into far_runs (uid, alias, kind, request, asked_at) values ('a', ?, 'watch', ?, 1)",
                     SECRET, json.dumps({"command": ["x", SECRET]}))
        self.execute("insert into followed (source, run_id, bytes) values (?, 1, 1)", f"text /home/{SECRET}/log")
        self.execute("insert into settings (key, value) values (?, ?)", f"view:{SECRET}", SECRET)
        self.execute("insert into settings (key, value) values ('project', ?)", SECRET)
        self.execute("create table mine (text)")
        self.execute("insert into mine values (?)", SECRET)
        self.execute("insert into runs (name, status, created_at) values (?, 'finished', 1)", f"deleted {SECRET}")
        self.execute("insert into curation (run_id, deleted_at) select max(id), 1 from runs")
        self.execute("insert into runs (name, status, created_at, hidden) values (?, 'finished', 1, 2)", SECRET)
        self.execute("update runs set status = 'running', owner_boot = ? where name = 'mine'", SECRET)

    def execute(self, sql, *values):
        with contextlib.closing(sqlite3.connect(self.place.database)) as database, database:
            database.execute(sql, values)

    def shared(self, sql):
        with contextlib.closing(sqlite3.connect(self.out)) as database:
            return database.execute(sql).fetchall()

    def test_it_has_the_numbers_and_no_secret(self):
        said = self.place.json("doctor", "--share", self.out)
        self.assertEqual((said["out"], said["runs"]), (str(self.out), 5))
        for kind in ("runs_in_bin", "environments", "machines",
                     "far_runs", "followed", "console", "settings", "private_notes", "paths_hosts_and_secrets", "other_tables"):
            self.assertGreater(said["removed"].get(kind, 0), 0, (kind, said))
        self.assertEqual(stat.S_IMODE(self.out.stat().st_mode), 0o600)
        self.assertEqual([path.name for path in self.place.path.glob("shared.db*")], ["shared.db"])
        everything = self.out.read_bytes()
        for secret in (SECRET, socket.gethostname(), os.path.expanduser("~"), str(self.place.path)):
            if len(secret) > 4:
                self.assertNotIn(secret.encode(), everything)
        self.assertEqual(self.place.json("doctor", "--database", "--db", self.out)["sound"], True)
        own = {run["id"]: run for run in self.place.json("runs")}
        copied = {run["id"]: run for run in self.place.json("runs", "--db", self.out)}
        self.assertEqual(set(copied), set(own))
        for run, facts in copied.items():
            for figure in ("name", "steps", "loss_last", "val_loss_last", "dt_ms_median", "tokens_per_s", "mfu", "hardware"):
                self.assertEqual(facts.get(figure), own[run].get(figure), (run, figure))
        self.assertEqual(self.place.json("show", 1, "--steps", "--db", self.out)["data"],
                         self.place.json("show", 1, "--steps")["data"])
        self.assertEqual(self.shared("select reason, changed, source_path from runs where id = 1"),
                         [("cannot read a.txt on ***", "data b.txt -> c.txt", "book.txt")])
        recipe = json.loads(self.shared("select recipe from runs where id = 1")[0][0])
        self.assertEqual((recipe["data"], recipe["wandb_api_key"]), ("book.txt", "***"))
        self.assertEqual(recipe["args"], ["--token", "***", "--password=***", "--lr", "0.1"])
        self.assertEqual(self.shared("select run_id, tags, note from curation order by run_id"),
                         [(1, "fast", "a good one"), (2, "", None), (3, None, "for all")])
        self.assertEqual(self.shared("select status, reason from runs where name = 'mine'"),
                         [("interrupted", "it was still running when this copy was made")])

    def test_the_output_is_shared_when_asked(self):
        said = self.place.json("doctor", "--share", self.out, "--with-output")
        self.assertNotIn("console", said["removed"])
        self.assertIn(SECRET.encode(), self.out.read_bytes())

    def test_it_never_replaces_a_file(self):
        self.out.write_text("mine")
        status, out, err = self.place.run("doctor", "--share", self.out)
        self.assertEqual((status, out), (1, ""))
        self.assertIn(f"the copy {self.out} could not be written: it exists already", err)
        self.assertEqual(self.out.read_text(), "mine")
        self.assertEqual(len(list(self.place.path.glob("shared.db*"))), 1)
        self.assertEqual(self.place.run("doctor", "--share", self.place.database)[0], 2)
        self.assertNotEqual(self.place.run("doctor", "--share=")[0], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
