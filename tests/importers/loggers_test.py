#!/usr/bin/env python3
"""Real trainers with the real loggers of wandb, Trackio, TensorBoard and MLflow: watch, follow and import give one run.

    python loggers_test.py BUILD_FOLDER/stepladder [--install]

A pair is skipped if its libraries aren't installed. --install runs it in an environment of its own that has all of them
(loggers/requirements.txt) and takes torch from this Python.
"""
import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = HERE / "loggers" / "program.py"
STEPLADDER = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None
SKIPPED = 77
FIELDS = ("step", "loss", "val_loss", "dt_ms", "tokens")
PATIENCE_S = 600


class Loggers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "run").mkdir()
        self.environment = {**os.environ, "XDG_DATA_HOME": folder.name, "XDG_CACHE_HOME": folder.name,
                            "XDG_STATE_HOME": folder.name, "XDG_CONFIG_HOME": folder.name}

    def stepladder(self, database, *arguments):
        done = subprocess.run([STEPLADDER, "--db", self.folder / database, *map(str, arguments)], capture_output=True,
                              text=True, timeout=PATIENCE_S, cwd=self.folder, env=self.environment)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return done

    def only_run(self, database):
        runs = json.loads(self.stepladder(database, "runs", "--json").stdout)
        self.assertEqual(len(runs), 1, runs)
        shown = json.loads(self.stepladder(database, "show", runs[0]["id"], "--steps", "--json").stdout)
        shown["metrics"] = json.loads(self.stepladder(database, "show", runs[0]["id"], "--metrics", "--json").stdout)["metrics"]
        return shown

    def three_ways(self, trainer, logger):
        follow = subprocess.Popen([STEPLADDER, "--db", self.folder / "follow.db", "follow", self.folder / "run"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=self.environment)
        try:
            watched = self.stepladder("watch.db", "watch", "--name", "w", "--", sys.executable, PROGRAM, trainer, logger, "run")
        finally:
            follow.send_signal(signal.SIGINT)
            follow.communicate(timeout=PATIENCE_S)
        self.stepladder("follow.db", "follow", "--once", "run")  # what it had not seen yet
        self.stepladder("import.db", "import", "run")
        expected = {int(step): loss for step, loss in json.loads((self.folder / "run" / "expected.json").read_text()).items()}
        return self.only_run("watch.db"), self.only_run("follow.db"), self.only_run("import.db"), expected, watched.stderr

    def check(self, trainer, logger):
        watch, follow, imported, expected, err = self.three_ways(trainer, logger)
        steps = [[row[field] for field in FIELDS] for row in imported["data"]]
        self.assertEqual([[row[field] for field in FIELDS] for row in follow["data"]], steps)
        self.assertEqual(follow["metrics"], imported["metrics"])
        self.assertEqual((follow["name"], follow["tokens_per_step"]), (imported["name"], imported["tokens_per_step"]))

        def losses(run, field="loss"):
            return {row["step"]: row[field] for row in run["data"] if row[field] is not None}

        self.assertEqual(losses(imported).keys(), expected.keys())
        for step, loss in expected.items():
            self.assertAlmostEqual(losses(imported)[step], loss, places=6)  # TensorBoard keeps a float32
        if trainer == "hf":
            self.assertEqual(imported["tokens_per_step"], 64)
        # What is printed may add steps and times, and a loss of its own; what the store has is the store's.
        self.assertIn("takes in", err)
        self.assertEqual(losses(watch), losses(imported), err)
        self.assertEqual({step: value for step, value in losses(watch, "val_loss").items()
                          if step in losses(imported, "val_loss")}, losses(imported, "val_loss"))
        for name, points in imported["metrics"].items():
            if name not in ("dt_ms", "tokens_per_s", "lr"):
                self.assertEqual(watch["metrics"].get(name), points, name)
        # A step takes the program's pause and a little more, by whatever clock.
        for run in (watch, follow):
            if run["dt_ms_median"] is not None:
                self.assertGreater(run["dt_ms_median"], 49)
                self.assertLess(run["dt_ms_median"], 500)


MODULES = {"nanogpt": ["torch"], "hf": ["torch", "transformers", "accelerate"], "lightning": ["torch", "lightning"]}
PAIRS = [(trainer, logger) for trainer in MODULES for logger in ("wandb", "trackio", "tensorboard", "mlflow")
         if (trainer, logger) != ("lightning", "trackio")]  # it has no such logger
for _trainer, _logger in PAIRS:
    def test(self, trainer=_trainer, logger=_logger):
        missing = [module for module in [*MODULES[trainer], logger] if importlib.util.find_spec(module) is None]
        if missing:
            self.skipTest(f"not installed: {', '.join(missing)}")
        self.check(trainer, logger)
    setattr(Loggers, f"test_{_trainer}_with_{_logger}", test)


def install():
    """Runs this file in an environment that has the libraries; 77 if they can't be installed."""
    from peer_stores_test import environment
    try:
        folder = environment(HERE / "loggers" / "requirements.txt", takes_torch=True)
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"skipped: the libraries could not be installed: {error}")
        return SKIPPED
    return subprocess.run([folder / "bin/python", __file__, sys.argv[1]]).returncode


if __name__ == "__main__":
    if "--install" in sys.argv:
        sys.exit(install())
    del sys.argv[1]
    unittest.main()
