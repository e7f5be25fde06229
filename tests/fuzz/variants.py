#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes files that are wrong in one place: an operand or attribute is missing or empty, a number is out of range, a tensor is of
another rank, size or dtype, a node of another kind. ONNX files are made from those of libonnx-testdata, texts from the samples of
ops. Random mutations of bytes seldom keep the rest of a file whole.

usage: variants.py FOLDER [--every N] [--first K]

Then `BUILD/bin/fuzz_onnx -runs=0 FOLDER/onnx` reads all of them, and `fuzz_text` those of FOLDER/text.
"""
import argparse
import hashlib
import pathlib
import re

from corpus import LARGEST, ONNX_DATA, TESTS

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MODEL_GRAPH, MODEL_OPSET, OPSET_DOMAIN, OPSET_VERSION = 7, 8, 1, 2
GRAPH_NODE, GRAPH_INITIALIZER, GRAPH_INPUT = 1, 5, 11
NODE_INPUT, NODE_OUTPUT, NODE_OP_TYPE, NODE_ATTRIBUTE, NODE_DOMAIN = 1, 2, 4, 5, 7
ATTRIBUTE_I, ATTRIBUTE_S, ATTRIBUTE_FLOATS, ATTRIBUTE_INTS, ATTRIBUTE_STRINGS = 3, 4, 7, 8, 9
VALUE_NAME, VALUE_TYPE, TYPE_TENSOR = 1, 2, 1
TENSOR_ELEM_TYPE, TENSOR_SHAPE, SHAPE_DIM, DIM_VALUE = 1, 2, 1, 1
DATA_DIMS, DATA_NAME = 1, 8

DTYPES = (1, 7, 8, 9, 10, 14)  # f32, i64, string, bool, f16, c64
NUMBERS = (0, 1, -1, 2, -2, 7, 1 << 31, (1 << 63) - 1, -(1 << 63))
KINDS_A_FILE = 12  # of other nodes that each file is tried with
RANKS = ((), (0,), (1,), (3,), (2, 3), (1, 0), (2, 2, 2), (1, 2, 3, 4), (1, 1, 1, 1, 1, 1))


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out + bytes([number]))


def read_varint(data, at):
    number = shift = 0
    while True:
        number |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return number, at


def fields_of(data):
    """A message as a list of (field, wire type, number or bytes)."""
    fields, at = [], 0
    while at < len(data):
        key, at = read_varint(data, at)
        field, wire = key >> 3, key & 7
        if wire == VARINT:
            value, at = read_varint(data, at)
        else:
            size, at = (8, at) if wire == FIXED64 else (4, at) if wire == FIXED32 else read_varint(data, at)
            value, at = data[at:at + size], at + size
        fields.append((field, wire, value))
    return fields


def message(fields):
    out = b""
    for field, wire, value in fields:
        out += varint(field << 3 | wire)
        out += varint(value) if wire == VARINT else (varint(len(value)) if wire == BYTES else b"") + value
    return out


def replaced(fields, at, value=None):
    """With another value in this place; None: without it."""
    kept = [] if value is None else [(*fields[at][:2], value)]
    return fields[:at] + kept + fields[at + 1:]


def inside(fields, wanted, variants):
    """The variants of each message in a field, in their places."""
    for at, (field, wire, value) in enumerate(fields):
        if field == wanted and wire == BYTES:
            for changed in variants(fields_of(value)):
                yield replaced(fields, at, message(changed))


def of_tensor_type(fields):
    def shape(dims):
        return message([(SHAPE_DIM, BYTES, message([(DIM_VALUE, VARINT, dim)])) for dim in dims])

    rest = [it for it in fields if it[0] != TENSOR_SHAPE]
    yield rest
    for dims in RANKS:
        yield rest + [(TENSOR_SHAPE, BYTES, shape(dims))]
    for at, (field, _, value) in enumerate(fields):
        if field == TENSOR_ELEM_TYPE:
            for dtype in DTYPES:
                if dtype != value:
                    yield replaced(fields, at, dtype)


def of_input(fields):
    yield from inside(fields, VALUE_TYPE, lambda it: inside(it, TYPE_TENSOR, of_tensor_type))


def of_attribute(fields):
    lists = (ATTRIBUTE_INTS, ATTRIBUTE_FLOATS, ATTRIBUTE_STRINGS)
    without = [it for it in fields if it[0] not in lists]
    if without != fields:
        yield without
    for at, (field, wire, value) in enumerate(fields):
        if field in (ATTRIBUTE_I, ATTRIBUTE_INTS) and wire == VARINT:
            for number in NUMBERS:
                yield replaced(fields, at, number)
        if field in lists:
            yield replaced(fields, at)
            yield fields + [fields[at]]
        if field == ATTRIBUTE_S:
            yield replaced(fields, at, b"")
            yield replaced(fields, at, b"?")


def of_node(fields):
    for at, (field, _, _) in enumerate(fields):
        if field in (NODE_INPUT, NODE_OUTPUT):
            yield replaced(fields, at, b"")
        if field in (NODE_INPUT, NODE_OUTPUT, NODE_ATTRIBUTE):
            yield replaced(fields, at)
        if field in (NODE_INPUT, NODE_OUTPUT):
            yield fields + [(field, BYTES, b"more" if field == NODE_OUTPUT else fields[at][2])]
    yield [it for it in fields if it[0] != NODE_OUTPUT]
    yield [it for it in fields if it[0] != NODE_INPUT]
    yield from inside(fields, NODE_ATTRIBUTE, of_attribute)


def of_tensor(fields):
    rest = [it for it in fields if it[0] != DATA_DIMS]
    for dims in ((), (0,), (1,), (2,), (1, 1), (1, 1, 1, 1, 1)):
        yield [(DATA_DIMS, VARINT, dim) for dim in dims] + rest
    for dims in ((), (0,), (2,), (2, 0)):  # without data
        yield [(DATA_DIMS, VARINT, dim) for dim in dims] + [it for it in rest if it[0] in (2, DATA_NAME)]


def with_data(fields, tensors):
    """The first inputs as initializers, where the file's data say what they are: an operand that decides shapes is read then."""
    inputs = [at for at, it in enumerate(fields) if it[0] == GRAPH_INPUT]
    for at, data in zip(inputs, tensors):
        name = next(value for field, _, value in fields_of(fields[at][2]) if field == VALUE_NAME)
        tensor = [it for it in fields_of(data) if it[0] != DATA_NAME] + [(DATA_NAME, BYTES, name)]
        yield fields + [(GRAPH_INITIALIZER, BYTES, message(tensor))]


