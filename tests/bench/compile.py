"""The engine's compiled steps against the best that PyTorch in Python has, on the same model, in turns, one process each.

    python tests/bench/compile.py build/engine_run [--rounds 3] [--steps 40] [--threads N] [--model nano] [--autocast bf16]
    python tests/bench/compile.py build/engine_run --cpu-time --threads 1 ...

The engine: its baseline, `compile` and `compile-max`. Python: eager, torch.compile, and torch.compile with max-autotune,
each with the fused AdamW. Ratios are of the same round, and "best" is Python's fastest side of that round. What
`--cpu-time` is for: see throughput.py, whose sides these are.
"""

import argparse
import json
import statistics

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
    options = parser.parse_args()
    recipe = dict(MODELS[options.model], steps=options.steps, threads=options.threads, device="cpu",
                  autocast=options.autocast, cpu_time=options.cpu_time)
    recipe |= {name: value for name, value in {"batch": options.batch, "seq": options.seq}.items() if value}
    sides = [side for side in SIDES if side not in options.without]
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
        print(f"{side}: {statistics.median(ms[side]):.2f} ms; throughput over PyTorch's best {range_of(against)}")
    print(json.dumps({"command": vars(options), "ms": ms}))


if __name__ == "__main__":
    main()
