#!/usr/bin/env python3
"""Checks the tree's layout: no include against the arrows, each large library in its rooms alone, and no option of the command line in
storage's sentences.

docs/architecture.md explains the layers. Usage: layout_test.py [ROOT]
"""
import collections
import pathlib
import re
import sys

# Files under the first path include headers of ours only from the paths beside it. The longest match counts.
ARROWS = {
    "storage": ["storage"],
    "storage/analysis": ["storage/quantity.h", "storage/records.h", "storage/json_values.h", "storage/errors.h", "storage/by_enum.h", "storage/checksum.h", "storage/csv.h",
                         "storage/wording.h", "storage/name_pattern.h", "storage/number_text.h", "storage/contention.h", "storage/user_folders.h", "storage/analysis"],
    "storage/importers": ["storage/records.h", "storage/record_fields.h", "storage/try_records.h", "storage/json_values.h", "storage/number_text.h", "storage/errors.h", "storage/by_enum.h", "storage/bounded_text.h", "storage/checksum.h", "storage/content_hash.h",
                          "storage/csv.h", "storage/wording.h", "storage/name_pattern.h", "storage/regular_file.h", "storage/folder_watch.h",
                          "storage/analysis", "storage/importers"],
    "storage/speedrun": ["storage/records.h", "storage/errors.h", "storage/by_enum.h", "storage/wording.h", "storage/analysis", "storage/importers/source_code.h",
                         "storage/importers/text.h", "storage/importers/logs/lines/line_end.h", "storage/content_hash.h", "storage/number_text.h", "storage/regular_file.h",
                         "storage/speedrun"],
    "storage/traces": ["storage/records.h", "storage/errors.h", "storage/by_enum.h", "storage/bounded_text.h", "storage/number_text.h", "storage/wording.h",
                       "storage/regular_file.h", "storage/analysis", "storage/traces"],
    "storage/traces/nsight.cpp": ["storage/wording.h", "storage/traces", "storage/importers"],
    # Other trackers keep SQLite files too; this one importer file reads them through the wrapper, which is independent of our schema.
    "storage/importers/trackers/foreign_database.h": ["storage/errors.h", "storage/database/database.h", "storage/importers"],
    "storage/intake": ["storage/records.h", "storage/errors.h", "storage/folder_watch.h", "storage/regular_file.h", "storage/database",
                       "storage/importers", "storage/intake"],
    "engine": ["storage/records.h", "storage/bounded_text.h", "storage/errors.h", "storage/by_enum.h", "storage/thread_safety.h", "storage/contention.h",
               "storage/checked_text.h", "storage/number_text.h", "storage/own_folder.h", "storage/process.h", "storage/process_stat.h", "storage/regular_file.h", "storage/user_folders.h",
               "storage/analysis/known_stage.h", "engine"],
    "engine/kernels": ["engine/kernels"],
    # The rooms of app, and the rooms that each may include besides app's four loose files ("app/*").
    "app": ["storage"],
    "app/main.cpp": ["app/screenshot_request.h", "app/cli", "app/desktop", "app/host", "app/machines"],
    "app/text": ["storage", "app/text"],
    "app/process": ["storage", "app/text", "app/process"],
    "app/keep": ["storage/process.h", "app/keep"],
    "app/journal": ["storage", "app/journal"],
    "app/curves": ["storage", "app/*", "app/curves"],
    "app/host": ["storage", "engine", "app/*", "app/text", "app/process", "app/host"],
    "app/runs": ["storage", "engine", "app/*", "app/text", "app/host", "app/runs"],
    "app/session": ["storage", "engine", "app/text", "app/host", "app/journal", "app/runs", "app/session"],
    "app/profile": ["storage", "engine", "app/*", "app/text", "app/host", "app/runs", "app/profile"],
    "app/figures": ["storage", "engine", "app/text", "app/runs", "app/curves", "app/profile", "app/figures"],
    "app/launch": ["storage", "engine", "app/text", "app/session", "app/figures", "app/launch"],
    "app/import": ["storage", "engine", "app/*", "app/text", "app/keep", "app/runs", "app/import"],
    "app/record": ["storage", "engine", "app/*", "app/text", "app/process", "app/keep", "app/host", "app/runs", "app/figures", "app/import", "app/machines", "app/record"],
    "app/machines": ["storage", "engine", "app/text", "app/process", "app/host", "app/launch", "app/import", "app/machines"],
    "app/cli": ["storage", "engine", "app/*", "app/text", "app/host", "app/runs", "app/session", "app/figures", "app/import", "app/machines",
                "app/launch", "app/profile", "app/record", "app/process/awaited_program.h", "app/cli"],
    "app/desktop": ["storage", "engine", "app/*", "app/text", "app/process", "app/host", "app/runs", "app/session", "app/curves", "app/figures",
                    "app/profile", "app/launch", "app/import", "app/record", "app/machines", "app/panels/panels.def", "app/desktop"],
    "app/panels": ["storage", "engine", "app/text", "app/host", "app/runs", "app/session", "app/curves", "app/profile", "app/launch",
                   "app/machines", "app/desktop", "app/panels"],
    # A program of its own, static and small: neither LibTorch, SQLite nor a window.
    "app/far": ["storage/checksum.h", "storage/importers/journal/journal_line.h", "storage/json_values.h",
                "storage/database/process.h",
                "storage/checked_text.h", "storage/number_text.h", "storage/own_folder.h", "storage/process.h", "app/text/secrets.h",
                "storage/errors.h", "storage/base64.h", "app/journal/journal_file.h", "app/keep",
                "app/process/awaited_program.h", "app/far"],
}
# The headers of large libraries, and the only rooms that include them.
OWNERS = {
    r"[<\"](torch|ATen|c10)/": ["engine/trainer"],
    r"[<\"](imgui|implot|GLFW/)": ["app/desktop", "app/panels"],
    r"[<\"]sqlite3\.h": ["storage/database"],
}
# And never from these, even if the list above allows them.
NEVER = {
    "app": ["engine/trainer"],
}


