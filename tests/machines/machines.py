"""Machines of their own for tests: a real sshd, and a real Slurm of two nodes, in private namespaces of this machine.

    with Sshd() as box:                 # or Slurm()
        subprocess.run([box.ssh, box.alias, "hostname"])      # `box.ssh` is what STEPLADDER_SSH names
        box.link_down(); box.link_up()

The far side has its own network, processes, host name, home and login shell; it ends with the `with`, and so does all that
it runs. Needs root and Debian's openssh-server (slurm-wlm and munge); `require` says what is missing and exits with 77.
"""
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SBIN = "/usr/sbin:/sbin"
ADDRESS, SECOND, OURS = "10.98.7.2", "10.98.7.3", "10.98.7.1"
PATIENCE_S = 400
C = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1

SSHD_CONFIG = """
ListenAddress {address}
HostKey {path}/host_key
AuthorizedKeysFile {path}/user_key.pub
StrictModes no
UsePAM no
PidFile none
PermitRootLogin prohibit-password
PasswordAuthentication no
"""
SSH_CONFIG = """
Host {alias}
  HostName {address}
  User root
  IdentityFile {path}/user_key
  IdentitiesOnly yes
  UserKnownHostsFile {path}/known_hosts
  ControlPath none
"""
SLURM_CONFIG = """
ClusterName=stepladder
SlurmctldHost=node1({address})
SlurmUser=root
SlurmdUser=root
StateSaveLocation={path}/slurm/state
SlurmdSpoolDir={path}/slurm/spool-%n
SlurmctldPidFile={path}/slurm/ctld.pid
SlurmdPidFile={path}/slurm/%n.pid
SlurmctldLogFile={path}/slurm/ctld.log
SlurmdLogFile={path}/slurm/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,sched_min_interval=10000,defer_batch
KillWait=5
JobRequeue=1
NodeName=node1 NodeHostname=node1 NodeAddr={address} Port=17001 CPUs=2
NodeName=node2 NodeHostname=node1 NodeAddr={second} Port=17002 CPUs=2
PartitionName=main Nodes=node1,node2 Default=YES MaxTime=01:00:00 OverSubscribe=FORCE:4
PartitionName=single Nodes=node2 MaxTime=UNLIMITED
"""


def which(name):
    return shutil.which(name, path=os.environ["PATH"] + ":" + SBIN)


def missing(*programs):
    """Why these tests can't run here; empty if they can."""
    if sys.platform != "linux" or os.getuid() != 0:
        return "this test needs root, for private namespaces"
    absent = [name for name in ("unshare", "nsenter", "ip", "ssh", "sshd", "ssh-keygen", *programs) if not which(name)]
    if absent:
        return f"not installed: {', '.join(absent)}"
    if subprocess.run(["unshare", "--net", "--mount", "--pid", "--uts", "--fork", "true"], capture_output=True).returncode:
        return "this machine doesn't allow private namespaces"
    return ""


def require(*programs):
    why = missing(*programs)
    if why:
        print(f"skipped: {why}")
        sys.exit(77)


SLURM_PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "srun", "squeue")


