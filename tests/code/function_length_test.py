#!/usr/bin/env python3
"""Prints the ten longest C++ functions of the tree and fails if one is longer than MOST lines.

A function's length counts from the line of its name to its closing brace. Lambdas count as lines of the function that
holds them. Usage: function_length_test.py [ROOT]
"""
import pathlib
import re
import sys

MOST = 80
FOLDERS = ("app", "engine", "storage", "tests")

# Comments and literals become blanks of the same shape, so that their braces don't count and line numbers stay the same.
HIDDEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^()\\ ]{0,16})\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
NOT_A_FUNCTION = re.compile(r"^\s*(?:inline\s+)?(?:namespace|class|struct|union|enum|extern)\b")
# The text before a body: `name(...)`, then qualifiers, a trailing return type or a list of initialised members.
HEAD = re.compile(r"([~\w:<>]+|operator\s*[^\s\w(]+|operator\s*\(\))\s*\(")


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def functions(text):
    """Yields (name, first line, number of lines) of every function that is not inside another one."""
    text = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", blank, HIDDEN.sub(blank, text), flags=re.MULTILINE)
    scopes = []  # for every open brace: the function that it opens as (name, line), or None
    begin = 0    # of the declaration that is being read
    inside = 0   # open braces within a function
    brackets = 0
    for i, c in enumerate(text):
        if inside:
            if c == "{":
                inside += 1
            elif c == "}":
                inside -= 1
                if inside == 0:
                    name, first = scopes.pop()
                    yield name, first, text.count("\n", 0, i) + 1 - first + 1
                    begin = i + 1
            continue
        if c in "([":
            brackets += 1
        elif c in ")]":
            brackets -= 1
        elif c == ";" and brackets == 0:
            begin = i + 1
        elif c == "{" and brackets == 0:
            declaration = text[begin:i]
            head = None if NOT_A_FUNCTION.match(declaration) else HEAD.search(declaration)
            if head and not declaration.rstrip().endswith("="):
                # `Type(a) : member_{a} {`: a brace behind a member's name initialises it.
                if re.search(r"\)\s*(?:noexcept\s*)?:[^:]", declaration) and re.search(r"\w\s*$", declaration):
                    depth, j = 1, i + 1
                    while depth:
                        depth += {"{": 1, "}": -1}.get(text[j], 0)
                        j += 1
                    text = text[:i] + re.sub(r"[^\n]", ".", text[i:j]) + text[j:]
                    continue
                line = text.count("\n", 0, begin + head.start()) + 1
                scopes.append((head.group(1), line))
                inside = 1
            else:
                scopes.append(None)
                begin = i + 1
        elif c == "}" and brackets == 0:
            if scopes:
                scopes.pop()
            begin = i + 1


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
    found = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".cpp", ".h", ".cu", ".cuh"):
                for name, line, lines in functions(path.read_text()):
                    found.append((lines, f"{path.relative_to(root)}:{line}", name))
    assert len(found) > 1000, f"only {len(found)} functions found under {root}: the reader is broken"
    found.sort(reverse=True)
    for lines, place, name in found[:10]:
        print(f"{lines:5}  {place}  {name}")
    too_long = [place for lines, place, name in found if lines > MOST]
    if too_long:
        sys.exit(f"{len(too_long)} functions are longer than {MOST} lines: {', '.join(too_long)}")


if __name__ == "__main__":
    main()
