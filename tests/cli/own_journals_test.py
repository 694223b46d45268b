#!/usr/bin/env python3
"""`--journal`: runs that are trained in one place and followed in another are the same runs."""
import json
import os
import random
import signal
import sqlite3
import time
import unittest

from program import PATIENCE_S, TINY, Workplace

SMALL = [*TINY, "--eval-every", "8", "--sample-every", "12", "--sample-tokens", "8", "--save-every", "10"]
LADDER = ["ladder", *SMALL, "--steps", "24", "--stages", "fused-adamw,mine:lr=3e-4", "--repeats", "2", "--interleave",
          "--name", "far"]

# The columns that one database alone knows.
OWN_COLUMNS = {"id", "ladder_id", "run_id", "metric_id", "parent_id", "owner_pid", "owner_start", "owner_boot"}
OF_RUNS = ("steps", "superseded_steps", "nan_steps", "lanes", "samples", "console", "profiles", "operators", "summaries")


def content(database):
    """Each run's row and all that belongs to it, by the run's uid."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=60) as connection:
        connection.row_factory = sqlite3.Row
        connection.text_factory = bytes  # samples aren't always UTF-8

        def rows(sql, *values):
            return [{name: row[name] for name in row.keys() if name not in OWN_COLUMNS}
                    for row in connection.execute(sql, values)]

        found = {}
        for run in connection.execute("SELECT id, uid, ladder_id, parent_id FROM runs").fetchall():
            found[run["uid"].decode()] = {
                "run": rows("SELECT * FROM runs WHERE id = ?", run["id"]),
                "ladder": rows("SELECT * FROM ladders WHERE id = ?", run["ladder_id"]),
                "parent": rows("SELECT uid FROM runs WHERE id = ?", run["parent_id"]),
                **{table: rows(f"SELECT * FROM {table} WHERE run_id = ?", run["id"]) for table in OF_RUNS}}
        return found


def without_numbers(value, names):
    """JSON in which runs have their names instead of their numbers, without the checkpoints beside their database."""
    if isinstance(value, dict):
        return {key: names.get(item, item) if key in ("id", "base", "ladder", "parent") and isinstance(item, int)
                else without_numbers(item, names) for key, item in value.items() if key != "checkpoints"}
    if isinstance(value, list):
        return [without_numbers(item, names) for item in value]
    return value


class OwnJournals(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.addCleanup(self.place.close)
        self.journals = self.place.path / "journals"
        self.far = self.place.path / "far.db"
        self.near = self.place.path / "near.db"
        self.temporary = self.place.path / "tmp"
        self.temporary.mkdir()
        self.place.environment["TMPDIR"] = str(self.temporary)
        self.started = []
        self.addCleanup(lambda: [process.kill() or process.communicate() for process in self.started])

    def start(self, *arguments):
        process = self.place.start(*arguments)
        self.started.append(process)
        return process

    def ok(self, *arguments):
        status, out, err = self.place.run(*arguments)
        self.assertEqual(status, 0, f"{arguments}: {err}")
        return out

    def follow_once(self):
        self.ok("follow", self.journals, "--once", "--db", self.near)

    def answers(self, database):
        """What the commands say of a database's runs, by their names."""
        say = lambda *arguments: json.loads(self.ok(*arguments, "--json", "--db", database))
        runs = say("runs")
        names = {run["id"]: run["name"] for run in runs}
        order = sorted(names, key=names.get)
        shown = [say("show", run, "--steps") for run in order]
        compared = say("compare", *order)
        return without_numbers([sorted(runs, key=lambda run: run["name"]), shown, compared], names)

    def check_same(self):
        far, near = content(self.far), content(self.near)
        self.assertEqual(sorted(far), sorted(near))
        for uid, of_run in far.items():
            for part, expected in of_run.items():
                self.assertEqual(near[uid][part], expected, part)
        self.assertEqual(self.answers(self.near), self.answers(self.far))
        return far

    def test_a_ladder_that_is_followed_while_followers_are_killed_is_the_same_ladder(self):
        dice = random.Random(1)
        trained = self.start(*LADDER, "--journal", self.journals, "--db", self.far)
        while trained.poll() is None:
            follower = self.start("follow", self.journals, "--db", self.near)
            time.sleep(dice.uniform(0.05, 0.8))
            follower.kill()
            follower.communicate()
        out, err = trained.communicate()
        self.assertEqual(trained.returncode, 0, err)
        self.follow_once()
        runs = self.check_same()
        self.assertEqual(len(runs), 6)
        for run in runs.values():
            self.assertEqual(len(run["steps"]), 24)
            self.assertEqual(run["ladder"][0]["name"], b"far")
            for part in ("samples", "operators", "summaries"):
                self.assertTrue(run[part], part)
        # Nothing is taken in twice, and a run that is followed here is not trained here.
        self.follow_once()
        self.check_same()
        ladder = json.loads(self.ok("runs", "--json", "--db", self.near))[0]["ladder"]
        for command in (("ladder", "--continue", ladder), ("train", "--resume", "1")):
            status, _, err = self.place.run(*command, "--db", self.near)
            self.assertNotEqual(status, 0)
            self.assertIn("trained elsewhere", err)
        # In the database that trained it, its journal adds nothing.
        before = content(self.far)
        self.ok("follow", self.journals, "--once", "--db", self.far)
        self.assertEqual(content(self.far), before)

    def steps_in_journals(self, folder):
        return sum(path.read_text().count('{"e":"step"') for path in folder.glob("*/rank-0.*.jsonl"))

    def until(self, condition, process):
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            self.assertIsNone(process.poll(), "it ended before it could be cut")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def losses(self, database):
        with sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=60) as connection:
            return connection.execute("SELECT rung, step, loss, val_loss, lr, grad_norm FROM latest_steps JOIN runs ON id = run_id "
                                      "ORDER BY rung, step").fetchall()

    def test_a_ladder_that_is_stopped_and_killed_is_continued_by_new_processes_from_its_journals(self):
        steps = 1200
        ladder = ["ladder", *TINY, "--steps", steps, "--eval-every", "500", "--save-every", "100", "--stages", "fused-adamw"]
        whole, cut = self.place.path / "whole", self.journals
        self.ok(*ladder, "--journal", whole)
        self.assertEqual(list(self.temporary.iterdir()), [], "the temporary database is gone")
        self.ok("follow", whole, "--once", "--db", self.far)

        first = self.start(*ladder, "--journal", cut)
        self.until(lambda: self.steps_in_journals(cut) > 150, first)
        first.send_signal(signal.SIGINT)
        _, err = first.communicate(timeout=PATIENCE_S)
        self.assertEqual(first.returncode, 130, err)
        self.assertEqual(list(self.temporary.iterdir()), [])

        before = self.steps_in_journals(cut)
        second = self.start("ladder", "--journal", cut, "--continue")
        self.until(lambda: self.steps_in_journals(cut) > before + 300, second)
        second.send_signal(signal.SIGSTOP)  # so that it doesn't end meanwhile
        status, _, err = self.place.run("ladder", "--journal", cut, "--continue")
        self.assertNotEqual(status, 0)
        self.assertIn("still trains", err)
        second.kill()
        second.communicate()

        ladder = json.loads(self.ok("ladder", "--journal", cut, "--continue", "--json"))
        self.assertEqual([run["status"] for run in ladder["runs"]], ["finished", "finished"])
        self.follow_once()
        self.assertEqual(self.losses(self.near), self.losses(self.far))
        self.assertEqual(len(self.losses(self.near)), 2 * steps)
        self.assertEqual(len(json.loads(self.ok("runs", "--json", "--db", self.near))), 2, "no run was begun twice")
        status, _, err = self.place.run("ladder", "--journal", self.place.path / "nothing", "--continue")
        self.assertNotEqual(status, 0)
        self.assertIn("no journals", err)


if __name__ == "__main__":
    unittest.main()
