#!/usr/bin/env python3
"""What is in stepladder.py's journals when processes are killed, fork, share a run, or can't write."""
import os
import random
import shutil
import stat
import subprocess
import sys
import textwrap
import time
import unittest

from journal import PATIENCE_S, JournalTest, events_of, of_kind, read, values


class Ends(JournalTest):
    FAST = """
        import mmap, os, struct, sys, stepladder
        with open("count", "r+b") as file:
            count = mmap.mmap(file.fileno(), 8)  # outlives a kill
        run = stepladder.init()
        stepladder.EXIT_S = 100  # on a machine of any speed
        row = {"x": 0, **{"m%d" % i: 0.5 for i in range(int(sys.argv[1]))}}
        for i in range(int(sys.argv[2])):
            row["x"] = i
            stepladder.log(row)
            count[:8] = struct.pack("q", i + 1)
        """

    def logged_and_kept(self, end, width, calls):
        """How many calls a script made as fast as it could before its end, and the values that its journal has."""
        (self.folder / "count").write_bytes(bytes(8))
        self.start(self.FAST + end, width, calls).communicate(timeout=PATIENCE_S)
        logged = int.from_bytes((self.folder / "count").read_bytes(), sys.byteorder)
        path = self.paths()[-1]
        found = values(events_of(path.read_bytes())[0], "x")
        shutil.rmtree(path.parent)
        self.assertEqual(found, [(i, i) for i in range(len(found))])
        return logged, len(found)

    def test_os_exit_at_full_speed_loses_nothing(self):
        for width, calls in ((0, 1), (2, 10), (2, 100000), (200, 3000)):
            with self.subTest(width=width, calls=calls):
                logged, kept = self.logged_and_kept("os._exit(0)", width, calls)
                self.assertEqual((logged, kept), (calls, calls))

    def test_kill_9_at_full_speed_loses_what_may_wait(self):
        for width, calls, most in ((2, 300000, 100000), (200, 10000, 5000)):  # about 20,000 calls, or 2 MiB of lines
            with self.subTest(width=width):
                lost = []
                while len(lost) < 4 and (not lost or lost[-1] >= most):  # a busy machine may starve the writing thread
                    logged, kept = self.logged_and_kept("os.kill(os.getpid(), 9)", width, calls)
                    self.assertEqual(logged, calls)
                    lost.append(logged - kept)
                self.assertLess(min(lost), most)

    def test_os_exit_waits_for_no_disk_that_refuses(self):
        _, err = self.run_script("""
            import os, resource, stepladder
            run = stepladder.init()
            resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
            for i in range(1000): stepladder.log({"x": i})
            os._exit(3)
            """, status=3)
        self.assertIn("File too large", err)
        self.assertEqual(of_kind(events_of(self.paths()[0].read_bytes())[0], "end"), [])

    def test_log_waits_for_no_disk(self):
        """A write that hangs: calls go on, and those that memory can't hold are counted."""
        out, err = self.run_script("""
            import os, threading, stepladder
            stepladder.MEMORY_CALLS = 30000
            run = stepladder.init()
            disk = threading.Event()
            def pwrite(*arguments, real=os.pwrite):
                disk.wait()
                return real(*arguments)
            os.pwrite = pwrite
            for i in range(100000): stepladder.log({"x": i})
            disk.set()
            while run._queue or run._rows or run._file.waiting(): pass
            stepladder.log({"x": 100000})
            """)
        events = self.only()
        kept = values(events, "x")
        self.assertGreaterEqual(len(kept), 30000)
        self.assertTrue(all(step == value for step, value in kept))
        self.assertEqual(len(kept) + of_kind(events, "lost")[-1]["n"], 100001)
        self.assertIn("log calls were lost", err)

    def test_what_waits_is_appended_without_any_further_call(self):
        process = self.start("""
            import time, stepladder
            stepladder.init()
            stepladder.log({"x": 1})
            time.sleep(1000)
            """)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + PATIENCE_S
        while not (self.paths() and values(events_of(self.paths()[0].read_bytes())[0], "x")):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def test_kill_9_leaves_a_journal_that_is_good_up_to_its_tail(self):
        choose = random.Random(16)
        for _ in range(5):
            process = self.start("""
                import time, stepladder
                stepladder.init(id="killed")
                print("begun", flush=True)
                i = 0
                while True:
                    stepladder.log({"x": i, "y": float(i)})
                    i += 1
                    if i % 100 == 0: time.sleep(0.001)
                """)
            process.stdout.readline()
            time.sleep(choose.uniform(0.1, 0.5))
            process.kill()
            process.communicate()
        paths = self.paths()
        self.assertEqual([path.name for path in paths], [f"rank-0.{i}.jsonl" for i in range(1, 6)])
        uids, following = set(), 0
        for path in paths:
            events, good = events_of(path.read_bytes())
            self.assertLess(len(path.read_bytes()) - good, 1 << 20)
            uids.add(events[0]["uid"])
            steps = [step for step, _ in values(events, "x")]
            self.assertEqual(steps, list(range(following, following + len(steps))))
            following += len(steps)  # an attempt continues the steps of the one before
        self.assertEqual(len(uids), 1)

    def test_a_journal_cut_at_every_byte_is_good_up_to_the_cut_line(self):
        self.run_script("""
            import stepladder
            stepladder.init(config={"a": "x"})
            for i in range(5): stepladder.log({"x": i, "nan": float("nan")})
            """)
        data = self.paths()[0].read_bytes()
        events, good = events_of(data)
        self.assertEqual(good, len(data))
        ends = [i + 1 for i, byte in enumerate(data) if byte == 10]
        for cut in range(len(data)):
            for tail in (b"", b"\0" * 40, b"\0" * 40 + b"\n"):
                found, until = events_of(data[:cut] + tail)
                whole = sum(end <= cut for end in ends)
                self.assertEqual((len(found), until), (whole, ends[whole - 1] if whole else 0))


