"""Each local run of a git checkout keeps its uncommitted changes, without secrets."""
import os
import pathlib
import signal
import subprocess
import time
import unittest

from program import PATIENCE_S, SMALLEST, Workplace

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECRETS = (".env", ".env.local", "prod.pem", "id_rsa", "deploy.key", "config/credentials.json", ".aws/config", "hf_token.txt")
STEPS = 'for i in range(20): print(f"step {i} loss {3 - i / 10} dt {10.0 + i % 3}ms", flush=True)\n'


def wait_until(what):
    deadline = time.time() + PATIENCE_S
    while not what() and time.time() < deadline:
        time.sleep(0.05)


class Patches(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.place.environment.update(GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_SYSTEM=os.devnull)
        self.repository = self.place.path / "repository"
        self.repository.mkdir()
        (self.repository / "train.py").write_text(STEPS)
        (self.repository / "settings.yaml").write_text("lr: 1\n")
        self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "First")

    def tearDown(self):
        self.place.close()

    def git(self, *arguments):
        return subprocess.run(["git", "-c", "user.name=A", "-c", "user.email=a@example.org", *arguments],
                              cwd=self.repository, env=self.place.environment, check=True, text=True,
                              capture_output=True).stdout

    def run_here(self, *arguments):
        process = self.place.start(*arguments, cwd=self.repository)
        out, err = process.communicate(timeout=PATIENCE_S)
        return process.returncode, out, err

    def edit(self):
        (self.repository / "settings.yaml").write_text("lr: 2\n")
        (self.repository / "new file.py").write_text("x = 1\ny = 2")
        (self.repository / "empty.py").write_text("")
        (self.repository / "large.txt").write_text("a line\n" * 100_000)
        (self.repository / "weights.bin").write_bytes(bytes(1000))
        for name in SECRETS:
            path = self.repository / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("TOP SECRET\n")

    def check(self, run):
        shown = self.place.json("show", run)
        patch = self.place.json("show", run, "--patch")["patch"]
        self.assertEqual(shown["patch_bytes"], len(patch.encode()))
        self.assertNotIn("SECRET", patch)
        self.assertLessEqual({*SECRETS, "large.txt", "weights.bin"}, set(shown["patch_left_out"]))
        self.assertEqual(self.place.run("show", run, "--patch")[1], patch)
        self.assertIn("--patch", self.place.run("show", run)[1])
        self.git("stash", "-q", "-u")
        subprocess.run(["git", "apply", "-"], cwd=self.repository, input=patch, text=True, check=True)
        self.assertEqual((self.repository / "settings.yaml").read_text(), "lr: 2\n")
        self.assertEqual((self.repository / "new file.py").read_text(), "x = 1\ny = 2")
        self.assertEqual((self.repository / "empty.py").read_text(), "")
        self.git("reset", "-q", "--hard")
        self.git("clean", "-qfd")
        self.git("stash", "pop", "-q")

    def test_what_was_uncommitted_is_kept(self):
        self.edit()
        self.assertEqual(self.run_here("train", *SMALLEST, "--steps", "3")[0], 0)
        self.check("latest")
        status, _, err = self.run_here("watch", "--", "python3", "train.py")
        self.assertEqual(status, 0, err)
        self.check("latest")
        self.assertEqual(len(self.place.json("runs")), 2)

    def test_follow_keeps_that_of_the_process_that_writes(self):
        script = ("import os, sys, time\nimport stepladder\nrun = stepladder.init()\nfor i in range(1000):\n"
                  "    stepladder.log({'loss': 3.0 - i / 1000}); time.sleep(0.05)\n    if os.path.exists('../over'): break\n")
        (self.repository / "train.py").write_text(script)
        self.git("commit", "-qam", "Logs")
        self.edit()
        (self.repository / ".git" / "info" / "exclude").write_text("stepladder/\n")
        environment = {**self.place.environment, "PYTHONPATH": str(ROOT / "python"), "STEPLADDER_DIR": str(self.place.path / "journals")}
        for option, has_patch in (([], True), (["--no-patch"], False)):
            (self.place.path / "over").unlink(missing_ok=True)
            training = subprocess.Popen(["python3", "train.py"], cwd=self.repository, env=environment)
            try:
                wait_until(lambda: list((self.place.path / "journals").rglob("*.jsonl")))
                follow = self.place.start("follow", self.place.path / "journals", *option)
                wait_until(lambda: self.place.json("runs", "--filter", "status=running"))
                time.sleep(2)
            finally:
                (self.place.path / "over").write_text("")
                training.wait(PATIENCE_S)
            follow.send_signal(signal.SIGINT)
            follow.communicate(timeout=PATIENCE_S)
            if has_patch:
                self.check("latest")
            else:
                self.assertEqual(self.place.json("show", "latest")["patch_bytes"], 0)

    def test_off_and_nothing(self):
        self.assertEqual(self.run_here("train", *SMALLEST, "--steps", "3")[0], 0)
        self.assertEqual(self.place.json("show", "latest")["patch_bytes"], 0)
        self.edit()
        self.assertEqual(self.run_here("train", *SMALLEST, "--steps", "3", "--no-patch")[0], 0)
        shown = self.place.json("show", "latest", "--patch")
        self.assertEqual((shown["patch_bytes"], shown["patch_left_out"], shown["patch"]), (0, [], None))

    def test_a_secret_that_git_tracks(self):
        (self.repository / "client_secret.json").write_text("old\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "A mistake")
        (self.repository / "client_secret.json").write_text("TOP SECRET\n")
        self.assertEqual(self.run_here("train", *SMALLEST, "--steps", "3")[0], 0)
        shown = self.place.json("show", "latest", "--patch")
        self.assertEqual((shown["patch_left_out"], shown["patch"]), (["client_secret.json"], None))

    def test_large_binaries_leave_room_for_the_text(self):
        for name in ("a.bin", "b.bin"):
            (self.repository / name).write_bytes(os.urandom(7 << 20))
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "Weights")
        for name in ("a.bin", "b.bin"):
            (self.repository / name).write_bytes(os.urandom(7 << 20))
        (self.repository / "settings.yaml").write_text("lr: 2\n")
        self.assertEqual(self.run_here("watch", "--", "python3", "train.py")[0], 0)
        shown = self.place.json("show", "latest", "--patch")
        self.assertEqual(sorted(shown["patch_left_out"]), ["a.bin", "b.bin"])
        self.assertIn("+lr: 2", shown["patch"])

    def test_what_git_cannot_read_is_unknown(self):
        (self.repository / ".git" / "index").write_bytes(b"no index")
        self.assertEqual(self.run_here("watch", "--", "python3", "train.py")[0], 0)
        shown = self.place.json("show", "latest", "--patch")
        self.assertEqual((shown["patch_bytes"], shown["patch"]), (None, None))
        self.assertIn("git failed", self.place.run("show", "latest", "--patch")[2])

    def test_too_long_a_patch_is_named(self):
        (self.repository / "train.py").write_text("# a line\n" * 200_000)
        self.assertEqual(self.run_here("train", *SMALLEST, "--steps", "3")[0], 0)
        shown = self.place.json("show", "latest", "--patch")
        self.assertGreater(shown["patch_bytes"], 1 << 20)
        self.assertIsNone(shown["patch"])


if __name__ == "__main__":
    unittest.main()