def of_graph(fields, tensors):
    yield from inside(fields, GRAPH_NODE, of_node)
    yield from inside(fields, GRAPH_INPUT, of_input)
    for known in with_data(fields, tensors):
        yield known
        yield from inside(known, GRAPH_NODE, of_node)
        yield from inside(known, GRAPH_INITIALIZER, of_tensor)
    everything = fields
    for known in with_data(fields, tensors):
        everything = everything + known[len(fields):]
    yield everything
    yield from inside(everything, GRAPH_INITIALIZER, of_tensor)


def kinds():
    """(domain, kind) of all nodes that are imported, by the generated page."""
    for section in (TESTS.parent / "docs/onnx.md").read_text().split("\n## ")[1:]:
        domain, _, names = section.partition("\n")
        for name in re.findall(r"`(\w+)`", names):
            yield ("" if domain == "ai.onnx" else domain).encode(), name.encode()


def of_kind(fields, domain, kind, tensors):
    def node(it):
        yield [field for field in it if field[0] not in (NODE_OP_TYPE, NODE_DOMAIN)] + [(NODE_OP_TYPE, BYTES, kind), (NODE_DOMAIN, BYTES, domain)]

    for graph in inside(fields, GRAPH_NODE, node):
        yield graph
        for known in with_data(graph, tensors):
            yield known


