"""The program for aarch64, as `./package aarch64` has built it, by qemu: it has to print what the program of this build prints.

It starts no other program: those would need a qemu that the kernel knows.
"""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from program import BUILD, PATIENCE_S

ROOT = pathlib.Path(__file__).resolve().parents[2]
CROSS = ROOT / "build-aarch64"


def step_lines(seed):
    return "".join(f"step {i} | loss {5 - i / 100:.2f} | dt {100 + (i * seed) % 7}.25ms | tok/sec 40960\n" for i in range(1, 121))


class Aarch64(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="stepladder-aarch64-")
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        place = self.path / "program"
        place.mkdir()
        for file in (CROSS / "portable" / "stepladder", CROSS / "stepladder-far", CROSS / "assets"):
            (place / file.name).symlink_to(file)
        self.theirs = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", shutil.copy(CROSS / "portable" / "stepladder", place / "started")]
        for name, seed in (("one", 3), ("two", 5)):
            (self.path / f"{name}.log").write_text(step_lines(seed))

    def output_of(self, program, *arguments):
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("STEPLADDER_", "DISPLAY"))}
        done = subprocess.run([*map(str, program), *map(str, arguments)], cwd=self.path, capture_output=True, text=True, timeout=PATIENCE_S,
                              env={**environment, "HOME": str(self.path), "XDG_DATA_HOME": str(self.path / "data")})
        return done.returncode, done.stdout, done.stderr

    def test_it_prints_the_same(self):
        for name, program in (("ours", [BUILD / "stepladder"]), ("theirs", self.theirs)):
            status, _, err = self.output_of(program, "--db", f"{name}.db", "import", "one.log", "two.log")
            self.assertEqual(status, 0, err)
        for arguments in (["compare", "1", "2", "--json"], ["check", "--json"], ["runs"], ["show", "2", "--steps", "--json"],
                          ["mfu", "--published", "--json"], ["help", "ladder"], ["compare", "1", "99"],
                          ["export", "1", "2", "--format", "csv", "--out", "-"], ["export", "1", "2", "--format", "svg", "--out", "-"]):
            with self.subTest(arguments=arguments):
                # Each reads the other's file, too.
                ours = self.output_of([BUILD / "stepladder"], "--db", "theirs.db", *arguments)
                theirs = self.output_of(self.theirs, "--db", "theirs.db", *arguments)
                self.assertEqual(theirs, ours)
                self.assertEqual(self.output_of(self.theirs, "--db", "ours.db", *arguments)[0], ours[0])

    def test_no_symbol_is_newer_than_the_oldest_system(self):
        for program in (CROSS / "portable").iterdir():
            versions = subprocess.run(["readelf", "-W", "-V", program], check=True, capture_output=True, text=True).stdout
            newest = max(tuple(map(int, number.split("."))) for number in re.findall(r"GLIBC_([0-9.]+)", versions))
            self.assertLessEqual(newest, (2, 28), program)
            self.assertNotRegex(versions, "GLIBCXX_|CXXABI_", "the system's libstdc++ may be older")
            dynamic = subprocess.run(["readelf", "-W", "-d", program], check=True, capture_output=True, text=True).stdout
            self.assertNotRegex(dynamic, "RPATH|RUNPATH", "a folder of the build")

    def test_it_says_that_it_cannot_train(self):
        for arguments in (["train", "--steps", "2"], ["setup-training", "--yes"]):
            status, out, err = self.output_of(self.theirs, *arguments)
            self.assertEqual((status, out), (1, ""))
            self.assertIn("this build of Stepladder can't train", err)


if __name__ == "__main__":
    if not shutil.which("qemu-aarch64") or not (CROSS / "portable" / "stepladder").exists():
        print("skipped: there is no build of `./package aarch64`, or no qemu-aarch64")
        raise SystemExit(77)
    unittest.main(verbosity=2)
