"""Imports a synthetic trace of known sums and reports time and memory.

    python tests/bench/traces.py [KERNELS]     # default 1,000,000: about a gigabyte of JSON
    python tests/bench/traces.py --keep FILE   # keeps two traces in the project FILE, each with a step of a million slices

Each kernel has an operator, a launch, and a place on one of four streams; a tenth of each slot is idle. The kept ones have
kernels of all kinds and names of all lengths, and one in twenty is shorter in the second: for `desktop_bench profile FILE`.
"""
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

BUILD = pathlib.Path(os.environ.get("STEPLADDER_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build"))
STREAMS, STEPS, SLOT_US = 4, 10, 40
FILLER = json.dumps({"External id": 12345, "Record function id": 0, "Concrete Inputs": ["", "", ""], "Input type": ["float"] * 3,
                     "Input Dims": [[128, 64], [64, 256]], "Ev Idx": 12345, "grid": [128, 4, 1], "block": [256, 1, 1]})[1:-1]


def event(category, name, process, thread, start, duration, more):
    return (f'{{"ph": "X", "cat": "{category}", "name": "{name}", "pid": {process}, "tid": {thread}, "ts": {start:.3f}, "dur": {duration:.3f}, '
            f'"args": {{{more}, {FILLER}}}}},\n')


KINDS = ("sm80_xmma_gemm_f16f16_f32_tn_n_tilesize128x128x32_stage4_warpsize2x2x1", "flash_fwd_splitkv_kernel", "softmax_warp_forward",
         "vectorized_layer_norm_kernel", "GeluCUDAKernelImpl", "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
         "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)", "Memcpy DtoD (Device -> Device)",
         "multi_tensor_apply_kernel<AdamFunctor>", "ncclDevKernel_AllReduce_Sum_f32_RING_LL")


def products_only(i):
    return f"sm80_xmma_gemm_{i % 200}", SLOT_US - 4


def write(path, kernels, steps=STEPS, kernel=products_only):
    """Kernel i is on stream i % 4 in slot i // 4, and has the name and the microseconds that `kernel` says, so every instant's share is known."""
    with open(path, "w") as out:
        out.write('{"schemaVersion": 1, "traceEvents": [\n')
        per_step = kernels // steps
        for step in range(steps):
            begin, length = step * per_step // STREAMS * SLOT_US, per_step // STREAMS * SLOT_US
            out.write(event("user_annotation", f"ProfilerStep#{step}", 1, 1, begin, length, '"a": 1'))
        for i in range(kernels):
            start = i // STREAMS * SLOT_US
            asked = start + (i % STREAMS) * 0.1
            out.write(event("cpu_op", "aten::mm", 1, 1, asked, 0.09, '"a": 1'))
            out.write(event("cuda_runtime", "cudaLaunchKernel", 1, 1, asked + 0.01, 0.05, f'"correlation": {i + 1}'))
            name, duration = kernel(i)
            out.write(event("kernel", name, 0, i % STREAMS, start + 4, duration,
                            f'"device": 0, "stream": {i % STREAMS}, "correlation": {i + 1}'))
        out.write('{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}}]}\n')
    return kernels * (SLOT_US - 4) / 1000


def keep(database):
    """Two traces whose only step has a million slices: a third are kernels, a third operators, a third launches."""
    for name, shortened_us in (("before", 0), ("after", 20)):
        def kernel(i):
            return f"{KINDS[i // 40 % len(KINDS)]}_{i % 50}", SLOT_US - 4 - (shortened_us if i % 20 == 0 else 0)
        with tempfile.TemporaryDirectory(prefix="stepladder-traces-") as folder:
            path = pathlib.Path(folder) / f"{name}.json"
            write(path, 333_332, steps=1, kernel=kernel)
            shown = json.loads(subprocess.run([BUILD / "stepladder", "--db", database, "profile", "import", path, "--json"],
                                              check=True, capture_output=True, text=True).stdout)
        print(f"kept trace {shown['id']}, {name}: {shown['slices']:,} slices, a step of {shown['step_ms']:.0f} ms")


def main():
    if sys.argv[1:2] == ["--keep"] and len(sys.argv) == 3:
        return keep(sys.argv[2])
    kernels = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory(prefix="stepladder-traces-") as folder:
        path = pathlib.Path(folder) / "trace.json"
        busy_ms = write(path, kernels)
        began = time.monotonic()
        shown = json.loads(subprocess.run([BUILD / "stepladder", "--db", f"{folder}/runs.db", "profile", "import", path, "--json"],
                                          check=True, capture_output=True, text=True).stdout)
        seconds = time.monotonic() - began
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        kinds = {each["kind"]: each for each in shown["kinds"]}
        ours = kinds["matrix products"]["busy_ms"] * shown["steps"]
        print(f"{kernels:,} kernels, {path.stat().st_size / 1e6:.0f} MB: {seconds:.1f} s, peak {peak:.0f} MB")
        print(f"busy {ours:.3f} ms, expected {busy_ms:.3f}; share of a step in products {kinds['matrix products']['ms'] / shown['step_ms']:.4f}, "
              f"expected 0.9000")
        if abs(ours / busy_ms - 1) > 0.001 or abs(kinds["matrix products"]["ms"] / shown["step_ms"] - 0.9) > 0.001:
            sys.exit("the sums are wrong")


if __name__ == "__main__":
    main()
