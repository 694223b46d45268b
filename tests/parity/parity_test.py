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
# The stages are changes of the second, which is quick; the third has GPT-2's width and an odd vocabulary like GPT-2's, the
# fourth GPT-2's own and a small width.
NANO = dict(layers=4, heads=4, d_model=128, vocab=256, batch=12, seq=64, lr=1e-3, tied_head=False, init="pytorch")
QUICK = dict(NANO, layers=2, batch=4)
WIDE = dict(layers=1, heads=12, d_model=768, vocab=5021, batch=2, seq=32, lr=3e-4, tied_head=True, init="gpt2")
GPT2_VOCAB = dict(WIDE, layers=2, heads=3, d_model=192, vocab=50257, lr=1e-3)
SEED = dict(NANO, layers=2, batch=4, init="gpt2", model="seed-small", seed=20230310)
MODELS = {"seed": SEED, "nano": NANO, "quick": QUICK, "wide": WIDE, "gpt2 vocabulary": GPT2_VOCAB}

# The change of each stage, by its id; each on the baseline alone.
STAGES = {
    "baseline": {},
    "overfit": {"overfit": True},
    "weight-tying": {"tied_head": True},
    "init-scaling": {"init": "gpt2"},
    "bf16-matmul": {"matmul": "bf16"},
    "bf16": {"autocast": "bf16"},
    "compile": {"compile": "on"},
    "compile-max": {"compile": "max"},
    "flash-attention": {"attention": "scaled-dot-product"},
    "padded-vocab": {"vocab_multiple": 128},
    "gpt3-adamw": {"beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "clip": 1.0},
    "cosine-lr": {"schedule": "cosine", "lr_warmup": 3},
    "decay-groups": {"decay": "matrices", "weight_decay": 0.1},
    "fused-adamw": {"optimizer": "fused-adamw"},
    "grad-accumulation": {"batch": 2, "grad_accum": 2},
}
PLANNED = {"compile": "max", "vocab_multiple": 128, "grad_accum": 2, "batch": 1, "clip": 1.0}
FAST = {"compile": "on", "attention": "scaled-dot-product", "vocab_multiple": 128, "optimizer": "fused-adamw"}
ELSEWHERE = {
    "tf32": "needs a GPU: Trainer.CudaAgreesWithTheCpu",
    "ddp": "tests/cli/ddp_test.py",
}
CASES = (
    [("nano", "baseline", {}), ("seed", "baseline", {}), ("seed", "bf16", STAGES["bf16"])]
    + [("quick", stage, change) for stage, change in STAGES.items() if stage != "padded-vocab"]
    + [("wide", stage, STAGES[stage]) for stage in ("baseline", "compile", "compile-max", "padded-vocab")]
    + [("gpt2 vocabulary", "all systems", FAST),
       # A CPU without bf16 instructions takes ten times as long for it.
       ("gpt2 vocabulary", "all, bf16", dict(FAST, autocast="bf16", batch=1, seq=8)),
       # 352 rows of logits, of which 320 are computed at once.
       ("gpt2 vocabulary", "planned, in pieces", dict(compile="max", batch=11, layers=1, d_model=24, lr=1e-2)),
       ("gpt2 vocabulary", "planned", PLANNED), ("quick", "planned, bf16", dict(PLANNED, autocast="bf16", seq=16))]
)
NOT_WEIGHTS = ("losses", "norms", "inputs", "targets")


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


def optimizer_of(recipe, model):
    fused = recipe.get("optimizer") == "fused-adamw"
    decay = recipe.get("weight_decay", 0.01)
    groups = [{"params": list(model.parameters()), "weight_decay": decay}]
    if recipe.get("decay") == "matrices":
        groups = [{"params": [p for p in model.parameters() if p.dim() >= 2], "weight_decay": decay},
                  {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=recipe["lr"], betas=(recipe.get("beta1", 0.9), recipe.get("beta2", 0.999)),
                             eps=recipe.get("eps", 1e-8), fused=fused, foreach=False if not fused else None)


def schedule_of(recipe, optimizer):
    if recipe.get("schedule") != "cosine":
        return torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)
    climb = recipe["lr_warmup"]
    up = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1 / climb, total_iters=climb - 1)
    down = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS - climb, eta_min=0.1 * recipe["lr"])
    return torch.optim.lr_scheduler.SequentialLR(optimizer, [up, down], milestones=[climb])


