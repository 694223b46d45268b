"""A program in ssh's place: this machine is the other one, so that tests need neither root nor sshd."""
import stat

# Notes its words in `words`, prints what a login prints (`noise`), and runs the command as a login shell (`shell`) would,
# with the home folder `home`. There is no link while the file `down` exists.
SSH = r"""#!/usr/bin/env python3
import os, sys
place = os.path.dirname(os.path.abspath(__file__))
words = sys.argv[1:]
open(place + "/words", "a").write(repr(words) + "\n")
if os.path.exists(place + "/down"):
    sys.stderr.write("ssh: connect to host box port 22: Connection timed out\n")
    sys.exit(255)
if os.path.exists(place + "/noise"):
    print(open(place + "/noise").read(), flush=True)
shell = open(place + "/shell").read().strip() if os.path.exists(place + "/shell") else "/bin/sh"
home = place + "/home"
os.makedirs(home, exist_ok=True)
open(place + "/pids", "a").write(f"{os.getpid()}\n")
os.environ.update(HOME=home)
for name in ("STEPLADDER_DB", "STEPLADDER_ASKS_IN", "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE"):  # ssh passes none of them on
    os.environ.pop(name, None)
os.chdir(home)
os.execvp(shell, [shell, "-c", words[-1]])
"""


def put_in_place_of_ssh(folder):
    """Makes the folder; returns the program, for STEPLADDER_SSH."""
    folder.mkdir()
    program = folder / "ssh"
    program.write_text(SSH)
    program.chmod(stat.S_IRWXU)
    return str(program)
