#!/usr/bin/env python3
"""Compiles engine/kernels by nvcc, where it is installed, with every warning as an error. NVRTC compiles them in the program.

Usage: kernels_nvcc_test.py [ROOT]
"""
import concurrent.futures
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
CARDS = ("sm_80", "sm_90", "sm_100")


def compile_all(nvcc, root, source, card, half):
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run([nvcc, f"-arch={card}", f"-I{root}", f"-DHALF={half}", "-std=c++17", "-Werror", "all-warnings", "-cubin",
                               "-o", f"{folder}/kernels.cubin", source], capture_output=True, text=True)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if not nvcc:
        print("skipped: nvcc isn't installed")
        sys.exit(SKIPPED)
    known = subprocess.run([nvcc, "--list-gpu-code"], capture_output=True, text=True).stdout.split()
    cards = [card for card in CARDS if card in known]
    kernels = sorted((root / "engine" / "kernels").glob("*.cu"))
    assert kernels and cards, (kernels, known)
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        source = pathlib.Path(folder) / "kernels.cu"
        source.write_text("".join(f'#include "engine/kernels/{kernel.name}"\n' for kernel in kernels))
        runs = [pool.submit(compile_all, nvcc, root, source, card, half) for card in cards for half in (0, 1)]
        failures = [run.result().stderr for run in runs if run.result().returncode != 0]
    print(f"{len(kernels)} files for {', '.join(cards)}, fp32 and bf16")
    sys.exit("\n".join(failures) if failures else 0)


if __name__ == "__main__":
    main()
