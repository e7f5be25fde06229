# SPDX-License-Identifier: Apache-2.0
"""A random graph by its seed, with inputs at several bindings of its sizes."""
import numpy as np
from onnx import defs, helper

from . import bodies, elementwise, indices, layers, learned, sequences, shapes
from .graph import Body, Graph
from .kernels import NEWEST
from .maker import SYMBOLS, Maker, Skip

OPSETS = [7, 8, 9, 10, 11, 12, 13, 13, 14, 15, 16, 17, 17, 18, 18, 19, 20, 21, 22, 23, 24, NEWEST]
FAMILIES = [elementwise, shapes, indices, layers, bodies, sequences, learned]
SHARES = [8, 9, 3, 4, 1, 0.7, 0.8]


def bindings(rng):
    """Two of unlike sizes, one with 1 among them, one with 0, one of any."""
    def draw(low, high):
        return {symbol: int(rng.integers(low, high + 1)) for symbol in SYMBOLS}

    first = dict(zip(SYMBOLS, (int(n) for n in rng.permutation([2, 3, 5, 6, 7])[:len(SYMBOLS)])))
    second, ones, zeros, free = draw(2, 9), draw(1, 4), draw(1, 5), draw(0, 12)
    ones[SYMBOLS[rng.integers(len(SYMBOLS))]] = 1
    zeros[SYMBOLS[rng.integers(len(SYMBOLS))]] = 0
    return [first, second, ones, zeros, free]


def make(seed, opset=None):
    """(graph, feeds)."""
    rng = np.random.default_rng(seed)
    m = Maker(rng, opset or int(rng.choice(OPSETS)), bindings(rng))
    for _ in range(int(rng.integers(1, 4))):
        m.input(m.one(["f32", "f32", "f32", "i64", "bool"]), m.some_dims(m.int(1, 4)))
    shares = np.array(SHARES, float)
    if rng.random() < 0.5:  # graphs with a leaning
        shares *= rng.choice([0.2, 1.0, 4.0], len(SHARES))
    count, tries = int(rng.integers(5, 41)), 0
    while len(m.graph.nodes) < count and tries < 4 * count:
        tries += 1
        family = FAMILIES[rng.choice(len(FAMILIES), p=shares / shares.sum())].FAMILY
        weights = np.array([weight for weight, _ in family], float)
        attempt(m, family[rng.choice(len(family), p=weights / weights.sum())][1])
    finish(m, rng)
    graph = m.graph.pruned()
    if rng.random() < 0.2:
        write_defaults(graph.nodes, graph.opset)
    return graph, [{name: feed[name] for name in graph.inputs} for i, feed in enumerate(m.feeds) if i not in m.left_out]


def attempt(m, maker):
    """One node, with what it needs; or nothing."""
    graph = m.graph
    kept = (len(graph.nodes), len(m.values), dict(graph.inputs), dict(graph.inits), set(m.dead), set(m.left_out), dict(m.fresh))
    try:
        maker(m)
        return
    except Skip:
        pass
    nodes, values, graph.inputs, graph.inits, m.dead, m.left_out, m.fresh = kept
    del graph.nodes[nodes:]
    del m.values[values:]
    m.local = None


def finish(m, rng):
    """What nobody reads is an output, and now and then another value."""
    read = {name for node in m.graph.nodes for name in node.reads()}
    made = {name: v for v in m.values for name in [v.name]}
    for node in m.graph.nodes:
        for name in node.outs:
            if name in made and made[name].dtype != "bf16" and (name not in read or rng.random() < 0.08):
                m.graph.outputs[name] = made[name].dtype


def write_defaults(nodes, opset):
    """Some exporters write the attributes that have their default too."""
    for node in nodes:
        version = {"ai.onnx.ml": Graph(opset).learned_opset()}.get(node.domain, opset)
        if defs.has(node.op, version, node.domain):
            for name, attribute in defs.get_schema(node.op, version, node.domain).attributes.items():
                if name not in node.attrs and attribute.default_value.type:
                    node.attrs[name] = helper.get_attribute_value(attribute.default_value)
        for body in node.attrs.values():
            if isinstance(body, Body):
                write_defaults(body.nodes, opset)
