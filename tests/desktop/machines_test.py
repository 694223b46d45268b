"""The Machines view in a real window: a machine is added, tested and out of reach; Launch trains a ladder there."""
import pathlib
import sys
import unittest

from desktop_driver import BUILD, Desktop, missing_tools

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "machines"))
from in_place_of_ssh import put_in_place_of_ssh  # noqa: E402


class Machines(unittest.TestCase):
    def setUp(self):
        self.desktop = Desktop()
        self.addCleanup(self.desktop.close)
        self.ssh = pathlib.Path(self.desktop.environment["XDG_CONFIG_HOME"]) / "ssh"
        self.ssh.parent.mkdir(parents=True, exist_ok=True)
        self.desktop.environment["STEPLADDER_SSH"] = put_in_place_of_ssh(self.ssh)
        self.desktop.start()

    def test_a_machine_is_added_and_trains_a_ladder(self):
        desktop = self.desktop
        desktop.go("side.machines", "machines.add")
        desktop.picture("machines-empty")
        desktop.go("machines.add", "machines.form.alias")
        desktop.enter("machines.form.alias", "box")
        desktop.enter("machines.form.program", str(BUILD / "stepladder"))
        desktop.picture("machines-form")
        desktop.click("machines.form.save")
        desktop.wait(lambda: desktop.rows("select heard_at from machines where alias = 'box' and heard_at is not null"),
                     "an answer of the machine")
        desktop.go("machines.test.box", "machines.remove.box")
        desktop.picture("machines-reachable")
        desktop.go("side.launch", "launch.where")
        desktop.click("launch.where")
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


if __name__ == "__main__":
    if missing_tools():
        print("skipped: needs", ", ".join(missing_tools()))
        sys.exit(77)
    unittest.main(verbosity=2)
