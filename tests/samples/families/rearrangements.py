# SPDX-License-Identifier: Apache-2.0
"""Composites that repeat, turn and fold elements into other places, and diagonals."""

import numpy as np

from families.movement import like, source
from golden import A, D, X, numbers, tensor


def repeats(family):
    for dtype in A:
        x = source(dtype, (2, 3))
        family.case("repeat", [x], like(x, np.repeat(x.a, 2, 1)), axis=1, repeats=2)
        family.case("roll", [x], like(x, np.roll(x.a, 1, 1)), axis=1, shift=1)
    for shape, axis in (((3,), 0), ((2, 1, 5), 0), ((2, 1, 5), -2), ((2, 1, 5), 2), ((0, 3), 0), ((3, 0), 0)):
        x = source("i32", shape)
        for times in (0, 1, 3):
            family.case("repeat", [x], like(x, np.repeat(x.a, times, axis)), axis=axis, repeats=times)
        for shift in (0, 1, -1, 2, 7, -8):
            family.case("roll", [x], like(x, np.roll(x.a, shift, axis)), axis=axis, shift=shift)
    family.case("repeat", [source("i32", ())], "RLX_E_RANGE", axis=0, repeats=2)
    family.case("repeat", [source("i32", (2,))], "RLX_E_OPTION", axis=0, repeats=-1)
    family.case("roll", [source("i32", (2,))], "RLX_E_RANGE", axis=1, shift=1)


def diagonals(family):
    for dtype in D:
        family.case("eye", [], tensor(dtype, np.eye(2, 3)), n=2, m=3, dtype=dtype)
    for n, m in ((0, None), (1, None), (3, None), (3, 0), (0, 2), (1, 5), (5, 3)):
        for k in (0, 1, -2):
            family.case("eye", [], tensor("f32", np.eye(n, m, k)), n=n, m=m, k=k or None, dtype="f32")


# ---- blocks of images ----


def spread_channels(x, b, mode):
    """Which of its block a channel is comes first in its number, or last."""
    n, channels, h, w = x.shape
    c = channels // (b * b)
    y = np.zeros((n, c, h * b, w * b), x.dtype)
    for at in np.ndindex(*y.shape):
        item, k, row, column = at
        place = row % b * b + column % b
        y[at] = x[item, place * c + k if mode == "dcr" else k * b * b + place, row // b, column // b]
    return y


def gather_channels(x, b):
    n, c, h, w = x.shape
    y = np.zeros((n, c * b * b, h // b, w // b), x.dtype)
    for item, k, row, column in np.ndindex(*x.shape):
        y[item, (row % b * b + column % b) * c + k, row // b, column // b] = x[item, k, row, column]
    return y


def blocks(family):
    for dtype in A:
        x = source(dtype, (1, 4, 1, 2))
        family.case("depth_to_space", [x], like(x, spread_channels(x.a, 2, "dcr")), block=2)
        x = source(dtype, (1, 1, 2, 4))
        family.case("space_to_depth", [x], like(x, gather_channels(x.a, 2)), block=2)
    for shape, b in (((2, 8, 3, 1), 2), ((1, 9, 1, 1), 3), ((1, 3, 2, 2), 1), ((0, 4, 3, 3), 2), ((1, 4, 0, 3), 2)):
        x = source("i32", shape)
        for mode in ("dcr", "crd"):
            y = like(x, spread_channels(x.a, b, mode))
            family.case("depth_to_space", [x], y, block=b, mode=mode)
        family.case("space_to_depth", [y], like(x, gather_channels(y.a, b)), block=b)
    family.case("depth_to_space", [source("i32", (1, 6, 2, 2))], "RLX_E_SHAPE", block=2)
    family.case("space_to_depth", [source("i32", (1, 1, 3, 2))], "RLX_E_SHAPE", block=2)
    family.case("space_to_depth", [source("i32", (1, 2, 2))], "RLX_E_SHAPE", block=2)


# ---- sequences, crops and pads ----


def reversed_steps(x, lens, time, batch):
    y = np.moveaxis(x.copy(), (batch, time), (0, 1))
    for row, length in zip(y, lens, strict=True):
        row[:length] = row[:length][::-1].copy()
    return np.moveaxis(y, (0, 1), (batch, time))


def sequences(family):
    for dtype in A:
        x, lens = source(dtype, (3, 2)), tensor("i64", [2, 3])
        family.case("reverse_sequence", [x, lens], like(x, reversed_steps(x.a, lens.a, 0, 1)))
    for shape, lens, time, batch in (
        ((4, 3), [0, 1, 4], 0, 1),
        ((3, 5), [5, 2, 3], 1, 0),
        ((2, 3, 4), [1, 4], -1, 0),
        ((2, 1, 5), [5], -1, -2),
        ((0, 2), [0, 0], 0, 1),
        ((3, 0), [], 0, 1),
    ):
        for index in X:
            x, n = source("i32", shape), tensor(index, lens)
            y = like(x, reversed_steps(x.a, lens, time, batch))
            family.case("reverse_sequence", [x, n], y, time_axis=time, batch_axis=batch)


def centred(x, sizes, axes):
    for m, axis in zip(sizes, axes, strict=True):
        n = x.shape[axis]
        if n >= m:
            first = (n - m) // 2
            x = np.take(x, range(first, first + m), axis)
        else:
            widths = [(0, 0)] * x.ndim
            widths[axis] = ((m - n) // 2, m - n - (m - n) // 2)
            x = np.pad(x, widths)
    return x


def crops(family):
    for dtype in A:
        x = source(dtype, (3, 4))
        family.case("center_crop_pad", [x], like(x, centred(x.a, [4, 1], [0, 1])), shape=[4, 1])
    for shape, sizes, axes in (
        ((5,), [2], [0]),
        ((5,), [4], [0]),
        ((5,), [5], [0]),
        ((5,), [8], [0]),
        ((5,), [0], [0]),
        ((0,), [3], [0]),
        ((2, 3, 5), [4, 1], [-1, 0]),
        ((2, 3, 5), [6], [1]),
        ((2, 0, 1), [3, 1, 4], [0, 1, 2]),
        ((), [], []),
    ):
        x = source("i32", shape)
        y = like(x, centred(x.a, sizes, axes))
        family.case("center_crop_pad", [x], y, shape=sizes, axes=axes)
    family.case("center_crop_pad", [numbers("f32", (2, 2))], "RLX_E_OPTION", shape=[1], axes=[0, 1])


def add(family):
    repeats(family)
    diagonals(family)
    blocks(family)
    sequences(family)
    crops(family)
