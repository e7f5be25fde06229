# SPDX-License-Identifier: Apache-2.0
"""If, Loop and Scan, with bodies that are made as any other graph, and read values around them."""
import numpy as np

from .graph import Body
from .maker import Skip, Value

ONES = {"f32", "i64", "bool"}


class Inside:
    """What is made between goes into a body."""

    def __init__(self, m, inputs, capture=True):
        self.m, self.inputs, self.capture = m, inputs, capture

    def __enter__(self):
        m = self.m
        self.saved = (m.local, m.values, m.hidden, list(m.graph.nodes))
        m.local = []
        m.values = (m.values[-8:] if self.capture else []) + self.inputs
        m.hidden = 0
        return m.local

    def __exit__(self, kind, value, trace):
        m = self.m
        self.made = m.values
        m.local, m.values, m.hidden, _ = self.saved


def steps(m, makers, count):
    """Some nodes of the families that bodies may hold."""
    for _ in range(count * 4):
        before, values = len(m.local), len(m.values)
        try:
            m.one(makers)(m)
            count -= 1
        except Skip:
            del m.local[before:]
            del m.values[values:]
        if count == 0:
            return


def shaped(m, x):
    """The last value that has x's type, put through one more node, so that a body's output is its own."""
    found = [v for v in m.values if v.dtype == x.dtype and v.dims == x.dims]
    y = found[-1] if found else x
    return m.node("Identity", [y], [(x.dtype, x.dims, {"wild": y.wild, "mag": y.mag})])


def body_makers():
    from . import elementwise, shapes
    return [elementwise.unary, elementwise.binary, elementwise.binary, elementwise.where, elementwise.reduce, shapes.transpose, shapes.slice_,
            elementwise.softmax, elementwise.compare, shapes.reshape]


def if_(m):
    m.need(m.local is None and m.opset >= 11)
    x = m.pick(ONES)
    draw = m.rng.random()
    if draw < 0.4:  # by sizes
        a, b = m.number(m.any_dim()), m.number(m.any_dim())
        condition = m.node(m.one(["Less", "Greater", "Equal"]), [a, b], [("bool", [])])
    elif draw < 0.7:
        condition = m.input("bool", [], "p", [m.chance(0.5) for _ in m.sizes])
    else:
        condition = m.const(np.array(m.chance(0.5)))
    bodies, results = [], []
    for _ in range(2):
        inside = Inside(m, [])
        with inside as nodes:
            m.values.append(x)
            steps(m, body_makers(), m.int(0, 3))
            y = shaped(m, x)
            bodies.append(Body([], nodes, [(y.name, y.dtype, y.rank)]))
            results.append(y)
    m.node("If", [condition], [(x.dtype, x.dims, {"wild": any(r.wild for r in results), "mag": max(r.mag for r in results)})],
           then_branch=bodies[0], else_branch=bodies[1])


def loop(m):
    m.need(m.local is None and m.opset >= 11)
    x = m.pick({"f32", "i64"}, where=lambda v: v.mag < 100 and not v.wild)
    trips = m.one([m.const(np.array(m.int(0, 3))), m.number(m.any_dim())])
    i, go, carry = m.name("i"), m.name("go"), m.name("carry")
    inputs = [Value(i, "i64", []), Value(go, "bool", []), Value(carry, x.dtype, x.dims, mag=50.0)]
    inside = Inside(m, inputs)
    with inside as nodes:
        steps(m, body_makers(), m.int(1, 3))
        y = shaped(m, x)
        if y.is_float and m.chance(0.7):
            y = m.node("Tanh", [y], [(x.dtype, x.dims, {"mag": 1.0})])
        out = y if y.name != carry else m.node("Identity", [y], [(x.dtype, x.dims)])
        if m.chance(0.3):
            more = m.node("Less", [inputs[0], m.const(np.array(m.int(0, 2)))], [("bool", [])])
        else:
            more = m.node("Identity", [inputs[1]], [("bool", [])])
        outputs = [(more.name, "bool", 0), (out.name, x.dtype, x.rank)]
        stacked = m.chance(0.5) and not any(node.op == "Less" and node.outs[0] == more.name for node in nodes)
        if stacked:
            m.avoid("loop without trips", tuple(int(c) for c in trips.content))
            row = shaped(m, x)
            outputs.append((row.name, x.dtype, x.rank))
    body = Body([(i, "i64", 0), (go, "bool", 0), (carry, x.dtype, x.rank)], nodes, outputs)
    results = [(x.dtype, x.dims, {"wild": True, "mag": 1e3} if x.is_float else {})]
    if stacked:
        count = tuple(int(c) for c in trips.content)
        results.append((x.dtype, m.small([count] + x.dims), {"wild": True, "mag": 1e3} if x.is_float else {}))
    condition = m.one([None, m.const(np.array(True))])
    m.node("Loop", [trips, condition, x], results, body=body)


def scan(m):
    m.need(m.local is None and m.opset >= 9)
    x = m.pick({"f32", "i64"}, rank=(1, 3), where=lambda v: v.mag < 100 and not v.wild)
    axis = m.int(0, x.rank - 1) if m.chance(0.4) else 0
    m.avoid("crash", x.dims[axis])
    row_dims = x.dims[:axis] + x.dims[axis + 1:]
    start = m.of(x.dtype, row_dims)
    carry, row = m.name("carry"), m.name("row")
    inputs = [Value(carry, x.dtype, row_dims, mag=50.0), Value(row, x.dtype, row_dims, mag=x.mag)]
    inside = Inside(m, inputs, m.chance(0.7))
    with inside as nodes:
        total = m.node("Add", [inputs[0], inputs[1]], [(x.dtype, row_dims, {"mag": 100.0})])
        steps(m, body_makers(), m.int(0, 2))
        y = shaped(m, total)
        if y.is_float:
            y = m.node("Tanh", [y], [(x.dtype, row_dims, {"mag": 1.0})])
        z = m.node("Identity", [m.one([total, inputs[1]])], [(x.dtype, row_dims)])
    body = Body([(carry, x.dtype, len(row_dims)), (row, x.dtype, len(row_dims))], nodes, [(y.name, x.dtype, y.rank), (z.name, x.dtype, z.rank)])
    out_axis = m.int(0, len(row_dims)) if m.chance(0.3) else 0
    dims = row_dims[:out_axis] + [x.dims[axis]] + row_dims[out_axis:]
    options = {"wild": True, "mag": 1e3} if x.is_float else {}
    m.node("Scan", [start, x], [(x.dtype, row_dims, options), (x.dtype, dims, options)], body=body, num_scan_inputs=1,
           scan_input_axes=[axis] if axis else None, scan_output_axes=[out_axis] if out_axis else None,
           scan_input_directions=[1] if m.chance(0.3) else None, scan_output_directions=[1] if m.chance(0.2) else None)


FAMILY = [(3, if_), (3, loop), (3, scan)]
