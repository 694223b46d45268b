#!/usr/bin/env python3
"""Runs on another machine, followed from here: `machines`, `--on`, lost links, killed trackers, hostile machines.

The other machine is this one, through a program in ssh's place, so the test needs neither root nor sshd.
Usage: near_test.py [CHECK...]
"""
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from in_place_of_ssh import end_all_there, put_in_place_of_ssh  # noqa: E402
from program import BUILD, PATIENCE_S, PROGRAM, TINY, Workplace  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Logs with stepladder.py, and prints as nanoGPT does: the journal knows more.
LOGGER = """
import sys, time
sys.path.insert(0, {python!r})
import stepladder
steps, pause = int(sys.argv[1]), float(sys.argv[2])
run = stepladder.init(project="far", name="logger")
for step in range(1, steps + 1):
    stepladder.log({{"loss": 4 - step / 1000, "val/acc": step / steps}}, step=step)
    time.sleep(pause)
stepladder.finish()
"""

PRINTER = """
import sys, time
for step in range(1, int(sys.argv[1]) + 1):
    print(f"step {step} | loss {4 - step / 1000:.4f} | dt {20 + step % 3}.5ms | tok/sec 1000", flush=True)
    time.sleep(float(sys.argv[2]))
sys.exit(int(sys.argv[3]) if len(sys.argv) > 3 else 0)
"""


