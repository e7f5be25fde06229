# SPDX-License-Identifier: Apache-2.0
"""Cuts a failing graph down, as long as it fails in the same way."""
import re
import time

import numpy as np

from .graph import NAMES
from .judge import Verdict


def signature(verdict):
    """What must stay: the kind, and of a refusal the words without their names and numbers."""
    words = verdict.message.rsplit(": ", 1)[-1] if verdict.kind == "refused" else ""
    return verdict.kind, re.sub(r"'[^']*'|\[[^\]]*\]|[-\d.]+", "#", words)[:80]


class Shrinker:
    def __init__(self, runner, graph, feeds, verdict, device=None, limit=20):
        self.runner, self.device, self.end = runner, device, time.monotonic() + limit
        self.graph, self.feeds, self.verdict = graph, feeds, verdict
        self.wanted = signature(verdict)

    def try_(self, graph, feeds):
        if time.monotonic() > self.end or not graph.outputs or not feeds:
            return False
        graph = graph.pruned()
        feeds = [{name: feed[name] for name in graph.inputs} for feed in feeds]
        verdict = self.runner.check(graph, feeds, self.device)
        if not verdict.bad() or signature(verdict) != self.wanted:
            return False
        self.graph, self.feeds, self.verdict = graph, feeds, verdict
        return True

    def run(self):
        self.drop_outputs()
        self.drop_peerless()
        self.cut_levels()
        for _ in range(4):
            size = self.size()
            self.cut_nodes()
            self.bypass()
            self.drop_bindings()
            self.name_sizes()
            if self.size() == size:
                break
        self.shrink_sizes()
        return self.graph, self.feeds, self.verdict

    def size(self):
        return len(self.graph.nodes), len(self.graph.inputs), len(self.feeds), str(self.graph.inputs)

    def drop_outputs(self):
        names = [self.verdict.output] if self.verdict.output else list(self.graph.outputs)
        for name in names:
            if len(self.graph.outputs) > 1 and name in self.graph.outputs:
                if self.try_(self.graph.replaced(outputs={name: self.graph.outputs[name]}), self.feeds):
                    return
        for name in list(self.graph.outputs):
            rest = {other: dtype for other, dtype in self.graph.outputs.items() if other != name}
            self.try_(self.graph.replaced(outputs=rest), self.feeds)

    def drop_peerless(self):
        ran = self.runner.peer(self.graph, self.feeds)
        feeds = [feed for feed, result in zip(self.feeds, ran) if not isinstance(result, str)]
        if len(feeds) < len(self.feeds):
            self.try_(self.graph, feeds)

    def drop_bindings(self):
        for feed in list(self.feeds):
            if len(self.feeds) > 1 and self.try_(self.graph, [feed]):
                return

    # ---- cuts: a value in the middle becomes an input ----
    def recorded(self):
        """Of every value of the graph: its array at each binding."""
        names = [name for node in self.graph.nodes for name in node.outs if name]
        dtypes = self.types()
        whole = self.graph.replaced(outputs={name: dtypes[name] for name in names if name in dtypes})
        results = self.runner.peer(whole, self.feeds)
        if any(isinstance(result, str) for result in results):
            return {}
        return {name: [np.asarray(result[name]) for result in results] for name in whole.outputs}

    def types(self):
        import onnx
        words = {1: "f32", 11: "f64", 10: "f16", 9: "bool", 7: "i64", 6: "i32", 5: "i16", 3: "i8", 2: "u8", 4: "u16", 12: "u32", 13: "u64"}
        model = onnx.shape_inference.infer_shapes(self.graph.model())
        found = {info.name: info.type.tensor_type.elem_type for info in list(model.graph.value_info) + list(model.graph.output)}
        return {name: words[code] for name, code in found.items() if code in words}

    def spelled(self, arrays, taken):
        """Dims of a new input: numbers, symbols of other inputs, or new ones."""
        known = {}
        for name, (_, dims) in self.graph.inputs.items():
            for axis, dim in enumerate(dims):
                if isinstance(dim, str):
                    known.setdefault(tuple(feed[name].shape[axis] for feed in self.feeds), dim)
        known.update(taken)
        dims = []
        for axis in range(arrays[0].ndim):
            sizes = tuple(array.shape[axis] for array in arrays)
            if len(set(sizes)) == 1 and len(sizes) > 1:
                dims.append(sizes[0])
            else:
                if sizes not in known:
                    known[sizes] = taken[sizes] = f"q{len(known)}"
                dims.append(known[sizes])
        return dims

    def cut(self, names, values):
        """The graph with these values as inputs."""
        if not names or any(name not in values or len({array.ndim for array in values[name]}) != 1 for name in names):
            return False
        taken, inputs = {}, dict(self.graph.inputs)
        for name in names:
            inputs[name] = (NAMES[values[name][0].dtype], self.spelled(values[name], taken))
        nodes = []
        for node in self.graph.nodes:
            outs = [self.spare(name) if name in names else name for name in node.outs]
            if any(name in node.outs for name in names) and not set(outs) - {self.spare(name) for name in names} - {""}:
                continue
            nodes.append(node if outs == node.outs else type(node)(node.op, node.ins, outs, node.attrs, node.domain))
        feeds = [dict(feed) | {name: values[name][i] for name in names} for i, feed in enumerate(self.feeds)]
        return self.try_(self.graph.replaced(nodes=nodes, inputs=inputs), feeds)

    def spare(self, name):
        return name + "_cut"

    def cut_levels(self):
        """Only the last levels of nodes: one, two, three ... of them."""
        values = self.recorded()
        made = {name: node for node in self.graph.nodes for name in node.outs}
        for depth in range(1, 7):
            near, edge = set(), set(self.graph.outputs)
            for _ in range(depth):
                nodes = {id(made[name]): made[name] for name in edge if name in made}
                near |= set(nodes)
                edge = {name for node in nodes.values() for name in node.reads()}
            beyond = {name for node in self.graph.nodes if id(node) in near for name in node.reads()
                      if name in made and id(made[name]) not in near}
            if beyond and self.cut(sorted(beyond), values):
                return

    def cut_nodes(self):
        values = self.recorded()
        for node in list(self.graph.nodes):
            if any(node.outs == other.outs for other in self.graph.nodes):
                names = [name for name in node.outs if name and name not in self.graph.outputs]
                if names and node.op != "Constant":
                    self.cut(names, values)

    def bypass(self):
        """A node's reader takes one of its inputs instead."""
        values = self.recorded()
        for node in list(self.graph.nodes):
            if node not in self.graph.nodes or not node.outs[0] or len(self.graph.nodes) == 1:
                continue
            out = node.outs[0]
            for name in node.ins:
                arrays = values.get(name) or [feed.get(name) for feed in self.feeds]
                if out not in values or any(a is None or a.dtype != b.dtype or a.ndim != b.ndim for a, b in zip(arrays, values[out])):
                    continue
                if name == out or out in self.graph.outputs:
                    continue
                nodes = [type(n)(n.op, [name if i == out else i for i in n.ins], n.outs, n.attrs, n.domain) for n in self.graph.nodes
                         if n is not node]
                if self.try_(self.graph.replaced(nodes=nodes), self.feeds):
                    values = self.recorded()
                    break

    # ---- sizes ----
    def name_sizes(self):
        """Symbols as numbers, inputs as initializers, where one binding is left."""
        if len(self.feeds) != 1:
            return
        feed = self.feeds[0]
        symbols = {dim for _, dims in self.graph.inputs.values() for dim in dims if isinstance(dim, str)}
        for symbol in sorted(symbols):
            inputs = {name: (dtype, [feed[name].shape[i] if dim == symbol else dim for i, dim in enumerate(dims)])
                      for name, (dtype, dims) in self.graph.inputs.items()}
            self.try_(self.graph.replaced(inputs=inputs), self.feeds)
        for name in list(self.graph.inputs):
            if name in self.graph.inputs and feed[name].dtype == np.int64 and feed[name].size <= 8 and len(self.graph.inputs) > 1:
                rest = {other: type_ for other, type_ in self.graph.inputs.items() if other != name}
                self.try_(self.graph.replaced(inputs=rest, inits=self.graph.inits | {name: feed[name]}), self.feeds)

    def shrink_sizes(self):
        """Smaller symbols: the arrays are cut off."""
        symbols = {dim for _, dims in self.graph.inputs.values() for dim in dims if isinstance(dim, str)}
        for symbol in sorted(symbols):
            for size in (0, 1, 2, 3):
                feeds = []
                for feed in self.feeds:
                    cut = {}
                    for name, (_, dims) in self.graph.inputs.items():
                        cut[name] = feed[name][tuple(slice(0, size) if dim == symbol else slice(None) for dim in dims)]
                    feeds.append(cut)
                same = all(a[name].shape == b[name].shape for a, b in zip(feeds, self.feeds) for name in a)
                if same or self.try_(self.graph, feeds):
                    break
