# SPDX-License-Identifier: Apache-2.0
"""Sequences: made, changed and taken apart again within one maker."""
import numpy as np

from .bodies import Inside, body_makers, shaped, steps
from .graph import Body
from .maker import Value
from .shapes import passed

KINDS = {"f32", "i64", "f64", "i32"}


class Sequence:
    """Its value, and its elements as values of the dims that they have; None: only the run knows how many there are."""

    def __init__(self, m, op, ins, items, like, **attrs):
        self.value = m.node(op, ins, [(like.dtype, [])], seen=False, **attrs)
        self.items, self.like = items, like


def element(m, like, dims):
    return Value("", like.dtype, dims, mag=like.mag, wild=like.wild)


def constructed(m):
    x = m.pick(KINDS, rank=(1, 3))
    alike = m.chance(0.6)
    items = [x] + [m.like(x) if alike else m.of(x.dtype, [m.any_dim()] + x.dims[1:]) for _ in range(m.int(0, 3))]
    return Sequence(m, "SequenceConstruct", items, items, x)


def split(m):
    x = m.pick(KINDS, rank=(1, 3))
    axis = m.int(0, x.rank - 1)
    total = x.dims[axis]
    draw = m.rng.random()
    attrs = {"axis": m.axes([axis], x.rank)[0]}

    def piece(dim):
        return element(m, x, x.dims[:axis] + dim + x.dims[axis + 1:])

    if draw < 0.4:
        m.avoid("sequence of nothing", total)
        keep = m.one([None, 1, 0])
        items = [piece([] if keep == 0 else [m.lit(1)])] * total[0] if m.is_lit(total) else None
        made = Sequence(m, "SplitToSequence", [x], items, x, keepdims=keep, **attrs)
        made.each = piece([] if keep == 0 else [m.lit(1)])
        made.count = total
        return made
    m.need(m.is_lit(total) and total[0] > 0)
    if draw < 0.7:
        size = m.int(1, total[0])
        sizes = [min(size, total[0] - at) for at in range(0, total[0], size)]
        sized = m.const(np.array(size), m.one(["i64", "i32"]))
    else:
        first = m.int(0, total[0])
        sizes = [first, total[0] - first]
        sized = m.const(np.array(sizes))
    return Sequence(m, "SplitToSequence", [x, sized], [piece([m.lit(size)]) for size in sizes], x, **attrs)


def place(m, count):
    """Of one of so many elements; and the input, which the run may decide."""
    at = m.int(-count, count - 1)
    draw = m.rng.random()
    if draw < 0.2:
        return at, m.run_input(np.full(len(m.sizes), at))
    return at % count, m.const(np.array(at), m.one(["i64", "i32"]))


def changed(m, s):
    draw = m.rng.random()
    count = len(s.items)
    if draw < 0.3:
        x = m.of(s.like.dtype, m.one(s.items).dims) if count else m.like(s.like)
        at, where = place(m, count) if count and m.chance(0.7) else (count, None)
        at %= count + (where is None)
        return Sequence(m, "SequenceInsert", [s.value, x] + ([where] if where else []), s.items[:at] + [x] + s.items[at:], s.like)
    if draw < 0.55 and count > 1:
        at, where = place(m, count) if m.chance(0.7) else (count - 1, None)
        at %= count
        return Sequence(m, "SequenceErase", [s.value] + ([where] if where else []), s.items[:at] + s.items[at + 1:], s.like)
    if draw < 0.8 and count and m.opset >= 17:
        return mapped(m, s)
    return Sequence(m, "Identity", [s.value], s.items, s.like) if m.opset >= 14 else s


def mapped(m, s):
    """Elements of all dims go through one body, so it is elementwise."""
    name = m.name("e")
    inside = Inside(m, [])
    with inside as nodes:
        y = Value(name, s.like.dtype, [])
        for _ in range(m.int(1, 2)):
            y = m.node(m.one(["Neg", "Abs", "Add"]), [y], [(y.dtype, [])])
            if nodes[-1].op == "Add":
                nodes[-1].ins *= 2
    rank = s.items[0].rank
    body = Body([(name, s.like.dtype, rank)], nodes, [(y.name, y.dtype, rank)])
    return Sequence(m, "SequenceMap", [s.value], s.items, s.like, body=body)


