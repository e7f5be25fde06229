# SPDX-License-Identifier: Apache-2.0
"""Dtypes, tensors and the text that goldens are stored as. Nothing here knows any op.

A value is held as float64, an exact Python-sized integer, bool or complex128, whatever its dtype; `tensor` rounds what
it is given to the dtype, so that every input is representable. A file is a run of cases:

    case slice starts=[1] ends=[4]
    in f32 [6] : 0 1 2 nan inf -0
    out f32 [3] : 1 2 nan

`option bounds=clamp` may follow the case line (a compile option), `error RLX_E_RANGE` stands in place of the outputs.
Lines `program graph () {` .. are a graph in its text form that the inputs go through, where one op cannot say it all,
and `param w f32 [3] : 1 2 3` sets a param of it.
An input that is left out is `in absent`. Complex elements are two numbers, block dtypes are their bytes, bools 0 or 1.
Float outputs are the oracle's: float64 results of the rounded inputs, not rounded to the dtype of the output. f64 is
written with 17 digits, the narrower floats as the shortest text that reads back as their f32 where they are
representable, and with 12 digits where they are not.
"""

import dataclasses
import math

import numpy as np

# Significand bits with the leading one, least normal exponent, largest finite value.
FLOATS = {
    "f16": (11, -14, 65504.0),
    "bf16": (8, -126, math.ldexp(255, 120)),
    "f32": (24, -126, math.ldexp(2**24 - 1, 104)),
    "f64": (53, -1022, np.finfo(np.float64).max),
    "f8e4m3": (4, -6, 448.0),
    "f8e5m2": (3, -14, 57344.0),
}
F = ["f16", "bf16", "f32", "f64"]
S = ["i8", "i16", "i32", "i64"]
U = ["u8", "u16", "u32", "u64"]
I = S + U
N = F + I
B = ["bool"]
Z = ["c64", "c128"]
E8 = ["f8e4m3", "f8e5m2"]
X = ["i32", "i64"]
D = N + B + Z
A = D + E8
PART = {"c64": "f32", "c128": "f64"}  # the float of a complex number's parts
WIDE = {"f16": "f32", "bf16": "f32", "f32": "f32", "f64": "f64"}  # of the statistics of a norm


def int_range(dtype):
    bits = int(dtype[1:])
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if dtype[0] == "i" else (0, 2**bits - 1)


def numpy_int(dtype):
    return np.dtype(dtype.replace("i", "int").replace("u", "uint"))


def round_float(x, dtype):
    """Round half to even at the spacing of the dtype; what rounds above its largest value is infinite."""
    x = np.asarray(x, np.float64)
    if dtype == "f64":
        return x
    digits, least, largest = FLOATS[dtype]
    exponent = np.maximum(np.frexp(x)[1] - 1, least)
    step = np.ldexp(1.0, exponent - digits + 1)
    with np.errstate(invalid="ignore", over="ignore"):
        y = np.where(np.isfinite(x), np.rint(x / step) * step, x)
    return np.where(np.abs(y) > largest, np.copysign(np.inf, y), y)


def wrap(value, dtype):
    """The low bits of a Python integer, read as the dtype."""
    low, high = int_range(dtype)
    return (int(value) - low) % (high - low + 1) + low


@dataclasses.dataclass
class Tensor:
    dtype: str
    a: np.ndarray
    dims: tuple | None = None  # where the array is not the logical shape: block dtypes

    @property
    def shape(self):
        return self.a.shape if self.dims is None else self.dims


def complex_of(re, im):
    """re + 1j * im would make NaN of an infinite part."""
    y = np.empty(np.shape(re), np.complex128)
    y.real, y.imag = re, im
    return y


def tensor(dtype, values, shape=None):
    # Objects stay exact integers, which NumPy would turn into float64 where some are above 2^63.
    a = np.asarray(values, None if dtype in FLOATS or dtype in PART else object)
    if dtype in FLOATS:
        a = round_float(a, dtype)
    elif dtype in PART:
        a = a.astype(np.complex128)
        a = complex_of(round_float(a.real, PART[dtype]), round_float(a.imag, PART[dtype]))
    elif dtype == "bool":
        a = a.astype(bool)
    else:
        a = np.vectorize(lambda v: wrap(v, dtype), otypes=[object])(a).astype(numpy_int(dtype))
    return Tensor(dtype, a if shape is None else a.reshape(shape))