def train_in_pytorch(recipe, tensors):
    """Losses and gradient norms (before clipping) of each step."""
    torch.set_float32_matmul_precision("medium" if recipe.get("matmul") == "bf16" else "highest")
    model = Gpt2(recipe["layers"], recipe["heads"], recipe["d_model"], recipe["vocab"], recipe["seq"],
                 flash=recipe.get("attention") == "scaled-dot-product", tied=recipe["tied_head"], variant=recipe.get("model") == "seed-small")
    model.load_state_dict({name: value for name, value in tensors.items() if name not in NOT_WEIGHTS}, strict=True)
    optimizer = optimizer_of(recipe, model)
    schedule = schedule_of(recipe, optimizer)
    losses, norms = [], []
    for inputs, targets in zip(tensors["inputs"], tensors["targets"]):
        optimizer.zero_grad(set_to_none=True)
        total = 0.0
        for micro_inputs, micro_targets in zip(inputs, targets):
            with torch.autocast("cpu", torch.bfloat16, enabled=recipe.get("autocast") == "bf16"):
                loss = model(micro_inputs, micro_targets) / len(inputs)
            loss.backward()
            total += loss.item()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.get("clip") or float("inf")).item())
        optimizer.step()
        schedule.step()
        losses.append(total)
    return losses, norms


def initial_weights_agree(recipe, tensors):
    """Whether every tensor starts as PyTorch's own initialisers would start it, by mean and spread."""
    torch.manual_seed(0)
    model = Gpt2(recipe["layers"], recipe["heads"], recipe["d_model"], recipe["vocab"], recipe["seq"],
                 tied=recipe["tied_head"], variant=recipe.get("model") == "seed-small")
    if recipe["init"] == "gpt2":
        for name, parameter in model.named_parameters():
            if name.endswith(".bias"):
                torch.nn.init.zeros_(parameter)
            elif parameter.dim() == 2:
                onto_residual = name.endswith("c_proj.weight")
                scale = (2 * recipe["layers"]) ** -0.5 if onto_residual else 1.0
                torch.nn.init.normal_(parameter, mean=0.0, std=0.02 * scale)
    for name, parameter in model.named_parameters():
        ours, theirs = tensors[name], parameter.detach()
        spread = max(theirs.std().item(), 1e-12)
        few = 6 / ours.numel() ** 0.5  # six standard errors
        if abs(ours.mean() - theirs.mean()) > 1.5 * few * spread or abs(ours.std() / spread - 1) > 1.5 * few:
            if theirs.std() > 0 or not torch.equal(ours, theirs):
                print(f"FAIL {name} starts with mean {ours.mean():.2e}, std {ours.std():.2e}; "
                      f"PyTorch's with {theirs.mean():.2e}, {theirs.std():.2e}")
                return False
    return True


def main():
    dump = sys.argv[1]
    torch.set_num_threads(1)  # more would only wait for each other while other tests run
    known = subprocess.run([dump, "--stages"], check=True, capture_output=True, text=True).stdout.split()
    failed = set(known) - set(ELSEWHERE) != set(STAGES)
    if failed:
        print(f"FAIL the engine's stages are {known}")
    engine = subprocess.Popen([dump], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for model_name, stage, change in CASES:
        recipe = dict(MODELS[model_name], steps=STEPS, device="cpu", threads=1)
        recipe.update(change)
        with tempfile.TemporaryDirectory() as folder:
            file = f"{folder}/run.safetensors"
            print(json.dumps(recipe), file, sep="\n", file=engine.stdin, flush=True)
            answer = engine.stdout.readline().strip()
            if answer != "done":
                skipped = "cannot be used" in answer  # bf16 products on a CPU without the instructions
                print(f"{'skip' if skipped else 'FAIL'} {model_name:15} {stage:18} {answer}")
                failed |= not skipped
                continue
            tensors = read_safetensors(file)
        losses, norms = train_in_pytorch(recipe, tensors)
        rounded = recipe.get("autocast") == "bf16" or recipe.get("matmul") == "bf16"
        allowed = 2e-2 if rounded else 1e-4
        gap = max(abs(a - b) for a, b in zip(tensors["losses"].tolist(), losses))
        norm_gap = max(abs(a / b - 1) for a, b in zip(tensors["norms"].tolist(), norms))
        # A run that learns nothing would agree with anything.
        learned = losses[-1] < losses[0] - 0.2
        good = len(tensors["losses"]) == STEPS and gap <= allowed and norm_gap <= 10 * allowed and learned
        if stage in ("baseline", "init-scaling"):
            good &= initial_weights_agree(recipe, tensors)
        failed |= not good
        print(f"{'ok  ' if good else 'FAIL'} {model_name:15} {stage:18} largest gap {gap:.1e} (allowed {allowed:.0e}), "
              f"of norms {norm_gap:.1e}, loss {losses[0]:.4f} -> {losses[-1]:.4f}", flush=True)
    engine.communicate()
    sys.exit(failed or engine.returncode != 0)


if __name__ == "__main__":
    main()
