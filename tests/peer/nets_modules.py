# SPDX-License-Identifier: Apache-2.0
"""Networks written by hand in plain torch: of tokens, graphs and tables, and idioms of shapes."""

import math

import torch
from torch import nn
from torch.nn import functional

from nets import HIDDEN, VOCAB, called, rows, sequences, tokens


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
        self.up, self.down = (
            nn.Parameter(torch.randn(experts, width, 16)),
            nn.Parameter(torch.randn(experts, 16, width)),
        )

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

    return called(
        GraphNet(),
        lambda n, *x: n(*x),
        {"x": {0: "nodes"}, "edges": {1: "edges"}},
        {"y": {0: "nodes"}},
        draw,
        [dict(nodes=3, edges=4), dict(nodes=7, edges=20), dict(nodes=20, edges=9)],
        dict(nodes=6, edges=10),
    )


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

    return called(
        Recommender(),
        lambda n, *x: n(*x),
        {"numbers": {0: "batch"}, "categories": {0: "batch"}},
        {"y": {0: "batch"}},
        draw,
        [dict(batch=b) for b in (1, 4, 9)],
        dict(batch=3),
    )


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
        self.embed, self.mix, self.last = (
            nn.Linear(8, 16),
            nn.TransformerEncoderLayer(16, 2, 32, batch_first=True),
            nn.Linear(16, 4),
        )

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


NETS = {
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
}
