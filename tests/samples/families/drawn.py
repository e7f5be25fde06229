# SPDX-License-Identifier: Apache-2.0
"""Distributions, from the words of the Philox stream of random_bits.py."""

import itertools
import math

import ml_dtypes
import numpy as np

from families.random_bits import bits, plus
from golden import FLOATS, F, I, X, int_range, numbers, oracle, round_float, tensor, wrap

HELD = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}


def state(seed, counter=(0, 0, 0, 0)):
    return tensor("u32", [seed, 0]), tensor("u32", list(counter))


def words(key, counter, count):
    return [int(w) for w in bits([int(v) for v in key.a], [int(v) for v in counter.a], count)[0]]


def next_counter(counter, count):
    return tensor("u32", plus([int(v) for v in counter.a], -(-count // 4)))


def uniform(key, counter, dtype, shape):
    """(numbers of [0, 1), how many words they took)"""
    n = math.prod(shape)
    if dtype == "f64":
        w = words(key, counter, 2 * n)
        u = [((w[2 * i] | w[2 * i + 1] << 32) >> 11) * 2.0**-53 for i in range(n)]
        return np.array(u).reshape(shape), 2 * n
    held = HELD[dtype]
    u = [(w >> (32 - held)) * 2.0**-held for w in words(key, counter, n)]
    return np.array(u, np.float64).reshape(shape), n


def number_below(dtype, x):
    kind = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}[dtype]
    nearest = kind(x)
    return float(nearest if nearest < x else np.nextafter(nearest, kind(-np.inf)))


def counter_of_the_last_number(key, dtype):
    """A counter whose first four words have one that makes the largest number below 1."""
    for start in itertools.count():
        if max(words(key, tensor("u32", [start, 0, 0, 0]), 4)) >> (32 - HELD[dtype]) == 2 ** HELD[dtype] - 1:
            return [start, 0, 0, 0]


def ends_of_uniforms(family):
    """low and high, where rounding would reach high, or where their distance is no number."""
    for dtype in ("f16", "bf16"):
        last = counter_of_the_last_number(state(1)[0], dtype)
        key, counter = state(1, last)
        u, used = uniform(key, counter, dtype, (4,))
        for low, high in ((1.0, 2.0), (-2.0, -1.0), (-1.0, 0.0), (0.1, 0.7), (2.5, 2.5)):
            y = round_float(low + u * (high - low), dtype)
            y = np.minimum(y, number_below(dtype, high)) if low < high else y
            outputs = [tensor(dtype, y), next_counter(counter, used)]
            family.case("rng_uniform", [key, counter], outputs, shape=[4], low=low, high=high, dtype=dtype)
    for dtype, high in (("f32", 2.0**127), ("bf16", 2.0**127), ("f64", 2.0**1023)):
        key, counter = state(1)
        u, used = uniform(key, counter, dtype, (6,))
        outputs = [tensor(dtype, high * u - high * (1 - u)), next_counter(counter, used)]
        family.case("rng_uniform", [key, counter], outputs, shape=[6], low=-high, high=high, dtype=dtype)


def uniforms(family):
    for dtype in F:
        for shape, low, high in (((6,), 0.0, 1.0), ((2, 3), -2.0, 2.0), ((6,), -1.0, 1.0), ((0,), 0.0, 1.0)):
            key, counter = state(1)
            u, used = uniform(key, counter, dtype, shape)
            y = round_float(low + u * (high - low), dtype)
            outputs = [oracle(dtype, y), next_counter(counter, used)]
            family.case("rng_uniform", [key, counter], outputs, shape=list(shape), low=low, high=high, dtype=dtype)
        for shape, mean, std in (((6,), 0.0, 1.0), ((3, 1), 2.0, 0.5)):
            key, counter = state(1)
            pairs = (math.prod(shape) + 1) // 2
            u, used = uniform(key, counter, "f64" if dtype == "f64" else "f32", (pairs, 2))
            r = np.sqrt(-2 * np.log(1 - u[:, 0]))
            z = np.stack([r * np.cos(2 * np.pi * u[:, 1]), r * np.sin(2 * np.pi * u[:, 1])], 1).ravel()
            y = z[: math.prod(shape)].reshape(shape) * std + mean
            outputs = [oracle(dtype, y), next_counter(counter, used)]
            family.case("rng_normal", [key, counter], outputs, shape=list(shape), mean=mean, std=std, dtype=dtype)
            if dtype == "f32" and shape == (6,):
                assert np.allclose(y[:3], [1.65851203, -1.29174494, -0.319898917])
    for dtype in I:
        low, high = (3, 10) if dtype[0] == "u" else (-5, 100)
        key, counter = state(1, (2**32 - 1, 2**32 - 1, 0, 0))
        y = [wrap(low + (w * (high - low) >> 32), dtype) for w in words(key, counter, 6)]
        outputs = [tensor(dtype, y), next_counter(counter, 6)]
        family.case("rng_int", [key, counter], outputs, shape=[6], low=low, high=high, dtype=dtype)
    family.case("rng_int", [*state(1)], "RLX_E_OPTION", shape=[2], low=3, high=3)


def choices(family):
    for dtype in F:
        key, counter = state(7)
        p = tensor(dtype, [[0, 0.25, 0.5], [0.75, 1, 0.5]])
        u, used = uniform(key, counter, "f32", (2, 3))
        family.case("bernoulli", [p, key, counter], [tensor("bool", u < p.a), next_counter(counter, used)])
        for rate in (0.5, 0.25, 0.0, 1.0):
            x = numbers(dtype, (2, 3), 1)
            y = np.where(u >= rate, x.a / (1 - rate) if rate < 1 else 0, 0)
            outputs = [oracle(dtype, y), tensor("bool", u >= rate), next_counter(counter, used)]
            family.case("dropout", [x, key, counter], outputs, p=rate)
        logits = numbers(dtype, (2, 5), 2)
        c = np.cumsum(np.exp(logits.a) / np.exp(logits.a).sum(1, keepdims=True), 1)
        u, used = uniform(key, counter, "f32", (2, 3))
        index = np.minimum((c[:, None, :] <= (u * c[:, -1:])[..., None]).sum(2), 4)
        for index_dtype in X:
            outputs = [tensor(index_dtype, index), next_counter(counter, used)]
            family.case("categorical", [logits, key, counter], outputs, n=3, index_dtype=index_dtype)


def sampled(logits, u, temperature=None, top_k=None, top_p=None, min_p=None):
    order = sorted(range(len(logits)), key=lambda i: -logits[i])
    if temperature == 0:
        return order[0]
    v = np.array([logits[i] for i in order]) / (1 if temperature is None else temperature)
    if top_k is not None and top_k > 0:
        v[top_k:] = -np.inf
    p = np.exp(v - v[0])
    p = p / p.sum()
    keep = np.ones(len(p), bool)
    if top_p is not None:
        keep &= np.cumsum(p) - p < top_p
    if min_p is not None:
        keep &= p >= min_p * p[0]
    keep[0] = True
    c = np.cumsum(p * keep)
    return order[min(int((c <= u * c[-1]).sum()), len(p) - 1)]


def tokens(family):
    rng = np.random.default_rng(3)
    for dtype, rule in [(d, {}) for d in F] + [
        ("f32", {"temperature": 0.5, "top_p": 0.8}),
        ("f32", {"top_k": 3}),
        ("f32", {"min_p": 0.3}),
        ("f32", {"temperature": 0.0}),
        ("f32", {"temperature": 2.0, "top_k": -1, "top_p": 0.9, "min_p": 0.05}),
    ]:
        key, counter = state(9)
        logits = tensor(dtype, np.stack([rng.permutation(7) for _ in range(8)]) / 2)
        u, used = uniform(key, counter, "f32", (8,))
        index = [sampled(row, u[i], **rule) for i, row in enumerate(logits.a)]
        settings = [rule.get(name) for name in ("temperature", "top_k", "top_p", "min_p")]
        kinds = ("f32", "i64", "f32", "f32")
        given = [None if v is None else tensor(kind, v) for v, kind in zip(settings, kinds, strict=True)]
        outputs = [tensor("i64", index), next_counter(counter, used)]
        family.case("sample_token", [logits, key, counter, *given], outputs)
    for dtype in F:
        key, counter = state(9)
        logits = tensor("f32", np.stack([rng.permutation(7) for _ in range(3)]) / 2)
        u, used = uniform(key, counter, "f32", (3,))
        rows = [{"temperature": t, "top_k": k, "top_p": p, "min_p": m} for t, k, p, m in ((0.5, 2, 1, 0), (0, 9, 0.5, 0), (1, 4, 0.75, 0.25))]
        index = [sampled(row, u[i], **rows[i]) for i, row in enumerate(logits.a)]
        kinds = (dtype, "i32", dtype, dtype)
        given = [
            tensor(kind, [row[name] for row in rows])
            for name, kind in zip(("temperature", "top_k", "top_p", "min_p"), kinds, strict=True)
        ]
        outputs = [tensor("i32", index), next_counter(counter, used)]
        family.case("sample_token", [logits, key, counter, *given], outputs, index_dtype="i32")


def add(family):
    uniforms(family)
    ends_of_uniforms(family)
    choices(family)
    tokens(family)
