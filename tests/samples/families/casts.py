# SPDX-License-Identifier: Apache-2.0
"""Primitives 35 and 36: cast between any two dtypes, bitcast between those of related sizes."""

import ml_dtypes
import numpy as np

from golden import E8, FLOATS, PART, A, F, Tensor, int_range, numpy_int, round_float, specials, tensor, wrap

NUMPY = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "f8e4m3": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "c64": np.complex64,
    "c128": np.complex128,
}

# Ties, and the neighbours of the largest values, of one dtype or another.
EDGES = {
    "f64": [
        1 + 2.0**-24,
        1 + 3 * 2.0**-24,
        1e300,
        -1e-300,
        3.4028235677973366e38,
        255.9,
        -128.5,
        2.0**31,
        2.0**63,
        -(2.0**63),
    ],
    "f32": [
        65504,
        65519.996,
        65520,
        2.0**-25,
        1.5 * 2.0**-25,
        1 + 2.0**-11,
        1 + 3 * 2.0**-11,
        1 + 2.0**-8,
        1 + 3 * 2.0**-8,
        448,
        464,
        465,
        2.0**-9,
        2.0**-10,
        1.5 * 2.0**-10,
        0.3,
        1.0625,
        1.1875,
        57344,
        61439,
        61440,
        1.125,
        2.0**-16,
        2.0**-17,
        127.6,
        300,
        -129.5,
        255.9,
        -0.9,
        2.0**31,
        2.0**63,
        -(2.0**63),
        2.0**64,
    ],
    "i64": [16777217, 16777219, 2**53 + 1, 2**62 + 2**54 + 1, 2**62 + 2**38 + 1, 2**63 - 1, 200, 65519, 65520, 464, 465],
    "i32": [16777217, 16777219, 2**30 + 2**22 + 1, 200, -200, 65520, 464, 465],
    "u64": [2**64 - 1, 2**63 + 2**55 + 1, 2**53 + 1, 16777217],
    "i16": [200, 464, 465],
}


def int_to_float(value, dtype):
    """Rounds an integer once, half to even, at the precision of the dtype."""
    digits = FLOATS[dtype][0]
    drop = max(0, abs(value).bit_length() - digits)
    quotient, rest = divmod(abs(value), 2**drop)
    half = 2**drop // 2
    quotient += drop > 0 and (rest > half or (rest == half and quotient % 2 == 1))
    return round_float(float(quotient * 2**drop) * (-1 if value < 0 else 1), dtype)


def float_to_int(value, dtype):
    low, high = int_range(dtype)
    if np.isnan(value):
        return 0
    if np.isinf(value):
        return high if value > 0 else low
    return min(max(int(value), low), high)


def to_e8(values, dtype, saturate):
    """The largest value takes the place of what lies above it, or NaN does, or infinity where there is one."""
    y = round_float(values, dtype)
    largest = FLOATS[dtype][2]
    above = np.copysign(largest, y) if saturate else y if dtype == "f8e5m2" else np.full_like(y, np.nan)
    return np.where(np.isinf(y), above, y)


def cast(x, to, saturate=True):
    a, source = x.a, x.dtype
    if to == "bool":
        return Tensor(to, a != 0)
    if to in PART:
        exact = source in FLOATS or source in PART or source == "bool"
        return tensor(to, a.astype(np.complex128) if exact else [complex(int_to_float(int(v), PART[to])) for v in a])
    if source in FLOATS:
        if to in FLOATS:
            return Tensor(to, to_e8(a, to, saturate) if to in E8 and to != source else round_float(a, to))
        return Tensor(to, np.array([float_to_int(v, to) for v in a], numpy_int(to)))
    if to in FLOATS:
        y = np.array([int_to_float(int(v), to) for v in a], np.float64)
        return Tensor(to, to_e8(y, to, saturate) if to in E8 else y)
    return tensor(to, [wrap(int(v), to) for v in a])


def source_values(dtype):
    x = specials(dtype)
    return tensor(dtype, [*x.a.tolist(), *EDGES.get(dtype, [])])


def check_rounding():
    """round_float is ours; ml_dtypes rounds by other code."""
    values = np.array(EDGES["f32"] + [-v for v in EDGES["f32"]])
    for dtype in ("f16", "bf16", "f8e5m2"):
        theirs = values.astype(np.float32).astype(NUMPY[dtype]).astype(np.float64)
        assert np.array_equal(round_float(values.astype(np.float32), dtype), theirs), dtype
    small = values[np.abs(values) <= 464]
    assert np.array_equal(round_float(small, "f8e4m3"), small.astype(NUMPY["f8e4m3"]).astype(np.float64))


def bits(x):
    """The bytes of a tensor, one row an element."""
    if x.dtype in NUMPY:
        x = x.a.astype(NUMPY[x.dtype])
    else:
        x = x.a.astype(numpy_int(x.dtype))
    return np.ascontiguousarray(x)


def reinterpret(x, to):
    raw = bits(x).reshape(x.shape)  # a scalar comes back with an axis
    target = np.dtype(NUMPY[to]) if to in NUMPY else numpy_int(to)
    wide, narrow = raw.dtype.itemsize, target.itemsize
    if narrow == wide:
        y = raw.view(target)
    elif narrow < wide:
        y = raw.reshape(*raw.shape, 1).view(target)
    else:
        y = raw.view(target).reshape(raw.shape[:-1])
    return Tensor(to, y.astype(np.complex128 if to in PART else np.float64) if to in NUMPY else y)


BITCASTS = [
    ("f32", "i32", (2, 3)),
    ("f32", "u8", (2,)),
    ("f32", "u16", (2, 2)),
    ("f64", "i64", (3,)),
    ("f64", "f32", (2,)),
    ("f64", "u32", ()),
    ("f16", "i16", (3,)),
    ("bf16", "u16", (3,)),
    ("bf16", "u8", (2, 0)),
    ("c64", "f32", (2, 2)),
    ("c128", "f64", (2,)),
    ("c64", "u64", (2,)),
    ("c64", "bf16", (2,)),
    ("c64", "f16", ()),
    ("c128", "f32", (2,)),
    ("c128", "f16", (2,)),
    ("i16", "u8", ()),
    ("f8e4m3", "u8", (4,)),
    ("f8e5m2", "i8", (4,)),
    ("i64", "i32", (0, 2)),
    ("u8", "i8", (5,)),
    ("i32", "u32", (3,)),
]


def bitcasts(family):
    for source, to, shape in BITCASTS:
        rng = np.random.default_rng([len(shape), len(source)])
        x = tensor(
            source,
            np.round(rng.normal(0, 40, shape), 2)
            if source in FLOATS or source in PART
            else rng.integers(0, 100, shape),
        )
        y = reinterpret(x, to)
        family.case("bitcast", [x], y, to=to)
        family.case("bitcast", [y], x, to=source)


def add(family):
    check_rounding()
    for source in A:
        x = source_values(source)
        for to in A:
            if source in PART and to not in PART:
                continue
            family.case("cast", [x], cast(x, to), to=to)
            if to in E8 and source in F:
                family.case("cast", [x], cast(x, to, saturate=False), to=to, saturate=False)
    for shape in ((), (0, 3), (1, 2, 3)):
        x = tensor("f32", np.full(shape, 2.75))
        family.case("cast", [x], tensor("i8", np.full(shape, 2)), to="i8")
    bitcasts(family)
