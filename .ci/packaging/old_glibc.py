"""Writes libraries to link against that have only the symbols of an old glibc and libstdc++: old_glibc.py COMPILER VERSION FOLDER

A program linked against the compiler's own glibc asks for its newest symbols (pow@GLIBC_2.29) and doesn't start where
glibc is older. For each library of glibc this writes one with the same name and no code, in which every symbol has its
newest version that is at most VERSION. A symbol that glibc got later is missing, so linking fails unless
.ci/packaging/old_glibc.c defines it. The same for libstdc++, for the libraries that share it with LibTorch: what it got later is
in the compiler's libstdc++.a, which comes after it on the command line.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

# Since 2.34 all but the mathematics and the loader are in libc. The old names are written too, without symbols: an older
# glibc has them in these libraries, so the program has to name them.
LIBRARIES = {"c": "libc.so.6", "m": "libm.so.6", "pthread": "libpthread.so.0", "dl": "libdl.so.2", "util": "libutil.so.1",
             "rt": "librt.so.1", "stdc++": "libstdc++.so.6"}
# Of GCC 8, which RHEL 8 has; LibTorch needs as much.
LIBSTDCXX = {"GLIBCXX": "3.4.24", "CXXABI": "1.3.11"}
# The loader's two symbols count as libc's: a program that named the loader would get its malloc there where it is old.
OF_LOADER = ("__tls_get_addr", "__stack_chk_guard")
LOADERS = ("ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1")


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def number(version):
    return tuple(map(int, version.split(".")))


def symbols_of(compiler, soname, newest):
    """Name -> (type, size, version), of symbols that are no newer than `newest` (prefix -> number) allows; none if there is no
    such library."""
    library = output_of(compiler, f"-print-file-name={soname}").strip()
    if library == soname:
        return {}
    found = {}
    for line in output_of("readelf", "-W", "--dyn-syms", library).splitlines():
        match = re.match(r"\s*\d+: [0-9a-f]+\s+(\w+) (FUNC|IFUNC|OBJECT|NOTYPE|TLS)\s+(?:GLOBAL|WEAK|UNIQUE) +DEFAULT +"
                         r"(?!UND)\w+ (\w+)@@?([A-Z]+)_([0-9.]+)$", line)
        if not match:
            continue
        size, kind, name, prefix, version = match.groups()
        if prefix in newest and number(version) <= number(newest[prefix]) and (name not in found or number(version) > number(found[name][3])):
            found[name] = (kind, int(size, 0), prefix, version)
    return found


def write_library(compiler, file, soname, symbols):
    text, nodes = [".text"], {}
    for name, (kind, size, prefix, version) in sorted(symbols.items()):
        nodes.setdefault((prefix, number(version)), f"{prefix}_{version}")
        label = f"stub_{name}"
        if kind == "TLS":
            text += ['.section .tbss,"awT",%nobits', f".globl {label}", f".type {label}, %tls_object", f".size {label}, {size}",
                     f"{label}: .skip {max(size, 1)}", ".text"]
        elif kind == "OBJECT":
            text += [".data", f".globl {label}", f".type {label}, %object", f".size {label}, {size}", f"{label}: .skip {max(size, 1)}",
                     ".text"]
        else:
            text += [f".globl {label}", f".type {label}, %function", f"{label}: .skip 4"]
        text.append(f".symver {label}, {name}@@{prefix}_{version}, remove")
    with tempfile.TemporaryDirectory() as folder:
        source, script = pathlib.Path(folder) / "stub.s", pathlib.Path(folder) / "versions"
        source.write_text("\n".join(text) + '\n.section .note.GNU-stack,"",%progbits\n')
        script.write_text("".join(f"{nodes[node]} {{ }};\n" for node in sorted(nodes)))
        options = [f"-Wl,--version-script={script}"] if nodes else []
        subprocess.run([compiler, "-shared", "-nostdlib", "-o", str(file), f"-Wl,-soname,{soname}", *options, str(source)], check=True)


def main():
    compiler, newest, folder = sys.argv[1], {"GLIBC": sys.argv[2], **LIBSTDCXX}, pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    for short, soname in LIBRARIES.items():
        symbols = symbols_of(compiler, soname, newest) if short in ("c", "m", "stdc++") else {}
        if short == "c":
            for loader in LOADERS:
                symbols |= {name: symbol for name, symbol in symbols_of(compiler, loader, newest).items() if name in OF_LOADER}
        write_library(compiler, folder / f"lib{short}.so", soname, symbols)


if __name__ == "__main__":
    main()
