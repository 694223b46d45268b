"""`stepladder doctor --gpu`: all of its parts on the CPU, in small sizes, and the file that they end in."""
import getpass
import json
import os
import pathlib
import shutil
import signal
import socket
import unittest

from program import PATIENCE_S, PROGRAM, Workplace

TRAINS = (PROGRAM.parent / "libstepladder_trainer.so").exists()
PARTS = ["machine", "stages", "self-checks", "rungs", "kernels", "trace", "card-readings", "resume", "peak"]


@unittest.skipUnless(TRAINS, "this build has no trainer")
class DoctorGpu(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.addCleanup(self.place.close)
        self.out = self.place.path / "gpu.json"

    def part(self, document, name):
        return next(part for part in document["parts"] if part["id"] == name)

    def test_all_parts_on_the_cpu_in_one_file(self):
        status, out, err = self.place.run("doctor", "--gpu", "--device", "cpu", "--out", self.out)
        self.assertEqual(status, 0, out + err)
        document = json.loads(self.out.read_text())
        self.assertEqual([part["id"] for part in document["parts"]], PARTS)
        results = {part["id"]: part["result"] for part in document["parts"]}
        only_of_a_gpu = {"card-readings", "peak"}
        self.assertEqual(results, {name: "skipped" if name in only_of_a_gpu else "passed" for name in PARTS}, out)
        self.assertTrue(document["complete"])

        libraries = self.part(document, "machine")["figures"]["libraries"]
        self.assertEqual(libraries[0]["name"], "LibTorch")
        self.assertEqual(self.part(document, "self-checks")["figures"]["compared"], 4)
        rungs = self.part(document, "rungs")["figures"]["rungs"]
        self.assertGreater(len(rungs), 5)
        for rung in rungs + self.part(document, "self-checks")["figures"]["rungs"]:
            self.assertEqual((rung["status"], rung["fell_back"]), ("finished", None), rung)
            self.assertGreater(rung["dt_ms_median"], 0)
        kernels = self.part(document, "kernels")["figures"]["steps"]
        self.assertEqual(kernels[0]["over_whole"], 1)
        self.assertEqual(sum(step["stage"].startswith("without-") for step in kernels), 6)
        trace = self.part(document, "trace")["figures"]
        self.assertGreater(trace["step_ms"], 0)
        self.assertIn("matrix products", {kind["kind"] for kind in trace["kinds"]})
        # A CPU's plan has the same bits each time.
        resumed = self.part(document, "resume")["figures"]
        self.assertEqual((resumed["gap_of_a_repeat"], resumed["gap_after_resuming"]), (0, 0))

        for name in PARTS:
            self.assertIn(name, out)
        self.assertIn("stepladder: 4 of 9, every rung of the ladder", err)
        self.no_names_in(self.out.read_text())
        # The user's project, settings and caches are untouched.
        self.assertEqual(sorted(path.name for path in self.place.path.iterdir()), ["gpu.json"])

    def no_names_in(self, text):
        for name in (socket.gethostname(), str(pathlib.Path.home()), os.getcwd(), "/tmp/", str(self.place.path)):
            if len(name) > 3:
                self.assertNotIn(name, text)
        if getpass.getuser() != "root":
            self.assertNotIn(getpass.getuser(), text)

    def test_libraries_from_other_folders_are_told_without_these(self):
        loaded = self.place.json("doctor")["libraries"]
        folder = self.place.path / "acme-toolkit"
        folder.mkdir()
        for library in loaded:
            if library["name"] == "CUDA runtime":
                shutil.copy(library["file"], folder)
        self.place.environment.update(LD_LIBRARY_PATH=str(folder), CUDA_VISIBLE_DEVICES="GPU-8b0cc4a1")
        there = self.place.json("doctor")
        process = self.place.start("doctor", "--gpu", "--device", "cpu", "--out", self.out)
        for line in process.stderr:
            if "2 of 9" in line:
                break
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
        machine = self.part(json.loads(self.out.read_text()), "machine")
        figures = machine["figures"]
        self.assertEqual((figures["LD_LIBRARY_PATH"], figures["CUDA_VISIBLE_DEVICES"]), ("set", "set"))
        for library, known in zip(figures["libraries"], there["libraries"], strict=True):
            self.assertEqual(library, {**known, "file": pathlib.Path(known["file"]).name})
            self.assertIn(library["origin"], ("wheel", "system", "elsewhere"))
            self.assertEqual(library["origin"] == "elsewhere", "acme" in known["file"], known)
        if there["libraries_note"]:
            self.assertIn("LD_LIBRARY_PATH", machine["notes"][0])
        for name in ("acme", "8b0cc4a1"):
            self.assertNotIn(name, self.out.read_text())
        self.no_names_in(self.out.read_text())

    def test_a_part_that_fails_is_recorded_and_the_rest_goes_on(self):
        status, out, err = self.place.run("doctor", "--gpu", "--device", "mps", "--out", self.out, "--json", "--progress", "json")
        self.assertEqual(status, 1, err)
        self.assertIn("stepladder: 9 of 9, the measured peak", [json.loads(line)["note"] for line in err.splitlines()])
        document = json.loads(out)
        self.assertEqual(document, json.loads(self.out.read_text()))
        self.assertEqual([part["id"] for part in document["parts"]], PARTS)
        for name in ("self-checks", "rungs", "kernels", "trace", "resume"):
            part = self.part(document, name)
            self.assertEqual(part["result"], "failed", part)
            self.assertIn("this machine has no Apple GPU", part["problems"][0])

    def test_without_a_gpu_it_says_so(self):
        if self.place.json("doctor")["gpus"]:
            self.skipTest("there is a GPU")
        status, out, err = self.place.run("doctor", "--gpu", "--out", self.out, "--json")
        error = json.loads(err.splitlines()[-1])["error"]
        self.assertEqual((status, out, error["code"], error["argument"]), (1, "", "not-found", "--device"))
        self.assertRegex(error["message"], "^there is no NVIDIA GPU that Stepladder can use: .+")
        self.assertIn("--device cpu", error["hint"])
        self.assertEqual(list(self.place.path.iterdir()), [])

    def interrupted_at(self, part, *options):
        """What a check writes and prints that Ctrl-C ends as this part begins."""
        process = self.place.start("doctor", "--gpu", *options, "--out", self.out, "--json")
        for line in process.stderr:
            if part in line:
                break
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 130, err)
        document = json.loads(out)
        self.assertEqual(document, json.loads(self.out.read_text()))
        return document

    def test_ctrl_c_and_the_end_of_the_time_write_what_there_is(self):
        document = self.interrupted_at("3 of 9", "--device", "cpu")
        self.assertFalse(document["complete"])
        self.assertEqual(self.part(document, "machine")["result"], "passed")
        stopped = self.part(document, "self-checks")
        self.assertEqual((stopped["result"], stopped["problems"]), ("stopped", []), stopped)
        self.assertEqual(self.part(document, "resume")["skipped"], "interrupted")

        status, out, err = self.place.run("doctor", "--gpu", "--device", "cpu", "--out", self.out, "--force", "--minutes", 0.01)
        self.assertEqual(status, 0, err)
        document = json.loads(self.out.read_text())
        self.assertFalse(document["complete"])
        self.assertEqual(self.part(document, "rungs")["skipped"], "no time was left")
        # The part that the time ended isn't one that passed.
        results = [part["result"] for part in document["parts"]]
        self.assertIn("stopped", results)
        self.assertNotIn("passed", results[results.index("stopped"):])

    def test_one_that_ends_before_it_knows_the_gpus_does_not_say_that_there_are_none(self):
        document = self.interrupted_at("1 of 9")
        self.assertNotIn("passed", [part["result"] for part in document["parts"]])

        # Less than the first part takes.
        status, out, err = self.place.run("doctor", "--gpu", "--out", self.out, "--force", "--minutes", 0.0005)
        self.assertEqual(status, 0, err)
        self.assertEqual(self.part(json.loads(self.out.read_text()), "stages")["skipped"], "no time was left")

    def test_a_file_that_is_there_is_kept(self):
        self.out.write_text("mine")
        status, out, err = self.place.run("doctor", "--gpu", "--device", "cpu", "--out", self.out, "--json")
        self.assertEqual((status, json.loads(err)["error"]["code"]), (2, "file-exists"))
        self.assertEqual(self.out.read_text(), "mine")
        for words in (("--gpu", "--probe"), ("--device", "cpu"), ("--minutes", "3"), ("--gpu", "--minutes", "0"),
                      ("--gpu", "--device", "tpu"), ("--force",)):
            self.assertEqual(self.place.run("doctor", *words)[0], 2, words)


if __name__ == "__main__":
    unittest.main()
