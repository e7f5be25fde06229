#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of the libFuzzer targets: FOLDER/TARGET/* and, where words help, FOLDER/TARGET.dict.

usage: corpus.py FOLDER
"""
import hashlib
import json
import pathlib
import re
import struct
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
ONNX_DATA = pathlib.Path("/usr/share/libonnx-testdata/data")
LARGEST = 4096  # bytes of a seed: small ones are mutated more often in the same time


def texts():
    """The graphs of the goldens, the samples and the graphs that failed once: what begins a line and ends in "}"."""
    for path in sorted(TESTS.rglob("*.rlx")):
        if "examples" not in path.parts:  # a notation of its own
            for graph in re.findall(r"^graph.*?^}$", path.read_text(), re.MULTILINE | re.DOTALL):
                yield graph.encode()


def onnx_files():
    for path in sorted(ONNX_DATA.rglob("*.onnx")):
        yield path.read_bytes()


def safetensors(header, data):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def safetensors_files():
    sizes = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2,
             "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1, "C64": 8}
    for dtype, size in sizes.items():
        tensor = {"dtype": dtype, "shape": [2, 3], "data_offsets": [0, 6 * size]}
        yield safetensors({"x": tensor}, bytes(range(6 * size)))
    yield safetensors({"__metadata__": {"format": "pt", "\u00e9": "\"\\\n"},
                       "a": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]},
                       "b": {"dtype": "I64", "shape": [0, 7], "data_offsets": [4, 4]},
                       "c": {"dtype": "U8", "shape": [2, 1, 2], "data_offsets": [4, 8]}}, bytes(8))
    yield safetensors(b"{}   ", b"")


def gguf_string(text):
    return struct.pack("<Q", len(text)) + text.encode()


def gguf_values():
    """A pair of a name and a value of each kind, arrays of them among these."""
    numbers = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
    for kind, code in numbers.items():
        one = struct.pack("<" + code, 1)
        yield gguf_string(f"k{kind}") + struct.pack("<I", kind) + one
        yield gguf_string(f"a{kind}") + struct.pack("<IIQ", 9, kind, 2) + one + one
    yield gguf_string("general.name") + struct.pack("<I", 8) + gguf_string("a name")
    yield gguf_string("tokens") + struct.pack("<IIQ", 9, 8, 2) + gguf_string("a") + gguf_string("b")
    yield gguf_string("nested") + struct.pack("<IIQIQ", 9, 9, 1, 4, 1) + struct.pack("<I", 7)


def gguf(version, values, tensors, alignment=32):
    """Tensors are (name, dims, number of the type, bytes)."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(values)) + b"".join(values)
    offset = 0
    for name, dims, kind, data in tensors:
        head += gguf_string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)
        offset += -(-len(data) // alignment) * alignment
    out = head + bytes(-len(head) % alignment)
    for *_, data in tensors:
        out += data + bytes(-len(data) % alignment)
    return out


# Elements and bytes of one block, by the number of the type.
BLOCKS = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 9: (32, 36), 10: (256, 84),
          11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292), 20: (32, 18), 23: (256, 136),
          24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 30: (1, 2), 34: (256, 54), 35: (256, 66), 39: (32, 17)}


def gguf_files():
    for kind, (elements, size) in BLOCKS.items():
        yield gguf(3, [], [("x", [2 * elements, 2], kind, bytes(range(1, 5)) * size)])
    yield gguf(2, list(gguf_values()), [("a", [3], 0, bytes(12)), ("b", [4, 1, 2, 1], 1, bytes(16))])
    yield gguf(3, [gguf_string("general.alignment") + struct.pack("<II", 4, 64)],
               [("a", [3], 0, bytes(12)), ("b", [2], 28, bytes(16))], 64)


def strings():
    """Attributes and options: what the samples, the documents and the tests write in quotes or behind an op."""
    yield from (b"", b"axis=-1", b"dims.n=4 math=fast threads=1", b"passes.skip=[fuse,fold] bounds=clamp", b"io.alias=[\"z=x\"]",
                b"memory.limit=100 weights.drop=1 io.convert=true", b"params.min=1 decode=1", b"dispatch.softmax=reference",
                b"softmax axis=1", b"cast dtype=f16", b"reshape shape=[2,2,2]", b"transpose perm=[1,0]", b"value.x={1}",
                b"slice axes=[0] starts=[0] ends=[1] steps=[1]", b"name=\"a \\\" b\" list=[a,b,1e-5,nan,-inf]")
    for path in sorted((TESTS / "samples").glob("*.golden")):
        for op, attrs in re.findall(r"^case (\w+)(.*)$", path.read_text(), re.MULTILINE):
            yield (op + attrs).encode()


def words():
    """Names of ops, dtypes and attributes, from the generated page of ops."""
    page = (TESTS.parent / "docs/ops.md").read_text()
    found = set(re.findall(r"\b[a-z][a-z0-9_]{2,20}\b", " ".join(re.findall(r"`([^`]*)`", page))))
    return sorted(found | {"graph", "input", "param", "constant", "output", "guard", "base64", "f32[", "i64[", "->", "{1}"})


def onnx_words():
    """Strings of the seeds: names of ops, of their attributes, of domains."""
    found = set()
    for data in onnx_files():
        found |= {it.decode() for it in re.findall(rb"[A-Za-z_][A-Za-z0-9_.]{2,24}", data)} if len(data) <= LARGEST else set()
    return sorted(found)


SEEDS = {"text": texts, "onnx": onnx_files, "safetensors": safetensors_files, "gguf": gguf_files, "options": strings}
WORDS = {"text": words, "options": words, "onnx": onnx_words}


def write(folder):
    for target, seeds in SEEDS.items():
        into = folder / target
        into.mkdir(parents=True, exist_ok=True)
        for data in seeds():
            if len(data) <= LARGEST:
                (into / hashlib.sha1(data).hexdigest()).write_bytes(data)
    for target, made in WORDS.items():
        (folder / f"{target}.dict").write_text("".join(f'"{word}"\n' for word in made()))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write(pathlib.Path(sys.argv[1]))
