#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/models/blocks.gguf by PyPI's gguf: for every type of blocks a tensor of noise under the type's name, and
what NumPy makes of it under NAME.f32; and metadata of every kind.

usage: make_gguf.py      (needs numpy and gguf)
"""
import pathlib

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type

ROWS, COLUMNS = 2, 256
FILE = pathlib.Path(__file__).resolve().parent.parent / "models/blocks.gguf"

# Where a block has floats: noise would be NaN there.
HALVES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108],
          "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "Q8_K": [], "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": [], "NVFP4": [],
          "TQ1_0": [52], "TQ2_0": [64]}


def noise(name, random):
    elements, size = gguf.GGML_QUANT_SIZES[Type[name]]
    blocks = random.integers(0, 256, (ROWS * COLUMNS // elements, size), dtype=np.uint8)
    for at in HALVES[name]:
        blocks[:, at:at + 2] = random.normal(0, 0.1, (len(blocks), 1)).astype(np.float16).view(np.uint8)
    if name == "Q8_K":
        blocks[:, :4] = random.normal(0, 0.1, (len(blocks), 1)).astype(np.float32).view(np.uint8)
    if name == "NVFP4":
        blocks[:, :4] = random.integers(0, 0x7f, (len(blocks), 4))
    if name == "MXFP4":
        blocks[:, 0] = random.integers(100, 150, len(blocks))
    return blocks


def decoded(name, blocks):
    if name == "Q8_K":  # not among those that gguf decodes
        values = blocks[:, :4].copy().view(np.float32) * blocks[:, 4:260].copy().view(np.int8).astype(np.float32)
    else:
        values = gguf.quants.dequantize(blocks.reshape(ROWS, -1), Type[name])
    return values.astype(np.float32).reshape(ROWS, COLUMNS)


def main():
    random = np.random.default_rng(1)
    writer = gguf.GGUFWriter(FILE, "none")
    writer.add_string("text", "blocks")
    writer.add_uint8("u8", 255)
    writer.add_int8("i8", -128)
    writer.add_uint64("u64", 2**64 - 1)
    writer.add_int64("i64", -2**63)
    writer.add_float32("f32", 0.5)
    writer.add_float64("f64", 0.1)
    writer.add_bool("bool", True)
    writer.add_array("tokens", ["a", "b"])
    writer.add_array("numbers", [1, 2, 3])
    for name in HALVES:
        blocks = noise(name, random)
        writer.add_tensor(name.lower(), blocks.reshape(ROWS, -1), raw_dtype=Type[name])
        writer.add_tensor(name.lower() + ".f32", decoded(name, blocks))
    writer.add_tensor("halves", np.arange(6, dtype=np.float16).reshape(2, 3))
    writer.add_tensor("numbers", np.arange(3, dtype=np.int64))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
