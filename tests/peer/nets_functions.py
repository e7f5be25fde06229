# SPDX-License-Identifier: Apache-2.0
"""Functions and idioms of torch that networks use here and there, each after a layer that makes its input."""

import torch
import torchvision
from torch import nn
from torch.nn import functional

from nets import VOCAB, called, image_net, sequences, tokens


class After(nn.Module):
    def __init__(self, layer, function):
        super().__init__()
        self.layer, self.function = layer, function

    def forward(self, x):
        return self.function(self.layer(x))


def names(count):
    return tuple(f"y{i}" for i in range(count))


def of_sequences(function, results=1, at=(5, 12, 31)):
    return lambda: sequences(After(nn.Linear(8, 8), function), outputs=names(results), at=at)


def of_images(function, results=1, at=((8, 8), (9, 7), (16, 5))):
    return lambda: image_net(After(nn.Conv2d(3, 8, 3, padding=1), function), names(results), at=at)


# ---- indices ----


def scatter_mean(x):
    batch, _, width = x.shape
    group = (x[..., 0] > 0).long() + (x[..., 1] > 0.3).long()
    total = torch.zeros(batch, 4, width).scatter_add(1, group[..., None].expand(-1, -1, width), x)
    count = torch.zeros(batch, 4).scatter_add(1, group, torch.ones_like(x[..., 0]))
    return total / count.clamp(min=1)[..., None]


def scatter_reduce(x):
    batch, _, width = x.shape
    to = x.argsort(1) % 3
    start = torch.ones(batch, 3, width)
    return tuple(start.scatter_reduce(1, to, x, by, include_self=True) for by in ("amax", "amin", "prod"))


def assigned(x):
    y = x.clone()
    y[:, ::2] = y[:, ::2] * 2
    y[:, 1] = 0
    y[..., -1] += 1
    i = torch.arange(x.shape[1])
    y[:, i, i % 8] = -1.0
    y[y > 0.5] = 0.5
    return y


def accumulated(x):
    batch, length, _ = x.shape
    rows = torch.arange(batch)[:, None].expand(batch, length)
    columns = torch.arange(length)[None].expand(batch, length) % 3
    return torch.zeros(batch, 3, 8).index_put((rows, columns), x, accumulate=True)


def indexed(x):
    batch, length, _ = x.shape
    order = x[..., 0].argsort(1)
    return (
        x[torch.arange(batch)[:, None], order],
        x[:, [0, -1, 2]][..., [[1, 2], [3, 0]]],
        x[:, None, :, None, 1:-1:2],
        x.transpose(0, 1)[torch.arange(length - 1, -1, -1)],
    )


def masked(x):
    positive = x > 0
    return x.masked_fill(positive, -1), x.masked_scatter(positive, x.flip(1)), torch.where(positive, x, 0.0)


def selected(x):
    return x.masked_select(x > 0).sum(), x[x > 0.2].mean(), x[x[..., 0] > 0].sum(0)


def repeated(x):
    return x[:, :5].repeat_interleave(torch.tensor([1, 2, 0, 3, 1]), dim=1)


def counted(x):
    number = (x.flatten() * 2).long()
    return torch.unique(number, return_inverse=True, return_counts=True)


def histogram(x):
    return torch.bincount((x.flatten() * 3).clamp(0, 9).long(), minlength=10), torch.histc(x, 5, -2, 2)


# ---- products and norms ----


def diagonals(x):
    square = x @ x.transpose(1, 2)
    diagonal = square.diagonal(dim1=-2, dim2=-1)
    return diagonal, torch.diag_embed(diagonal, 1), square.tril(-1) + square.triu(2), torch.block_diag(x[0], x[0] * 2)


def einsums(x):
    heads = x.unflatten(-1, (2, 4))
    return (
        torch.einsum("bihd,bjhd->bhij", heads, heads),
        torch.einsum("...ij,...kj->...ik", x, x),
        torch.einsum("bii->bi", x @ x.transpose(1, 2)),
        torch.einsum("bnd,bmd,bme->bne", x, x, x),
        torch.einsum("bnd->", x),
    )


def norms(x):
    return (
        x.norm(dim=-1),
        x.norm(p=1, dim=1),
        x.norm(p=float("inf"), dim=-1),
        torch.linalg.vector_norm(x, 3, (1, 2)),
        torch.linalg.matrix_norm(x),
        functional.normalize(x, p=1.0, dim=-1),
        functional.cosine_similarity(x, x.flip(1), dim=-1),
    )


def inverse_root(x):
    """Newton and Schulz."""
    square = x.transpose(1, 2) @ x / x.shape[1] + torch.eye(8)
    y = square / torch.linalg.matrix_norm(square)[:, None, None]
    z = torch.eye(8).expand_as(y)
    for _ in range(5):
        t = 0.5 * (3 * torch.eye(8) - z @ y)
        y, z = y @ t, t @ z
    return y


def padded_blocks(x):
    length = x.shape[1]
    y = functional.pad(x, (0, 0, 0, (4 - length % 4) % 4))
    return y.view(x.shape[0], -1, 4, 8).softmax(2).flatten(1, 2)[:, :length]


