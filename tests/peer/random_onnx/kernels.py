# SPDX-License-Identifier: Apache-2.0
"""Which dtypes a node kind has in both ONNX's schema and ONNX Runtime."""
import functools

import onnx
from onnxruntime.capi import onnxruntime_pybind11_state as state

SHORT = {"float": "f32", "double": "f64", "float16": "f16", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
         "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "bool", "bfloat16": "bf16"}
NEWEST = 25  # of which ONNX Runtime has kernels throughout


def short(types):
    names = (name[len("tensor("):-1] for name in types if name.startswith("tensor("))
    return {SHORT[name] for name in names if name in SHORT}


@functools.cache
def table():
    rows = {}
    for kernel in state.get_all_opkernel_def():
        if kernel.provider == "CPUExecutionProvider" and kernel.domain in ("", "ai.onnx", "com.microsoft"):
            types = {name: short(types) for name, types in kernel.type_constraints.items()}
            rows.setdefault((kernel.op_name, "" if kernel.domain == "ai.onnx" else kernel.domain), []).append((kernel.version_range, types))
    return rows


@functools.cache
def schema(op, opset):
    try:
        return onnx.defs.get_schema(op, opset, "")
    except onnx.defs.SchemaError:
        return None


@functools.cache
def dtypes(op, opset, which=0):
    """Of input number `which`. Halves are cast by ONNX Runtime where it has no kernel of them."""
    found = schema(op, opset)
    if found is None or found.deprecated:
        return frozenset()
    formal = found.inputs[which] if which >= 0 else found.outputs[-1 - which]
    letter = formal.type_str
    allowed = [short(row.allowed_type_strs) for row in found.type_constraints if row.type_param_str == letter]
    allowed = allowed[0] if allowed else short([letter])
    kernels = set()
    for (first, last), types in table().get((op, ""), []):
        if first <= opset <= last and (first == found.since_version or first <= found.since_version <= last):
            kernels |= types.get(letter, allowed)
    if "f32" in kernels:
        kernels.add("f16")
    return frozenset(allowed & kernels)
