# SPDX-License-Identifier: Apache-2.0
"""Nodes that read or write at indices, or whose sizes follow from contents."""
import numpy as np

from .graph import DTYPES
from .maker import Skip
from .shapes import ANY, passed


def indices(m, dims, limit, dtype=None, unique=False):
    """Integers below `limit` (a dim) at every binding: an input, a constant, or a Range that is bent."""
    dtype = dtype or m.one(["i64", "i64", "i32"])
    m.avoid("index into nothing", limit)
    least = min(m.alive(limit))
    shape = [tuple(d) for d in dims]
    draw = m.rng.random()
    if all(map(m.is_lit, shape)) and draw < 0.4 or m.local is not None:
        m.need(all(map(m.is_lit, shape)))
        low = -least if m.chance(0.3) else 0
        return m.const(m.rng.integers(low, least, [d[0] for d in shape]), dtype)
    arrays = []
    for i, size in enumerate(limit):
        here = [d[i] for d in shape]
        low = -size if m.chance(0.2) else 0
        arrays.append(m.rng.integers(low, max(1, size), here) if size else np.zeros(here))
    return m.input(dtype, shape, "i", arrays)


def counted(m, limit):
    """0, 1, ... below a dim, as exporters make positions; perhaps shaped as a column or a window."""
    m.need(m.opset >= 11)
    number = m.number(limit)
    content = [np.arange(size) for size in limit]
    return m.node("Range", [m.const(np.array(0)), number, m.const(np.array(1))], [("i64", [limit], {"content": content})])


def gather(m):
    x = m.pick(ANY, rank=(1, 4))
    axis = m.int(0, x.rank - 1)
    draw = m.rng.random()
    if draw < 0.2:
        index = counted(m, x.dims[axis])
    elif draw < 0.35 and m.opset >= 11:  # a sliding window
        width = m.int(1, 3)
        m.at_least(x.dims[axis], width)
        base = counted(m, tuple(max(0, d - width + 1) for d in x.dims[axis]))
        offsets = m.const(np.arange(width).reshape(-1, 1))
        index = m.node("Add", [base, offsets], [("i64", [m.lit(width), base.dims[0]])])
    else:
        index = indices(m, m.some_dims(m.int(0, 2)), x.dims[axis])
    dims = x.dims[:axis] + index.dims + x.dims[axis + 1:]
    m.need(len(dims) <= 6)
    m.node("Gather", [x, index], [passed(x, dims)], axis=m.axes([axis], x.rank)[0])


def gather_elements(m):
    m.need(m.opset >= 11)
    x = m.pick(ANY, rank=(1, 3))
    axis = m.int(0, x.rank - 1)
    dims = list(x.dims)
    dims[axis] = m.any_dim()
    index = indices(m, m.small(dims), x.dims[axis])
    m.node("GatherElements", [x, index], [passed(x, dims)], axis=m.axes([axis], x.rank)[0])


def gather_nd(m):
    m.need(m.opset >= 11)
    x = m.pick(ANY, rank=(1, 4))
    batch = m.int(0, min(1, x.rank - 1)) if m.opset >= 12 else 0
    depth = m.int(1, min(2, x.rank - batch))
    least = tuple(min(x.dims[batch + j][i] for j in range(depth)) for i in range(len(m.sizes)))
    dims = x.dims[:batch] + m.some_dims(m.int(0, 1)) + [m.lit(depth)]
    index = indices(m, m.small(dims), least, "i64")
    m.node("GatherND", [x, index], [passed(x, dims[:-1] + x.dims[batch + depth:])], **({"batch_dims": batch} if batch else {}))


def reduction_of(m, x, none):
    """ONNX Runtime has the smallest and largest of numbers alone."""
    if m.opset < 16 or m.chance(none):
        return None
    return m.one(["add", "mul"] + (["min", "max"] if m.opset >= 18 and x.dtype != "bool" else []))


