"""Lets TensorBoard's, MLflow's, Trackio's and wandb's own writers make stores afresh, then reads them with importer_tests.

    python peer_stores_test.py BUILD_FOLDER/importer_tests

The writers come from PyPI, pinned in stores/requirements.txt, into a private environment in the user's cache, which is
kept. Where they cannot be installed the test is skipped (exit status 77) and says why.
"""
import hashlib
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import venv

HERE = pathlib.Path(__file__).resolve().parent
REQUIREMENTS = HERE / "stores/requirements.txt"
SKIPPED = 77


def environment(requirements=REQUIREMENTS, takes_torch=False):
    """The folder of an environment that has these packages, created if missing; with this Python's torch if wanted."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    key = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:12]
    folder = cache / "stepladder" / f"peer-stores-{key}"
    if not (folder / "complete").exists():
        venv.create(folder, with_pip=True, clear=True)
        if takes_torch:  # before pip looks whether it is there
            packages = next(folder.glob("lib/python*/site-packages"))
            (packages / "torch.pth").write_text(sysconfig.get_path("purelib") + "\n")
        subprocess.run([folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                        "-r", requirements], check=True)
        (folder / "complete").touch()
    return folder


def main():
    try:
        python = environment() / "bin/python"
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"skipped: the trackers' writers could not be installed: {error}")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, HERE / "stores/write_stores.py", folder], check=True, timeout=500)
        written = sorted(path.name for path in pathlib.Path(folder).glob("*.json"))
        print("written:", ", ".join(written))
        if len(written) < 6:
            print("a writer that is installed did not write")
            return 1
        return subprocess.run([sys.argv[1], "--gtest_filter=Stores*"],
                              env={**os.environ, "STEPLADDER_STORES": folder}).returncode


if __name__ == "__main__":
    sys.exit(main())