class Processes(JournalTest):
    def test_threads(self):
        events = self.events("""
            import threading, stepladder
            stepladder.init()
            def work(k):
                for i in range(2000): stepladder.log({"t%d" % k: i})
            threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
            [t.start() for t in threads]; [t.join() for t in threads]
            """)
        steps = []
        for k in range(8):
            found = values(events, f"t{k}")
            self.assertEqual([value for _, value in found], list(range(2000)))
            steps += [step for step, _ in found]
        self.assertEqual(sorted(steps), list(range(16000)))  # no step is given twice

    def test_fork(self):
        out, err = self.run_script("""
            import multiprocessing, os, sys, stepladder
            run = stepladder.init()
            def child(k):
                for i in range(1000): stepladder.log({"child": i})
                assert stepladder.run.step >= 0
            context = multiprocessing.get_context("fork")
            for round in range(3):
                children = [context.Process(target=child, args=(k,)) for k in range(3)]
                [c.start() for c in children]
                for i in range(1000): stepladder.log({"parent": i})
                [c.join() for c in children]
                assert all(c.exitcode == 0 for c in children)
            if os.fork() == 0:
                own = stepladder.init(id="own")
                stepladder.log({"mine": 1})
                sys.exit(0)
            os.wait()
            """)
        self.assertIn("was forked", err)
        own, parent = sorted(self.paths(), key=lambda path: path.parent.name != "own")
        events = read(parent)
        self.assertEqual([value for _, value in values(events, "parent")], list(range(1000)) * 3)
        self.assertEqual(values(events, "child") + values(events, "mine"), [])
        self.assertEqual(len(of_kind(events, "end")), 1)
        self.assertEqual(values(read(own), "mine"), [(0, 1)])

    def test_data_loader_workers(self):
        try:
            import torch  # noqa: F401
        except ImportError:
            self.skipTest("torch isn't installed")
        events = self.events("""
            import stepladder, torch
            class Data(torch.utils.data.Dataset):
                def __len__(self): return 64
                def __getitem__(self, i):
                    stepladder.log({"worker": i})
                    return float(i)
            run = stepladder.init()
            for batch in torch.utils.data.DataLoader(Data(), batch_size=8, num_workers=2):
                stepladder.log({"sum": batch.sum()})
            """)
        self.assertEqual([value for _, value in values(events, "sum")], [8 * (8 * k + 3.5) for k in range(8)])
        self.assertEqual(values(events, "worker"), [])

    RANK = """
        import os, sys, time, stepladder
        stepladder.init(name="joined")
        for i in range(10):
            with stepladder.timed_step():
                pass
            if os.environ.get("RANK") == "0": stepladder.log({"loss": i})
        """

    def joined(self, environments):
        processes = [self.start(self.RANK, **environment) for environment in environments]
        for process in processes:
            _, err = process.communicate(timeout=PATIENCE_S)
            self.assertEqual(process.returncode, 0, err)
        return sorted((path.parent.name, path.name) for path in self.paths())

    def test_ranks_share_a_folder(self):
        for launch in ({"TORCHELASTIC_RUN_ID": "job7"}, {"STEPLADDER_RUN_ID": "mine"}, {"MASTER_PORT": 1}):
            with self.subTest(launch):
                self.journals = self.folder / next(iter(launch))
                found = self.joined([dict(launch, RANK=rank, WORLD_SIZE=2, LOCAL_RANK=rank,
                                          STEPLADDER_DIR=self.journals) for rank in range(2)])
                self.assertEqual([name for _, name in found], ["rank-0.1.jsonl", "rank-1.1.jsonl"])
                first, second = (read(path) for path in self.paths())
                self.assertEqual(first[0]["uid"], second[0]["uid"])
                self.assertEqual([e["s"] for e in of_kind(second, "step")], list(range(10)))
                self.assertEqual((second[0]["rank"], second[0]["world"]), (1, 2))

    def test_slurm(self):
        found = self.joined([{"SLURM_JOB_ID": 5, "SLURM_STEP_ID": 0, "SLURM_PROCID": rank, "SLURM_NTASKS": 2}
                             for rank in range(2)])
        self.assertEqual([name for _, name in found], ["rank-0.1.jsonl", "rank-1.1.jsonl"])
        self.assertEqual(len({folder for folder, _ in found}), 1)
        # Two trainings in one batch script are two runs.
        batch = {"SLURM_JOB_ID": 5, "SLURM_PROCID": 0, "SLURM_NTASKS": 2}
        self.assertEqual(len({folder for folder, _ in self.joined([batch]) + self.joined([batch])}), 3)

    def test_a_second_launch_of_the_same_shell_is_another_run(self):
        launch = [dict(RANK=rank, WORLD_SIZE=2, MASTER_ADDR="localhost", MASTER_PORT=29500) for rank in range(2)]
        self.joined(launch)
        found = self.joined(launch)
        self.assertEqual([name for _, name in found], ["rank-0.1.jsonl", "rank-1.1.jsonl"] * 2)

    def test_torchrun(self):
        try:
            import torch  # noqa: F401
        except ImportError:
            self.skipTest("torch isn't installed")
        (self.folder / "demo.py").write_text(
            "import stepladder\nstepladder.init()\nfor i in range(3): stepladder.log({'x': i})\n")
        for _ in range(2):
            subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "demo.py"],
                           cwd=self.folder, env=self.environment, check=True, timeout=PATIENCE_S, capture_output=True)
        self.assertEqual([path.name for path in self.paths()], ["rank-0.1.jsonl", "rank-1.1.jsonl"] * 2)


