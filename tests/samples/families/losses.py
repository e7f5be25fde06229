# SPDX-License-Identifier: Apache-2.0
"""Losses and mixtures of experts, label by label and token by token in float64."""

import itertools

import numpy as np

from families.contractions import ACTIVATIONS
from golden import F, X, numbers, oracle, tensor


def log_softmax(x):
    z = x - x.max()
    return z - np.log(np.exp(z).sum())


def by_label(scores, labels, weight, axis, ignore, of_label):
    """of_label(scores of one label, its class, its weight); the losses, and the weights that count."""
    rows = np.moveaxis(scores, axis, -1)
    loss, counted = np.zeros(labels.shape), np.zeros(labels.shape)
    for at in np.ndindex(*labels.shape):
        if labels[at] != ignore:
            counted[at] = 1 if weight is None else weight[labels[at]]
            loss[at] = of_label(rows[at], labels[at], counted[at])
    return loss, counted


def reduced(loss, counted, reduction):
    return {"none": loss, "sum": loss.sum(), "mean": loss.sum() / np.float64(counted.sum())}[reduction]


def cross_entropy(logits, labels, weight, axis=-1, ignore=None, smoothing=0.0, reduction="none"):
    def of_label(row, label, w):
        logp = log_softmax(row)
        each = logp if weight is None else logp * weight
        return -(1 - smoothing) * w * logp[label] - smoothing / len(row) * each.sum()

    return reduced(*by_label(logits, labels, weight, axis, ignore, of_label), reduction)


def nll(logp, labels, weight, axis=-1, ignore=None, reduction="none"):
    return reduced(*by_label(logp, labels, weight, axis, ignore, lambda row, y, w: -w * row[y]), reduction)


def cross_entropy_grad(logits, labels, d, axis=-1, ignore=None, smoothing=0.0):
    y = np.zeros(np.moveaxis(logits, axis, -1).shape)
    for at in np.ndindex(*labels.shape):
        if labels[at] != ignore:
            row = np.moveaxis(logits, axis, -1)[at]
            target = (1 - smoothing) * (np.arange(len(row)) == labels[at]) + smoothing / len(row)
            y[at] = (np.exp(log_softmax(row)) - target) * d[at]
    return np.moveaxis(y, -1, axis)


def label_losses(family):
    for dtype, index in [(d, "i64") for d in F] + [("f32", i) for i in X]:
        logits, labels = numbers(dtype, (3, 4), 1), tensor(index, [2, 0, 3])
        for weight in (None, tensor(dtype, [0.5, 2, 1, 0.25])):
            w = None if weight is None else weight.a
            y = cross_entropy(logits.a, labels.a, w)
            family.case("softmax_cross_entropy", [logits, labels, weight], oracle(dtype, y))
            family.case("nll_loss", [logits, labels, weight], oracle(dtype, nll(logits.a, labels.a, w)))
        d = numbers(dtype, (3,), 2)
        family.case(
            "softmax_cross_entropy_grad", [logits, labels, d], oracle(dtype, cross_entropy_grad(logits.a, labels.a, d.a))
        )
    logits, labels = numbers("f32", (2, 4, 3), 3), tensor("i64", [[1, -100, 3], [0, 2, -100]])
    weight, d = tensor("f32", [0.5, 2, 1, 0]), numbers("f32", (2, 3), 4)
    for reduction, w, smoothing in itertools.product(("none", "mean", "sum"), (None, weight), (0.0, 0.25)):
        attributes = {"axis": 1, "ignore": -100, "reduction": reduction}
        inputs, a = [logits, labels, w], None if w is None else w.a
        y = cross_entropy(logits.a, labels.a, a, smoothing=smoothing, **attributes)
        family.case("softmax_cross_entropy", inputs, oracle("f32", y), smoothing=smoothing, **attributes)
        if not smoothing:
            family.case("nll_loss", inputs, oracle("f32", nll(logits.a, labels.a, a, **attributes)), **attributes)
        if reduction == "none" and w is None:
            y = cross_entropy_grad(logits.a, labels.a, d.a, 1, -100, smoothing)
            family.case(
                "softmax_cross_entropy_grad", [logits, labels, d], oracle("f32", y), axis=1, ignore=-100, smoothing=smoothing
            )
    none = tensor("i64", [7, 7])
    for op in ("softmax_cross_entropy", "nll_loss"):
        family.case(op, [numbers("f32", (2, 8), 5), none, None], oracle("f32", np.nan), ignore=7, reduction="mean")
        family.case(op, [numbers("f32", (2, 4), 5), tensor("i64", [1, 4]), None], "RLX_E_RANGE")
        family.case(op, [numbers("f32", (2, 4), 5), tensor("i64", [1, 2, 3]), None], "RLX_E_SHAPE")
    for dtype in F:
        for shape, axis in (((2, 3), -1), ((2, 3, 2), 1)):
            x, target = numbers(dtype, shape, 6), numbers(dtype, shape, 7)
            y = -(target.a * np.apply_along_axis(log_softmax, axis, x.a)).sum(axis)
            family.case("soft_cross_entropy", [x, target], oracle(dtype, y), axis=axis)
        x = tensor(dtype, [0, -0.0, 1, -1, 20, -20, 3.5, np.inf, -np.inf, np.nan, 100, -100])
        target = tensor(dtype, [0, 1, 0.5, 1, 1, 0, 0.25, 0.5, 0.5, 1, 1, 1])
        y = np.maximum(x.a, 0) - x.a * target.a + np.log1p(np.exp(-np.abs(x.a)))
        family.case("bce_with_logits", [x, target], oracle(dtype, y))


