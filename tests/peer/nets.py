# SPDX-License-Identifier: Apache-2.0
"""What the tables of networks (nets_*.py) are written with: a network is a function that makes a `Net` of export.py."""

import torch
from torch import nn

from export import Net, padded

VOCAB, HIDDEN, LAYERS, HEADS, KV_HEADS, INNER = 100, 32, 2, 4, 2, 64


class Calls(nn.Module):
    """A module, called as a function says: exporters want tensors in and a tuple of tensors out."""

    def __init__(self, net, call):
        super().__init__()
        self.net = net
        self.call = call

    def forward(self, *inputs):
        results = self.call(self.net, *inputs)
        return tuple(results) if isinstance(results, (tuple, list)) else results


def called(net, call, inputs, outputs, make, sizes, example):
    return Net(Calls(net, call), inputs, outputs, make, sizes, example, rest=0)


def net_of_floats(net, inputs, outputs, sizes, example, call=None):
    """All inputs are drawn from a normal distribution. inputs, outputs: name -> dims; a dim is a number or a symbol."""
    axes = {name: {i: d for i, d in enumerate(dims) if isinstance(d, str)} for name, dims in inputs.items()}

    def make(generator, **values):
        return tuple(
            torch.randn([values[d] if isinstance(d, str) else d for d in dims], generator=generator)
            for dims in inputs.values()
        )

    return called(net, call or (lambda net, *x: net(*x)), axes, outputs, make, sizes, example)


def image_net(net, outputs=("y",), call=None, at=((64, 64), (96, 64), (64, 128)), batches=(1, 2, 3), channels=3):
    """Images of any batch and size; at: height and width of the three cases."""
    sizes = [dict(batch=b, height=h, width=w) for b, (h, w) in zip(batches, at, strict=True)]
    example = dict(batch=2, height=at[1][0], width=at[1][1])
    inputs = {"pixels": ("batch", channels, "height", "width")}
    return net_of_floats(net, inputs, {name: {0: "batch"} for name in outputs}, sizes, example, call)


def fixed_image_net(net, size, outputs=("y",), call=None, batches=(1, 2, 5), channels=3):
    """Images of one size, any batch."""
    sizes = [dict(batch=b) for b in batches]
    inputs = {"pixels": ("batch", channels, size, size)}
    return net_of_floats(net, inputs, {name: {0: "batch"} for name in outputs}, sizes, dict(batch=3), call)


def sequences(net, width=8, call=None, outputs=("y",), at=(5, 12, 31), more=None):
    """[batch, length, width] of any batch and length."""
    inputs = {"x": ("batch", "length", width)} | (more or {})
    sizes = [dict(batch=i + 1, length=n) for i, n in enumerate(at)]
    return net_of_floats(net, inputs, {o: {0: "batch"} for o in outputs}, sizes, dict(batch=2, length=9), call)


def rows(net, width=8, outputs=("y",), call=None):
    inputs = {"x": ("batch", width)}
    return net_of_floats(
        net, inputs, {o: {0: "batch"} for o in outputs}, [dict(batch=b) for b in (1, 4, 9)], dict(batch=3), call
    )


def tokens(net, call=None, outputs=("y",), at=(5, 12, 31), mask=True):
    """Numbers of tokens and a mask that is padded on the right."""

    def draw(generator, batch, length):
        ids = torch.randint(0, VOCAB, (batch, length), generator=generator)
        return (ids, padded(generator, batch, length)) if mask else (ids,)

    axes = {0: "batch", 1: "length"}
    inputs = {"ids": axes, "mask": axes} if mask else {"ids": axes}
    return called(
        net,
        call or (lambda n, *x: n(*x)),
        inputs,
        {o: {0: "batch"} for o in outputs},
        draw,
        [dict(batch=i + 1, length=n) for i, n in enumerate(at)],
        dict(batch=2, length=9),
    )
