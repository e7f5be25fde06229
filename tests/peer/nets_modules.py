# SPDX-License-Identifier: Apache-2.0
"""Networks written by hand in plain torch: recurrent, diffusion, graphs, recommendation, heads of detectors, and idioms."""

import math

import torch
from torch import nn
from torch.nn import functional

from export import padded
from nets import HIDDEN, VOCAB, called, fixed_image_net, image_net, net_of_floats


def sequences(net, width=8, call=None, outputs=("y",), at=(5, 12, 31), more=None):
    """[batch, length, width] of any batch and length."""
    inputs = {"x": ("batch", "length", width)} | (more or {})
    sizes = [dict(batch=i + 1, length=n) for i, n in enumerate(at)]
    return net_of_floats(net, inputs, {o: {0: "batch"} for o in outputs}, sizes, dict(batch=2, length=9), call)


def rows(net, width=8, outputs=("y",), call=None):
    inputs = {"x": ("batch", width)}
    return net_of_floats(net, inputs, {o: {0: "batch"} for o in outputs}, [dict(batch=b) for b in (1, 4, 9)], dict(batch=3), call)


def tokens(net, call=None, outputs=("y",), at=(5, 12, 31), mask=True):
    """Numbers of tokens and a mask that is padded on the right."""

    def draw(generator, batch, length):
        ids = torch.randint(0, VOCAB, (batch, length), generator=generator)
        return (ids, padded(generator, batch, length)) if mask else (ids,)

    axes = {0: "batch", 1: "length"}
    inputs = {"ids": axes, "mask": axes} if mask else {"ids": axes}
    return called(net, call or (lambda n, *x: n(*x)), inputs, {o: {0: "batch"} for o in outputs}, draw,
                  [dict(batch=i + 1, length=n) for i, n in enumerate(at)], dict(batch=2, length=9))


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
    return net_of_floats(Stateful(), inputs, {"y": {0: "length", 1: "batch"}, "h1": {1: "batch"}, "c1": {1: "batch"}},
                         [dict(batch=1, length=1), dict(batch=3, length=4), dict(batch=2, length=11)],
                         dict(batch=2, length=5))


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
        q, k, v = (p.view(b, -1, self.heads, c // self.heads).transpose(1, 2)
                   for p in (self.q(tokens), self.k(context), self.v(context)))
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
        return (torch.randn(batch, 4, height, width, generator=generator),
                torch.randint(0, 1000, (batch,), generator=generator),
                torch.randn(batch, length, 12, generator=generator))

    return called(DiffusionUnet(), lambda n, *x: n(*x),
                  {"latent": {0: "batch", 2: "height", 3: "width"}, "time": {0: "batch"},
                   "context": {0: "batch", 1: "length"}}, {"y": {0: "batch"}}, draw,
                  [dict(batch=1, height=8, width=8, length=5), dict(batch=2, height=16, width=8, length=7),
                   dict(batch=3, height=14, width=10, length=11)], dict(batch=2, height=16, width=12, length=6))


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

    return called(Dit(), lambda n, *x: n(*x), {"latent": {0: "batch", 2: "height", 3: "width"}, "time": {0: "batch"}},
                  {"y": {0: "batch"}}, draw,
                  [dict(batch=1, height=8, width=8), dict(batch=2, height=16, width=8), dict(batch=3, height=6, width=10)],
                  dict(batch=2, height=16, width=12))


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


# ---- images ----


class Unet(nn.Module):
    """Sizes that do not divide are padded where the halves meet again."""

    def __init__(self, bilinear):
        super().__init__()

        def double(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(),
                                 nn.Conv2d(b, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())

        self.down = nn.ModuleList([double(3, 8), double(8, 16), double(16, 16)])
        self.grow = nn.ModuleList(
            nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True) if bilinear
            else nn.ConvTranspose2d(16, 16, 2, stride=2) for _ in range(2))
        self.up = nn.ModuleList([double(32, 16), double(24, 8)])
        self.last = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        kept = []
        for block in self.down:
            x = block(x if not kept else functional.max_pool2d(x, 2))
            kept.append(x)
        x = kept.pop()
        for grow, block in zip(self.grow, self.up, strict=True):
            skip, x = kept.pop(), grow(x)
            dy, dx = skip.shape[2] - x.shape[2], skip.shape[3] - x.shape[3]
            x = functional.pad(x, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
            x = block(torch.cat([skip, x], 1))
        return self.last(x)


class Fpn(nn.Module):
    """A pyramid whose levels are enlarged to the size of the next, and a head over all of them."""

    def __init__(self, width=8):
        super().__init__()
        self.stages = nn.ModuleList(nn.Conv2d(3 if i == 0 else width, width, 3, stride=2, padding=1) for i in range(4))
        self.lateral = nn.ModuleList(nn.Conv2d(width, width, 1) for _ in range(4))
        self.scores, self.boxes = nn.Conv2d(width, 3 * 2, 3, padding=1), nn.Conv2d(width, 3 * 4, 3, padding=1)

    def forward(self, x):
        levels = []
        for stage in self.stages:
            x = torch.relu(stage(x))
            levels.append(x)
        merged = [self.lateral[3](levels[3])]
        for i in (2, 1, 0):
            merged.append(self.lateral[i](levels[i]) + functional.interpolate(merged[-1], size=levels[i].shape[-2:]))
        scores, boxes = [], []
        for level in merged:
            b, _, h, w = level.shape
            scores.append(self.scores(level).view(b, 3, 2, h, w).permute(0, 3, 4, 1, 2).reshape(b, -1, 2))
            boxes.append(self.boxes(level).view(b, 3, 4, h, w).permute(0, 3, 4, 1, 2).reshape(b, -1, 4))
        return torch.cat(scores, 1).sigmoid(), torch.cat(boxes, 1)


class YoloHead(nn.Module):
    """Anchors and a grid of places, decoded in the graph."""

    def __init__(self, classes=3):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, stride=4, padding=1), nn.SiLU(), nn.Conv2d(8, 3 * (5 + classes), 3, stride=2, padding=1))
        self.register_buffer("anchors", torch.tensor([[10.0, 13.0], [16.0, 30.0], [33.0, 23.0]]))
        self.outputs = 5 + classes

    def forward(self, x):
        y = self.body(x)
        b, _, h, w = y.shape
        y = y.view(b, 3, self.outputs, h, w).permute(0, 1, 3, 4, 2).sigmoid()
        gy, gx = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        grid = torch.stack((gx, gy), 2).view(1, 1, h, w, 2).float()
        xy = (y[..., 0:2] * 2 - 0.5 + grid) * 8
        wh = (y[..., 2:4] * 2) ** 2 * self.anchors.view(1, 3, 1, 1, 2)
        return torch.cat((xy, wh, y[..., 4:]), -1).view(b, -1, self.outputs)