def number(x, digits):
    """0 digits: the shortest text that reads back as the same f32."""
    x = float(x)
    if math.isnan(x):
        return "nan"
    text = str(np.float32(x)) if digits == 0 else repr(x) if digits == 17 else f"{x:.{digits}g}"
    return text.removesuffix(".0")


def tensor_text(t):
    if t.dtype in FLOATS:
        exact = np.array_equal(round_float(t.a, t.dtype), t.a, equal_nan=True)
        words = [number(v, 17 if t.dtype == "f64" else 0 if exact else 12) for v in t.a.ravel()]
    elif t.dtype in PART:
        parts = np.stack([t.a.real, t.a.imag], -1)
        words = tensor_text(Tensor(PART[t.dtype], parts)).split(" :", 1)[1].split()
    else:
        words = [str(int(v)) for v in t.a.ravel()]
    return f"{t.dtype} [{','.join(map(str, t.shape))}] : {' '.join(words)}".rstrip()


def attribute_text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(attribute_text, value)) + "]"
    return number(value, 17) if isinstance(value, float) else str(value)


class Family:
    """The cases of one file, in the order in which they were added."""

    def __init__(self):
        self.lines = []
        self.count = 0

    def case(self, op, inputs, outputs, option=None, program=(), params=None, **attributes):
        """outputs: tensors, or the name of the error that the run must end with. program: a graph around the op."""
        words = [f"{key}={attribute_text(value)}" for key, value in attributes.items() if value is not None]
        self.lines.append(" ".join(["case", op, *words]))
        if option:
            self.lines.append(f"option {option}")
        self.lines += [f"program {line}" for line in program]
        self.lines += [f"param {name} {tensor_text(t)}" for name, t in (params or {}).items()]
        self.lines += ["in absent" if t is None else "in " + tensor_text(t) for t in inputs]
        if isinstance(outputs, str):
            self.lines.append(f"error {outputs}")
        else:
            outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
            self.lines += ["out " + tensor_text(t) for t in outputs]
        self.lines.append("")
        self.count += 1


def oracle(dtype, a):
    """A float64 result of an op whose output is `dtype`: overflow is that of the dtype, nothing else is rounded."""
    if dtype in PART:
        a = np.asarray(a, np.complex128)
        return Tensor(dtype, complex_of(oracle(PART[dtype], a.real).a, oracle(PART[dtype], a.imag).a))
    a = np.asarray(a, np.float64)
    return Tensor(dtype, np.where(np.isinf(round_float(a, dtype)), np.copysign(np.inf, a), a))


def numbers(dtype, shape, seed=0, scale=2.0):
    """Reproducible ordinary values of any dtype."""
    rng = np.random.default_rng([seed, *shape])
    if dtype == "bool":
        return tensor(dtype, rng.integers(0, 2, shape))
    if dtype in FLOATS:
        return tensor(dtype, np.round(rng.normal(0, scale, shape), 3))
    if dtype in PART:
        return tensor(dtype, np.round(rng.normal(0, scale, shape) + 1j * rng.normal(0, scale, shape), 3))
    return tensor(dtype, rng.integers(0 if dtype[0] == "u" else -9, 10, shape))


def specials(dtype):
    """The values at which implementations go wrong."""
    if dtype in FLOATS:
        values = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3.75, -3.75, 100.25, -100.25]
        values += [0.001, -0.001] if dtype not in E8 else []
        values = [v for v in values if dtype != "f8e4m3" or not np.isinf(v)]  # it has no infinity
        return tensor(dtype, [*values, FLOATS[dtype][2]])
    if dtype in PART:
        return tensor(dtype, [0, 1, -1, 1j, -1j, 3 + 4j, -3 + 4j, 0.5 - 0.25j, -2 - 3j])
    if dtype == "bool":
        return tensor(dtype, [0, 1])
    low, high = int_range(dtype)
    return tensor(dtype, sorted({low, low + 1, high, high - 1, 0, 1, 2, 3, 7} | ({-1, -2, -7} if low else {100})))


def pairs(dtype):
    """A few special values, every one with every other one, as two flat operands."""
    if dtype in FLOATS:
        values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1, -1, 0.5, -2.5, 3.0, 100.25])
    elif dtype in PART or dtype == "bool":
        values = specials(dtype).a
    else:
        low, high = int_range(dtype)
        values = np.array(sorted({low, high, 0, 1, 2, 7} | ({-1, -7} if low else {high - 1, 100})), object)
    a, b = np.meshgrid(values, values, indexing="ij")
    return tensor(dtype, a.ravel()), tensor(dtype, b.ravel())
