# SPDX-License-Identifier: Apache-2.0
"""Named tensors in one file, in a form that any language reads in a dozen lines.

A file is a run of tensors. Each is one text line, `name dtype d0 d1 ...`, and then the little-endian row-major bytes,
whose number follows from the line. dtype is the name that the library uses (f32, i64, bool, ...); rank 0 has no dims.
"""

import math

import ml_dtypes
import numpy as np

DTYPES = {"bf16": ml_dtypes.bfloat16, "f16": "<f2", "f32": "<f4", "f64": "<f8", "i8": "|i1", "i16": "<i2", "i32": "<i4", "i64": "<i8",
          "u8": "|u1", "u16": "<u2", "bool": "|b1"}
NAMES = {np.dtype(code): name for name, code in DTYPES.items()}


def write_tensors(path, tensors):
    """tensors: name -> array, written in the order of the dict."""
    with open(path, "wb") as file:
        for name, array in tensors.items():
            array = np.asarray(array)
            header = " ".join([name, NAMES[array.dtype], *map(str, array.shape)])
            file.write(header.encode() + b"\n" + array.astype(np.dtype(DTYPES[NAMES[array.dtype]])).tobytes())


def read_tensors(path):
    tensors = {}
    with open(path, "rb") as file:
        while header := file.readline():
            name, dtype, *dims = header.decode().split()
            dims = [int(d) for d in dims]
            dtype = np.dtype(DTYPES[dtype])
            tensors[name] = np.frombuffer(file.read(math.prod(dims) * dtype.itemsize), dtype).reshape(dims)
    return tensors
