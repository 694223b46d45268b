#!/usr/bin/env python3
"""Faults of this side while a run is followed: a full disk, a home that can't be written, a clock that is five minutes off.

The other machine is this one, through a program in ssh's place. Needs root, for a mount namespace of its own; else skipped.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import time

from near_test import Box
from program import PATIENCE_S, PROGRAM

# Adds five minutes to the clock of the program that loads it.
CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec* at) {
  static int (*real)(clockid_t, struct timespec*);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(clock, at);
  if (clock == CLOCK_REALTIME) at->tv_sec += 300;
  return result;
}
int gettimeofday(struct timeval* at, void* zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}
time_t time(time_t* at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}
"""


def start(box, *arguments):
    """A tracker whose messages can be read while it runs."""
    messages = box.path / "messages"
    with open(messages, "w") as file:
        process = subprocess.Popen([PROGRAM, *map(str, arguments)], env=box.environment, stdout=subprocess.DEVNULL, stderr=file)
    return process, messages


def whole(box, name, steps):
    ((run, status),) = box.rows("SELECT id, status FROM runs WHERE name = ?", name)
    assert status == "finished", status
    assert box.losses(run) == {step: 4 - step / 1000 for step in range(1, steps + 1)}
    assert box.rows("SELECT count(*) FROM superseded_steps WHERE run_id = ?", run) == [(0,)]
    return run


def check_a_full_disk(box):
    steps = 600
    process, messages = start(box, "watch", "--on", "box", "--there", box.path, "--name", "full", "--", sys.executable, "logger.py", steps, "0.02")
    box.wait("steps", lambda: box.rows("SELECT count(*) FROM steps")[0][0] > 20)
    filler = box.database.parent / "filler"
    with open(filler, "wb", buffering=0) as file:
        try:
            for size in (64 << 10, 4 << 10, 512):
                while True:
                    file.write(b"x" * size)
        except OSError:
            pass
    box.wait("a word about the disk", lambda: "trying again" in messages.read_text())
    assert process.poll() is None, "a full disk ends nothing"
    filler.unlink()
    assert process.wait(timeout=PATIENCE_S) == 0, messages.read_text()
    whole(box, "full", steps)


def check_a_home_that_cannot_be_written(box):
    home = box.path / "home that is read-only"
    home.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", home], check=True)
    before = dict(box.environment)
    box.environment.update(HOME=str(home), XDG_CONFIG_HOME=str(home / ".config"), XDG_DATA_HOME=str(home / ".local"), TMPDIR=str(box.path))
    box.succeeds("watch", "--on", "box", "--there", box.path, "--name", "home", "--", sys.executable, "logger.py", "20", "0")
    whole(box, "home", 20)
    status, _, err = box.run("--db", home / "runs.db", "machines", "add", "other")
    assert status == 1 and str(home / "runs.db") in err, (status, err)
    orders = home / ".local" / "state" / "stepladder" / "orders.db"
    box.environment["XDG_STATE_HOME"] = str(home / ".local" / "state")
    status, _, err = box.run("machines", "add", "other")
    assert status == 1 and str(orders) in err, (status, err)
    box.environment.clear()
    box.environment.update(before)


def check_a_clock_that_is_off(box):
    source, library = box.path / "clock.c", box.path / "clock.so"
    source.write_text(CLOCK)
    if not shutil.which("cc") or subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], capture_output=True).returncode:
        return print("no C compiler: the clock stays right")
    box.environment["LD_PRELOAD"] = str(library)
    (checked,) = box.json("machines", "check", "box")
    (clock,) = [each for each in checked["checks"] if each["name"] == "Clock"]
    if checked["clock_ahead_s"] > -200:
        return print("this build's clock can't be set: sanitizers have their own")
    assert clock["result"] == "warning" and "behind this machine's" in clock["text"], clock
    begun = time.time()
    box.succeeds("watch", "--on", "box", "--there", box.path, "--name", "off", "--", sys.executable, "logger.py", "50", "0.01")
    run = whole(box, "off", 50)
    del box.environment["LD_PRELOAD"]
    times = [row[0] for row in box.rows("SELECT at FROM steps WHERE run_id = ? ORDER BY step", run)]
    assert times == sorted(times) and begun - 1 <= times[0] and times[-1] <= time.time() + 1, "steps keep the machine's times"


def main():
    if os.getuid() != 0 or sys.platform != "linux" or subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        print("skipped: this test needs root, for a mount namespace")
        sys.exit(77)
    if "--inside" not in sys.argv:
        os.execvp("unshare", ["unshare", "--mount", sys.executable, __file__, "--inside"])
    box = Box()
    small = box.path / "small disk"
    small.mkdir()
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "none", small], check=True)
        box.database = small / "runs.db"
        box.environment["STEPLADDER_DB"] = str(box.database)
        box.succeeds("machines", "add", "box")
        for check in (check_a_full_disk, check_a_home_that_cannot_be_written, check_a_clock_that_is_off):
            begun = time.monotonic()
            check(box)
            print(f"{check.__name__}: {time.monotonic() - begun:.1f} s", flush=True)
    finally:
        for mounted in (small, box.path / "home that is read-only"):
            subprocess.run(["umount", "--lazy", mounted], capture_output=True)
        box.close()


if __name__ == "__main__":
    main()
