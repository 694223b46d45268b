"""Several processes train one run: the losses of one process, no process is left behind, nothing on the network."""
import json
import multiprocessing
import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import time
import unittest

from program import PATIENCE_S, PROGRAM, TINY, Workplace

SHORT = [*TINY, "--seq", 16, "--device", "cpu", "--threads", 2, "--steps", 10]
ENDLESS = [*TINY, "--seq", 16, "--device", "cpu", "--threads", 2, "--steps", 10000000]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children_by_rank(pid):
    """{rank: pid} of the workers that process `pid` has started."""
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            lines = (folder / "environ").read_bytes().split(b"\0")
            if f"STEPLADDER_PARENT={pid}".encode() in lines and b"worker" in (folder / "cmdline").read_bytes():
                found[int(next(line[5:] for line in lines if line.startswith(b"RANK=")))] = int(folder.name)
        except (OSError, StopIteration):
            continue
    return found


def listening_addresses(pid):
    """The local addresses of a process's listening TCP sockets, as in /proc/net/tcp: hexadecimal, in its own namespace."""
    sockets = set()
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(link)
        except OSError:
            continue
        if target.startswith("socket:["):
            sockets.add(target[len("socket:["):-1])
    addresses = set()
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in sockets:
                addresses.add(fields[1].split(":")[0])
    return addresses


class Stranger:
    """Another user, who connects to every new listener on loopback: garbage, and false keys for LibTorch's store."""
    USER = 65534
    MOST = 900  # connections; a process may have about a thousand files open

    def __init__(self):
        processes = multiprocessing.get_context("fork")
        self.known = self.listeners()
        self.connections = processes.Value("i", 0)
        self.leave = processes.Event()
        self.process = processes.Process(target=self.run, daemon=True)

    def __enter__(self):
        self.process.start()
        return self

    def __exit__(self, *_):
        self.leave.set()
        self.process.join()

    @staticmethod
    def listeners():
        lines = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return {int(line[1].split(":")[1], 16) for line in lines if line[3] == "0A" and line[1].startswith("0100007F")}

    @staticmethod
    def false_keys():
        def sized(text):
            return struct.pack("<Q", len(text)) + text

        is_a_store_meant, set_value = b"\0" + struct.pack("<I", 0x3C85F7CE), b"\1"
        return is_a_store_meant + b"".join(set_value + sized(b"/stepladder/0/" + key) + sized(b"\xff" * 16)
                                           for key in (b"0/0", b"0/1", b"here/1"))

    def run(self):
        "127.0.0.1".encode("idna")  # the other user may not read Python's own folder later
        os.setgroups([])
        os.setgid(self.USER)
        os.setuid(self.USER)
        connections = []
        while not self.leave.wait(0.002) and len(connections) < self.MOST:
            for port in self.listeners() - self.known:
                for message in (b"\xff" * 4096, b"GET / HTTP/1.1\r\n\r\n", self.false_keys()):
                    try:
                        connections.append(socket.create_connection(("127.0.0.1", port), 0.2))
                        self.connections.value += 1
                        connections[-1].sendall(message)
                    except OSError:
                        pass
        self.leave.wait()


