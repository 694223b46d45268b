"""Which sources are compiled together: units.py ROOT MOST_LINES SOURCE... prints a unit's number for each source.

Reading headers and compiling their templates takes longer than our own code does, so a library is a few large units. Sources of
a unit see each other's file-local names. So two that have the same one, or one that the other's headers declare, are in
different units. clang-format puts what counts here at the beginning of a line. Folders of storage are apart from each other:
the trainer takes some of them, and must not need SQLite, nor be twice as large.
"""
import functools
import pathlib
import re
import sys

SKIPPED = re.compile(r'(?:using namespace|//|#|\}|public|private|protected|extern|template|\[\[|else|return|static_assert)')
TYPE = re.compile(r"(?:struct|class|enum class|enum|union|using(?! namespace)|namespace|concept) (\w+)")
NAME = re.compile(r"[\w:<>,&*. \[\]()]*?[ &*](~?\w+|operator\S+?)(?:\[[^\]]*\])?( = |\{|;|\()")
ALIAS = re.compile(r"(using|namespace) \w+ = .*;")


def arity(text):
    """How few and how many arguments a parameter list takes, from behind its bracket."""
    depth, commas, defaults, seen = 0, 0, 0, False
    for at, letter in enumerate(text):
        if letter in "([{<":
            depth += 1
        elif letter in ")]}>" and not (letter == ">" and text[at - 1] == "-"):
            if letter == ")" and depth == 0:
                break
            depth -= 1
        elif letter == "," and depth == 0:
            commas += 1
        elif letter == "=" and depth == 0:
            defaults += 1
        seen = seen or not letter.isspace()
    most = commas + 1 if seen else 0
    return most - defaults, most


@functools.cache
def names_in(file):
    """The names at the beginning of its lines: name -> what it is, apart for those that only this file sees."""
    text = file.read_text()
    local, public, is_local, start = {}, {}, False, 0
    for line in text.splitlines(keepends=True):
        end = start + len(line)
        if line.startswith("namespace {"):
            is_local = True
        elif line.startswith("}  // namespace\n"):
            is_local = False
        elif line[0].isalpha():
            own = re.sub(r"^template <.*?> (?=\w)", "", line)
            static = own.startswith("static ")
            found = TYPE.match(own)
            if found:
                kind = own.strip() if ALIAS.match(own) else "type"
                (local if is_local or (ALIAS.match(own) and file.suffix == ".cpp") else public)[found.group(1)] = kind
            elif not SKIPPED.match(own) and (found := NAME.match(own)):
                kind = "value" if found.group(2) != "(" else arity(text[start + len(line) - len(own) + found.end():])
                (local if is_local or static else public).setdefault(found.group(1), kind)
        start = end
    # A function that is passed on as a value has to be the only one of its name.
    passed_on = set(re.findall(r"[(,=&] *(\w+)\b(?! *[(\[.<]| \w)", text))
    return {name: "value" if isinstance(kind, tuple) and name in passed_on else kind for name, kind in local.items()}, public


def headers_of(root):
    @functools.cache
    def included(file):
        return frozenset(root / name for name in re.findall(r'^#include "([^"]+)"', file.read_text(), re.MULTILINE)
                         if (root / name).is_file())

    def closure(file):
        seen, open_ends = set(), [file]
        while open_ends:
            for header in included(open_ends.pop()) - seen:
                seen.add(header)
                open_ends.append(header)
        return seen
    return closure


def clash(one, other):
    """Whether two things of one name can't be in one unit."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return one[0] <= other[1] and other[0] <= one[1]
    return one != other or not isinstance(one, str) or one in ("type", "value")


def main(root, most_lines, sources):
    root = pathlib.Path(root)
    closure = headers_of(root)
    units = []  # [lines, local names, declared names, folder of storage]
    for source in sources:
        file = root / source
        local = names_in(file)[0]
        declared = dict(names_in(file)[1])
        path = file.relative_to(root).parts if root in file.parents else ()
        folder = path[:-1][:2] if path[:1] == ("storage",) else ()
        for header in closure(file):
            for name, kind in names_in(header)[1].items():
                declared.setdefault(name, kind)
        lines = file.read_text().count("\n")

        def fits(unit):
            return (unit[0] + lines <= most_lines and unit[3] == folder and not any(name in unit[1] and clash(kind, unit[1][name]) for name, kind in local.items()) and
                    not any(name in theirs and (isinstance(kind, tuple) or clash(kind, theirs[name]))  # it may hide theirs
                            for ours, theirs in ((local, unit[2]), (unit[1], declared)) for name, kind in ours.items()))
        number = next((number for number, unit in enumerate(units) if fits(unit)), len(units))
        if number == len(units):
            units.append([0, {}, {}, folder])
        units[number][0] += lines
        units[number][1].update(local)
        units[number][2].update(declared)
        print(number)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
