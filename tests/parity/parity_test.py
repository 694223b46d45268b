"""Ten steps of the engine against ten steps of PyTorch: the same first weights, the same batches, the same losses.

    python tests/parity/parity_test.py build/parity_dump
"""

import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy
    import torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

from gpt2 import Gpt2

STEPS = 10
MODELS = {
    "nano": dict(layers=4, heads=4, d_model=128, vocab=256, batch=12, seq=64, lr=1e-3, tied_head=False, init="pytorch"),
    "gpt2, 2 layers": dict(layers=2, heads=12, d_model=768, vocab=50257, batch=2, seq=64, lr=3e-4, tied_head=True, init="gpt2"),
}
STAGES = {
    "baseline": {},
    "flash-attention": {"attention": "scaled-dot-product"},
    "fused-adamw": {"optimizer": "fused-adamw"},
}
TOLERANCE = {"off": 1e-4, "bf16": 2e-2}
# The larger model's bf16 goes with all other stages at once: each of its runs takes about ten seconds.
ALL_STAGES = {"all stages": {"attention": "scaled-dot-product", "optimizer": "fused-adamw"}}


def read_safetensors(path):
    data = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    types = {"F32": numpy.float32, "F64": numpy.float64, "I64": numpy.int64}
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        values = numpy.frombuffer(data[begin:end], dtype=types[entry["dtype"]]).reshape(entry["shape"])
        tensors[name] = torch.from_numpy(values.copy())
    return tensors


def train_in_pytorch(recipe, tensors):
    model = Gpt2(recipe["layers"], recipe["heads"], recipe["d_model"], recipe["vocab"], recipe["seq"],
                 flash=recipe.get("attention") == "scaled-dot-product", tied=recipe["tied_head"])
    weights = {name: value for name, value in tensors.items() if name not in ("losses", "inputs", "targets")}
    model.load_state_dict(weights, strict=True)
    fused = recipe.get("optimizer") == "fused-adamw"
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe["lr"], betas=(0.9, 0.999), eps=1e-8,
                                  weight_decay=0.01, fused=fused, foreach=False if not fused else None)
    losses = []
    for inputs, targets in zip(tensors["inputs"], tensors["targets"]):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=recipe["autocast"] == "bf16"):
            loss = model(inputs, targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    dump = sys.argv[1]
    torch.set_num_threads(1)  # more would only wait for each other beside other tests
    failed = False
    for model_name, shape in MODELS.items():
        for autocast, tolerance in TOLERANCE.items():
            stages = ALL_STAGES if autocast == "bf16" and model_name != "nano" else STAGES
            for stage, change in stages.items():
                recipe = dict(shape, **change, autocast=autocast, steps=STEPS, device="cpu", threads=1)
                with tempfile.TemporaryDirectory() as folder:
                    file = f"{folder}/run.safetensors"
                    subprocess.run([dump, json.dumps(recipe), file], check=True)
                    tensors = read_safetensors(file)
                engine = tensors["losses"].tolist()
                python = train_in_pytorch(recipe, tensors)
                gap = max(abs(a - b) for a, b in zip(engine, python))
                # A run that learns nothing would agree with anything.
                learned = python[-1] < python[0] - 0.2
                good = len(engine) == STEPS and gap <= tolerance and learned
                failed |= not good
                precision = "bf16" if autocast == "bf16" else "fp32"
                print(f"{'ok  ' if good else 'FAIL'} {model_name:15} {precision} {stage:16} largest gap {gap:.1e} "
                      f"(allowed {tolerance:.0e}), loss {python[0]:.4f} -> {python[-1]:.4f}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