def under(path, folder):
    if folder.endswith("/*"):
        return path.rpartition("/")[0] == folder[:-2]
    return path == folder or path.startswith(folder + "/")


def rule_for(path, rules):
    return rules[max((folder for folder in rules if under(path, folder)), key=len)]


# Sources whose sentences both front ends show.
SHARED = ("storage", "engine", "app/launch", "app/session")
# They write command lines, for a compiler and for a shell.
COMMAND_LINES = ("engine/trainer/device/kernel_module.cpp", "app/launch/ladder_file.cpp")


def words_nothing(path):
    return path not in COMMAND_LINES and any(under(path, folder) for folder in SHARED)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
    sizes = collections.Counter()
    problems = []
    for top in ("app", "engine", "storage", "tests"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in (".cpp", ".h", ".cu", ".cuh", ".py", ".def"):
                continue
            path = file.relative_to(root).as_posix()
            sizes[file.parent.relative_to(root).as_posix()] += 1
            if top == "tests" or file.suffix == ".py":
                continue
            never = next((rule_for(path, NEVER) for folder in NEVER if under(path, folder)), [])
            allowed = rule_for(path, ARROWS)
            for number, line in enumerate(file.read_text().splitlines(), 1):
                # A remedy or a field is a value, which each front end words: the window has no options.
                if words_nothing(path) and re.search(r'"[^"]*(?<![\w-])--[a-z][^"]*"', line.split("//")[0]):
                    problems.append(f"{path}:{number} names an option of the command line")
                for library, rooms in OWNERS.items():
                    if re.match(r"\s*#\s*include " + library, line) and not any(under(path, room) for room in rooms):
                        problems.append(f"{path}:{number} includes a library of {' and '.join(rooms)}")
                included = re.match(r'\s*#include "((?:app|engine|storage)/[^"]+)"', line)
                if not included:
                    continue
                header = included.group(1)
                if not any(under(header, folder) for folder in allowed) or any(under(header, f) for f in never):
                    problems.append(f"{path}:{number} includes {header}")
    assert sum(sizes.values()) > 500, f"only {sum(sizes.values())} source files found under {root}"
    print("largest folders: " + ", ".join(f"{folder} {count}" for folder, count in sizes.most_common(5)))
    for problem in problems:
        print(problem)
    if problems:
        sys.exit(f"{len(problems)} problems")


if __name__ == "__main__":
    main()
