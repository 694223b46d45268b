"""The engine's compiled steps against the best that PyTorch in Python has, on the same model, in turns, one process each.

    python tests/bench/compile.py build/engine_run [--rounds 3] [--steps 40] [--threads N] [--model nano] [--autocast bf16]
    python tests/bench/compile.py build/engine_run --cpu-time --threads 1 ...

The engine: its baseline, `compile` and `compile-max`. Python: eager, torch.compile, and torch.compile with max-autotune,
each with the fused AdamW. Ratios are of the same round, and "best" is Python's fastest side of that round. What
`--cpu-time` is for: see throughput.py, whose sides these are.

The floor is the least time that a step can take: its products and its attention's triangle at the peak of the probe,
and the optimiser's bytes at its bandwidth. The gap is the step over the floor. The peak is measured before the rounds
by the `stepladder` beside the program (`doctor --probe`, the fastest sample, as this is a bound), or given: `--peak
TFLOPS --bandwidth GB_S`. A model whose tensors stay in a cache can be faster than its bytes at the memory's bandwidth.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

from throughput import MODELS, range_of, run_engine, run_python

FUSED = {"optimizer": "fused-adamw"}
SIDES = {
    "engine": {"compile": "off"},
    "compile": {"compile": "on", **FUSED},
    "compile-max": {"compile": "max"},
    "eager": {"compile": "off", **FUSED},
    "torch.compile": {"compile": "on", **FUSED},
    "max-autotune": {"compile": "max", **FUSED},
}
PYTHON = ("eager", "torch.compile", "max-autotune")


def probed(program, precision):
    """TFLOP/s and GB/s that `doctor --probe` measures; its row goes into a table of its own."""
    with tempfile.TemporaryDirectory() as folder:
        own = dict(os.environ, XDG_DATA_HOME=folder, XDG_CONFIG_HOME=folder)
        command = [str(Path(program).resolve().parent / "stepladder"), "doctor", "--probe", "--json"]
        text = subprocess.run(command, check=True, capture_output=True, text=True, env=own).stdout
    probe = json.loads(text)["probe"]
    peak = next(rate["fastest_tflops"] for rate in probe["peaks"] if rate["precision"] == precision)
    return peak, probe["bandwidth_gb_s"]


def step_work(recipe):
    """Operations and bytes that no step of this recipe can do without. The backward pass takes two products for each of
    the forward one; attention has two (q k^T and p v), of which the triangle counts. AdamW reads weight, gradient and
    two moments, and writes all but the gradient."""
    layers, width, vocab, seq = (recipe[name] for name in ("layers", "d_model", "vocab", "seq"))
    tokens = recipe["batch"] * seq
    matrices = 12 * layers * width ** 2 + vocab * width
    parameters = matrices + seq * width + (0 if recipe["tied_head"] else vocab * width)
    flops = 6 * tokens * matrices + 3 * layers * tokens * 2 * seq * width
    return flops, 28 * parameters


def floor_ms(recipe, peak_tflops, bandwidth_gb_s):
    flops, moved = step_work(recipe)
    return flops / (peak_tflops * 1e9) + moved / (bandwidth_gb_s * 1e6)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="engine_run of the build")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--model", choices=MODELS, default="nano")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--seq", type=int)
    parser.add_argument("--autocast", choices=["off", "bf16"], default="off")
    parser.add_argument("--without", choices=SIDES, action="append", default=[], help="leaves a side out")
    parser.add_argument("--cpu-time", action="store_true", help="CPU time instead of the clock, for a busy machine")
    parser.add_argument("--peak", type=float, help="TFLOP/s of products, instead of the probe's")
    parser.add_argument("--bandwidth", type=float, help="GB/s of the memory, instead of the probe's")
    options = parser.parse_args()
    recipe = dict(MODELS[options.model], steps=options.steps, threads=options.threads, device="cpu",
                  autocast=options.autocast, cpu_time=options.cpu_time)
    recipe |= {name: value for name, value in {"batch": options.batch, "seq": options.seq}.items() if value}
    sides = [side for side in SIDES if side not in options.without]
    peak, bandwidth = options.peak, options.bandwidth
    if not (peak and bandwidth):
        found = probed(options.program, "bf16" if options.autocast == "bf16" else "fp32")
        peak, bandwidth = peak or found[0], bandwidth or found[1]
    floor = floor_ms(recipe, peak, bandwidth)
    print(f"floor {floor:.2f} ms: {peak:.3g} TFLOP/s, {bandwidth:.3g} GB/s", flush=True)
    ms = {side: [] for side in sides}
    for round_number in range(options.rounds):
        for side in sides if round_number % 2 == 0 else sides[::-1]:  # a machine that slows down favours nobody
            own = dict(recipe, **SIDES[side])
            steps = run_python(own) if side in PYTHON else run_engine(options.program, own)
            ms[side].append(statistics.median(steps))
        print(f"round {round_number + 1}: " + ", ".join(f"{side} {ms[side][-1]:.2f} ms" for side in sides), flush=True)
    best = [min(round_ms) for round_ms in zip(*(ms[side] for side in sides if side in PYTHON))]
    for side in sides:
        against = [b / a for a, b in zip(ms[side], best)]
        middle = statistics.median(ms[side])
        print(f"{side}: {middle:.2f} ms, {middle / floor:.2f} of the floor; throughput over PyTorch's best "
              f"{range_of(against)}")
    print(json.dumps({"command": vars(options), "ms": ms, "floor_ms": floor, "peak_tflops": peak,
                      "bandwidth_gb_s": bandwidth}))


if __name__ == "__main__":
    main()