class Disks(JournalTest):
    def test_a_folder_that_cannot_be_written_is_said_in_one_sentence(self):
        (self.folder / "file").write_text("")
        out, err = self.run_script("""
            import stepladder
            run = stepladder.init()
            for i in range(10):
                stepladder.log({"x": i})
                with stepladder.timed_step(): pass
            stepladder.finish()
            print("done")
            """, STEPLADDER_DIR=self.folder / "file" / "below")
        self.assertEqual(out, "done\n")
        self.assertEqual(err.count("\n"), 1, err)
        self.assertIn("Not a directory; the training goes on without a journal", err)

    def test_a_full_disk(self):
        """What the disk refuses waits in memory and is stored once there is room: nothing is lost."""
        out, err = self.run_script("""
            import resource, sys, time, stepladder
            _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
            run = stepladder.init()
            resource.setrlimit(resource.RLIMIT_FSIZE, (20000, most))
            for i in range(2000):
                stepladder.log({"x": i})
            while not run._file.failed: time.sleep(0.01)
            before = run._file.written
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
            stepladder.finish()
            print(before)
            """)
        self.assertEqual(out, "20000\n")
        self.assertIn("File too large; up to 64 MiB wait in memory and are tried again", err)
        self.assertIn("all is stored again", err)
        self.assertEqual(values(self.only(), "x"), [(i, i) for i in range(2000)])

    def test_a_disk_that_stays_full(self):
        """Memory has a ceiling, the caller never waits, and the steps of what is kept stay right."""
        out, err = self.run_script("""
            import resource, time, stepladder
            stepladder.MEMORY_BYTES, stepladder.MEMORY_CALLS, stepladder.FINISH_S = 10000, 1000, 0.5
            _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
            run = stepladder.init()
            resource.setrlimit(resource.RLIMIT_FSIZE, (20000, most))
            for i in range(1000):
                stepladder.log({"x": i})
            while not (run._file.failed and run._file.is_full()): time.sleep(0.01)
            for i in range(1000, 20000):
                stepladder.log({"x": i})
            assert len(run._file.bytes) < 1000000 and len(run._queue) <= 1001, (len(run._file.bytes), len(run._queue))
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
            while run._queue or run._rows or run._file.waiting(): time.sleep(0.01)
            stepladder.log({"x": 20000})
            """)
        events = self.only()
        kept = values(events, "x")
        self.assertTrue(all(step == value for step, value in kept))
        self.assertEqual(kept[-1], (20000, 20000))
        self.assertEqual(20001 - len(kept), of_kind(events, "lost")[-1]["n"])
        self.assertIn("log calls were lost", err)

    @unittest.skipUnless(os.geteuid() == 0, "only root may mount a small file system")
    def test_a_full_file_system(self):
        place = self.folder / "small"
        place.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", place], capture_output=True).returncode:
            self.skipTest("mount isn't allowed here")
        self.addCleanup(subprocess.run, ["umount", "-l", place])
        out, err = self.run_script("""
            import os, sys, time, stepladder
            open(sys.argv[1] + "/ballast", "wb").write(bytes(225000))
            run = stepladder.init()
            for i in range(1000):
                stepladder.log({"x": i})
            while not run._file.failed: time.sleep(0.01)
            os.remove(sys.argv[1] + "/ballast")
            """, place, STEPLADDER_DIR=place / "journals")
        self.assertIn("No space left on device", err)
        path, = (place / "journals").glob("*/*.jsonl")
        self.assertEqual(values(read(path), "x"), [(i, i) for i in range(1000)])

    def test_a_sync_that_fails_is_followed_by_writing_again(self):
        """After a failed fsync the disk may lack what was written before, so it is written again at its place."""
        self.run_script("""
            import errno, os, time, stepladder
            stepladder.SYNC_S = 0.1
            run = stepladder.init()
            fails = [3]
            def fsync(descriptor, real=os.fsync):
                if fails[0]:
                    fails[0] -= 1
                    size = os.fstat(descriptor).st_size
                    os.pwrite(descriptor, bytes(size - run._file.synced), run._file.synced)  # the disk lost them
                    raise OSError(errno.EIO, "Input/output error")
                real(descriptor)
            stepladder.os.fsync = fsync
            for i in range(50):
                stepladder.log({"x": i})
                time.sleep(0.02)
            while fails[0]: time.sleep(0.01)
            """)
        self.assertEqual(values(self.only(), "x"), [(i, i) for i in range(50)])

    def test_a_deleted_folder_is_said_once_and_the_script_goes_on(self):
        for what in ("shutil.rmtree(run.dir)", "os.remove(run.path)", "shutil.rmtree(os.path.dirname(run.dir))"):
            with self.subTest(what):
                out, err = self.run_script(f"""
                    import os, shutil, time, stepladder
                    run = stepladder.init()
                    stepladder.log({{"x": -1}})
                    while run._queue or run._rows or not run._file.synced: time.sleep(0.01)
                    {what}
                    while not run._file.is_gone: time.sleep(0.01)  # nothing is logged meanwhile
                    for i in range(1000): stepladder.log({{"x": i}})
                    print(run.step, run.summary["x"])
                    """)
                self.assertEqual(out, "1001 999\n")
                self.assertEqual(err.count("it was deleted; the training goes on without a journal"), 1, err)
                self.assertIn("1000 log calls were lost", err)
                self.assertEqual(self.paths(), [])
                shutil.rmtree(self.journals, ignore_errors=True)

    def test_a_moved_folder_keeps_its_journal(self):
        _, err = self.run_script("""
            import os, time, stepladder
            run = stepladder.init(id="first")
            stepladder.log({"x": 0})
            os.rename(run.dir, run.dir + "-moved")
            time.sleep(1.5)
            stepladder.log({"x": 1})
            """)
        self.assertEqual(values(self.only(), "x"), [(0, 0), (1, 1)])
        self.assertEqual([path.parent.name for path in self.paths()], ["first-moved"])


