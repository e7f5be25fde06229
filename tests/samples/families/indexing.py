# SPDX-License-Identifier: Apache-2.0
"""Primitives 43-51: indices in, indices out, and what happens to those that are out of range."""

import numpy as np

from families.movement import like, source
from golden import E8, A, B, N, Tensor, X, Z, numbers, tensor

FOLD = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def sources(family):
    for dtype in N:
        family.case("iota", [], tensor(dtype, np.tile(np.arange(4), (3, 1))), shape=[3, 4], axis=1, dtype=dtype)
    family.case("iota", [], tensor("i64", np.tile(np.arange(3)[:, None], (1, 4))), shape=[3, 4], axis=0, dtype="i64")
    family.case("iota", [], tensor("i32", np.arange(5)), shape=[5], axis=-1, dtype="i32")
    family.case("iota", [], tensor("f32", np.zeros((0, 2))), shape=[0, 2], axis=0, dtype="f32")
    for dtype in X:
        for count, most in ((3, 5), (0, 5), (5, 5), (-2, 5), (4, None)):
            family.case("dynamic_iota", [tensor(dtype, count)], tensor(dtype, np.arange(max(0, count))), max=most)
        family.case("dynamic_iota", [tensor(dtype, 6)], "RLX_E_RANGE", max=5)
    for axis in (0, 1, -1):
        family.case("dim_size", [numbers("f32", (2, 0, 3))], tensor("i64", (2, 0, 3)[axis]), axis=axis)


def resolve(index, n, bounds):
    """The place that an index names; None: it names none, and is dropped."""
    place = index + n if index < 0 else index
    if 0 <= place < n:
        return place
    return min(max(place, 0), n - 1) if bounds == "clamp" and n > 0 else None


def gather_elements(x, indices, axis, bounds="error"):
    y = np.zeros(indices.shape, x.dtype)
    for at in np.ndindex(indices.shape):
        place = resolve(int(indices[at]), x.shape[axis], bounds)
        if place is not None:
            y[at] = x[(*at[:axis], place, *at[axis + 1 :])]
    return y


def gather(x, indices, axis, bounds="error"):
    parts = [resolve(int(i), x.shape[axis], bounds) for i in indices.ravel()]
    zero = np.zeros(x.shape[:axis] + x.shape[axis + 1 :], x.dtype)
    rows = [zero if p is None else np.take(x, p, axis) for p in parts]
    y = np.stack(rows) if rows else np.zeros((0, *zero.shape), x.dtype)
    y = y.reshape(indices.shape + zero.shape)
    return np.moveaxis(y, range(indices.ndim), range(axis, axis + indices.ndim))


def places_nd(shape, indices, batch, bounds):
    """For each index vector: where it points, or None."""
    m = indices.shape[-1]
    for at in np.ndindex(indices.shape[:-1]):
        parts = [resolve(int(i), n, bounds) for i, n in zip(indices[at], shape[batch : batch + m], strict=True)]
        yield at, None if None in parts else (*at[:batch], *parts)


def gather_nd(x, indices, batch, bounds="error"):
    y = np.zeros(indices.shape[:-1] + x.shape[batch + indices.shape[-1] :], x.dtype)
    for at, place in places_nd(x.shape, indices, batch, bounds):
        if place is not None:
            y[at] = x[place]
    return y


def put(y, place, update, reduction):
    y[place] = update if reduction == "none" else FOLD[reduction](y[place], update)


def scatter_nd(x, indices, updates, batch, reduction, bounds="error"):
    y = x.copy()
    for at, place in places_nd(x.shape, indices, batch, bounds):
        if place is not None:
            put(y, place, updates[at], reduction)
    return y


def scatter(x, indices, updates, axis, reduction, bounds="error"):
    y = np.moveaxis(x.copy(), axis, 0)
    u = np.moveaxis(updates, range(axis, axis + indices.ndim), range(indices.ndim))
    for at in np.ndindex(indices.shape):
        place = resolve(int(indices[at]), y.shape[0], bounds)
        if place is not None:
            put(y, place, u[at], reduction)
    return np.moveaxis(y, 0, axis)


