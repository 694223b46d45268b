"""The contention guard: other programs that burn the cores beside a run are seen, said and waited for."""
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import threading
import time
import unittest

from program import PATIENCE_S, TINY, Workplace

CORES = len(os.sched_getaffinity(0))
SENTENCE = re.compile(r"^Others used \d+\.\d of \d+ cores?(?: \(\d\.\d by this window or terminal\))? during \d+ % of the steps that count \(\d+ of \d+\), "
                      r"which left \d+\.\d for its \d+ threads?: ")
ON_ALL_CORES = [*TINY, "--threads", CORES]
LADDER = [*ON_ALL_CORES, "--stages", "baseline,fused-adamw"]


def busy_seconds():
    """Of the cores that this process may use, less waiting for disks."""
    usable = os.sched_getaffinity(0)
    ticks = 0
    for line in pathlib.Path("/proc/stat").read_text().splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) in usable:
            ticks += sum(int(fields[i]) for i in (0, 1, 2, 5, 6, 7))
    return ticks / os.sysconf("SC_CLK_TCK")


def own_seconds():
    """Of this test and the programs that it has waited for."""
    return sum(used.ru_utime + used.ru_stime
               for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


class Burners:
    """Processes that keep every core busy."""

    def __enter__(self):
        self.processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(CORES)]
        return self

    def stop(self):
        for process in self.processes:
            process.kill()
            process.wait()

    def __exit__(self, *_):
        self.stop()


class Busy(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.addCleanup(self.place.close)
        if self.place.json("doctor")["load"]["other_cores"] is None:
            self.skipTest("nobody can tell here what other programs use")

    def flags(self):
        return {run["id"]: {flag["id"]: flag["why"] for flag in run["flags"]} for run in self.place.json("check")}

    def test_a_burnt_core_beside_a_ladder_is_flagged(self):
        with Burners():
            load = self.place.json("doctor")["load"]
            self.assertGreater(load["other_cores"], 0.5 * CORES)
            self.assertEqual(load["cores"], CORES)
            self.assertIn(len(load["busiest"]), (1, 2, 3), load)  # others may be busier than these
            for process in load["busiest"]:
                self.assertGreater(process["cores"], 0)
                self.assertTrue(process["name"])
            self.assertIn("a run on all cores would be disturbed", self.place.run("doctor")[1])
            ladder = self.place.json("ladder", *LADDER, "--batch", 16, "--steps", 100)  # some seconds
        for flags in self.flags().values():
            self.assertRegex(flags.get("busy-machine", ""), SENTENCE)
        for rung in ladder["rungs"]:
            self.assertEqual(rung["trust"], "doubtful")
        base, rung = [run["id"] for run in self.place.json("runs")]
        compared = self.place.json("compare", base, rung)["runs"][0]
        self.assertEqual((compared["verdict"], compared["trust"]), ("cannot-tell", "doubtful"))
        lane = self.place.json("show", rung)["lanes"][-1]
        self.assertEqual(lane["cores"], CORES)
        self.assertEqual(lane["needed_cores"], CORES)

    def test_a_quiet_machine_is_not(self):
        busy, own, at = busy_seconds(), own_seconds(), time.monotonic()
        self.place.json("ladder", *LADDER, "--batch", 16, "--steps", 200)
        seconds = time.monotonic() - at
        others = (busy_seconds() - busy - (own_seconds() - own)) / seconds
        if others > 0.05 * CORES:
            self.skipTest(f"the machine isn't quiet: others used {others:.2f} of {CORES} cores")
        for flags in self.flags().values():
            self.assertNotIn("busy-machine", flags)

    def test_when_quiet_waits_and_says_for_what(self):
        with Burners():
            process = self.place.start("train", *ON_ALL_CORES, "--steps", 20, "--when-quiet")
            said = process.stderr.readline()
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=PATIENCE_S)
        self.assertRegex(said, r"waiting for a quiet machine: others used \d+\.\d of \d+ cores?, which left \d+\.\d for "
                               r"its \d+ threads? \(.* \d+\.\d\)")
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("stopped before it started", err)
        run, = self.place.json("runs")
        self.assertEqual((run["status"], run["steps"]), ("stopped", 0))

    def test_when_quiet_trains_once_the_others_have_ended(self):
        with Burners() as burners:
            process = self.place.start("train", *ON_ALL_CORES, "--steps", 20, "--when-quiet")
            said = [process.stderr.readline()]
            reader = threading.Thread(target=lambda: said.extend(process.stderr))
            reader.start()
            burners.stop()
            busy, at = busy_seconds(), time.monotonic()
            try:
                status = process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
                process.wait(timeout=PATIENCE_S)
                reader.join()
                others = (busy_seconds() - busy) / (time.monotonic() - at)
                self.assertGreater(others, 0.05 * CORES, said)
                self.skipTest(f"the machine isn't quiet: others used {others:.2f} of {CORES} cores")
        reader.join()
        self.assertEqual(status, 0, said)
        self.assertIn("the machine is quiet", "".join(said))
        run, = self.place.json("runs")
        self.assertEqual(run["status"], "finished")

    def test_confirm_goes_on_after_its_patience_and_says_so(self):
        self.place.json("ladder", *LADDER, "--steps", 20)
        rung = self.place.json("runs")[-1]["id"]
        with Burners():
            status, out, err = self.place.run("confirm", rung, "--max-repeats", 2, "--patience", 1)
        self.assertIn("waited 1 s for a quiet machine and starts anyway: others used", err)
        self.assertEqual(len(self.place.json("runs")), 4)


if __name__ == "__main__":
    unittest.main()