def scatter_elements(m):
    m.need(m.opset >= 11)
    x = m.pick(ANY - {"f16"}, rank=(1, 3))
    axis = m.int(0, x.rank - 1)
    reduction = reduction_of(m, x, 0.4)
    dims = list(x.dims)
    if reduction is None:  # each place at most once, as the order is nobody's
        size = x.dims[axis]
        m.at_least(size, 1)
        arrays = []
        for i in range(len(m.sizes)):
            here = [d[i] for d in dims]
            order = np.broadcast_to(np.arange(here[axis]).reshape([-1 if j == axis else 1 for j in range(x.rank)]), here)
            arrays.append(m.rng.permuted(order, axis=axis) if order.size else order)
        index = m.input("i64", dims, "i", arrays)
    else:
        dims[axis] = m.one([m.lit(2), m.symbol("n")])
        index = indices(m, m.small(dims), x.dims[axis])
    updates = m.of(x.dtype, dims)
    m.need(reduction is None or not (x.wild or updates.wild))
    m.node("ScatterElements", [x, index, updates], [passed(x, x.dims)], axis=m.axes([axis], x.rank)[0], reduction=reduction)


def scatter_nd(m):
    m.need(m.opset >= 11)
    x = m.pick(ANY - {"f16"}, rank=(1, 3))
    reduction = reduction_of(m, x, 0.3)
    depth = m.int(1, x.rank)
    least = tuple(min(x.dims[j][i] for j in range(depth)) for i in range(len(m.sizes)))
    rows = m.lit(1) if reduction is None else m.any_dim()
    index = indices(m, [rows, m.lit(depth)], least, "i64")
    updates = m.of(x.dtype, m.small([rows] + x.dims[depth:]))
    m.need(reduction is None or not (x.wild or updates.wild))
    m.node("ScatterND", [x, index, updates], [passed(x, x.dims)], reduction=reduction)


def one_hot(m):
    depth = m.any_dim()
    m.need(m.opset >= 9)
    index = m.pick({"i64"}, rank=(1, 3))
    axis = m.int(0, index.rank)
    dims = index.dims[:axis] + [depth] + index.dims[axis:]
    m.small(dims)
    values = m.const(np.array(m.one([[0, 1], [-1, 3]])), m.one(["f32", "i64"]))
    m.node("OneHot", [index, m.number(depth), values], [(values.dtype, dims)], axis=axis if m.chance(0.5) else axis - index.rank - 1)


def nonzero(m):
    """A size from contents, and then something of known dims again."""
    m.need(m.opset >= 9)
    x = m.pick({"bool", "i64", "f32", "i32"}, rank=(1, 3), where=lambda v: not v.wild and v.exact)
    y = m.node("NonZero", [x], [("i64", [m.lit(x.rank), m.lit(0)])], seen=False)
    count = m.shape_of(y) if m.chance(0.3) else None
    if count is not None:
        got = m.node("Gather", [count, m.const(np.array(1))], [("i64", [])], axis=0, seen=False)
        got.content = None
        m.values = [v for v in m.values if v is not count]
        m.values.append(got)
        return
    total = m.node("ReduceSum", [y, m.const(np.array([1]))] if m.opset >= 13 else [y], [("i64", [m.lit(x.rank)])],
                   keepdims=0, **({} if m.opset >= 13 else {"axes": [1]}), seen=False)
    m.values.append(total)


def compress(m):
    m.need(m.opset >= 11)
    x = m.pick(ANY - {"f16"}, rank=(1, 3), where=lambda v: v.mag < 1e4)
    axis = m.int(0, x.rank - 1)
    mask = m.of("bool", [x.dims[axis]])
    y = m.node("Compress", [x, mask], [passed(x, [m.lit(0) if i == axis else d for i, d in enumerate(x.dims)])], axis=axis, seen=False)
    m.need(x.dtype in m.takes("ReduceSum"))
    dims = [d for i, d in enumerate(x.dims) if i != axis]
    ins, attrs = ([y, m.const(np.array([axis]))], {}) if m.opset >= 13 else ([y], {"axes": [axis]})
    m.node("ReduceSum", ins, [passed(x, dims)], keepdims=0, **attrs)


def reverse_sequence(m):
    m.need(m.opset >= 10)
    x = m.pick(ANY, rank=(2, 4))
    batch = m.int(0, 1)
    time = 1 - batch
    m.at_least(x.dims[time], 1)
    lens = m.input("i64", [x.dims[batch]], "l", [m.rng.integers(1, max(2, t + 1), b) for t, b in zip(x.dims[time], x.dims[batch])])
    m.need(m.local is None)
    m.node("ReverseSequence", [x, lens], [passed(x, x.dims)], batch_axis=batch, time_axis=time)


FAMILY = [(5, gather), (2, gather_elements), (2, gather_nd), (3, scatter_elements), (2, scatter_nd), (2, one_hot), (1, nonzero), (1, compress),
          (1, reverse_sequence)]