class CenterHead(nn.Module):
    """Peaks of a heat map: a pool, top k, and rows gathered at them."""

    def __init__(self):
        super().__init__()
        self.heat, self.size = nn.Conv2d(3, 2, 3, padding=1, stride=2), nn.Conv2d(3, 2, 3, padding=1, stride=2)

    def forward(self, x):
        heat = self.heat(x).sigmoid()
        heat = heat * (functional.max_pool2d(heat, 3, 1, 1) == heat).float()
        b, c, h, w = heat.shape
        scores, places = torch.topk(heat.view(b, -1), 5)
        classes = torch.div(places, h * w, rounding_mode="floor")
        places = places % (h * w)
        size = self.size(x).view(b, 2, -1).transpose(1, 2).gather(1, places[..., None].expand(-1, -1, 2))
        ys, xs = torch.div(places, w, rounding_mode="floor"), places % w
        return scores, classes, torch.cat([xs[..., None].float(), ys[..., None].float(), size], -1)


class SpatialTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.locate = nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(48, 6))
        self.body = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        theta = self.locate(x).view(-1, 2, 3) * 0.1 + torch.eye(2, 3)
        grid = functional.affine_grid(theta, list(x.shape), align_corners=False)
        return self.body(functional.grid_sample(x, grid, align_corners=False))


