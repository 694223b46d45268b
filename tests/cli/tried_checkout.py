"""A git checkout with a made-up training, for the tests of `stepladder try`."""
import json
import os
import subprocess
import unittest

from program import PATIENCE_S, Workplace

# Prints a metric with known noise, and counts its runs outside the checkout.
TRAIN = """
import os, pathlib, random, sys, time
GAIN = 0.0
MEMORY = 100
noise = random.Random(f"{os.environ['STEPLADDER_RUN']} 7")
runs = pathlib.Path(os.environ["RUNS"])
with runs.open("a") as file:
    print(os.environ["STEPLADDER_TRY"], file=file)
while os.path.exists(os.environ["RUNS"] + ".wait"):
    time.sleep(0.01)
print("memory_mb:", MEMORY)
print(f"val_bpb: {0.9979 - GAIN + noise.gauss(0, 0.0005):.6f}")
"""

KEPT, WORSE, CANNOT_TELL, INVALID, GUARD, FAILED = 0, 10, 11, 12, 13, 14


class TriedCheckout(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.repository = self.place.path / "repository"
        self.repository.mkdir()
        self.counted = self.place.path / "counted"
        self.place.environment.update(GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_SYSTEM=os.devnull,
                                      RUNS=str(self.counted))

    def tearDown(self):
        self.place.close()

    def git(self, *arguments):
        return subprocess.run(["git", "-c", "user.name=A", "-c", "user.email=a@example.org", *arguments],
                              cwd=self.repository, env=self.place.environment, check=True, text=True,
                              capture_output=True).stdout.strip()

    def commit(self, text=TRAIN):
        (self.repository / "train.py").write_text(text)
        self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "First")

    def run_here(self, *arguments, folder="."):
        process = self.place.start("try", *arguments, cwd=self.repository / folder)
        out, err = process.communicate(timeout=PATIENCE_S)
        return process.returncode, out, err

    def json(self, *arguments, expect=0):
        status, out, err = self.run_here(*arguments, "--json")
        self.assertEqual(status, expect, f"{arguments}: {out}{err}")
        return json.loads(out)

    def begin(self, *options, text=TRAIN, command=("python3", "train.py")):
        self.commit(text)
        return self.begin_here(*options, command=command)

    def begin_here(self, *options, command=("python3", "train.py")):
        status, out, err = self.run_here("begin", "--json", *options, "--", *command)
        self.assertEqual(status, 0, out + err)
        return json.loads(out)

    def change(self, old, new, file="train.py"):
        path = self.repository / file
        text = path.read_text()
        self.assertIn(old, text)
        path.write_text(text.replace(old, new))
