#!/usr/bin/env python3
"""Checks that every C++ file is formatted as .clang-format says, by the version that CI installs.

Usage: format_test.py [ROOT]. Mend with: clang-format -i FILE...
"""
import pathlib
import shutil
import subprocess
import sys

VERSION = "14"
SKIPPED = 77


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
    program = shutil.which(f"clang-format-{VERSION}") or shutil.which("clang-format")
    if not program:
        print("skipped: clang-format isn't installed")
        sys.exit(SKIPPED)
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if f"version {VERSION}." not in version:
        print(f"skipped: this is '{version}', and other versions than {VERSION} format differently")
        sys.exit(SKIPPED)
    files = [str(path) for folder in ("app", "engine", "storage", "tests") for path in sorted((root / folder).rglob("*"))
             if path.suffix in (".cpp", ".h", ".cu", ".cuh")]
    assert len(files) > 400, f"only {len(files)} C++ files found under {root}"
    sys.exit(subprocess.run([program, "--dry-run", "-Werror", *files], check=False).returncode)


if __name__ == "__main__":
    main()
