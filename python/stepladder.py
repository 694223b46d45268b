"""Stepladder's logging calls for Python: one file, standard library only, Python 3.8 and newer.

    import stepladder                      # or: import stepladder as wandb

    stepladder.init(project="gpt2", config={"lr": 3e-4})
    for step in range(1000):
        with stepladder.timed_step(tokens=batch * seq):
            loss = train_step()
        stepladder.log({"loss": loss, "lr": lr})
    stepladder.finish()

Each process appends to a journal of its own below $STEPLADDER_DIR, else ./stepladder/. `stepladder follow ./stepladder`
shows it live. The format is described in docs/journal.md of Stepladder's sources.

`log` copies the numbers and returns. A thread of the run formats them, appends them every 0.08 s and has the disk sync
them every second. Nothing here raises into a training: what goes wrong is said once on standard error. Only what asks
the program to stop (KeyboardInterrupt, SystemExit) passes through.
"""
import atexit
import collections
import collections.abc
import contextlib
import errno
import functools
import hashlib
import json
import operator
import os
import platform
import random
import re
import socket
import stat
import string
import sys
import threading
import time
import types
import uuid
import weakref
from zlib import crc32

__version__ = "1.0"

FORMAT = 1  # of the journal
APPEND_S = 0.08
SYNC_S = 1.0
ALIVE_S = 10.0  # a journal that has nothing to say says so this often
LINE_BYTES = 1 << 20  # the longest line
TEXT_CHARACTERS = 80000  # the longest text of a log call or a configuration, 12 bytes each at most
NAME_CHARACTERS = 1000
QUEUE_CALLS = 20000  # log calls that wait for the writer before `log` does
QUEUE_BYTES = 2 << 20  # of lines that those calls will be
MEMORY_BYTES = 64 << 20  # of lines that the disk doesn't have yet
MEMORY_CALLS = 200000  # of log calls that aren't lines yet
FINISH_S = 10.0  # how long `finish` waits for the disk
EXIT_S = 2.0  # how long `os._exit` waits for the writer

_PLAIN = frozenset((float, int, bool))
_BETTER = {"minimize": "lower", "maximize": "higher", "min": "lower", "max": "higher"}
_now = time.time


# ---- Saying ---------------------------------------------------------------------------------------------------------

_said = set()


def _say(text):
    try:
        sys.stderr.write("stepladder: " + text + "\n")
        sys.stderr.flush()
    except Exception:
        pass  # no standard error, as in a window program


def _say_once(text, key=None):
    key = key or text
    if key not in _said:
        _said.add(key)
        _say(text)


def _never_raises(function):
    """What goes wrong inside is said once and doesn't reach the training."""

    @functools.wraps(function)
    def guarded(*arguments, **named):
        try:
            return function(*arguments, **named)
        except Exception as error:
            return _say_error(function.__name__, error)

    return guarded


def _say_error(where, error):
    _say_once("%s: %s: %s" % (where, _kind_of(error), _text(error)), (where, _kind_of(error)))


# ---- Values ---------------------------------------------------------------------------------------------------------

_class_name = type.__dict__["__name__"].__get__  # a metaclass can't change what this returns


def _kind_of(value):
    return _class_name(type(value))[:100]


def _text(value, most=TEXT_CHARACTERS):
    """The value's text, of the class str itself; or None if its class raises."""
    try:
        return str.__str__(value if type(value) is str else str(value))[:most]
    except Exception:
        return None


def _name(value):
    """A name for what may not be a text, nor have one."""
    text = value if type(value) is str else _text(value)
    return "(%s)" % _kind_of(value) if text is None else text


class _NotAMapping(TypeError):
    pass


def _pairs(data):
    """The names and values of a mapping as a list. A value that can't be read is a `_Skipped`."""
    if isinstance(data, dict):
        try:
            return list((data.copy() if type(data) is dict else data).items())
        except Exception:
            return list(dict.copy(data).items())
    if not isinstance(data, collections.abc.Mapping) and not hasattr(data, "keys"):
        raise _NotAMapping(_kind_of(data) + " isn't a mapping")
    pairs = []
    for name in _names_of(data):
        try:
            pairs.append((name, data[name]))
        except Exception as error:
            pairs.append((name, _Skipped(_kind_of(error))))
    return pairs


def _names_of(data):
    try:
        return list(data.keys())
    except Exception:
        return list(data)


class _Pending:
    """A number that a device computes. The writer reads it once it is there."""

    __slots__ = ("tensor", "event")

    def __init__(self, tensor, event):
        self.tensor = tensor
        self.event = event

    def ready(self):
        try:
            if self.event is not None:
                return bool(self.event.query())
            return bool(getattr(self.tensor, "is_ready", lambda: True)())
        except BaseException:  # this is the writer's thread, and `value` raises too
            return True

    def value(self):
        return self.tensor.item()


class _Skipped:
    """A value that is counted and named, but not kept."""

    __slots__ = ("kind",)

    def __init__(self, kind):
        self.kind = kind


class _Row(dict):
    """A row with values that aren't plain numbers."""


def _from_tensor(torch, tensor):
    """A tensor of one element. One on a device is copied without waiting for it."""
    if tensor.numel() != 1 or tensor.is_complex():
        return _Skipped("tensor")
    tensor = tensor.detach()
    if tensor.device.type == "cpu":
        return _exact(tensor.item())
    if tensor.device.type != "cuda":
        return _Pending(tensor.clone(), None)
    if torch.cuda.is_current_stream_capturing():
        _say_once("a tensor that a CUDA graph computes can't be logged while the graph is captured")
        return _Skipped("captured tensor")
    copy = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    copy.copy_(tensor, non_blocking=True)
    event = torch.cuda.Event()
    event.record(torch.cuda.current_stream(tensor.device))
    return _Pending(copy, event)


def _snapshot(data, row=None, prefix="", above=()):
    """A row whose values no later change of the caller's objects can alter."""
    row = _Row() if row is None else row
    for name, value in _pairs(data):
        text = prefix + _name(name)
        try:
            if type(value) in _PLAIN:
                row[text] = value
                continue
            if isinstance(value, collections.abc.Mapping):
                if len(above) < 20 and id(value) not in above:
                    _snapshot(value, row, text + "/", above + (id(value),))
                    continue
            elif value is None:
                continue
            row[text] = _kept(value)
        except Exception:
            row[text] = _Skipped(_kind_of(value))
    return row


def _kept(value):
    """A number, a text, a `_Pending` or a `_Skipped`."""
    kind = type(value)
    torch = sys.modules.get("torch")
    if kind in _PLAIN or kind in (str, _Skipped, _Pending):
        return value
    if isinstance(value, _Media):
        return _Skipped(_kind_of(value))
    if torch is not None and isinstance(value, getattr(torch, "Tensor", ())):
        return _from_tensor(torch, value)
    if kind.__module__.partition(".")[0] in ("jaxlib", "jax"):  # never change, may be computed yet
        return _Pending(value, None) if getattr(value, "size", 0) == 1 else _Skipped("array")
    if isinstance(value, str):
        return _text(value) if _text(value) is not None else _Skipped(_kind_of(value))
    return _from_number(value)


def _from_number(value):
    """A number of another library (numpy, decimal), or something that isn't kept."""
    if isinstance(value, (float, int)):
        return _exact(value)
    if getattr(value, "size", 1) == 1 and not isinstance(value, (list, tuple, set, bytes)):
        number = value.item() if hasattr(value, "item") else float(value)
        if isinstance(number, (float, int)):
            return _exact(number)
    return _Skipped(_kind_of(value))


def _exact(number):
    """The number as a float or an int itself, whatever its class overrides."""
    return float.__pos__(number) if isinstance(number, float) else int.__pos__(number)


def _number(value):
    """As JSON. NaN and the infinities are strings, since JSON has no such numbers."""
    if type(value) is float:
        if value - value == 0:
            return repr(value)
        return '"NaN"' if value != value else '"Infinity"' if value > 0 else '"-Infinity"'
    if type(value) is int:
        return repr(value) if -(1 << 63) <= value < 1 << 63 else _number(_as_float(value))
    return _number(_as_float(value))


def _as_float(value):
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


_UNREADABLE = object()


