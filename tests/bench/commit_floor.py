"""The least that keeping a step can cost on this machine, for the figures of recording_bench beside it.

    python tests/bench/commit_floor.py FOLDER [--rounds 3]

Prints the CPU time a step of 30 steps that are kept together after a rest, as a training's are: one write and one
`fdatasync`, without any database; then SQLite's commit of 30 rows like ours, with and without row ids. Last, a million
such rows in SQLite's memory, made by one statement: no disk, no log, no values handed over. FOLDER must be on a disk.
"""
import argparse
import os
import pathlib
import resource
import sqlite3
import statistics
import time

STEPS = 30
REST_S = 0.5
COLUMNS = ("loss REAL, val_loss REAL, dt_ns INTEGER, tokens INTEGER, lr_e12 INTEGER, grad_norm_e9 INTEGER, at_ms INTEGER, "
           "data_us INTEGER, forward_us INTEGER, backward_us INTEGER, optimizer_us INTEGER, communication_us INTEGER")
TABLES = {"as ours": f"run_id INTEGER NOT NULL, step INTEGER NOT NULL, {COLUMNS}, PRIMARY KEY (run_id, step)) WITHOUT ROWID",
          "with row ids": f"step INTEGER PRIMARY KEY, run_id INTEGER, {COLUMNS})"}
VALUES = ("3 + 1.0 / i, NULL, 50000000 + i * 7919 % 1000000, 524288, 600000000 - i, 1000000000 + i * 7919 % 100000000, "
          "1700000000000 + i * 50, 1000 + i % 1000, 15000 + i % 1000, 28000 + i % 1000, 4000 + i % 1000, NULL")


def cpu_us():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return (used.ru_utime + used.ru_stime) * 1e6


def rested(work, times=20):
    """CPU time of `work` after a rest, in microseconds a step."""
    used = 0
    for _ in range(times):
        time.sleep(REST_S)
        begun = cpu_us()
        work()
        used += cpu_us() - begun
    return used / times / STEPS


def write_and_sync(folder):
    file = os.open(folder / "floor", os.O_RDWR | os.O_CREAT, 0o600)
    os.pwrite(file, bytes(1 << 20), 0)
    os.fsync(file)
    at = iter(range(0, 1 << 20, 2048))

    def work():
        os.pwrite(file, b"x" * 2048, next(at))
        os.fdatasync(file)
    result = rested(work)
    os.close(file)
    return result


def inserted(connection, table, first, count):
    order = "1, i" if table == "as ours" else "i, 1"
    connection.execute(f"WITH RECURSIVE s(i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM s LIMIT {count}) "
                       f"INSERT INTO steps SELECT {order}, {VALUES} FROM s")


def commit(folder, table):
    for ending in ("", "-wal", "-shm"):
        (folder / ("floor.db" + ending)).unlink(missing_ok=True)
    connection = sqlite3.connect(folder / "floor.db", isolation_level=None)
    for pragma in ("page_size = 1024", "journal_mode = WAL", "synchronous = FULL"):
        connection.execute("PRAGMA " + pragma)
    connection.execute(f"CREATE TABLE steps ({TABLES[table]}")
    inserted(connection, table, 1, 1000)
    firsts = iter(range(1001, 1 << 30, STEPS))
    result = rested(lambda: inserted(connection, table, next(firsts), STEPS))
    connection.close()
    return result


def in_memory(table, count=1_000_000):
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute(f"CREATE TABLE steps ({TABLES[table]}")
    begun = cpu_us()
    inserted(connection, table, 1, count)
    return (cpu_us() - begun) / count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    figures = {}
    for _ in range(options.rounds):
        figures.setdefault("one write and a sync after a rest", []).append(write_and_sync(options.folder))
        for table in TABLES:
            figures.setdefault(f"a commit of SQLite after a rest, {table}", []).append(commit(options.folder, table))
            figures.setdefault(f"a row in SQLite's memory, {table}", []).append(in_memory(table))
    print(f"us of CPU a step, {STEPS} steps at once")
    for name, values in figures.items():
        print(f"{name}: {statistics.median(values):.1f} ({min(values):.1f} - {max(values):.1f})")


if __name__ == "__main__":
    main()
