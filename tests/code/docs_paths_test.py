#!/usr/bin/env python3
"""Checks that every file that the docs and the comments name exists.

In all text files: a path that begins with a folder of the tree (`engine/stage.h`). In Markdown also: links to files and
their headings, and code spans that end in a source file's name (`desktop/charts.h`), which must be the end of a file's path.
A `*` stands for any name; names that begin with `my_` are examples. Usage: docs_paths_test.py [ROOT]
"""
import fnmatch
import os
import pathlib
import re
import sys

FOLDERS = ("app", "assets", "docs", "engine", "python", "storage", "tests")
READ = (".cpp", ".cu", ".cuh", ".def", ".h", ".md", ".py", ".txt", "")
NOT_READ = ("assets/", "tests/importers/", "tests/fuzz/corpus/", "tests/code/layout_test.py")
ENDING = r"\.(?:cpp|csv|cuh?|def|desktop|h|json|log|md|png|py|svg|txt|xml)\b"

FROM_THE_ROOT = re.compile(rf"(?<![\w./{{}}-])((?:{'|'.join(FOLDERS)})/[\w./*-]*{ENDING})(?!\w)")
LINK = re.compile(r"\]\(([^)#\s:]*)(?:#([^)\s]*))?\)")
CODE_SPAN = re.compile(rf"`([\w./*-]+{ENDING[:-2]})`")
# Files that Stepladder writes or reads elsewhere, and other projects' files.
ELSEWHERE = re.compile(r"^(?:.*/)?my_|^(?:request\.json|request\.2\.json|job\.json|job-end\.json|desktop\.json|crash\.txt|build/trainer\.log|hardware\.csv|\.trace\.json|llmc/mfu\.h|tools/utils\.py|proton/specs\.py|profile_gpt2cu\.py)$")


def headings(file):
    """The anchors of a Markdown file, as GitHub makes them."""
    titles = re.findall(r"^#+ +(.*)$", file.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def tree(root):
    for top in FOLDERS + (".ci",):
        for folder, _, names in os.walk(root / top):
            for name in names:
                yield (pathlib.Path(folder) / name).relative_to(root).as_posix()
    yield from (path.name for path in root.iterdir() if path.is_file())


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
    files = sorted(tree(root))
    known = set(files)

    def exists(name):
        return name in known or ("*" in name and bool(fnmatch.filter(files, name)))

    seen, problems = 0, []
    for file in files:
        if pathlib.Path(file).suffix not in READ or file.startswith(NOT_READ):
            continue
        folder = pathlib.PurePosixPath(file).parent
        is_doc = file.endswith(".md")
        for number, line in enumerate((root / file).read_text(errors="replace").splitlines(), 1):
            for name in FROM_THE_ROOT.findall(line):
                seen += 1
                if not (exists(name) or exists((folder / name).as_posix()) or ELSEWHERE.match(name)):
                    problems.append(f"{file}:{number} names {name}, which does not exist")
            if not is_doc:
                continue
            for name, heading in LINK.findall(line):
                target = root / os.path.normpath(folder / name) if name else root / file
                seen += 1
                if not target.exists():
                    problems.append(f"{file}:{number} links to {name}, which does not exist")
                elif heading and heading not in headings(target):
                    problems.append(f"{file}:{number} links to the heading {heading} of {target.name}, which does not exist")
            for name in CODE_SPAN.findall(line):
                ends = [path for path in files if fnmatch.fnmatch("/" + path, "*/" + name)]
                if not ends and not ELSEWHERE.match(name):
                    problems.append(f"{file}:{number} names {name}, which is the end of no file's path")
    assert seen > 100, f"only {seen} paths found under {root}: the reader is broken"
    for problem in problems:
        print(problem)
    if problems:
        sys.exit(f"{len(problems)} paths do not exist")


if __name__ == "__main__":
    main()