def scatter_elements(x, indices, updates, axis, reduction, bounds="error"):
    y = x.copy()
    for at in np.ndindex(indices.shape):
        place = resolve(int(indices[at]), x.shape[axis], bounds)
        if place is not None:
            put(y, (*at[:axis], place, *at[axis + 1 :]), updates[at], reduction)
    return y


def gathers(family):
    for dtype in A:
        x, i = source(dtype, (3, 2)), tensor("i64", [2, -3])
        family.case("gather", [x, i], like(x, gather(x.a, i.a, 0)))
        e = tensor("i32", [[0, -1], [2, 1]])
        family.case("gather_elements", [x, e], like(x, gather_elements(x.a, e.a, 0)))
        v = tensor("i64", [[2, 1], [0, 0], [-1, -2]])
        family.case("gather_nd", [x, v], like(x, gather_nd(x.a, v.a, 0)))
    x = numbers("f32", (2, 3, 4))
    for values, axis in (
        (1, 1),
        ([[1, 0]], 1),
        ([0, 3, -1], -1),
        (np.zeros((0,)), 0),
        ([[0], [1]], 0),
        (np.zeros((2, 0)), 1),
    ):
        i = tensor("i32", values)
        family.case("gather", [x, i], like(x, gather(x.a, i.a, axis % 3)), axis=axis)
    for shape, axis in (((2, 3, 1), 2), ((1, 3, 4), 0), ((2, 5, 4), 1), ((2, 0, 4), 1), ((1, 1, 2), -1)):
        i = tensor("i64", np.arange(int(np.prod(shape))).reshape(shape) % x.a.shape[axis])
        family.case("gather_elements", [x, i], like(x, gather_elements(x.a, i.a, axis % 3)), axis=axis)
    for values, batch in (
        ([[[1], [2]], [[0], [-1]]], 1),
        ([[[1, 3]], [[0, 0]]], 1),
        ([1, 2, 3], 0),
        ([[0], [1], [-2]], 0),
        (np.zeros((2, 0)), 0),
        (np.zeros((2, 0)), 1),
        (np.zeros((0, 3)), 0),
    ):
        i = tensor("i64", values)
        for index in (i, tensor("i32", values)):
            family.case("gather_nd", [x, index], like(x, gather_nd(x.a, i.a, batch)), batch_dims=batch)


def scatter_case(family, op, function, x, i, place, reduction, seed, **attributes):
    """place is the axis, or the number of batch axes."""
    shape = i.a.shape
    if op == "scatter":
        shape = x.a.shape[:place] + i.a.shape + x.a.shape[place + 1 :]
    if op == "scatter_nd":
        shape = i.a.shape[:-1] + x.a.shape[place + i.a.shape[-1] :]
    u = source(x.dtype, shape, seed)
    family.case(
        op, [x, i, u], Tensor(x.dtype, function(x.a, i.a, u.a, place, reduction)), reduction=reduction, **attributes
    )


def scatters(family):
    flat, element, vector = tensor("i64", [2, -3]), tensor("i32", [[0, -1], [2, 1]]), tensor("i64", [[2, 1], [0, 0]])
    for dtype in A:
        reductions = ["none"] + (
            ["max", "min"] if dtype in B else [] if dtype in E8 else ["add", "mul"] if dtype in Z else list(FOLD)
        )
        for reduction in reductions:
            x = source(dtype, (3, 2), 3)
            scatter_case(family, "scatter", scatter, x, flat, 0, reduction, 1)
            scatter_case(family, "scatter_elements", scatter_elements, x, element, 0, reduction, 1)
            scatter_case(family, "scatter_nd", scatter_nd, x, vector, 0, reduction, 1)
    x = source("i32", (2, 3, 2))
    twice = tensor("i32", [[1, 1], [-1, 0]])
    for reduction in ("none", *FOLD):  # duplicates: the last one stays, or all are folded
        scatter_case(family, "scatter", scatter, x, twice, 1, reduction, 2, axis=1)
        scatter_case(family, "scatter", scatter, x, tensor("i64", 1), 2, reduction, 2, axis=-1)
        scatter_case(
            family,
            "scatter_elements",
            scatter_elements,
            x,
            tensor("i64", [[[1, 1, 0]] * 2] * 2),
            2,
            reduction,
            2,
            axis=-1,
        )
        scatter_case(
            family, "scatter_nd", scatter_nd, x, tensor("i64", [[[1], [1]], [[0], [-1]]]), 1, reduction, 2, batch_dims=1
        )
        scatter_case(family, "scatter_nd", scatter_nd, x, tensor("i32", np.zeros((3, 0))), 0, reduction, 2)
        scatter_case(family, "scatter", scatter, x, tensor("i64", np.zeros((0,))), 0, reduction, 2)


