# SPDX-License-Identifier: Apache-2.0
"""Primitives 61-66 by LAPACK in float64, with the signs that the op set fixes. The matrices are well conditioned and
their eigenvalues and singular values apart, so that the factors themselves can be compared.
"""

import itertools
import math

import numpy as np
from scipy import linalg

from golden import oracle, tensor

REAL = ("f32", "f64")


def matrices(dtype, batch, m, n, seed):
    rng = np.random.default_rng([seed, m, n])
    a = rng.normal(0, 1, (*batch, m, n))
    for i in range(min(m, n)):
        a[..., i, i] += 3 + 2 * i
    return tensor(dtype, np.round(a, 3))


def each(function, *arrays):
    """Applies a function of matrices to each item of the batch and stacks every result."""
    batch = arrays[0].shape[:-2]
    flat = [a.reshape(-1, *a.shape[-2:]) for a in arrays]
    results = [function(*items) for items in zip(*flat, strict=True)]
    return [np.stack(parts).reshape((*batch, *parts[0].shape)) for parts in zip(*results, strict=True)]


def lu(a):
    packed, swaps = linalg.lu_factor(a)
    order, sign = np.arange(len(a)), 1.0
    for i, j in enumerate(swaps):
        if i != j:
            order[[i, j]] = order[[j, i]]
            sign = -sign
    assert np.allclose(a[order], (np.tril(packed, -1) + np.eye(len(a))) @ np.triu(packed))
    return packed, order, np.array(sign)


def qr(a, full):
    q, r = np.linalg.qr(a, "complete" if full else "reduced")
    flip = np.ones(q.shape[1])
    diagonal = np.diag(r)
    flip[: len(diagonal)] = np.where(diagonal < 0, -1, 1)
    rows = flip[: r.shape[0]]
    return q * flip, r * rows[:, None]


def column_signs(v):
    """The first component of magnitude >= 0.72 of the largest is positive."""
    magnitude = np.abs(v)
    first = np.argmax(magnitude >= 0.72 * magnitude.max(0), 0)
    return np.sign(v[first, np.arange(v.shape[1])])


def eigh(a):
    w, v = np.linalg.eigh(np.tril(a) + np.tril(a, -1).T)
    return w, v * column_signs(v)


def svd(a, full):
    u, s, vt = np.linalg.svd(a, full)
    signs = column_signs(u)
    return u * signs, s, vt * signs[: vt.shape[0], None]


def factors(family, dtype):
    for batch, n in (((), 1), ((), 4), ((2, 1), 3), ((), 0)):
        a = matrices(dtype, batch, n, n, 1)
        if n == 0:
            empty, none = oracle(dtype, np.zeros((0, 0))), tensor("i64", np.zeros(0))
            family.case("lu", [empty], [empty, none, oracle(dtype, np.ones(()))])
            family.case("cholesky", [empty], empty)
            continue
        a.a = a.a[..., ::-1, :].copy()  # so that rows must be exchanged
        packed, order, sign = each(lu, a.a)
        for index in ("i32", "i64"):
            family.case(
                "lu", [a], [oracle(dtype, packed), tensor(index, order), oracle(dtype, sign)], index_dtype=index
            )
        spd = tensor(dtype, np.round(a.a @ np.swapaxes(a.a, -1, -2), 2))
        lower = np.linalg.cholesky(spd.a)
        spd.a = spd.a + np.triu(np.full((n, n), 7.0), 1)  # the upper triangle is not read
        family.case("cholesky", [spd], oracle(dtype, lower))
    bad = tensor(dtype, [[[4, 0], [2, 5]], [[1, 0], [2, 1]]])
    family.case("cholesky", [bad], oracle(dtype, [[[2, 0], [1, 2]], [[np.nan] * 2] * 2]))
    singular = tensor(dtype, [[1, 2], [2, 4]])
    family.case(
        "lu", [singular], [oracle(dtype, [[2, 4], [0.5, 0]]), tensor("i64", [1, 0]), oracle(dtype, np.array(-1.0))]
    )


def solves(family, dtype):
    for batch, b_batch, n, k in (
        ((), (), 3, 2),
        ((2,), (2,), 2, 1),
        ((2, 1), (3,), 2, 2),
        ((), (), 1, 1),
        ((), (), 2, 0),
    ):
        a, b = matrices(dtype, batch, n, n, 2), matrices(dtype, b_batch, n, k, 3)
        for lower in (True, False):
            for transpose in (True, False):
                for unit in (True, False):
                    t = np.tril(a.a) if lower else np.triu(a.a)
                    t = t - np.eye(n) * t + np.eye(n) if unit else t
                    x = np.linalg.solve(np.swapaxes(t, -1, -2) if transpose else t, b.a)
                    family.case(
                        "triangular_solve",
                        [a, b],
                        oracle(dtype, x),
                        lower=lower,
                        transpose=transpose,
                        unit_diagonal=unit,
                    )


def decompositions(family, dtype):
    for batch, m, n in (((), 3, 3), ((), 4, 2), ((), 2, 4), ((2,), 3, 2), ((), 1, 1)):
        a = matrices(dtype, batch, m, n, 4)
        for full in (False, True):
            if full and m > n:
                continue  # the sign of a free column is not fixed
            q, r = each(lambda x, full=full: qr(x, full), a.a)
            family.case("qr", [a], [oracle(dtype, q), oracle(dtype, r)], full=full)
        u, s, vt = each(lambda x: svd(x, False), a.a)
        family.case("svd", [a], [oracle(dtype, u), oracle(dtype, s), oracle(dtype, vt)])
        if m == n or m == n + 1:
            u, s, vt = each(lambda x: svd(x, True), a.a)
            family.case("svd", [a], [oracle(dtype, u), oracle(dtype, s), oracle(dtype, vt)], full=True)
    for batch, n in (((), 1), ((), 4), ((2,), 3)):
        a = matrices(dtype, batch, n, n, 5)
        w, v = each(eigh, a.a)
        family.case("eigh", [a], [oracle(dtype, w), oracle(dtype, v)])


def far_scales(family):
    """Matrices whose elements f64 holds, but not their squares."""
    for exponent, (m, n) in itertools.product((-1060, -1021, -600, 600, 1016), ((2, 2), (4, 2), (2, 4))):
        a = matrices("f64", (), m, n, 7)
        a.a = np.ldexp(np.round(a.a * 8), exponent)  # whole multiples, which denormals hold too
        scale = math.ldexp(1, exponent)
        near = a.a / scale
        q, r = qr(near, False)
        family.case("qr", [a], [oracle("f64", q), oracle("f64", r * scale)])
        u, s, vt = svd(near, False)
        family.case("svd", [a], [oracle("f64", u), oracle("f64", s * scale), oracle("f64", vt)])
        if m == n:
            w, v = eigh(near)
            family.case("eigh", [a], [oracle("f64", w * scale), oracle("f64", v)])


def halves(family):
    for dtype in ("f16", "bf16"):
        a = matrices(dtype, (), 2, 2, 6)
        for op in ("lu", "cholesky", "qr", "eigh", "svd"):
            family.case(op, [a], "RLX_E_DTYPE")
        family.case("triangular_solve", [a, a], "RLX_E_DTYPE")


def add(family):
    halves(family)
    far_scales(family)
    for dtype in REAL:
        factors(family, dtype)
        solves(family, dtype)
        decompositions(family, dtype)
