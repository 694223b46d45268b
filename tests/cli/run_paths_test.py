"""Where the built libraries look for others: never in the current folder, whose files may be anybody's."""
import shutil
import subprocess
import unittest

from program import BUILD


@unittest.skipUnless(shutil.which("readelf"), "readelf isn't installed")
class RunPaths(unittest.TestCase):
    def test_none_is_empty(self):
        binaries = [BUILD / "stepladder", *sorted(BUILD.glob("libstepladder_*.so"))]
        self.assertGreater(len(binaries), 1)
        for binary in binaries:
            listed = subprocess.run(["readelf", "-d", binary], capture_output=True, text=True, check=True).stdout
            for line in listed.splitlines():
                if "(RUNPATH)" in line or "(RPATH)" in line:
                    folders = line.partition("[")[2].rpartition("]")[0].split(":")
                    self.assertNotIn("", folders, f"{binary}: {line}")


if __name__ == "__main__":
    unittest.main()