# ---- experts ----


def gate(logits, bias, k, mode="softmax_topk", normalize=False, scale=1.0):
    weights, index = np.zeros((len(logits), k)), np.zeros((len(logits), k), np.int64)
    for t, row in enumerate(logits):
        p = {
            "softmax_topk": np.exp(log_softmax(row)),
            "sigmoid_topk": 1 / (1 + np.exp(-row)),
            "topk_softmax": row,
        }[mode]
        index[t] = np.argsort(-(p if bias is None else p + bias), kind="stable")[:k]
        w = p[index[t]]
        w = np.exp(log_softmax(w)) if mode == "topk_softmax" else w
        weights[t] = scale * (w / w.sum() if normalize else w)
    return weights, index


def ffn(x, up, down, index, weights, gate_bank, act="silu", transpose_w=False):
    def through(row, bank, e):
        return bank[e] @ row if transpose_w else row @ bank[e]

    y = np.zeros((len(x), down.shape[1] if transpose_w else down.shape[2]))
    for t, j in np.ndindex(*index.shape):
        e = index[t, j]
        h = through(x[t], up, e)
        h = ACTIVATIONS[act](h) if gate_bank is None else h * ACTIVATIONS[act](through(x[t], gate_bank, e))
        y[t] += weights[t, j] * through(h, down, e)
    return y


def experts(family):
    modes = ("softmax_topk", "topk_softmax", "sigmoid_topk")
    cases = [("f32", mode, n) for mode in modes for n in (False, True)] + [(d, "softmax_topk", False) for d in F]
    for dtype, mode, normalize in cases:
        logits, bias = numbers(dtype, (3, 5), 1), numbers(dtype, (5,), 2)
        for b in (None, bias):
            w, index = gate(logits.a, None if b is None else b.a, 2, mode, normalize, 1.5)
            outputs = [oracle(dtype, w), tensor("i32", index)]
            family.case("moe_gate", [logits, b], outputs, k=2, mode=mode, normalize=normalize, scale=1.5)
    for index_dtype in X:
        logits = numbers("f32", (2, 3), 3)
        w, index = gate(logits.a, None, 3)
        outputs = [oracle("f32", w), tensor(index_dtype, index)]
        family.case("moe_gate", [logits, None], outputs, k=3, index_dtype=index_dtype)
    family.case("moe_gate", [numbers("f32", (2, 3), 3), None], "RLX_E_SHAPE", k=4)
    cases = [("f32", act, t) for act in ACTIVATIONS for t in (False, True)] + [(d, "silu", False) for d in F]
    for dtype, act, transposed in cases:
        x, weights = numbers(dtype, (3, 2), 4), numbers(dtype, (3, 2), 5)
        shape = (4, 3, 2) if transposed else (4, 2, 3)
        up, gated = numbers(dtype, shape, 6), numbers(dtype, shape, 7)
        down = numbers(dtype, (4, 2, 3) if transposed else (4, 3, 2), 8)
        for gate_bank, index_dtype in ((None, "i32"), (gated, "i64")):
            index = tensor(index_dtype, [[0, 3], [2, 1], [3, 3]])
            y = ffn(x.a, up.a, down.a, index.a, weights.a, None if gate_bank is None else gate_bank.a, act, transposed)
            inputs = [x, up, down, index, weights, gate_bank]
            family.case("moe_ffn", inputs, oracle(dtype, y), act=act, transpose_w=transposed)


def add(family):
    label_losses(family)
    experts(family)
