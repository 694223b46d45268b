"""GPT-2's step on one GPU: this program's ways to take it and PyTorch's in Python, in turns, on the same shapes and data.

    python tests/bench/gpu.py build/stepladder [--rounds 3] [--batch 16] [--seq 1024] [--steps 20] [--data TEXT]
    python tests/bench/gpu.py build/stepladder --device cpu --tiny        # the same motions without a GPU

All sides: bf16 autocast, scaled-dot-product attention, vocabulary padded to 50304, tied head, fused AdamW (betas 0.9,
0.95), gradients clipped to norm 1. A step's time is taken by CUDA events around: gradients dropped, tokens copied from
pageable memory, forward, backward, clipping, update; then one wait, as the program does it. One round begins with the
program, the next with PyTorch. Each turn is a line of JSON, the last line has medians and ratios of throughput.
"""
import argparse
import json
import statistics
import subprocess
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

OURS = {
    "compile-max": "bf16,compile-max,flash-attention,padded-vocab,gpt3-adamw,fused-adamw",
    "compile": "bf16,compile,flash-attention,padded-vocab,gpt3-adamw,fused-adamw",
    "plain": "bf16,flash-attention,padded-vocab,gpt3-adamw,fused-adamw",
}
THEIRS = ("eager", "graph", "torch.compile")


class Block(nn.Module):
    def __init__(self, heads, width):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc, self.out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (z.view(b, t, self.heads, c // self.heads).transpose(1, 2) for z in self.qkv(self.ln_1(x)).split(c, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.out(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, layers, heads, width, vocab, seq):
        super().__init__()
        self.wte, self.wpe, self.ln_f = nn.Embedding(vocab, width), nn.Embedding(seq, width), nn.LayerNorm(width)
        self.blocks = nn.ModuleList(Block(heads, width) for _ in range(layers))
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, 0.0, 0.02)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe.weight[: tokens.size(1)]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


class Side:
    """PyTorch's step: `eager`, as one CUDA `graph`, or by `torch.compile`."""

    def __init__(self, name, shape, options, text):
        self.device, self.text, self.size = options.device, text, (options.batch, options.seq)
        self.on_gpu, self.graph = options.device == "cuda", None
        torch.manual_seed(1337)
        model = Gpt(*shape).to(self.device)
        self.parameters = list(model.parameters())
        self.optimizer = torch.optim.AdamW(self.parameters, lr=3e-4, betas=(0.9, 0.95), weight_decay=0.01, fused=True,
                                           capturable=name == "graph")
        self.model = torch.compile(model) if name == "torch.compile" else model
        if name == "graph":
            self.capture()

    def batch(self, step):
        count = self.size[0] * self.size[1]
        at = step * count % (len(self.text) - count - 1)
        return (self.text[at + i : at + i + count].view(self.size).clone() for i in (0, 1))

    def work(self, tokens, targets):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self.device, torch.bfloat16):
            loss = self.model(tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimizer.step()

    def capture(self):
        self.places = [torch.zeros(self.size, dtype=torch.int64, device=self.device) for _ in range(2)]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.work(*self.places)
        torch.cuda.current_stream().wait_stream(stream)
        self.optimizer.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.work(*self.places)
        self.graph = graph

    def take(self, batch):
        if not self.graph:
            return self.work(*(each.to(self.device) for each in batch))
        for place, values in zip(self.places, batch):
            place.copy_(values)
        self.graph.replay()

    def step_ms(self, step):
        batch = list(self.batch(step))
        if not self.on_gpu:
            began = time.perf_counter()
            self.take(batch)
            return (time.perf_counter() - began) * 1e3
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        self.take(batch)
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)


def our_ms(options, stages, shape):
    words = [options.program, "train", "--json", "--no-patch", "--progress", "never", "--db", options.db,
             "--device", options.device, "--stages", stages, "--batch", options.batch, "--seq", options.seq,
             "--steps", options.steps, "--warmup", options.skipped, *(["--data", options.data] if options.data else []), *shape]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    run = json.loads(done.stdout)
    if run["fell_back"]:
        raise RuntimeError(run["fell_back"])
    return run["dt_ms_median"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="stepladder")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--seq", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--skipped", type=int, default=4, help="steps of a turn that don't count")
    parser.add_argument("--data", default="", help="a text, taken byte by byte")
    parser.add_argument("--db", default="gpu-bench.db", help="the project that our runs are recorded in")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--without", action="append", default=[], choices=[*OURS, *THEIRS], help="leaves a side out")
    options = parser.parse_args()
    if options.tiny:
        options.batch, options.seq, options.steps, options.skipped = 2, 32, 6, 2
    shape, words = ((2, 2, 64, 50304, options.seq), ["--model", "gpt2", "--layers", 2, "--heads", 2, "--d-model", 64]) \
        if options.tiny else ((12, 12, 768, 50304, options.seq), ["--model", "gpt2"])
    raw = open(options.data, "rb").read() if options.data else bytes(range(256)) * 16_384
    text = torch.frombuffer(bytearray(raw), dtype=torch.uint8).to(torch.int64)
    sides, ms = {}, {}
    names = [name for name in (*OURS, *THEIRS) if name not in options.without and (name != "graph" or options.device == "cuda")]
    for round_number in range(options.rounds):
        for name in names if round_number % 2 == 0 else names[::-1]:
            try:
                if name in OURS:
                    if options.device == "cuda":
                        torch.cuda.empty_cache()
                    figure = our_ms(options, OURS[name], words)
                else:
                    if name not in sides:
                        sides[name] = Side(name, shape, options, text)
                        for step in range(4):  # compiles
                            sides[name].step_ms(step)
                    figure = statistics.median(sides[name].step_ms(step) for step in range(options.steps - options.skipped))
                ms.setdefault(name, []).append(figure)
                print(json.dumps({"round": round_number + 1, "side": name, "ms": figure}), flush=True)
            except RuntimeError as error:
                print(json.dumps({"round": round_number + 1, "side": name, "error": str(error)[:500]}), flush=True)
    median = {name: statistics.median(found) for name, found in ms.items()}
    print(json.dumps({"median_ms": median, "throughput": {f"{ours} over {theirs}": median[theirs] / median[ours]
                                                          for ours in OURS for theirs in THEIRS if ours in median and theirs in median}}))
    return 0 if len(median) == len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
