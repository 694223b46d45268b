"""Talks to stepladder-far through a program's pipes (docs/far.md); shared by the tests of this folder."""
import base64
import json
import os
import pathlib
import queue
import random
import subprocess
import sys
import threading
import time
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from journal import events_of, of_kind, read  # noqa: E402,F401
from program import BUILD, PATIENCE_S  # noqa: E402,F401

FAR = pathlib.Path(os.environ.get("STEPLADDER_FAR", BUILD / "stepladder-far"))


def new_run():
    return uuid.UUID(int=random.getrandbits(128)).hex


def wait_for(condition, what="it"):
    """The condition's first value that is true."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{what} did not come in {PATIENCE_S} s")


class Refused(Exception):
    pass


class Talk:
    """One talker. `files` has the bytes of followed journals, by (run, name); `states` each run's states in their order."""

    def __init__(self, folder, *options, command=None, files=None, environment=None):
        self.process = subprocess.Popen(command or [FAR, "talk", "--folder", str(folder), *options], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=environment)
        self.files = {} if files is None else files
        self.states = {}
        self.lines = []    # without an id
        self.problems = []
        self.next_id = 1
        self.answers = {}
        self.arrived = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for text in self.process.stdout:
            try:
                line = json.loads(text)
                if "file" in line:
                    self._take(line["file"])
                elif "state" in line:
                    self.states.setdefault(line["state"]["run"], []).append(line["state"])
                self.arrived.put(line)
            except ValueError:
                self.lines.append(text)  # what a shell said
        self.arrived.put(None)

    def _take(self, file):
        have = self.files.setdefault((file["run"], file["name"]), b"")
        if file["at"] != len(have):
            self.problems.append(f"{file['name']}: at {file['at']} instead of {len(have)}")
        self.files[file["run"], file["name"]] = have + base64.b64decode(file["data"])

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, what, **fields):
        """Without waiting for the answer; returns the id."""
        self.next_id += 1
        self.write(json.dumps({"id": self.next_id, "do": what, **fields}).encode() + b"\n")
        return self.next_id

    def line(self, patience=PATIENCE_S):
        """The next line that has no id and isn't a file's, a state's or a sign of life; None at the end."""
        end = time.monotonic() + patience
        while True:
            line = self.arrived.get(timeout=max(end - time.monotonic(), 0.01))
            if line is None:
                return None
            if line.get("id") is not None:
                self.answers[line["id"]] = line
            elif not {"file", "state", "alive"} & set(line):
                return line

    def answer(self, number, patience=PATIENCE_S):
        end = time.monotonic() + patience
        while number not in self.answers:
            line = self.arrived.get(timeout=max(end - time.monotonic(), 0.01))
            assert line is not None, f"the talker ended before it answered; exit {self.process.wait()}"
            if line.get("id") is not None:
                self.answers[line["id"]] = line
            elif "stepladder-far" not in line:
                self.lines.append(line)
        found = self.answers.pop(number)
        if "error" in found:
            raise Refused(found["error"])
        return found["ok"]

    def do(self, what, **fields):
        return self.answer(self.send(what, **fields))

    def start(self, command, run=None, **fields):
        """Starts a program; returns its UUID."""
        run = run or new_run()
        self.do("start", run=run, name="a run", command=[str(word) for word in command], **fields)
        return run

    def state(self, run):
        return self.do("state", run=run)

    def ended(self, run):
        """The state of a run that has ended or is gone."""
        def over():
            state = self.state(run)
            return state if state["phase"] in ("ended", "gone") else None
        return wait_for(over, f"the end of {run}")

    def kill(self):
        self.process.kill()
        self.process.wait()
        try:
            self.process.stdin.close()  # ends a talker that isn't our child but that of ssh or nsenter
        except BrokenPipeError:
            pass
        self.reader.join()
        self.process.stdout.close()

    def close(self):
        """Ends the talker as a closed link does; returns its exit status."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        status = self.process.wait(timeout=PATIENCE_S)
        self.reader.join()
        self.process.stdout.close()
        return status


def output_of(data):
    """What a program printed, from its keeper's journal."""
    return b"".join(event["b"].encode("latin-1") for event in of_kind(events_of(data)[0], "out"))