class Attend(nn.Module):
    """Squeeze and excitation, then attention over space (CBAM)."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.mlp = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 8))
        self.space = nn.Conv2d(2, 1, 7, padding=3)

    def forward(self, x):
        x = self.first(x)
        weight = torch.sigmoid(self.mlp(x.mean((2, 3))) + self.mlp(x.amax((2, 3))))
        x = x * weight[:, :, None, None]
        return x * torch.sigmoid(self.space(torch.cat([x.mean(1, keepdim=True), x.max(1, keepdim=True)[0]], 1)))


class MlpMixer(nn.Module):
    def __init__(self, width=16, tokens=16):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 8, stride=8)
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.over_tokens = nn.Sequential(nn.Linear(tokens, 24), nn.GELU(), nn.Linear(24, tokens))
        self.over_width = nn.Sequential(nn.Linear(width, 24), nn.GELU(), nn.Linear(24, width))
        self.last = nn.Linear(width, 5)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(-1, -2)
        x = x + self.over_tokens(self.n1(x).transpose(-1, -2)).transpose(-1, -2)
        x = x + self.over_width(self.n2(x))
        return self.last(x.mean(1))


class WindowAttention(nn.Module):
    """Windows of any image: padded to a multiple, rolled, cut, and put back."""

    def __init__(self, width=8, window=4):
        super().__init__()
        self.first, self.qkv, self.out = nn.Conv2d(3, width, 1), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.window = window

    def forward(self, x):
        n = self.window
        x = self.first(x).permute(0, 2, 3, 1)
        b, h, w, c = x.shape
        x = functional.pad(x, (0, 0, 0, (n - w % n) % n, 0, (n - h % n) % n))
        ph, pw = x.shape[1], x.shape[2]
        x = torch.roll(x, (-(n // 2), -(n // 2)), (1, 2))
        cut = x.view(b, ph // n, n, pw // n, n, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, n * n, c)
        q, k, v = self.qkv(cut).chunk(3, -1)
        y = self.out(torch.softmax(q @ k.transpose(-1, -2) * c**-0.5, -1) @ v)
        y = y.view(b, ph // n, pw // n, n, n, c).permute(0, 1, 3, 2, 4, 5).reshape(b, ph, pw, c)
        return torch.roll(y, (n // 2, n // 2), (1, 2))[:, :h, :w].permute(0, 3, 1, 2)


# ---- tokens, graphs, tables ----


def bert_like():
    layer = nn.TransformerEncoderLayer(HIDDEN, 4, 64, batch_first=True, norm_first=True)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.place = nn.Embedding(VOCAB, HIDDEN), nn.Embedding(64, HIDDEN)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

        def forward(self, ids, mask):
            x = self.embed(ids) + self.place(torch.arange(ids.shape[1], device=ids.device))
            y = self.encoder(x, src_key_padding_mask=mask == 0)
            m = mask[..., None].float()
            return functional.normalize((y * m).sum(1) / m.sum(1).clamp(min=1e-9), dim=1)

    return tokens(Net())


class Rope(nn.Module):
    """Causal attention with rotated pairs, a bias that grows with distance, and a sliding window."""

    def __init__(self, heads=4):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, HIDDEN)
        self.qkv, self.out = nn.Linear(HIDDEN, 3 * HIDDEN, bias=False), nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.heads = heads

    def forward(self, ids, mask):
        b, s = ids.shape
        d = HIDDEN // self.heads
        q, k, v = self.qkv(self.embed(ids)).view(b, s, 3, self.heads, d).permute(2, 0, 3, 1, 4)
        places = torch.arange(s, dtype=torch.float32)
        angles = torch.outer(places, 10000 ** (-torch.arange(0, d, 2) / d))
        cos, sin = angles.cos(), angles.sin()

        def turn(x):
            even, odd = x[..., 0::2], x[..., 1::2]
            return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)

        distance = places[:, None] - places[None]
        allowed = (distance >= 0) & (distance < 8) & (mask[:, None, None] > 0)
        slopes = 2.0 ** -torch.arange(1, self.heads + 1)
        scores = turn(q) @ turn(k).transpose(-1, -2) / math.sqrt(d) - slopes[:, None, None] * distance.clamp(min=0)
        scores = scores.masked_fill(~allowed, torch.finfo(torch.float32).min)
        y = torch.softmax(scores, -1) @ v
        return self.out(y.transpose(1, 2).reshape(b, s, HIDDEN))


class Experts(nn.Module):
    """Top 2 of 4 experts, every expert on every token, weighted by one-hot routes."""

    def __init__(self, width=8, experts=4):
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)
        self.up, self.down = nn.Parameter(torch.randn(experts, width, 16)), nn.Parameter(torch.randn(experts, 16, width))

    def forward(self, x):
        weights, chosen = torch.topk(torch.softmax(self.gate(x), -1), 2, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        routes = (functional.one_hot(chosen, 4).float() * weights[..., None]).sum(-2)
        y = torch.einsum("bsd,edf->bsef", x, self.up)
        return torch.einsum("bsef,efd,bse->bsd", functional.silu(y), self.down, routes)


class LinearAttention(nn.Module):
    """Causal linear attention by running sums."""

    def __init__(self, width=8):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        q, k = functional.elu(q) + 1, functional.elu(k) + 1
        kv = torch.cumsum(k[..., None] * v[..., None, :], 1)
        return torch.einsum("bsd,bsde->bse", q, kv) / (torch.einsum("bsd,bsd->bs", q, k.cumsum(1))[..., None] + 1e-6)


class Ssm(nn.Module):
    """A selective state space without a loop: running sums of logarithms."""

    def __init__(self, width=8, states=4):
        super().__init__()
        self.inputs, self.step = nn.Linear(width, 2 * states), nn.Linear(width, width)
        self.conv = nn.Conv1d(width, width, 4, padding=3, groups=width)
        self.decay = nn.Parameter(torch.zeros(width, states))

    def forward(self, x):
        x = functional.silu(self.conv(x.transpose(-1, -2))[..., : x.shape[1]]).transpose(-1, -2)
        b, c = self.inputs(x).chunk(2, -1)
        delta = functional.softplus(self.step(x))
        a = -torch.exp(self.decay * 0.1) * delta[..., None] * 0.05
        total = torch.cumsum(a, 1)
        y = torch.cumsum(torch.exp(-total) * (delta * x)[..., None] * b[:, :, None], 1) * torch.exp(total)
        return (y * c[:, :, None]).sum(-1)


class GraphNet(nn.Module):
    """Messages along edges, added at their ends."""

    def __init__(self, width=8):
        super().__init__()
        self.message, self.update = nn.Linear(2 * width, 12), nn.Linear(12 + width, width)
        self.score = nn.Linear(2 * width, 1)

    def forward(self, x, edges):
        source, target = edges[0], edges[1]
        pairs = torch.cat([x[source], x[target]], -1)
        weight = torch.exp(torch.tanh(self.score(pairs)))
        total = torch.zeros(x.shape[0], 1).index_add(0, target, weight)
        messages = torch.relu(self.message(pairs)) * weight / (total[target] + 1e-6)
        gathered = torch.zeros(x.shape[0], 12).scatter_add(0, target[:, None].expand(-1, 12), messages)
        return torch.relu(self.update(torch.cat([x, gathered], -1)))


def graph_net():
    def draw(generator, nodes, edges):
        return torch.randn(nodes, 8, generator=generator), torch.randint(0, nodes, (2, edges), generator=generator)

    return called(GraphNet(), lambda n, *x: n(*x), {"x": {0: "nodes"}, "edges": {1: "edges"}}, {"y": {0: "nodes"}}, draw,
                  [dict(nodes=3, edges=4), dict(nodes=7, edges=20), dict(nodes=20, edges=9)], dict(nodes=6, edges=10))


class Recommender(nn.Module):
    """DLRM: embeddings of categories, an MLP of numbers, and products of all pairs."""

    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(20, 8) for _ in range(3))
        self.bottom = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 8))
        self.top = nn.Sequential(nn.Linear(14, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, numbers, categories):
        dense = self.bottom(numbers)
        parts = torch.stack([dense, *(t(categories[:, i]) for i, t in enumerate(self.tables))], 1)
        products = torch.bmm(parts, parts.transpose(-1, -2))
        i, j = torch.tril_indices(4, 4, offset=-1)
        return torch.sigmoid(self.top(torch.cat([dense, products[:, i, j]], 1)))


def recommender():
    def draw(generator, batch):
        return torch.randn(batch, 5, generator=generator), torch.randint(0, 20, (batch, 3), generator=generator)

    return called(Recommender(), lambda n, *x: n(*x), {"numbers": {0: "batch"}, "categories": {0: "batch"}},
                  {"y": {0: "batch"}}, draw, [dict(batch=b) for b in (1, 4, 9)], dict(batch=3))


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.turn = nn.Sequential(nn.Conv1d(3, 8, 1), nn.ReLU(), nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(8, 9))
        self.local, self.wide = nn.Conv1d(3, 8, 1), nn.Conv1d(8, 16, 1)
        self.last = nn.Conv1d(24, 4, 1)

    def forward(self, x):
        x = x.transpose(-1, -2)
        x = torch.bmm((self.turn(x).view(-1, 3, 3) + torch.eye(3)).transpose(-1, -2), x)
        local = torch.relu(self.local(x))
        whole = self.wide(local).max(2, keepdim=True)[0]
        return self.last(torch.cat([local, whole.expand(-1, -1, x.shape[2])], 1)).transpose(-1, -2)


class Neighbours(nn.Module):
    """Features of the nearest neighbours of each point (DGCNN)."""

    def __init__(self):
        super().__init__()
        self.edge = nn.Linear(6, 8)

    def forward(self, x):
        near = torch.cdist(x, x).topk(3, largest=False).indices
        b, n, _ = x.shape
        offset = torch.arange(b)[:, None, None] * n
        picked = x.reshape(b * n, 3)[(near + offset).view(-1)].view(b, n, 3, 3)
        centre = x[:, :, None].expand(-1, -1, 3, -1)
        return self.edge(torch.cat([picked - centre, centre], -1)).max(2)[0]


class Flow(nn.Module):
    """Coupling layers, and the logarithm of the change of volume."""

    def __init__(self):
        super().__init__()
        self.nets = nn.ModuleList(nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 8)) for _ in range(2))

    def forward(self, x):
        total = torch.zeros(x.shape[0])
        for net in self.nets:
            a, b = x.chunk(2, 1)
            scale, shift = net(a).chunk(2, 1)
            scale = torch.tanh(scale)
            x = torch.cat([b * torch.exp(scale) + shift, a], 1)
            total = total + scale.sum(1)
        return x, total - 0.5 * (x.square() + math.log(2 * math.pi)).sum(1)


class Forecaster(nn.Module):
    """A series normalised by itself, its trend, patches of it, and rows of the future."""

    def __init__(self):
        super().__init__()
        self.trend = nn.AvgPool1d(5, 1)
        self.embed, self.mix, self.last = nn.Linear(8, 16), nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), nn.Linear(16, 4)

    def forward(self, x):
        x = x[..., 0]
        mean, std = x.mean(1, keepdim=True), x.std(1, keepdim=True) + 1e-5
        x = (x - mean) / std
        padded = torch.cat([x[:, :1].repeat(1, 2), x, x[:, -1:].repeat(1, 2)], 1)
        x = x - self.trend(padded[:, None])[:, 0]
        patches = x.unfold(1, 8, 4)
        return self.last(self.mix(self.embed(patches))).mean(1) * std + mean


class ByteNet(nn.Module):
    """Characters to words: convolutions of several widths and highways."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 8)
        self.convs = nn.ModuleList(nn.Conv1d(8, 6, k, padding=k - 1) for k in (1, 2, 3))
        self.gate, self.carry = nn.Linear(18, 18), nn.Linear(18, 18)

    def forward(self, ids):
        x = self.embed(ids).transpose(-1, -2)
        x = torch.cat([conv(x).amax(-1) for conv in self.convs], 1)
        t = torch.sigmoid(self.gate(x))
        return t * torch.relu(self.carry(x)) + (1 - t) * x


