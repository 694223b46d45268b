"""Fills every column of every table of a project with hostile values, as a stranger's own tool may."""
import json
import re
import sqlite3


class Text(bytes):
    """Bytes that become a TEXT, whatever they are."""


def texts(place):
    """Values that would touch place.mark or reach below place.victim if anything took them for more than a value."""
    touch = f"touch {place.mark}"
    documents = f"{place.victim}/home/Documents"
    return [
        f"/tmp/x$({touch})", f"`{touch}`", f"; {touch}", f"| {touch} &", f"'; {touch} #", f'"; {touch} #', f"\n{touch}\n",
        documents, "../../victim/home/Documents", "../notes.txt", f"{place.victim}/home/.bashrc", f"file://{documents}", "..", "", "~/x",
        f"-oProxyCommand={touch}", f"--wrap={touch}", f"--output={documents}/log", "me@evil.example", "evil.example", "http://127.0.0.1:9/x",
        str(place.fifo), "/dev/zero", "/dev/tty", "/proc/self/mem", "%s%n%x", "\x1b]0;title\x07\x1b[2J\x1b[31m", "\u202eright to left",
        "nul\0byte", Text(b"\xff\xfe\x80 not UTF-8"), Text(b"\xed\xa0\x80"), "'; DROP TABLE runs; --", "line\nfeed\r\nand more", "x" * 5000,
        request(place), json.dumps({"joined": str(place.fifo), "steps": {}, "told": "running"}), "[" * 10_000, '{"a":' * 10_000,
        "latest", "1", "-1", "1e999", "NaN", "null", "finished",
    ]


def request(place, **more):
    """The order of a far run."""
    return json.dumps({"name": "x", "command": ["/bin/sh", "-c", f"touch {place.mark}"], "folder": None, "env": {}, "tree": None,
                       "slurm": None, **more})


def recipes(place):
    small = {"model": "nano", "layers": 1, "heads": 1, "d_model": 16, "batch": 1, "seq": 16, "steps": 2, "save_every": 1}
    traps = [str(place.fifo), "/dev/zero", f"{place.victim}/home/Documents/thesis.txt", "/proc/self/mem", "../../victim"]
    return [json.dumps({**small, key: trap}) for trap in traps for key in ("data", "weights", "tokenizer")] + \
           [json.dumps({**small, "device": f"$(touch {place.mark})"}), json.dumps({**small, "nproc": 4096, "batch": 4096}),
            json.dumps({**small, "steps": 10**18, "threads": -1}), json.dumps({key: [] for key in small})]


INTEGERS = [0, 1, 2, 3, -1, 7, 2**31, -2**31, 2**53, 2**63 - 1, -2**63]
REALS = [1.0, 0.0, 0.5, 100.0, 1.7e9, -1.0, 1e308, -1e308, float("inf"), float("-inf"), 5e-324, None]
BLOBS = [b"", b"\0", b"\xff" * 64, bytes(range(256)) * 8, b"step 1 | loss 4.0 | dt 50ms\n" * 20]


