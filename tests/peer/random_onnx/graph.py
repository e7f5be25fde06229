# SPDX-License-Identifier: Apache-2.0
"""A small graph that is easy to cut, and its ONNX. Values go by name; a sub-graph is an attribute that is a Body."""
import dataclasses

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, numpy_helper

DTYPES = {
    "f32": np.dtype("float32"), "f64": np.dtype("float64"), "f16": np.dtype("float16"), "bf16": np.dtype(ml_dtypes.bfloat16),
    "i8": np.dtype("int8"), "i16": np.dtype("int16"), "i32": np.dtype("int32"), "i64": np.dtype("int64"),
    "u8": np.dtype("uint8"), "u16": np.dtype("uint16"), "u32": np.dtype("uint32"), "u64": np.dtype("uint64"),
    "bool": np.dtype("bool"), "u4": np.dtype(ml_dtypes.uint4), "i4": np.dtype(ml_dtypes.int4),
}
ONNX_TYPES = {
    "f32": 1, "u8": 2, "i8": 3, "u16": 4, "i16": 5, "i32": 6, "i64": 7, "bool": 9, "f16": 10, "f64": 11, "u32": 12, "u64": 13,
    "bf16": 16, "u4": 21, "i4": 22,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
FLOATS = ("f32", "f64", "f16", "bf16")
FEW_BITS = ("u4", "i4")  # what only some nodes take, and no input or output is


@dataclasses.dataclass
class Node:
    op: str
    ins: list  # names; "" for one that is left out
    outs: list
    attrs: dict = dataclasses.field(default_factory=dict)
    domain: str = ""

    def bodies(self):
        return [value for value in self.attrs.values() if isinstance(value, Body)]

    def reads(self):
        """Of the graph around it, captures of bodies too."""
        names = [name for name in self.ins if name]
        for body in self.bodies():
            names += body.captures()
        return names


@dataclasses.dataclass
class Body:
    inputs: list  # (name, dtype, rank)
    nodes: list
    outputs: list  # (name, dtype, rank)
    inits: dict = dataclasses.field(default_factory=dict)

    def captures(self):
        own = {name for name, _, _ in self.inputs} | set(self.inits) | {out for node in self.nodes for out in node.outs}
        read = [name for node in self.nodes for name in node.reads()] + [name for name, _, _ in self.outputs]
        return [name for name in read if name not in own]


@dataclasses.dataclass
class Graph:
    opset: int
    inputs: dict = dataclasses.field(default_factory=dict)  # name: (dtype, [number or symbol])
    inits: dict = dataclasses.field(default_factory=dict)  # name: array
    nodes: list = dataclasses.field(default_factory=list)
    outputs: dict = dataclasses.field(default_factory=dict)  # name: dtype

    def replaced(self, **changes):
        return dataclasses.replace(self, **changes)

    def pruned(self, keep_inputs=False):
        """Without what no output needs."""
        wanted, nodes = set(self.outputs), []
        for node in reversed(self.nodes):
            if wanted.intersection(node.outs):
                nodes.append(node)
                wanted.update(node.reads())
        return self.replaced(
            nodes=nodes[::-1],
            inputs={name: type_ for name, type_ in self.inputs.items() if keep_inputs or name in wanted},
            inits={name: array for name, array in self.inits.items() if name in wanted})

    def model(self):
        inputs = [helper.make_tensor_value_info(name, ONNX_TYPES[dtype], dims) for name, (dtype, dims) in self.inputs.items()]
        outputs = [helper.make_tensor_value_info(name, ONNX_TYPES[dtype], None) for name, dtype in self.outputs.items()]
        graph = helper.make_graph([proto_of(node) for node in self.nodes], "g", inputs, outputs, tensors_of(self.inits))
        domains = {node.domain for node in self.nodes} - {""}
        versions = {"ai.onnx.ml": self.learned_opset()}
        opsets = [helper.make_opsetid("", self.opset)] + [helper.make_opsetid(domain, versions.get(domain, 1)) for domain in sorted(domains)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=min(10, max(4, helper.find_min_ir_version_for(opsets, True))))

    def learned_opset(self):
        """Of ai.onnx.ml, of about the same age."""
        return 3 if self.opset < 19 else 4 if self.opset < 21 else 5

    def text(self):
        return onnx.printer.to_text(self.model())


def tensors_of(inits):
    return [numpy_helper.from_array(array, name) for name, array in inits.items()]


def proto_of(node):
    attrs = {name: graph_of(value) if isinstance(value, Body) else
             numpy_helper.from_array(value, name) if isinstance(value, np.ndarray) else value for name, value in node.attrs.items()}
    return helper.make_node(node.op, node.ins, node.outs, domain=node.domain, **attrs)


def described(name, dtype, rank):
    """dtype: of a tensor, or "seq" and that of the elements."""
    dims = None if rank is None else [None] * rank
    if dtype.startswith("seq "):
        return helper.make_tensor_sequence_value_info(name, ONNX_TYPES[dtype[4:]], dims)
    return helper.make_tensor_value_info(name, ONNX_TYPES[dtype], dims)


def graph_of(body):
    inputs, outputs = ([described(*value) for value in values] for values in (body.inputs, body.outputs))
    return helper.make_graph([proto_of(node) for node in body.nodes], "body", inputs, outputs, tensors_of(body.inits))
