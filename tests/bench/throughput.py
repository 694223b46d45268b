"""The engine against PyTorch in Python on the same model: milliseconds a step, in turns, one process each.

    python tests/bench/throughput.py build/engine_run [--rounds 5] [--steps 30] [--threads N] [--model nano]
    python tests/bench/throughput.py build/engine_run --compile [--autocast bf16] ...

The first holds both against each other as they are; the second what the engine's `compile` stage buys against what
torch.compile(model) buys, four sides in turns. Used by hand; a quiet machine is needed for figures worth quoting. On a
busy one `--cpu-time` counts the CPU time of the process instead of the clock: take one thread (`--threads 1`) with it,
since threads that wait for each other count too.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

MODELS = {
    "nano": dict(layers=4, heads=4, d_model=128, vocab=256, batch=12, seq=64, lr=1e-3, tied_head=False, init="pytorch"),
    "gpt2": dict(layers=12, heads=12, d_model=768, vocab=50257, batch=4, seq=64, lr=3e-4, tied_head=True, init="gpt2"),
}


def warm_up(recipe):
    return max(2, recipe["steps"] // 5)


def python_steps(recipe):
    """The engine's baseline: explicit attention, AdamW tensor by tensor. Same timed section.
    With compile, torch.compile of the model, which leaves the optimiser as it is, as the stage does on a CPU."""
    import torch

    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "parity"))
    from gpt2 import Gpt2

    torch.set_num_threads(recipe["threads"])
    torch.manual_seed(1337)
    model = Gpt2(recipe["layers"], recipe["heads"], recipe["d_model"], recipe["vocab"], recipe["seq"],
                 flash=recipe.get("attention") == "scaled-dot-product", tied=recipe["tied_head"])
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.normal_(0.0, 0.02)
    fused = recipe.get("optimizer") == "fused-adamw"
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe["lr"], weight_decay=0.01, fused=fused,
                                  foreach=None if fused else False)
    compiled = {"off": lambda: model, "on": lambda: torch.compile(model),
                "max": lambda: torch.compile(model, mode="max-autotune")}[recipe["compile"]]()
    tokens = torch.randint(256, (recipe["steps"], recipe["batch"], recipe["seq"] + 1))
    now = time.process_time if recipe["cpu_time"] else time.perf_counter
    dt_ms = []
    for step in range(recipe["steps"]):
        started = now()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=recipe["autocast"] == "bf16"):
            loss = compiled(tokens[step, :, :-1].contiguous(), tokens[step, :, 1:].contiguous())
        loss.backward()
        optimizer.step()
        dt_ms.append((now() - started) * 1e3)
        loss.item()
    return dt_ms


def run_engine(program, recipe):
    """Milliseconds of each step after the first fifth; for CPU time only their mean is measurable from outside."""
    def run(steps):
        before = os.times()
        lines = subprocess.run([program, json.dumps(dict(recipe, steps=steps))], check=True, capture_output=True,
                               text=True).stdout.split("\n")
        after = os.times()
        lines = [line for line in map(json.loads, filter(None, lines)) if line]
        if lines[-1].get("status") != "finished":
            sys.exit(f"the engine failed: {lines[-1]}")
        cpu_ms = (after.children_user + after.children_system - before.children_user - before.children_system) * 1e3
        return cpu_ms, [line["dt_ms"] for line in lines if "dt_ms" in line]

    few = warm_up(recipe)
    cpu_ms, dt_ms = run(recipe["steps"])
    if recipe["cpu_time"]:
        worked = lambda steps: steps + min(5, steps // 10)  # the engine takes a few more, to see their operators
        return [(cpu_ms - run(few)[0]) / (worked(recipe["steps"]) - worked(few))]
    return dt_ms[few:]


def run_python(recipe):
    command = [sys.executable, __file__, "--python-side", json.dumps(recipe)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(printed.rstrip().rsplit("\n", 1)[-1])[warm_up(recipe):]  # max-autotune prints tables before it


def range_of(values):
    return f"{statistics.median(values):.3f} (rounds {min(values):.3f} to {max(values):.3f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", help="engine_run of the build")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--model", choices=MODELS, action="append")
    parser.add_argument("--autocast", choices=["off", "bf16"], default="off")
    parser.add_argument("--compile", action="store_true", help="what compiling buys on either side")
    parser.add_argument("--cpu-time", action="store_true", help="CPU time instead of the clock, for a busy machine")
    parser.add_argument("--python-side", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.python_side:
        print(json.dumps(python_steps(json.loads(options.python_side))))
        return
    if not options.program:
        parser.error("which program? (engine_run of the build)")

    print("command:", " ".join(sys.argv))
    engine = lambda recipe: run_engine(options.program, recipe)
    sides = {"engine": (engine, "off"), "python": (run_python, "off")}
    if options.compile:
        sides |= {"engine, compile": (engine, "on"), "python, torch.compile": (run_python, "on")}
    for name in options.model or MODELS:
        recipe = dict(MODELS[name], steps=options.steps, threads=options.threads, device="cpu", autocast=options.autocast,
                      cpu_time=options.cpu_time)
        ms = {side: [] for side in sides}
        for round_number in range(options.rounds):
            turn = list(sides)
            if round_number % 2:  # A B, B A, ...: a machine that slows down favours neither
                turn.reverse()
            for side in turn:
                run, compiled = sides[side]
                ms[side].append(statistics.median(run(dict(recipe, compile=compiled))))
            print(f"  {name} round {round_number + 1}: " + ", ".join(f"{side} {ms[side][-1]:.2f} ms" for side in sides),
                  flush=True)
        ratios = lambda over, under: range_of([a / b for a, b in zip(ms[over], ms[under])])
        print(f"{name}: " + ", ".join(f"{side} {statistics.median(ms[side]):.2f} ms" for side in sides))
        print(f"{name}: engine's throughput over python's: {ratios('python', 'engine')}", flush=True)
        if options.compile:
            print(f"{name}: compile buys the engine {ratios('engine', 'engine, compile')}, "
                  f"torch.compile python {ratios('python', 'python, torch.compile')}, "
                  f"compiled engine's throughput over compiled python's: "
                  f"{ratios('python, torch.compile', 'engine, compile')}", flush=True)


if __name__ == "__main__":
    main()