def spectrum(x):
    return torch.view_as_real(torch.stft(x[..., 0], 16, 4, window=torch.hann_window(16), return_complex=True))


# ---- images ----


def sampled(x):
    rows, columns = torch.meshgrid(torch.linspace(-1.2, 1.2, 6), torch.linspace(-1.1, 1.1, 5), indexing="ij")
    shift = 0.1 * x.mean((1, 2, 3))[:, None, None, None]
    grid = torch.stack([columns, rows], -1)[None].expand(x.shape[0], -1, -1, -1) + shift
    return (
        functional.grid_sample(x, grid, align_corners=False),
        functional.grid_sample(x, grid, mode="nearest", padding_mode="border", align_corners=True),
        functional.grid_sample(x, grid, mode="bicubic", padding_mode="reflection", align_corners=False),
    )


def resized(mode, **more):
    def function(x):
        return (
            functional.interpolate(x, scale_factor=2.0, mode=mode, **more),
            functional.interpolate(x, size=(11, 13), mode=mode, **more),
            functional.interpolate(x, scale_factor=(0.5, 1.5), mode=mode, **more),
        )

    return of_images(function, 3)


def windows(x):
    """Attention in windows of 4 x 4, of any image."""
    batch, width, rows, columns = x.shape
    y = functional.pad(x, (0, (4 - columns % 4) % 4, 0, (4 - rows % 4) % 4))
    down, across = y.shape[2] // 4, y.shape[3] // 4
    y = y.view(batch, width, down, 4, across, 4).permute(0, 2, 4, 3, 5, 1).reshape(-1, 16, width).roll(1, 1)
    y = (y @ y.transpose(1, 2)).softmax(-1) @ y
    y = y.view(batch, down, across, 4, 4, width).permute(0, 5, 1, 3, 2, 4).reshape(batch, width, 4 * down, 4 * across)
    return y[:, :, :rows, :columns]


def boxes(x):
    """The second has as many samples as its bins have pixels."""
    at = torch.tensor([[0.0, 1, 1, 5, 4], [0, 0, 0, 4, 5]])
    return torchvision.ops.roi_align(x, at, 3, sampling_ratio=2, aligned=True), torchvision.ops.roi_align(x, at, 2, 0.5)


def suppressed(x):
    rows = x.flatten(0, 1)
    corner = rows[:, :2] * 3
    found = torch.cat([corner, corner + rows[:, 2:4].abs() + 1], 1)
    scores = torch.sigmoid(rows[:, 4])
    kept = torchvision.ops.batched_nms(found, scores, (rows[:, 5] > 0).long(), 0.3)
    return found[torchvision.ops.nms(found, scores, 0.3)], scores[kept], torchvision.ops.box_iou(found, found)


# ---- decoding and codebooks ----


def collapsed(x):
    """CTC: equal neighbours and blanks vanish."""
    best = x.argmax(-1)
    keep = (best != functional.pad(best[:, :-1], (1, 0), value=-1)) & (best != 0)
    to = torch.where(keep, keep.long().cumsum(1) - 1, x.shape[1])
    return torch.zeros(x.shape[0], x.shape[1] + 1, dtype=torch.long).scatter(1, to, best)[:, :-1], keep.sum(1)