class DataParallel(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.addCleanup(self.place.close)
        ddp = next(stage for stage in self.place.json("stages") if stage["id"] == "ddp")
        if ddp["reason"] and "Gloo's headers" in ddp["reason"]:
            self.skipTest(ddp["reason"])

    def series(self, *arguments, column="loss"):
        run = self.place.json("train", *arguments)
        self.assertEqual(run["status"], "finished")
        return [step[column] for step in self.place.json("show", run["id"], "--steps")["data"]], run

    def assert_close(self, ours, theirs, within):
        self.assertEqual(len(ours), len(theirs))
        for step, (a, b) in enumerate(zip(ours, theirs), 1):
            self.assertAlmostEqual(a, b, delta=within, msg=f"step {step}")

    def newest_step(self):
        try:
            with sqlite3.connect(f"file:{self.place.database}?mode=ro", uri=True) as database:
                return database.execute("select max(step) from steps where run_id = (select max(id) from runs)"
                                        ).fetchone()[0] or 0
        except sqlite3.OperationalError:
            return 0

    def start_endless(self, processes, environment=None, **options):
        """A run that has made some steps; its process and {rank: pid} of the others."""
        before = dict(self.place.environment)
        self.place.environment.update(environment or {})
        process = self.place.start("train", *ENDLESS, "--nproc", processes, "--json", **options)
        self.place.environment = before
        self.addCleanup(process.kill)
        deadline = time.time() + PATIENCE_S
        while not children_by_rank(process.pid) or self.newest_step() < 5:
            self.assertLess(time.time(), deadline, "it does not start")
            self.assertIsNone(process.poll())
            time.sleep(0.05)
        children = children_by_rank(process.pid)
        self.assertEqual(sorted(children), list(range(1, processes)))
        return process, children

    def assert_nobody_left(self, children, within=PATIENCE_S):
        deadline = time.time() + within
        while any(is_running(pid) for pid in children.values()):
            self.assertLess(time.time(), deadline, f"still running: {children}")
            time.sleep(0.02)

    def test_losses_are_those_of_one_process(self):
        for accumulation in (1, 2):
            recipe = [*SHORT, "--grad-accum", accumulation, "--eval-every", 5]
            alone, run = self.series(*recipe)
            norms = [s["grad_norm"] for s in self.place.json("show", run["id"], "--steps")["data"]]
            for processes in (2, 4):
                with self.subTest(accumulation=accumulation, processes=processes):
                    losses, several = self.series(*recipe, "--nproc", processes)
                    self.assert_close(losses, alone, 1e-5)
                    steps = self.place.json("show", several["id"], "--steps")["data"]
                    self.assert_close([s["grad_norm"] for s in steps], norms, 1e-4)
                    self.assertAlmostEqual(several["val_loss_last"], run["val_loss_last"], delta=1e-5)
                    self.assertEqual(several["tokens_per_step"], run["tokens_per_step"])

    def test_with_autocast_and_the_fused_optimizer(self):
        stages = ["--stage", "bf16,flash-attention,fused-adamw", "--tied-head"]
        alone, _ = self.series(*SHORT, *stages)
        two, _ = self.series(*SHORT, *stages, "--nproc", 2)
        self.assert_close(two, alone, 2e-2)

    def test_of_a_planned_step(self):
        recipe = [*SHORT, "--stage", "compile-max", "--grad-accum", 2, "--clip", 0.5]
        alone, _ = self.series(*recipe)
        losses, several = self.series(*recipe, "--nproc", 2)
        self.assert_close(losses, alone, 1e-5)

    def test_a_checkpoint_of_several_processes_serves_one_and_several(self):
        parent, run = self.series(*SHORT, "--nproc", 2, "--save-every", 5, "--keep", 0)
        self.assertIsNotNone(self.place.json("show", run["id"])["mean_ms"]["communication"])
        rest = parent[5:]
        for processes in (2, 1):
            forked, _ = self.series("--fork", f"{run['id']}@5", "--nproc", processes)
            self.assert_close(forked, rest, 1e-5)

    def test_a_pause_is_longer_than_the_others_patience(self):
        process, children = self.start_endless(2)
        run = self.place.json("runs")[-1]["id"]
        self.assertEqual(self.place.run("pause", run)[0], 0)
        time.sleep(3)
        held = self.newest_step()
        time.sleep(22)
        self.assertEqual(self.newest_step(), held)
        self.assertIsNone(process.poll())
        self.assertEqual(self.place.run("continue", run)[0], 0)
        deadline = time.time() + PATIENCE_S
        while self.newest_step() < held + 5:
            self.assertLess(time.time(), deadline, "it does not go on")
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
        self.assert_nobody_left(children)

    def test_ctrl_z_stops_none_of_them(self):
        process, children = self.start_endless(2, process_group=0)  # in a group of its own, like a shell's job
        os.killpg(process.pid, signal.SIGTSTP)
        seen = self.newest_step()
        deadline = time.time() + PATIENCE_S
        while self.newest_step() < seen + 5:
            self.assertLess(time.time(), deadline, "it does not go on")
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=PATIENCE_S)
        self.assertIn("Ctrl-Z cannot stop a run of several processes", error)
        self.assert_nobody_left(children)

    def test_as_a_rung_of_a_ladder(self):
        ladder = self.place.json("ladder", *SHORT, "--stages", "baseline,ddp")
        if ladder["skipped"]:
            self.skipTest(ladder["skipped"][0]["reason"])
        self.assertEqual(ladder["rungs"][1]["changed"], "nproc 1 -> 2")
        self.assertEqual([r["status"] for r in ladder["rungs"]], ["finished", "finished"])
        self.assertEqual(ladder["rungs"][1]["loss"]["verdict"], "same")
        odd = self.place.json("ladder", *SHORT, "--batch", 3, "--stages", "baseline,ddp")
        self.assertEqual([r["stage"] for r in odd["rungs"]], ["baseline"])
        self.assertIn("--nproc", odd["skipped"][0]["reason"])

    def test_the_record_says_how_many_threads_there_were(self):
        _, run = self.series(*SHORT, "--nproc", 4)
        with sqlite3.connect(self.place.database) as database:
            recipe = json.loads(database.execute("select recipe from runs where id = ?", (run["id"],)).fetchone()[0])
        self.assertEqual((recipe["nproc"], recipe["threads"]), (4, 4))

    def test_what_is_refused(self):
        for arguments in (["--nproc", 3], ["--nproc", 0]):
            status, out, err = self.place.run("train", *SHORT, *arguments)
            self.assertEqual((status, out), (2, ""))
            self.assertIn("--nproc", err)
        self.place.environment.update(RANK="0", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
        status, _, err = self.place.run("ladder", *SHORT)
        self.assertEqual(status, 2)
        self.assertIn("--nproc", err)
        self.place.environment.update(RANK="2")
        status, _, err = self.place.run("train", *SHORT)
        self.assertEqual(status, 2)
        self.assertIn("RANK", err)

    def test_a_killed_rank_fails_the_run(self):
        for processes, victim in ((2, 1), (4, 2)):
            with self.subTest(processes=processes):
                process, children = self.start_endless(processes)
                os.kill(children[victim], signal.SIGKILL)
                out, _ = process.communicate(timeout=PATIENCE_S)
                run = json.loads(out)
                self.assertEqual((process.returncode, run["status"]), (1, "failed"))
                self.assertIn(f"rank {victim} was killed by signal 9", run["reason"])
                self.assertGreaterEqual(run["steps"], 5)
                self.assert_nobody_left(children, within=0)

    def test_a_rank_that_hangs_fails_the_run(self):
        process, children = self.start_endless(2)
        os.kill(children[1], signal.SIGSTOP)
        out, _ = process.communicate(timeout=PATIENCE_S)
        run = json.loads(out)
        self.assertEqual((process.returncode, run["status"]), (1, "failed"))
        self.assertRegex(run["reason"], r"rank 1 has not answered for \d+ s")
        self.assert_nobody_left(children, within=0)

    def test_a_rank_that_cannot_start_fails_the_run(self):
        self.place.environment["STEPLADDER_TRAINER_LIBRARY"] = str(self.place.path / "trainer.so")
        shutil.copy(PROGRAM.parent / "libstepladder_trainer.so", self.place.path / "trainer.so")
        process = self.place.start("train", *ENDLESS, "--nproc", 2, "--json")
        self.addCleanup(process.kill)
        deadline = time.time() + PATIENCE_S
        while "trainer.so" not in pathlib.Path(f"/proc/{process.pid}/maps").read_text():
            self.assertLess(time.time(), deadline)
            time.sleep(0.002)
        (self.place.path / "trainer.so").unlink()  # rank 0 has it open, rank 1 is too late
        out, _ = process.communicate(timeout=PATIENCE_S)
        run = json.loads(out)
        self.assertEqual(run["status"], "failed")
        self.assertRegex(run["reason"], "rank 1 failed: the training library could not be loaded")

    def test_killing_rank_0_leaves_nobody(self):
        process, children = self.start_endless(4)
        process.kill()
        process.communicate()
        self.assert_nobody_left(children)
        self.assertEqual(self.place.json("runs")[0]["status"], "interrupted")

    def test_interrupt_stops_all_of_them(self):
        process, children = self.start_endless(2)
        for pid in (*children.values(), process.pid):  # as a terminal does
            os.kill(pid, signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 130, err)
        run = json.loads(out)
        self.assertEqual((run["status"], run["steps"]), ("stopped", run["last_step"]))
        self.assert_nobody_left(children, within=0)

    @unittest.skipIf(os.geteuid() != 0, "only root can be another user")
    def test_a_stranger_cannot_break_it(self):
        for _ in range(3):
            with Stranger() as stranger:
                losses, _ = self.series(*SHORT, "--nproc", 2)
            self.assertEqual(len(losses), 10)
            self.assertTrue(stranger.connections.value, "it has found nobody")

    def test_it_listens_on_loopback_only(self):
        process, children = self.start_endless(2)
        addresses = listening_addresses(process.pid)
        for pid in children.values():
            addresses |= listening_addresses(pid)
        self.assertEqual(addresses, {"0100007F"})
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)


