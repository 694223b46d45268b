"""Opens a stranger's projects in each command and in the window. Nothing that their rows, or the files and links beside them, name
is started, connected to, signalled, removed or written, and no path in them is waited for. sandbox.c, preloaded into the program,
tells. ONLY="CASE CASE" tries some of the CASES."""
import concurrent.futures
import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import stat
import struct
import subprocess
import sys
import tempfile
import time
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "cli"), str(TESTS / "desktop"), str(TESTS / "security")]
from desktop_driver import Desktop, missing_tools  # noqa: E402
from hostile_rows import Filler, request  # noqa: E402
from program import PATIENCE_S, PROGRAM  # noqa: E402

SEED_LOG = "".join(f"step {step} | loss {4 - step / 10:.2f} | val/acc: 0.{step} | dt 50.1ms\n" for step in range(1, 6))
SETTLES_S = 2  # for a command that goes on until it's interrupted
SHOWN_S = 4  # for a window
HANGS_S = 60  # a command on these few rows that takes so long hangs
longest_shown, most_shown, most_shown_of_others = 200, 30, 4  # of a command's violations


def copy_file(source, target):
    if stat.S_ISFIFO(os.lstat(source).st_mode):
        return os.mkfifo(target)
    return shutil.copy2(source, target, follow_symlinks=False)


