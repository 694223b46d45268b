"""The file dialog of the freedesktop portal, with a stand-in for the portal on a D-Bus session of its own."""
import ctypes
import os
import shutil
import subprocess
import threading
import unittest

from desktop_driver import Desktop, missing_tools

PORTAL = b"org.freedesktop.portal.Desktop"
OBJECT = b"/org/freedesktop/portal/desktop"


def sd_bus():
    for name in ("libsystemd.so.0", "libelogind.so.0"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


class Portal:
    """Answers each OpenFile with one file, as if the user had chosen it."""

    HANDLER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)

    def __init__(self, library, chosen):
        self.library, self.chosen, self.asked = library, chosen, []
        self.bus = ctypes.c_void_p()
        for function in ("sd_bus_message_get_sender", "sd_bus_message_get_member"):
            getattr(library, function).restype = ctypes.c_char_p
            getattr(library, function).argtypes = [ctypes.c_void_p]
        self.handler = self.HANDLER(self.handle)
        assert library.sd_bus_open_user(ctypes.byref(self.bus)) >= 0
        assert library.sd_bus_add_object(self.bus, None, OBJECT, self.handler, None) >= 0
        assert library.sd_bus_request_name(self.bus, PORTAL, ctypes.c_uint64(0)) >= 0
        self.ends = False
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        while not self.ends:
            if self.library.sd_bus_process(self.bus, None) == 0:
                self.library.sd_bus_wait(self.bus, ctypes.c_uint64(50_000))

    def handle(self, message, _data, _error):
        message = ctypes.c_void_p(message)
        if self.library.sd_bus_message_get_member(message) != b"OpenFile":
            return 0
        parent, title, key, token = (ctypes.c_char_p() for _ in range(4))
        self.library.sd_bus_message_read(message, b"ss", ctypes.byref(parent), ctypes.byref(title))
        self.library.sd_bus_message_enter_container(message, ctypes.c_char(b"a"), b"{sv}")
        self.library.sd_bus_message_read(message, b"{sv}", ctypes.byref(key), b"s", ctypes.byref(token))
        self.asked.append((title.value, key.value))
        sender = self.library.sd_bus_message_get_sender(message)[1:].replace(b".", b"_")
        request = OBJECT + b"/request/" + sender + b"/" + token.value
        self.library.sd_bus_reply_method_return(message, b"o", request)
        self.library.sd_bus_emit_signal(self.bus, request, b"org.freedesktop.portal.Request", b"Response", b"ua{sv}",
                                        ctypes.c_uint32(0), ctypes.c_int(1), b"uris", b"as", ctypes.c_int(1), self.chosen)
        return 1

    def close(self):
        self.ends = True
        self.thread.join()
        self.library.sd_bus_flush_close_unref(self.bus)


@unittest.skipIf(missing_tools(), "needs " + ", ".join(missing_tools()))
@unittest.skipIf(not shutil.which("dbus-daemon") or not sd_bus(), "needs dbus-daemon and libsystemd")
class FileDialog(unittest.TestCase):
    def setUp(self):
        self.bus = subprocess.Popen(["dbus-daemon", "--session", "--nofork", "--print-address"], stdout=subprocess.PIPE, text=True)
        address = self.bus.stdout.readline().strip()
        os.environ["DBUS_SESSION_BUS_ADDRESS"] = address
        self.desktop = Desktop()

    def tearDown(self):
        self.desktop.close()
        self.bus.terminate()
        self.bus.wait()
        self.bus.stdout.close()
        del os.environ["DBUS_SESSION_BUS_ADDRESS"]

    def test_a_log_is_chosen_in_the_portals_dialog(self):
        log = self.desktop.path / "a log.txt"
        log.write_text("".join(f"step {i} | loss {5 - 0.01 * i:.3f} | dt 100ms\n" for i in range(1, 31)))
        portal = Portal(sd_bus(), log.as_uri().encode())
        self.addCleanup(portal.close)
        self.desktop.start()
        self.desktop.go("side.import", "import.path.browse")
        self.desktop.go("import.path.browse", "import.show.steps")
        self.assertEqual(portal.asked[0], (b"Choose logs or tables", b"handle_token"))
        self.desktop.click("import.show.steps")
        self.desktop.go("steps.row.3", "steps.line")
        self.desktop.picture("import_source")


if __name__ == "__main__":
    unittest.main()
