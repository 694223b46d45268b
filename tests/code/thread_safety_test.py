#!/usr/bin/env python3
"""Checks with Clang that members are used only with their lock, or on their thread (storage/thread_safety.h).

Compiles every source that includes this header, or whose own header does, and two files beside this script: templates.cpp
must compile, and each case of misuse.cpp must not. Usage: thread_safety_test.py [BUILD]

A source that was fine is checked again only if it, a header that it includes or its command line has changed.
"""
import functools
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("STEPLADDER_BUILD", ROOT / "build"))
INCLUDE = '#include "storage/thread_safety.h"'
CHECKS = ["-fsyntax-only", "-std=c++20", "-Wno-everything", "-Wthread-safety", "-Werror=thread-safety"]


def flags_of(command):
    """The include folders and macros of a compiler's command line."""
    words, flags = shlex.split(command), []
    for i, word in enumerate(words):
        if word == "-isystem":
            flags += [word, words[i + 1]]
        elif re.match(r"-[ID].", word):
            flags.append(word)
    return flags


def compile_commands():
    """The command line by source, also of sources that are compiled together in one file (CMake's unity builds)."""
    commands = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        files = [entry["file"]]
        if "/Unity/" in entry["file"]:
            files = re.findall(r'#include "(.+\.cpp)"', pathlib.Path(entry["file"]).read_text())
        for file in files:
            commands[file] = entry["command"]
    return commands


def annotated_sources(commands):
    for top in ("storage", "engine", "app"):
        for path in sorted((ROOT / top).rglob("*.cpp")):
            header = path.with_suffix(".h")
            texts = [path.read_text()] + ([header.read_text()] if header.exists() else [])
            if str(path) in commands and any(INCLUDE in text for text in texts):
                yield path


def compile_with_clang(clang, path, flags):
    done = subprocess.run([clang, *CHECKS, *flags, str(path)], capture_output=True, text=True)
    return done.returncode == 0, done.stderr


@functools.cache
def digest(path):
    try:
        return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
    except OSError:
        return None


class KnownToBeFine:
    """Source -> the compiler and its flags, and the digest of each file that it was compiled from."""

    def __init__(self, compiler):
        self.file = BUILD / "thread_safety.json"
        self.compiler = compiler
        try:
            self.entries = json.loads(self.file.read_text())
        except (OSError, ValueError):
            self.entries = {}

    def has(self, path, flags):
        entry = self.entries.get(str(path))
        return bool(entry) and entry["command"] == [self.compiler, *flags] and all(
            digest(file) == known for file, known in entry["files"].items())

    def add(self, path, flags, dependencies):
        files = dependencies.replace("\\\n", " ").split(":", 1)[1].split()
        self.entries[str(path)] = {"command": [self.compiler, *flags], "files": {file: digest(file) for file in files}}

    def save(self):
        self.file.write_text(json.dumps(self.entries))


def check_sources(clang, commands, sources):
    """The names of those that fail; prints why."""
    version = subprocess.run([clang, "--version"], capture_output=True, text=True, check=True).stdout
    known, failed = KnownToBeFine(" ".join([version, *CHECKS])), []
    with tempfile.TemporaryDirectory() as folder:
        dependencies = pathlib.Path(folder) / "dependencies"
        for path in sources:
            flags = flags_of(commands.get(str(path), "")) or [f"-I{ROOT}"]
            if known.has(path, flags):
                continue
            fine, messages = compile_with_clang(clang, path, [*flags, "-MD", "-MF", str(dependencies)])
            if fine:
                known.add(path, flags, dependencies.read_text())
            else:
                failed.append(path.name)
                print(messages)
    known.save()
    return failed


def main():
    clang = shutil.which("clang++")
    if not clang:
        print("clang++ isn't installed, so nothing was checked")
        sys.exit(77)
    commands = compile_commands()
    sources = list(annotated_sources(commands))
    assert len(sources) >= 5, f"only {len(sources)} annotated sources found under {ROOT}"
    failed = check_sources(clang, commands, [*sources, HERE / "thread_safety" / "templates.cpp"])
    misuse = HERE / "thread_safety" / "misuse.cpp"
    cases = sorted(set(re.findall(r"#ifdef (MISUSE_\w+)", misuse.read_text())))
    assert cases, "misuse.cpp has no case"
    fine, messages = compile_with_clang(clang, misuse, [f"-I{ROOT}"])
    assert fine, messages
    for case in cases:
        fine, messages = compile_with_clang(clang, misuse, [f"-I{ROOT}", f"-D{case}"])
        if fine or "-Wthread-safety" not in messages:
            failed.append(case)
            print(f"{case} should fail the thread-safety analysis:\n{messages}")
    print(f"{len(sources)} annotated sources and {len(cases)} cases of misuse checked")
    if failed:
        sys.exit("failed: " + ", ".join(failed))


if __name__ == "__main__":
    main()