def _plain(value, name, skip, hidden=False, above=()):
    """A configuration's value as JSON can hold it. Calls `skip(name, value)` for each part that can't be read."""
    try:
        return _plain_part(value, name, skip, hidden or _names_secret(name.rpartition("/")[2]), above)
    except Exception:
        skip(name, value)
        return _UNREADABLE


def _plain_part(value, name, skip, hidden, above):
    if value is None or type(value) in (bool, int):
        return value
    if type(value) is _Skipped:
        raise ValueError
    if isinstance(value, float):
        value = _exact(value)
        return value if value - value == 0 else "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, str):
        return _shown(value, hidden)
    if len(above) < 20 and id(value) not in above:
        above += (id(value),)
        fields = getattr(value, "__dataclass_fields__", None)
        if fields is not None and not isinstance(value, type):
            value = {field: getattr(value, field) for field in fields}
        if isinstance(value, (dict, collections.abc.Mapping)):
            pairs = ((_name(key), item) for key, item in _pairs(value))
            items = {key: _plain(item, name + "/" + key, skip, hidden, above) for key, item in pairs}
            return {key: item for key, item in items.items() if item is not _UNREADABLE}
        if isinstance(value, (list, tuple, set, frozenset)):
            items = [_plain(item, name, skip, hidden, above) for item in value]
            return [None if item is _UNREADABLE else item for item in items]
    if getattr(value, "size", 0) == 1 and hasattr(value, "item"):
        with contextlib.suppress(Exception):
            return _plain_part(value.item(), name, skip, hidden, above + (0,) * 20)
    return _shown(value, hidden)


def _shown(value, hidden):
    text = _text(value)
    if text is None:
        raise ValueError
    return _HIDDEN if hidden and text else _without_tokens(text)


def _settings_of(config):
    """A configuration as a mapping: a mapping, an argparse namespace, a dataclass, or a JSON file's name."""
    if config is None:
        return {}
    if isinstance(config, str):
        with open(config) as file:
            return dict(json.load(file))
    if isinstance(config, (dict, collections.abc.Mapping)):
        return config
    with contextlib.suppress(Exception):
        if hasattr(config, "to_dict"):
            return dict(config.to_dict())
    return dict(vars(config))


# ---- Secrets --------------------------------------------------------------------------------------------------------
# The same rules as app/text/secrets.cpp's. They hide too much rather than too little.

_HIDDEN = "***"
_SECRET_WORDS = ("secret", "secrets", "password", "passwords", "passwd", "passphrase", "pwd", "apikey", "apikeys",
                 "accesskey", "privatekey", "credential", "credentials", "authtoken", "accesstoken", "bearer")
_SECRET_ENDS = ("key", "auth", "pat", "pass", "cookie", "signature", "sig")
_BETWEEN_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])|[^A-Za-z0-9]+")
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_TOKEN = re.compile(r"(?<![\w.-])(?=[\w.-]{16})"
                    r"(sk-|hf_|gh[posur]_|github_pat_|glpat-|xox[abp]-|xapp-|npm_|pypi-|gsk_|nvapi-|AKIA|ASIA|AIza|wandb_"
                    r"|eyJhbGci|eyJ0eXAi|eyJraWQi)[\w.-]+", re.ASCII)
_USER = re.compile(r"(://)[^/?#\s'\"]+@")
_PAIR = re.compile(r"""(?<![A-Za-z0-9._-])([A-Za-z0-9._-]+)(\\?['"])?(=|[ \t]+=[ \t]*|[ \t]*:(?!//)[ \t]*)""")
_SCHEME = re.compile(r"(bearer|basic|token|digest|apikey)[ \t]+", re.IGNORECASE)
_VALUE_END = re.compile(r"[&,;\s]")


def _names_secret(name):
    """Whether it is a secret's name. "--wandbApi_key" has the words wandb, api and key."""
    if not _NAME.fullmatch(name):
        return False
    words = _BETWEEN_WORDS.sub(" ", name).lower().split()
    joined = words + [first + second for first, second in zip(words, words[1:])]
    return any(word.endswith(_SECRET_WORDS) for word in joined) or (
        bool(words) and (words[-1] in _SECRET_ENDS or words[-1].endswith(("token", "authorization"))))


def _without_tokens(text):
    """Without the tokens and the users of URLs in it."""
    return _TOKEN.sub(_HIDDEN, _USER.sub(r"\1***@", text))


def _without_pairs(text):
    """Without the values of names that are secret, as in "?api_key=X&n=3" and '{"token": "X"}'."""
    kept, at = [], 0
    while True:
        pair = _PAIR.search(text, at)
        if pair is None:
            return "".join(kept) + text[at:]
        begin = end = pair.end()
        if _names_secret(pair.group(1)):
            end = _value_end(text, begin, text[pair.start() - 1:pair.start()], pair.group(2))
        kept.append(text[at:begin] + (_HIDDEN if end > begin else ""))
        at = end


def _value_end(text, begin, before, after):
    """Where a value ends: at its own quote, at the one that holds the name too, or at the next separator."""
    quote = text[begin:begin + 1]
    if quote in ("'", '"'):
        end = text.find(quote, begin + 1)
        return len(text) if end < 0 else end + 1
    if before in ("'", '"') and not after:
        end = text.find(before, begin)
        return len(text) if end < 0 else end
    scheme = _SCHEME.match(text, begin)
    end = _VALUE_END.search(text, scheme.end() if scheme else begin)
    return end.start() if end else len(text)


def _secret_follows(word):
    """Whether the next word is a secret: after "--token", "Authorization:" and "Bearer"."""
    if word.lower() == "bearer" or (word.endswith(":") and _names_secret(word[:-1])):
        return True
    return word.startswith("-") and "=" not in word and _names_secret(word)


def _without_secret(argument):
    """An argument, which may be a whole command for a shell, without the secrets in it."""
    for sign in "=:":
        name, found, value = argument.partition(sign)
        if found and value and not value.startswith("//") and _names_secret(name):
            return name + sign + " " * value.startswith(" ") + _HIDDEN
    text = _without_pairs(argument)
    kept, follows, at = [], False, 0
    for word in re.finditer(r"\S+", text):
        if word.start() < at:
            continue
        begin, end = word.span()
        kept.append(text[at:begin])
        if follows and not word.group().startswith("-"):
            if text[begin] in "'\"":
                end = max(text.find(text[begin], begin + 1) + 1, end)
            kept.append(_HIDDEN)
        else:
            kept.append(_without_tokens(word.group()))
        follows, at = _secret_follows(word.group()), end
    return "".join(kept) + text[at:]


def _without_secrets(arguments):
    """The arguments of a command line as they may be stored."""
    kept, follows = [], False
    for argument in arguments:
        argument = _text(argument) or ""
        kept.append(_HIDDEN if follows and not argument.startswith("-") else _without_secret(argument))
        follows = _secret_follows(argument)
    return kept


# ---- Where this process is ------------------------------------------------------------------------------------------


def _regular(path, flags):
    """An opener for `open` that waits for no pipe or device."""
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.ENOENT, "not a regular file", path)
    return descriptor


def _read(path, limit=1 << 16):
    try:
        with open(path, errors="replace", opener=_regular) as file:
            return file.read(limit).strip()
    except OSError:
        return ""


def _process_start(pid):
    """Clock ticks from the machine's start to the process's, which tells two processes of one number apart; or 0."""
    fields = _read("/proc/%d/stat" % pid).rpartition(")")[2].split()
    return int(fields[19]) if len(fields) > 19 else 0


def _integer(*names):
    for name in names:
        text = os.environ.get(name, "")
        if text.isdigit():
            return int(text)
    return None


_Place = collections.namedtuple("_Place", "rank local_rank world")


def _place():
    """This process's rank, its rank on its machine, and how many there are."""
    rank, world, local = _integer("RANK"), _integer("WORLD_SIZE"), _integer("LOCAL_RANK")
    if rank is None or world is None:
        if _slurm_step():
            rank, world, local = _integer("SLURM_PROCID"), _integer("SLURM_NTASKS"), _integer("SLURM_LOCALID")
        elif _integer("OMPI_COMM_WORLD_RANK") is not None:
            rank, world = _integer("OMPI_COMM_WORLD_RANK"), _integer("OMPI_COMM_WORLD_SIZE")
            local = _integer("OMPI_COMM_WORLD_LOCAL_RANK")
    return _Place(rank or 0, local or 0, max(world or 1, (rank or 0) + 1))


