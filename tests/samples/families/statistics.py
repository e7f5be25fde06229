# SPDX-License-Identifier: Apache-2.0
"""Composites of reductions: moments, norms and logarithms of sums along axes, and hardmax."""

import numpy as np

from families.reductions import result, wide
from golden import F, I, numbers, oracle, specials, tensor


def moment(x, axes, keep, correction=0):
    count = np.prod([x.shape[k] for k in axes])
    centred = x - np.sum(x, axes, keepdims=True) / count
    return np.sum(centred * centred, axes, keepdims=keep) / (count - correction)


def logsumexp(x, axes, keep):
    with np.errstate(all="ignore"):
        largest = np.max(x, axes, keepdims=True, initial=-np.inf)
        shift = np.where(np.isfinite(largest), largest, 0)
        y = np.log(np.sum(np.exp(x - shift), axes, keepdims=True)) + shift
    return y if keep else np.squeeze(y, axes)


REDUCTIONS = {
    "var": moment,
    "std": lambda x, axes, keep, **rest: np.sqrt(moment(x, axes, keep, **rest)),
    "reduce_l1": lambda x, axes, keep: np.sum(abs(x), axes, keepdims=keep),
    "reduce_l2": lambda x, axes, keep: np.sqrt(np.sum(x * x, axes, keepdims=keep)),
    "sum_square": lambda x, axes, keep: np.sum(x * x, axes, keepdims=keep),
    "log_sum": lambda x, axes, keep: np.log(np.sum(x, axes, keepdims=keep)),
    "logsumexp": logsumexp,
}
EXACT = ("reduce_l1", "sum_square")  # of integers too
ROWS = [[1, np.nan, 3], [np.inf, 1, 2], [np.inf, -np.inf, 1], [-np.inf] * 3, [-0.0, 0, -0.0], [1.5, -2, 4]]


def case(family, op, x, axes, keep=False, **attributes):
    among = tuple(range(x.a.ndim)) if axes is None else tuple(k % x.a.ndim for k in axes)
    y = REDUCTIONS[op](wide(x), among, keep, **attributes)
    family.case(op, [x], result(x.dtype, y), axes=axes, keep_dims=keep or None, **attributes)


def reductions(family):
    for op in REDUCTIONS:
        for dtype in F:
            case(family, op, numbers(dtype, (3, 5), 1), [1])
            case(family, op, tensor(dtype, ROWS), [-1])
            case(family, op, numbers(dtype, (7,), 2), None, True)
        for axes, keep in ((None, False), (None, True), ([0, 2], False), ([-1], True), ([1, 0, 2], True), ([], False)):
            case(family, op, numbers("f32", (2, 3, 5), 3), axes, keep)
        for shape, axes in (((), None), ((1,), None), ((0,), None), ((2, 0, 3), [1]), ((2, 0, 3), [0]), ((0, 2), [1])):
            case(family, op, numbers("f32", shape, 4), axes)
        case(family, op, tensor("f32", np.abs(numbers("f32", (130,), 5).a)), None)
    for op in EXACT:
        for dtype in I:
            case(family, op, numbers(dtype, (2, 3), 6), [0])
            case(family, op, specials(dtype), None)
    for op in ("var", "std"):
        for dtype in F:
            for correction in (1, 2, -1):
                case(family, op, numbers(dtype, (2, 5), 7), [1], correction=correction)
        for correction in (3, 4):  # as many as there are elements, and more
            case(family, op, numbers("f32", (3, 2), 8), [0], True, correction=correction)
    for dtype in F:
        case(family, "logsumexp", tensor(dtype, [[1000, 1000, 999], [-1000, -1001, -1000], [-90, 0, 90]]), [1])
    assert REDUCTIONS["logsumexp"](np.array([0.0, 0.0]), (0,), False) == np.log(2)


def hardmax(family):
    def first_largest(a, axis):
        ranks = np.where(np.isnan(a), np.inf, a)
        nan_first = np.where(np.isnan(a).any(axis), np.isnan(a).argmax(axis), ranks.argmax(axis))
        return np.moveaxis(np.eye(a.shape[axis])[nan_first], -1, axis)

    for dtype in F:
        x = tensor(dtype, [[1, 3, 2], [2, 2, 1], [np.inf, np.nan, np.nan], [-np.inf] * 3, [-0.0, 0, -1]])
        family.case("hardmax", [x], tensor(dtype, first_largest(x.a, -1)))
    for shape, axis in (((5,), 0), ((2, 3, 4), 1), ((2, 3, 4), -3), ((3, 1), 1), ((0, 3), -1)):
        x = numbers("f32", shape, 9)
        family.case("hardmax", [x], oracle("f32", first_largest(x.a, axis)), axis=axis)


def add(family):
    reductions(family)
    hardmax(family)
