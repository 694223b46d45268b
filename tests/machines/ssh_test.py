#!/usr/bin/env python3
"""stepladder-far over a real ssh: noisy logins, other shells, and links that break. Skipped where machines.py can't work."""
import os
import pathlib
import shlex
import shutil
import signal
import sys
import time
import unittest

from machines import Sshd, require
from talk import FAR, Talk, events_of, of_kind, output_of, wait_for

COUNTER = "i=0; while [ $i -lt {n} ]; do echo line $i; i=$((i+1)); sleep 0.01; done"
KEEPER = "keeper/rank-0.1.jsonl"


def over_ssh(box, *options):
    """As this side starts a talker: a shell of POSIX prints a marker, whatever the login shell is and says."""
    script = f"echo MARKER; exec {shlex.quote(str(FAR))} talk --folder {shlex.quote(str(box.home / 'far'))} {' '.join(options)}"
    return [str(box.ssh), "-T", "-a", "-x", "-o", "BatchMode=yes", "--", box.alias,
            "exec /bin/sh -c " + shlex.quote(script)]


class SshTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.box = cls.enterClassContext(Sshd(bashrc="echo welcome to the cluster\nprintf 'no line end'; echo oops >&2\n"))

    def talk(self, *options, box=None, files=None):
        talk = Talk(None, command=over_ssh(box or self.box, *options), files=files)
        self.addCleanup(lambda: talk.process.poll() is None and talk.kill())
        return talk

    def talkers(self):
        return [line for line in self.box.processes_there("stepladder-far").values() if " talk " in line and "/bin/sh" not in line]

    def test_noisy_login(self):
        talk = self.talk()
        hello = talk.do("hello", version=1)
        self.assertEqual((hello["host"], hello["writable"]), ("box", True))
        self.assertEqual(talk.lines[0], b"welcome to the cluster\n")
        run = talk.start(["sh", "-c", "echo $HOME"])
        self.assertEqual(talk.ended(run)["host"], "box")
        self.assertEqual(talk.close(), 0)
        wait_for(lambda: not self.talkers(), "the talker's end")

    def test_other_shells(self):
        for shell in ("/bin/dash", "/bin/tcsh", "/usr/bin/fish", "/usr/bin/zsh"):
            if not pathlib.Path(shell).exists():
                continue
            with self.subTest(shell), Sshd(shell=shell) as box:
                talk = self.talk(box=box)
                self.assertEqual(talk.do("hello", version=1)["host"], "box")
                talk.close()

    def test_broken_link_and_killed_ssh(self):
        files = {}
        talk = self.talk("--silence", "3", files=files)
        run = talk.start(["sh", "-c", COUNTER.format(n=1500)])
        talk.do("follow", runs={run: {}})
        wait_for(lambda: (run, KEEPER) in files)
        self.box.link_down()
        try:
            # Nobody tells the far side; it ends by itself after its silence. The run goes on.
            wait_for(lambda: not self.talkers(), "the talker's end without a link")
            self.assertEqual(len(self.box.processes_there("stepladder-far")), 1)
            time.sleep(1)
        finally:
            self.box.link_up()
        talk.kill()
        talk = self.talk(files=files)
        for _ in range(3):
            talk.do("follow", runs={run: {KEEPER: len(files[run, KEEPER])}})
            before = len(files[run, KEEPER])
            wait_for(lambda: len(files[run, KEEPER]) > before or talk.state(run)["phase"] == "ended")
            talk.kill()  # ssh itself
            self.assertEqual(talk.problems, [])
            wait_for(lambda: not self.talkers(), "the talker's end")
            talk = self.talk(files=files)
        talk.do("follow", runs={run: {KEEPER: len(files[run, KEEPER])}})
        wait_for(lambda: any(s["phase"] == "ended" for s in talk.states.get(run, [])))
        there = (self.box.home / "far" / "runs" / run / KEEPER).read_bytes()
        self.assertEqual(files[run, KEEPER], there)
        self.assertEqual(output_of(there), "".join(f"line {i}\n" for i in range(1500)).encode())
        self.assertEqual(talk.close(), 0)
        wait_for(lambda: not self.box.processes_there("stepladder-far"), "an empty machine")

    def test_clock_and_old_keeper_of_another_host(self):
        talk = self.talk()
        run = talk.start(["sleep", "1000"])
        wait_for(lambda: talk.state(run)["phase"] == "running")
        # Another node of the same shared folder: it can't see the keeper, but hears it.
        here = Talk(self.box.home / "far")
        self.assertEqual((here.state(run)["phase"], here.state(run)["host"]), ("running", "box"))
        here.do("signal", run=run, signal="terminate")  # through the folder
        self.assertEqual(talk.ended(run)["status"], "stopped")
        here.close()
        talk.close()


if __name__ == "__main__":
    require()
    if not FAR.exists():
        print(f"skipped: {FAR} wasn't built")
        sys.exit(77)
    unittest.main()
