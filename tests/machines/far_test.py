#!/usr/bin/env python3
"""stepladder-far over pipes: runs that outlive their links, journals that arrive whole, and hostile requests.

STEPLADDER_FAR names another program to test, e.g. one with sanitizers.
"""
import base64
import io
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import zlib

from talk import FAR, PATIENCE_S, Refused, Talk, events_of, new_run, of_kind, output_of, wait_for

# Prints N lines, and logs as many to a journal of its own, then waits for FILE.
LOGGER = """
import json, os, sys, time, zlib
folder = os.environ["STEPLADDER_DIR"] + "/mine"
os.makedirs(folder)
with open(folder + "/rank-0.1.jsonl", "wb", buffering=0) as journal:
    for i in range(int(sys.argv[1])):
        text = json.dumps({"e": "log", "s": i, "t": time.time(), "v": {"loss": i / 7}}).encode()
        journal.write(b"%s\\t%08x\\n" % (text, zlib.crc32(text)))
        print("step", i, "\\xe9", flush=True)
        time.sleep(0.002)
while len(sys.argv) > 2 and not os.path.exists(sys.argv[2]):
    time.sleep(0.02)
"""

# What Slurm is asked for must be one value of one option each.
HOSTILE_WORDS = ("--wrap=id", "-x", "-", "a b", "a\nb", "a\0b", "a%b", "a;b", "$(id)", "`id`", "a/b", "a=b", "'", "\u00e9", "a" * 201, 5, ["a"])
HOSTILE_WISHES = [{name: word} for name in ("partition", "account") for word in HOSTILE_WORDS] + [
    {"time": word} for word in (*HOSTILE_WORDS, "tomorrow", "1,2", "1" * 33)] + [
    {"gpus": word} for word in (*(word for word in HOSTILE_WORDS if word != 5), "1,license:9", -1)] + [
    {name: number} for name in ("nodes", "tasks_per_node", "signal_s", "at_once") for number in (-1, 2**40, 1.5, "1", "--wrap=id")] + [
    {"options": options} for options in (["--wrap=id"], ["--output=/tmp/x"], ["--export=ALL,A=b"], ["x"], "--wrap=id", {"a": 1}, 7)]


def line(**event):
    text = json.dumps(event).encode()
    return b"%s\t%08x\n" % (text, zlib.crc32(text))