def _slurm_step():
    """The step of srun that started this process. A batch script is no such step: it may train twice."""
    step = _integer("SLURM_STEP_ID", "SLURM_STEPID")
    return step is not None and step < 0xFFFF0000 and _integer("SLURM_PROCID") is not None


def _launch():
    """What the processes of one launch have in common, and whether the next launch differs in it; or None."""
    elastic = os.environ.get("TORCHELASTIC_RUN_ID", "none")
    if elastic not in ("", "none"):
        return ("torchrun", elastic), True
    if _slurm_step():
        return ("slurm", os.environ.get("SLURM_JOB_ID"), _integer("SLURM_STEP_ID", "SLURM_STEPID")), True
    one_machine = _integer("LOCAL_WORLD_SIZE") in (None, _integer("WORLD_SIZE"))
    if not one_machine:
        return ("master", os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT"), _integer("WORLD_SIZE")), False
    parent = os.getppid()
    boot = _read("/proc/sys/kernel/random/boot_id")
    return ("parent", socket.gethostname(), boot, parent, _process_start(parent)), "TORCHELASTIC_RUN_ID" in os.environ


def _script():
    main = sys.modules.get("__main__")
    path = getattr(main, "__file__", None)
    if path:
        name = os.path.splitext(os.path.basename(path))[0]
        if name == "__main__":
            name = os.path.basename(os.path.dirname(os.path.abspath(path)))
        return re.sub(r"[^\w.-]", "-", name)[:60] or "python"
    return "notebook" if _in_notebook() else "python"


def _in_notebook():
    ipython = sys.modules.get("IPython")
    try:
        return ipython is not None and ipython.get_ipython() is not None
    except Exception:
        return False


def _git_commit(folder):
    """The commit that is checked out in the folder or above it, from git's files; or an empty string."""
    while True:
        git = os.path.join(folder, ".git")
        if os.path.isfile(git):
            git = os.path.join(folder, _read(git).replace("gitdir:", "").strip())
        if os.path.isdir(git):
            break
        folder, last = os.path.dirname(folder), folder
        if folder == last:
            return ""
    head = _read(os.path.join(git, "HEAD"))
    if not head.startswith("ref:"):
        return head[:64]
    name = head[4:].strip()
    common = os.path.join(git, _read(os.path.join(git, "commondir")) or ".")
    loose = _read(os.path.join(common, name)) or _read(os.path.join(git, name))
    if loose:
        return loose[:64]
    packed = _read(os.path.join(common, "packed-refs"), 1 << 22)
    packed = re.search(r"^([0-9a-f]{40,64}) %s$" % re.escape(name), packed, re.M)
    return packed.group(1) if packed else ""


def _facts():
    """The process, its machine and its program."""
    program = getattr(sys.modules.get("__main__"), "__file__", None)
    program = os.path.dirname(os.path.abspath(program)) if program else os.getcwd()
    return dict(host=socket.gethostname(), pid=os.getpid(), pid_start=_process_start(os.getpid()),
                boot=_read("/proc/sys/kernel/random/boot_id"), argv=_clipped(_without_secrets(sys.argv)),
                cwd=os.getcwd(), python=platform.python_version(), torch=_torch_version(), os=platform.platform(),
                cpus=os.cpu_count(), git=_git_commit(os.getcwd()) or _git_commit(program), client=__version__)


def _clipped(texts, characters=40000):
    """As many of the texts as fit into the journal's first line."""
    kept = []
    for text in texts:
        if len(text) + 2 > characters:
            return kept + ["..."]
        characters -= len(text) + 2
        kept.append(text)
    return kept


def _torch_version():
    torch = sys.modules.get("torch")
    if torch is not None:
        return str(getattr(torch, "__version__", ""))
    try:
        from importlib import metadata
        return metadata.version("torch")
    except Exception:
        return ""


def _gpu():
    """The GPU of this process, once the training has started to use one. Never starts to use one itself."""
    torch = sys.modules.get("torch")
    try:
        if torch is not None and torch.cuda.is_initialized():
            return {"device": "cuda", "gpu": torch.cuda.get_device_name(), "gpus": torch.cuda.device_count(),
                    "torch": str(torch.__version__), "cuda": str(torch.version.cuda or torch.version.hip or "")}
    except Exception:
        pass
    return None


# ---- The file -------------------------------------------------------------------------------------------------------


def _encoded(text):
    line = text.encode("utf-8", "replace")
    return b"%s\t%08x\n" % (line, crc32(line))


def _event(kind, **fields):
    return dict(e=kind, **fields)


def _dumped(event):
    return json.dumps(event, separators=(",", ":"), allow_nan=False)


class _File:
    """A journal's bytes. Keeps those that the disk may lack, and writes them again at the same place after an error.

    A script may close the descriptor, as daemons do, and its number may be another file's then. So the number is a high
    one, and each use is directly preceded by a look at what the descriptor is. Only another thread that closes it and
    opens hundreds of files just in between could mislead it. `add` and `write` belong to one thread; any may call `sync`.
    """

    def __init__(self, path, descriptor):
        self.path = path
        self.descriptor = descriptor
        self.identity = _identity(os.fstat(descriptor))
        self.first = b""  # the first line
        self.lock = threading.Lock()
        self.bytes = bytearray()  # from `synced` on
        self.synced = 0
        self.written = 0
        self.failed = False
        self.is_gone = False  # deleted or replaced, so nothing is kept any more
        self.lost = 0  # lines that waited then
        self.writes = 0
        self.writing = 0  # the number of the write that goes on

    def add(self, line):
        with self.lock:
            self.first = self.first or line
            if not self.is_gone:
                self.bytes += line

    def end(self):
        return self.synced + len(self.bytes)

    def waiting(self):
        """How many bytes aren't written."""
        return self.end() - self.written

    def is_full(self):
        return len(self.bytes) > MEMORY_BYTES

    def write(self):
        while True:
            with self.lock:
                at = self.written
                piece = bytes(self.bytes[at - self.synced:at - self.synced + (1 << 20)])
            if not piece:
                return
            self.writes = self.writing = self.writes + 1
            try:
                if (self._state() or self._reopened()).st_nlink == 0:
                    raise OSError(errno.ENOENT, "it was deleted")
                count = _write_at(self.descriptor, piece, at)
                if self._state() is None:  # closed just now, so where it was written isn't known
                    continue
            except OSError as error:
                if error.errno in _GONE:
                    return self._give_up(error)
                return error.errno == errno.EBADF or self._refused(error)  # closed just now: the next write opens it
            finally:
                self.writing = 0
            with self.lock:
                if self.written == at:  # else a sync failed meanwhile, and all is written again
                    self.written = at + count
            if count == len(piece) and self.failed and not self.waiting():
                self.failed = False
                _say("%s: all is stored again" % self.path)

    def sync(self):
        with self.lock:
            end = self.written
        try:
            if end == self.synced or self._state() is None:
                return
            os.fsync(self.descriptor)
        except OSError as error:
            if error.errno == errno.EBADF:
                return
            if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS):  # a file system that can't
                with self.lock:
                    self.written = self.synced
                self._refused(error)
                return
        with self.lock:
            if end > self.synced:
                del self.bytes[:end - self.synced]
                self.synced = end

    def close(self):
        with contextlib.suppress(OSError):
            if self._state() is not None:
                os.close(self.descriptor)

    def check(self):
        """Reports a journal that was deleted or moved, also where no line waits to be written."""
        with contextlib.suppress(OSError):
            state = self._state()
            if self.is_gone or state is None or os.path.lexists(self.path):
                return
            if state.st_nlink == 0:
                return self._give_up(OSError(errno.ENOENT, "it was deleted"))
            _say_once("%s isn't there any more; if it was moved, its lines are still added to it" % self.path)

    def _state(self):
        """What fstat says about the journal; None if its descriptor was closed or is another file's by now."""
        try:
            state = os.fstat(self.descriptor)
            if _identity(state) != self.identity:
                return None
            # A deleted file's number may be a new file's, so the first line is compared once the disk has it.
            if 0 < len(self.first) <= self.synced and _read_at(self.descriptor, len(self.first)) != self.first:
                return None
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
            return None
        return state

    def _reopened(self):
        """The journal's state, once it was opened again by its path."""
        flags = os.O_RDWR | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
        descriptor = _out_of_reach(_regular(self.path, flags))
        state = os.fstat(descriptor)
        if _identity(state) != _identity(os.lstat(self.path)):  # it was closed again meanwhile
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        first = self.first if self.written else b""
        if (_identity(state) != self.identity or state.st_size < self.written
                or _read_at(descriptor, len(first)) != first):
            os.close(descriptor)
            raise OSError(errno.ENOENT, "another file has its name")
        self.descriptor = descriptor
        _say_once("%s: its descriptor was closed by the script, so it was opened again" % self.path)
        return state

    def _give_up(self, error):
        with self.lock:
            self.is_gone = True
            self.lost = self.bytes.count(b"\n", self.written - self.synced)
            self.bytes.clear()
            self.synced = self.written
        _say("%s: %s; the training goes on without a journal" % (self.path, error.strerror))

    def _refused(self, error):
        if not self.failed:
            self.failed = True
            _say("%s: %s; up to %d MiB wait in memory and are tried again" %
                 (self.path, os.strerror(error.errno) if error.errno else error, MEMORY_BYTES >> 20))


