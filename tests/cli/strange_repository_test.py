"""A stranger's git repository: nothing of its configuration, its hooks or its `.git` runs a program, connects or leads
elsewhere, and what is read of it is right. The user's own filters work."""
import contextlib
import hashlib
import json
import os
import pathlib
import shlex
import shutil
import sqlite3
import struct
import subprocess
import sys
import unittest

from program import PROGRAM, Workplace

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "machines"))
from in_place_of_ssh import end_all_there, put_in_place_of_ssh  # noqa: E402

# Prints the log of a run with the commit's step time. Leaves what it sees in the checkout.
TRAIN = """
import pathlib, subprocess
step_ms = float(pathlib.Path("step_ms").read_text())
head = subprocess.run(["git", "describe", "--always", "--tags"], text=True, capture_output=True).stdout.strip()
with open({seen!r}, "a") as seen:
    seen.write(f"{{head}} {{step_ms:g}} {{pathlib.Path('shout').read_text()}}\\n")
for step in range(1, 41):
    print(f"step:{{step}}/40 train_loss:{{5 - step / 20:.4f}} train_time:{{step * step_ms:.3f}}ms step_avg:{{step_ms:.3f}}ms")
"""
HOOKS = ("post-checkout", "post-index-change", "pre-auto-gc", "reference-transaction", "post-rewrite", "fsmonitor-watchman")