class Pooler(nn.Module):
    """The state at the last token that is not padding, and at the first; what is there is counted."""

    def __init__(self):
        super().__init__()
        self.embed, self.last = nn.Embedding(VOCAB, 8), nn.Linear(8, 3)

    def forward(self, ids, mask):
        x = self.embed(ids)
        places = torch.arange(ids.shape[-1])
        at = (mask * places).argmax(-1)
        end = x[torch.arange(ids.shape[0]), at]
        count = mask.sum(1, keepdim=True)
        positions = torch.cumsum(mask, 1) * mask
        fresh = torch.where(positions > 0, positions, -1)
        return self.last(end), count, fresh, torch.triu(torch.ones(ids.shape[1], ids.shape[1]), 1) * -1e4


class TargetMask(nn.Module):
    """nn.Transformer with a square mask made of the length."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 16)
        self.net = nn.Transformer(16, 2, 1, 1, 32, batch_first=True)

    def forward(self, ids):
        x = self.embed(ids) * 4.0
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        return self.net(x, x, tgt_mask=mask)


def idioms():
    """Ways to write shapes that people like."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(8, 12)

        def forward(self, x):
            b, s, d = x.size()
            y = self.a(x.view(-1, d)).view(b, s, 3, 4).permute(2, 0, 1, 3).contiguous()
            halves = torch.stack([y[0], y[-1]], 1).flatten(1, 2)
            front = x.new_ones(b, 1, d).expand(b, 2, d)
            joined = torch.cat((front, x, x.flip(1)), dim=1)
            shifted = functional.pad(x, (0, 0, 1, 0))[:, :-1]
            parts = torch.split(joined, [1, joined.size(1) - 1], dim=1)
            rest = parts[1].repeat_interleave(2, dim=1)[:, ::2]
            tiled = x.mean(1, keepdim=True).repeat(1, s, 1) + shifted
            picked = torch.index_select(tiled, 1, torch.arange(0, s, 2))
            return halves, rest, picked, torch.where(tiled > 0, tiled, torch.zeros_like(tiled)).tril(), x[:, s // 2]

    return sequences(Net(), outputs=("a", "b", "c", "d", "e"))


class Capsules(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 9, stride=4)
        self.routes = nn.Parameter(torch.randn(1, 2, 3, 8, 4) * 0.3)

    def forward(self, x):
        def squash(v):
            n = v.square().sum(-1, keepdim=True)
            return n / (1 + n) * v / (n + 1e-8).sqrt()

        u = squash(self.first(x).view(x.size(0), 8, -1).transpose(-1, -2))
        votes = (u[:, None, :, None, :] @ self.routes[:, :, :1]).squeeze(3)
        logits = torch.zeros(votes.shape[:3])
        for _ in range(2):
            v = squash((torch.softmax(logits, 1)[..., None] * votes).sum(2))
            logits = logits + (votes * v[:, :, None]).sum(-1)
        return v.norm(dim=-1)


def super_resolution():
    return image_net(nn.Sequential(nn.Conv2d(3, 8, 5, padding=2), nn.Tanh(), nn.Conv2d(8, 27, 3, padding=1),
                                   nn.PixelShuffle(3)), at=((8, 8), (9, 7), (16, 5)))


def generator():
    return rows(nn.Sequential(nn.Unflatten(1, (8, 1, 1)), nn.ConvTranspose2d(8, 16, 4), nn.BatchNorm2d(16), nn.ReLU(),
                              nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.InstanceNorm2d(8, affine=True), nn.LeakyReLU(0.2),
                              nn.ConvTranspose2d(8, 3, 4, 2, 1, bias=False), nn.Tanh()))


def style_transfer():
    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(8, 8, 3), nn.InstanceNorm2d(8, affine=True), nn.ReLU())

        def forward(self, x):
            return x + self.net(x)

    return image_net(nn.Sequential(nn.ReflectionPad2d(4), nn.Conv2d(3, 8, 9), nn.InstanceNorm2d(8, affine=True), nn.ReLU(),
                                   nn.Conv2d(8, 8, 3, 2, 1), Residual(), nn.Upsample(scale_factor=2), nn.ReplicationPad2d(1),
                                   nn.Conv2d(8, 3, 3)), at=((16, 16), (24, 18), (20, 30)))