# Why a journal can't be written again, ever.
_GONE = frozenset((errno.ENOENT, errno.ENOTDIR, errno.ELOOP, getattr(errno, "ESTALE", -1)))


def _identity(state):
    return state.st_dev, state.st_ino


def _write_at(descriptor, data, at):
    if hasattr(os, "pwrite"):
        return os.pwrite(descriptor, data, at)
    os.lseek(descriptor, at, os.SEEK_SET)
    return os.write(descriptor, data)


def _read_at(descriptor, count):
    """The file's first bytes."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, count, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return os.read(descriptor, count)


def _out_of_reach(descriptor):
    """The same file under a high number, which no new file gets soon if the script closes it, nor the standard streams
    of a program that started without them."""
    try:
        import fcntl
        import resource
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        most = 1024 if most < 0 else min(most, 1024)
        high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, max(most - 100, 3))
    except (ImportError, AttributeError, OSError):
        return descriptor
    os.close(descriptor)
    return high


def _make_folder(path):
    """Makes the folder and those above it, for this user only; those that are there stay as they are."""
    if not os.path.isdir(path):
        if os.path.dirname(path) != path:
            _make_folder(os.path.dirname(path))
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)


def _claimed_uid(folder):
    """The run's 32 hexadecimal digits, the same for all its processes and attempts: the first of them draws it."""
    path = os.path.join(folder, "uid")
    uid = uuid.uuid4().hex
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        for _ in range(100):
            there = _read(path)
            if re.fullmatch("[0-9a-f]{32}", there):
                return there
            time.sleep(0.02)
        descriptor = _regular(path, os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0))
    try:
        if os.fstat(descriptor).st_size >= len(uid):  # else its writer was killed before it wrote
            raise OSError(errno.EINVAL, "doesn't hold a run's uid", path)
        os.write(descriptor, (uid + "\n").encode())
    finally:
        os.close(descriptor)
    return uid


def _open_journal(folder, rank):
    """A new file of this rank, and its attempt: 1, or one more than the newest there is."""
    _make_folder(folder)
    attempt = 1
    while True:
        path = os.path.join(folder, "rank-%d.%d.jsonl" % (rank, attempt))
        try:
            flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0)
            return path, _out_of_reach(os.open(path, flags, 0o600)), attempt
        except FileExistsError:
            attempt += 1


def _last_step(path):
    """The last step in an earlier attempt's file, or -1."""
    try:
        with open(path, "rb", opener=_regular) as file:
            file.seek(max(0, os.path.getsize(path) - (1 << 18)))
            tail = file.read()
    except OSError:
        return -1
    last = -1
    for line in tail.split(b"\n"):
        if line[-9:-8] == b"\t" and line[-8:] == b"%08x" % crc32(line[:-9]):
            with contextlib.suppress(Exception):  # a file that isn't ours
                last = max(last, _step_number(json.loads(line[:-9].decode()).get("s", -1), -1))
    return last


# ---- A run ----------------------------------------------------------------------------------------------------------


class _Mark:
    """A timed step, from its begin on."""

    __slots__ = ("step", "tokens", "sync", "begin", "end", "at", "begun", "ended", "is_lost")

    def ready(self):
        return self.sync != "event" or self.end.query()

    def milliseconds(self):
        return self.begin.elapsed_time(self.end) if self.sync == "event" else (self.end - self.begin) * 1000.0


class _Nowhere:
    """Takes the place of the queue where nothing is kept: in a disabled run, after `finish`, in a forked process."""

    def __init__(self, why=""):
        self.why = why

    def append(self, _):
        if self.why:
            _say_once(self.why)

    def __len__(self):
        return 0


def _logger(make_room, now=_now):
    """What `log` does, and what sets its queue and the calls that this has room for.

    Between two steps of a training the caches forget all of this, so a call touches little: closures' cells instead of
    the attributes of a large object, and floats before other kinds of numbers.
    """
    queue, room = _Nowhere(), 0

    def log(data, step=None, commit=None, sync=None):
        """As `Run.log`."""
        try:
            if type(data) is dict:
                row = data.copy()  # first, since another thread may change `data`
                try:
                    for value in row.values():
                        if type(value) is not float and type(value) not in _PLAIN:
                            row = _snapshot(row)
                            break
                except Exception:  # a class that can't be looked up
                    row = _snapshot(row)
            else:
                row = _snapshot(data)
            if step is not None and type(step) is not int:
                step = _step_number(step, None)
            queue.append((now(), step, commit, row))
            if len(queue) > room:
                make_room()
        except _NotAMapping:
            _say_once("log takes a dict of names and numbers, so other calls of it do nothing")
        except Exception as error:
            _say_error("log", error)

    def aim(at, has_room):
        nonlocal queue, room
        queue, room = at, has_room

    return log, aim


