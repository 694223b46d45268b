"""What the build's own scripts do: the commit that they name, and the folders that they lock."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("STEPLADDER_BUILD", ROOT / "build")).resolve()
CMAKE = re.search(r"^CMAKE_COMMAND:INTERNAL=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE).group(1)
PATIENCE_S = 300


class Commit(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="stepladder-commit-")
        self.addCleanup(folder.cleanup)
        self.header = pathlib.Path(folder.name) / "commit.h"
        self.sources = pathlib.Path(folder.name) / "sources"
        (self.sources / "inner").mkdir(parents=True)

    def git(self, *arguments):
        return subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=self.sources, check=True,
                              stdout=subprocess.PIPE, text=True, env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}).stdout

    def commit(self, sources=None):
        subprocess.run([CMAKE, f"-DGIT={shutil.which('git')}", f"-DSOURCES={sources or self.sources}", f"-DHEADER={self.header}",
                        "-P", ROOT / ".ci" / "commit.cmake"], check=True)
        return re.fullmatch(r'#define STEPLADDER_COMMIT "(.*)"\n', self.header.read_text()).group(1)

    @unittest.skipUnless(shutil.which("git"), "there is no git")
    def test_it_says_whether_files_were_changed(self):
        self.assertEqual(self.commit(), "", "there is no repository")
        self.git("init", "-q")
        (self.sources / "file").write_text("one\n")
        self.git("add", "file")
        self.git("commit", "-qm", "one")
        self.git("tag", "v1")
        head = self.git("rev-parse", "--short=12", "HEAD").strip()
        self.assertEqual(self.commit(), head)
        written = self.header.stat().st_mtime_ns
        self.assertEqual((self.commit(), self.header.stat().st_mtime_ns), (head, written), "nothing is linked anew")
        (self.sources / "file").write_text("two\n")
        self.assertEqual(self.commit(), head + "-dirty")
        (self.sources / "file").write_text("one\n")
        self.assertEqual(self.commit(), head)
        self.assertEqual(self.commit(self.sources / "inner"), "", "sources in somebody else's repository")


class Units(unittest.TestCase):
    def units(self, files, most_lines=100):
        with tempfile.TemporaryDirectory(prefix="stepladder-units-") as folder:
            for name, text in files.items():
                (pathlib.Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                (pathlib.Path(folder) / name).write_text(text)
            sources = [name for name in files if name.endswith(".cpp")]
            printed = subprocess.run([sys.executable, ROOT / ".ci" / "units.py", folder, str(most_lines), *sources], check=True,
                                     stdout=subprocess.PIPE, text=True).stdout
            return list(map(int, printed.split()))

    @staticmethod
    def local(text):
        return f"namespace stepladder {{\nnamespace {{\n\n{text}\n\n}}  // namespace\n}}  // namespace stepladder\n"

    def test_names_of_two_files_never_meet(self):
        for one, other, apart in (
                ("int count(int a) {\n  return a;\n}", "int count(double b) {\n  return 0;\n}", True),
                ("int count(int a) {\n  return a;\n}", "int count(int a, int b) {\n  return a;\n}", False),
                ("int count(int a) {\n  return a;\n}", "int count(int a, int b = 2) {\n  return a;\n}", True),
                ("int count(int a) {\n  return a;\n}", "int count(int a,\n          int b) {\n  return a;\n}\nauto f = std::bind(count);", True),
                ("struct State {};", "struct State {};", True),
                ("constexpr int most = 3;", "const std::array<int, 2> most = {1, 2};", True),
                ("using Json = nlohmann::json;", "using Json = nlohmann::json;", False),
                ("using Json = nlohmann::json;", "using Json = nlohmann::ordered_json;", True),
                ("namespace fs = std::filesystem;", "namespace fs = std::filesystem;", False),
                ("int one() {\n  return 1;\n}", "int two() {\n  return 2;\n}", False)):
            with self.subTest(one=one, other=other):
                self.assertEqual(self.units({"a.cpp": self.local(one), "b.cpp": self.local(other)}), [0, 1 if apart else 0])

    def test_a_name_that_anothers_header_declares_is_apart(self):
        header = "#pragma once\nnamespace stepladder {\nint count(int a);\n}  // namespace stepladder\n"
        files = {"a.cpp": self.local("int count(int a, int b) {\n  return a;\n}"), "b.h": '#include "c.h"\n', "c.h": header,
                 "b.cpp": '#include "b.h"\n', "d.cpp": ""}
        self.assertEqual(self.units(files), [0, 1, 0])
        files["c.h"] = "namespace stepladder {\nusing Json = nlohmann::ordered_json;\n}  // namespace stepladder\n"
        for kind, number in (("json", 1), ("ordered_json", 0)):
            files["a.cpp"] = self.local(f"using Json = nlohmann::{kind};")
            self.assertEqual(self.units(files), [0, number, 0])

    def test_folders_of_storage_are_apart(self):
        names = ("storage/a", "storage/database/b", "storage/database/rows/c", "storage/traces/d", "app/e", "app/cli/f")
        self.assertEqual(self.units({f"{name}.cpp": "" for name in names}), [0, 1, 1, 2, 3, 3])

    def test_a_unit_has_so_many_lines(self):
        self.assertEqual(self.units({"a.cpp": "//\n" * 60, "b.cpp": "//\n" * 60, "c.cpp": "//\n" * 40, "d.cpp": "//\n" * 200}), [0, 1, 0, 2])


class FirstStart(unittest.TestCase):
    def configured(self, part, cache="", **environment):
        """What `configure` of .ci/setup passes to CMake in a folder with this cache, where Clang is there."""
        with tempfile.TemporaryDirectory(prefix="stepladder-start-") as folder:
            build = pathlib.Path(folder) / "build"
            build.mkdir()
            if cache:
                (build / "CMakeCache.txt").write_text(cache)
            (pathlib.Path(folder) / "venv" / "bin").mkdir(parents=True)
            (pathlib.Path(folder) / "venv" / "bin" / "python").symlink_to(sys.executable)
            script = f'source "{ROOT}/.ci/setup"; CMAKE=echo; clang++-16() {{ :; }}; configure {part}'
            kept = {name: value for name, value in os.environ.items() if name not in ("CXX", "STEPLADDER_PRESET")}
            return subprocess.run(["bash", "-c", script], check=True, text=True, stderr=subprocess.PIPE,
                                  env={**kept, "STEPLADDER_CACHE": folder, "STEPLADDER_BUILD": str(build), **environment}).stderr

    def test_a_new_folder_is_compiled_quickly_by_clang(self):
        first = self.configured("program")
        self.assertIn("-DSTEPLADDER_QUICK=ON", first)
        self.assertIn("-DCMAKE_CXX_COMPILER=clang++-16", first)
        self.assertNotIn("CMAKE_CXX_COMPILER", self.configured("program", CXX="g++"))
        for part in ("trainer", "tests"):
            self.assertIn("-DSTEPLADDER_QUICK=OFF", self.configured(part))
            self.assertNotIn("CMAKE_CXX_COMPILER", self.configured(part))

    def test_the_trainers_build_begins_anew_with_the_usual_compiler(self):
        later = self.configured("trainer", "STEPLADDER_QUICK:BOOL=ON\n")
        self.assertIn("--fresh", later)
        self.assertIn("-DSTEPLADDER_QUICK=OFF", later)
        self.assertNotIn("CMAKE_CXX_COMPILER", later)
        usual = self.configured("program", "STEPLADDER_QUICK:BOOL=OFF\nSTEPLADDER_TRAINER:BOOL=ON\n")
        self.assertNotIn("--fresh", usual)
        self.assertIn("-DSTEPLADDER_QUICK=OFF", usual)


class Locks(unittest.TestCase):
    @unittest.skipUnless(shutil.which("flock"), "there is no flock")
    def test_who_packages_waits_for_the_folder_of_the_other_architecture(self):
        """`wait_for_lock` of .ci/setup, with which ./package holds build-aarch64 too."""
        with tempfile.TemporaryDirectory(prefix="stepladder-locks-") as folder:
            script = (f'source "{ROOT}/.ci/setup"; mkdir -p "$1"; exec 8>>"$1/.lock"; wait_for_lock 8 "$1"; echo held; read -r _')
            environment = {**os.environ, "STEPLADDER_CACHE": f"{folder}/cache", "STEPLADDER_BUILD": f"{folder}/build"}
            start = lambda: subprocess.Popen(["bash", "-c", script, "bash", f"{folder}/build-other"], env=environment, text=True,
                                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            with start() as first:
                self.assertEqual(first.stdout.readline(), "held\n")
                with start() as second:
                    self.assertIn("another build is at work in", second.stderr.readline())
                    first.communicate("\n", timeout=PATIENCE_S)
                    self.assertEqual(second.stdout.readline(), "held\n")
                    second.communicate("\n", timeout=PATIENCE_S)
        self.assertRegex((ROOT / "package").read_text(), r'wait_for_lock \d "\$arm"')


if __name__ == "__main__":
    unittest.main(verbosity=2)