def two_frames():
    """A video network by hand: convolutions over time and space."""
    net = nn.Sequential(nn.Conv3d(3, 8, 3, padding=1), nn.BatchNorm3d(8), nn.ReLU(), nn.MaxPool3d((1, 2, 2)),
                        nn.Conv3d(8, 8, (3, 1, 1), padding=(1, 0, 0)), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(8, 4))
    inputs = {"clip": ("batch", 3, "frames", 16, "width")}
    return net_of_floats(net, inputs, {"y": {0: "batch"}},
                         [dict(batch=1, frames=4, width=16), dict(batch=2, frames=7, width=10), dict(batch=3, frames=5, width=22)],
                         dict(batch=2, frames=6, width=12))


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
    "unet": lambda: image_net(Unet(False), at=((32, 32), (37, 30), (24, 51))),
    "unet_bilinear": lambda: image_net(Unet(True), at=((32, 32), (37, 30), (24, 51))),
    "fpn": lambda: image_net(Fpn(), ("scores", "boxes"), at=((64, 64), (97, 70), (65, 130))),
    "yolo_head": lambda: image_net(YoloHead(), at=((64, 64), (96, 72), (40, 120))),
    "center_head": lambda: image_net(CenterHead(), ("scores", "classes", "boxes"), at=((16, 16), (24, 18), (20, 30))),
    "spatial_transformer": lambda: image_net(SpatialTransformer(), at=((16, 16), (24, 16), (20, 32))),
    "cbam": lambda: image_net(Attend(), at=((8, 8), (9, 7), (16, 5))),
    "mixer": lambda: fixed_image_net(MlpMixer(), 32),
    "window_attention": lambda: image_net(WindowAttention(), at=((8, 8), (9, 7), (16, 5))),
    "transformer_encoder": bert_like,
    "rope_attention": lambda: tokens(Rope()),
    "experts": lambda: sequences(Experts()),
    "linear_attention": lambda: sequences(LinearAttention()),
    "ssm": lambda: sequences(Ssm()),
    "graph_net": graph_net,
    "recommender": recommender,
    "pointnet": lambda: sequences(PointNet(), 3),
    "neighbours": lambda: sequences(Neighbours(), 3),
    "flow": lambda: rows(Flow(), outputs=("y", "likelihood")),
    "forecaster": lambda: sequences(Forecaster(), 1, at=(16, 24, 41)),
    "bytenet": lambda: tokens(ByteNet(), mask=False),
    "pooler": lambda: tokens(Pooler(), outputs=("y", "count", "positions", "square")),
    "transformer": lambda: tokens(TargetMask(), mask=False),
    "idioms": idioms,
    "capsules": lambda: fixed_image_net(Capsules(), 32),
    "super_resolution": super_resolution,
    "generator": generator,
    "style_transfer": style_transfer,
    "conv3d": two_frames,
}


def seq2seq():
    inputs = {"x": ("batch", "source", 8), "z": ("batch", "target", 8)}
    sizes = [dict(batch=1, source=5, target=3), dict(batch=2, source=12, target=7), dict(batch=3, source=20, target=24)]
    return net_of_floats(Seq2SeqAttention(), inputs, {"y": {0: "batch"}}, sizes, dict(batch=2, source=9, target=4))
