# SPDX-License-Identifier: Apache-2.0
"""Systems of equations and determinants by numpy.linalg; transforms of real signals by numpy.fft; windows."""

import itertools

import numpy as np

from golden import F, PART, Z, numbers, oracle, tensor

WIDE = ("f32", "f64")
HALF = ("f16", "bf16")


def regular(dtype, shape, seed):
    """Well conditioned."""
    x = numbers(dtype, shape, seed, 0.5)
    return tensor(dtype, x.a + 3 * np.eye(*shape[-2:]))


def systems(family):
    for dtype in WIDE:
        a = regular(dtype, (2, 3, 3), 1)
        for b in (numbers(dtype, (2, 3), 2), numbers(dtype, (2, 3, 2), 3)):
            right = b.a[..., None] if b.a.ndim == 2 else b.a
            family.case("solve", [a, b], oracle(dtype, np.linalg.solve(a.a, right).reshape(b.shape)))
        family.case("inverse", [a], oracle(dtype, np.linalg.inv(a.a)))
        family.case("det", [a], oracle(dtype, np.linalg.det(a.a)))
        sign, logabs = np.linalg.slogdet(a.a)
        family.case("slogdet", [a], [oracle(dtype, sign), oracle(dtype, logabs)])
        tall, b = regular(dtype, (4, 2), 4), numbers(dtype, (4, 3), 5)
        family.case("lstsq", [tall, b], oracle(dtype, np.linalg.lstsq(tall.a, b.a, rcond=None)[0]))
        for x in (tall, a, tensor(dtype, [[1, 2], [2, 4], [0, 0]])):
            family.case("pinv", [x], oracle(dtype, np.linalg.pinv(x.a, rcond=1e-6)), rcond=1e-6)
        family.case("pinv", [tall], oracle(dtype, np.linalg.pinv(tall.a)))
        singular = tensor(dtype, [[0, 1], [0, 3]])
        family.case("det", [singular], tensor(dtype, 0))
        family.case("slogdet", [singular], [tensor(dtype, 0), tensor(dtype, -np.inf)])
        family.case("det", [numbers(dtype, (2, 0, 0))], tensor(dtype, [1, 1]))
    for scale in (2.0**-600, 2.0**600):
        a, b = tensor("f64", np.array([[1, 1], [1, 2]]) * scale), tensor("f64", [[1], [2]])
        family.case("pinv", [a], oracle("f64", np.array([[2, -1], [-1, 1]]) / scale))
        family.case("lstsq", [a, b], oracle("f64", np.array([[0], [1]]) / scale))
    three = tensor("f32", [[2, 1, 0], [1, 3, 1], [0, 1, 2]])
    family.case("solve", [three, tensor("f32", [1, 2, 3])], tensor("f32", [0.5, 0, 1.5]))
    exact = np.array([[5 / 8, -1 / 4, 1 / 8], [-1 / 4, 1 / 2, -1 / 4], [1 / 8, -1 / 4, 5 / 8]])
    family.case("inverse", [three], oracle("f32", exact))
    family.case("det", [tensor("f32", [[1, 2, 3], [4, 5, 6], [7, 8, 10]])], tensor("f32", -3))
    for dtype in HALF:
        a, b = regular(dtype, (2, 2), 6), numbers(dtype, (2, 2), 7)
        for op, inputs in (("solve", [a, b]), ("lstsq", [a, b])):
            family.case(op, inputs, "RLX_E_DTYPE")
        for op in ("inverse", "det", "slogdet", "pinv"):
            family.case(op, [a], "RLX_E_DTYPE")


COMPLEX = {"f32": "c64", "f64": "c128"}


def transforms(family):
    for dtype, norm, (shape, axis, n) in itertools.product(
        WIDE, ("backward", "ortho", "forward"), (((5,), -1, None), ((2, 4), 1, 6), ((4, 2), 0, 3), ((1, 1), 1, 1))
    ):
        x = numbers(dtype, shape, 8)
        y = np.fft.rfft(x.a, n, axis, norm)
        family.case("rfft", [x], oracle(COMPLEX[dtype], y), axis=axis, n=n, norm=norm)
        x = numbers(COMPLEX[dtype], shape, 9)
        n = n or 2 * (shape[axis] - 1)
        y = np.fft.irfft(x.a, n, axis, norm)
        family.case("irfft", [x], oracle(dtype, y), axis=axis, n=n, norm=norm)
    x = numbers("c64", (3,), 10)
    family.case("irfft", [x], oracle("f32", np.fft.irfft(x.a)))
    for dtype in HALF:
        family.case("rfft", [numbers(dtype, (4,))], "RLX_E_DTYPE")
    for dtype, onesided, size in itertools.product((*WIDE, *Z), (True, False), (None, 4, 3)):
        if dtype in PART and onesided:
            continue
        x = numbers(dtype, (2, 11), 11)
        window = None if size is None else numbers(PART.get(dtype, dtype), (size,), 12)
        weights = np.ones(4)
        if size:
            weights = np.zeros(4)
            weights[(4 - size) // 2 : (4 - size) // 2 + size] = window.a
        frames = np.stack([x.a[:, 3 * f : 3 * f + 4] * weights for f in range(3)], 1)
        y = np.fft.rfft(frames) if onesided else np.fft.fft(frames)
        family.case("stft", [x, window], oracle(COMPLEX.get(dtype, dtype), y), frame=4, hop=3, onesided=onesided)
    family.case("stft", [numbers("c64", (1, 4))], "RLX_E_OPTION", frame=2, hop=1)
    for dtype in HALF:
        family.case("stft", [numbers(dtype, (1, 4))], "RLX_E_DTYPE", frame=2, hop=1)
        family.case("stft", [numbers("f32", (1, 4)), numbers(dtype, (2,))], "RLX_E_DTYPE", frame=2, hop=1)
    for dtype, kind, periodic, size in itertools.product(
        F, ("hann", "hamming", "blackman"), (True, False), (5, 1, 0)
    ):
        if size < 2 and dtype != "f32":
            continue
        t = 2 * np.pi * np.arange(size) / max(1, size if periodic else size - 1)
        y = {
            "hann": 0.5 - 0.5 * np.cos(t),
            "hamming": 25 / 46 - 21 / 46 * np.cos(t),
            "blackman": 0.42 - 0.5 * np.cos(t) + 0.08 * np.cos(2 * t),
        }[kind]
        y = np.ones(1) if size == 1 else y
        family.case("window", [], oracle(dtype, y), size=size, kind=kind, periodic=periodic, dtype=dtype)


def add(family):
    systems(family)
    transforms(family)