@unittest.skipUnless(hasattr(os, "closerange"), "needs POSIX descriptors")
class Descriptors(JournalTest):
    """A script that closes descriptors that aren't its own, as daemons do."""

    BEGIN = textwrap.dedent("""
        import os, shutil, sys, time, stepladder
        run = stepladder.init()
        def is_synced(): return run._file.synced == run._file.end() and not run._queue and not run._rows
        for i in range(100): stepladder.log({"x": i})
        if "synced" in sys.argv:
            while not is_synced(): time.sleep(0.01)
        before = run._file.descriptor
        """)
    PRECIOUS = textwrap.dedent("""
        files = [open("precious%d" % i, "w+") for i in range(10)]
        if before not in [file.fileno() for file in files]: os.dup2(files[0].fileno(), before)
        for file in files: print("mine", file=file, flush=True)
        """)
    REST = textwrap.dedent("""
        for i in range(100, 200): stepladder.log({"x": i})
        time.sleep(0.2)
        for i in range(200, 300): stepladder.log({"x": i})
        stepladder.finish()
        for file in files: print("mine", file=file, flush=True)
        """)

    def check_files(self, count=10):
        files = sorted(self.folder.glob("precious*"))
        self.assertEqual(len(files), count)
        for file in files:
            self.assertEqual(file.read_text(), "mine\nmine\n", file)

    def test_a_reused_descriptor_is_left_alone_and_the_journal_goes_on(self):
        for closing in ("os.closerange(3, 1000)", "os.close(before)"):
            for synced in ("synced", "at once"):
                with self.subTest(closing, synced=synced):
                    script = self.BEGIN + closing + self.PRECIOUS + self.REST
                    _, err = self.run_script(script, synced)
                    self.check_files()
                    self.assertEqual(values(self.only(), "x"), [(i, i) for i in range(300)])
                    self.assertEqual(of_kind(self.only(), "end")[0]["status"], "finished")
                    self.assertEqual(err.count("its descriptor was closed by the script"), 1, err)
                    shutil.rmtree(self.journals)

    def test_no_new_file_gets_its_number(self):
        """So that not even a write that has just looked at the descriptor reaches one."""
        self.run_script(self.BEGIN + """
os.closerange(3, 5000)
files = [open("precious%d" % i, "w+") for i in range(100)]
assert before not in [file.fileno() for file in files], before
""")

    def test_a_descriptor_that_is_only_closed(self):
        events = self.events(self.BEGIN + "os.closerange(3, 1000); files = []" + self.REST)
        self.assertEqual(values(events, "x"), [(i, i) for i in range(300)])

    def test_a_descriptor_that_is_replaced(self):
        self.run_script(self.BEGIN + textwrap.dedent("""
            files = [open("precious", "w+")]
            print("mine", file=files[0], flush=True)
            os.dup2(files[0].fileno(), before)
            """) + self.REST)
        self.check_files(1)
        self.assertEqual(values(self.only(), "x"), [(i, i) for i in range(300)])

    def test_another_file_in_the_journals_place(self):
        """Also one that has the deleted journal's inode number."""
        for other in ('open(path, "w").close()', 'os.symlink(os.path.abspath("precious0"), path)', "os.mkfifo(path)",
                      "shutil.rmtree(run.dir)", 'open(path, "w").write("x" * 10 ** 6)'):
            with self.subTest(other):
                _, err = self.run_script(self.BEGIN + textwrap.dedent("""
                    path = run.path
                    os.closerange(3, 1000)
                    os.remove(path)
                    """) + self.PRECIOUS + other + textwrap.dedent("""
                    before = os.lstat(path) if os.path.lexists(path) else None
                    """) + self.REST + textwrap.dedent("""
                    assert not before or os.lstat(path).st_size == before.st_size
                    """), "synced")
                self.check_files()
                self.assertIn("the training goes on without a journal", err)
                self.assertIn("log calls were lost", err)
                shutil.rmtree(self.journals)

    def test_a_forked_process_closes_no_other_file(self):
        self.run_script(self.BEGIN + "os.closerange(3, 1000)" + self.PRECIOUS + textwrap.dedent("""
            if os.fork() == 0:
                os.fstat(before)
                os._exit(0)
            assert os.wait()[1] == 0
            """) + self.REST)
        self.check_files()

    def test_what_is_printed_reaches_no_journal(self):
        """A program that starts without standard streams."""
        self.run_script("""
            import os, sys, stepladder
            if sys.argv[1:] == ["again"]:
                run = stepladder.init()
                for fd in (0, 1, 2):
                    try: os.write(fd, b"printed")
                    except OSError: pass
                stepladder.log({"x": 1})
                sys.exit()
            os.closerange(0, 3)
            os.execv(sys.executable, [sys.executable, sys.argv[0], "again"])
            """)
        self.assertEqual(values(self.only(), "x"), [(0, 1)])


