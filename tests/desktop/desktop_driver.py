"""A real window on a display of its own (Xvfb), driven by real mouse and keyboard events (xdotool)."""
import os
import pathlib
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from program import BUILD, PATIENCE_S  # noqa: E402

PICTURES = BUILD / "screenshots"
IMPORTED = "source = 'import' and name not like 'a100-three-rungs%'"  # runs that aren't the example's


def missing_tools():
    return [tool for tool in ("Xvfb", "xdotool") if not shutil.which(tool)]


class Desktop:
    def __init__(self, width=1600, height=900):
        self.folder = tempfile.TemporaryDirectory(prefix="stepladder-window-")
        self.path = pathlib.Path(self.folder.name)
        self.anchors_file = self.path / "ui_test_anchors"
        self.database = self.path / "runs.db"
        read_end, write_end = os.pipe()
        self.display_server = subprocess.Popen(
            ["Xvfb", "-displayfd", str(write_end), "-screen", "0", f"{width}x{height}x24", "-fbdir", self.path, "-nolisten", "tcp"],
            pass_fds=[write_end], stderr=subprocess.DEVNULL)
        os.close(write_end)
        with os.fdopen(read_end) as numbers:
            display = ":" + numbers.readline().strip()
        self.environment = {**os.environ, "DISPLAY": display, "LIBGL_ALWAYS_SOFTWARE": "1", "STEPLADDER_DB": str(self.database),
                            "STEPLADDER_UI_TEST_ANCHORS": str(self.anchors_file), "XDG_CONFIG_HOME": str(self.path / "config"),
                            "XDG_DATA_HOME": str(self.path / "data"), "XDG_STATE_HOME": str(self.path / "state"), "OMP_NUM_THREADS": "1"}
        self.environment.pop("WAYLAND_DISPLAY", None)
        self.program = None
        self.executable = BUILD / "stepladder"

    def start(self):
        """Starts the program; returns the seconds until its first frame."""
        self.anchors_file.unlink(missing_ok=True)
        begun = time.monotonic()
        with open(self.path / "log", "a") as log:
            self.program = subprocess.Popen([self.executable], env=self.environment, stdout=log, stderr=log)
        self.wait(lambda: self.anchors_file.exists(), "the first frame")
        return time.monotonic() - begun

    def stop(self):
        """Ends the program as a session manager would; returns its exit status."""
        self.program.send_signal(signal.SIGTERM)
        status = self.program.wait(timeout=PATIENCE_S)
        self.program = None
        return status

    def close(self):
        if self.program:
            self.program.kill()
            self.program.wait()
        self.display_server.terminate()
        self.display_server.wait()
        self.folder.cleanup()

    def wait(self, condition, what, seconds=PATIENCE_S):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            result = condition()
            if result:
                return result
            if self.program and self.program.poll() is not None:
                raise AssertionError(f"the program ended with {self.program.returncode}: {(self.path / 'log').read_text()}")
            time.sleep(0.05)
        self.picture("failed")
        raise AssertionError(f"waited {seconds} s for {what}; on the screen: {sorted(self.ui_test_anchors())}")

    def ui_test_anchors(self):
        """Name -> (x0, y0, x1, y1) of everything that is on the screen now."""
        try:
            lines = self.anchors_file.read_text().splitlines()
        except FileNotFoundError:
            return {}
        parts = [line.rsplit(" ", 4) for line in lines]  # names may have blanks
        return {name: tuple(map(float, box)) for name, *box in parts}

    def settled(self):
        """The anchors, once nothing moves any more."""
        self.wait(lambda: self.stands_still(self.ui_test_anchors, 0.7), "a window at rest")
        return self.ui_test_anchors()

    def drawn(self):
        """The screen's pixels, once nothing moves any more: not even what has no anchor, as a zoom that glides."""
        self.wait(lambda: self.stands_still(self.pixels, 0.7), "a screen at rest")
        return self.pixels()[2]

    def stands_still(self, reading, seconds=4):
        """Whether a reading is the same after a while. A step is committed up to 1.5 s after its end."""
        before = reading()
        time.sleep(seconds)
        return reading() == before

    def xdotool(self, *arguments):
        subprocess.run(["xdotool", *map(str, arguments)], env=self.environment, check=True)

    def click(self, name, modifier=None):
        x0, y0, x1, y1 = self.wait(lambda: self.ui_test_anchors().get(name), name)
        self.xdotool("mousemove", int((x0 + x1) / 2), int((y0 + y1) / 2))
        time.sleep(0.15)
        if modifier:
            self.xdotool("keydown", modifier)
            time.sleep(0.1)
        self.xdotool("click", 1)
        time.sleep(0.15)
        if modifier:
            self.xdotool("keyup", modifier)

    def go(self, name, anchor):
        """Clicks, unless the anchor is on the screen, and waits for it."""
        if anchor not in self.ui_test_anchors():
            self.click(name)
        self.anchor(anchor)

    def start_ladder(self):
        """Presses Launch's button when the form has no problem, and waits for Live."""
        self.wait(lambda: "launch.estimate" in self.ui_test_anchors(), "Launch to be ready")
        self.click("launch.start")
        self.wait(lambda: "launch.start" not in self.ui_test_anchors(), "the ladder to start")

    def keys(self, *names):
        """Presses keys like a hand: modifiers down first, up last."""
        for name in names:
            *modifiers, key = name.split("+")
            for modifier in modifiers:
                self.xdotool("keydown", modifier)
                time.sleep(0.1)
            self.xdotool("key", key)
            time.sleep(0.15)
            for modifier in modifiers:
                self.xdotool("keyup", modifier)
            time.sleep(0.1)

    def fill(self, name, text):
        self.click(name)
        self.keys("ctrl+a")
        self.xdotool("type", "--delay", 30, text)
        time.sleep(0.2)

    def enter(self, name, text, key="Return"):
        """Fills a field of a form at rest: while a form is drawn anew for a list, a slow window takes a click for another place."""
        self.settled()
        self.click(name)
        self.settled()
        self.keys("ctrl+a")
        self.xdotool("type", "--delay", 30, text)
        self.keys(key)

    def anchor(self, name):
        self.wait(lambda: name in self.ui_test_anchors(), name)

    def rows(self, query, *values):
        try:
            with sqlite3.connect(f"file:{self.database}?mode=ro", uri=True) as database:
                return database.execute(query, values).fetchall()
        except sqlite3.OperationalError:
            return []

    def pixels(self):
        """Width, height and the rows of the screen as RGB, read from Xvfb's own file (the format of xwd)."""
        data = (self.path / "Xvfb_screen0").read_bytes()
        header = struct.unpack(">25I", data[:100])
        header_size, width, height, bytes_per_line, colours = header[0], header[4], header[5], header[12], header[19]
        start = header_size + colours * 12
        rows = []
        for y in range(height):
            row = data[start + y * bytes_per_line:start + y * bytes_per_line + width * 4]  # BGRX
            rgb = bytearray(width * 3)
            rgb[0::3], rgb[1::3], rgb[2::3] = row[2::4], row[1::4], row[0::4]
            rows.append(bytes(rgb))
        return width, height, rows

    def picture(self, name):
        """Saves the screen as build/screenshots/NAME.png."""
        time.sleep(0.4)
        width, height, rows = self.pixels()
        packed = zlib.compress(b"".join(b"\0" + row for row in rows), 6)
        chunk = lambda kind, body: struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        PICTURES.mkdir(parents=True, exist_ok=True)
        (PICTURES / f"{name}.png").write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)) +
                                               chunk(b"IDAT", packed) + chunk(b"IEND", b""))

    def brightness(self):
        """Mean over a strip of background at the window's right edge, 0 to 255."""
        width, height, rows = self.pixels()
        strip = b"".join(row[(width - 12) * 3:(width - 4) * 3] for row in rows[height // 3:height // 2])
        return sum(strip) / len(strip)
