"""Runs plan_instructions.cpp on a CPU with AMX and AVX512-BF16 that Bochs emulates, for developers whose own CPU has neither.

    python tests/emulator/in_bochs.py [--bochs bochs] [--cpu sapphire_rapids] [--share FOLDER]

It needs Bochs 3.0 with its BIOS images and its display library "term" (Debian 13: bochs, bochs-term, bochsbios, vgabios;
3.1 divides some 64-bit numbers wrongly), isolinux and genisoimage (Debian: isolinux, syslinux-common, genisoimage), and g++
with static libraries. Linux doesn't hand out AMX's tiles there, since Bochs doesn't emulate XFD; so the program is started by
bare_machine.cpp, without an operating system. Its output is printed here. It also runs on this machine, and the losses
of both must agree. Takes about two minutes.
"""
import argparse
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ["engine/trainer/plan/*.cpp", "engine/trainer/kernels/*_rows.cpp", "tests/emulator/plan_instructions.cpp"]
# The choice among products is timed, which means nothing here, and kept in a file, which needs an operating system.
LEFT_OUT = {"product_choice.cpp"}
# As CMakeLists.txt compiles the plan; without a red zone, since faults use the program's stack.
FLAGS = ["-std=c++20", "-O3", "-DNDEBUG", "-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math", "-mno-red-zone"]
BARE_FLAGS = ["-std=c++20", "-O1", "-ffreestanding", "-fno-exceptions", "-fno-rtti", "-fno-pie", "-fno-stack-protector",
              "-fcf-protection=none", "-mno-red-zone", "-mgeneral-regs-only"]
LAYOUT = """SECTIONS {
  . = 0x1000000;
  .text : { *(.start) *(.text*) *(.rodata*) *(.data*) }
  .bss : { *(.bss*) *(COMMON) }
  bss_end = .;
  /DISCARD/ : { *(.note*) *(.comment) *(.eh_frame*) }
}
"""
END = re.compile(r"end of the checks: (\d+) checks, (\d+) failed")


def compile_program(folder):
    objects = []
    for source in sorted(file for pattern in SOURCES for file in REPOSITORY.glob(pattern) if file.name not in LEFT_OUT):
        objects.append(folder / f"{len(objects)}.o")
        subprocess.run(["g++", *FLAGS, f"-I{REPOSITORY}", "-c", source, "-o", objects[-1]], check=True)
    program = folder / "plan_instructions"
    subprocess.run(["g++", "-static", "-no-pie", "-pthread", *objects, "-o", program], check=True)
    return program


def make_disc(folder, program, arguments):
    tree = folder / "disc"
    tree.mkdir()
    subprocess.run(["g++", *BARE_FLAGS, f'-DPROGRAM="{program}"', "-c", REPOSITORY / "tests/emulator/bare_machine.cpp",
                    "-o", folder / "bare.o"], check=True)
    (folder / "layout").write_text(LAYOUT)
    subprocess.run(["ld", "-T", folder / "layout", "-e", "header", "--oformat", "binary", "-o", tree / "program",
                    folder / "bare.o"], check=True)
    for name in ("isolinux.bin", "ldlinux.c32", "mboot.c32", "libcom32.c32"):
        found = [file for place in arguments.isolinux for file in pathlib.Path(place).rglob(name)]
        if not found:
            sys.exit(f"{name} was found in none of {', '.join(arguments.isolinux)}; install isolinux and syslinux-common, "
                     "or name their folders with --isolinux")
        shutil.copy(found[0], tree)
    (tree / "isolinux.cfg").write_text("DEFAULT program\nPROMPT 0\nTIMEOUT 1\nLABEL program\n"
                                       "  KERNEL mboot.c32\n  APPEND program\n")
    disc = folder / "disc.iso"
    subprocess.run([arguments.genisoimage, "-quiet", "-o", disc, "-b", "isolinux.bin", "-c", "boot.cat", "-no-emul-boot",
                    "-boot-load-size", "4", "-boot-info-table", tree], check=True)
    return disc


def start(folder, disc, arguments):
    """Bochs, which wants a terminal."""
    settings = folder / "settings"
    settings.write_text(f"""cpu: model={arguments.cpu}, count=1, ips=100000000
memory: guest=1024, host=1024
romimage: file={arguments.share}/BIOS-bochs-latest
vgaromimage: file={arguments.share}/VGABIOS-lgpl-latest
ata0-master: type=cdrom, path={disc}, status=inserted
boot: cdrom
display_library: term
com1: enabled=1, mode=file, dev={folder}/printed
log: {folder}/log
panic: action=fatal
""")
    ours, theirs = pty.openpty()
    bochs = subprocess.Popen([arguments.bochs, "-q", "-f", settings], stdin=theirs, stdout=theirs, stderr=theirs,
                             env=os.environ | {"TERM": "xterm"})
    os.close(theirs)

    def drain():
        try:
            while os.read(ours, 65536):
                pass
        except OSError:  # the terminal's other side is closed
            pass

    threading.Thread(target=drain, daemon=True).start()
    return bochs


def emulate(folder, disc, arguments):
    """What the program printed there."""
    bochs = start(folder, disc, arguments)
    shown, end = 0, time.monotonic() + 60 * arguments.minutes
    try:
        while True:
            ended = bochs.poll() is not None
            printed = folder / "printed"
            text = printed.read_text(errors="replace") if printed.exists() else ""
            lines = text[shown:text.rfind("\n") + 1]
            print(lines, end="", flush=True)
            shown += len(lines)
            if END.search(text[:shown]):
                return text
            if ended or time.monotonic() > end:
                log = folder / "log"
                said = log.read_text(errors="replace").splitlines()[-20:] if log.exists() else []
                sys.exit("\n".join([text[shown:], *said, f"Bochs ended with status {bochs.returncode}" if ended else
                                    f"no end after {arguments.minutes:g} minutes"]))
            time.sleep(1)
    finally:
        bochs.kill()
        bochs.wait()


def losses(text):
    return [[float(number) for number in line.split("losses ")[1].split()] for line in text.splitlines()
            if "float32: losses " in line]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bochs", default="bochs")
    parser.add_argument("--cpu", default="sapphire_rapids", help="bochs --help cpu lists them")
    parser.add_argument("--share", default="/usr/share/bochs", help="folder of the BIOS images")
    parser.add_argument("--isolinux", action="append", default=[], help="folder of isolinux.bin or of mboot.c32")
    parser.add_argument("--genisoimage", default="genisoimage")
    parser.add_argument("--minutes", type=float, default=30)
    arguments = parser.parse_args()
    arguments.isolinux = arguments.isolinux or ["/usr/lib/ISOLINUX", "/usr/lib/syslinux/modules/bios"]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program = compile_program(folder)
        here = subprocess.run([program], capture_output=True, text=True, check=True).stdout
        print("On this machine:\n" + here + "In Bochs:", flush=True)
        there = emulate(folder, make_disc(folder, program, arguments), arguments)
    pairs = [pair for both in zip(losses(here), losses(there), strict=True) for pair in zip(*both, strict=True)]
    apart = max(abs(a - b) for a, b in pairs)
    print(f"{len(pairs)} float32 losses of both machines: at most {apart:.1e} apart")
    sys.exit(0 if int(END.search(there)[2]) == 0 and apart < 1e-4 and "AMX" in there else 1)


if __name__ == "__main__":
    main()
