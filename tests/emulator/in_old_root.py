"""Starts the single file of ./package in a root that has only the C library of an older Debian, and a shell.

    python tests/emulator/in_old_root.py FILE SUITE [ARCH]       dist/stepladder-0.1.0-linux-x86_64 bullseye

The packages come from where the system's own come from, into a temporary folder; nothing is installed. On another machine
than ARCH (amd64, arm64) qemu runs it. Needs root, for chroot.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

QEMU = {"arm64": "qemu-aarch64"}
LOG = "".join(f"step {i} | loss {5 - i / 100:.2f} | dt 100.0ms | tok/sec 40960\n" for i in range(1, 31))


def output_of(*command, **options):
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True, **options).stdout


def fill(root, suite, arch, state):
    """Unpacks libc and what the single file needs beside it."""
    (sites) = output_of("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages").split()
    for folder in ("lists/partial", "archives/partial"):
        (state / folder).mkdir(parents=True)
    (state / "status").touch()
    (state / "sources").write_text("".join(f"deb [trusted=yes] {site} {suite} main\n" for site in sorted(set(sites)) if site.rstrip("/").endswith("/debian")))
    options = ["-o", f"APT::Architecture={arch}", "-o", f"APT::Architectures={arch}", "-o", f"Dir::State={state}",
               "-o", f"Dir::State::status={state}/status", "-o", f"Dir::Cache={state}", "-o", f"Dir::Etc::sourcelist={state}/sources",
               "-o", "Dir::Etc::sourceparts=/dev/null", "-o", "APT::Sandbox::User=root"]
    output_of("apt-get", *options, "-qq", "update")
    output_of("apt-get", *options, "-qq", "download", "libc6", "libgcc-s1", "busybox-static", cwd=state)
    for package in state.glob("*.deb"):
        output_of("dpkg", "-x", package, root)


def main():
    file, suite, arch = pathlib.Path(sys.argv[1]), sys.argv[2], (sys.argv[3:] or ["amd64"])[0]
    with tempfile.TemporaryDirectory(prefix="stepladder-root-") as temporary:
        root, state = pathlib.Path(temporary) / "root", pathlib.Path(temporary) / "apt"
        root.mkdir()
        fill(root, suite, arch, state)
        for folder in ("proc", "dev", "tmp", "home"):
            (root / folder).mkdir(exist_ok=True)
        (root / "dev" / "null").touch()
        shutil.copy(file, root / "stepladder")
        (root / "home" / "train.log").write_text(LOG)
        glibc = next(root.glob("lib/*/libc-*.so"), None) or next(root.glob("lib/*/libc.so.6"))
        print(f"{suite}, {arch}: {glibc.name}")

        def inside(*command):
            emulator = QEMU.get(arch) if os.uname().machine == "x86_64" else None
            if emulator:
                command = [emulator, "-L", root, root / "stepladder", *command[1:]]
                where = root / "home"
            else:
                script = 'mount -t proc proc "$0/proc" && mount --bind /dev/null "$0/dev/null" && exec chroot "$@"'
                command, where = ["unshare", "-m", "sh", "-c", script, root, root, *command], "/"
            done = subprocess.run(list(map(str, command)), cwd=where, capture_output=True, text=True, timeout=600,
                                  env={"HOME": str(root / "home") if emulator else "/home", "PATH": os.environ["PATH"], "TERM": "dumb"})
            assert done.returncode == 0, (command, done.returncode, done.stdout, done.stderr)
            return done.stdout

        home = root / "home" if arch in QEMU else pathlib.Path("/home")
        print(inside("/stepladder", "--version").strip())
        inside("/stepladder", "--db", home / "runs.db", "import", home / "train.log")
        if arch not in QEMU:  # which can't start another program of that machine
            inside("/stepladder", "--db", "/home/runs.db", "watch", "--name", "watched", "--", "/bin/busybox", "cat", "/home/train.log")
        shown = inside("/stepladder", "--db", home / "runs.db", "runs")
        print(shown.strip())
        assert shown.count(" 30 ") >= (1 if arch in QEMU else 2), shown
        if arch not in QEMU:
            print(inside("/stepladder", "--db", "/home/runs.db", "compare", "1", "2").strip())


if __name__ == "__main__":
    main()
