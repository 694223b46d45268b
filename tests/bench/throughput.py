"""The engine against PyTorch in Python, eager, on the same model: milliseconds a step, in turns, one process each.

    python tests/bench/throughput.py build/engine_run [--rounds 5] [--steps 30] [--threads N] [--model nano]

Used by hand; a quiet machine is needed for figures worth quoting.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

MODELS = {
    "nano": dict(layers=4, heads=4, d_model=128, vocab=256, batch=12, seq=64, lr=1e-3, tied_head=False, init="pytorch"),
    "gpt2": dict(layers=12, heads=12, d_model=768, vocab=50257, batch=4, seq=64, lr=3e-4, tied_head=True, init="gpt2"),
}


def python_steps(recipe):
    """The baseline as the engine has it: explicit attention, AdamW tensor by tensor. Same timed section."""
    import torch

    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "parity"))
    from gpt2 import Gpt2

    torch.set_num_threads(recipe["threads"])
    torch.manual_seed(1337)
    model = Gpt2(recipe["layers"], recipe["heads"], recipe["d_model"], recipe["vocab"], recipe["seq"],
                 tied=recipe["tied_head"])
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.normal_(0.0, 0.02)
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe["lr"], weight_decay=0.01, foreach=False)
    tokens = torch.randint(256, (recipe["steps"], recipe["batch"], recipe["seq"] + 1))
    dt_ms = []
    for step in range(recipe["steps"]):
        started = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = model(tokens[step, :, :-1].contiguous(), tokens[step, :, 1:].contiguous())
        loss.backward()
        optimizer.step()
        dt_ms.append((time.perf_counter() - started) * 1e3)
        loss.item()
    return dt_ms


def run_engine(program, recipe):
    output = subprocess.run([program, json.dumps(recipe)], check=True, capture_output=True, text=True).stdout
    lines = [json.loads(line) for line in output.splitlines()]
    if lines[-1].get("status") != "finished":
        sys.exit(f"the engine failed: {lines[-1]}")
    return [line["dt_ms"] for line in lines if "dt_ms" in line]


def run_python(recipe):
    command = [sys.executable, __file__, "--python-side", json.dumps(recipe)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", help="engine_run of the build")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--model", choices=MODELS, action="append")
    parser.add_argument("--python-side", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.python_side:
        print(json.dumps(python_steps(json.loads(options.python_side))))
        return
    if not options.program:
        parser.error("which program? (engine_run of the build)")

    print("command:", " ".join(sys.argv))
    for name in options.model or MODELS:
        recipe = dict(MODELS[name], steps=options.steps, threads=options.threads, device="cpu")
        warm = max(1, options.steps // 5)
        engine, python, ratios = [], [], []
        for round_number in range(options.rounds):
            sides = [lambda: run_engine(options.program, recipe), lambda: run_python(recipe)]
            if round_number % 2:  # A B, B A, ...: a machine that slows down favours neither
                python_ms, engine_ms = (statistics.median(side()[warm:]) for side in reversed(sides))
            else:
                engine_ms, python_ms = (statistics.median(side()[warm:]) for side in sides)
            engine.append(engine_ms)
            python.append(python_ms)
            ratios.append(python_ms / engine_ms)
            print(f"  {name} round {round_number + 1}: engine {engine_ms:.2f} ms, python {python_ms:.2f} ms", flush=True)
        print(f"{name}: engine {statistics.median(engine):.2f} ms, python {statistics.median(python):.2f} ms, "
              f"engine's throughput is {statistics.median(ratios):.3f} of python's "
              f"(rounds {min(ratios):.3f} to {max(ratios):.3f})", flush=True)


if __name__ == "__main__":
    main()