class Column:
    def __init__(self, place, row, table_sql, references):
        _, self.name, self.type, self.not_null, _, self.in_key, self.hidden = row
        self.references = references.get(self.name)
        allowed = re.search(rf"CHECK \({self.name} IN\s*\(([^)]*)\)", table_sql)
        self.allowed = re.findall(r"'([^']*)'", allowed.group(1)) if allowed else None
        self.named = self.values_by_name(place)

    def values_by_name(self, place):
        documents = f"{place.victim}/home/Documents"
        touch = f"touch {place.mark}"
        if self.name in ("owner_pid",):
            return [place.bystander.pid, 1, 0, -1, 2**22 + 5]
        if self.name in ("owner_start", "owner_boot"):
            return [None]  # so that the process may be any of this number
        if self.name == "uid" or self.name == "far_uid":
            return [documents, "../../victim/home/Documents", "../notes.txt", "/../../../victim/x", f"$({touch})", "0" * 32, "deadbeef" * 4, "", ".."]
        if self.name == "alias":
            return ["me@evil.example", f"-oProxyCommand={touch}", f"x$({touch})", "here", "localhost"]
        if self.name == "recipe":
            return recipes(place)
        if self.name == "request":
            return [request(place), request(place, tree="tree.tar.gz"), request(place, slurm={"options": [f"--wrap={touch}"]})]
        if self.name == "state":
            return [json.dumps({"phase": "ended"}), json.dumps({"phase": "gone"}), json.dumps({"joined": str(place.fifo)}), "{"]
        if self.name == "source_path":
            return [str(place.fifo), "/dev/zero", documents, f"$({touch})", "../../victim"]
        if self.name == "source":
            return ["launched", "import", f"text {place.fifo}", f"journal {'0' * 32} 0 1", f"tensorboard {place.victim}", f"csv {documents}"]
        if self.name == "deleted_at":
            return [None, None, None, 1.0, 1e308]
        if self.name == "created_at":
            return [1.0, 0.0, 1.7e9, 1e308]
        if self.name in ("key",):
            return ["checkpoints_to_remove", "view:x", f"view:$({touch})", "view:../../victim"]
        if self.name == "value":
            return [f"1//1 2/../../x/1 -1/{documents}/0 99/deadbeef/1.0", '{"format":1,"states":{"history":{"filter":"x"}},"panels":["machines"]}']
        if self.name.startswith("is_") or self.name in ("uses_slurm", "on_gpu", "has_steps"):
            return [1, 0]
        if self.name in ("pinned", "archived", "paused"):
            return [0, 0, 1]
        if self.name == "hidden":
            return [0, 0, 0, 0, 1, 0, 2]  # the lengths have no common factor, so that runs are left in every view
        return None

    def plausible(self, values, i, j, ids):
        """A value that the program reads as what the column is for; the rest is hostile."""
        if self.references:
            return ids[i % len(ids)] if self.not_null or self.in_key or i % 2 else None
        if self.allowed:
            return self.allowed[i % len(self.allowed)]
        if self.in_key and self.type == "INTEGER":
            return i + 1
        if self.named and (i // 2 + j) % 4:
            return self.named[(i + j) % len(self.named)]
        listed = {"INTEGER": INTEGERS, "REAL": REALS, "BLOB": BLOBS}.get(self.type, values)
        value = listed[(i + 7 * j) % len(listed)]
        return 1.0 if value is None and self.not_null else value

    def wild(self, values, i, j):
        """Any value of any type."""
        everything = values + INTEGERS + REALS + BLOBS + [10**15, True]
        return everything[(3 * i + 11 * j) % len(everything)]


class Filler:
    def __init__(self, place, database):
        self.place = place
        self.database = database
        self.values = texts(place)
        database.execute("PRAGMA foreign_keys = OFF")
        database.execute("PRAGMA ignore_check_constraints = ON")
        self.tables = {}
        for name, sql in database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").fetchall():
            references = {row[3]: row[2] for row in database.execute(f"PRAGMA foreign_key_list({name})")}
            columns = [Column(place, row, sql, references) for row in database.execute(f"PRAGMA table_xinfo({name})")]
            self.tables[name] = [column for column in columns if column.hidden == 0]

    def insert(self, table, row, how="INSERT OR REPLACE"):
        slots = ", ".join("CAST(? AS TEXT)" if isinstance(value, Text) else "?" for value in row.values())
        values = [bytes(value) if isinstance(value, Text) else value for value in row.values()]
        try:
            self.database.execute(f"{how} INTO {table} ({', '.join(row)}) VALUES ({slots})", values)
        except (sqlite3.IntegrityError, OverflowError):  # a key that must be a number, or not NULL
            pass

    def fill(self, rows=48):
        for table in sorted(self.tables, key=lambda name: (name not in ("ladders", "runs", "traces", "passes", "metrics"), name)):
            columns = self.tables[table]
            for i in range(rows):
                ids = lambda column: list(range(1, rows + 1)) if column.references else []
                self.insert(table, {column.name: column.plausible(self.values, i, j, ids(column)) for j, column in enumerate(columns)})
            for i in range(rows):
                self.insert(table, {column.name: column.wild(self.values, i, j) for j, column in enumerate(columns)}, "INSERT OR IGNORE")
        self.fill_with_nothing()

    def fill_with_nothing(self):
        """NULL where a column must not be NULL."""
        database = self.database
        before = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND sql LIKE '%NOT NULL%'").fetchall()
        version = database.execute("PRAGMA schema_version").fetchone()[0]
        database.commit()
        database.execute("PRAGMA writable_schema = ON")
        database.execute("UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '') WHERE type = 'table' AND sql NOT LIKE '%WITHOUT ROWID%'")
        database.execute(f"PRAGMA schema_version = {version + 1}")
        database.commit()
        for table, columns in self.tables.items():
            self.insert(table, {column.name: 1 if column.references or column.in_key else None for column in columns}, "INSERT OR IGNORE")
        for name, sql in before:
            database.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (sql, name))
        database.execute(f"PRAGMA schema_version = {version + 2}")
        database.commit()
        database.execute("PRAGMA writable_schema = OFF")

    def unfilled(self):
        """Columns that no row has a hostile value in."""
        return [f"{table}.{column.name}" for table, columns in self.tables.items() for column in columns
                if self.database.execute(f"SELECT count(DISTINCT {column.name}) FROM {table}").fetchone()[0] < 2]
