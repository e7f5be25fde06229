# SPDX-License-Identifier: Apache-2.0
"""Primitive 60: the Fourier transform, as the sum that defines it."""

import numpy as np

from golden import Z, numbers, oracle, tensor

FACTOR = {
    ("backward", False): 0,
    ("backward", True): -1,
    ("ortho", False): -0.5,
    ("ortho", True): -0.5,
    ("forward", False): -1,
    ("forward", True): 0,
}


def transformed(a, axes, inverse, norm):
    for axis in axes:
        n = a.shape[axis]
        angles = 2 * np.pi * (np.outer(np.arange(n), np.arange(n)) % n) / n
        matrix = np.exp((1j if inverse else -1j) * angles) * float(n) ** FACTOR[norm, inverse]
        a = np.moveaxis(np.moveaxis(a, axis, -1) @ matrix.T, -1, axis)
    return a


def add(family):
    assert np.allclose(transformed(np.arange(1, 5) + 0j, [0], False, "ortho"), [5, -1 + 1j, -1, -1 - 1j])
    assert np.allclose(transformed(np.arange(1, 5) + 0j, [0], True, "backward"), [2.5, -0.5 - 0.5j, -0.5, -0.5 + 0.5j])
    for dtype in Z:
        for norm, inverse in FACTOR:
            x = tensor(dtype, [1, 2, 3, 4])
            family.case("fft", [x], oracle(dtype, transformed(x.a, [0], inverse, norm)), inverse=inverse, norm=norm)
        for n in (1, 2, 3, 5, 7, 8, 12, 17):
            x = numbers(dtype, (n,), n)
            family.case("fft", [x], oracle(dtype, transformed(x.a, [0], False, "backward")))
        for shape, axes in (((2, 3, 4), [1]), ((2, 3, 4), [0, 2]), ((3, 5), [-2, -1]), ((0, 4), [1]), ((1, 1), [0])):
            x = numbers(dtype, shape, 1)
            family.case("fft", [x], oracle(dtype, transformed(x.a, axes, True, "backward")), axes=axes, inverse=True)