class Launched(unittest.TestCase):
    """Started as by torchrun and the like: the same command line for every rank, the rest in the environment."""
    setUp = DataParallel.setUp
    series = DataParallel.series
    assert_close = DataParallel.assert_close

    def start_ranks(self, variables, before=((), ()), arguments=SHORT):
        processes = []
        usual = dict(self.place.environment)
        for rank in range(2):
            environment = {**usual, **{k: v.format(rank=rank) for k, v in variables.items()}}
            processes.append(subprocess.Popen([*before[rank], PROGRAM, "train", *map(str, arguments), "--json"], text=True,
                                              env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
            self.addCleanup(processes[-1].kill)
        return processes

    def finished(self, processes):
        """The run, once all have exited without errors; only rank 0 has printed anything or made a row."""
        results = [(*process.communicate(timeout=PATIENCE_S), process.returncode) for process in processes]
        self.assertEqual([status for _, _, status in results], [0, 0], results)
        self.assertEqual(results[1][0], "")
        run = json.loads(results[0][0])
        return run, [step["loss"] for step in self.place.json("show", run["id"], "--steps")["data"]]

    def test_by_environment_variables(self):
        alone, _ = self.series(*SHORT)
        names = ({"RANK": "{rank}", "WORLD_SIZE": "2", "LOCAL_RANK": "{rank}"},
                 {"OMPI_COMM_WORLD_RANK": "{rank}", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "{rank}"},
                 {"SLURM_PROCID": "{rank}", "SLURM_NTASKS": "2", "SLURM_LOCALID": "{rank}"})
        for count, variables in enumerate(names, 2):
            variables |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
            _, losses = self.finished(self.start_ranks(variables))
            self.assert_close(losses, alone, 1e-5)
            self.assertEqual(len(self.place.json("runs")), count)

    def test_by_torchrun_itself(self):
        torchrun = pathlib.Path(sys.executable).parent / "torchrun"
        if not torchrun.exists():
            self.skipTest("there is no torchrun beside this Python")
        alone, _ = self.series(*SHORT)
        done = subprocess.run([torchrun, "--no-python", "--nproc-per-node", "2", "--master-addr", "127.0.0.1",
                               "--master-port", str(free_port()), PROGRAM, "train", *map(str, SHORT)],
                              env=self.place.environment, capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.place.json("runs")), 2)
        steps = self.place.json("show", self.place.json("runs")[-1]["id"], "--steps")["data"]
        self.assert_close([step["loss"] for step in steps], alone, 1e-5)

    def test_a_stranger_in_the_store_is_not_taken_for_a_lack_of_memory(self):
        with Stranger():
            variables = {"RANK": "{rank}", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
            first, other = self.start_ranks(variables)
            out, err = first.communicate(timeout=PATIENCE_S)
            other.kill()
            other.communicate()
        if first.returncode != 0:
            self.assertIn("got a message from another program", err)
            self.assertIn("got a message from another program", json.loads(out)["reason"])

    def test_a_lost_rank_is_named(self):
        variables = {"RANK": "{rank}", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        processes = self.start_ranks(variables, arguments=ENDLESS)
        deadline = time.time() + PATIENCE_S
        while DataParallel.newest_step(self) < 5:
            self.assertLess(time.time(), deadline)
            time.sleep(0.05)
        processes[1].kill()
        out, _ = processes[0].communicate(timeout=PATIENCE_S)
        run = json.loads(out)
        self.assertEqual((processes[0].returncode, run["status"]), (1, "failed"))
        self.assertIn("lost contact with rank 1", run["reason"])

    def test_two_hosts(self):
        """Two network namespaces joined by a cable of their own."""
        if os.geteuid() != 0 or not shutil.which("ip"):
            self.skipTest("needs root and ip (iproute2)")
        names = [f"stepladder-{os.getpid()}-{host}" for host in "ab"]
        for name in names:
            if subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode != 0:
                self.skipTest("no network namespace can be made here")
            self.addCleanup(subprocess.run, ["ip", "netns", "delete", name], capture_output=True)

        def ip(*arguments):
            subprocess.run(["ip", *arguments], check=True, capture_output=True)

        cable = subprocess.run(["ip", "link", "add", "cable", "netns", names[0], "type", "veth", "peer", "name", "cable",
                                "netns", names[1]], capture_output=True, text=True)
        if cable.returncode != 0:
            self.skipTest("no veth pair can be made here: " + cable.stderr.strip())
        for host, name in enumerate(names, 1):
            ip("-n", name, "address", "add", f"10.93.71.{host}/24", "dev", "cable")
            ip("-n", name, "link", "set", "cable", "up")
            ip("-n", name, "link", "set", "lo", "up")
        alone, _ = self.series(*SHORT)
        variables = {"RANK": "{rank}", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "10.93.71.1", "MASTER_PORT": "29511"}
        before = [["ip", "netns", "exec", name] for name in names]
        _, losses = self.finished(self.start_ranks(variables, before))
        self.assert_close(losses, alone, 1e-5)


if __name__ == "__main__":
    unittest.main(verbosity=2)