class Beam(nn.Module):
    def __init__(self, width=8, words=12, beams=3):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.cell, self.last = nn.GRUCell(width, width), nn.Linear(width, words)
        self.sizes = beams, words, width

    def forward(self, x):
        beams, words, width = self.sizes
        batch = x.shape[0]
        state = x.mean(1)[:, None].expand(batch, beams, width)
        score = torch.tensor([0.0] + [-1e9] * (beams - 1)).expand(batch, beams)
        path = torch.zeros(batch, beams, 1, dtype=torch.long)
        for _ in range(3):
            state = self.cell(self.words(path[..., -1]).flatten(0, 1), state.flatten(0, 1)).view(batch, beams, width)
            score, best = (score[..., None] + self.last(state).log_softmax(-1)).flatten(1).topk(beams, -1)
            parent = (best // words)[..., None]
            path = torch.cat([path.gather(1, parent.expand(-1, -1, path.shape[-1])), (best % words)[..., None]], -1)
            state = state.gather(1, parent.expand(-1, -1, width))
        return path, score


class Codebooks(nn.Module):
    """Residual vector quantisation."""

    def __init__(self):
        super().__init__()
        self.codes = nn.ParameterList(nn.Parameter(torch.randn(16, 8)) for _ in range(3))

    def forward(self, x):
        rest, total, found = x, 0, []
        for codes in self.codes:
            apart = rest.pow(2).sum(-1, keepdim=True) - 2 * rest @ codes.t() + codes.pow(2).sum(-1)
            found.append(apart.argmin(-1))
            nearest = functional.embedding(found[-1], codes)
            rest, total = rest - nearest, total + nearest
        return total, torch.stack(found, -1)


class Splines(nn.Module):
    """A layer of a Kolmogorov-Arnold network."""

    def __init__(self):
        super().__init__()
        self.register_buffer("knots", torch.linspace(-2, 2, 12)[None].repeat(8, 1))
        self.weight = nn.Parameter(torch.randn(8, 8, 8))

    def forward(self, x):
        knots, x = self.knots, x[..., None]
        basis = ((x >= knots[:, :-1]) & (x < knots[:, 1:])).to(x.dtype)
        for k in range(1, 4):
            rises = (x - knots[:, : -(k + 1)]) / (knots[:, k:-1] - knots[:, : -(k + 1)])
            falls = (knots[:, k + 1 :] - x) / (knots[:, k + 1 :] - knots[:, 1:-k])
            basis = rises * basis[..., :-1] + falls * basis[..., 1:]
        return torch.einsum("bnik,oik->bno", basis, self.weight)


class LongConvolution(nn.Module):
    """Hyena: gates around a convolution as long as the sequence, by Fourier transforms."""

    def __init__(self):
        super().__init__()
        self.filter = nn.Sequential(nn.Linear(3, 8), nn.SiLU(), nn.Linear(8, 8))
        self.parts = nn.Linear(8, 24)

    def forward(self, x):
        n = x.shape[1]
        t = torch.arange(n, dtype=torch.float32)[:, None] / 10
        taps = self.filter(torch.cat([t, t.sin(), t.cos()], -1)) * torch.exp(-t)
        a, b, v = self.parts(x).chunk(3, -1)
        product = torch.fft.rfft(a * v, n=2 * n, dim=1) * torch.fft.rfft(taps, n=2 * n, dim=0)
        return b * torch.fft.irfft(product, n=2 * n, dim=1)[:, :n]


class DeltaRule(nn.Module):
    """A gated linear recurrence, some steps unrolled."""

    def __init__(self):
        super().__init__()
        self.parts = nn.Linear(8, 26)

    def forward(self, x):
        q, k, v, gates = self.parts(x).split([8, 8, 8, 2], -1)
        learn, keep = torch.sigmoid(gates).unsqueeze(-1).unbind(2)
        k, state, found = functional.normalize(k, dim=-1), x.new_zeros(x.shape[0], 8, 8), []
        for t in range(5):
            key, value, rate = k[:, t, :, None], v[:, t, None], learn[:, t, None]
            state = keep[:, t, None] * (state - rate * key @ (key.transpose(1, 2) @ state)) + rate * key @ value
            found.append((q[:, t, None] @ state).squeeze(1))
        return torch.stack(found, 1)


class Packed(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.net = kind(8, 6, num_layers=2, batch_first=True, bidirectional=True)

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        y, state = self.net(packed)
        y, _ = nn.utils.rnn.pad_packed_sequence(y, batch_first=True)
        return y, state[0] if isinstance(state, tuple) else state


def packed(kind):
    def draw(generator, batch, length):
        lengths = torch.randint(1, length + 1, (batch,), generator=generator)
        lengths[0] = length
        return torch.randn(batch, length, 8, generator=generator), lengths

    return called(
        Packed(kind),
        lambda net, *x: net(*x),
        {"x": {0: "batch", 1: "length"}, "lengths": {0: "batch"}},
        {"y": {0: "batch"}, "state": {1: "batch"}},
        draw,
        [dict(batch=1, length=5), dict(batch=2, length=9), dict(batch=4, length=3)],
        dict(batch=3, length=7),
    )


NETS = {
    "scatter_mean": of_sequences(scatter_mean),
    "scatter_reduce": of_sequences(scatter_reduce, 3),
    "assigned": of_sequences(assigned),
    "accumulated": of_sequences(accumulated),
    "indexed": of_sequences(indexed, 4),
    "masked": of_sequences(masked, 3),
    "selected": of_sequences(selected, 3),
    "repeated": of_sequences(repeated),
    "counted": of_sequences(counted, 3),
    "histogram": of_sequences(histogram, 2),
    "diagonals": of_sequences(diagonals, 4),
    "einsums": of_sequences(einsums, 5),
    "norms": of_sequences(norms, 7),
    "inverse_root": of_sequences(inverse_root),
    "padded_blocks": of_sequences(padded_blocks),
    "spectrum": of_sequences(spectrum, at=(40, 64, 100)),
    "sampled": of_images(sampled, 3),
    "resized_nearest": resized("nearest-exact"),
    "resized_bilinear": resized("bilinear", align_corners=True),
    "resized_bicubic": resized("bicubic"),
    "windows": of_images(windows),
    "boxes": of_images(boxes, 2),
    "suppressed": of_sequences(suppressed, 3),
    "collapsed": of_sequences(collapsed, 2),
    "beam_search": lambda: sequences(Beam(), outputs=names(2)),
    "codebooks": lambda: sequences(Codebooks(), outputs=names(2)),
    "splines": lambda: sequences(Splines()),
    "long_convolution": lambda: sequences(LongConvolution()),
    "delta_rule": lambda: sequences(DeltaRule()),
    "bags": lambda: tokens(nn.EmbeddingBag(VOCAB, 8, mode="max"), mask=False),
    "packed_lstm": lambda: packed(nn.LSTM),
    "packed_gru": lambda: packed(nn.GRU),
}
