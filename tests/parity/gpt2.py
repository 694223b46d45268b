"""GPT-2 in plain PyTorch, written from the paper: the reference for the engine. `variant` has RMSNorm, no biases and the exact GELU."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, width, heads, seq, flash, variant):
        super().__init__()
        self.c_attn = nn.Linear(width, 3 * width, bias=not variant)
        self.c_proj = nn.Linear(width, width, bias=not variant)
        self.heads, self.flash = heads, flash
        self.register_buffer("future", torch.ones(seq, seq, dtype=torch.bool).triu(1), persistent=False)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, self.heads, C // self.heads).transpose(1, 2) for t in self.c_attn(x).split(C, dim=2))
        if self.flash:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            scores = scores.masked_fill(self.future[:T, :T], float("-inf"))
            y = F.softmax(scores, dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class Mlp(nn.Module):
    def __init__(self, width, variant):
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width, bias=not variant)
        self.c_proj = nn.Linear(4 * width, width, bias=not variant)
        self.approximate = "none" if variant else "tanh"

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate=self.approximate))


def norm_of(width, variant):
    return nn.RMSNorm(width, eps=1e-5) if variant else nn.LayerNorm(width)


class Block(nn.Module):
    def __init__(self, width, heads, seq, flash, variant):
        super().__init__()
        self.ln_1 = norm_of(width, variant)
        self.attn = SelfAttention(width, heads, seq, flash, variant)
        self.ln_2 = norm_of(width, variant)
        self.mlp = Mlp(width, variant)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt2(nn.Module):
    def __init__(self, layers, heads, width, vocab, seq, flash=False, tied=False, variant=False):
        super().__init__()
        self.wte = nn.Embedding(vocab, width)
        self.wpe = nn.Embedding(seq, width)
        self.h = nn.ModuleList(Block(width, heads, seq, flash, variant) for _ in range(layers))
        self.ln_f = norm_of(width, variant)
        self.lm_head = nn.Linear(width, vocab, bias=False) if not tied else None

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.size(1), device=tokens.device))
        for block in self.h:
            x = block(x)
        logits = F.linear(self.ln_f(x), (self.lm_head or self.wte).weight)
        return F.cross_entropy(logits.float().view(-1, logits.size(-1)), targets.view(-1))