class Sshd:
    """`shell` is the login shell, `bashrc` the text of the far home's .bashrc, `home` another far home (e.g. read-only)."""
    host = "box"

    def __init__(self, shell="/bin/bash", bashrc="", alias="box"):
        self.shell, self.bashrc, self.alias = shell, bashrc, alias

    def __enter__(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="stepladder-machine-", ignore_cleanup_errors=True)
        self.path = pathlib.Path(self.temporary.name)
        self.home = self.path / "home"
        self.home.mkdir()
        (self.home / ".bashrc").write_text(self.bashrc)
        self.processes = []
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.kill()  # with the namespace's first process all others end
            process.wait()
        self.temporary.cleanup()

    def _start(self):
        for key in ("host_key", "user_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.path / key], check=True)
        fields = {"path": self.path, "address": ADDRESS, "second": SECOND, "alias": self.alias}
        (self.path / "sshd_config").write_text(SSHD_CONFIG.format(**fields))
        self.ssh_config = self.path / "ssh_config"
        self.ssh_config.write_text(SSH_CONFIG.format(**fields))
        (self.path / "known_hosts").write_text(f"{ADDRESS} {(self.path / 'host_key.pub').read_text()}")
        users = [line if not line.startswith("root:") else f"root:x:0:0:root:{self.home}:{self.shell}"
                 for line in pathlib.Path("/etc/passwd").read_text().splitlines()]
        (self.path / "passwd").write_text("\n".join(users) + "\n")
        (self.path / "hosts").write_text(f"127.0.0.1 localhost\n{ADDRESS} {self.host} node1\n{SECOND} node2\n{OURS} here\n")
        (self.path / "nsswitch.conf").write_text("passwd: files\ngroup: files\nshadow: files\nhosts: files\n")
        (self.path / "machine.sh").write_text(self._machine())
        self.near = self._hold(["unshare", "--net", "sh", "-c", "ip link set lo up; echo ready; exec sleep 100000"])
        self.far = self._hold(["unshare", "--net", "--mount", "--pid", "--uts", "--fork", "--kill-child", "--mount-proc",
                               "sh", str(self.path / "machine.sh")])
        self._connect()
        (self.path / "connected").touch()
        self.ssh = self.path / "ssh"
        self.ssh.write_text(f"#!/bin/sh\nexec nsenter --net=/proc/{self.near.pid}/ns/net ssh -F {self.ssh_config} \"$@\"\n")
        self.ssh.chmod(0o755)
        self._wait(lambda: self.run_ssh("true").returncode == 0, "sshd")

    def _hold(self, command):
        """A process that holds namespaces; returns once it says that it is ready."""
        environment = {**os.environ, "PATH": os.environ["PATH"] + ":" + SBIN}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, env=environment,
                                   preexec_fn=lambda: C.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))  # also if the test is killed
        self.processes.append(process)
        assert process.stdout.readline() == b"ready\n", command
        return process

    def _machine(self):
        """The far machine's first process."""
        return f"""
set -e
mount --make-rprivate /
hostname {self.host}
ip link set lo up
mount -t tmpfs none /run
mkdir -p /run/sshd /run/munge
for file in passwd hosts nsswitch.conf; do mount --bind {self.path}/$file /etc/$file; done
echo ready
exec >{self.path}/machine.log 2>&1
while [ ! -e {self.path}/connected ]; do sleep 0.02; done
export HOME={self.home}
{self._daemons()}
while :; do wait || true; sleep 0.2; done
"""

    def _daemons(self):
        return f"{which('sshd')} -D -e -f {self.path}/sshd_config &"

    def _connect(self):
        """A cable between the two networks."""
        self.far_pid = int(pathlib.Path(f"/proc/{self.far.pid}/task/{self.far.pid}/children").read_text().split()[0])
        self.in_near("ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1", "netns", str(self.far_pid))
        self.in_near("ip", "address", "add", f"{OURS}/24", "dev", "v0")
        self.in_near("ip", "link", "set", "v0", "up")
        self.in_far("ip", "address", "add", f"{ADDRESS}/24", "dev", "v1")
        self.in_far("ip", "address", "add", f"{SECOND}/24", "dev", "v1")
        self.in_far("ip", "link", "set", "v1", "up")

    def _wait(self, condition, what):
        end = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > end:
                logs = "".join(f"\n== {log}\n{log.read_text(errors='replace')[-3000:]}" for log in self.path.rglob("*.log"))
                raise AssertionError(f"{what} didn't start in {PATIENCE_S} s{logs}")
            time.sleep(0.1)

    def in_near(self, *command):
        """Runs a command in the network of this side."""
        return subprocess.run(["nsenter", f"--net=/proc/{self.near.pid}/ns/net", *command], check=True, capture_output=True, text=True)

    def far_prefix(self):
        """Before a command that is to run on the far machine, without ssh."""
        return ["nsenter", "--target", str(self.far_pid), "--net", "--mount", "--pid", "--uts"]

    def in_far(self, *command, check=True):
        environment = {**os.environ, "HOME": str(self.home), "PATH": os.environ["PATH"] + ":" + SBIN}
        return subprocess.run([*self.far_prefix(), *map(str, command)], check=check, capture_output=True, text=True, env=environment)

    def run_ssh(self, *command):
        return subprocess.run([self.ssh, "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", self.alias, *command],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)

    def lock(self, passphrase):
        """This side's key needs a passphrase from now on."""
        subprocess.run(["ssh-keygen", "-q", "-p", "-P", "", "-N", passphrase, "-f", self.path / "user_key"], check=True)

    def link_down(self):
        """Packets are lost from now on; nobody is told."""
        self.in_near("ip", "link", "set", "v0", "down")

    def link_up(self):
        self.in_near("ip", "link", "set", "v0", "up")

    def processes_there(self, word):
        """Command lines of the far machine's processes that hold the word, by pid there."""
        listing = self.in_far("sh", "-c", "for p in /proc/[0-9]*; do echo \"${p#/proc/} $(tr '\\0' ' ' <$p/cmdline)\"; done 2>/dev/null").stdout
        return {int(line.split()[0]): line for line in listing.splitlines() if word in line and "for p in" not in line}


class Slurm(Sshd):
    """A cluster of two nodes, node1 (also the login node, with sshd) and node2, which share all files."""
    host = "node1"

    def __init__(self, alias="cluster", **options):
        super().__init__(alias=alias, **options)

    def _start(self):
        (self.path / "slurm" / "state").mkdir(parents=True)
        (self.path / "etc").mkdir()
        (self.path / "etc" / "slurm.conf").write_text(SLURM_CONFIG.format(path=self.path, address=ADDRESS, second=SECOND))
        super()._start()
        self._wait(lambda: self.nodes() == {"node1": "idle", "node2": "idle"}, "Slurm")

    def _daemons(self):
        return f"""
{super()._daemons()}
mount --bind {self.path}/etc /etc/slurm
mkdir -p /var/log/munge {self.path}/munge
chmod 0700 {self.path}/munge
dd if=/dev/urandom of={self.path}/munge/key bs=128 count=1 2>/dev/null
chmod 0400 {self.path}/munge/key
chmod 0755 /run/munge
{which('munged')} --foreground --force --key-file={self.path}/munge/key --seed-file={self.path}/munge/seed \
  --socket=/run/munge/munge.socket.2 --pid-file={self.path}/munge/pid --log-file={self.path}/munge/munged.log &
while [ ! -S /run/munge/munge.socket.2 ]; do sleep 0.05; done
{which('slurmctld')} -D &
{which('slurmd')} -D -N node1 &
{which('slurmd')} -D -N node2 &
"""

    def nodes(self):
        """Each node's state, as sinfo tells it."""
        lines = self.in_far("sinfo", "--noheader", "--Node", "--format=%N %t", check=False).stdout.split("\n")
        return dict(line.split() for line in lines if line.strip())