class Box(Workplace):
    """A workplace with a machine `box`."""

    def __init__(self):
        super().__init__()
        self.ssh = self.path / "ssh"
        self.environment["STEPLADDER_SSH"] = put_in_place_of_ssh(self.ssh)
        self.home = self.ssh / "home"
        self.logger = self.path / "logger.py"
        self.logger.write_text(LOGGER.format(python=str(ROOT / "python")))
        self.printer = self.path / "printer.py"
        self.printer.write_text(PRINTER)

    def close(self):
        end_all_there(self.ssh)
        super().close()

    def keepers(self):
        """Far programs of this box that live, by pid: keepers and talkers."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if any(str(self.home).encode() in word for word in words) and b"stepladder-far" in words[0]:
                found.append(int(entry.name))
        return found

    def talkers(self):
        return [pid for pid in self.keepers() if b"talk" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()]

    def cut(self):
        """The link is down, and what was open is cut."""
        (self.ssh / "down").touch()
        for pid in self.talkers():
            os.kill(pid, signal.SIGKILL)

    def mend(self):
        (self.ssh / "down").unlink(missing_ok=True)

    def rows(self, sql, *values):
        with sqlite3.connect(f"file:{self.database}?mode=ro", uri=True) as database:
            return database.execute(sql, values).fetchall()

    def losses(self, run):
        return dict(self.rows("SELECT step, loss FROM steps WHERE run_id = ? ORDER BY step", run))

    def wait(self, what, condition):
        end = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < end, f"not within {PATIENCE_S} s: {what}"
            time.sleep(0.05)

    def succeeds(self, *arguments):
        status, out, err = self.run(*arguments)
        assert status == 0, f"{arguments}: exit {status}: {err}"
        return out, err


def check_the_list(box):
    for name, why in [("-oProxyCommand=touch x", "begin with"), ("a b", "letters"), ("", "name"), ("a;b", "letters")]:
        status, _, err = box.run("machines", "add", "--", name)
        assert status == 2 and why in err, (name, status, err)
    for folder in ("relative", "/a'b", "/a$(touch x)", "/a\nb"):
        status, _, err = box.run("machines", "add", "box", "--folder", folder)
        assert status == 2 and "folder" in err, (folder, status, err)
    assert box.json("machines") == []
    status, _, err = box.run("watch", "--on", "box", "--", "true")
    assert status == 1 and "machines add box" in err, err
    box.succeeds("machines", "add", "box")
    (row,) = box.json("machines")
    assert row["alias"] == "box" and row["reachable"] is True and row["gpus"] is None, row
    assert "installed nothing there yet" in row["reason"] and not (box.home / ".stepladder").exists(), "a listing installs nothing"
    box.json("machines", "check", "box")
    (row,) = box.json("machines")
    assert row["reachable"] is True and row["gpus"] == [] and row["reason"] is None, row
    words = (box.ssh / "words").read_text().splitlines()
    for line in words:
        given = eval(line)  # what this test has noted itself
        assert given[:3] == ["-T", "-a", "-x"] and given[-3] == "--" and given[-2] == "box", given
        assert given[-1].startswith("exec /bin/sh -c '") and given[-1].count("'") == 2, given
    for name in ("node10", "node2"):
        box.succeeds("machines", "add", name)
    assert [row["alias"] for row in box.json("machines")] == ["box", "node2", "node10"], "numbers count as numbers"
    for name in ("node10", "node2"):
        box.succeeds("machines", "remove", name)
    checks = {each["name"]: each for each in box.json("machines", "check", "box")[0]["checks"]}
    assert checks["Connection"]["result"] == "ok" and checks["Folder"]["result"] == "ok", checks
    assert checks["Stepladder"]["result"] in ("ok", "warning"), checks
    box.cut()
    (row,) = box.json("machines")
    assert row["reachable"] is False and "timed out" in row["reason"] and "VPN" in row["reason"], row
    status, out, _ = box.run("machines", "check", "box")
    assert status == 1 and "not tried" in out, out
    box.mend()


def check_a_printed_run(box):
    out, err = box.succeeds("watch", "--on", "box", "--there", str(box.path), "--", sys.executable, "printer.py", "30", "0.01")
    assert out.count("\n") == 30 and out.startswith("step 1 | loss 3.9990"), out
    (run,) = box.json("runs")
    assert (run["status"], run["steps"], run["dt_ms_median"]) == ("finished", 30, 21.5), run
    assert run["source_path"].startswith("box:"), run
    at = [row[0] for row in box.rows("SELECT at FROM steps WHERE run_id = ?", run["id"])]
    assert at == sorted(at) and at[-1] > at[0], "steps keep the times at which they were printed"
    status, _, err = box.run("watch", "--on", "box", "--there", str(box.path), "--", sys.executable, "printer.py", "5", "0", "3")
    assert status == 3 and err.count("with status 3") == 1, (status, err)
    status, _, err = box.run("watch", "--on", "box", "--there", "/nowhere/at/all", "--", "true")
    assert status == 127 and "/nowhere/at/all" in err, (status, err)
    status, _, err = box.run("watch", "--on", "box", "--there", str(box.path), "--", "echo", "no steps")
    assert status == 1 and "no step was recorded" in err, (status, err)
    assert not any((box.database.parent / (box.database.name + ".machines")).iterdir()), "copies are removed"


def check_the_list_follows_nothing(box):
    box.succeeds("watch", "--on", "box", "--there", str(box.path), "--name", "left alone", "--detach", "--", sys.executable,
                 "printer.py", "5", "0")
    box.wait("its end there", lambda: not box.keepers())
    for arguments in (["machines"], ["machines", "check", "box"]):
        box.json(*arguments)
        assert box.rows("SELECT count(*) FROM runs WHERE name = 'left alone'") == [(0,)], arguments
    box.succeeds("machines", "follow")
    assert box.rows("SELECT status FROM runs WHERE name = 'left alone'") == [("finished",)]


def check_repeats_need_slurm(box):
    status, _, err = box.run("watch", "--on", "box", "--repeats", "3", "--", "true")
    assert status == 2 and "needs Slurm" in err and "call it again" in err, (status, err)
    assert box.run("watch", "--repeats", "3", "--", "true")[0] == 2, "not without --on"


def check_a_logout_that_kills(box):
    programs = box.path / "programs"
    programs.mkdir()
    for name, text in (("busctl", "echo b true"), ("loginctl", "echo no")):
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    before = box.environment["PATH"]
    box.environment["PATH"] = f"{programs}:{before}"
    (checked,) = box.json("machines", "check", "box")
    (logout,) = [each for each in checked["checks"] if each["name"] == "Logout"]
    assert checked["logout_kills"] is True and logout["result"] == "warning" and "enable-linger" in logout["text"], checked
    box.environment["PATH"] = before


def check_killed_trackers(box):
    """This side is killed 20 times, and the far talker now and then."""
    steps = 400
    box.succeeds("watch", "--on", "box", "--there", str(box.path), "--name", "killed", "--detach", "--",
                 sys.executable, "logger.py", str(steps), "0.02")
    for _ in range(20):
        tracker = box.start("machines", "follow")
        time.sleep(0.3)
        tracker.send_signal(signal.SIGKILL)
        tracker.communicate()
    for run in box.json("runs"):
        assert run["name"] != "killed" or run["status"] in ("running", "finished"), f"no process here owns it: {run}"
    tracker = box.start("machines", "follow")
    for pid in box.talkers():
        os.kill(pid, signal.SIGKILL)
    _, err = tracker.communicate(timeout=PATIENCE_S)
    assert tracker.returncode == 0, err
    ((run, status),) = box.rows("SELECT id, status FROM runs WHERE name = 'killed'")
    assert status == "finished", status
    assert box.losses(run) == {step: 4 - step / 1000 for step in range(1, steps + 1)}
    assert box.rows("SELECT count(*) FROM superseded_steps WHERE run_id = ?", run) == [(0,)]
    values = box.rows("SELECT count(*), sum(value) FROM metric_points WHERE run_id = ? AND name = 'val/acc'", run)
    assert values[0][0] == steps and abs(values[0][1] - (steps + 1) / 2) < 1e-6, values
    assert box.rows("SELECT count(*) FROM far_runs WHERE is_over = 0") == [(0,)]


def check_a_lost_link(box):
    steps = 300
    tracker = box.start("watch", "--on", "box", "--there", str(box.path), "--name", "lost", "--", sys.executable,
                        "logger.py", str(steps), "0.02")

    def row():
        found = box.rows("SELECT id, status, reason FROM runs WHERE name = 'lost'")
        return found[0] if found else (0, "", "")

    box.wait("first steps", lambda: row()[0] and len(box.losses(row()[0])) > 10)
    box.cut()
    box.wait("a word about the link", lambda: "unreachable since" in (row()[2] or ""))
    assert row()[1] == "running" and "last step" in row()[2], row()
    assert "unreachable" in box.run("show", str(row()[0]))[1], "`show` says it"
    box.mend()
    _, err = tracker.communicate(timeout=PATIENCE_S)
    assert tracker.returncode == 0, err
    run, status, reason = row()
    assert status == "finished" and not reason, (status, reason)
    assert box.losses(run) == {step: 4 - step / 1000 for step in range(1, steps + 1)}
    assert "can be reached again" in err, err


def check_noisy_logins(box):
    (box.ssh / "noise").write_text("Welcome!\n{\"stepladder-far\":1}\n{\"id\":1,\"ok\":{}}\n" + "x" * 5000 + "\n")
    shells = [shell for shell in ("/bin/tcsh", "/usr/bin/fish", "/usr/bin/zsh", "/bin/dash") if os.path.exists(shell)]
    for shell in shells:
        (box.ssh / "shell").write_text(shell)
        assert box.json("machines")[0]["reachable"] is True, shell
    (box.ssh / "noise").unlink()
    (box.ssh / "shell").unlink(missing_ok=True)
    # A program that isn't ours under our name, one that was cut: they are sent again or refused, never run.
    (program,) = (box.home / ".stepladder" / "bin").glob("stepladder-far-*")
    program.write_text("#!/bin/sh\ntouch \"$HOME/was-run\"\n")
    assert box.json("machines")[0]["reachable"] is True
    assert not (box.home / "was-run").exists()


def check_requests(box):
    tracker = box.start("watch", "--on", "box", "--there", str(box.path), "--name", "asked", "--", sys.executable,
                        "printer.py", "100000", "0.02")
    box.wait("the run", lambda: box.rows("SELECT count(*) FROM steps JOIN runs ON runs.id = run_id WHERE name = 'asked'")[0][0] > 3)
    ((run,),) = box.rows("SELECT id FROM runs WHERE name = 'asked'")
    box.succeeds("pause", str(run))
    time.sleep(1)
    before = len(box.losses(run))
    time.sleep(1)
    assert len(box.losses(run)) <= before + 2, "a paused program prints nothing"
    box.succeeds("continue", str(run))
    box.wait("more steps", lambda: len(box.losses(run)) > before + 5)
    box.succeeds("stop", str(run))
    tracker.communicate(timeout=PATIENCE_S)
    assert box.rows("SELECT status FROM runs WHERE id = ?", run) == [("stopped",)]


def check_a_login_that_hangs(box):
    """What is waited for is said soon; what has answered is shown, also after Ctrl-C."""
    hangs = box.ssh / "hangs"
    box.succeeds("machines", "add", "slow")
    hangs.write_text("slow")
    try:
        for ends_by in ("Ctrl-C", "an answer"):
            process = box.start("machines", "--json")
            said = process.stderr.readline()
            while "Ctrl-C" not in said:
                said += process.stderr.readline()
            assert "waiting for slow: ssh has not answered for" in said, said
            assert ("box answered already" in said) != ("waiting for box" in said), said
            if ends_by == "Ctrl-C":
                process.send_signal(signal.SIGINT)
            else:
                hangs.unlink()
            out, err = process.communicate(timeout=PATIENCE_S)
            found = {each["alias"]: each["reachable"] for each in json.loads(out)}
            assert found["slow"] == (ends_by != "Ctrl-C"), (found, err)
            assert found["box"] or "box answered already" not in said, (found, err)
    finally:
        hangs.unlink(missing_ok=True)
        box.succeeds("machines", "remove", "slow")


def check_a_sent_tree(box):
    tree = box.path / "checkout"
    (tree / "src").mkdir(parents=True)
    shutil.copy(box.printer, tree / "src" / "printer.py")
    (tree / "data.bin").write_bytes(b"0" * 1000)
    (tree / ".gitignore").write_text("data.bin\n")
    git = ["git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "first"], check=True)
    (tree / "src" / "new file.txt").write_text("new")
    (tree / "src" / "printer.py").write_text(PRINTER + "print('changed')\n".replace("print", "# print"))
    process = subprocess.run([PROGRAM, "watch", "--on", "box", "--send", "--name", "sent", "--", "sh", "-c",
                              f"ls -R; {sys.executable} src/printer.py 3 0"], cwd=tree, env=box.environment, text=True,
                             capture_output=True, timeout=PATIENCE_S)
    assert process.returncode == 0, process.stderr
    assert "new file.txt" in process.stdout and "data.bin" not in process.stdout, process.stdout
    ((environment,),) = box.rows("SELECT environment FROM runs WHERE name = 'sent'")
    sent = json.loads(environment)["sent"]
    assert len(sent["commit"]) == 40 and "# print" in sent["patch"] and sent["files"] == 3, sent
    process = subprocess.run([PROGRAM, "watch", "--on", "box", "--send", "--", "true"], cwd=box.path,
                             env=box.environment, text=True, capture_output=True, timeout=PATIENCE_S)
    assert process.returncode == 1 and "git checkout" in process.stderr, process.stderr


def check_a_ladder(box):
    """The whole ladder runs there, by the Stepladder there; its runs are here what they are there."""
    if not list(BUILD.glob("libstepladder_trainer.*")):
        return print("no trainer in this build: no ladder is trained")
    box.succeeds("machines", "add", "box", "--program", str(PROGRAM))
    assert box.json("machines")[0]["version"], "the installed Stepladder is found"
    ladder = box.json("ladder", "--on", "box", "--stages", "baseline,bf16", "--repeats", "2", "--interleave", *TINY, "--steps", "12",
                      "--device", "cpu", "--threads", "1")
    assert [rung["stage"] for rung in ladder["rungs"]] == ["baseline", "bf16"], ladder
    runs = [run for run in box.json("runs") if run["ladder"] is not None]
    assert len(runs) == 4 and {run["status"] for run in runs} == {"finished"}, runs
    assert {run["steps"] for run in runs} == {12} and all(run["loss_first"] > 4 for run in runs), runs
    assert box.rows("SELECT count(*) FROM far_members JOIN far_runs ON uid = far_uid WHERE kind = 'ladder'") == [(4,)]
    (environment,) = box.rows("SELECT environment FROM runs WHERE id = ?", runs[0]["id"])[0]
    assert json.loads(environment)["machine"] == "box", environment
    # One of the user's own presets: there is none of that name there, so what it says is sent.
    presets = pathlib.Path(box.environment["XDG_CONFIG_HOME"]) / "stepladder" / "ladders"
    presets.mkdir(parents=True, exist_ok=True)
    recipe = {"model": "nano", "layers": 1, "heads": 1, "d_model": 16, "vocab": 256, "seq": 16, "batch": 2, "steps": 6, "device": "cpu", "threads": 1}
    (presets / "mine.json").write_text(json.dumps({"stepladder": "ladder", "recipe": recipe, "rungs": ["baseline", "bf16:lr=0.002"]}))
    ladder = box.json("ladder", "--on", "box", "--plan", "mine", "--steps", "7", "--name", "from mine")
    assert [rung["stage"] for rung in ladder["rungs"]] == ["baseline", "bf16"], ladder
    ran = box.rows("SELECT steps, recipe FROM runs JOIN summaries ON run_id = runs.id JOIN ladders ON ladders.id = ladder_id "
                   "WHERE ladders.name = 'from mine' ORDER BY rung")
    assert [row[0] for row in ran] == [7, 7] and [json.loads(row[1])["lr"] for row in ran][1] == 0.002, ran
    status, _, err = box.run("train", "--on", "box", *TINY, "--steps", "5", "--data", "/nowhere.txt")
    assert status == 1 and "/nowhere.txt" in err, (status, err)
    run = box.json("train", "--on", "box", *TINY, "--steps", "5", "--device", "cpu", "--threads", "1")
    assert (run["status"], run["steps"]) == ("finished", 5), run


def check_a_sweep(box):
    """A sweep there is here what it would be if it were trained here."""
    for words in (["--on", "box"], ["--on", "box", "--of", "1"]):
        assert box.run("sweep", *words)[0] == 2, words
    assert box.run("sweep", "--on", "nowhere", "--over", "lr=1e-3,3e-3")[0] == 1
    status, _, err = box.run("sweep", "--on", "box", "--over", "lr=fast,slow")
    assert status != 0 and "fast" in err, (status, err)
    assert box.rows("SELECT count(*) FROM far_runs WHERE kind = 'sweep'") == [(0,)], "mistakes are reported before the machine is asked"
    if not list(BUILD.glob("libstepladder_trainer.*")):
        return print("no trainer in this build: no sweep is trained")
    box.succeeds("machines", "add", "box", "--program", str(PROGRAM))
    words = ["sweep", "--over", "lr=1e-3,3e-3", "--over", "seed=1,2", "--target", "100", *TINY, "--steps", "6", "--device", "cpu", "--threads", "1"]
    there, here = box.json(*words, "--on", "box"), box.json(*words)
    assert there.keys() == here.keys() and there["over"] == here["over"], there
    assert [rung["over"] for rung in there["rungs"]] == [rung["over"] for rung in here["rungs"]], there["rungs"]
    assert [rung["finished"] for rung in there["rungs"]] == [2, 2], there["rungs"]
    for mine, its in zip(here["rungs"], there["rungs"]):
        assert mine["loss_last"] == its["loss_last"] and mine["results"].keys() == its["results"].keys(), (mine, its)
    assert [run["over"] for run in there["runs"]] == [run["over"] for run in here["runs"]], there["runs"]
    assert {run["status"] for run in there["runs"]} == {"finished"}, there["runs"]
    assert box.rows("SELECT count(*) FROM far_members JOIN far_runs ON uid = far_uid WHERE kind = 'sweep'") == [(4,)]
    out, _ = box.succeeds("sweep", "--of", there["runs"][0]["ladder"])
    assert "lr" in out.splitlines()[0] and "val loss" in out.splitlines()[0], out


# In the place of the far side's python3: what `python3 -m venv` and pip leave, without LibTorch's 3 GB.
PYTHON3 = """#!/bin/sh
[ "$1 $2" = "-m venv" ] || exit 9
mkdir -p "$3/bin"
cat >"$3/bin/pip" <<'END'
#!/bin/sh
echo "pip $*"
ls *.whl | grep -q good || { echo "ERROR: not a supported wheel" >&2; exit 4; }
printf '#!/bin/sh\\nexec %s "$@"\\n' PROGRAM >"${0%/pip}/stepladder"
chmod +x "${0%/pip}/stepladder"
END
chmod +x "$3/bin/pip"
"""


def check_the_setup(box):
    box.succeeds("machines", "add", "fresh")
    assert box.json("machines", "check", "fresh")[0]["version"] is None, "nothing is installed there"
    programs = box.path / "python"
    programs.mkdir()
    (programs / "python3").write_text(PYTHON3.replace("PROGRAM", str(PROGRAM)))
    (programs / "python3").chmod(0o755)
    dist = box.path / "dist"
    dist.mkdir()
    good, bad = dist / "stepladder-0.1.0-good.whl", dist / "stepladder-0.1.0-bad.whl"
    good.write_bytes(os.urandom(2 << 20))  # more than a piece
    bad.write_bytes(b"bad")
    status, _, err = box.run("machines", "setup", "fresh", "--wheel", good)
    assert status == 2 and "without training" in err, (status, err)
    # One of another version would need another program; the one of the same version is sent too.
    (dist / "stepladder_trainer-0.0.9-good.whl").write_bytes(b"an older trainer")
    status, _, err = box.run("machines", "setup", "fresh", "--wheel", good)
    assert status == 2 and "without training" in err, (status, err)
    trainer = dist / "stepladder_trainer-0.1.0-good.whl"
    trainer.write_bytes(b"trainer")
    status, _, err = box.run("machines", "setup", "fresh", "--wheel", good)
    assert status == 2 and "--yes" in err and "3 GB" in err and "2.10 MB" in err, (status, err)
    assert box.run("machines", "setup", "fresh", "--yes", "--wheel", dist / "none.whl")[0] == 1
    before = box.environment["PATH"]
    box.environment["PATH"] = f"{programs}:{before}"
    status, out, err = box.run("machines", "setup", "fresh", "--yes", "--wheel", bad)
    assert status == 1 and "not a supported wheel" in out and "could not be installed at fresh" in err, (status, out, err)
    out, _ = box.succeeds("machines", "setup", "fresh", "--yes", "--wheel", good)
    assert "pip install --no-input" in out and "stepladder 0." in out and trainer.name in out, out
    # Out of reach: it ends with an error, and the same command goes on with what was asked for.
    def setups():
        return box.rows("SELECT uid, is_over FROM far_runs WHERE alias = 'fresh' AND kind = 'setup' ORDER BY asked_at")

    known = setups()
    box.cut()
    status, _, err = box.run("machines", "setup", "fresh", "--yes", "--wheel", bad)
    assert status == 1 and "tried 5 times" in err and "VPN" in err and "which is kept" in err, (status, err)
    kept = setups()
    assert kept[:-1] == known and kept[-1][1] == 0, kept
    box.mend()
    out, _ = box.succeeds("machines", "setup", "fresh", "--yes", "--wheel", good)
    assert setups() == [*known, (kept[-1][0], 1)] and "pip install --no-input" in out, "the wheel of now, asked for once"
    box.environment["PATH"] = before
    assert box.json("machines", "check", "fresh")[0]["version"], "what was installed is found"
    if list(BUILD.glob("libstepladder_trainer.*")):
        run = box.json("train", "--on", "fresh", *TINY, "--steps", "3", "--device", "cpu", "--threads", "1")
        assert (run["status"], run["steps"]) == ("finished", 3), run
    assert box.rows("SELECT count(*) FROM runs JOIN far_members ON run_id = id JOIN far_runs ON far_runs.uid = far_uid WHERE kind = 'setup'") == [(0,)]
    box.succeeds("machines", "remove", "fresh")


def check_an_experiment(box):
    """`record run` there: baseline and candidate in turns, and the same command goes on."""
    box.succeeds("machines", "add", "box", "--program", str(PROGRAM))
    there = box.path / "there"
    there.mkdir()
    (there / "run.sh").write_text("echo $STEPLADDER_SIDE >>order; sleep $1; [ ! -e broken ]\n")
    words = ["record", "run", "out", "--on", "box", "--there", str(there), "--runs", "2", "--no-import", "--baseline", "sh run.sh 1", "--candidate",
             "sh run.sh 0.05"]
    (there / "broken").touch()
    status, out, err = box.run(*words)
    assert status == 1 and "The same command line runs it again" in out, (status, out, err)
    (there / "broken").unlink()
    (there / "order").unlink()
    out, _ = box.succeeds(*words)
    assert "The candidate is faster" in out, out
    assert sorted((there / "order").read_text().split()) == ["baseline"] * 2 + ["candidate"] * 2
    assert len(list((there / "out").glob("*/0[12].log"))) == 4
    assert not (box.path / "out").exists() and box.run(*words, "--json")[0] == 2
    assert box.rows("SELECT DISTINCT kind FROM far_runs WHERE name = 'record on box'") == [("record",)]


HOSTILE = r"""
import base64, json, os, sys
mode = sys.argv[1]
def say(value): sys.stdout.write((value if isinstance(value, str) else json.dumps(value)) + "\n"); sys.stdout.flush()
say({"stepladder-far": 1, "version": "9"})
for line in sys.stdin:
    request = json.loads(line)
    what = request["do"]
    if what == "hello":
        say({"id": request["id"], "ok": {"version": 1, "host": "\u001b[31mevil", "home": "/", "folder": "/", "writable": True, "time": 0}})
    elif what == "start":
        uid = request["run"]
        say({"id": request["id"], "ok": {"run": uid, "phase": "running"}})
    elif what == "follow":
        say({"id": request["id"], "ok": {}})
        if mode == "mutated":
            # Valid lines with other values in other places; the last one ends the run.
            import random
            chance = random.Random(11)
            journal = base64.b64encode(b'{"e":"run","v":1}\t00000000\n').decode()
            strange = [None, True, -1, 0, 7, 1 << 62, -(1 << 62), 1e308, 0.5, "", "x", uid, "../" * 50, "\u001b[2J",
                       [], {}, [[[]]], {"run": uid}, "A" * 5000, journal, "keeper/rank-0.1.jsonl", "journals/a/rank-0.1.jsonl"]
            def mutate(value):
                if chance.random() < 0.15: return chance.choice(strange)
                if isinstance(value, dict):
                    return {(chance.choice(["run", "name", "at", "data", "state", "file", "id", "phase", key]) if chance.random() < 0.1 else key): mutate(each)
                            for key, each in value.items()}
                if isinstance(value, list): return [mutate(each) for each in value] * chance.choice([0, 1, 1, 1, 2])
                return value
            for i in range(3000):
                state = {"run": uid, "name": "x", "number": 1, "attempt": 1, "phase": "running", "pid": 5, "host": "box", "code": None, "status": None,
                         "reason": "", "last_alive": 1.0, "paused": False, "job": {"id": "7", "state": "RUNNING", "reason": "", "nodes": "n[1-2]"}}
                line = chance.choice([{"file": {"run": uid, "name": "keeper/rank-0.1.jsonl", "at": chance.randrange(100), "data": journal}},
                                      {"state": state}, {"alive": 5.0}, {"id": request["id"], "ok": {"runs": [state], "more": False}},
                                      {"id": 3, "error": "no"}, {"stepladder-far": 1, "version": "9"}])
                say({key: mutate(value) for key, value in line.items()})
            say({"state": {"run": uid, "phase": "gone", "reason": "bye"}})
        if mode == "long": sys.stdout.write("x" * (8 << 20)); sys.stdout.flush()
        if mode == "deep": say("[" * 100000)
        if mode == "words": say("not json at all")
        if mode == "names":
            for name in ("../../evil", "/tmp/evil", "keeper/../../evil", "journals/../rank-0.1.jsonl", "keeper/rank-0.1.jsonl/x",
                         "journals/.ssh/rank-0.1.jsonl", "request.json", "journals/" + "a" * 5000 + "/rank-0.1.jsonl"):
                say({"file": {"run": uid, "name": name, "at": 0, "data": base64.b64encode(b"evil").decode()}})
            for file in ({"run": 5, "name": [], "at": {}}, {"run": uid, "name": "keeper/rank-0.1.jsonl", "at": -5, "data": "####"},
                         {"run": uid, "name": "keeper/rank-0.1.jsonl", "at": 1 << 62, "data": "AAAA"},
                         {"run": uid, "name": "keeper/rank-0.1.jsonl", "at": 0, "data": base64.b64encode(b"\0" * 5000 + b"\n[[[\n").decode()}):
                say({"file": file})
            for state in ([], {"run": uid, "phase": 7, "code": "x", "reason": "\u001b]0;x\u0007"}, {"run": uid, "phase": "gone", "reason": "\u001b[2Jbye"}):
                say({"state": state})
    else:
        say({"id": request["id"], "ok": {"gpus": [[], {"name": "g" * 100000}, 5] * 100, "load": "x", "partitions": {"a": 1}}})
