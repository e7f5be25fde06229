# SPDX-License-Identifier: Apache-2.0
"""Networks written by hand in plain torch: recurrent ones, and blocks of diffusion."""

import math

import torch
from torch import nn
from torch.nn import functional

from nets import VOCAB, called, image_net, net_of_floats, tokens

# ---- recurrent ----


class Tagger(nn.Module):
    def __init__(self, kind, **more):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 16)
        self.rnn = kind(16, 12, num_layers=2, batch_first=True, bidirectional=True, **more)
        self.last = nn.LazyLinear(5)
        self.last(self.rnn(torch.zeros(1, 2, 16))[0])

    def forward(self, ids):
        return self.last(self.rnn(self.embed(ids))[0])


class Stateful(nn.Module):
    """A step of a language model: states in, states out."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 12, num_layers=2)

    def forward(self, x, h, c):
        y, (h, c) = self.lstm(x, (h, c))
        return y, h, c


def stateful():
    inputs = {"x": ("length", "batch", 8), "h": (2, "batch", 12), "c": (2, "batch", 12)}
    return net_of_floats(
        Stateful(),
        inputs,
        {"y": {0: "length", 1: "batch"}, "h1": {1: "batch"}, "c1": {1: "batch"}},
        [dict(batch=1, length=1), dict(batch=3, length=4), dict(batch=2, length=11)],
        dict(batch=2, length=5),
    )


class Seq2SeqAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.GRU(8, 12, batch_first=True, bidirectional=True)
        self.decoder = nn.GRU(8, 24, batch_first=True)
        self.query = nn.Linear(24, 24)
        self.last = nn.Linear(48, 7)

    def forward(self, x, y):
        keys, state = self.encoder(x)
        state = torch.cat([state[0], state[1]], -1)[None]
        out, _ = self.decoder(y, state)
        weights = torch.softmax(self.query(out) @ keys.transpose(-1, -2), -1)
        return self.last(torch.cat([out, weights @ keys], -1))


class ConvLstm(nn.Module):
    """Frames through a convolutional LSTM cell, some steps unrolled."""

    def __init__(self, width=8):
        super().__init__()
        self.gates = nn.Conv2d(3 + width, 4 * width, 3, padding=1)
        self.width = width

    def forward(self, x):
        h = x.new_zeros(x.shape[0], self.width, x.shape[-2], x.shape[-1])
        c = torch.zeros_like(h)
        for _ in range(3):
            i, f, o, g = self.gates(torch.cat([x, h], 1)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return h


# ---- diffusion ----


def time_embedding(t, width):
    half = width // 2
    frequencies = torch.exp(-math.log(10000) * torch.arange(half, dtype=torch.float32, device=t.device) / half)
    angles = t[:, None].float() * frequencies[None]
    return torch.cat([angles.cos(), angles.sin()], -1)


class ResBlock(nn.Module):
    def __init__(self, width, out, time):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, width), nn.GroupNorm(4, out)
        self.conv1, self.conv2 = nn.Conv2d(width, out, 3, padding=1), nn.Conv2d(out, out, 3, padding=1)
        self.time = nn.Linear(time, out)
        self.skip = nn.Conv2d(width, out, 1) if width != out else nn.Identity()

    def forward(self, x, t):
        y = self.conv1(functional.silu(self.norm1(x))) + self.time(functional.silu(t))[:, :, None, None]
        return self.skip(x) + self.conv2(functional.silu(self.norm2(y)))


class CrossAttention(nn.Module):
    def __init__(self, width, context, heads=2):
        super().__init__()
        self.norm = nn.GroupNorm(4, width)
        self.q, self.k, self.v = nn.Linear(width, width), nn.Linear(context, width), nn.Linear(context, width)
        self.out = nn.Linear(width, width)
        self.heads = heads

    def forward(self, x, context):
        b, c, h, w = x.shape
        tokens = self.norm(x).reshape(b, c, h * w).permute(0, 2, 1)
        q, k, v = (
            p.view(b, -1, self.heads, c // self.heads).transpose(1, 2)
            for p in (self.q(tokens), self.k(context), self.v(context))
        )
        y = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, h * w, c)
        return x + self.out(y).permute(0, 2, 1).reshape(b, c, h, w)


class DiffusionUnet(nn.Module):
    def __init__(self, width=16, time=32, context=12):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time))
        self.first = nn.Conv2d(4, width, 3, padding=1)
        self.down1, self.attend1 = ResBlock(width, width, time), CrossAttention(width, context)
        self.shrink = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.down2, self.attend2 = ResBlock(width, 2 * width, time), CrossAttention(2 * width, context)
        self.middle = ResBlock(2 * width, 2 * width, time)
        self.grow = nn.Conv2d(2 * width, width, 3, padding=1)
        self.up = ResBlock(2 * width, width, time)
        self.norm, self.last = nn.GroupNorm(4, width), nn.Conv2d(width, 4, 3, padding=1)
        self.width = width

    def forward(self, x, t, context):
        t = self.time(time_embedding(t, self.width))
        x = self.first(x)
        a = self.attend1(self.down1(x, t), context)
        b = self.attend2(self.down2(self.shrink(a), t), context)
        b = self.middle(b, t)
        b = self.grow(functional.interpolate(b, size=a.shape[-2:], mode="nearest"))
        return self.last(functional.silu(self.norm(self.up(torch.cat([a, b], 1), t))))


def diffusion():
    def draw(generator, batch, height, width, length):
        return (
            torch.randn(batch, 4, height, width, generator=generator),
            torch.randint(0, 1000, (batch,), generator=generator),
            torch.randn(batch, length, 12, generator=generator),
        )

    return called(
        DiffusionUnet(),
        lambda n, *x: n(*x),
        {"latent": {0: "batch", 2: "height", 3: "width"}, "time": {0: "batch"}, "context": {0: "batch", 1: "length"}},
        {"y": {0: "batch"}},
        draw,
        [
            dict(batch=1, height=8, width=8, length=5),
            dict(batch=2, height=16, width=8, length=7),
            dict(batch=3, height=14, width=10, length=11),
        ],
        dict(batch=2, height=16, width=12, length=6),
    )


class Dit(nn.Module):
    """A diffusion transformer: patches, and norms whose scale and shift come from the time."""

    def __init__(self, width=24, heads=2):
        super().__init__()
        self.patch = nn.Conv2d(4, width, 2, stride=2)
        self.time = nn.Linear(width, width)
        self.modulate = nn.Linear(width, 6 * width)
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU("tanh"), nn.Linear(2 * width, width))
        self.last = nn.Linear(width, 16)
        self.width = width

    def forward(self, x, t):
        b, _, h, w = x.shape
        x = self.patch(x).flatten(2).transpose(1, 2)
        t = functional.silu(self.time(time_embedding(t, self.width)))
        s1, b1, g1, s2, b2, g2 = self.modulate(t)[:, None].chunk(6, -1)
        y = self.norm(x) * (1 + s1) + b1
        x = x + g1 * self.attention(y, y, y, need_weights=False)[0]
        x = x + g2 * self.mlp(self.norm(x) * (1 + s2) + b2)
        x = self.last(x).view(b, h // 2, w // 2, 4, 2, 2)
        return x.permute(0, 3, 1, 4, 2, 5).reshape(b, 4, h, w)


def dit():
    def draw(generator, batch, height, width):
        return torch.randn(batch, 4, height, width, generator=generator), torch.rand(batch, generator=generator) * 100

    return called(
        Dit(),
        lambda n, *x: n(*x),
        {"latent": {0: "batch", 2: "height", 3: "width"}, "time": {0: "batch"}},
        {"y": {0: "batch"}},
        draw,
        [dict(batch=1, height=8, width=8), dict(batch=2, height=16, width=8), dict(batch=3, height=6, width=10)],
        dict(batch=2, height=16, width=12),
    )


class VaeDecoder(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.first = nn.Conv2d(4, width, 3, padding=1)
        self.norm, self.mix = nn.GroupNorm(4, width), nn.Conv2d(width, 3 * width, 1)
        self.up = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
        self.last = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, z):
        x = self.first(z / 0.18215)
        b, c, h, w = x.shape
        q, k, v = self.mix(self.norm(x)).view(b, 3 * c, h * w).chunk(3, 1)
        weights = torch.softmax(torch.bmm(q.transpose(1, 2), k) * c**-0.5, -1)
        x = x + torch.bmm(v, weights.transpose(1, 2)).view(b, c, h, w)
        for conv in self.up:
            x = conv(functional.interpolate(x, scale_factor=2.0, mode="nearest"))
        return torch.tanh(self.last(functional.silu(x)))


def seq2seq():
    inputs = {"x": ("batch", "source", 8), "z": ("batch", "target", 8)}
    sizes = [dict(batch=1, source=5, target=3), dict(batch=2, source=12, target=7), dict(batch=3, source=20, target=24)]
    return net_of_floats(Seq2SeqAttention(), inputs, {"y": {0: "batch"}}, sizes, dict(batch=2, source=9, target=4))


NETS = {
    "lstm_tagger": lambda: tokens(Tagger(nn.LSTM), mask=False),
    "gru_tagger": lambda: tokens(Tagger(nn.GRU), mask=False),
    "rnn_tagger": lambda: tokens(Tagger(nn.RNN, nonlinearity="relu"), mask=False),
    "lstm_projected": lambda: tokens(Tagger(nn.LSTM, proj_size=5), mask=False),
    "lstm_step": stateful,
    "seq2seq": lambda: seq2seq(),
    "conv_lstm": lambda: image_net(ConvLstm(), at=((8, 8), (9, 7), (16, 5))),
    "diffusion_unet": diffusion,
    "dit": dit,
    "vae_decoder": lambda: image_net(VaeDecoder(), channels=4, at=((8, 8), (9, 7), (16, 5))),
}