class Run:
    """One training. Made by `init`; any thread may call it."""

    def __init__(self, folder, run_id, name, project, settings, disabled):
        self.id = run_id
        self.name = name
        self.project = project
        self.entity = None
        self.url = None
        self.dir = os.path.join(folder, run_id) if folder else ""
        self.disabled = disabled
        self.offline = True
        self.resumed = False
        self.start_time = _now()
        self.uid = ""
        self.path = ""  # the journal
        self.config = Config(self)
        self.summary = Summary(self)
        self._log, self._aim_log = _logger(self._make_room)
        self._use(_Nowhere(), min(QUEUE_CALLS, MEMORY_CALLS))
        self._rows = collections.deque()  # what has its step, in order
        self._marks = []
        self._step = 0
        self._last_mark = None
        self._last = {}
        self._skipped = {}
        self._skipped_changed = False
        self._lost = 0
        self._lost_said = 0
        self._names = {}
        self._gpu_known = False
        self._closed = self.disabled
        self._ended = threading.Event()
        self._wake = threading.Event()
        self._lock = threading.RLock()  # a signal's handler or a value's class may call this run meanwhile
        self._file = None
        self._threads = []
        self._progress = time.monotonic()
        self._rounds = 0  # of the writer
        self._is_held = False  # the writer waits for a device, or for a disk that refuses
        self._slow_write = 0  # the number of a write that took longer than a wait for it
        self.notes = self._read_text(settings.get("notes"), "notes")
        self.group, self.job_type = (self._read_text(settings.get(name), name, NAME_CHARACTERS)
                                     for name in ("group", "job_type"))
        self.tags = tuple(self._read_texts(settings.get("tags"), "tags"))

    # -- What callers do

    def log(self, data, step=None, commit=None, sync=None):
        """Keeps the numbers of a dict. As in wandb: without `step` each call is a step, unless `commit` is False."""
        self._log(data, step, commit)

    def _use(self, queue, room):
        """Where calls go from now on, and how many may wait there for the writer."""
        self._queue, self._room = queue, room
        self._aim_log(queue, room)

    def _put(self, entry):
        queue = self._queue
        queue.append(entry)
        if len(queue) > self._room:
            self._make_room()

    def _make_room(self):
        """A loop that logs faster than the writer formats waits for it, so that a kill loses few calls.

        Nothing waits for a disk or a device: meanwhile memory has up to MEMORY_CALLS, and then the newest is lost.
        """
        queue = self._queue
        while len(queue) + len(self._rows) > self._room and queue is self._queue:
            writing = self._file.writing
            if self._is_held or (writing and writing == self._slow_write) or time.monotonic() - self._progress > 0.5:
                if len(queue) + len(self._rows) > MEMORY_CALLS:
                    with self._lock, contextlib.suppress(IndexError):
                        self._drop(queue)
                return
            self._wake.set()
            time.sleep(0.001)
            self._slow_write = writing if writing == self._file.writing else 0

    def _drop(self, queue):
        """Leaves out the newest call, but counts its step."""
        entry = queue.pop()
        self._lost += 1
        if type(entry) is _Mark:
            entry.is_lost = True
        if type(entry) is tuple and entry[1] is None and entry[2] is not False:
            if type(queue[-1]) is int:
                queue[-1] += 1
            else:
                queue.append(1)

    @_never_raises
    def define_metric(self, name, step_metric=None, step_sync=None, hidden=None, summary=None, goal=None,
                      overwrite=None, unit=None, direction=None, group=None, **_):
        """What a metric means. `direction` is "lower" or "higher": which of two values is better."""
        fields = dict(name=name, unit=unit, better=direction, group=group, step=step_metric, goal=goal, summary=summary)
        fields = {key: self._read_text(value, "define_metric(%s)" % key, NAME_CHARACTERS)
                  for key, value in fields.items()}
        goal, summary = _BETTER.get(fields.pop("goal")), _BETTER.get(fields.pop("summary"))
        fields["better"] = fields["better"] or goal or summary
        if fields["name"]:
            self._send("metric", **{key: value for key, value in fields.items() if value})
        return self

    @_never_raises
    def alert(self, title="", text="", level=None, wait_duration=None):
        self._send("alert", t=round(_now(), 3), title=self._read_text(title, "alert(title)", NAME_CHARACTERS) or "",
                   text=self._read_text(text, "alert(text)") or "",
                   level=self._read_text(level, "alert(level)", 100) or "INFO")

    @_never_raises
    def finish(self, exit_code=None, quiet=None):
        """Ends the run and waits until the disk has all of it, 10 s at most."""
        code = _exit_code(exit_code)
        self._end("failed" if code else "finished", code, "exit code %s" % _text(exit_code, 200) if code else "")

    def timed_step(self, step=None, tokens=None, sync=None):
        """A block whose time is the step's. On a GPU two events take it, so nothing waits; `sync="device"` waits."""
        return _TimedStep(self, step, tokens, sync)

    @property
    def step(self):
        """The step that the next `log` call without one gets."""
        with self._lock:
            self._take()
            step = self._step
        if len(self._rows) > self._room:
            self._make_room()
        return step

    @property
    def settings(self):
        return Settings()

    def get_url(self):
        return None

    def log_artifact(self, *_, **__):
        self._send_skipped("Artifact", "artifact")
        return _Nothing("log_artifact")

    log_code = log_model = log_artifact

    def mark_preempting(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        if kind is None or (kind is SystemExit and not _exit_code(error.code)):
            self.finish()
        else:
            self._end(*_failed(kind, error))
        return False

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return _Nothing("run." + name)

    def __repr__(self):
        return "<stepladder run %s>" % self.id

    # -- Events

    def _send(self, kind, **fields):
        self._put(_event(kind, **fields))

    def _send_settings(self, kind, pairs):
        for name, value in pairs:  # a line each, so that no line is too long
            name = _name(name)[:NAME_CHARACTERS]
            value = _plain(value, name, self._skip)
            if value is _UNREADABLE:
                continue
            if len(_dumped(value)) > LINE_BYTES // 2:
                value = "(too long to keep)"
            self._send(kind, v={name: value})

    def _skip(self, name, value):
        self._send_skipped(value.kind if type(value) is _Skipped else _kind_of(value), name)

    def _send_skipped(self, kind, name):
        with self._lock:
            kinds = self._skipped
            names = kinds.setdefault(kind if kind in kinds or len(kinds) < 50 else "...", {})
            name = name[:100]
            has_room = len(names) < 100 and sum(map(len, kinds.values())) < 500  # so that it is one line
            name = name if name in names or has_room else "..."
            names[name] = names.get(name, 0) + 1
            self._skipped_changed = True

    def _read_text(self, value, what, most=10000):
        """A text that a call was given, or None. One that can't be read is counted."""
        text = None if value is None else _text(value, most)
        if text is None and value is not None:
            self._skip(what, value)
        return text

    def _read_texts(self, values, what):
        try:
            values = [values] if isinstance(values, str) else list(values if values is not None else ())[:100]
        except Exception:
            values = self._skip(what, values) or ()
        texts = (self._read_text(value, what, 200) for value in values)
        return [text for text in texts if text is not None]

    def _log_at(self, values, step, at=None):
        try:
            at = float(at)
            at = at if abs(at) < 1e12 else None
        except Exception:
            at = None
        self._put((_now() if at is None else at, step, None, values))

    # -- The writer

    def _open(self, place):
        self.path, descriptor, self.attempt = _open_journal(self.dir, place.rank)
        self.uid = _claimed_uid(self.dir)
        self._file = _File(self.path, descriptor)
        if self.attempt > 1:
            self.resumed = True
            self._step = _last_step(os.path.join(self.dir, "rank-%d.%d.jsonl" % (place.rank, self.attempt - 1))) + 1
        self._use(collections.deque(), self._room)
        known = dict(_facts(), group=self.group, job_type=self.job_type, tags=self.tags, notes=self.notes)
        self._send("run", v=FORMAT, uid=self.uid, id=self.id, name=self.name, project=self.project,
                   attempt=self.attempt, rank=place.rank, local_rank=place.local_rank, world=place.world,
                   t=round(self.start_time, 3), **{key: value for key, value in known.items() if value})
        self._append_rows()
        self._file.write()
        for work in (self._write_loop, self._sync_loop):
            thread = threading.Thread(target=work, name="stepladder", daemon=True)
            thread.start()
            self._threads.append(thread)

    def _take(self, most=MEMORY_CALLS):
        """Gives each queued call its step. Under the lock; any thread."""
        queue = self._queue
        for _ in range(min(len(queue), most) if len(self._rows) < MEMORY_CALLS else 0):
            entry = queue.popleft()
            if type(entry) is tuple:
                at, step, commit, row = entry
                if step is None:
                    step = self._step
                    self._step = step + (commit is not False)
                else:
                    self._step = max(self._step, step + (commit is True or _is_true(commit)))
                if self._marks:
                    self._settle_marks(step)
                for name in row:
                    if type(name) is not str:
                        row = _snapshot(row)
                        break
                self._rows.append((step, at, row))
                self._last.update(row)
            elif type(entry) is _Mark:
                if entry.is_lost:
                    continue
                if not entry.begun:
                    entry.begun = True
                    self._settle_marks(None)
                    self._marks.append(entry)
                else:
                    entry.ended = True
                    self._settle_marks(None, only_known=True)
            elif type(entry) is int:
                self._step += entry
            else:
                self._rows.append(entry)

    def _settle_marks(self, step, only_known=False):
        """A timed step belongs to the first `log` call after its begin, else to the step after the last timed one."""
        for mark in self._marks[:]:
            if mark.is_lost:
                self._marks.remove(mark)
                continue
            if mark.step is None and (step is not None or mark.ended) and not only_known:
                following = self._step if self._last_mark is None else self._last_mark + 1
                mark.step = following if step is None else step if self._last_mark is None else max(step, following)
            if mark.step is not None:
                self._last_mark = mark.step
                if mark.ended:
                    self._marks.remove(mark)
                    self._rows.append(mark)

    def _append_rows(self):
        """Formats what is ready. The writer's thread."""
        while not self._is_held_up():
            with self._lock:
                batch = max(1, min(1000, self._room // 20))
                self._take(batch)
                batch = [self._rows.popleft() for _ in range(min(len(self._rows), batch))]
            if not batch:
                return
            end = self._file.end()
            for i, row in enumerate(batch):
                try:
                    if not self._is_ready(row):
                        self._is_held = True
                        with self._lock:
                            self._rows.extendleft(reversed(batch[i:]))
                            self._take()
                        return
                    self._append_row(row)
                except BaseException as error:  # this thread must go on
                    self._lost += 1
                    _say_error("a value is lost", error)
            each = (self._file.end() - end) // len(batch) + 1
            if not self._closed:
                self._use(self._queue, min(QUEUE_CALLS, MEMORY_CALLS, max(20, QUEUE_BYTES // each)))
            self._progress = time.monotonic()
            self._file.write()

    def _is_held_up(self):
        """Whether nothing can be formatted now. Calls for a journal that is gone are counted as lost."""
        if self._file.is_gone:
            with self._lock:
                self._take()
                self._lost += len(self._rows) + self._file.lost
                self._file.lost = 0
                self._rows.clear()
        self._is_held = self._file.is_full()
        return self._is_held or self._file.is_gone

    @staticmethod
    def _is_ready(row):
        if type(row) is _Mark:
            return row.ready()
        if type(row) is tuple and type(row[2]) is _Row:
            return all(value.ready() for value in row[2].values() if type(value) is _Pending)
        return True

    def _append_row(self, row):
        if type(row) is tuple:
            self._append_values(*row)
        elif type(row) is _Mark:
            event = _event("step", s=row.step, t=round(row.at, 6), ms=round(row.milliseconds(), 6), y=row.sync)
            if row.tokens:
                event["n"] = row.tokens
            self._file.add(_encoded(_dumped(event)))
        else:
            self._file.add(_encoded(_dumped(row)))

    def _append_values(self, step, at, row):
        if type(row) is _Row:
            row = self._numbers_of(step, at, row)
        names = self._names
        pairs = []
        for name, value in row.items():
            key = names.get(name)
            if key is None:
                key = json.dumps(name[:NAME_CHARACTERS]) + ":"
                if len(names) < 100000:
                    names[name] = key
            pairs.append(key + _number(value))
        start = '{"e":"log","s":%d,"t":%.6f,"v":{' % (step, at)
        most = 500 if sum(map(len, pairs)) < LINE_BYTES // 2 else 50  # a row of very many names takes several lines
        for i in range(0, len(pairs), most):
            self._file.add(_encoded(start + ",".join(pairs[i:i + most]) + "}}"))

    def _numbers_of(self, step, at, row):
        numbers = {}
        for name, value in row.items():
            if type(value) is _Pending:
                try:
                    value = _kept(value.value())
                except BaseException as error:  # this thread must go on
                    _say_error("a value of a device is lost", error)
                    value = _Skipped(_kind_of(value.tensor))
            if type(value) is _Skipped:
                self._send_skipped(value.kind, name)
            elif type(value) is str:
                text = _event("text", s=step, t=round(at, 3), name=name[:NAME_CHARACTERS],
                              text=value[:TEXT_CHARACTERS])
                self._file.add(_encoded(_dumped(text)))
            else:
                numbers[name] = value
        return numbers

    def _append_counts(self):
        with self._lock:
            skipped = json.dumps(self._skipped) if self._skipped_changed else None
            self._skipped_changed = False
        if skipped:
            self._file.add(_encoded('{"e":"skipped","v":%s}' % skipped.replace(": ", ":")))
        if self._lost != self._lost_said:
            self._lost_said = self._lost
            self._file.add(_encoded('{"e":"lost","n":%d}' % self._lost))
            _say_once("log calls were lost, since the journal could not be written", self.path + " lost")
        if not self._gpu_known:
            gpu = _gpu()
            if gpu:
                self._gpu_known = True
                self._file.add(_encoded(_dumped(_event("env", v=gpu))))

    def _write_loop(self):
        last_counts = last_line = time.monotonic()
        has_end = False
        while True:
            closing = self._closed
            try:
                end = self._file.end()
                self._append_rows()
                now = time.monotonic()
                if now - last_counts > 1:
                    last_counts = now
                    self._file.check()
                    self._append_counts()
                if closing and not has_end:
                    has_end = self._append_end()
                if self._file.end() != end:
                    last_line = now
                elif now - last_line > ALIVE_S:
                    last_line = now
                    self._file.add(_encoded('{"e":"alive","t":%.3f}' % _now()))
                self._file.write()
                if self._file.is_full() and not self._file.waiting():
                    self._file.sync()
                self._progress = time.monotonic()
            except BaseException as error:  # of a value's class; this thread must go on
                self._lost += 1
                _say_error("the journal's writer", error)
            self._rounds += 1
            if has_end and not self._file.waiting():
                return self._ended.set()
            self._wake.wait(0.01 if closing else APPEND_S)
            self._wake.clear()

    def _append_end(self):
        """The last line, once everything else has its line."""
        with self._lock:
            self._settle_marks(None)
            if self._queue or self._rows:
                return False
        self._append_counts()
        self._file.add(_encoded(_dumped(self._end_event)))
        return True

    def _sync_loop(self):
        while True:
            with contextlib.suppress(Exception):
                self._file.sync()
            if self._ended.wait(SYNC_S):
                return

    def _write_what_waits(self):
        """Has the writer append what was logged before this call, within EXIT_S. Waits for no device."""
        end, deadline = self._rounds + 2, time.monotonic() + EXIT_S
        while self._rounds < end and not self._ended.is_set() and time.monotonic() < deadline:
            self._wake.set()
            time.sleep(0.0005)

    def _end(self, status, code, reason):
        global run, log
        if run is self:
            run, log = None, _log
        if self._closed:
            return
        self._end_event = _event("end", t=round(_now(), 3), status=status, code=code)
        if reason:
            self._end_event["reason"] = reason[:2000]
        self._closed = True
        self._wake.set()
        if self._ended.wait(FINISH_S):
            self._threads[1].join(FINISH_S)
            self._file.sync()
            self._file.close()
        else:
            _say("%s: %d bytes could not be stored" % (self.path, self._file.waiting()))
        self._use(_Nowhere("this run has finished, so its values are no longer kept"), self._room)
        if self._lost:
            _say("%s: %d log calls were lost" % (self.path, self._lost))
        if self._skipped and not _silent():
            parts = ("%d %s (%s)" % (sum(names.values()), kind, ", ".join(sorted(names)[:3]))
                     for kind, names in sorted(self._skipped.items()))
            _say("counted, but not kept: " + "; ".join(parts))

    def _forget_after_fork(self):
        if self._closed:
            return
        self._closed = True
        self._lock = threading.RLock()
        self._use(_Nowhere("this process was forked from the one that called init(), so its values aren't kept; "
                           "call init() in it to keep them"), self._room)
        # The descriptor stays open: to see whether it still is the journal could wait for a disk.


def _failed(kind, error):
    """The status, exit code and reason of a program that ends with this exception."""
    if issubclass(kind, KeyboardInterrupt):
        return "stopped", 130, "KeyboardInterrupt"
    return "failed", 1, "%s: %s" % (_class_name(kind), _without_tokens(_without_pairs(_text(error, 2000) or "")))


def _exit_code(value):
    """What a shell gets: 0 for None, 1 for what isn't a number."""
    try:
        code = 0 if value is None else operator.index(value)
        return code if abs(code) < 1 << 31 else 1
    except Exception:
        return 1


def _is_true(value):
    try:
        return bool(value)
    except Exception:
        return False


def _step_number(step, default):
    try:
        number = int.__pos__(int(step))
        if abs(number) < 1 << 62:
            return number
    except Exception:
        pass
    _say_once("a step must be a whole number, not %s" % (_text(step, 100) or _kind_of(step)), "step " + _kind_of(step))
    return default


class _Settings(dict):
    """A dict whose items are attributes too."""

    def __init__(self, run):
        super().__init__()
        object.__setattr__(self, "_run", run)

    def __getattr__(self, name):
        if name in self:
            return self[name]
        raise AttributeError(name)

    def __setattr__(self, name, value):
        self[name] = value

    def __setitem__(self, name, value):
        self._set([(name, value)])

    def __ior__(self, values):
        self.update(values)
        return self

    def setdefault(self, name, default=None):
        with contextlib.suppress(Exception):
            if name in self:
                return self[name]
        self[name] = default
        return default

    @_never_raises
    def update(self, values=None, allow_val_change=None, **named):
        try:
            self._set(_pairs(_settings_of(values)))
        except Exception as error:
            _say_error(self._kind, error)
            self._run._skip(self._kind, values)
        self._set(list(named.items()))

    @_never_raises
    def _set(self, pairs):
        for name, value in pairs:
            with contextlib.suppress(Exception):  # a name that can't be a key here is in the journal even so
                super().__setitem__(name, value)
        self._run._send_settings(self._kind, pairs)

    def as_dict(self):
        return dict(self)

    def __reduce__(self):
        return dict, (dict(self),)


class Config(_Settings):
    """What defines the run; stored at each change."""

    _kind = "config"

    def get(self, name, default=None):
        with contextlib.suppress(Exception):
            return super().get(name, default)
        return default

    @_never_raises
    def setdefaults(self, values):
        self._set([(name, value) for name, value in _pairs(_settings_of(values)) if name not in self])


class Summary(_Settings):
    """What the run adds up to. A metric that isn't set here has its last value."""

    _kind = "summary"

    def __missing__(self, name):
        with self._run._lock:
            self._run._take()
        value = self._run._last[name]
        if type(value) is _Skipped:
            raise KeyError(name)
        return value.value() if type(value) is _Pending else value

    def get(self, name, default=None):
        try:
            return self[name]
        except Exception:
            return default

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return self.get(name)


class _TimedStep:
    """The block of `timed_step`. Reads no clock of a device: the writer asks the events when they are over."""

    def __init__(self, of, step, tokens, sync):
        self._of = of
        self._mark = mark = _Mark()
        mark.step = None if step is None else _step_number(step, None)
        mark.tokens = None if tokens is None else _step_number(tokens, None)
        mark.sync = sync if type(sync) is str and sync in ("event", "device", "none") else None
        mark.begun = mark.ended = mark.is_lost = False
        mark.begin = None

    def __enter__(self):
        mark = self._mark
        try:
            cuda = _running_cuda()
            if mark.sync is None:
                mark.sync = "event" if cuda is not None else "device"
            if mark.sync == "event" and cuda is None:
                mark.sync = "device"
            if self._of is not None:
                self._of._put(mark)
            mark.begin = self._moment(mark, cuda)
        except Exception as error:
            _say_error("timed_step", error)
        return self

    def __exit__(self, kind, _, __):
        mark = self._mark
        try:
            if mark.begin is None or self._of is None or kind is not None:
                mark.is_lost = True
                return False
            mark.end = self._moment(mark, _running_cuda())
            mark.at = _now()
            self._of._put(mark)
        except Exception as error:
            mark.is_lost = True
            _say_error("timed_step", error)
        return False

    @staticmethod
    def _moment(mark, cuda):
        if mark.sync == "event":
            event = cuda.Event(enable_timing=True)
            event.record()
            return event
        if mark.sync == "device":
            _wait_for_device(cuda)
        return time.perf_counter()


def _running_cuda():
    """torch.cuda, if the training has started to use it."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None


def _wait_for_device(cuda):
    """A CPU's work is done when its call returns."""
    if cuda is not None:
        cuda.synchronize()
        return
    torch = sys.modules.get("torch")
    mps = getattr(getattr(torch, "backends", None), "mps", None)
    if mps is not None and mps.is_available():
        torch.mps.synchronize()


# ---- What isn't kept ------------------------------------------------------------------------------------------------


class _Nothing:
    """Answers every call and attribute with itself, so that a script goes on."""

    def __init__(self, name):
        self.__dict__["_name"] = name
        _say_once("%s isn't supported and does nothing" % name)

    def __call__(self, *arguments, **_):
        return self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __setattr__(self, name, value):
        pass

    def __getitem__(self, _):
        return self

    def __setitem__(self, *_):
        pass

    def __iter__(self):
        return iter(())

    def __len__(self):
        return 0

    def __bool__(self):
        return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


class _Media:
    """Something that a journal counts and names, but doesn't keep."""

    def __init__(self, *_, **__):
        pass

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *_, **__: None


for _kind in ("Image", "Histogram", "Table", "Video", "Audio", "Html", "Artifact", "Object3D", "Molecule", "Plotly",
              "Graph", "Bokeh", "Classes", "JoinedTable"):
    globals()[_kind] = type(_kind, (_Media,), {"__doc__": "Counted and named, not kept."})


class Settings(types.SimpleNamespace):
    """Accepted and kept as attributes; `silent` is the one that has an effect."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None


class AlertLevel:
    INFO, WARN, ERROR = "INFO", "WARN", "ERROR"


# ---- The module -----------------------------------------------------------------------------------------------------

if "run" not in globals():  # a reload keeps the run that is there
    run = None
    _runs = weakref.WeakSet()
    _started = 0  # calls of `init` in this process
    _failure = None
_is_silent = False


def _silent():
    return _is_silent or os.environ.get("STEPLADDER_SILENT", "").lower() in ("1", "true", "yes")


def _new_id(place, run_id):
    """The name of the run's folder, the same for all its processes, and whether a later launch has the same."""
    run_id = run_id or os.environ.get("STEPLADDER_RUN_ID")
    if run_id:
        run_id = re.sub(r"[^\w.-]", "-", run_id, flags=re.ASCII)[:128]
        return ("run" + run_id if run_id.strip(".") == "" else run_id), True
    if place.world > 1:
        key, is_one_launch = _launch()
        digest = hashlib.sha256(repr((key, _started)).encode()).hexdigest()[:8]
        return "%s-%s" % (_script(), digest), is_one_launch
    end = "".join(random.SystemRandom().choice(string.ascii_lowercase + string.digits) for _ in range(4))
    return "%s-%s-%s" % (_script(), time.strftime("%Y%m%d-%H%M%S"), end), True


def _unused_id(folder, run_id, rank):
    """Where nothing tells two launches apart: the first run, at most ten minutes old, that lacks this rank."""
    number = 1
    while True:
        candidate = run_id if number == 1 else "%s-%d" % (run_id, number)
        path = os.path.join(folder, candidate)
        try:
            age = _now() - os.path.getmtime(os.path.join(path, "uid"))
        except OSError:
            age = 0
        if age < 600 and not os.path.exists(os.path.join(path, "rank-%d.1.jsonl" % rank)):
            return candidate
        number += 1


def init(project=None, entity=None, name=None, config=None, id=None, dir=None, mode=None, resume=None, reinit=None,
         settings=None, group=None, job_type=None, tags=None, notes=None, **others):
    """Starts a run and makes it the module's. Never raises: where nothing can be written it says so and goes on."""
    global run, _is_silent
    for unknown in set(others) - _IGNORED:
        _say_once("init(%s=...) has no effect" % unknown)
    _is_silent = _asks_for_silence(settings)
    reinit = _text(reinit)
    if run is not None and not run._closed:
        if reinit in ("None", "False", "default", "return_previous") and not _in_notebook():
            run.config.update(config)
            return run
        if reinit != "create_new":
            run.finish()
    made = _start(dict(group=group, job_type=job_type, tags=tags, notes=notes), project, name, id, dir, mode)
    if config is not None:
        made.config.update(config)
    if run is None or reinit != "create_new":
        run = made
        globals()["log"] = made._log if type(made).log is _run_log else made.log  # one call less for each step
    return made


def _asks_for_silence(settings):
    try:
        return bool(settings.get("silent") if isinstance(settings, dict) else getattr(settings, "silent", False))
    except Exception:
        return False


_IGNORED = {"save_code", "magic", "sync_tensorboard", "monitor_gym", "anonymous", "force", "allow_val_change",
            "resume_from", "fork_from", "config_include_keys", "config_exclude_keys", "tensorboard", "team"}


def _start(settings, project, name, run_id, folder, mode):
    """A new run, with its journal open; a disabled one if there can't be a journal."""
    global _started
    project, name, run_id, folder, mode = (None if value is None else _text(value, NAME_CHARACTERS)
                                           for value in (project, name, run_id, folder, mode))
    mode = mode or os.environ.get("STEPLADDER_MODE") or "online"
    project = project or os.environ.get("STEPLADDER_PROJECT") or ""
    try:
        folder = os.path.abspath(os.environ.get("STEPLADDER_DIR") or os.path.join(folder or ".", "stepladder"))
        place = _place()
        run_id, is_new = _new_id(place, run_id)
        _started += 1
        if mode != "disabled" and not is_new:
            run_id = _unused_id(folder, run_id, place.rank)
        name = name or os.environ.get("STEPLADDER_NAME") or run_id
        made = Run(folder, run_id, name, project, settings, mode == "disabled")
        if made.disabled:
            return made
        made._open(place)
    except Exception as error:
        _say("%s: %s; the training goes on without a journal" % (folder, getattr(error, "strerror", None) or error))
        return Run("", run_id or "disabled", name or "disabled", project, settings, True)
    _runs.add(made)
    if place.rank == 0 and not _silent():
        _say("writing %s; to see it: stepladder follow %s" % (made.dir, folder))
    return made


_run_log = Run.log  # unless a program has replaced it


def _log(data, step=None, commit=None, sync=None):
    """As `Run.log`, of the run that `init` made."""
    if run is None:
        return _say_once("log: call init() first")
    run.log(data, step, commit)


if run is None:
    log = _log


def finish(exit_code=None, quiet=None):
    """Ends the run that `init` made, and waits until the disk has all of it, 10 s at most."""
    if run is not None:
        run.finish(exit_code)


def define_metric(name, *arguments, **named):
    """As `Run.define_metric`."""
    if run is None:
        return _say_once("define_metric: call init() first")
    return run.define_metric(name, *arguments, **named)


def alert(title="", text="", level=None, wait_duration=None):
    """As `Run.alert`."""
    if run is not None:
        run.alert(title, text, level)


def timed_step(step=None, tokens=None, sync=None):
    """As `Run.timed_step`, of the run that `init` made; without one it only runs the block."""
    return _TimedStep(run, step, tokens, sync)


def login(*_, **__):
    """There is nothing to log in to."""
    return True


def setup(*_, **__):
    return None


def watch(*_, **__):
    _say_once("watch: gradients and parameters aren't kept")


def unwatch(*_, **__):
    return None


def save(*_, **__):
    _say_once("save: files aren't kept")


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name in ("config", "summary"):
        if run is not None:
            return getattr(run, name)
        _say_once("%s: call init() first" % name)
        return getattr(Run("", "", "", "", {}, True), name)
    if name in _LAZY:
        globals()[name] = made = _LAZY[name]()
        return made
    return _Nothing("stepladder." + name)


def _finish_at_exit():
    for one in list(_runs):
        with contextlib.suppress(Exception):
            status, code, reason = _failure or ("finished", 0, "")
            one._end(status, code, reason)


def _watch_the_end():
    """How the program ends: an exception that nobody catches, or sys.exit with a status."""

    def failed(kind, error, trace, before=sys.excepthook):
        global _failure
        with contextlib.suppress(Exception):
            _failure = _failed(kind, error)
        before(kind, error, trace)

    def left(status=None, before=sys.exit):
        global _failure
        if _exit_code(status):
            _failure = ("failed", _exit_code(status), "exit code %s" % _text(status, 200))
        before(status)

    def vanished(status, before=os._exit):
        try:
            for one in list(_runs):
                if not one._closed:
                    one._write_what_waits()
        finally:
            before(status)

    sys.excepthook, sys.exit, os._exit = failed, left, vanished
    atexit.register(_finish_at_exit)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork)


def _after_fork():
    for one in list(_runs):
        one._forget_after_fork()
    _runs.clear()


if "_watched" not in globals():
    _watched = True
    _watch_the_end()


# ---- Other libraries' interfaces ------------------------------------------------------------------------------------


class SummaryWriter:
    """TensorBoard's writer, with a run of its own. `log_dir` is the run's name."""

    def __init__(self, log_dir=None, comment="", *_, **__):
        self.log_dir = (log_dir is not None and _text(log_dir)) or "runs/" + _script() + (_text(comment) or "")
        self.run = _start({}, None, self.log_dir, None, None, None)
        self._steps = {}

    def get_logdir(self):
        return self.log_dir

    def _next(self, tag, step):
        following = self._steps.get(tag, -1) + 1
        self._steps[tag] = step = following if step is None else _step_number(step, following)
        return step

    @_never_raises
    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False):
        tag = _name(tag)
        self.run._log_at(_snapshot({tag: scalar_value}), self._next(tag, global_step), walltime)

    @_never_raises
    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        tag = _name(main_tag)
        self.run._log_at(_snapshot({tag: tag_scalar_dict}), self._next(tag, global_step), walltime)

    @_never_raises
    def add_text(self, tag, text_string, global_step=None, walltime=None):
        tag, text = _name(tag), _text(text_string)
        text = _Skipped(_kind_of(text_string)) if text is None else text
        self.run._log_at(_snapshot({tag: text}), self._next(tag, global_step), walltime)

    @_never_raises
    def add_hparams(self, hparam_dict, metric_dict=None, hparam_domain_discrete=None, run_name=None, global_step=None):
        self.run.config.update(hparam_dict)
        if metric_dict is not None:
            self.run._log_at(_snapshot(metric_dict), self._next("hparams", global_step))

    def flush(self):
        self.run._wake.set()

    def close(self):
        self.run.finish()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.run.__exit__(kind, error, trace)

    def __getattr__(self, name):
        if not name.startswith("add_"):
            raise AttributeError(name)
        kind = name[4:]
        return lambda tag="", *_, **__: self.run._send_skipped(kind, tag if type(tag) is str else kind)


def _trainer_callback():
    from transformers import TrainerCallback as Base

    class TrainerCallback(Base):
        """Hugging Face's Trainer: its logs, its configuration and the time of each step, on every rank."""

        def __init__(self, **init_arguments):
            self._arguments = init_arguments
            self._run = None
            self._timed = None

        @_never_raises
        def on_train_begin(self, args, state, control, model=None, **_):
            if self._run is None or self._run._closed:
                given = dict(self._arguments)
                given.setdefault("name", getattr(args, "run_name", None))
                self._run = init(**given)
            if state.is_world_process_zero:
                if hasattr(model, "config"):
                    self._run.config.update(model.config.to_dict())
                self._run.config.update(args.to_dict())
                if hasattr(model, "num_parameters"):
                    self._run.config.update({"params": model.num_parameters()})

        @_never_raises
        def on_step_begin(self, args, state, control, **_):
            self._timed = _TimedStep(self._run, state.global_step + 1, None, None)
            self._timed.__enter__()

        @_never_raises
        def on_step_end(self, args, state, control, **_):
            if self._timed is not None:
                self._timed.__exit__(None, None, None)
                self._timed = None

        @_never_raises
        def on_log(self, args, state, control, logs=None, **_):
            if self._run is None:
                self.on_train_begin(args, state, control)
            if state.is_world_process_zero and logs:
                self._run.log({_trainer_name(name): value for name, value in _pairs(logs)}, step=state.global_step)

        @_never_raises
        def on_train_end(self, args, state, control, **_):
            pass  # an evaluation may follow; the run ends with the program or with finish()

    TrainerCallback.__qualname__ = "TrainerCallback"
    return TrainerCallback


def _trainer_name(name):
    name = _name(name)
    for prefix in ("eval_", "test_"):
        if name.startswith(prefix):
            return prefix[:-1] + "/" + name[len(prefix):]
    return "train/" + name


def _lightning_logger():
    if "pytorch_lightning" in sys.modules and "lightning" not in sys.modules:
        from pytorch_lightning.loggers.logger import Logger, rank_zero_experiment
        from pytorch_lightning.utilities import rank_zero_only
    else:
        from lightning.pytorch.loggers.logger import Logger, rank_zero_experiment
        from lightning.pytorch.utilities import rank_zero_only

    class LightningLogger(Logger):
        """Lightning's logger: what modules log on rank 0, and their hyperparameters."""

        def __init__(self, name=None, project=None, **init_arguments):
            super().__init__()
            self._arguments = dict(init_arguments, name=name, project=project, reinit="create_new")
            self._run = None

        def __getstate__(self):
            return dict(self.__dict__, _run=None)

        @property
        @rank_zero_experiment
        def experiment(self):
            if self._run is None or self._run._closed:
                self._run = init(**self._arguments)
            return self._run

        @property
        def name(self):
            return self._arguments["project"] or "stepladder"

        @property
        def version(self):
            return self._run.id if self._run is not None else None

        @rank_zero_only
        def log_metrics(self, metrics, step=None):
            self.experiment.log(metrics, step=step)

        @rank_zero_only
        def log_hyperparams(self, params, *_, **__):
            self.experiment.config.update(params)

        @rank_zero_only
        def finalize(self, status):
            if self._run is not None and status != "success":
                self._run._end("failed", 1, "Lightning: " + _name(status))

    LightningLogger.__qualname__ = "LightningLogger"  # so that it can be pickled
    return LightningLogger


_LAZY = {"TrainerCallback": _trainer_callback, "LightningLogger": _lightning_logger}
