"""kill -9 during a run, ten times: the file is intact, and after the next start it has every step that the run took."""
import glob
import os
import signal
import sqlite3
import struct
import time
import unittest

from program import TINY, Workplace

# Of a ring's file (storage/database/events/event_ring.cpp).
HEAD_BYTES, SLOT_BYTES, SLOTS = 4096, 128, 16384


def last_posted(process):
    """The newest step in the ring of a process, read from outside; None if it has no ring in shared memory."""
    for path in glob.glob(f"/dev/shm/stepladder-{os.geteuid()}-{process.pid}-*"):
        with open(path, "rb") as ring:
            content = ring.read()
        newest = (0, 0)
        for slot in range(SLOTS if len(content) == HEAD_BYTES + SLOTS * SLOT_BYTES else 0):
            sequence, kind, _, _, step = struct.unpack_from("<QIIqq", content, HEAD_BYTES + slot * SLOT_BYTES)
            if kind == 1:
                newest = max(newest, (sequence, step))
        return newest[1]
    return None


class Kill(unittest.TestCase):
    def test_ten_times(self):
        place = Workplace()
        self.addCleanup(place.close)
        for attempt in range(10):
            process = place.start("train", *TINY, "--steps", 10000000, "--name", f"killed {attempt}")
            started = time.time()
            while time.time() - started < 60 and (last_posted(process) or 0) < 10 + attempt:
                time.sleep(0.02)
            time.sleep(0.37 * attempt % 1.7)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            posted = last_posted(process)
            if posted is None:
                self.skipTest("no shared memory here")
            self.assertGreaterEqual(posted, 10)

            run = place.json("runs", "--filter", "killed")[attempt]
            self.assertEqual((run["status"], run["steps"], run["first_step"], run["last_step"]),
                             ("interrupted", posted, 1, posted))
            self.assertIsNone(last_posted(process), "what was taken in is gone")
            with sqlite3.connect(place.database) as database:
                self.assertEqual(database.execute("pragma integrity_check").fetchone()[0], "ok")
        self.assertEqual(len(place.json("runs")), 10)


if __name__ == "__main__":
    unittest.main(verbosity=2)