def bounds(family):
    x, i = source("i32", (3, 2)), tensor("i64", [3, -4, 1])
    vector = tensor("i64", [[3, 0], [1, -3], [0, 1]])
    element = tensor("i64", [[5, 0], [1, -9]])
    empty = source("i32", (0, 2))
    family.case("gather", [x, i], "RLX_E_RANGE")
    family.case("gather", [empty, i], "RLX_E_RANGE")
    # NumPy too fails where there is nothing to pick.
    for shape, axis in (((3, 0), 0), ((0, 3), 1)):
        family.case("gather", [source("i32", shape), i], "RLX_E_RANGE", axis=axis)
    family.case("gather_nd", [source("i32", (3, 0)), tensor("i64", [[-4]])], "RLX_E_RANGE")
    family.case("scatter", [source("i32", (3, 0)), i, source("i32", (3, 0))], "RLX_E_RANGE")
    family.case("gather_elements", [x, element], "RLX_E_RANGE")
    family.case("gather_nd", [x, vector], "RLX_E_RANGE")
    family.case("scatter", [x, i, source("i32", (3, 2))], "RLX_E_RANGE")
    family.case("scatter_elements", [x, element, source("i32", (2, 2))], "RLX_E_RANGE")
    family.case("scatter_nd", [x, vector, source("i32", (3,))], "RLX_E_RANGE")
    for rule in ("clamp", "drop"):
        option = f"bounds={rule}"
        family.case("gather", [x, i], like(x, gather(x.a, i.a, 0, rule)), option)
        family.case("gather", [empty, i], like(x, gather(empty.a, i.a, 0, rule)), option)
        family.case("gather_elements", [x, element], like(x, gather_elements(x.a, element.a, 0, rule)), option)
        family.case("gather_nd", [x, vector], like(x, gather_nd(x.a, vector.a, 0, rule)), option)
        u = source("i32", (3, 2), 20)
        family.case("scatter", [x, i, u], like(x, scatter(x.a, i.a, u.a, 0, "add", rule)), option, reduction="add")
        u = source("i32", (2, 2), 20)
        family.case(
            "scatter_elements",
            [x, element, u],
            like(x, scatter_elements(x.a, element.a, u.a, 0, "add", rule)),
            option,
            reduction="add",
        )
        u = source("i32", (3,), 20)
        family.case(
            "scatter_nd",
            [x, vector, u],
            like(x, scatter_nd(x.a, vector.a, u.a, 0, "add", rule)),
            option,
            reduction="add",
        )


def check():
    """Against the list of golden values in the op set."""
    x = np.array([[1, 2], [3, 4], [5, 6]])
    assert gather(x, np.array([2, -3]), 0).ravel().tolist() == [5, 6, 1, 2]
    assert gather(x, np.array([[1, 0]]), 1).tolist() == [[[2, 1]], [[4, 3]], [[6, 5]]]
    assert gather_nd(x, np.array([[2, 1], [0, 0]]), 0).tolist() == [6, 1]
    indices, updates = np.array([1, 1, -1]), np.array([10, 20, 30])
    assert scatter(np.zeros(3, int), indices, updates, 0, "add").tolist() == [0, 30, 30]
    assert scatter(np.full(3, 15), indices, updates, 0, "max").tolist() == [15, 20, 30]
    assert gather(x, np.array([3]), 0, "clamp").tolist() == [[5, 6]] and gather(
        x, np.array([3]), 0, "drop"
    ).tolist() == [[0, 0]]


def add(family):
    check()
    sources(family)
    gathers(family)
    scatters(family)
    bounds(family)