class StrangeRepository(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.addCleanup(self.place.close)
        self.mark, self.seen = self.place.path / "MARK", self.place.path / "seen"
        self.repository = self.place.path / "repository"
        self.script = self.place.path / "act"
        self.script.write_text(f"#!/bin/sh\necho \"$0 $*\" >> {self.mark}\ncat\n")
        self.script.chmod(0o755)
        own = self.place.path / "gitconfig"
        own.write_text("[user]\n\tname = A\n\temail = a@example.org\n"
                       "[filter \"shouting\"]\n\tclean = tr A-Z a-z\n\tsmudge = tr a-z A-Z\n\trequired = true\n")
        self.place.environment.update(GIT_CONFIG_GLOBAL=str(own), GIT_CONFIG_SYSTEM=os.devnull)

    def git(self, *arguments, folder=None):
        return subprocess.run(["git", *map(str, arguments)], cwd=folder or self.repository, env=self.place.environment,
                              check=True, text=True, capture_output=True).stdout.strip()

    def make(self):
        """Six commits, of which the fourth is slower; then all that its configuration may name becomes our script."""
        self.repository.mkdir()
        self.git("init", "-q", "-b", "main")
        (self.repository / "train.py").write_text(TRAIN.format(seen=str(self.seen)))
        for i in range(6):
            (self.repository / "step_ms").write_text("120" if i >= 3 else "100")
            (self.repository / "notes").write_text(f"commit {i}\n")
            (self.repository / "shout").write_text(f"HELLO {i}")
            (self.repository / ".gitattributes").write_text("*.py filter=evil diff=evil\nnotes filter=evil diff=evil\n"
                                                            "shout filter=shouting\n")
            self.git("-c", "filter.evil.clean=cat", "add", "-A")
            self.git("commit", "-q", "-m", f"Commit {i}")
            if i == 0:
                self.git("tag", "first")
        part = self.place.path / "part"
        part.mkdir()
        self.git("init", "-q", folder=part)
        self.git("commit", "-q", "--allow-empty", "-m", "part", folder=part)
        self.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", part, "part")
        self.git("commit", "-q", "-m", "a submodule")
        commits = self.git("rev-list", "--reverse", "HEAD").split()
        self.bewitch(self.repository, self.repository / ".git")
        self.bewitch(self.repository / "part", self.repository / ".git" / "modules" / "part")
        self.mark.unlink(missing_ok=True)
        return commits

    def bewitch(self, folder, repository):
        act = shlex.quote(str(self.script))
        more = self.place.path / "more.config"
        more.write_text(f"[core]\n\tfsmonitor = {self.script}\n")
        settings = {"core.fsmonitor": act, "core.hooksPath": self.place.path / "hooks", "filter.evil.clean": act,
                    "filter.evil.smudge": act, "filter.evil.process": act, "filter.evil.required": "true",
                    "filter.shouting.smudge": act, "filter.shouting.clean": act, "diff.external": act,
                    "diff.evil.command": act, "diff.evil.textconv": act, "core.sshCommand": act, "core.pager": act,
                    "core.askPass": act, "core.editor": act, "core.gitProxy": act, "credential.helper": f"!{act}",
                    "pager.status": act, "pager.rev-list": act, "gpg.program": act, "gpg.ssh.program": act,
                    "log.showSignature": "true", "diff.submodule": "log", "status.submoduleSummary": "true",
                    "uploadpack.packObjectsHook": act, "protocol.allow": "always", "protocol.ext.allow": "always",
                    "remote.origin.url": f"ext::{self.script} %S", "remote.origin.uploadpack": act,
                    "remote.origin.promisor": "true", "remote.origin.partialclonefilter": "blob:none",
                    "remote.origin.vcs": "ext", "core.alternateRefsCommand": act, "submodule.part.update": f"!{act}",
                    "submodule.recurse": "true", "fetch.bundleURI": "http://127.0.0.1:9/", "color.ui": "always",
                    "trace2.eventTarget": self.mark, "include.path": more, "lfs.extension.x.clean": act,
                    "core.commentChar": "auto", "diff.noprefix": "true", "hook.x.command": act, "hook.x.event": "post-checkout"}
        for word in ("rev-parse", "rev-list", "status", "diff", "checkout", "ls-files", "log", "clone", "read-tree"):
            settings[f"alias.{word}"] = f"!{act}"
        for name, value in settings.items():
            self.git("config", name, value, folder=folder)
        self.git("config", "core.repositoryformatversion", "1", folder=folder)
        self.git("config", "extensions.worktreeConfig", "true", folder=folder)
        self.git("config", "extensions.partialClone", "origin", folder=folder)
        (repository / "config.worktree").write_text(f"[core]\n\tfsmonitor = {act}\n[filter \"evil\"]\n\tsmudge = {act}\n")
        for hooks in (repository / "hooks", self.place.path / "hooks"):
            hooks.mkdir(exist_ok=True)
            for name in HOOKS:
                shutil.copy(self.script, hooks / name)

    def run_in(self, folder, *arguments):
        process = subprocess.run([PROGRAM, *map(str, arguments)], cwd=folder,
                                 env=self.place.environment, text=True, capture_output=True)
        self.assertFalse(self.mark.exists(), self.mark.exists() and self.mark.read_text())
        return process.returncode, process.stdout, process.stderr

    def test_gate_against_a_commit(self):
        commits = self.make()
        status, out, err = self.run_in(self.repository, "record", "gate", "--against", commits[0], "--json", "--", sys.executable, "train.py")
        self.assertEqual((status, json.loads(out)["answer"]), (11, "cannot-tell"), err)  # equal times have no spread
        # The command saw the commit as a checkout of its own shows it, with the user's own filters.
        seen = {tuple(line.split(" ", 2)) for line in self.seen.read_text().splitlines()}
        self.assertIn(("first", "100", "HELLO 0"), seen)
        self.assertEqual(len(seen), 2)

    def test_gate_and_a_training(self):
        commits = self.make()
        here = self.repository
        baseline = self.place.path / "speed.json"
        gate = ("record", "gate", "--write", baseline, "--force", "--runs", 1, "--command", f"{sys.executable} train.py")
        status, _, err = self.run_in(here, *gate)
        self.assertEqual((status, json.loads(baseline.read_text())["commit"]), (0, commits[-1]), err)
        os.utime(here / "notes", (1, 1))  # the same text at another time is no change
        status, _, err = self.run_in(here, *gate)
        self.assertEqual((status, json.loads(baseline.read_text())["commit"]), (0, commits[-1]), err)
        (here / "notes").write_text("changed")
        status, _, err = self.run_in(here / "part" / "..", *gate)
        self.assertEqual((status, json.loads(baseline.read_text())["commit"]), (0, commits[-1] + "+changes"), err)
        status, _, err = self.run_in(here, "watch", "--", "echo", "step 1 | loss 2.0 | dt 1.0ms")
        self.assertEqual(status, 0, err)
        (run,) = self.place.json("runs")
        self.assertEqual(self.environment_of(run["name"])["git"], {"commit": commits[-1], "branch": "main", "dirty": True})

    def test_packing(self):
        commits = self.make()
        ssh = self.place.path / "ssh"
        self.place.environment["STEPLADDER_SSH"] = put_in_place_of_ssh(ssh)
        self.addCleanup(end_all_there, ssh)
        (self.repository / "notes").write_text("changed\n")
        status, _, err = self.run_in(self.place.path, "machines", "add", "box")
        self.assertEqual(status, 0, err)
        status, out, err = self.run_in(self.repository, "watch", "--on", "box", "--send", "--name", "sent", "--", "sh", "-c",
                                       "cat notes shout; echo; echo 'step 1 | loss 2.0 | dt 1.0ms'")
        self.assertEqual(status, 0, err)
        self.assertIn("changed\nHELLO 5", out)
        sent = self.environment_of("sent")["sent"]
        self.assertEqual((sent["commit"], sent["branch"], sent["folder"]), (commits[-1], "main", ""))
        self.assertIn("--- a/notes\n+++ b/notes\n@@ -1 +1 @@\n-commit 5\n+changed\n", sent["patch"])
        self.assertNotIn("HELLO", sent["patch"])

    def test_an_index_that_names_files_elsewhere(self):
        self.repository.mkdir()
        self.git("init", "-q", "-b", "main")
        (self.repository / "train.py").write_text("pass\n")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "first")
        secret = self.place.path / "home" / "id_rsa"
        secret.parent.mkdir()
        secret.write_text("SECRET\n")
        (self.repository / "link").symlink_to(secret.parent)
        self.place.environment["STEPLADDER_SSH"] = "/bin/false"
        self.assertEqual(self.place.run("machines", "add", "box")[0], 0)
        blob = bytes.fromhex(self.git("rev-parse", "HEAD:train.py"))
        for name in ("../home/id_rsa", str(secret), "link/id_rsa", "a/../../home/id_rsa"):
            with self.subTest(name=name):
                entry = struct.pack(">10I", 0, 0, 0, 0, 0, 0, 0o100644, 0, 0, 0) + blob + struct.pack(">H", len(name)) + name.encode()
                index = b"DIRC" + struct.pack(">II", 2, 1) + entry + bytes(8 - len(entry) % 8)
                (self.repository / ".git" / "index").write_bytes(index + hashlib.sha1(index).digest())
                status, _, error = self.run_in(self.repository, "watch", "--on", "box", "--send", "--detach", "--", "true")
                self.assertEqual(status, 1, error)
                self.assertNotIn("Traceback", error)
                self.assertEqual(list(self.place.path.glob("runs.db.machines/*/tree.tar.gz")), [], error)

    def environment_of(self, name):
        with contextlib.closing(sqlite3.connect(self.place.database)) as database:
            ((text,),) = database.execute("SELECT environment FROM runs WHERE name = ?", (name,)).fetchall()
        return json.loads(text)

    def commit_of_gate(self, folder):
        out = self.place.path / "speed.json"
        out.unlink(missing_ok=True)
        log = self.place.path / "a.log"
        log.write_text("".join(f"step:{i}/40 train_loss:3.0 train_time:{i * 100}ms step_avg:100.0ms\n" for i in range(1, 41)))
        status, _, err = self.run_in(folder, "record", "gate", "--write", out, log)
        self.assertEqual(status, 0, err)
        return json.loads(out.read_text())["commit"]

    def test_git_folders_that_lead_elsewhere(self):
        private = self.place.path / "private"
        private.mkdir()
        self.git("init", "-q", folder=private)
        (private / "secret").write_text("secret")
        self.git("add", "-A", folder=private)
        self.git("commit", "-qm", "private", folder=private)
        head = self.git("rev-parse", "HEAD", folder=private)
        self.assertEqual(self.commit_of_gate(private), head)
        strange = self.place.path / "strange"
        strange.mkdir()
        (strange / ".git").write_text(f"gitdir: {private / '.git'}\n")
        self.assertIsNone(self.commit_of_gate(strange))
        (strange / ".git").unlink()
        (strange / ".git").symlink_to(private / ".git")
        self.assertIsNone(self.commit_of_gate(strange))
        # A folder that has another repository's parts.
        (strange / ".git").unlink()
        (strange / ".git").mkdir()
        (strange / ".git" / "HEAD").write_text((private / ".git" / "HEAD").read_text())
        (strange / ".git" / "commondir").write_text(f"{private / '.git'}\n")
        self.assertIsNone(self.commit_of_gate(strange))
        (strange / ".git" / "commondir").unlink()
        for part in ("objects", "refs"):
            (strange / ".git" / part).symlink_to(private / ".git" / part)
        self.assertIsNone(self.commit_of_gate(strange))
        shutil.rmtree(strange / ".git")
        # A bare repository within a checkout is a folder like any other.
        self.git("init", "-q", "--bare", folder=strange)
        self.git("config", "core.fsmonitor", self.script, folder=strange)
        self.git("config", "core.bare", "false", folder=strange)
        self.git("config", "core.worktree", private, folder=strange)
        self.assertIsNone(self.commit_of_gate(strange))
        # Another top of the checkout: the files are still those beside .git.
        moved = self.place.path / "moved"
        shutil.copytree(private, moved)
        self.git("config", "core.worktree", self.place.path, folder=moved)
        (moved / "secret").write_text("other")
        self.assertEqual(self.commit_of_gate(moved), head + "+changes")
        # Git waits for a pipe; a training doesn't wait for git.
        self.git("config", "--unset", "core.worktree", folder=moved)
        (moved / ".git" / "HEAD").unlink()
        os.mkfifo(moved / ".git" / "HEAD")
        self.assertIsNone(self.commit_of_gate(moved))
        # Linked worktrees and submodules name their checkout.
        linked = self.place.path / "linked"
        self.git("worktree", "add", "-q", linked, folder=private)
        self.assertEqual(self.commit_of_gate(linked), head)
        super = self.place.path / "super"
        super.mkdir()
        self.git("init", "-q", folder=super)
        self.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", private, "inner", folder=super)
        self.assertEqual(self.commit_of_gate(super / "inner"), head)


if __name__ == "__main__":
    unittest.main()