class Permissions(JournalTest):
    def test_only_the_user_may_read_what_is_made(self):
        for umask in (0, 0o022, 0o077):
            with self.subTest(umask=oct(umask)):
                there = self.folder / f"there{umask}"
                there.mkdir()
                there.chmod(0o755)
                for _ in range(2):
                    self.run_script(f"""
                        import os, stepladder
                        os.umask({umask})
                        stepladder.init(id="a")
                        stepladder.log({{"x": 1}})
                        """, STEPLADDER_DIR=there / "a" / "b")
                modes = {path.relative_to(there).as_posix(): stat.S_IMODE(path.stat().st_mode)
                         for path in there.rglob("*")}
                self.assertEqual(modes, {"a": 0o700, "a/b": 0o700, "a/b/a": 0o700, "a/b/a/uid": 0o600,
                                         "a/b/a/rank-0.1.jsonl": 0o600, "a/b/a/rank-0.2.jsonl": 0o600})
                self.assertEqual(stat.S_IMODE(there.stat().st_mode), 0o755)

    def test_what_is_in_the_folder_cannot_hang_or_redirect_it(self):
        """FIFOs and links where files are expected."""
        folder = self.journals / "a"
        for name, target in (("uid", None), ("rank-0.1.jsonl", None), ("uid", "victim"), ("rank-0.1.jsonl", "victim")):
            with self.subTest(name, target=target):
                folder.mkdir(parents=True)
                (self.folder / "victim").write_text("")
                if target:
                    (folder / name).symlink_to(self.folder / target)
                else:
                    os.mkfifo(folder / name)
                self.run_script("import stepladder\nstepladder.init(id='a')\nstepladder.log({'x': 1})\n")
                self.assertEqual((self.folder / "victim").read_text(), "")
                shutil.rmtree(self.journals)


if __name__ == "__main__":
    unittest.main()