def variants(path, all_kinds):
    data = path.read_bytes()
    tensors = [it.read_bytes() for it in sorted(path.parent.glob("test_data_set_0/input_*.pb"))]
    model = fields_of(data)
    yield data
    for changed in inside(model, MODEL_GRAPH, lambda it: of_graph(it, tensors)):
        yield message(changed)
    start = int(hashlib.sha1(data).hexdigest(), 16) % len(all_kinds)
    for domain, kind in (all_kinds + all_kinds)[start:start + KINDS_A_FILE]:
        opset = message([(OPSET_DOMAIN, BYTES, domain), (OPSET_VERSION, VARINT, 1)])
        for changed in inside(model, MODEL_GRAPH, lambda it: of_kind(it, domain, kind, tensors)):
            yield message(changed + [(MODEL_OPSET, BYTES, opset)] * (domain != b""))


def onnx_variants():
    all_kinds = list(kinds())
    for path in sorted(ONNX_DATA.rglob("*.onnx")):
        if path.stat().st_size <= LARGEST:
            yield from (data for data in variants(path, all_kinds) if len(data) <= 2 * LARGEST)


# ---- texts ----

def samples():
    """(op, attributes, types of the inputs, number of outputs) of each sample, once where samples differ in elements only."""
    seen = set()
    for path in sorted((TESTS / "samples").glob("*.golden")):
        for op, attrs, lines in re.findall(r"^case (\w+)(.*)\n((?:(?:in|out) .*\n)*)", path.read_text(), re.MULTILINE):
            inputs = tuple(dtype + dims.replace(" ", "") for dtype, dims in re.findall(r"^in (\w+) (\[.*?\])", lines, re.MULTILINE))
            case = op, attrs, inputs, len(re.findall("^out ", lines, re.MULTILINE))
            if "graph" not in attrs and case not in seen:
                seen.add(case)
                yield case


def text_of(op, attrs, inputs, outputs):
    lines = ['graph "variant" {'] + [f"  x{i} = input {type_}" for i, type_ in enumerate(inputs)]
    lines += [f"  {', '.join(f'y{i}' for i in range(outputs))} = {op}({', '.join(f'x{i}' for i in range(len(inputs)))}){attrs}"]
    return "\n".join(lines + [f"  output y{i}" for i in range(outputs)] + ["}", ""]).encode()


def of_sample(op, attrs, inputs, outputs):
    yield op, attrs, inputs, outputs
    for found in re.finditer(r"(?<=[=\[,])-?\d+(?=[ ,\]]|$)", attrs):
        for number in NUMBERS:
            yield op, attrs[:found.start()] + str(number) + attrs[found.end():], inputs, outputs
    for found in re.finditer(r" \w+=(\[[^\]]*\]|\S+)", attrs):
        yield op, attrs[:found.start()] + attrs[found.end():], inputs, outputs
        if found[1].startswith("["):
            yield op, attrs[:found.start(1)] + "[]" + attrs[found.end(1):], inputs, outputs
            yield op, attrs[:found.end() - 1] + ",1]" + attrs[found.end():], inputs, outputs
    for i, type_ in enumerate(inputs):
        dtype, dims = type_.split("[")
        types = [f"{dtype}[{','.join(map(str, rank))}]" for rank in RANKS] + [f"{other}[{dims}" for other in ("i64", "bool", "f16", "c64", "u8")]
        for changed in types:
            yield op, attrs, inputs[:i] + (changed,) + inputs[i + 1:], outputs
        yield op, attrs, inputs[:i] + inputs[i + 1:], outputs
        yield op, attrs, inputs + (type_,), outputs


def text_variants():
    for sample in samples():
        for changed in of_sample(*sample):
            yield text_of(*changed)


VARIANTS = {"onnx": onnx_variants, "text": text_variants}


def write(folder, made, every=1, first=0):
    """Each `every`-th of them; returns how many there are in all."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for count, data in enumerate(made, 1):
        if count % every == first % every:
            (folder / hashlib.sha1(data).hexdigest()).write_bytes(data)
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--every", type=int, default=1, help="only each N-th of them (1)")
    parser.add_argument("--first", type=int, default=0, help="from this one on (0)")
    options = parser.parse_args()
    for target, made in VARIANTS.items():
        print(f"{target}: of {write(options.folder / target, made(), options.every, options.first):,} files")


if __name__ == "__main__":
    main()