def processes_of(folder):
    """(pid, command) of processes whose command line names the folder."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if str(folder) in command and state != "Z":
                found.append((int(entry.name), command))
    return found


class FarTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="stepladder-far-")
        self.addCleanup(self.temporary.cleanup)
        self.path = pathlib.Path(self.temporary.name)
        self.folder = self.path / "far"
        self.addCleanup(self.end_all)  # before the folder is removed
        self.talks = []

    def end_all(self):
        for talk in self.talks:
            if talk.process.poll() is None:
                talk.kill()
            talk.process.stdin.close()
            talk.process.stdout.close()
        for pid, command in processes_of(self.path):
            if pid != os.getpid():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass

    def talk(self, *options, **fields):
        talk = Talk(self.folder, *options, **fields)
        self.talks.append(talk)
        return talk

    def run_folder(self, run):
        return self.folder / "runs" / run

    def journal(self, run, attempt=1):
        return self.run_folder(run) / "keeper" / f"rank-0.{attempt}.jsonl"

    def gate(self):
        """A file for which a program waits."""
        return self.path / "go"

    # ---- What it says -------------------------------------------------------------------------------------------------

    def test_says_what_it_is(self):
        talk = self.talk()
        self.assertEqual(talk.line(), {"stepladder-far": 1, "version": talk.do("hello", version=1)["program"]})
        hello = talk.do("hello", version=1)
        self.assertEqual((hello["version"], hello["writable"], hello["why"]), (1, True, None))
        self.assertEqual(hello["folder"], str(self.folder))
        self.assertEqual(hello["host"], os.uname().nodename)
        self.assertLess(abs(hello["time"] - time.time()), 60)
        with self.assertRaisesRegex(Refused, "version 1 only"):
            talk.do("hello", version=2)
        self.assertEqual(talk.do("ping"), {})
        self.assertEqual(talk.close(), 0)
        version = subprocess.run([FAR, "--version"], capture_output=True, text=True)
        self.assertEqual(version.stdout, f"stepladder-far {hello['program']}\n")
        for arguments in ([], ["talk", "--folder", "x"], ["talk", "--silence", "0"], ["nothing"], ["rank", "x"]):
            self.assertEqual(subprocess.run([FAR, *arguments], capture_output=True).returncode, 2, arguments)

    def test_reports_load_and_gpus(self):
        programs = self.path / "bin"
        programs.mkdir()
        fake = programs / "nvidia-smi"
        fake.write_text("#!/bin/sh\necho '0, GPU-1f, 37, 1024, 81559, 51, NVIDIA H100, 80GB'\n"
                        "echo '1, GPU-2f, [N/A], 0, 81559, [N/A], Other'\n")
        fake.chmod(0o755)
        environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
        talk = self.talk(environment=environment)
        report = talk.do("report")
        self.assertEqual(report["gpus"], [
            {"index": 0, "name": "NVIDIA H100, 80GB", "uuid": "GPU-1f", "load": 0.37, "memory": 1024 * 2**20,
             "memory_total": 81559 * 2**20, "temperature": 51.0},
            {"index": 1, "name": "Other", "uuid": "GPU-2f", "load": None, "memory": 0.0, "memory_total": 81559 * 2**20,
             "temperature": None}])
        self.assertGreater(report["memory_total"], report["memory_free"])
        self.assertGreater(report["cores"], 0)
        talk.close()
        fake.write_text("#!/bin/sh\necho no driver >&2\nexit 9\n")
        talk = self.talk(environment=environment)
        report = talk.do("report")
        self.assertEqual((report["gpus"], report["gpu_reason"]), ([], "nvidia-smi: no driver"))

    def programs(self, **scripts):
        """The environment of a talker that finds these programs first: the texts of shell scripts."""
        folder = self.path / "programs"
        folder.mkdir(exist_ok=True)
        for name, text in scripts.items():
            (folder / name).write_text("#!/bin/sh\n" + text + "\n")
            (folder / name).chmod(0o755)
        return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}

    def test_reports_what_a_logout_does(self):
        for busctl, linger, said in (("echo b true", "no", {"kills": True, "lingers": False}),
                                     ("echo b true", "yes", {"kills": True, "lingers": True}),
                                     ("echo b false", "no", {"kills": False, "lingers": False}),
                                     ("echo no bus >&2; exit 1", "no", {"kills": None, "lingers": False})):
            talk = self.talk(environment=self.programs(busctl=busctl, loginctl=f"echo {linger}"))
            self.assertEqual(talk.do("report")["logout"], said)
            talk.close()

    # ---- Slurm's commands, by stand-ins: slurm_test.py has the real ones ----------------------------------------------

    SINFO = '[ "$1" = --version ] && echo slurm 23.02.1 && exit\necho "gpu*|2-00:00:00|3/4/1/8|gpu:a100:4(S:0-1)"\n' \
            'echo "gpu*|2-00:00:00|0/2/0/2|gpu:h100:8"\necho "cpu|infinite|10/0/0/10|(null)"'

    def test_a_busy_cluster_is_counted_there_and_asked_seldom(self):
        squeue = f'echo "$@" >>{self.path}/asked\n' \
                 'awk \'BEGIN { for (i = 0; i < 50000; i++) print i "|" (i % 5 ? "RUNNING" : "PENDING") "|n1|" ' \
                 '(i % 10 ? "gpu" : "gpu,cpu") "|" 4242 "|a|strange|name|Priority" }\''
        environment = self.programs(sinfo=self.SINFO, squeue=squeue, scontrol="echo 'AccountingStorageType = accounting_storage/slurmdbd'")
        talk = self.talk(environment=environment)
        numbers = [talk.send("slurm") for _ in range(20)]
        found = [talk.answer(number) for number in numbers]
        self.assertEqual((self.path / "asked").read_text().count("\n"), 1)
        for each in found:
            self.assertEqual((each["available"], each["version"], each["accounting"]), (True, "slurm 23.02.1", True))
            self.assertEqual((each["running"], each["pending"]), (40000, 10000))
            self.assertLess(abs(each["now"] - each["time"]), PATIENCE_S)
            gpu, cpu = each["partitions"]
            self.assertEqual(gpu, {"name": "gpu", "default": True, "time_limit": "2-00:00:00", "nodes": 10, "idle": 6, "allocated": 3,
                                   "gpus": 48, "running": 40000, "pending": 10000})
            self.assertEqual((cpu["nodes"], cpu["gpus"], cpu["running"], cpu["pending"]), (10, 0, 0, 5000))
        talk.close()
        talk = self.talk(environment=self.programs(squeue="echo slurm_load_jobs error: Unable to contact slurm controller >&2; exit 1"))
        found = talk.do("slurm")
        self.assertEqual((found["available"], found["running"], found["partitions"][0]["pending"]), (True, None, None))
        self.assertIn("Unable to contact", found["reason"])

    def test_the_end_of_a_job_as_the_accounting_tells_it(self):
        for text, state, nodes in (("CANCELLED by 1000|None assigned", "CANCELLED", ""), ("OUT_OF_MEMORY|gpu[03-04]", "OUT_OF_MEMORY", "gpu[03-04]"),
                                   ("TIMEOUT|n1\nTIMEOUT|n1", "TIMEOUT", "n1"), ("NODE_FAIL|n7", "NODE_FAIL", "n7")):
            environment = self.programs(sbatch="echo '77;cluster'", squeue="true", scontrol="echo Invalid job id specified >&2; exit 1",
                                        sacct=f"case \"$*\" in *--jobs=77*) printf '%b\\n' '{text}';; esac")
            talk = self.talk(environment=environment)
            run = talk.start(["true"], slurm={})
            found = talk.ended(run)
            self.assertEqual((found["phase"], found["job"]["id"], found["job"]["state"], found["job"]["nodes"]), ("gone", "77", state, nodes))
            talk.close()
        talk = self.talk(environment=self.programs(sacct="echo 'Slurm accounting storage is disabled' >&2; exit 1"))
        run = talk.start(["true"], slurm={})
        found = wait_for(lambda: (lambda s: s if s["reason"] else None)(talk.state(run)))
        self.assertEqual((found["phase"], found["reason"]), ("unknown", "Slurm has forgotten the job, and its accounting is off."))

    def test_repeats_are_one_submission(self):
        environment = self.programs(sbatch=f'echo "$@" >>{self.path}/submitted; echo 500', scontrol="exit 1", sacct="exit 1",
                                    squeue="printf '500_%s|PENDING||main|'$(id -u)'|stepladder-x-1|Priority\\n' 1 2 3")
        talk = self.talk(environment=environment)
        repeats = [new_run() for _ in range(3)]
        fields = dict(name="", command=["true"], slurm={"at_once": 2}, repeats=repeats)
        for run in (repeats[0], *repeats):  # the first one twice
            self.assertEqual(talk.do("start", run=run, **fields)["run"], run)
        ((submitted,),) = [[line] for line in (self.path / "submitted").read_text().splitlines()]
        self.assertIn("--array=1-3%2", submitted)
        for task, run in enumerate(repeats, 1):
            found = wait_for(lambda run=run: (lambda s: s if s["job"]["state"] else None)(talk.state(run)))
            self.assertEqual((found["job"]["id"], found["phase"]), (f"500_{task}", "queued"))
            self.assertIn(f"\n{task}) run={run};;\n", (self.run_folder(repeats[0]) / "job.sh").read_text())
        for wrong in ({"repeats": [new_run()]}, {"repeats": repeats[:1] * 2}, {"repeats": ["../x"]}, {"repeats": 1}, {"slurm": None}, {"number": 2}):
            with self.assertRaises(Refused, msg=wrong):
                talk.do("start", **{"run": repeats[0], **fields, **wrong})

    # ---- Runs ---------------------------------------------------------------------------------------------------------

    def test_keeps_what_a_program_prints_and_how_it_ends(self):
        talk = self.talk()
        run = talk.start(["sh", "-c", "echo out; echo err >&2; printf '\\377\\000half'; echo $GREETING; pwd; exit 3"],
                         env={"GREETING": "hej"})
        state = talk.ended(run)
        self.assertEqual((state["phase"], state["status"], state["code"]), ("ended", "failed", 3))
        self.assertEqual(state["reason"], "The program exited with status 3.")
        data = self.journal(run).read_bytes()
        self.assertEqual(output_of(data), b"out\nerr\n\xff\0halfhej\n%s/work\n" % bytes(self.run_folder(run)))
        events, good = events_of(data)
        self.assertEqual(good, len(data))
        self.assertEqual([e["e"] for e in events if e["e"] != "out"], ["run", "program", "end"])
        self.assertEqual((events[0]["uid"], events[0]["attempt"], events[0]["v"]), (run, 1, 1))
        self.assertEqual((self.run_folder(run) / "keeper" / "uid").read_text().strip(), run)
        self.assertEqual((self.run_folder(run) / "request.json").stat().st_mode & 0o077, 0)

        run = talk.start(["true"], folder="/")
        self.assertEqual(talk.ended(run)["status"], "finished")
        run = talk.start([self.path / "missing program"])
        self.assertRegex(talk.ended(run)["reason"], "missing program' cannot be started: No such file")
        run = talk.start(["true"], folder="/missing folder")
        self.assertRegex(talk.ended(run)["reason"], "/missing folder cannot be entered")
        run = talk.start(["sh", "-c", "kill -SEGV $$"])
        self.assertEqual((talk.ended(run)["code"], talk.ended(run)["status"]), (139, "failed"))
        # Secrets of the command line are hidden in the journal, which travels.
        run = talk.start(["true", "--api-key", "verysecretvalue"])
        talk.ended(run)
        self.assertEqual(of_kind(events_of(self.journal(run).read_bytes())[0], "run")[0]["argv"], ["true", "--api-key", "***"])
        self.assertEqual(len(talk.do("runs")["runs"]), 6)
        first = talk.do("runs", most=2)
        self.assertTrue(first["more"])
        rest = talk.do("runs", after=first["runs"][-1]["run"])
        self.assertEqual((len(rest["runs"]), rest["more"]), (4, False))

    def test_signals(self):
        talk = self.talk()
        talker = self.talk()
        script = "trap 'echo saved; exit 130' INT; echo ready; while :; do sleep 0.02; done"
        run = talk.start(["sh", "-c", script])
        wait_for(lambda: b"ready" in output_of(self.journal(run).read_bytes()))
        talk.do("signal", run=run, signal="pause")
        wait_for(lambda: talk.state(run)["paused"])
        self.assertTrue(talker.state(run)["paused"])  # another connection knows it too
        talk.do("signal", run=run, signal="continue")
        wait_for(lambda: not talk.state(run)["paused"])
        talk.do("signal", run=run, signal="stop")
        state = talk.ended(run)
        self.assertEqual((state["status"], state["code"]), ("stopped", 130))
        self.assertIn("asked to stop", state["reason"])
        self.assertIn(b"saved\n", output_of(self.journal(run).read_bytes()))
        self.assertEqual(talk.do("signal", run=run, signal="kill")["phase"], "ended")  # nothing to do

        run = talk.start(["sh", "-c", "trap '' INT TERM; echo ready; while :; do sleep 0.02; done"])
        wait_for(lambda: b"ready" in output_of(self.journal(run).read_bytes()))
        with self.assertRaisesRegex(Refused, "hasn't ended"):
            talk.do("forget", run=run)
        with self.assertRaisesRegex(Refused, "must be stop"):
            talk.do("signal", run=run, signal="HUP")
        talk.do("signal", run=run, signal="terminate")
        talk.do("signal", run=run, signal="kill")
        self.assertEqual((talk.ended(run)["status"], talk.ended(run)["code"]), ("stopped", 137))
        talk.do("forget", run=run)
        wait_for(lambda: not any(run in name.name for name in (self.folder / "runs").iterdir()))
        with self.assertRaisesRegex(Refused, "There is no run"):
            talk.state(run)

    def test_wishes_of_another_machine_reach_the_keeper(self):
        talk = self.talk()
        run = talk.start(["sleep", "1000"])
        # As a talker on another node of a shared folder leaves it.
        control = self.run_folder(run) / "control"
        control.mkdir()
        (control / "1.1").write_text("stop")
        self.assertEqual(talk.ended(run)["status"], "stopped")

    def test_starts_once(self):
        first, second = self.talk(), self.talk()
        for _ in range(5):
            run = new_run()
            fields = dict(run=run, name="twice", command=["sh", "-c", f"echo x >>{self.path}/{run}; sleep 0.1"])
            numbers = [(talk, talk.send("start", **fields)) for talk in (first, second, first)]
            for talk, number in numbers:
                self.assertEqual(talk.answer(number)["run"], run)
            self.assertEqual(first.ended(run)["status"], "finished")
            self.assertEqual(second.do("start", **fields)["phase"], "ended")
            self.assertEqual((self.path / run).read_text(), "x\n")
            self.assertEqual(len(list((self.run_folder(run) / "keeper").glob("rank-*"))), 1)

    def test_a_start_that_was_cut_off_is_made_up_for(self):
        talk = self.talk()
        run = new_run()
        fields = dict(run=run, name="", command=["true"])
        number = talk.send("start", **fields)
        wait_for(lambda: (self.run_folder(run) / "request.json").exists())
        talk.kill()
        again = self.talk()
        self.assertIn(again.do("start", **fields)["phase"], ("starting", "running", "ended"))
        self.assertEqual(again.ended(run)["phase"], "ended")
        self.assertEqual(len(list((self.run_folder(run) / "keeper").glob("rank-*"))), 1)
        self.assertGreater(number, 0)

    def test_starts_again_as_the_next_attempt(self):
        talk = self.talk()
        run = talk.start(["sh", "-c", "echo one; exit 1"])
        talk.ended(run)
        talk.start(["sh", "-c", "echo two"], run=run, number=2)
        self.assertEqual(talk.ended(run)["attempt"], 2)
        self.assertEqual((output_of(self.journal(run).read_bytes()), output_of(self.journal(run, 2).read_bytes())),
                         (b"one\n", b"two\n"))
        self.assertEqual(talk.do("start", run=run, name="", command=["false"], number=2)["status"], "finished")
        with self.assertRaisesRegex(Refused, "at most one more"):
            talk.start(["true"], run=run, number=4)
        talk.start(["sleep", "100"], run=run, number=3)
        with self.assertRaisesRegex(Refused, "hasn't ended"):
            talk.start(["true"], run=run, number=4)
        talk.do("signal", run=run, signal="kill")
        talk.ended(run)

    def test_tree_is_unpacked(self):
        talk = self.talk()
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            entry = tarfile.TarInfo("src/train.sh")
            entry.size, entry.mode = 17, 0o755
            tar.addfile(entry, io.BytesIO(b"#!/bin/sh\necho ok"))
        data = packed.getvalue()
        run = new_run()
        half = len(data) // 2
        self.assertEqual(talk.do("put", run=run, name="a/tree.tar.gz", at=0, data=base64.b64encode(data[:half]).decode()),
                         {"size": half})
        with self.assertRaisesRegex(Refused, f"has {half} bytes"):
            talk.do("put", run=run, name="a/tree.tar.gz", at=1, data="AAAA")
        self.assertEqual(talk.do("put", run=run, name="a/tree.tar.gz"), {"size": half})
        talk.do("put", run=run, name="a/tree.tar.gz", at=half, data=base64.b64encode(data[half:]).decode())
        with self.assertRaisesRegex(Refused, "was not sent"):
            talk.start(["./src/train.sh"], run=run, tree="a/missing.tar.gz")
        self.assertEqual(talk.do("runs")["runs"], [])
        talk.start(["./src/train.sh"], run=run, tree="a/tree.tar.gz")
        self.assertEqual(talk.ended(run)["status"], "finished")
        self.assertEqual(output_of(self.journal(run).read_bytes()), b"ok\n")
        run = new_run()
        talk.do("put", run=run, name="bad", at=0, data=base64.b64encode(b"no archive").decode())
        talk.start(["true"], run=run, tree="bad")
        self.assertEqual(talk.ended(run)["reason"], "The code that was sent could not be unpacked.")

    # ---- What dies ----------------------------------------------------------------------------------------------------

    def test_follows_through_twenty_killed_talkers(self):
        files = {}
        talk = self.talk(files=files)
        run = talk.start([sys.executable, "-c", LOGGER, "1500", self.gate()])
        names = ("keeper/rank-0.1.jsonl", "journals/mine/rank-0.1.jsonl")
        for _ in range(20):
            talk.do("follow", runs={run: {name: len(files.get((run, name), b"")) for name in names}})
            before = sum(map(len, files.values()))
            wait_for(lambda: sum(map(len, files.values())) > before or (self.gate()).exists())
            talk.kill()
            self.assertEqual(talk.problems, [])
            talk = self.talk(files=files)
        self.gate().touch()
        talk.do("follow", runs={run: {name: len(files.get((run, name), b"")) for name in names}})
        wait_for(lambda: any(s["phase"] == "ended" for s in talk.states.get(run, [])))
        for name in names:
            wanted = (self.run_folder(run) / name).read_bytes()
            self.assertEqual(files[run, name], wanted)
            self.assertEqual(events_of(wanted)[1], len(wanted))
        self.assertEqual(output_of(files[run, names[0]]), "".join(f"step {i} \xe9\n" for i in range(1500)).encode())
        self.assertEqual([e["s"] for e in of_kind(events_of(files[run, names[1]])[0], "log")], list(range(1500)))
        self.assertEqual(talk.problems, [])
        # From the middle of a line, too.
        talk.files.clear()
        talk.files[run, names[0]] = wanted = self.journal(run).read_bytes()[:1234]
        talk.do("follow", runs={run: {names[0]: len(wanted)}})
        wait_for(lambda: len(files[run, names[0]]) == self.journal(run).stat().st_size)
        self.assertEqual(files[run, names[0]], self.journal(run).read_bytes())

    def test_killed_keeper(self):
        talk = self.talk()
        run = talk.start(["sleep", "1000"])
        state = wait_for(lambda: (lambda s: s if s["phase"] == "running" else None)(talk.state(run)))
        keeper = of_kind(events_of(self.journal(run).read_bytes())[0], "run")[0]["pid"]
        os.kill(keeper, signal.SIGKILL)
        # The program goes on, so the run isn't over; it can still be stopped.
        wait_for(lambda: "keeper was killed" in talk.state(run)["reason"])
        self.assertEqual(talk.state(run)["phase"], "running")
        talk.do("signal", run=run, signal="stop")
        wait_for(lambda: talk.state(run)["phase"] == "gone")
        self.assertNotIn(state["pid"], [pid for pid, _ in processes_of("sleep")])
        self.assertIsNone(talk.state(run)["status"])

    def test_restarted_machine(self):
        talk = self.talk()
        run = talk.start(["true"])
        talk.ended(run)
        events, _ = events_of(self.journal(run).read_bytes())
        boot = "00000000-0000-0000-0000-000000000000"
        self.journal(run).write_bytes(b"".join(line(**{**e, "boot": boot} if e["e"] == "run" else e) for e in events[:-1]))
        other = self.talk()
        self.assertEqual((other.state(run)["phase"], other.state(run)["reason"]), ("gone", "The machine was restarted."))

    def test_leaves_only_keepers(self):
        talk = self.talk("--silence", "2")
        run = talk.start(["sleep", "1000"])
        self.assertEqual(talk.process.wait(timeout=PATIENCE_S), 0)  # silence
        left = processes_of(self.folder)
        self.assertEqual(len(left), 1, left)
        self.assertIn("keep", left[0][1])
        self.assertEqual(os.listdir(f"/proc/{left[0][0]}/cwd"), os.listdir("/"))
        self.assertEqual(os.getsid(left[0][0]) == os.getsid(0), False)
        # No end of a pipe of ours is open in it, so that ssh can end.
        targets = [os.readlink(f"/proc/{left[0][0]}/fd/{n}") for n in os.listdir(f"/proc/{left[0][0]}/fd")]
        self.assertEqual(sum(t == "/dev/null" for t in targets), 3, targets)
        self.assertEqual(sum(t.startswith("pipe:") for t in targets), 1, targets)  # the program's output
        # A reader that is gone ends a talker too.
        talk = self.talk()
        talk.do("ping")
        os.close(os.dup(talk.process.stdin.fileno()))
        self.assertEqual(talk.close(), 0)
        talk = self.talk()
        talk.do("signal", run=run, signal="kill")
        talk.ended(run)
        talk.close()
        wait_for(lambda: processes_of(self.folder) == [])

    def test_output_after_the_end_of_input(self):
        requests = "".join(json.dumps({"id": i, "do": "ping"}) + "\n" for i in range(3))
        done = subprocess.run([FAR, "talk", "--folder", self.folder], input=requests, capture_output=True, text=True,
                              timeout=PATIENCE_S)
        lines = [json.loads(text) for text in done.stdout.splitlines()]
        self.assertEqual([found["id"] for found in lines if "id" in found], [0, 1, 2])

    # ---- Journals that can't be read yet ----------------------------------------------------------------------------------

    def test_zero_tail_and_damaged_lines(self):
        talk = self.talk()
        run = talk.start([sys.executable, "-c", LOGGER, "0", self.gate()])
        mine = self.run_folder(run) / "journals" / "mine" / "rank-0.1.jsonl"
        name = "journals/mine/rank-0.1.jsonl"
        wait_for(mine.exists)
        talk.do("follow", runs={run: {}})
        first, second = line(e="log", s=1, v={"loss": 1}), line(e="log", s=2, v={"loss": 2})
        with open(mine, "r+b", buffering=0) as file:
            file.write(first + bytes(len(second)))
            wait_for(lambda: talk.files.get((run, name)) == first)
            file.seek(len(first) + 3)
            file.write(second[3:])
            time.sleep(1.5)  # it looks again each second
            self.assertEqual(talk.files[run, name], first)
            file.seek(len(first))
            file.write(second[:3])
            wait_for(lambda: talk.files[run, name] == first + second)
            # A long line takes several pieces; what follows a damaged line waits.
            file.seek(0, os.SEEK_END)
            long = line(e="text", text="x" * ((1 << 20) - 100))
            file.write(long)
            wait_for(lambda: talk.files[run, name] == first + second + long)
            damaged = b"{damaged\n" + second + b"half"
            file.write(damaged)
            time.sleep(1.5)
            self.assertEqual(talk.files[run, name], first + second + long)
        self.gate().touch()
        wait_for(lambda: talk.files[run, name] == first + second + long + damaged)  # its writer has ended
        self.assertEqual(talk.problems, [])

    def test_follows_no_links_and_odd_files(self):
        talk = self.talk()
        run = talk.start(["sleep", "1000"])
        journals = self.run_folder(run) / "journals"
        wait_for(journals.exists)
        secret = self.path / "secret"
        secret.mkdir()
        (secret / "rank-0.1.jsonl").write_bytes(line(e="log"))
        (journals / "link").symlink_to(secret)
        (journals / "real").mkdir()
        (journals / "real" / "rank-0.1.jsonl").symlink_to(secret / "rank-0.1.jsonl")
        os.mkfifo(journals / "real" / "rank-1.1.jsonl")
        (journals / "real" / "rank-2.1.jsonl").write_bytes(line(e="log"))
        (journals / "real" / "rank-3.1.jsonl\n").write_bytes(line(e="log"))
        talk.do("follow", runs={run: {"journals/link/rank-0.1.jsonl": 0, "journals/real/rank-0.1.jsonl": 0}})
        wait_for(lambda: (run, "journals/real/rank-2.1.jsonl") in talk.files)
        talk.do("ping")
        self.assertEqual({name for _, name in talk.files}, {"keeper/rank-0.1.jsonl", "journals/real/rank-2.1.jsonl"})
        for name in ("../x/rank-0.1.jsonl", "files/rank-0.1.jsonl", "keeper", "keeper/../../rank-0.1.jsonl"):
            with self.assertRaises(Refused):
                talk.do("follow", runs={run: {name: 0}})
        with self.assertRaises(Refused):
            talk.do("follow", runs={run: {"keeper/rank-0.1.jsonl": -1}})
        talk.do("signal", run=run, signal="kill")

    # ---- Hostile requests -------------------------------------------------------------------------------------------------

    def test_paths(self):
        talk = self.talk()
        run = new_run()
        outside = self.path / "outside"
        outside.mkdir()
        for name in ("../x", "a/../../x", "/etc/x", "", ".", "a//b", "a/", "x" * 300, "/".join("a" * 20), "a\0b",
                     "/".join(["x" * 190] * 9)):
            with self.assertRaises(Refused, msg=name):
                talk.do("put", run=run, name=name, at=0, data="")
        for bad in ("../" + run[3:], run.upper(), run[1:], run + "0", "", None, 7, run[:-1] + "/", "é" * 16):
            for what in ("put", "start", "signal", "forget", "state"):
                with self.assertRaises(Refused, msg=bad):
                    talk.do(what, run=bad, name="x", at=0, data="", signal="stop", command=["true"])
            with self.assertRaises(Refused):
                talk.do("follow", runs={str(bad): {}})
        talk.do("put", run=run, name="a", at=0, data="AAAA")
        files = self.run_folder(run) / "files"
        (files / "link").symlink_to(outside)
        (files / "file").symlink_to(outside / "file")
        os.mkfifo(files / "pipe")
        for name in ("link/x", "file", "pipe", "a/b"):
            with self.assertRaises(Refused):
                talk.do("put", run=run, name=name, at=0, data="AAAA")
        self.assertEqual(list(outside.iterdir()), [])
        # A run's folder that is a link isn't one.
        other = new_run()
        self.run_folder(other).symlink_to(outside)
        with self.assertRaises(Refused):
            talk.do("put", run=other, name="x", at=0, data="")
        with self.assertRaises(Refused):
            talk.start(["true"], run=other)
        self.assertEqual(list(outside.iterdir()), [])
        # Forgetting removes links, not what they lead to.
        (outside / "kept").touch()
        talk.do("forget", run=run)
        wait_for(lambda: not any(run in name.name for name in (self.folder / "runs").iterdir()))
        self.assertTrue((outside / "kept").exists())

    def test_bad_lines(self):
        talk = self.talk()
        talk.line()
        bad = [b"", b"x", b"[]", b"7", b"null", b'"text"', b"{", b'{"id":1', b"\xff\xfe{}", b'{"id":1,"do":"\xff"}',
               b"[" * 500_000, b'{"a":' * 100_000, b"\0" * 100, b'{"id":"x","do":"ping"}', b'{"id":-1,"do":"ping"}',
               b'{"id":1e99,"do":"ping"}', b'{"id":18446744073709551615,"do":"ping"}', b'{"do":"ping"}', b"x" * (10 << 20)]
        for text in bad:
            talk.write(text + b"\n")
            self.assertIn("error", talk.line(), text[:50])
        for what, fields in (("nothing", {}), ("", {}), (None, {}), ("put", {"data": "!!!!", "run": new_run(), "name": "x", "at": 0}),
                             ("put", {"data": "AAA", "run": new_run(), "name": "x", "at": 0}),
                             ("put", {"data": "AAAA", "run": new_run(), "name": "x", "at": 2**62}),
                             ("put", {"data": "AAAA", "run": new_run(), "name": "x", "at": 1.5}),
                             ("follow", {}), ("follow", {"runs": []}), ("follow", {"runs": {new_run(): 7}}),
                             ("runs", {"most": 10**9}), ("runs", {"after": 5}), ("hello", {}),
                             ("start", {"run": new_run()}), ("start", {"run": new_run(), "command": []}),
                             ("start", {"run": new_run(), "command": ["a\0b"]}), ("start", {"run": new_run(), "command": "ls"}),
                             ("start", {"run": new_run(), "command": ["a"], "env": {"A=B": "x"}}),
                             ("start", {"run": new_run(), "command": ["a"], "env": {"A": 1}}),
                             ("start", {"run": new_run(), "command": ["a"], "env": []}),
                             ("start", {"run": new_run(), "command": ["a"], "folder": "relative"}),
                             ("start", {"run": new_run(), "command": ["a"], "tree": "../x"}),
                             ("start", {"run": new_run(), "command": ["a"], "number": 2}),
                             ("start", {"run": new_run(), "command": ["a"], "slurm": 1}),
                             ("stepladder", {"program": "-c"}), ("stepladder", {"program": "a\nb"}),
                             ("stepladder", {"program": "a\0b"}),
                             *(("start", {"run": new_run(), "command": ["a"], "env": {name: "x"}})
                               for name in ("", "1A", "A B", "A\nB", "A\0", "-x", "\u00c4")),
                             *(("start", {"run": new_run(), "command": ["a"], "slurm": wish}) for wish in HOSTILE_WISHES)):
            with self.assertRaises(Refused, msg=(what, fields)):
                talk.do(what, **fields)
        self.assertEqual(talk.do("ping", unknown={"fields": ["are", "ignored"]}), {})
        self.assertEqual(talk.do("runs")["runs"], [])
        self.assertEqual(talk.close(), 0)

    def test_mutated_requests_are_answered(self):
        """Each line gets one answer, and the talker lives. STEPLADDER_LONG=1 tries a hundred times as many."""
        chance = random.Random(7)
        run = new_run()
        valid = [json.dumps(request).encode() for request in (
            {"id": 1, "do": "hello", "version": 1}, {"id": 2, "do": "runs", "after": run, "most": 3}, {"id": 3, "do": "ping"},
            {"id": 4, "do": "put", "run": run, "name": "a/b", "at": 0, "data": "QUJD"}, {"id": 5, "do": "state", "run": run},
            {"id": 6, "do": "follow", "runs": {run: {"keeper/rank-0.1.jsonl": 7}}},
            {"id": 7, "do": "start", "run": run, "command": [], "env": {"A": "b"}, "folder": "/", "slurm": {"nodes": 2, "time": "1-2:00"}},
            {"id": 8, "do": "start", "run": run, "command": [], "slurm": {"at_once": 3}, "repeats": [run, new_run()]},
            {"id": 8, "do": "signal", "run": run, "signal": "stop"}, {"id": 9, "do": "forget", "run": run})]
        pieces = [b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b"\\ud800", b"\0", b"\xff", b"null", b"1e999", b"-1", b"../", run.encode(),
                  b"99999999999999999999", b'"do"', b'"start"', b'"forget"', b"true"]
        talk = self.talk("--silence", "1000")
        talk.line()
        for _ in range(100 if os.environ.get("STEPLADDER_LONG") == "1" else 1):
            sent = 0
            for _ in range(1000):
                text = bytearray(chance.choice(valid))
                for _ in range(chance.randrange(1, 4)):
                    at = chance.randrange(len(text) + 1)
                    text[at:at + chance.choice((0, 1, 1, 5))] = chance.choice(pieces) if chance.random() < 0.7 else bytes([chance.randrange(256)])
                talk.write(bytes(text).replace(b"\n", b" ") + b"\n")
                sent += 1
            answered = 0
            while answered < sent:
                found = talk.arrived.get(timeout=PATIENCE_S)
                self.assertIsNotNone(found, "the talker died")
                answered += "ok" in found or "error" in found
        self.assertEqual(talk.do("ping"), {})
        self.assertEqual(talk.close(), 0)
        self.assertFalse((self.path / "b").exists())

    def test_a_process_that_a_journal_names_gets_no_signal(self):
        """A number without the start and the machine's boot may be any process."""
        talk = self.talk()
        run = talk.start(["sleep", "1000"])
        wait_for(lambda: talk.state(run)["phase"] == "running")
        events = events_of(self.journal(run).read_bytes())[0]
        for kind in ("run", "program"):
            os.kill(of_kind(events, kind)[0]["pid"], signal.SIGKILL)
        wait_for(lambda: talk.state(run)["phase"] == "gone")
        talk.close()
        other = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        for start in ({}, {"pid_start": 0}, {"pid_start": -1}, {"pid_start": 7}, {"pid_start": "x"}):
            forged = [{name: value for name, value in event.items() if name != "pid_start"} | {"pid": other.pid} | start
                      if event["e"] in ("run", "program") else event for event in events]
            self.journal(run).write_bytes(b"".join(line(**event) for event in forged if event["e"] != "end"))
            talk = self.talk()
            for name in ("stop", "terminate", "kill"):
                talk.do("signal", run=run, signal=name)
            self.assertEqual(talk.state(run)["phase"], "gone", start)
            talk.close()
            self.assertIsNone(other.poll(), start)

    def test_a_flood_is_bounded(self):
        """A program that prints without end fills no disk: the beginning and the end are there, the rest is counted."""
        talk = self.talk()
        run = talk.start([sys.executable, "-c", "import sys\nfor i in range(3_000_000): print('%07d' % i + 'x' * 72)\nprint('the end')"])
        talk.ended(run)
        talk.close()
        journal = (self.folder / "runs" / run / "keeper" / "rank-0.1.jsonl").read_bytes()
        self.assertLess(len(journal), 80 << 20)
        output = output_of(journal)
        lines = output.splitlines()
        self.assertEqual(lines[0], b"0000000" + b"x" * 72)
        self.assertEqual(lines[700_000][:7], b"0700000", "the first 64 MiB are whole")
        self.assertEqual(lines[-2:], [b"2999999" + b"x" * 72, b"the end"])
        self.assertEqual({len(line) for line in lines[:-1]}, {79}, "lines are cut at their ends")
        lost = of_kind(events_of(journal)[0], "lost")[-1]
        self.assertEqual(lost["bytes"] + len(output), 3_000_000 * 80 + 8)
        self.assertEqual(lost["n"] + len(lines), 3_000_001)

    def test_slow_reader_bounds_what_waits(self):
        talk = self.talk()
        run = talk.start(["sh", "-c", "head -c 30000000 /dev/zero | tr '\\0' a"])
        talk.ended(run)
        talk.close()
        process = subprocess.Popen([FAR, "talk", "--folder", self.folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.kill)
        process.stdin.write(json.dumps({"id": 1, "do": "follow", "runs": {run: {}}}).encode() + b"\n")
        process.stdin.flush()
        time.sleep(2)  # nobody reads

        def resident():
            return int(pathlib.Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * 4096
        if "asan" not in FAR.name and os.environ.get("STEPLADDER_SANITIZED") != "1":
            self.assertLess(resident(), 40 << 20)
        got = b""
        for text in process.stdout:
            found = json.loads(text)
            if "file" in found:
                self.assertEqual(found["file"]["at"], len(got))
                got += base64.b64decode(found["file"]["data"])
            elif found.get("state", {}).get("phase") == "ended":
                break
        self.assertEqual(got, self.journal(run).read_bytes())
        self.assertEqual(len(output_of(got)), 30_000_000)

    # ---- Disks ------------------------------------------------------------------------------------------------------------

    def test_read_only_folder(self):
        if os.getuid() == 0:
            (self.path / "far").write_text("a file, which no one can turn into a folder")
        else:
            self.folder.mkdir(mode=0o500)
        talk = self.talk()
        hello = talk.do("hello", version=1)
        self.assertFalse(hello["writable"])
        self.assertIn(str(self.folder), hello["why"])
        with self.assertRaises(Refused):
            talk.start(["true"])
        self.assertEqual(talk.do("runs")["runs"], [])

    @unittest.skipUnless(os.getuid() == 0 and shutil.which("unshare"), "a small disk needs root")
    def test_full_disk(self):
        """Runs the rest of this test where `small` is a file system of its own."""
        small = self.path / "small"
        small.mkdir()
        done = subprocess.run(["unshare", "--mount", "sh", "-c",
                               f"mount -t tmpfs -o size=4m none {small} && exec {sys.executable} {__file__} --full-disk {small}"],
                              capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


def full_disk(small):
    """The program isn't disturbed; what waits in memory is written as soon as there is room; nothing is torn."""
    talk = Talk(small)
    gate = small.parent / "go"
    filler = small / "filler"
    run = new_run()
    script = f"echo first; while [ ! -e {gate} ]; do sleep 0.02; done; i=0; while [ $i -lt 3000 ]; do " \
             "echo $i a line that is long enough to fill a small disk now; i=$((i+1)); done; echo last; exit 5"
    talk.start(["sh", "-c", script], run=run)
    journal = small / "runs" / run / "keeper" / "rank-0.1.jsonl"
    wait_for(lambda: b"first" in output_of(journal.read_bytes()))
    with open(filler, "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
    try:
        talk.start(["true"])
        raise AssertionError("it started without room for its request")
    except Refused as refused:
        assert "No space left" in str(refused), refused
    try:
        talk.do("put", run=run, name="x", at=0, data=base64.b64encode(bytes(8192)).decode())
        raise AssertionError("it was kept without room")
    except Refused as refused:
        assert "No space left" in str(refused), refused
    assert not talk.do("hello", version=1)["writable"]
    gate.touch()
    pid = talk.state(run)["pid"]
    wait_for(lambda: not pathlib.Path(f"/proc/{pid}").exists(), "the program's end on a full disk")
    assert talk.state(run)["phase"] == "running"  # its keeper still holds the end
    filler.unlink()
    state = talk.ended(run)
    assert state["code"] == 5, state
    data = journal.read_bytes()
    assert events_of(data)[1] == len(data)
    lines = output_of(data).decode().splitlines()
    assert len(lines) == 3002 and lines[-1] == "last", len(lines)
    talk.close()


if __name__ == "__main__":
    if not FAR.exists():
        print(f"{FAR} wasn't built")
        sys.exit(77)
    if sys.argv[1:2] == ["--full-disk"]:
        full_disk(pathlib.Path(sys.argv[2]))
    else:
        unittest.main()
