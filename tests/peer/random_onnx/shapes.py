# SPDX-License-Identifier: Apache-2.0
"""Nodes that move elements or change dims, with numbers that follow from sizes."""
import math

import numpy as np

from .graph import DTYPES, FLOATS
from .maker import Skip

ANY = {"f32", "f64", "i32", "i64", "bool", "u8", "i8", "f16"}


def passed(x, dims):
    return (x.dtype, dims, {"mag": x.mag, "wild": x.wild})


def minus(m, a, b):
    return tuple(x - y for x, y in zip(a, b))


def plus(a, b):
    return tuple(x + y for x, y in zip(a, b))


def times(a, b):
    return tuple(x * y for x, y in zip(a, b))


def reshape(m):
    x = m.pick(ANY)
    dims = list(x.dims)
    for _ in range(m.int(1, 3)):
        draw = m.rng.random()
        if draw < 0.4 and len(dims) > 1:  # merge
            at = m.int(0, len(dims) - 2)
            dims[at:at + 2] = [times(dims[at], dims[at + 1])]
        elif draw < 0.7 and dims:  # split
            at = m.int(0, len(dims) - 1)
            parts = [part for part in [m.lit(2), m.lit(3), m.lit(4)] + [m.symbol(s) for s in "nmkb"] if
                     all(p > 0 and d % p == 0 for d, p in zip(dims[at], part))]
            if parts:
                part = m.one(parts)
                pair = [part, tuple(d // p for d, p in zip(dims[at], part))]
                dims[at:at + 1] = pair if m.chance(0.5) else pair[::-1]
        elif draw < 0.85 and len(dims) < 6:
            dims.insert(m.int(0, len(dims)), m.lit(1))
        else:
            dims = [dim for dim in dims if dim != m.lit(1)] or dims
    m.need(len(dims) <= 6)
    target = m.list_of(dims, wildcard=True)
    attrs = {}
    if m.opset >= 14 and any(0 in dim for dim in dims):
        attrs = {"allowzero": 1}
        m.need(all(-1 not in c for c in target.content))
    elif any(0 in dim for dim in dims):
        # A 0 would copy the size of x there: only where that is the same.
        for at, dim in enumerate(dims):
            m.avoid("reshape to 0", tuple(int(size > 0 or (at < x.rank and x.dims[at][i] == 0)) for i, size in enumerate(dim)))
    m.node("Reshape", [x, target], [passed(x, dims)], **attrs)


def flatten(m):
    x = m.pick(m.takes("Flatten") & ANY)
    axis = m.int(0, x.rank)
    product = lambda dims: tuple(math.prod(dim[i] for dim in dims) for i in range(len(m.sizes)))
    m.node("Flatten", [x], [passed(x, [product(x.dims[:axis]), product(x.dims[axis:])])],
           axis=axis - x.rank if m.opset >= 11 and axis < x.rank and m.chance(0.3) else axis)


def squeeze(m):
    x = m.pick(ANY, rank=(1, 6))
    ones = [i for i, dim in enumerate(x.dims) if set(dim) == {1}]
    if not ones or m.chance(0.1):
        m.need(all(1 not in dim for dim in x.dims) or ones)
        m.need(all(set(dim) == {1} or 1 not in dim for dim in x.dims))
        m.node("Squeeze", [x], [passed(x, [dim for dim in x.dims if set(dim) != {1}])])
        return
    axes = sorted(m.rng.permutation(ones)[:m.int(1, len(ones))].tolist())
    dims = [dim for i, dim in enumerate(x.dims) if i not in axes]
    spelled = m.axes(axes, x.rank) if m.opset >= 11 else axes
    if m.opset >= 13:
        m.node("Squeeze", [x, m.const(np.array(spelled, np.int64))], [passed(x, dims)])
    else:
        m.node("Squeeze", [x], [passed(x, dims)], axes=spelled)


def unsqueeze(m):
    x = m.pick(ANY, rank=(0, 4))
    rank = x.rank + m.int(1, 2)
    axes = sorted(m.rng.permutation(rank)[:rank - x.rank].tolist())
    rest = iter(x.dims)
    dims = [m.lit(1) if i in axes else next(rest) for i in range(rank)]
    spelled = m.axes(axes, rank) if m.opset >= 11 else axes
    if m.opset >= 13:
        m.node("Unsqueeze", [x, m.const(np.array(spelled, np.int64))], [passed(x, dims)])
    else:
        m.node("Unsqueeze", [x], [passed(x, dims)], axes=spelled)


def transpose(m):
    x = m.pick(ANY)
    perm = m.rng.permutation(x.rank).tolist()
    if m.chance(0.2):
        m.node("Transpose", [x], [passed(x, x.dims[::-1])])
    else:
        m.node("Transpose", [x], [passed(x, [x.dims[i] for i in perm])], perm=perm or None)


def expand(m):
    x = m.pick(m.takes("Expand") & ANY, rank=(0, 4))
    dims = [m.any_dim() if dim == m.lit(1) else dim for dim in x.dims]
    while len(dims) < 4 and m.chance(0.4):
        dims.insert(0, m.any_dim())
    m.small(dims)
    shape = dims if m.chance(0.6) else [m.lit(1) if dim in x.dims and m.chance(0.3) else dim for dim in dims]
    shape = [dim if x.rank - len(dims) + i >= 0 and x.dims[x.rank - len(dims) + i] == dims[i] or dim == dims[i] else dims[i]
             for i, dim in enumerate(shape)]
    m.node("Expand", [x, m.list_of(shape)], [passed(x, dims)])


def slice_(m):
    x = m.pick(ANY, rank=(1, 5))
    axes = sorted(m.rng.permutation(x.rank)[:m.int(1, min(2, x.rank))].tolist())
    starts, ends, steps, dims = [], [], [], list(x.dims)
    for axis in axes:
        dim, zero = x.dims[axis], m.lit(0)
        draw = m.rng.random()
        step = 1
        if draw < 0.45:  # numbers
            a, b, step = m.int(-4, 4), m.one([m.int(-4, 6), 2**31 - 1, 2**63 - 1, 64]), m.one([1, 1, 1, 2, -1, -2, 3])
            if step < 0:
                a, b = b if abs(b) < 100 else -1, m.one([a, -2**31, -2**63 + 1])
            start, end = m.lit(a), m.lit(b)
        elif draw < 0.7:  # up to a size
            start, end = m.one([(zero, m.symbol(m.one("nmkb"))), (m.symbol(m.one("nmkb")), m.lit(2**31 - 1))])
        else:  # around one
            cut = m.one([m.lit(1), m.symbol(m.one("nmkb"))])
            start, end = m.one([(zero, minus(m, dim, cut)), (minus(m, dim, cut), m.lit(2**31 - 1)), (m.lit(1), minus(m, dim, m.lit(1)))])
        sizes = []
        for i, size in enumerate(dim):
            sizes.append(len(range(*slice(start[i], end[i] if end[i] > -2**31 else None, step).indices(size))) if size else 0)
        dims[axis] = tuple(sizes)
        starts.append(start)
        ends.append(end)
        steps.append(step)

    def listed(numbers):
        if all(m.is_lit(n) for n in numbers):
            return m.const(np.array([n[0] for n in numbers], np.int64))
        parts = []
        for n in numbers:
            known = m.is_lit(n)
            try:
                part = m.const(np.array([n[0]], np.int64)) if known else m.listed(m.number(n))
            except Skip:
                part = m.listed(difference(m, n))
            parts.append(part)
        if len(parts) == 1:
            return parts[0]
        content = [np.array([part.content[i][0] for part in parts], np.int64) for i in range(len(m.sizes))]
        return m.node("Concat", parts, [("i64", [m.lit(len(parts))], {"content": content})], axis=0)

    if m.opset < 10:
        m.need(all(map(m.is_lit, starts + ends)) and set(steps) == {1})
        m.node("Slice", [x], [passed(x, dims)], starts=[s[0] for s in starts], ends=[e[0] for e in ends], axes=axes)
        return
    ins = [x, listed(starts), listed(ends), m.const(np.array(m.axes(axes, x.rank), np.int64))]
    if axes == list(range(len(axes))) and m.chance(0.3):
        ins[3] = None
    if set(steps) != {1} or m.chance(0.3):
        ins.append(m.const(np.array(steps, np.int64)))
    m.node("Slice", ins, [passed(x, dims)])


def difference(m, wanted):
    """A scalar that is the difference of two sizes, or one and a number."""
    for v in m.pool():
        for axis, dim in enumerate(v.dims):
            rest = minus(m, dim, wanted)
            if m.is_lit(rest):
                return m.arithmetic("Sub", m.index(m.shape_of(v), axis), m.const(np.array(rest[0], np.int64)))
            for w in m.pool():
                for other, dim2 in enumerate(w.dims):
                    if dim2 == rest:
                        return m.arithmetic("Sub", m.index(m.shape_of(v), axis), m.index(m.shape_of(w), other))
    raise Skip


def tile(m):
    x = m.pick(m.takes("Tile") & ANY, rank=(1, 4))
    repeats = [m.one([m.lit(1), m.lit(1), m.lit(2), m.lit(3), m.symbol(m.one("nmkb"))]) for _ in x.dims]
    dims = [times(a, b) for a, b in zip(x.dims, repeats)]
    m.small(dims)
    m.node("Tile", [x, m.list_of(repeats)], [passed(x, dims)])


def concat(m):
    x = m.pick(ANY, rank=(1, 5))
    axis = m.int(0, x.rank - 1)
    parts, total = [], m.lit(0)
    for _ in range(m.int(1, 3)):
        dims = list(x.dims)
        if m.chance(0.5):
            dims[axis] = m.any_dim()
        parts.append(m.of(x.dtype, m.small(dims)))
        total = plus(total, dims[axis])
    parts.insert(m.int(0, len(parts)), x)
    total = plus(total, x.dims[axis])
    dims = x.dims[:axis] + [total] + x.dims[axis + 1:]
    wild, mag = any(p.wild for p in parts), max(p.mag for p in parts)
    m.node("Concat", parts, [(x.dtype, dims, {"wild": wild, "mag": mag})], axis=m.axes([axis], x.rank)[0] if m.opset >= 11 else axis)


def split(m):
    x = m.pick(ANY, rank=(1, 5))
    axis = m.int(0, x.rank - 1)
    dim = x.dims[axis]
    part = lambda size: passed(x, x.dims[:axis] + [size] + x.dims[axis + 1:])
    spelled = m.axes([axis], x.rank)[0] if m.opset >= 11 else axis
    if m.chance(0.5) and m.is_lit(dim) or m.chance(0.3):  # in equal parts
        count = m.int(1, 3)
        if m.opset >= 18:
            share = tuple(-(-d // count) for d in dim)
            last = tuple(d - s * (count - 1) for d, s in zip(dim, share))
            m.need(all(size >= 0 for size in last))
            m.node("Split", [x], [part(share)] * (count - 1) + [part(last)], axis=spelled, num_outputs=count)
        else:
            m.need(all(d % count == 0 for d in dim))
            m.node("Split", [x], [part(tuple(d // count for d in dim))] * count, axis=spelled)
        return
    first = m.one([m.lit(1), m.lit(2), m.symbol(m.one("nmkb"))])
    m.at_least(minus(m, dim, first), 0)
    rest = tuple(max(0, size) for size in minus(m, dim, first))
    if m.opset >= 13:
        try:
            second = m.number(rest)
        except Skip:
            second = difference(m, rest)
        pieces = [m.listed(m.number(first)), m.listed(second)]
        content = [np.array([p.content[i][0] for p in pieces]) for i in range(len(m.sizes))]
        sizes = m.node("Concat", pieces, [("i64", [m.lit(2)], {"content": content})], axis=0)
        m.node("Split", [x, sizes], [part(first), part(rest)], axis=spelled)
    else:
        m.need(m.is_lit(first) and m.is_lit(rest))
        m.node("Split", [x], [part(first), part(rest)], axis=spelled, split=[first[0], rest[0]])


def pad(m):
    x = m.pick(m.takes("Pad") & ANY, rank=(1, 4))
    mode = m.one(["constant", "constant", "edge", "reflect"] + (["wrap"] if m.opset >= 19 else []))
    low, high, dims = [], [], []
    for dim in x.dims:
        draw = m.rng.random()
        a, b = (m.lit(0), m.lit(0)) if draw < 0.4 else (m.lit(m.int(0, 2)), m.lit(m.int(-1 if mode == "constant" else 0, 2)))
        if mode == "constant" and m.chance(0.2):
            b = m.symbol(m.one("nmkb"))
        if mode in ("edge", "reflect", "wrap") and (any(a) or any(b)):
            m.at_least(dim, 3 if mode != "edge" else 1)
        size = plus(plus(dim, a), b)
        m.at_least(size, 0)
        low.append(a)
        high.append(b)
        dims.append(tuple(max(0, s) for s in size))
    if m.opset < 11:
        m.need(all(map(m.is_lit, low + high)))
        m.node("Pad", [x], [passed(x, dims)], mode=mode, pads=[p[0] for p in low + high])
        return
    value = m.const(np.asarray(m.one([0, 1, 3])), x.dtype) if mode == "constant" and m.chance(0.5) else None
    if m.opset >= 18 and m.chance(0.3):
        keep = [i for i in range(x.rank) if any(low[i]) or any(high[i])]
        m.need(keep)
        axes = m.const(np.array(m.axes(keep, x.rank), np.int64))
        pads = m.list_of([low[i] for i in keep] + [high[i] for i in keep])
        m.node("Pad", [x, pads, value, axes], [passed(x, dims)], mode=mode)
    else:
        m.node("Pad", [x, m.list_of(low + high), value], [passed(x, dims)], mode=mode)


def constant_of_shape(m):
    m.need(m.opset >= 9)
    dims = m.some_dims(m.int(0, 3))
    dtype = m.one(["f32", "f32", "i64", "bool", "i32", "f64"])
    value = np.array([m.one([0, 1, 2])], DTYPES[dtype])
    m.node("ConstantOfShape", [m.list_of(dims)], [(dtype, dims)], **({} if dtype == "f32" and m.chance(0.3) else {"value": value}))


def range_(m):
    m.need(m.opset >= 11)
    end = m.any_dim()
    dtype = m.one(["i64", "i64", "i32", "f32", "f64"])
    start, step = m.one([0, 0, 1, -1]), m.one([1, 1, 2, -1])
    if step < 0:
        start = 8
    count = tuple(max(0, -(-(e - start) // step)) for e in end)
    number = m.number(end)
    a, b = m.const(np.asarray(start), dtype), m.const(np.asarray(step), dtype)
    if dtype != "i64":
        number = m.node("Cast", [number], [(dtype, [])], to={"i32": 6, "f32": 1, "f64": 11}[dtype], seen=False)
    content = [np.arange(start, e, step, dtype=np.int64) for e in end] if dtype == "i64" else None
    m.node("Range", [a, number, b], [(dtype, [count], {"content": content})])


def shape_facts(m):
    x = m.pick(ANY)
    draw = m.rng.random()
    if draw < 0.3:
        total = tuple(math.prod(dim[i] for dim in x.dims) for i in range(len(m.sizes)))
        m.node("Size", [x], [("i64", [], {"content": [np.array(t) for t in total]})])
    elif draw < 0.5:
        start = m.int(0, x.rank)
        m.shape_of(x, start, m.one([None, x.rank]))
    else:
        a, b = m.number(m.any_dim()), m.number(m.any_dim())
        m.arithmetic(m.one(["Add", "Sub", "Mul"] + ["Max", "Min"] * (m.opset >= 12)), a, b)


def trilu(m):
    m.need(m.opset >= 14)
    x = m.pick(m.takes("Trilu"), rank=(2, 4))
    k = None if m.chance(0.4) else m.const(np.array(m.int(-2, 2), np.int64))
    m.node("Trilu", [x, k], [passed(x, x.dims)], upper=m.int(0, 1))


def depth_space(m):
    op = m.one(["DepthToSpace", "SpaceToDepth"])
    block = 2
    b, c, h, w = m.any_dim(), m.any_dim(), m.any_dim(), m.any_dim()
    if op == "DepthToSpace":
        dims = [b, times(m.lit(4), c), h, w]
        out = [b, c, times(h, m.lit(2)), times(w, m.lit(2))]
    else:
        dims = [b, c, times(h, m.lit(2)), times(w, m.lit(2))]
        out = [b, times(m.lit(4), c), h, w]
    dtype = m.one(sorted(m.takes(op)))
    x = m.of(dtype, m.small(dims))
    m.node(op, [x], [passed(x, out)], blocksize=block, mode=m.one(["DCR", "CRD"]) if op == "DepthToSpace" and m.opset >= 11 else None)


def eye_like(m):
    m.need(m.opset >= 9)
    x = m.pick({"f32", "i64", "f64", "i32"}, rank=2)
    m.node("EyeLike", [x], [(x.dtype, x.dims)], k=m.int(-1, 1))


def center_crop_pad(m):
    m.need(m.opset >= 18)
    x = m.pick({"f32", "i64"}, rank=(1, 4))
    dims = [m.any_dim() for _ in x.dims]
    m.small(dims)
    m.node("CenterCropPad", [x, m.list_of(dims)], [passed(x, dims)])


FAMILY = [(9, reshape), (2, flatten), (3, squeeze), (4, unsqueeze), (6, transpose), (5, expand), (8, slice_), (3, tile), (6, concat), (4, split),
          (4, pad), (3, constant_of_shape), (4, range_), (2, shape_facts), (2, trilu), (1, depth_space), (1, eye_like), (1, center_crop_pad)]