"""


def check_hostile_machines(box):
    hostile = box.path / "hostile.py"
    hostile.write_text(HOSTILE)
    ssh = box.ssh / "hostile-ssh"
    for mode in ("names", "mutated", "long", "deep", "words"):
        ssh.write_text(f"""#!{sys.executable}
import os, re, sys
mark = re.search(r"echo (stepladder-\\d+) begin", sys.argv[-1])
open({str(box.path / "connections")!r}, "a").write("x")
print(mark.group(1), "begin", os.uname().sysname, os.uname().machine, flush=True)
os.execv({sys.executable!r}, [{sys.executable!r}, {str(hostile)!r}, {mode!r}])
""")
        ssh.chmod(stat.S_IRWXU)
        process = subprocess.Popen([PROGRAM, "watch", "--on", "box", "--there", "/", "--name", mode, "--", "true"],
                                   env={**box.environment, "STEPLADDER_SSH": str(ssh)}, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if mode in ("names", "mutated"):
            _, err = process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 1 and "\x1b" not in err, err
        else:
            box.wait("the link is given up", lambda: box.rows("SELECT lost_why FROM machines WHERE lost_why IS NOT NULL"))
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=PATIENCE_S)
            assert "can't be reached" in err and "aren't Stepladder's" in err and "more rarely" in err, (mode, err)
            with sqlite3.connect(box.database) as database:
                database.execute("UPDATE machines SET lost_why = NULL, lost_at = NULL")
                database.execute("UPDATE far_runs SET is_over = 1")
        assert not list(box.path.rglob("evil")) and not os.path.exists("/tmp/evil"), mode
    # Somebody waits for a setup, so it ends; the last mode's rubbish follows each connection.
    (box.path / "connections").write_text("")
    wheel = box.path / "stepladder-0.1.0-any.whl"
    wheel.write_bytes(b"wheel")
    before = box.environment["STEPLADDER_SSH"]
    box.environment["STEPLADDER_SSH"] = str(ssh)
    status, _, err = box.run("machines", "setup", "box", "--yes", "--wheel", wheel)
    box.environment["STEPLADDER_SSH"] = before
    assert status == 1 and "aren't Stepladder's" in err and "tried 5 times" in err, (status, err)
    assert err.count("trying again") == 1 and "can be reached again" not in err, err
    assert (box.path / "connections").read_text() == "x" * 5


def main():
    box = Box()
    try:
        wanted = sys.argv[1:]
        for check in (check_the_list, check_a_printed_run, check_the_list_follows_nothing, check_repeats_need_slurm,
                      check_a_logout_that_kills, check_killed_trackers, check_a_lost_link, check_noisy_logins, check_requests,
                      check_a_login_that_hangs, check_a_sent_tree, check_the_setup, check_a_ladder, check_a_sweep, check_an_experiment,
                      check_hostile_machines):
            if wanted and check.__name__ not in wanted and check is not check_the_list:
                continue
            begun = time.monotonic()
            check(box)
            print(f"{check.__name__}: {time.monotonic() - begun:.1f} s", flush=True)
    finally:
        box.close()


if __name__ == "__main__":
    main()
