"""The Machines view in a real window: a machine is added, tested and out of reach; Launch trains a ladder there."""
import os
import pathlib
import signal
import sys
import unittest

from desktop_driver import BUILD, Desktop, missing_tools

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "machines"))
from in_place_of_ssh import end_all_there, put_in_place_of_ssh  # noqa: E402
from machines import Sshd, missing  # noqa: E402


class Machines(unittest.TestCase):
    def setUp(self):
        self.desktop = Desktop()
        self.addCleanup(self.desktop.close)
        self.ssh = pathlib.Path(self.desktop.environment["XDG_CONFIG_HOME"]) / "ssh"
        self.ssh.parent.mkdir(parents=True, exist_ok=True)
        self.desktop.environment["STEPLADDER_SSH"] = put_in_place_of_ssh(self.ssh)
        self.addCleanup(end_all_there, self.ssh)
        self.desktop.start()

    def test_a_machine_is_added_and_trains_a_ladder(self):
        desktop = self.desktop
        desktop.go("side.machines", "machines.add")
        desktop.picture("machines-empty")
        desktop.go("machines.add", "machines.form.alias")
        desktop.enter("machines.form.alias", "box", "Tab")
        desktop.enter("machines.form.program", str(BUILD / "stepladder"), "Tab")
        desktop.picture("machines-form")
        desktop.click("machines.form.save")
        desktop.wait(lambda: desktop.rows("select heard_at from machines where alias = 'box' and heard_at is not null"),
                     "an answer of the machine")
        desktop.go("machines.test.box", "machines.remove.box")
        desktop.picture("machines-reachable")
        desktop.go("side.launch", "launch.where")
        desktop.click("launch.where")
        desktop.settled()  # the list has the keyboard
        desktop.keys("Down", "Return")
        desktop.picture("launch-where")
        desktop.click("launch.start")
        desktop.wait(lambda: desktop.rows("select 1 from far_runs where kind = 'ladder' and is_started"), "the ladder there")
        desktop.wait(lambda: desktop.rows("select count(*) from steps join far_members on steps.run_id = far_members.run_id")[0][0] > 5,
                     "steps of the ladder here")
        desktop.go("side.machines", "machines.add")
        desktop.picture("machines-at-work")
        (self.ssh / "down").touch()
        ((run,),) = desktop.rows("select min(run_id) from far_members")
        desktop.go("side.live", "side.live")
        desktop.picture("machines-live")
        self.assertEqual(desktop.rows("select count(*) from runs where status = 'failed'"), [(0,)])
        self.assertTrue(run)

    def answers(self):
        """What ssh was given in answer to its questions."""
        path = self.ssh / "answers"
        return [eval(line) for line in path.read_text().splitlines()] if path.exists() else []

    def add(self, alias):
        self.desktop.go("side.machines", "machines.add")
        self.desktop.go("machines.add", "machines.form.alias")
        self.desktop.enter("machines.form.alias", alias)  # Return adds it
        self.desktop.anchor("ssh.cancel")

    def test_ssh_asks_in_a_dialog(self):
        desktop = self.desktop
        (self.ssh / "asks").write_text("Enter passphrase for key '/home/me/.ssh/id_ed25519':\nopen sesame\n")
        self.add("box")
        desktop.picture("machines-ssh-asks")
        self.assertIn("ssh.answer", desktop.ui_test_anchors())
        desktop.enter("ssh.answer", "wrong")
        desktop.wait(lambda: self.answers() == ["wrong"], "the wrong answer")
        # It asks again; a refusal ends it, and no further try asks until the user wants it.
        desktop.wait(lambda: "ssh.cancel" in desktop.ui_test_anchors(), "the second question")
        desktop.settled()
        desktop.click("ssh.cancel")
        desktop.wait(lambda: self.answers() == ["wrong", None], "the refusal")
        desktop.wait(lambda: desktop.rows("select lost_why from machines where lost_why like '%Permission denied%'"), "the reason")
        words = self.ssh / "words"
        tries = len(words.read_text().splitlines())
        desktop.wait(lambda: len(words.read_text().splitlines()) > tries, "another try")
        self.assertIn("BatchMode=yes", words.read_text().splitlines()[-1])
        self.assertNotIn("ssh.cancel", desktop.ui_test_anchors())
        desktop.picture("machines-ssh-refused")
        # The right answer, by the keyboard alone.
        desktop.go("machines.test.box", "ssh.answer")
        desktop.settled()
        desktop.xdotool("type", "--delay", 30, "open sesame")
        desktop.keys("Return")
        desktop.wait(lambda: desktop.rows("select heard_at from machines where heard_at is not null and lost_at is null"), "the machine")
        self.assertEqual(self.answers()[2], "open sesame")
        self.assertNotIn("open sesame", (desktop.path / "log").read_text())
        left = [path for path in desktop.path.rglob("*") if path.is_file() and path.parent != self.ssh and b"open sesame" in path.read_bytes()]
        self.assertEqual(left, [], "the answer is in no file of ours")

    def test_a_question_is_gone_with_the_ssh_that_asked(self):
        desktop = self.desktop
        (self.ssh / "asks").write_text("Are you sure you want to continue connecting (yes/no/[fingerprint])?\nyes\n")
        self.add("box")
        desktop.picture("machines-ssh-confirms")
        (self.ssh / "down").touch()
        for line in (self.ssh / "askers").read_text().splitlines():
            os.kill(int(line), signal.SIGKILL)
        desktop.wait(lambda: "ssh.cancel" not in desktop.ui_test_anchors(), "the end of the question")


@unittest.skipIf(missing(), missing())
class RealSsh(unittest.TestCase):
    def test_a_new_host_and_a_locked_key(self):
        box = self.enterContext(Sshd())
        box.lock("correct horse")
        (box.path / "known_hosts").write_text("")
        desktop = Desktop()
        self.addCleanup(desktop.close)
        desktop.environment["STEPLADDER_SSH"] = str(box.ssh)
        for name in ("SSH_AUTH_SOCK", "SSH_ASKPASS"):
            desktop.environment.pop(name, None)
        desktop.start()
        desktop.go("side.machines", "machines.add")
        desktop.go("machines.add", "machines.form.alias")
        desktop.enter("machines.form.alias", "box")
        desktop.anchor("ssh.answer")
        desktop.picture("machines-ssh-host")
        self.assertEqual((box.path / "known_hosts").read_text(), "")  # no host is trusted without an answer
        desktop.enter("ssh.answer", "yes")
        desktop.wait(lambda: (box.path / "known_hosts").read_text(), "the host's key")
        passphrases = ["wrong"]
        def is_up():
            if "ssh.answer" in desktop.settled():  # it has the keyboard
                desktop.picture("machines-ssh-passphrase")
                desktop.xdotool("type", "--delay", 30, passphrases.pop() if passphrases else "correct horse")
                desktop.keys("Return")
            return desktop.rows("select heard_at from machines where heard_at is not null")
        desktop.wait(is_up, "the machine")
        desktop.picture("machines-ssh-up")


if __name__ == "__main__":
    if missing_tools():
        print("skipped: needs", ", ".join(missing_tools()))
        sys.exit(77)
    unittest.main(verbosity=2)
