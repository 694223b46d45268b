"""Starts the single file of ./package in a root that has only the C library of an older Debian, and a shell; with the
trainer's wheel it trains there too, with GCC's libraries of that Debian and the torch of the Python that runs this.

    python tests/emulator/in_old_root.py FILE SUITE [ARCH | WHEEL]       dist/stepladder-0.1.0-linux-x86_64 bullseye

The packages come from where the system's own come from, into a temporary folder; nothing is installed. ARCH is amd64, or arm64,
which qemu runs. Needs root, for chroot.
"""
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

QEMU = {"arm64": "qemu-aarch64"}
LOG = "".join(f"step {i} | loss {5 - i / 100:.2f} | dt 100.0ms | tok/sec 40960\n" for i in range(1, 31))
MOUNTS = 'mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" && '
TRAINING = ["--model", "nano", "--layers", "1", "--batch", "2", "--steps", "10"]


def output_of(*command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600, **options)
    assert done.returncode == 0, (command, done.returncode, done.stdout, done.stderr)
    return done.stdout


def fill(root, suite, arch, packages, state):
    for folder in ("lists/partial", "archives/partial"):
        (state / folder).mkdir(parents=True)
    (state / "status").touch()
    sites = set(output_of("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages").split())
    (state / "sources").write_text("".join(f"deb [trusted=yes] {site} {suite} main\n" for site in sorted(sites) if site.rstrip("/").endswith("/debian")))
    options = ["-o", f"APT::Architecture={arch}", "-o", f"APT::Architectures={arch}", "-o", f"Dir::State={state}",
               "-o", f"Dir::State::status={state}/status", "-o", f"Dir::Cache={state}", "-o", f"Dir::Etc::sourcelist={state}/sources",
               "-o", "Dir::Etc::sourceparts=/dev/null", "-o", "APT::Sandbox::User=root"]
    output_of("apt-get", *options, "-qq", "update")
    output_of("apt-get", *options, "-qq", "download", *packages, cwd=state)
    for package in state.glob("*.deb"):
        output_of("dpkg", "-x", package, root)
    for folder in ("proc", "dev", "home"):
        (root / folder).mkdir(exist_ok=True)


def in_qemu(root, file, emulator):
    """It unpacks itself; the kernel can't start what it has unpacked, but qemu can."""
    environment = {"HOME": str(root / "home"), "PATH": "/usr/bin:/bin"}
    subprocess.run([emulator, file], capture_output=True, env=environment)
    (program,) = (root / "home").glob(".cache/stepladder/app/*/lib/stepladder/stepladder")
    stepladder = lambda *arguments: output_of(emulator, "-L", root, program, *arguments, env=environment, cwd=root / "home")
    print(stepladder("--version").strip())
    stepladder("--db", "runs.db", "import", "train.log")
    shown = stepladder("--db", "runs.db", "runs")
    print(shown.strip())
    assert shown.count(" 30 ") == 1, shown


def in_chroot(root, wheel):
    mounts, environment = MOUNTS, {"HOME": "/home", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    if wheel:
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(root / "site")
        for name in ("torch", "nvidia"):
            (root / "site" / name).mkdir()
            mounts += f'mount --bind "{sysconfig.get_path("purelib")}/{name}" "$0/site/{name}" && '
        environment["STEPLADDER_TRAINER_LIBRARY"] = "/site/stepladder_trainer/libstepladder_trainer.so"
    stepladder = lambda *arguments: output_of("unshare", "-m", "sh", "-c", mounts + 'exec chroot "$0" /stepladder --db /home/runs.db "$@"', root,
                                              *arguments, env=environment)
    print(stepladder("--version").strip())
    stepladder("import", "/home/train.log")
    stepladder("watch", "--name", "watched", "--", "/bin/busybox", "cat", "/home/train.log")
    if wheel:
        stepladder("ladder", *TRAINING, "--stages", "baseline,fused-adamw,bf16")
        stepladder("train", *TRAINING, "--nproc", "2")
    shown = stepladder("runs")
    print(shown.strip())
    assert shown.count(" 30 ") == 2 and shown.count("finished") == (6 if wheel else 2), shown


def main():
    file, suite, last = pathlib.Path(sys.argv[1]), sys.argv[2], (sys.argv[3:] or ["amd64"])[0]
    wheel = last if last.endswith(".whl") else None
    packages = ["libc6", "libgcc-s1", "busybox-static"] + (["libstdc++6", "libgomp1", "zlib1g"] if wheel else [])
    with tempfile.TemporaryDirectory(prefix="stepladder-root-") as temporary:
        root, state = pathlib.Path(temporary) / "root", pathlib.Path(temporary) / "apt"
        root.mkdir()
        fill(root, suite, "amd64" if wheel else last, packages, state)
        shutil.copy(file, root / "stepladder")
        (root / "home" / "train.log").write_text(LOG)
        print(suite + ": " + ", ".join(sorted(path.name for path in [*root.rglob("libc-*.so"), *root.rglob("libstdc++.so.6.*")] if not path.is_symlink() and "gdb" not in str(path))))
        if last in QEMU:
            in_qemu(root, file, QEMU[last])
        else:
            in_chroot(root, wheel)


if __name__ == "__main__":
    main()
