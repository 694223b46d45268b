"""Writes libraries to link against that have only glibc's symbols of an old version: old_glibc.py COMPILER VERSION FOLDER

A program linked against the compiler's own glibc asks for its newest symbols (pow@GLIBC_2.29) and doesn't start where
glibc is older. For each library of glibc this writes one with the same name and no code, in which every symbol has its
newest version that is at most VERSION. A symbol that glibc got later is missing, so linking fails unless
packaging/old_glibc.c defines it.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

# Since 2.34 all but the mathematics and the loader are in libc. The old names are written too, without symbols: an older
# glibc has them in these libraries, so the program has to name them.
LIBRARIES = {"c": "libc.so.6", "m": "libm.so.6", "pthread": "libpthread.so.0", "dl": "libdl.so.2", "util": "libutil.so.1",
             "rt": "librt.so.1"}
# The loader's two symbols count as libc's: a program that named the loader would get its malloc there where it is old.
OF_LOADER = ("__tls_get_addr", "__stack_chk_guard")
LOADERS = ("ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1")


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def number(version):
    return tuple(map(int, version.split(".")))


def symbols_of(compiler, soname, newest):
    """Name -> (type, size, version), of symbols that were there in glibc `newest`; none if there is no such library."""
    library = output_of(compiler, f"-print-file-name={soname}").strip()
    if library == soname:
        return {}
    found = {}
    for line in output_of("readelf", "-W", "--dyn-syms", library).splitlines():
        match = re.match(r"\s*\d+: [0-9a-f]+\s+(\w+) (FUNC|IFUNC|OBJECT|NOTYPE)\s+(?:GLOBAL|WEAK|UNIQUE) +DEFAULT +"
                         r"(?!UND)\w+ (\w+)@@?GLIBC_([0-9.]+)$", line)
        if not match:
            continue
        size, kind, name, version = match.groups()
        if number(version) <= number(newest) and (name not in found or number(version) > number(found[name][2])):
            found[name] = (kind, int(size, 0), version)
    return found


def write_library(compiler, file, soname, symbols):
    text, nodes = [".text"], {}
    for name, (kind, size, version) in sorted(symbols.items()):
        nodes.setdefault(version, None)
        label = f"stub_{name}"
        if kind == "OBJECT":
            text += [".data", f".globl {label}", f".type {label}, %object", f".size {label}, {size}", f"{label}: .skip {max(size, 1)}",
                     ".text"]
        else:
            text += [f".globl {label}", f".type {label}, %function", f"{label}: .skip 4"]
        text.append(f".symver {label}, {name}@@GLIBC_{version}, remove")
    with tempfile.TemporaryDirectory() as folder:
        source, script = pathlib.Path(folder) / "stub.s", pathlib.Path(folder) / "versions"
        source.write_text("\n".join(text) + '\n.section .note.GNU-stack,"",%progbits\n')
        script.write_text("".join(f"GLIBC_{version} {{ }};\n" for version in sorted(nodes, key=number)))
        options = [f"-Wl,--version-script={script}"] if nodes else []
        subprocess.run([compiler, "-shared", "-nostdlib", "-o", str(file), f"-Wl,-soname,{soname}", *options, str(source)], check=True)


def main():
    compiler, newest, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    for short, soname in LIBRARIES.items():
        symbols = symbols_of(compiler, soname, newest) if short in "cm" else {}
        if short == "c":
            for loader in LOADERS:
                symbols |= {name: symbol for name, symbol in symbols_of(compiler, loader, newest).items() if name in OF_LOADER}
        write_library(compiler, folder / f"lib{short}.so", soname, symbols)


if __name__ == "__main__":
    main()
