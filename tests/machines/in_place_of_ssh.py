"""A program in ssh's place: this machine is the other one, so that tests need neither root nor sshd."""
import os
import pathlib
import signal
import stat
import sys

# Notes its words in `words`, prints what a login prints (`noise`), and runs the command as a login shell (`shell`) would,
# with the home folder `home`. There is no link while the file `down` exists. With the file `asks`, a question and the right answer,
# it asks as ssh does: three times, through SSH_ASKPASS, unless BatchMode forbids it; `answers` notes what it was given. A login at the
# machine that the file `hangs` names doesn't answer.
SSH = r"""#!PYTHON
import os, subprocess, sys, time
place = os.path.dirname(os.path.abspath(__file__))
words = sys.argv[1:]
open(place + "/words", "a").write(repr(words) + "\n")
if os.path.exists(place + "/down"):
    sys.stderr.write("ssh: connect to host box port 22: Connection timed out\n")
    sys.exit(255)
while os.path.exists(place + "/hangs") and open(place + "/hangs").read() in words:
    time.sleep(0.05)
if os.path.exists(place + "/asks"):
    open(place + "/askers", "a").write(f"{os.getpid()}\n")
    question, right = open(place + "/asks").read().splitlines()
    for _ in range(0 if "BatchMode=yes" in words else 3):
        given = subprocess.run([os.environ["SSH_ASKPASS"], question], stdout=subprocess.PIPE, text=True)
        answer = given.stdout.rstrip("\n") if given.returncode == 0 else None
        open(place + "/answers", "a").write(repr(answer) + "\n")
        if answer == right or answer is None:
            break
    else:
        answer = None
    if answer is None:
        sys.stderr.write("box: Permission denied (publickey).\n")
        sys.exit(255)
if os.path.exists(place + "/noise"):
    print(open(place + "/noise").read(), flush=True)
shell = open(place + "/shell").read().strip() if os.path.exists(place + "/shell") else "/bin/sh"
home = place + "/home"
os.makedirs(home, exist_ok=True)
open(place + "/pids", "a").write(f"{os.getpid()}\n")
os.environ.update(HOME=home)
for name in ("STEPLADDER_DB", "STEPLADDER_ASKS_IN", "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE", "LD_PRELOAD"):  # ssh passes none of them on
    os.environ.pop(name, None)
os.chdir(home)
os.execvp(shell, [shell, "-c", words[-1]])
"""


def put_in_place_of_ssh(folder):
    """Makes the folder; returns the program, for STEPLADDER_SSH."""
    folder.mkdir()
    program = folder / "ssh"
    program.write_text(SSH.replace("PYTHON", sys.executable, 1))
    program.chmod(stat.S_IRWXU)
    return str(program)


def end_all_there(folder):
    """Kills what still runs on the machine: keepers and their programs, which outlive the test otherwise."""
    home = f"HOME={folder / 'home'}".encode()
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if home in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGKILL)
        except OSError:
            continue  # it has ended, or belongs to another user