def taken(m, s):
    """A tensor of a sequence."""
    draw = m.rng.random()
    if draw < 0.2 or not s.items:
        content = [np.array(len(s.items))] * len(m.sizes)
        return m.node("SequenceLength", [s.value], [("i64", [], {"content": content})])
    first = s.items[0]
    if draw < 0.55:
        at, where = place(m, len(s.items))
        return m.node("SequenceAt", [s.value, where], [passed(s.like, s.items[at].dims)])
    alike = all(item.dims == first.dims for item in s.items)
    if alike and m.chance(0.4):
        axis = m.int(0, first.rank)
        dims = first.dims[:axis] + [m.lit(len(s.items))] + first.dims[axis:]
        return m.node("ConcatFromSequence", [s.value], [passed(s.like, dims)], axis=m.axes([axis], len(dims))[0], new_axis=1)
    m.need(first.rank > 0)
    fits = [axis for axis in range(first.rank) if all(item.rank == first.rank and item.dims[:axis] + item.dims[axis + 1:] ==
                                                      first.dims[:axis] + first.dims[axis + 1:] for item in s.items)]
    axis = m.one(fits)
    total = tuple(map(sum, zip(*[item.dims[axis] for item in s.items])))
    dims = first.dims[:axis] + [total] + first.dims[axis + 1:]
    return m.node("ConcatFromSequence", [s.value], [passed(s.like, dims)], axis=m.axes([axis], first.rank)[0])


def taken_of_open(m, s):
    """The same where sizes decide how many elements there are."""
    draw = m.rng.random()
    if draw < 0.3:
        return m.node("SequenceLength", [s.value], [("i64", [], {"content": [np.array(n) for n in s.count]})])
    if draw < 0.6:
        return m.node("SequenceAt", [s.value, m.const(np.array(m.one([0, -1])))], [passed(s.like, s.each.dims)])
    axis = m.int(0, s.each.rank)
    dims = s.each.dims[:axis] + [s.count] + s.each.dims[axis:]
    return m.node("ConcatFromSequence", [s.value], [passed(s.like, dims)], axis=m.axes([axis], len(dims))[0], new_axis=1)


def sequence(m):
    m.need(m.local is None and m.opset >= 11)
    s = m.one([constructed, constructed, split])(m)
    if s.items is None:
        taken_of_open(m, s)
        return
    for _ in range(m.int(0, 3)):
        s = changed(m, s)
    for _ in range(m.int(1, 2)):
        taken(m, s)


def collected(m):
    """A loop that adds an element a trip, of one type or not."""
    m.need(m.local is None and m.opset >= 13)
    x = m.pick({"f32", "i64"}, rank=(1, 3), where=lambda v: v.mag < 100 and not v.wild)
    trips = m.one([m.const(np.array(m.int(1, 3))), m.number(m.any_dim())])
    count = tuple(int(c) for c in trips.content)
    m.avoid("sequence of nothing", count)
    start = m.int(0, 1)
    first = m.node("SequenceConstruct", [x], [(x.dtype, [])], seen=False) if start else \
        m.node("SequenceEmpty", [], [(x.dtype, [])], seen=False, dtype={"f32": 1, "i64": 7}[x.dtype])
    i, go, held = m.name("i"), m.name("go"), m.name("held")
    inside = Inside(m, [Value(i, "i64", []), Value(go, "bool", [])])
    with inside as nodes:
        steps(m, body_makers(), m.int(0, 2))
        y = shaped(m, x)
        step = m.node("Cast", [Value(i, "i64", [])], [(x.dtype, [])], to={"f32": 1, "i64": 7}[x.dtype])
        y = m.node("Add", [y, step], [(x.dtype, x.dims)])
        place_ = [m.const(np.array(0))] if m.chance(0.3) else []
        longer = m.node("SequenceInsert", [Value(held, x.dtype, []), y] + place_, [(x.dtype, [])])
        more = m.node("Identity", [Value(go, "bool", [])], [("bool", [])])
    kind = "seq " + x.dtype
    body = Body([(i, "i64", 0), (go, "bool", 0), (held, kind, x.rank)], nodes, [(more.name, "bool", 0), (longer.name, kind, x.rank)])
    made = m.node("Loop", [trips, None, first], [(x.dtype, [])], seen=False, body=body)
    count = tuple(n + start for n in count)
    options = {"wild": True, "mag": 1e3} if x.is_float else {}
    if m.chance(0.5):
        axis = m.int(0, x.rank)
        m.node("ConcatFromSequence", [made], [(x.dtype, m.small(x.dims[:axis] + [count] + x.dims[axis:]), options)],
               axis=m.axes([axis], x.rank + 1)[0], new_axis=1)
        return
    axis = m.int(0, x.rank - 1)
    dims = list(x.dims)
    dims[axis] = tuple(a * b for a, b in zip(dims[axis], count))
    m.node("ConcatFromSequence", [made], [(x.dtype, m.small(dims), options)], axis=m.axes([axis], x.rank)[0])


FAMILY = [(3, sequence), (1, collected)]
