# SPDX-License-Identifier: Apache-2.0
"""What makers of nodes work with: the values that there are, with their dims and, of small integers, their contents, at every
binding of the sizes at once. A dim is a tuple: its size at each binding.
"""
import dataclasses
import math

import numpy as np

from .graph import DTYPES, FLOATS, Graph, Node
from .kernels import dtypes
from .known import OPEN

SYMBOLS = "nmkb"
MOST = 4000  # elements of a value, at any binding
INTS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")


class Skip(Exception):
    """This node cannot be made from what there is."""


@dataclasses.dataclass(eq=False)
class Value:
    name: str
    dtype: str
    dims: list  # of tuples
    content: list = None  # of arrays, where they are known
    wild: bool = False  # may hold NaN or infinities
    mag: float = 8.0  # about the largest size of its elements
    exact: bool = True  # small integers or dyadic fractions: rounding does not move it
    fixed: np.ndarray = None  # an initializer

    @property
    def rank(self):
        return len(self.dims)

    @property
    def is_float(self):
        return self.dtype in FLOATS


class Maker:
    def __init__(self, rng, opset, bindings):
        self.rng, self.opset, self.count = rng, opset, 0
        self.sizes = bindings  # list of {symbol: size}
        self.graph = Graph(opset)
        self.values, self.feeds = [], [{} for _ in bindings]
        self.dead = set()  # bindings at which ONNX Runtime is thought to fail
        self.left_out = set()  # bindings that are not run at all
        self.local = None  # nodes of the body that is being made
        self.fresh = {}  # derived dims that inputs have: their names
        self.hidden = 0  # values before this one are not seen: of bodies

    # ---- chance ----
    def chance(self, p):
        return self.rng.random() < p

    def one(self, items):
        items = list(items)
        if not items:
            raise Skip
        return items[self.rng.integers(len(items))]

    def int(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def need(self, condition):
        if not condition:
            raise Skip

    def name(self, prefix="v"):
        self.count += 1
        return f"{prefix}{self.count}"

    # ---- dims ----
    def lit(self, size):
        return (size,) * len(self.sizes)

    def symbol(self, name):
        return tuple(sizes[name] for sizes in self.sizes)

    def any_dim(self):
        return self.symbol(self.one(SYMBOLS)) if self.chance(0.65) else self.lit(self.one([1, 2, 3, 4, 6, 8]))

    def is_lit(self, dim):
        return len(set(dim)) == 1

    def alive(self, dim):
        return [size for i, size in enumerate(dim) if i not in self.dead]

    def at_least(self, dim, low):
        """Gives up, or now and then the bindings where it is less."""
        bad = {i for i, size in enumerate(dim) if size < low and i not in self.dead}
        if not bad:
            return
        self.need(len(self.sizes) - len(self.dead) - len(bad) >= 2 and self.chance(0.5))
        self.dead |= bad

    def avoid(self, why, dim, low=1):
        """Where this size is below `low` the peers differ, for a reason of known.OPEN: those bindings are not run."""
        assert why in OPEN
        bad = {i for i, size in enumerate(dim) if size < low and i not in self.left_out}
        self.need(len(self.sizes) - len(self.dead | self.left_out | bad) >= 2 and (not bad or self.chance(0.5)))
        self.left_out |= bad
        self.dead |= bad

    def small(self, dims):
        for i in range(len(self.sizes)):
            self.need(math.prod(dim[i] for dim in dims) <= MOST)
            self.need(all(dim[i] >= 0 for dim in dims))
        return list(dims)

    def spelled(self, dim):
        """As the dim of an input: a number, a symbol, or a symbol of its own."""
        if self.is_lit(dim) and (len(self.sizes) > 1):
            return int(dim[0])
        for symbol in SYMBOLS:
            if self.symbol(symbol) == dim:
                return symbol
        return self.fresh.setdefault(dim, f"d{len(self.fresh)}")

    # ---- leaves ----
    def data(self, dtype, shape, style="normal"):
        rng = self.rng
        if dtype == "bool":
            return np.asarray(rng.random(shape) < 0.5)
        if dtype in INTS:
            low = 0 if dtype[0] == "u" else -9
            wide = self.chance(0.15) and style != "small"
            info = np.iinfo(DTYPES[dtype])
            return rng.integers(max(info.min, -100), min(info.max, 200), shape).astype(DTYPES[dtype]) if wide else \
                rng.integers(low, 10, shape).astype(DTYPES[dtype])
        if style == "ints":
            return np.asarray(rng.integers(-4, 5, shape)).astype(DTYPES[dtype])
        array = rng.normal(0, self.one([0.5, 1, 3]), shape)
        if style == "wild" and array.size:
            flat = array.reshape(-1)
            for special in (np.nan, np.inf, -np.inf, -0.0, 0.0):
                if self.chance(0.5):
                    flat[rng.integers(flat.size)] = special
        return np.asarray(array).astype(DTYPES[dtype])

    def style(self, dtype):
        if dtype not in FLOATS:
            return "normal"
        return "wild" if self.chance(0.04) else "ints" if self.chance(0.2) else "normal"

    def input(self, dtype, dims, prefix="x", arrays=None):
        """A graph input."""
        name, style = self.name(prefix), self.style(dtype)
        if self.local is not None:
            style = "normal"
        self.graph.inputs[name] = (dtype, [self.spelled(dim) for dim in dims])
        for i, feed in enumerate(self.feeds):
            shape = tuple(dim[i] for dim in dims)
            feed[name] = self.data(dtype, shape, style) if arrays is None else np.asarray(arrays[i], DTYPES[dtype]).reshape(shape)
        value = Value(name, dtype, list(dims), wild=style == "wild", exact=style == "ints" or dtype not in FLOATS,
                      mag=256 if dtype in INTS else 16)
        if self.local is None:
            self.values.append(value)
        return value

    def const(self, array, dtype=None):
        """An initializer, or a Constant node."""
        array = np.asarray(array) if dtype is None else np.asarray(array, DTYPES[dtype])
        name = self.name("c")
        if self.local is not None:
            self.local.append(Node("Constant", [], [name], {"value": array}))
        elif self.chance(0.2):
            self.graph.nodes.append(Node("Constant", [], [name], {"value": array}))
        else:
            self.graph.inits[name] = array
        code = [key for key, value in DTYPES.items() if value == array.dtype][0]
        mag = float(np.abs(array.astype(np.float64)).max(initial=0)) if array.dtype != bool else 1
        return Value(name, code, [self.lit(n) for n in array.shape], fixed=array, mag=mag,
                     content=[array] * len(self.sizes) if array.dtype == np.int64 and array.size <= 16 else None)

    def random_const(self, dtype, shape):
        return self.const(self.data(dtype, shape, "ints" if self.chance(0.3) else "normal"), dtype)

    # ---- nodes ----
    def node(self, op, ins, outs, domain="", seen=True, **attrs):
        """outs: of (dtype, dims) or (dtype, dims, options); None is left out. One value, or a list of them."""
        made = []
        for out in outs:
            if out is None:
                made.append(None)
                continue
            dtype, dims, *options = out
            if self.local is None:
                self.small(dims)
            value = Value(self.name(), dtype, [tuple(dim) for dim in dims], **(options[0] if options else {}))
            if not options or "wild" not in options[0]:
                value.wild = dtype in FLOATS and any(v is not None and v.wild for v in ins)
            if dtype in FLOATS and (not options or "mag" not in options[0]):
                value.mag = max([v.mag for v in ins if v is not None and v.is_float], default=16.0)
            made.append(value)
        node = Node(op, [v.name if v is not None else "" for v in ins], [v.name if v is not None else "" for v in made],
                    {key: value for key, value in attrs.items() if value is not None}, domain)
        while node.ins and not node.ins[-1]:
            node.ins.pop()
        (self.graph.nodes if self.local is None else self.local).append(node)
        if seen:
            self.values += [v for v in made if v is not None]
        return made[0] if len(made) == 1 else made

    # ---- values ----
    def pool(self):
        return self.values[self.hidden:]

    def pick(self, types=None, rank=None, where=None):
        """A value, late ones more often; now and then a new input."""
        low, high = rank if isinstance(rank, tuple) else (rank or 0, 6 if rank is None else rank)
        found = [v for v in self.pool() if (types is None or v.dtype in types) and low <= v.rank <= high and (where is None or where(v))]
        fresh = self.hidden == 0 and self.local is None
        if fresh and (not found or self.chance(0.1)):
            value = self.input(self.one(sorted(types)) if types else "f32", self.some_dims(self.int(low, min(high, max(low, 4)))))
            if where is None or where(value):
                return value
        self.need(found)
        if self.chance(0.6):
            found = found[-6:]
        return self.one(found)

    def some_dims(self, rank):
        for _ in range(20):
            dims = [self.any_dim() for _ in range(rank)]
            if all(math.prod(dim[i] for dim in dims) <= MOST for i in range(len(self.sizes))):
                return dims
        return [self.lit(2)] * rank

    def takes(self, op, which=0):
        """The dtypes of an op here, f32 most often."""
        types = dtypes(op, self.opset, which)
        self.need(types)
        types = set(types) - {"bf16"}
        if "f32" in types and self.chance(0.6):
            return {"f32"}
        if self.chance(0.7):
            types = types - {"f16", "u16", "u32", "u64", "i16"} or types
        return types

    def like(self, x, dtype=None):
        """Another value of these dims."""
        return self.of(dtype or x.dtype, x.dims)

    def of(self, dtype, dims):
        """A value of these dims: one that is there, or an input, or a number that is expanded."""
        found = [v for v in self.pool() if v.dtype == dtype and v.dims == dims]
        if found and self.chance(0.8):
            return self.one(found)
        if all(self.is_lit(dim) for dim in dims) and self.chance(0.5):
            return self.random_const(dtype, tuple(dim[0] for dim in dims))
        if self.local is not None:
            self.need(found)
            return self.one(found)
        return self.input(dtype, dims)

    def calm(self, x, most=1e3):
        """x, or its tanh where it may be large."""
        if not x.is_float or x.mag <= most:
            return x
        return self.node("Tanh", [x], [(x.dtype, x.dims, {"mag": 1.0, "wild": x.wild, "exact": False})])

    def broadcast_of(self, x, dtype=None):
        """A second operand that broadcasts to x's dims."""
        dtype = dtype or x.dtype
        draw = self.rng.random()
        if draw < 0.3:
            return self.like(x, dtype)
        if draw < 0.5:
            return self.random_const(dtype, self.one([(), (1,), (1,) * x.rank]))
        dims = list(x.dims[self.int(0, x.rank):]) if self.chance(0.6) else list(x.dims)
        dims = [self.lit(1) if self.chance(0.3) else dim for dim in dims]
        return self.of(dtype, dims)

    def broadcast(self, *values):
        """The dims of these together, or nothing if they do not fit."""
        rank = max(v.rank for v in values)
        dims = []
        for axis in range(rank):
            here = [v.dims[axis - rank + v.rank] for v in values if axis - rank + v.rank >= 0]
            out = []
            for i in range(len(self.sizes)):
                sizes = {dim[i] for dim in here} - {1}
                if len(sizes) > 1:
                    self.need(i in self.dead)
                out.append(sizes.pop() if sizes else 1)
            dims.append(tuple(out))
        return dims

    # ---- sizes as exporters write them ----
    def shape_of(self, v, start=None, end=None):
        attrs = {}
        if self.opset >= 15 and start is not None:
            attrs = {"start": start} if end is None else {"start": start, "end": end}
        dims = v.dims[attrs.get("start"):attrs.get("end")] if attrs else v.dims
        content = [np.array([dim[i] for dim in dims], np.int64) for i in range(len(self.sizes))]
        return self.node("Shape", [v], [("i64", [self.lit(len(dims))], {"content": content})], **attrs)

    def index(self, shape, at, as_list=False):
        """Element `at` of a list of sizes."""
        content = [array[at] for array in shape.content]
        at = at - len(shape.content[0]) if self.chance(0.3) else at
        if as_list:
            content = [np.array([number]) for number in content]
            return self.node("Gather", [shape, self.const(np.array([at], np.int64))], [("i64", [self.lit(1)], {"content": content})], axis=0)
        return self.node("Gather", [shape, self.const(np.array(at, np.int64))], [("i64", [], {"content": content})], axis=0)

    def arithmetic(self, op, a, b):
        fn = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.floor_divide, "Max": np.maximum, "Min": np.minimum}[op]
        content = [np.asarray(fn(x, y), np.int64) for x, y in zip(a.content, b.content)]
        dims = [self.lit(n) for n in content[0].shape]
        return self.node(op, [a, b], [("i64", dims, {"content": content})])

    def number(self, dim):
        """A scalar that is this size at every binding."""
        known = [v for v in self.pool() if v.content is not None and v.rank == 0 and v.dtype == "i64" and
                 tuple(int(c) for c in v.content) == dim]
        if known and self.chance(0.5):
            return self.one(known)
        if self.is_lit(dim) and self.chance(0.7):
            return self.const(np.array(dim[0], np.int64))
        if self.local is None and self.chance(0.06):
            return self.run_input(np.array(dim, np.int64))
        sources = [(v, axis) for v in self.pool() for axis, d in enumerate(v.dims) if d == dim]
        if sources:
            v, axis = self.one(sources)
            made = self.index(self.shape_of(v), axis)
        else:
            self.need(self.is_lit(dim))
            made = self.const(np.array(dim[0], np.int64))
        if self.chance(0.2):  # the same by a detour
            other = self.const(np.array(self.int(1, 5), np.int64))
            there, back = self.one([("Add", "Sub"), ("Sub", "Add"), ("Mul", "Div")])
            made = self.arithmetic(back, self.arithmetic(there, made, other), other)
        if self.chance(0.06):
            wide = self.node("Cast", [made], [("f32", made.dims, {"mag": 100.0})], to=1, seen=False)
            made = self.node("Cast", [wide], [("i64", made.dims, {"content": made.content})], to=7)
        return made

    def run_input(self, content):
        """Numbers that only the run knows. content: [bindings, ...]."""
        content = np.asarray(content, np.int64)
        value = self.input("i64", [self.lit(n) for n in content.shape[1:]], "s", list(content))
        value.content = list(content)
        return value

    def listed(self, scalar):
        if self.opset >= 13:
            content = [np.asarray(c).reshape(1) for c in scalar.content]
            return self.node("Unsqueeze", [scalar, self.const(np.array([0], np.int64))], [("i64", [self.lit(1)], {"content": content})],
                             seen=False)
        content = [np.asarray(c).reshape(1) for c in scalar.content]
        return self.node("Unsqueeze", [scalar], [("i64", [self.lit(1)], {"content": content})], axes=[0], seen=False)

    def list_of(self, dims, wildcard=False):
        """A list of these sizes. wildcard: one of them may be -1, for Reshape."""
        dims = list(dims)
        hole = self.int(0, len(dims) - 1) if wildcard and dims and self.chance(0.4) else -1
        if hole >= 0:
            for i in range(len(self.sizes)):
                rest = math.prod(dim[i] for at, dim in enumerate(dims) if at != hole)
                if rest == 0:
                    hole = -1
                    break
        whole = [v for v in self.pool() if v.rank == len(dims) and v.dims == dims]
        if hole < 0 and whole and self.chance(0.3):
            return self.shape_of(self.one(whole))
        if all(self.is_lit(dim) or at == hole for at, dim in enumerate(dims)) and self.chance(0.7):
            return self.const(np.array([-1 if at == hole else dim[0] for at, dim in enumerate(dims)], np.int64))
        if self.local is None and dims and self.chance(0.06):
            return self.run_input(np.array([[-1 if at == hole else dim[i] for at, dim in enumerate(dims)] for i in range(len(self.sizes))]))
        parts = [self.const(np.array([-1], np.int64)) if at == hole else
                 self.const(np.array([dim[0]], np.int64)) if self.is_lit(dim) and self.chance(0.7) else self.listed(self.number(dim))
                 for at, dim in enumerate(dims)]
        if not parts:
            return self.const(np.zeros(0, np.int64))
        content = [np.array([part.content[i][0] for part in parts], np.int64) for i in range(len(self.sizes))]
        return self.node("Concat", parts, [("i64", [self.lit(len(parts))], {"content": content})], axis=0)

    def axes(self, axes, rank):
        return [axis - rank if self.chance(0.4) else axis for axis in axes]
