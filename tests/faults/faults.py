"""Shared by the drivers of tests/faults: a place with the program and the shim, its rules, and what is true from outside."""
import contextlib
import mmap
import os
import pathlib
import re
import sqlite3
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from program import BUILD, PATIENCE_S, PROGRAM, SMALLEST, Workplace  # noqa: E402,F401

LONG = os.environ.get("STEPLADDER_LONG") == "1"
SHIM = BUILD / "libfaults_shim.so"


def say(*text):
    """One line of what was measured, for docs/reliability.md."""
    print("   ", *text, file=sys.stderr, flush=True)


class Rules:
    """Lets calls of the program fail. The layout is that of `struct control` in shim.c."""
    OPEN, WRITE, SYNC, RESIZE, NAME, MAP, READ = 1, 2, 4, 8, 16, 32, 64

    def __init__(self, path):
        path.write_bytes(bytes(4096))
        self.file = open(path, "r+b")
        self.memory = mmap.mmap(self.file.fileno(), 4096)

    def close(self):
        self.memory.close()
        self.file.close()

    def fail(self, operations, error, *, nth=0, one_in=0, pattern="", only_growth=False, half=False):
        """The `nth` matching call fails, once; without `nth`, every one, or one in `one_in`."""
        self.stop()
        self.memory[4:16] = struct.pack("<IiI", operations, error, only_growth)
        self.memory[16:24] = struct.pack("<q", nth)
        self.memory[24:32] = struct.pack("<II", one_in, half)
        self.memory[48:240] = pattern.encode().ljust(192, b"\0")
        self.memory[0:4] = struct.pack("<I", 1)

    def stop(self):
        self.memory[0:4] = struct.pack("<I", 0)

    @property
    def active(self):
        return struct.unpack("<I", self.memory[0:4])[0] == 1

    @property
    def seen(self):
        return struct.unpack("<Q", self.memory[32:40])[0]

    @property
    def injected(self):
        return struct.unpack("<Q", self.memory[40:48])[0]

    @property
    def last(self):
        return self.memory[240:496].split(b"\0")[0].decode()


class Place(Workplace):
    """A folder that holds a database, its checkpoints and the program's cache, and nothing else; the shim watches it."""

    def __init__(self):
        super().__init__()
        self.project = self.path.resolve() / "project"
        self.project.mkdir()
        self.database = self.project / "runs.db"
        self.log = self.path / "log"
        self.rules = Rules(self.path / "rules")
        self.environment.update(STEPLADDER_DB=str(self.database), XDG_CACHE_HOME=str(self.project / "cache"))

    def close(self):
        self.rules.close()
        super().close()

    def watched(self, *arguments, log=False, skip_sync=False, sync_ms=0, **options):
        """Starts the program with the shim."""
        environment = dict(self.environment, LD_PRELOAD=str(SHIM), FAULTS_FOLDER=str(self.project),
                           FAULTS_CONTROL=str(self.path / "rules"), FAULTS_SYNC_MS=str(sync_ms))
        if log:
            environment["FAULTS_LOG"] = str(self.log)
        if skip_sync:
            environment["FAULTS_SKIP_SYNC"] = "1"
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.Popen([PROGRAM, *map(str, arguments)], env=environment, text=True, **options)

    def stored(self):
        """The newest launched run's steps in the file, read beside the program: (number of steps, first, last)."""
        try:
            with contextlib.closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=0.1)) as database:
                return database.execute("select count(distinct step), min(step), max(step) from steps where run_id = "
                                        "(select max(id) from runs where source = 'launched')").fetchone()
        except sqlite3.OperationalError:
            return 0, None, None

    def wait_for_run(self):
        """Until a run is in the file."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            with contextlib.suppress(sqlite3.OperationalError), \
                    contextlib.closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=0.1)) as database:
                if database.execute("select count(*) from runs").fetchone()[0] > 0:
                    return
            time.sleep(0.02)
        raise AssertionError("no run comes")

    def wait_for_steps(self, count, process=None, seconds=PATIENCE_S):
        deadline = time.monotonic() + seconds
        while self.stored()[0] < count:
            if time.monotonic() > deadline or (process and process.poll() is not None):
                raise AssertionError(f"only {self.stored()[0]} of {count} steps after {seconds} s; "
                                     f"exit {process.poll() if process else None}")
            time.sleep(0.02)


def memory_mb(process):
    """The most memory that the process has had."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) // 1024


def steps_told(text):
    """The last step that the final line of `train` names, from outside the only witness of what was really done."""
    found = re.findall(r"(\w+) at step ([\d,]+), loss", text)
    return (found[-1][0], int(found[-1][1].replace(",", ""))) if found else (None, 0)


class Lock:
    """Another program that holds the file's exclusive lock."""

    def __init__(self, database):
        self.connection = sqlite3.connect(database, timeout=30, isolation_level=None)

    def __enter__(self):
        self.connection.execute("begin exclusive")
        return self

    def __exit__(self, *_):
        self.connection.execute("rollback")
        self.connection.close()


class LockWatch:
    """Another program that asks for the write lock every few milliseconds; its longest wait is about the longest hold."""

    def __init__(self, database):
        self.database, self.waits, self.ended = database, [], threading.Event()  # seconds
        self.thread = threading.Thread(target=self.watch)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    def watch(self):
        with contextlib.closing(sqlite3.connect(self.database, timeout=0, isolation_level=None)) as database:
            while not self.ended.is_set():
                begun = time.monotonic()
                while not self.ended.is_set():
                    try:
                        database.execute("begin immediate")
                        database.execute("rollback")
                        break
                    except sqlite3.OperationalError:
                        time.sleep(0.001)
                self.waits.append(time.monotonic() - begun)
                time.sleep(0.005)
