# SPDX-License-Identifier: Apache-2.0
"""Prints ONNX graphs one node a line, to see how an exporter spells things.

    python listing.py MODEL.onnx... [-o FOLDER]

    %12 f32[batch,4,seq,16] = Transpose(%11) perm=[0,2,1,3]

Values are numbered in order; small constants stand where they are used, large ones as `name f32[64,64]`.
"""

import argparse
import pathlib
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper

SHORT = {
    "float32": "f32",
    "float64": "f64",
    "float16": "f16",
    "bfloat16": "bf16",
    "int64": "i64",
    "int32": "i32",
    "int8": "i8",
    "uint8": "u8",
}


def dtype_name(elem_type):
    name = str(helper.tensor_dtype_to_np_dtype(elem_type)) if elem_type else "?"
    return SHORT.get(name, name)


def type_text(value):
    tensor = value.type.tensor_type
    dims = ["?" if not d.WhichOneof("value") else d.dim_param or str(d.dim_value) for d in tensor.shape.dim]
    shape = "[" + ",".join(dims) + "]" if tensor.HasField("shape") else "[..]"
    return dtype_name(tensor.elem_type) + shape


def constant_text(array, name):
    if array.size <= 4:
        return np.array2string(array, separator=",", threshold=8, precision=7).replace("\n", "").replace(" ", "")
    return f"{name} {SHORT.get(str(array.dtype), array.dtype)}[{','.join(map(str, array.shape))}]"


class Listing:
    def __init__(self, graph, names=None):
        self.types = {v.name: type_text(v) for v in [*graph.input, *graph.value_info, *graph.output]}
        self.names = dict(names or {})
        self.lines = []
        for tensor in graph.initializer:
            self.names[tensor.name] = constant_text(numpy_helper.to_array(tensor), tensor.name)
        for value in graph.input:
            self.names.setdefault(value.name, value.name)
            self.lines.append(f"input {value.name} {self.types[value.name]}")
        for node in graph.node:
            self.node(node)
        for value in graph.output:
            self.lines.append(f"output {value.name} {self.types[value.name]} = {self.names[value.name]}")

    def fresh(self, name):
        if not name:
            return "_"
        self.names[name] = f"%{len(self.names)}"
        return self.names[name] + (" " + self.types[name] if name in self.types else "")

    def attribute(self, attribute):
        if attribute.type == onnx.AttributeProto.TENSOR:
            return f"{attribute.name}={constant_text(numpy_helper.to_array(attribute.t), 'value')}"
        if attribute.type == onnx.AttributeProto.GRAPH:
            self.lines += ["    " + line for line in Listing(attribute.g, self.names).lines]
            return f"{attribute.name}=(above)"
        value = helper.get_attribute_value(attribute)
        value = value.decode() if isinstance(value, bytes) else value
        return f"{attribute.name}={value}".replace(", ", ",")

    def node(self, node):
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            self.names[node.output[0]] = constant_text(numpy_helper.to_array(node.attribute[0].t), node.output[0])
            return
        inputs = ", ".join(self.names[name] if name else "_" for name in node.input)
        attributes = "".join(" " + self.attribute(a) for a in node.attribute)
        outputs = ", ".join(self.fresh(name) for name in node.output)
        self.lines.append(f"{outputs} = {node.op_type}({inputs}){attributes}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("-o", type=pathlib.Path, help="a folder for MODEL.txt; without it everything is printed")
    arguments = parser.parse_args()
    for path in arguments.models:
        model = onnx.shape_inference.infer_shapes(onnx.load(path), data_prop=True)
        opsets = " ".join(f"{o.domain or 'ai.onnx'}={o.version}" for o in model.opset_import)
        text = "\n".join([f"# {path.name}: {opsets}", *Listing(model.graph).lines]) + "\n"
        if arguments.o:
            (arguments.o / (path.stem + ".txt")).write_text(text)
        else:
            sys.stdout.write(text)


if __name__ == "__main__":
    main()
