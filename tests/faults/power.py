"""A model of power failures: from the log of shim.c, the folder as it may be afterwards.

The log is the order in which the program changed its files. At a failure after any entry:
- a file has everything that was written before its last fsync began, if that fsync had ended;
- a folder has every name that was created, renamed or removed in it before its own last fsync, likewise;
- every other write, change of size and name may be there or not, in any combination, and a write may be torn between
  sectors of 512 bytes.
This is stricter than common file systems, which keep names in order and a new file's name with its fsync.
"""
import pathlib
import re
import struct

SECTOR = 512
ENTRY = struct.Struct("<Ic3xqQqIHH")  # `struct entry` in shim.c
ROOT = 0


class Entry:
    __slots__ = ("kind", "at", "file", "offset", "thread", "path", "second", "data")

    def __init__(self, kind, at, file, offset, thread, path, second, data):
        self.kind, self.at, self.file, self.offset, self.thread = kind, at, file, offset, thread
        self.path, self.second, self.data = path, second, data


class Change:
    """A change of one name: in folder `folder`, `name` becomes `file`, or nothing if it is None."""
    __slots__ = ("index", "places", "kind")

    def __init__(self, index, kind, places):
        self.index, self.kind, self.places = index, kind, places  # places: [(folder, name, file or None)]


def read_log(path):
    data = pathlib.Path(path).read_bytes()
    entries, at = [], 0
    while at + ENTRY.size <= len(data):
        length, kind, ns, file, offset, thread, first, second = ENTRY.unpack_from(data, at)
        if at + length > len(data):
            break
        text = at + ENTRY.size
        entries.append(Entry(kind.decode(), ns / 1e9, file, offset, thread, data[text:text + first].decode(),
                             data[text + first:text + first + second].decode(), data[text + first + second:at + length]))
        at += length
    return entries


class Log:
    """The log with every name resolved to numbers of folders and files, so that changes can be applied in part."""

    def __init__(self, path):
        self.entries = read_log(path)
        self.folders = {ROOT: {}}  # what the running program saw
        self.is_folder = {ROOT}
        self.alias = {}            # the shim's number of the root folder
        self.changes = []          # of names, by index
        self.writes = {}           # file -> [(index, entry)]
        self.syncs = []            # (index of end, index of begin, file)
        self.saved = {}            # folder of a named checkpoint -> (index, name, {name: file})
        begun = {}
        for index, entry in enumerate(self.entries):
            if entry.kind in "wtg":
                self.writes.setdefault(entry.file, []).append((index, entry))
            elif entry.kind == "f":
                begun[entry.thread, entry.file] = index
            elif entry.kind == "F":
                file = self.alias.get(entry.file, entry.file)
                self.syncs.append((index, begun[entry.thread, entry.file], file))
            elif entry.kind == "o" and entry.path == "":
                self.alias[entry.file] = ROOT
            elif entry.kind in "curxmdl":
                self.change(index, entry)

    def parent(self, path):
        folder = ROOT
        *parts, name = path.split("/")
        for part in parts:
            folder = self.folders[folder][part]
        return folder, name

    def change(self, index, entry):
        folder, name = self.parent(entry.path)
        if entry.kind in "cm":
            places = [(folder, name, entry.file)]
            if entry.kind == "m":
                self.folders[entry.file] = {}
                self.is_folder.add(entry.file)
        elif entry.kind in "ud":
            places = [(folder, name, None)]
        else:
            file = self.folders[folder][name]
            places = [(*self.parent(entry.second), file)]
            if entry.kind == "r":
                places.insert(0, (folder, name, None))
            elif entry.kind == "x":
                target, second = places[0][:2]
                places.insert(0, (folder, name, self.folders[target][second]))
            if re.fullmatch(r"step-\d+", places[-1][1]) and file in self.is_folder:
                self.saved[file] = (index, places[-1][1], dict(self.folders[file]))
        self.changes.append(Change(index, entry.kind, places))
        self.apply(self.folders, places)

    @staticmethod
    def apply(folders, places):
        for folder, name, file in places:
            entries = folders.setdefault(folder, {})
            if file is None:
                entries.pop(name, None)
            else:
                entries[name] = file

    def durable_at(self, index):
        """file or folder -> everything of it before this index is on the disk."""
        durable = {}
        for end, begin, file in self.syncs:
            if end < index:
                durable[file] = max(durable.get(file, 0), begin)
        return durable

    def content(self, file, index, durable=None, chance=None):
        """The bytes of a file; without `chance` as the program saw them. `chance()` is "keep", "drop" or a sector filter."""
        data = bytearray()
        for at, entry in self.writes.get(file, ()):
            if at >= index:
                break
            fate = chance() if chance and at >= durable.get(file, 0) else "keep"
            if fate == "drop":
                continue
            if entry.kind == "t":
                del data[entry.offset:]
            if entry.kind in "tg":
                data.extend(bytes(max(0, entry.offset - len(data))))
            else:
                end = entry.offset + len(entry.data)
                first = entry.offset
                while first < end:
                    last = min(end, (first // SECTOR + 1) * SECTOR) if fate != "keep" else end
                    if fate == "keep" or fate():
                        data.extend(bytes(max(0, last - len(data))))
                        data[first:last] = entry.data[first - entry.offset:last - entry.offset]
                    first = last
        return bytes(data)

    def names(self, index, durable=None, chance=None):
        folders = {ROOT: {}}
        for change in self.changes:
            if change.index >= index:
                break
            # A rename is one change, on the disk once either of its folders is.
            known = chance is None or any(change.index < durable.get(folder, 0) for folder, _, _ in change.places)
            if known or chance() != "drop":
                self.apply(folders, change.places)
        return folders

    def write_to(self, target, index, durable=None, chance=None):
        """Builds the folder at `target` and returns {path of each named checkpoint: its folder's number}."""
        folders = self.names(index, durable, chance)
        named = {}

        def build(folder, path):
            path.mkdir(parents=True, exist_ok=True)
            for name, file in folders.get(folder, {}).items():
                if file in self.is_folder:
                    build(file, path / name)
                    if re.fullmatch(r"step-\d+", name):
                        named[path / name] = file
                else:
                    (path / name).write_bytes(self.content(file, index, durable, chance))

        build(ROOT, pathlib.Path(target))
        return named

    def damage_of(self, path, folder):
        """How a checkpoint with a name differs from the one that was given this name; empty if it doesn't."""
        index, _, files = self.saved[folder]
        there = {file.name for file in path.iterdir()}
        if there != set(files):
            return f"{path.name} holds {sorted(there)}, not {sorted(files)}"
        for name, file in files.items():
            if (path / name).read_bytes() != self.content(file, index):
                return f"{path.name}/{name} isn't as it was saved"
        return ""


def chances(random):
    """Decides the fate of each unsynced change; some failures lose nearly all of them, some nearly none."""
    keep = random.choice([0.0, 0.1, 0.5, 0.9, 1.0])
    torn = random.choice([0.0, 0.2])

    def sector():
        return random.random() < 0.5

    def decide():
        if random.random() < torn:
            return sector
        return "keep" if random.random() < keep else "drop"

    return decide
