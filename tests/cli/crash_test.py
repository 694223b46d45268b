"""A crash leaves a report beside the settings, whose stack can be resolved, and `doctor` names it."""
import json
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

from program import PATIENCE_S, PROGRAM, Workplace


@unittest.skipIf(os.environ.get("STEPLADDER_SANITIZED"), "sanitizers report crashes themselves")
class Crash(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.addCleanup(self.place.close)
        self.report = self.place.path / "config" / "stepladder" / "crash.txt"

    def crash(self, kind):
        """Ends a program that waits for its input by the signal."""
        process = self.place.start("import", "-", stdin=subprocess.PIPE)
        self.addCleanup(process.stdin.close)
        deadline = time.monotonic() + PATIENCE_S
        # It has come to main() once it reads, since everything before that is quick to end.
        while "pipe" not in (wchan := self.waits_in(process.pid)) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertIn("pipe", wchan)
        process.send_signal(kind)
        process.wait(timeout=PATIENCE_S)
        process.stdout.close()
        process.stderr.close()
        return process.returncode

    @staticmethod
    def waits_in(pid):
        """The call in which the process waits; "pipe" where the system doesn't tell, after a while."""
        try:
            with open(f"/proc/{pid}/syscall") as text:
                return "pipe" if text.read().startswith(("0 0x0 ", "7 ", "271 ")) else ""
        except OSError:
            time.sleep(2)
            return "pipe"

    def test_the_report_has_version_signal_and_stack(self):
        self.assertEqual(self.crash(signal.SIGSEGV), -signal.SIGSEGV)
        text = self.report.read_text()
        version = json.loads(self.place.run("--version", "--json")[1])
        self.assertTrue(text.startswith(f"stepladder {version['version']} {version['commit'] or ''}"), text)
        self.assertIn("SIGSEGV", text)
        self.assertEqual(self.report.stat().st_mode & 0o777, 0o600)
        if not shutil.which("addr2line"):
            self.skipTest("addr2line isn't installed")
        offsets = re.findall(rf"^{re.escape(str(PROGRAM))}\(\+(0x[0-9a-f]+)\)", text, re.MULTILINE)
        self.assertTrue(offsets, text)
        names = subprocess.run(["addr2line", "-Cfe", PROGRAM, *offsets], stdout=subprocess.PIPE, text=True).stdout
        self.assertIn("stepladder::run_command_line", names)

    def test_doctor_names_the_newest_report(self):
        self.assertIsNone(self.doctor()["crash_report"])
        self.crash(signal.SIGABRT)
        self.assertEqual(self.doctor()["crash_report"], str(self.report))
        self.assertIn("SIGABRT", self.report.read_text())

    def test_an_older_report_is_replaced_and_a_link_is_not_followed(self):
        other = self.place.path / "theirs.txt"
        other.write_text("theirs")
        self.report.parent.mkdir(parents=True)
        self.report.symlink_to(other)
        self.crash(signal.SIGBUS)
        self.assertEqual(other.read_text(), "theirs")
        self.report.unlink()
        self.report.write_text("older")
        self.crash(signal.SIGBUS)
        self.assertIn("SIGBUS", self.report.read_text())

    def doctor(self):
        return json.loads(self.place.run("doctor", "--json")[1])


if __name__ == "__main__":
    unittest.main()