class Place:
    """What a stranger sent (project), what the program may write (session), and what it must leave alone (victim)."""

    def __init__(self, name, shim):
        self.name = name
        self.folder = tempfile.TemporaryDirectory(prefix="stepladder-security-")
        self.path = pathlib.Path(self.folder.name).resolve()
        self.project, self.session, self.victim = self.path / "project", self.path / "session", self.path / "victim"
        self.database = self.project / "hostile.stepladder"
        self.mark = self.victim / "MARK"
        self.fifo = self.path / "fifo"
        self.log = self.path / "log"
        self.journals = self.path / "journals" / "here"
        self.sent = self.path / "sent"  # a copy of the project, for each command
        for folder in (self.project, self.journals, self.victim / "home" / "Documents", self.path / "bin",
                       *(self.session / part for part in ("config", "data", "cache", "state", "runtime", "tmp", "out", "far", "cwd"))):
            folder.mkdir(parents=True)
        os.mkfifo(self.fifo)
        (self.victim / "home" / "Documents" / "thesis.txt").write_text("step 1 | loss 4.0 | dt 50ms\nyears of work\n")
        (self.victim / "home" / ".bashrc").write_text("umask 077\n")
        (self.project / "notes.txt").write_text("not the project's\n")
        ssh = self.path / "bin" / "ssh"
        ssh.write_text(f"#!/bin/sh\necho \"$@\" >> {self.session}/ssh-was-called\nexit 255\n")
        ssh.chmod(0o755)
        self.bystander = subprocess.Popen(["sleep", "3600"])
        self.environment = {key: value for key, value in os.environ.items() if key not in (
            "DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "STEPLADDER_SSH", "SSH_ASKPASS", "SSH_AUTH_SOCK")}
        self.environment.update(
            PATH=f"{self.path / 'bin'}:{os.environ['PATH']}", HOME=str(self.victim / "home"), STEPLADDER_DB=str(self.database),
            XDG_CONFIG_HOME=str(self.session / "config"), XDG_DATA_HOME=str(self.session / "data"), XDG_CACHE_HOME=str(self.session / "cache"),
            XDG_STATE_HOME=str(self.session / "state"), XDG_RUNTIME_DIR=str(self.session / "runtime"), TMPDIR=str(self.session / "tmp"),
            OMP_NUM_THREADS="1", LIBGL_ALWAYS_SOFTWARE="1")
        self.sandbox = {
            "LD_PRELOAD": str(shim), "SANDBOX_LOG": str(self.log), "SANDBOX_SECRET": f"{self.victim}/home/",
            # The file and what SQLite and the program put beside it; the session's folders; rings of steps; the user's journals.
            "SANDBOX_ALLOWED": f"{self.database}*\n{self.session}/\n/dev/null\n/dev/tty\n/dev/shm/*\n{self.journals}/"}
        self.untouched = self.victims()
        self.violations = []
        self.has_own_orders = False  # then programs may be started, but none for a row
        self.is_refused = False  # it isn't opened at all

    def close(self):
        self.bystander.kill()
        self.bystander.wait()
        # What a row has started, and left behind.
        for process in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                if int(process.name) != os.getpid() and str(self.log).encode() in (process / "environ").read_bytes():
                    os.kill(int(process.name), signal.SIGKILL)
        self.folder.cleanup()

    def import_seed(self):
        log = self.session / "seed.log"
        log.write_text(SEED_LOG)
        for _ in range(3):
            subprocess.run([PROGRAM, "import", "--again", log], env=self.environment, check=True, capture_output=True)

    def rows(self, *statements):
        """Executes (SQL, values) in the project, without its checks."""
        with contextlib.closing(sqlite3.connect(self.database)) as database:
            database.execute("PRAGMA ignore_check_constraints = ON")
            for sql, *values in statements:
                database.execute(sql, values)
            database.commit()

    def beside(self, ending):
        return pathlib.Path(f"{self.database}.{ending}")

    def seal(self):
        """What there is now is what the stranger sent."""
        shutil.copytree(self.project, self.sent, symlinks=True, copy_function=copy_file)
        self.untouched = self.victims()

    def unpack(self):
        shutil.rmtree(self.project)
        shutil.copytree(self.sent, self.project, symlinks=True, copy_function=copy_file)

    def victims(self):
        found = {}
        for folder in (self.victim, self.project):
            for file in sorted(folder.rglob("*")):
                if not str(file).startswith(str(self.database)):
                    content = hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() and not file.is_symlink() else ""
                    found[str(file)] = (file.lstat().st_mode, content)
        return found

    def note(self, command, what):
        self.violations.append((self.name, command, what))

    def look(self, command, expected):
        """Takes the log, and compares what must be untouched."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        seen = [line.replace("\t", " ").replace(str(self.path), "PLACE")[:longest_shown] for line in lines if not self.is_ordered(line) and not expected(line)]
        own = [line for line in dict.fromkeys(seen) if line.split()[1] == "stepladder"]
        shown = own[:most_shown] + [line for line in dict.fromkeys(seen) if line not in own][:most_shown_of_others]
        for line in shown:
            self.note(command, line)
        if len(set(seen)) > len(shown):
            self.note(command, f"and {len(set(seen)) - len(shown)} calls more, mostly of programs that it started")
        now = self.victims()
        for file in sorted(set(now.items()) ^ set(self.untouched.items())):
            self.note(command, f"changed {file[0]}".replace(str(self.path), "PLACE"))
        self.untouched = now
        if self.bystander.poll() is not None:
            self.note(command, "signalled the bystander")
            self.bystander = subprocess.Popen(["sleep", "3600"])

    def is_ordered(self, line):
        return self.has_own_orders and line.split("\t")[0] in ("exec", "connect") and str(self.mark) not in line

    def run(self, *words, goes_on=False, expected=lambda line: False):
        """Runs a command on what the stranger sent. One that goes on is interrupted."""
        self.unpack()
        command = " ".join(map(str, words)).replace(str(self.path), "PLACE")
        process = subprocess.Popen([PROGRAM, *map(str, words)], env={**self.environment, **self.sandbox}, cwd=self.session / "cwd",
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            try:
                out, err = process.communicate(timeout=SETTLES_S if goes_on else HANGS_S)
            except subprocess.TimeoutExpired:
                if not goes_on:
                    raise
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=HANGS_S)
        except subprocess.TimeoutExpired:
            self.note(command, "hangs")
            process.kill()
            out, err = process.communicate()
        else:
            if process.returncode < 0 and process.returncode != -signal.SIGINT:
                self.note(command, f"dies of signal {-process.returncode}")
        for stream in (out, err):
            if b"\x1b" in stream:
                self.note(command, "prints an escape sequence")
        self.look(command, expected)
        return process.returncode, out, err


# --- what commands are given
# The program asks git where it is for a run that it is about to record; so does a watched program itself.
ASKS_GIT = re.compile(r"^exec\t\S+\t\w+\t\S*( |: ?)*(git|/bin/sh: sh -c git|\S*sh: \S*sh -c (-- )?git)\b[^;|`$]*\b(rev-parse|status)\b")
TRAINS = {"train", "ladder", "sweep", "watch", "confirm"}
SHOWS = {"screenshot", "the window"}  # a run that could be launched from there
GOES_ON = [("machines", "follow"), ("watch", "--attach"), ("watch", "--follow")]


def arguments(place):
    """For each command of --help, the arguments that it's called with. One that isn't named is called as by an explorer."""
    out = place.session / "out"
    own = out / "own.stepladder"  # the reader's own project, into which the stranger's is imported
    endings = ["svg", "json", "csv", "html", "md", "tex", "trace"]
    return {
        "train": [["--resume", "1"], ["--fork", "1"], ["--resume", "latest", "--journal", place.journals, "--db", place.database],
                  ["--resume", "1", "--adopt"]],
        "ladder": [["--continue"], ["--continue", "1"], ["--continue", "1", "--adopt"]] +
                  [["--continue", "1", *adopts, "--journal", place.journals, "--db", place.database] for adopts in ([], ["--adopt"])],
        "sweep": [["--help"]],
        "import": [[place.database, "--db", own], [place.project, "--db", own]],
        "watch": [["--attach", "1"], ["--", "true"]],
        "follow": [["--once", place.project], ["--once", place.database, "--db", own]],
        "runs": [[], ["--json"], ["--columns", "id,name,source_path,device"], ["--filter", "loss>1"]],
        "show": [["1"], ["2", "--json", "--steps", "--metrics"], ["3", "--metrics"], ["1", "--console"], ["latest", "--db", own]],
        "bin": [[], ["1"], ["1", "--restore"], ["--empty", "--yes"], ["1", "--db", own], ["--empty", "--yes", "--db", own]],
        "pause": [["1"]], "continue": [["1"]], "stop": [["1"], ["2"], ["latest", "--db", own]],
        "check": [[], ["1"], ["--json"], ["--db", own]],
        "compare": [["1", "2"], ["1", "3", "--json"]],
        "confirm": [["2", "--patience", "0"]],
        "operators": [["1"], ["1", "2", "--json"]],
        "record": [["1", "2"], ["rung:1/x"], ["export", "--help"]],
        "mfu": [["--help"]],
        "export": [["1", "2", "--out", out / f"all.{ending}"] for ending in endings] +
                  [["latest", "--out", out / "linked.svg"], ["1", "--out", out / "w.safetensors"], ["--ladder", "1", "--out", out / "l.html"], ["1", "--metrics", "long", "--out", out / "m.csv"]],
        "profile": [["list"], ["show", "1"], ["passes"], ["export", "1", "--out", out / "t.json"], ["diff", "1", "2"], ["run", "1"]],
        "doctor": [[], ["--database"], ["--backup", out / "copy"], ["--backup", out / "linked"], ["--rescue", out / "rescued"], ["--compact"]],
        "machines": [[], ["--json"], ["check", "here"], ["follow"], ["follow", "--db", own], ["remove", "here"], ["setup", "here", "--yes"], ["add", "own"]],
        "screenshot": [["--view", view, "--size", "900x600", "--out", out / "view.png"]
                       for view in ("history", "live", "ladder", "run", "machines", "launch")],
    }


def commands():
    text = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  (\S+) ", text.split("COMMAND [OPTIONS]")[1].split("Options of every command")[0], re.M)


def calls(place, some=None):
    known = arguments(place)
    for command in commands():
        if some and command not in some:
            continue
        for words in known.get(command, [[], ["1"], ["--json"]]):
            yield command, words


def run_calls(place, some=None):
    for command, words in calls(place, some):
        goes_on = any(command == name and first in words for name, first in GOES_ON)
        for made in ("copy", "rescued"):
            (place.session / "out" / made).unlink(missing_ok=True)
        place.run(command, *words, goes_on=goes_on, expected=expected_of(command, words))


def expected_of(command, words):
    def expected(line):
        kind, _, _, what = line.split("\t", 3)
        if command in {*TRAINS, *SHOWS} and ASKS_GIT.match(line):
            return True
        # A training reads what its recipe names and an import what a folder's links lead to, at their user's order.
        return (kind == "read" and command in {*TRAINS, "import", "follow"}) or (kind == "exec" and words[:2] == ["--", "true"] and what == "true: true")
    return expected


# --- what the stranger sends
def machine(alias, **more):
    row = {"alias": alias, "is_local": 1, "folder": None, "program": None, "added_at": 1.0, **more}
    return f"INSERT INTO machines ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", *row.values()


def far_run(place, uid, alias, kind="watch", **more):
    row = {"uid": uid, "alias": alias, "kind": kind, "name": "x", "request": request(place), "asked_at": 1.0, **more}
    return f"INSERT INTO far_runs ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", *row.values()


def uid(number):
    return f"{number:032x}"


KINDS = ("watch", "train", "ladder", "sweep", "record", "setup")


def commands_to_run_here(place):
    place.rows(machine("here", folder=str(place.session / "far")),
               *(far_run(place, uid(number), "here", kind) for number, kind in enumerate(KINDS, 1)),
               ("UPDATE runs SET status = 'running', owner_pid = ? WHERE id = 1", place.bystander.pid),
               ("INSERT INTO far_members VALUES (1, ?)", uid(1)))


def commands_in_a_folder(place):
    place.rows(machine("here", folder=f"/tmp/$(touch {place.mark})"), machine("there", folder=f"~/`touch {place.mark}`", is_local=0),
               machine("more", folder=f'"; touch {place.mark}; "'),
               *(far_run(place, uid(number), alias) for number, alias in enumerate(("here", "there", "more"), 1)))


def uids_that_are_folders(place):
    far = str(place.session / "far")
    place.beside("machines").mkdir()
    uids = [f"{place.victim}/home/Documents", "../../victim/home", "../notes.txt", "..", f"{place.victim}"]
    place.rows(machine("here", folder=far),
               *(far_run(place, each, "here", is_started=index % 2, state=json.dumps({"phase": "ended"})) for index, each in enumerate(uids)),
               ("INSERT INTO far_members VALUES (1, ?)", uids[0]))


def a_host_of_the_stranger(place):
    aliases = ["me@evil.example", f"-oProxyCommand=touch {place.mark}", "evil.example"]
    place.rows(*(machine(alias, is_local=0) for alias in aliases),
               *(far_run(place, uid(number), alias, is_started=number % 2) for number, alias in enumerate(aliases, 1)),
               ("UPDATE runs SET status = 'running' WHERE id = 1",), ("INSERT INTO far_members VALUES (1, ?)", uid(1)),
               ("INSERT INTO far_members VALUES (2, ?)", uid(2)))


def a_project_that_comes_back(place):
    """The reader's own project, with a machine, at its own place, but with another's rows."""
    far = str(place.session / "far")
    subprocess.run([PROGRAM, "machines", "add", "own", "--local", "--folder", far], env=place.environment, check=True, capture_output=True)
    place.has_own_orders = True
    touches = f"touch {place.mark}"
    place.rows(("UPDATE machines SET program = ?, folder = ?, facts = ?", f"/tmp/$({touches})", f"{far}/$({touches})", touches),
               machine("here", folder=far), *(far_run(place, uid(number), "own", kind, is_started=number % 2) for number, kind in enumerate(KINDS, 1)),
               far_run(place, uid(9), "here"), far_run(place, f"{place.victim}/home/Documents", "own"),
               ("UPDATE runs SET status = 'running' WHERE id = 1",), ("INSERT INTO far_members VALUES (1, ?)", uid(1)))


def a_file_to_be_sent(place):
    """What a far run sends is a link to a file of the reader."""
    place.rows(machine("here", folder=str(place.session / "far")), far_run(place, uid(1), "here", request=request(place, tree="tree.tar.gz")),
               far_run(place, uid(2), "here", request=request(place, tree="tree.tar.gz")))
    for number, target in ((1, place.victim / "home" / ".bashrc"), (2, place.fifo)):
        mirror = place.beside("machines") / uid(number)
        mirror.mkdir(parents=True)
        (mirror / "tree.tar.gz").symlink_to(target)


def folders_that_are_links(place):
    """Beside the project, links to folders of the reader, in which are things with the program's own names."""
    own = "deadbeef" * 4
    victim = place.victim / "own"
    for run in (1, 2, 7):
        for ending in ("", ".deadbeef.removed", ".deadbeef.part"):
            folder = victim / f"run-{run}" / f"step-00000010{ending}"
            folder.mkdir(parents=True)
            (folder / "weights.safetensors").write_bytes(b"x" * 64)
    for name in ("new-999999.out", "new-999999.state", "run-7.out", "x.spill"):
        (victim / name).write_bytes(b"\0" * 8192)
    (victim / uid(1) / "keeper").mkdir(parents=True)
    for ending in ("machines", "checkpoints", "spill", "watch"):
        place.beside(ending).symlink_to(victim)
    place.rows(("UPDATE runs SET uid = ?, source = 'launched'", own), ("INSERT INTO curation (run_id, deleted_at) VALUES (2, 1.0)",),
               ("INSERT INTO settings VALUES ('checkpoints_to_remove', ?)", f"7/{own}/1.0 7//1.0 8/../../../x/1"),
               machine("here", folder=str(place.session / "far")), far_run(place, uid(1), "here", is_started=1),
               ("UPDATE runs SET hidden = 2, owner_pid = 4194300 WHERE id = 2",))


def links_inside_folders(place):
    """The folders are the project's, but what is in them leads out."""
    own = "deadbeef" * 4
    checkpoints = place.beside("checkpoints")
    target = place.victim / "checkpoints"
    for name in ("step-00000010", "step-00000020.deadbeef.removed", "step-00000020.deadbeef.part"):
        (target / name).mkdir(parents=True)
        (target / name / "state.json").write_text("{}")
    (checkpoints / "run-2").mkdir(parents=True)
    (checkpoints / "run-1").symlink_to(target)
    (checkpoints / "run-1-deadbeef").symlink_to(target)
    (checkpoints / "run-2" / "step-00000010").symlink_to(target / "step-00000010")
    (checkpoints / "run-2" / "step-00000020.deadbeef.removed").symlink_to(target)
    (checkpoints / "run-2" / "step-00000030.deadbeef.part").mkdir()
    (checkpoints / "run-2" / "step-00000030.deadbeef.part" / "deep").symlink_to(target)
    watch = place.beside("watch")
    watch.mkdir()
    (watch / "run-1.state").symlink_to(place.victim / "home" / ".bashrc")
    (watch / "run-1.out").symlink_to(place.victim / "home" / ".bashrc")
    spill = place.beside("spill")
    spill.mkdir()
    (spill / "1.spill").symlink_to(place.victim / "home" / ".bashrc")
    os.mkfifo(spill / "2.spill")
    for name in ("linked.svg.part", "linked.part"):
        (place.session / "out" / name).symlink_to(place.victim / "home" / ".bashrc")
    mirror = place.beside("machines") / uid(1)
    mirror.mkdir(parents=True)
    (mirror / "keeper").symlink_to(place.victim / "home" / "Documents")
    (mirror / "journals").symlink_to(place.victim / "home" / "Documents")
    place.rows(("UPDATE runs SET uid = ?, source = 'launched'", own), ("INSERT INTO curation (run_id, deleted_at) VALUES (1, 1.0), (2, 1.0)",),
               machine("here", folder=str(place.session / "far")), far_run(place, uid(1), "here", is_started=1))


def a_run_named_as_a_folder(place):
    """Runs to be continued whose uid leads elsewhere."""
    recipe = json.dumps({"model": "nano", "layers": 1, "heads": 1, "d_model": 16, "batch": 1, "seq": 16, "steps": 1, "vocab": 256})
    place.rows(("INSERT INTO ladders (id, name, created_at, uid) VALUES (1, 'x', 1.0, '../../x')",),
               ("UPDATE runs SET ladder_id = 1, source = 'launched', status = 'interrupted', planned_steps = 1, rung = id - 1, "
                "recipe = ?, environment = ?", recipe, json.dumps({"host": "x", "folder": str(place.victim), "command_line": f"touch {place.mark}"})),
               ("DELETE FROM steps",), ("UPDATE runs SET uid = ? WHERE id = 1", f"/../../../victim/home/Documents/x"),
               ("UPDATE runs SET uid = '/../../x' WHERE id = 2",), ("DELETE FROM runs WHERE id = 3",))


def child_of(parent):
    for process in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if int((process / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                return int(process.name)
    return None


def a_process_to_be_signalled(place):
    """The output of a watched program whose keeper and program are said to be a process of the reader."""
    watcher = subprocess.Popen([PROGRAM, "watch", "--name", "watched", "--", "sleep", "600"], env=place.environment, start_new_session=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + PATIENCE_S
    state, keeper, program = None, None, None
    while not program or struct.pack("<q", program) not in state.read_bytes():
        assert time.monotonic() < deadline, "no state of a watched program"
        time.sleep(0.1)
        state = next(place.beside("watch").glob("run-*.state"), None)
        keeper = child_of(watcher.pid)
        program = state and keeper and child_of(keeper)
    content = state.read_bytes()
    for pid in (watcher.pid, keeper, program):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    watcher.wait()
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip().encode()
    for pid in (keeper, program):
        at = content.index(struct.pack("<q", pid))
        content = content[:at] + struct.pack("<qq", place.bystander.pid, 0) + content[at + 16:]  # without its start
    content = content.replace(boot, b"\0" * len(boot))
    for run in (1, int(re.search(r"run-(\d+)", state.name)[1])):
        (place.beside("watch") / f"run-{run}.state").write_bytes(content)
        (place.beside("watch") / f"run-{run}.out").write_bytes(b"step 1 | loss 4.0\n")
    place.rows(("UPDATE runs SET status = 'running', owner_pid = ?, owner_start = NULL, owner_boot = NULL", place.bystander.pid),
               ("INSERT INTO requests (run_id, verb, at) SELECT id, 'stop', 1.0 FROM runs",), ("INSERT INTO queue SELECT id, 0, 0 FROM runs",))


def traps_to_read(place):
    """FIFOs and devices wherever a path is read."""
    sources = [f"text {place.fifo}", f"csv {place.fifo}", f"tensorboard {place.fifo}", f"wandb {place.fifo}", f"mlflow {place.fifo} 1",
               f"text {place.victim}/home/Documents/thesis.txt"]
    joined = json.dumps({"joined": str(place.fifo), "steps": {}, "metrics": {}})
    place.rows(("UPDATE runs SET source_path = ?, source = 'import'", str(place.fifo)),
               ("UPDATE runs SET source_path = '/dev/zero' WHERE id = 2",),
               *(("INSERT INTO followed VALUES (?, 1, 0, '{}')", source) for source in sources),
               ("INSERT INTO followed VALUES (?, 1, 0, ?)", f"journal {uid(5)} 0 1", joined))
    place.beside("watch").mkdir()
    for name in ("run-1.state", "run-1.out", "run-2.state", "new-999999.out"):
        os.mkfifo(place.beside("watch") / name)
    mirror = place.beside("machines") / uid(1) / "keeper"
    mirror.mkdir(parents=True)
    os.mkfifo(mirror / "rank-0.1.jsonl")
    os.mkfifo(place.project / "trap.jsonl")
    os.mkfifo(place.project / "events.out.tfevents.1.x")


def a_journal_that_names_a_file(place):
    """A rollback journal whose last part names a super-journal: SQLite removes that file when it has rolled back."""
    target = str(place.victim / "home" / ".bashrc").encode()
    with contextlib.closing(sqlite3.connect(place.database)) as database:
        page, = database.execute("PRAGMA page_size").fetchone()
        pages, = database.execute("PRAGMA page_count").fetchone()
    magic = bytes.fromhex("d9d505f920a163d7")
    head = (magic + struct.pack(">5I", 0, 0, pages, 512, page)).ljust(512, b"\0")
    tail = struct.pack(">I", 0x40000000 // page + 1) + target + struct.pack(">II", len(target), sum(target)) + magic
    pathlib.Path(f"{place.database}-journal").write_bytes(head + tail)
    place.is_refused = True


def every_column(place):
    with contextlib.closing(sqlite3.connect(place.database)) as database:
        filler = Filler(place, database)
        filler.fill()
        database.commit()
        assert not filler.unfilled(), filler.unfilled()


def texts_without_end(place):
    """1 MiB in each column of text, and JSON that is nested deeply."""
    with contextlib.closing(sqlite3.connect(place.database)) as database:
        filler = Filler(place, database)
        for value in ("x" * (1 << 20), "[" * (1 << 20), '{"a":' * (1 << 17) + "1" + "}" * (1 << 17), "\n" * (1 << 20)):
            for table in ("ladders", "runs", "machines", "far_runs", "followed", "settings", "curation", "samples"):
                row = {column.name: column.plausible([value], 0, 0, [1]) for column in filler.tables[table]}
                row.update({column.name: value for column in filler.tables[table]
                            if column.type == "TEXT" and not column.allowed and not (column.in_key and column.name != "source")})
                row.pop("id", None)
                if "run_id" in row and table != "followed":
                    row["run_id"] = len(value) % 7 + 1
                filler.insert(table, row)
        database.commit()


ACTS = {"train", "ladder", "import", "watch", "runs", "show", "bin", "pause", "continue", "stop", "doctor", "machines", "export"}
FEW = {"runs", "bin", "stop", "machines", "import", "doctor"}
# Name, what is sent, the commands (all: None), and whether each view of the window is walked through.
CASES = [
    (every_column, None, True),
    (commands_to_run_here, FEW | {"ladder", "pause"}, False),
    (commands_in_a_folder, FEW, False),
    (uids_that_are_folders, FEW, False),
    (a_host_of_the_stranger, FEW | {"ladder"}, False),
    (a_project_that_comes_back, FEW | {"ladder", "pause"}, False),
    (a_file_to_be_sent, {"machines"}, False),
    (folders_that_are_links, ACTS, False),
    (links_inside_folders, ACTS, False),
    (a_run_named_as_a_folder, {"train", "ladder", "confirm", "watch", "profile"}, False),
    (a_process_to_be_signalled, {"watch", "stop", "pause", "runs", "bin"}, False),
    (traps_to_read, {"train", "ladder", "watch", "follow", "import", "runs", "show", "record", "machines"}, True),
    (a_journal_that_names_a_file, {"runs", "import", "doctor", "follow"}, False),
    (texts_without_end, {"runs", "show", "bin", "machines", "export", "import", "check", "compare", "train"}, False),
]


# --- the window
class Window(Desktop):
    """The window of a place's program, in the sandbox."""

    def __init__(self, place):
        super().__init__()
        self.database = place.database
        display = self.environment["DISPLAY"]
        self.anchors = {"STEPLADDER_UI_TEST_ANCHORS": str(self.anchors_file)}
        self.inside = {**place.environment, **place.sandbox, **self.anchors, "DISPLAY": display, "SANDBOX_DISPLAY": "1"}
        self.inside["SANDBOX_ALLOWED"] += f"\n{self.path}/"
        self.cwd = place.session / "cwd"

    def start(self):
        with open(self.path / "log", "a") as log:
            self.program = subprocess.Popen([PROGRAM], env=self.inside, cwd=self.cwd, stdout=log, stderr=log)
        self.wait(lambda: self.anchors_file.exists(), "the first frame")

    def stop(self):
        self.program.send_signal(signal.SIGTERM)
        status = self.program.wait(timeout=HANGS_S)
        self.program = None
        return status

    def ui_test_anchors(self):
        """Without those whose name, from the project, has a line feed in it."""
        try:
            lines = self.anchors_file.read_bytes().decode(errors="replace").split("\n")
        except FileNotFoundError:
            return {}
        parts = [re.fullmatch(r"(.*) ([-\d.]+) ([-\d.]+) ([-\d.]+) ([-\d.]+)", line) for line in lines]
        return {part[1]: tuple(map(float, part.groups()[1:])) for part in parts if part}

    def there(self, *names):
        return [name for name in sorted(self.ui_test_anchors()) if name.startswith(names)]

    def try_click(self, name):
        if name in self.ui_test_anchors():
            self.click(name)
            time.sleep(0.2)

    def walk(self):
        """Each view, the first runs of History, each part of a run, and the line that a step came from. Returns how many runs."""
        views = [name for name in self.there("side.") if name.split(".")[1] not in ("fold", "theme", "palette")]
        for view in views:
            self.try_click(view)
        self.try_click("side.history")
        runs = self.there("history.run.")[:2]
        for run in runs:
            self.try_click(run)
            self.keys("ctrl+6")
            time.sleep(0.5)
            for tab in self.there("run.tab."):
                self.try_click(tab)
                for row in self.there("steps.row.0"):
                    self.try_click(row)
            self.try_click("side.history")
        return len(runs)


def open_window(place, walks):
    place.unpack()
    window = Window(place)
    command = "the window"
    try:
        window.start()
        begun = time.monotonic()
        if walks and window.walk() == 0:
            place.note(command, "shows no run, so nothing is tried")
        while time.monotonic() < begun + SHOWN_S and window.program.poll() is None:
            time.sleep(0.1)
        status = window.stop()
        if status != (1 if place.is_refused else 0):  # a window says why it can't be opened
            place.note(command, f"ends with {status}")
    except (AssertionError, subprocess.SubprocessError) as error:
        if not (place.is_refused and window.program and window.program.poll() == 1):
            place.note(command, str(error)[-2000:])
    finally:
        window.close()
    place.look(command, expected_of(command, []))


def try_case(shim, send, some, walks, has_window):
    place = Place(send.__name__, shim)
    try:
        place.import_seed()
        send(place)
        place.seal()
        status, _, err = place.run("runs")
        if (status != 0) != place.is_refused:
            place.note("runs", f"exits with {status}: {err[-200:]}")
        run_calls(place, some)
        if has_window:
            open_window(place, walks)
        for violation in place.violations:
            print(" | ".join(violation), flush=True)
        return place.violations
    finally:
        place.close()


class HostileProject(unittest.TestCase):
    def test_nothing_acts_for_a_stranger(self):
        with tempfile.TemporaryDirectory(prefix="stepladder-security-") as folder:
            shim = pathlib.Path(folder) / "sandbox.so"
            subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", shim, TESTS / "security" / "sandbox.c", "-ldl"], check=True)
            self.check_the_sandbox(shim)
            has_desktop = "screenshot" in commands() and not missing_tools()
            if not has_desktop:
                print("without the window: needs", ", ".join(missing_tools()) or "a build with the desktop")
            wanted = os.environ.get("ONLY", "").split()
            cases = [case for case in CASES if not wanted or case[0].__name__ in wanted]
            with concurrent.futures.ThreadPoolExecutor(max_workers=min(4, max(2, os.cpu_count() or 2))) as pool:
                found = [violation for violations in pool.map(lambda case: try_case(shim, *case, has_desktop), cases) for violation in violations]
        self.assertEqual(len(found), 0, f"{len(found)} violations")

    def check_the_sandbox(self, shim):
        """It sees what it's there for, or nothing that it doesn't see means anything."""
        place = Place("sandbox", shim)
        try:
            place.seal()
            script = (f"touch {place.victim}/a; rm {place.victim}/home/.bashrc; mv {place.project}/notes.txt {place.project}/b; "
                      f"cat {place.fifo} {place.victim}/home/.bashrc; touch {place.session}/c; kill {place.bystander.pid}; "
                      f"exec {sys.executable} -c 'import socket; socket.socket().connect_ex((\"127.0.0.1\", 9))'")
            subprocess.run(["bash", "-c", script], env={**place.environment, **place.sandbox}, capture_output=True)
            seen = {line.split("\t")[0] for line in place.log.read_text().splitlines()}
            place.log.unlink()
            self.assertEqual(seen, {"write", "remove", "read", "hang", "exec", "connect", "signal"})
            self.assertTrue((place.session / "c").exists())
            place.look("the sandbox", lambda line: False)
            self.assertEqual(place.violations, [])
        finally:
            place.close()


if __name__ == "__main__":
    if not sys.platform.startswith("linux") or not shutil.which("cc"):
        print("skipped: needs Linux and cc")
        sys.exit(77)
    unittest.main(verbosity=2)
