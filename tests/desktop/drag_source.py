"""Drags files onto a window, as a file manager does: the source's half of XDND 5 (https://freedesktop.org/wiki/Specifications/XDND)
over libX11, which Xvfb and xdotool need too."""
import ctypes
import ctypes.util
import pathlib
import time
import urllib.parse

from program import PATIENCE_S

SELECTION_REQUEST, SELECTION_NOTIFY, CLIENT_MESSAGE = 30, 31, 33
PROP_MODE_REPLACE = 0


class Message(ctypes.Structure):  # XClientMessageEvent
    _fields_ = [("type", ctypes.c_int), ("serial", ctypes.c_ulong), ("send_event", ctypes.c_int), ("display", ctypes.c_void_p),
                ("window", ctypes.c_ulong), ("message_type", ctypes.c_ulong), ("format", ctypes.c_int), ("data", ctypes.c_long * 5)]


class Request(ctypes.Structure):  # XSelectionRequestEvent
    _fields_ = [("type", ctypes.c_int), ("serial", ctypes.c_ulong), ("send_event", ctypes.c_int), ("display", ctypes.c_void_p),
                ("owner", ctypes.c_ulong), ("requestor", ctypes.c_ulong), ("selection", ctypes.c_ulong),
                ("target", ctypes.c_ulong), ("property", ctypes.c_ulong), ("time", ctypes.c_ulong)]


class Notify(ctypes.Structure):  # XSelectionEvent
    _fields_ = [("type", ctypes.c_int), ("serial", ctypes.c_ulong), ("send_event", ctypes.c_int), ("display", ctypes.c_void_p),
                ("requestor", ctypes.c_ulong), ("selection", ctypes.c_ulong), ("target", ctypes.c_ulong),
                ("property", ctypes.c_ulong), ("time", ctypes.c_ulong)]


class Event(ctypes.Union):  # XEvent
    _fields_ = [("type", ctypes.c_int), ("message", Message), ("request", Request), ("notify", Notify), ("pad", ctypes.c_long * 24)]


def library():
    """libX11 with its types; None if it isn't installed."""
    name = ctypes.util.find_library("X11")
    if not name:
        return None
    x = ctypes.CDLL(name)
    window, atom, display = ctypes.c_ulong, ctypes.c_ulong, ctypes.c_void_p
    for function, result, arguments in (
            (x.XOpenDisplay, display, [ctypes.c_char_p]), (x.XDefaultRootWindow, window, [display]),
            (x.XInternAtom, atom, [display, ctypes.c_char_p, ctypes.c_int]),
            (x.XCreateSimpleWindow, window, [display, window] + [ctypes.c_int] * 2 + [ctypes.c_uint] * 3 + [ctypes.c_ulong] * 2),
            (x.XSetSelectionOwner, ctypes.c_int, [display, atom, window, ctypes.c_ulong]),
            (x.XSendEvent, ctypes.c_int, [display, window, ctypes.c_int, ctypes.c_long, ctypes.POINTER(Event)]),
            (x.XChangeProperty, ctypes.c_int, [display, window, atom, atom, ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_int]),
            (x.XPending, ctypes.c_int, [display]), (x.XNextEvent, ctypes.c_int, [display, ctypes.POINTER(Event)]),
            (x.XFlush, ctypes.c_int, [display]), (x.XCloseDisplay, ctypes.c_int, [display])):
        function.restype, function.argtypes = result, arguments
    return x


class DragSource:
    def __init__(self, display):
        self.x = library()
        self.display = self.x.XOpenDisplay(display.encode())
        if not self.display:
            raise OSError(f"the display {display} cannot be opened")
        self.window = self.x.XCreateSimpleWindow(self.display, self.x.XDefaultRootWindow(self.display), 0, 0, 1, 1, 0, 0, 0)

    def close(self):
        self.x.XCloseDisplay(self.display)

    def atom(self, name):
        return self.x.XInternAtom(self.display, name.encode(), 0)

    def send(self, target, name, *data):
        event = Event()
        event.message = Message(type=CLIENT_MESSAGE, display=self.display, window=target, message_type=self.atom(name), format=32,
                                data=(ctypes.c_long * 5)(self.window, *data))
        self.x.XSendEvent(self.display, target, 0, 0, ctypes.byref(event))
        self.x.XFlush(self.display)

    def wait_for(self, name, content, seconds=PATIENCE_S):
        """The window's answer of that name; meanwhile it may ask for the dragged files."""
        deadline = time.monotonic() + seconds
        event = Event()
        while time.monotonic() < deadline:
            if not self.x.XPending(self.display):
                time.sleep(0.01)
                continue
            self.x.XNextEvent(self.display, ctypes.byref(event))
            if event.type == SELECTION_REQUEST:
                self.hand_over(event.request, content)
            elif event.type == CLIENT_MESSAGE and event.message.message_type == self.atom(name):
                return list(event.message.data)
        raise AssertionError(f"the window did not answer with {name}")

    def hand_over(self, request, content):
        self.x.XChangeProperty(self.display, request.requestor, request.property, request.target, 8, PROP_MODE_REPLACE, content,
                               len(content))
        event = Event()
        event.notify = Notify(type=SELECTION_NOTIFY, display=self.display, requestor=request.requestor, selection=request.selection,
                              target=request.target, property=request.property, time=request.time)
        self.x.XSendEvent(self.display, request.requestor, 0, 0, ctypes.byref(event))
        self.x.XFlush(self.display)

    def drop(self, target, x, y, *paths):
        """Returns when the window has taken them."""
        content = "".join(f"file://{urllib.parse.quote(str(pathlib.Path(path)))}\r\n" for path in paths).encode()
        self.x.XSetSelectionOwner(self.display, self.atom("XdndSelection"), self.window, 0)
        version = 5
        self.send(target, "XdndEnter", version << 24, self.atom("text/uri-list"), 0, 0)
        self.send(target, "XdndPosition", 0, x << 16 | y, 0, self.atom("XdndActionCopy"))
        accepts = self.wait_for("XdndStatus", content)[1] & 1
        assert accepts, "the window takes no drops"
        self.send(target, "XdndDrop", 0, 0, 0, 0)
        taken = self.wait_for("XdndFinished", content)[1]  # GLFW answers with how many bytes it took
        assert taken, "the window refused what was dropped"
