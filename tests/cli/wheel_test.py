"""The wheel that ./package builds, in a fresh venv: without torch, and with it."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import sysconfig
import tempfile
import unittest
import venv

from program import BUILD, PATIENCE_S, SMALLEST

ROOT = pathlib.Path(__file__).resolve().parents[2]


def output_of(*command, folder, **environment):
    """Its status and what it printed. It sees nothing of the project or of this process's Python."""
    clean = {key: value for key, value in os.environ.items()
             if key not in ("DISPLAY", "WAYLAND_DISPLAY") and not key.startswith(("PYTHON", "STEPLADDER_", "XDG_"))}
    process = subprocess.Popen(list(map(str, command)), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**clean, "HOME": str(folder), "OMP_NUM_THREADS": "1", **environment}, start_new_session=True)
    try:
        out, err = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # and what it has started
        process.communicate()
        raise
    return process.returncode, out, err


@unittest.skipIf(os.environ.get("STEPLADDER_SANITIZED"), "a wheel with sanitizers is of no use")
class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="stepladder-wheel-")
        cls.addClassCleanup(folder.cleanup)
        cls.path = pathlib.Path(folder.name)
        status, out, err = output_of(ROOT / "package", folder=ROOT, STEPLADDER_BUILD=str(BUILD), STEPLADDER_DIST=str(cls.path / "dist"),
                                     STEPLADDER_CACHE=str(pathlib.Path(sys.prefix).parent), HOME=os.environ["HOME"])
        if status != 0 and "No matching distribution" in err:
            raise unittest.SkipTest("the package index, which has the wheel's tools, can't be reached")
        assert status == 0, err
        venv.create(cls.path / "venv", with_pip=True)
        cls.bin = cls.path / "venv" / "bin"
        cls.wheel = pathlib.Path(out.strip().splitlines()[-1])
        status, _, err = output_of(cls.bin / "pip", "install", "--no-index", "--no-deps", cls.wheel, folder=cls.path)
        assert status == 0, err

    def stepladder(self, *arguments):
        return output_of(self.bin / "stepladder", "--db", self.path / f"{self._testMethodName}.db", *arguments, folder=self.path)

    def test_its_name_says_where_it_runs(self):
        self.assertRegex(self.wheel.name, r"^stepladder-\d+\.\d+\.\d+-py3-none-manylinux_2_\d+_x86_64\.whl$")
        self.assertLess(self.wheel.stat().st_size, 20 << 20)

    def test_without_torch_everything_but_training_works(self):
        status, out, err = self.stepladder("--version")
        self.assertEqual(status, 0, err)
        self.assertIn(self.wheel.name.split("-")[1], out)
        self.assertEqual(self.stepladder("skill")[1], (ROOT / "SKILL.md").read_text())
        script = ("import stepladder, sys; assert 'torch' not in sys.modules; stepladder.init(name='mine'); "
                  "[stepladder.log({'loss': 3.5 - i, 'val/acc': i / 4}) for i in range(3)]; stepladder.finish()")
        status, _, err = output_of(self.bin / "python", "-c", script, folder=self.path)
        self.assertEqual(status, 0, err)
        status, _, err = self.stepladder("follow", "stepladder", "--once")
        self.assertEqual(status, 0, err)
        run = json.loads(self.stepladder("show", "1", "--metrics", "--json")[1])
        self.assertEqual(run["metrics"]["val/acc"], [[0, 0.0], [1, 0.25], [2, 0.5]])
        status, _, err = self.stepladder("train", *SMALLEST, "--steps", 2)
        self.assertEqual(status, 1)
        self.assertIn("torch", err)
        picture = self.path / "history.png"
        status, _, err = self.stepladder("screenshot", "--view", "history", "--out", picture)
        self.assertEqual(status, 0, err)
        self.assertEqual(picture.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")

    def test_with_torch_it_trains(self):
        site = next((self.path / "venv").glob("lib/python*/site-packages"))
        (site / "torch-of-the-tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
        self.addCleanup((site / "torch-of-the-tests.pth").unlink)
        status, out, err = self.stepladder("ladder", *SMALLEST, "--steps", 10, "--stages", "baseline,fused-adamw", "--json")
        self.assertEqual(status, 0, err)
        self.assertEqual([rung["stage"] for rung in json.loads(out)["rungs"]], ["baseline", "fused-adamw"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
