# SPDX-License-Identifier: Apache-2.0
"""Products, convolutions, pools, norms, recurrent steps, quantised nodes."""
import numpy as np

from .graph import FEW_BITS, ONNX_TYPES
from .maker import Skip
from .shapes import passed, plus, times

MASS = 30.0  # how much larger sums of products are taken to be


def summed(x, y, dims, most=1e5):
    return (x.dtype, dims, {"mag": min(x.mag * y.mag * MASS, most), "wild": x.wild or y.wild} if x.is_float else {})


def matmul(m):
    x = m.pick(m.takes("MatMul"), rank=(1, 4), where=lambda v: v.mag <= 1e3)
    if x.rank == 1:
        m.avoid("product of nothing", x.dims[0])
    k, out = x.dims[-1], m.any_dim()
    draw = m.rng.random()
    if draw < 0.15:
        m.avoid("product of nothing", k)
        dims, result = [k], x.dims[:-1]
    elif draw < 0.7 or x.rank < 3:
        dims, result = [k, out], x.dims[:-1] + ([out] if x.rank > 1 else [out])
    else:
        batch = [m.lit(1) if m.chance(0.3) else dim for dim in x.dims[:-2]]
        batch = batch[m.int(0, len(batch)):] if m.chance(0.4) else batch
        dims, result = batch + [k, out], x.dims[:-1] + [out]
    y = m.of(x.dtype, m.small(dims))
    if m.chance(0.2) and len(dims) >= 2 and x.rank >= 2:  # the other way around
        shape = [d for d in y.dims[:-2]] + [m.any_dim(), y.dims[-2]]
        shape = shape[-2:] if m.chance(0.5) else shape
        left = m.of(x.dtype, m.small(shape))
        m.node("MatMul", [left, y], [summed(left, y, (y.dims[:-2] if len(shape) == 2 else y.dims[:-2]) + [shape[-2], y.dims[-1]])])
        return
    m.node("MatMul", [x, y], [summed(x, y, result)])


def gemm(m):
    x = m.pick(m.takes("Gemm"), rank=2, where=lambda v: v.mag <= 1e3)
    ta, tb = m.int(0, 1), m.int(0, 1)
    rows, k = x.dims[::-1] if ta else x.dims
    m.avoid("product of nothing", k)
    out = m.any_dim()
    y = m.of(x.dtype, m.small([out, k] if tb else [k, out]))
    c = None
    if m.opset < 11 or m.chance(0.7):
        c = m.of(x.dtype, m.one([[out], [rows, out], [m.lit(1), out], [rows, m.lit(1)], []] if m.opset >= 7 else [[rows, out]]))
    m.node("Gemm", [x, y, c], [summed(x, y, [rows, out])], transA=ta, transB=tb, alpha=m.one([None, 0.5, 2.0]),
           beta=m.one([None, 0.5, 2.0]) if c is not None else None)


def einsum(m):
    m.need(m.opset >= 12)
    b, i, j, k = m.any_dim(), m.any_dim(), m.any_dim(), m.any_dim()
    x = m.pick(m.takes("Einsum") - {"f16"}, rank=(2, 3), where=lambda v: v.mag <= 1e3)
    equations = {2: [("ij,jk->ik", lambda i, j: ([j, k], [i, k])), ("ij,kj->ki", lambda i, j: ([k, j], [k, i])), ("ij->ji", lambda i, j: (None, [j, i])),
                     ("ij,ij->i", lambda i, j: ([i, j], [i])), ("ij,j->i", lambda i, j: ([j], [i])), ("ij->", lambda i, j: (None, [])),
                     ("ij,jk", lambda i, j: ([j, k], [i, k])), ("...j,jk->...k", lambda i, j: ([j, k], [i, k]))],
                 3: [("bij,bjk->bik", lambda b, i, j: ([b, j, k], [b, i, k])), ("bij,bkj->bik", lambda b, i, j: ([b, k, j], [b, i, k])),
                     ("bij,jk->bik", lambda b, i, j: ([j, k], [b, i, k])), ("bij->bji", lambda b, i, j: (None, [b, j, i])),
                     ("bij,bik->bjk", lambda b, i, j: ([b, i, k], [b, j, k])), ("bij,bij->b", lambda b, i, j: ([b, i, j], [b]))]}
    text, fn = m.one(equations[x.rank])
    other, out = fn(*x.dims)
    for dim in x.dims + (other or []):
        m.avoid("crash", dim)
    ins = [x] if other is None else [x, m.of(x.dtype, m.small(other))]
    m.node("Einsum", ins, [summed(x, ins[-1], out) if other else (x.dtype, out)], equation=text)


def image(m, dtype, rank, low=3):
    """A value of rank 3 to 5: [batch, channels, ...]."""
    found = [v for v in m.pool() if v.dtype == dtype and v.rank == rank and v.mag <= 1e4 and not v.wild and
             all(min(dim) >= low for dim in v.dims[2:])]
    if found and m.chance(0.8):
        return m.one(found)
    m.need(m.local is None)
    dims = [m.any_dim(), m.one([m.lit(1), m.lit(2), m.lit(4), m.lit(6)])]
    for _ in range(rank - 2):
        dims.append(m.one([m.lit(5), m.lit(8), m.symbol(m.one("nmkb"))]))
    return m.input(dtype, m.small(dims))


def window(m, x, kernel, strides, dilations, pads, ceil=False, drop=True):
    m.need(not ceil or max(dilations) == 1)  # known.OPEN: windows of padding
    """Output sizes of a convolution or pool, checked."""
    n, out = len(kernel), []
    for i in range(n):
        wide = dilations[i] * (kernel[i] - 1) + 1
        sizes = []
        for at, size in enumerate(x.dims[2 + i]):
            room = size + pads[i] + pads[i + n] - wide
            if room < 0:
                m.avoid("window larger than its input", tuple(int(other != at) for other in range(len(m.sizes))))
                room = 0
            steps = -(-room // strides[i]) if ceil else room // strides[i]
            if ceil and drop and steps * strides[i] >= size + pads[i]:
                steps -= 1  # a window that begins in the padding on the right
            sizes.append(steps + 1)
        out.append(tuple(sizes))
    m.need(len(m.dead) <= len(m.sizes) - 2)
    return out


def geometry(m, rank, dilate=True):
    n = rank - 2
    kernel = [m.int(1, 3) for _ in range(n)]
    strides = [m.int(1, 2) for _ in range(n)]
    dilations = [m.int(1, 2) if dilate and m.chance(0.3) else 1 for _ in range(n)]
    pads = [m.int(0, 1) if kernel[i % n] > 1 else 0 for i in range(2 * n)]
    return kernel, strides, dilations, pads


def same(m, x, strides, kernel):
    """auto_pad SAME_*: sizes."""
    return [tuple(-(-size // s) for size in dim) for dim, s in zip(x.dims[2:], strides)]


def conv(m):
    rank = m.one([3, 4, 4, 4, 5])
    x = image(m, "f32", rank, 1)
    x = m.calm(x, 100)
    m.need(m.is_lit(x.dims[1]))
    channels = x.dims[1][0]
    group = m.one([1, 1, channels] + [2] * (channels % 2 == 0))
    kernel, strides, dilations, pads = geometry(m, rank)
    out_channels = group * m.int(1, 3)
    m.need(channels > 0)
    attrs = {"strides": strides, "dilations": dilations, "group": group}
    if m.chance(0.15):
        attrs |= {"auto_pad": m.one(["SAME_UPPER", "SAME_LOWER"]), "dilations": [1] * (rank - 2)}
        spatial = same(m, x, strides, kernel)
    else:
        attrs["pads"] = pads
        spatial = window(m, x, kernel, strides, dilations, pads)
    w = m.random_const("f32", (out_channels, channels // group, *kernel))
    if m.chance(0.5):
        attrs["kernel_shape"] = kernel
    bias = m.random_const("f32", (out_channels,)) if m.chance(0.5) else None
    m.node("Conv", [x, w, bias], [summed(x, w, [x.dims[0], m.lit(out_channels)] + spatial, 1e4)], **attrs)


def conv_transpose(m):
    rank = m.one([3, 4])
    x = m.calm(image(m, "f32", rank, 1), 100)
    m.need(m.is_lit(x.dims[1]))
    channels = x.dims[1][0]
    kernel, strides, dilations, pads = geometry(m, rank, False)
    group = m.one([1, 1, channels])
    n, out = rank - 2, m.int(1, 3)
    extra = [m.int(0, s - 1) for s in strides]
    spatial = []
    for i in range(n):
        sizes = tuple(strides[i] * (size - 1) + extra[i] + kernel[i] - pads[i] - pads[i + n] for size in x.dims[2 + i])
        m.at_least(sizes, 1)
        m.avoid("transpose a convolution of nothing", x.dims[2 + i])
        spatial.append(tuple(max(0, size) for size in sizes))
    w = m.random_const("f32", (channels, out, *kernel))
    bias = m.random_const("f32", (out * group,)) if m.chance(0.5) else None
    m.node("ConvTranspose", [x, w, bias], [summed(x, w, [x.dims[0], m.lit(out * group)] + spatial, 1e4)], strides=strides, pads=pads,
           group=group, output_padding=extra if any(extra) else None)


def pool(m):
    op = m.one(["MaxPool", "AveragePool", "MaxPool", "AveragePool", "LpPool"])
    rank = m.one([3, 4, 4, 5])
    x = image(m, m.one(sorted(m.takes(op) - {"f16"})), rank, 1)
    kernel, strides, dilations, pads = geometry(m, rank, op == "MaxPool" and m.opset >= 10 or op == "AveragePool" and m.opset >= 19)
    ceil = m.opset >= (10 if op != "LpPool" else 18) and m.chance(0.4)
    m.need(not x.wild)  # known.OPEN: largest with NaN
    for dim in x.dims[2:]:
        m.avoid("pool nothing", dim)
    attrs = {"kernel_shape": kernel, "strides": strides, "pads": pads}
    if max(dilations) > 1:
        attrs["dilations"] = dilations
    if ceil:
        attrs["ceil_mode"] = 1
    if op == "AveragePool" and m.chance(0.5):
        attrs["count_include_pad"] = 1
    if op == "LpPool" and m.chance(0.5):
        attrs["p"] = m.one([1, 2, 3])
    spatial = window(m, x, kernel, strides, dilations, pads, ceil)
    out = passed(x, x.dims[:2] + spatial)
    if op == "MaxPool" and x.is_float and m.chance(0.2) and m.opset >= 8:
        m.need(max(dilations) == 1)
        m.node(op, [x], [out, ("i64", out[1])], **attrs)
    else:
        m.node(op, [x], [out], **attrs)


def global_pool(m):
    op = m.one(["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
    m.need(m.takes(op))
    x = image(m, "f32", m.one([3, 4]), 1)
    m.need(not x.wild)  # known.OPEN: largest with NaN
    for dim in x.dims[2:]:
        m.avoid("pool nothing", dim)
    m.node(op, [x], [passed(x, x.dims[:2] + [m.lit(1)] * (x.rank - 2))])


def norm(m):
    op = m.one(["LayerNormalization", "LayerNormalization", "BatchNormalization", "InstanceNormalization", "GroupNormalization",
                "LpNormalization", "MeanVarianceNormalization", "LRN", "RMSNormalization"])
    fine = lambda v: v.mag <= 1e4 and not v.wild
    x = m.pick(m.takes(op) & {"f32", "f64"} if op != "LayerNormalization" else m.takes(op) & {"f32", "f16"},
               rank=(2, 4) if op not in ("InstanceNormalization", "GroupNormalization", "LRN", "MeanVarianceNormalization") else (3, 4), where=fine)
    options = {"mag": 32.0, "wild": any(0 in d for d in x.dims), "exact": False}
    result, eps = (x.dtype, x.dims, options), m.one([None, 1e-3, 1e-2])
    if op in ("LayerNormalization", "RMSNormalization"):
        axis = m.int(0, x.rank - 1)
        dims = m.one([x.dims[axis:]] * 6 + [x.dims[-1:], [(1,) * len(x.dims[0])]])  # it need only broadcast
        scale = m.of(x.dtype, dims)
        bias = m.of(x.dtype, dims) if op[0] == "L" and m.chance(0.7) else None
        m.node(op, [x, scale, bias], [result], axis=m.axes([axis], x.rank)[0], epsilon=eps)
    elif op == "BatchNormalization":
        c = x.dims[1]
        m.need(m.opset >= 9)
        parts = [m.of(x.dtype, [c]) for _ in range(3)]
        var = m.of(x.dtype, [c])
        m.need(not any(part.wild for part in parts + [var]))
        var = m.node("Add", [m.node("Abs", [var], [passed(var, var.dims)]), m.const(np.asarray(0.5), x.dtype)], [passed(var, var.dims)])
        m.node(op, [x, *parts, var], [(x.dtype, x.dims, {"mag": x.mag * 64, "wild": any(p.wild for p in parts) or var.wild})], epsilon=eps)
    elif op == "InstanceNormalization":
        m.need(x.dtype == "f32" and not x.wild)
        for dim in x.dims:
            m.avoid("crash", dim)
        scale, bias = m.of("f32", [x.dims[1]]), m.of("f32", [x.dims[1]])
        m.need(not scale.wild and not bias.wild)
        m.avoid("norm of one", tuple(np.prod([dim[i] for dim in x.dims[2:]]) for i in range(len(m.sizes))), 2)
        m.node(op, [x, scale, bias], [result], epsilon=eps)
    elif op == "GroupNormalization":
        m.need(m.opset >= 21 and m.is_lit(x.dims[1]) and x.dims[1][0] > 0)
        groups = m.one([1, x.dims[1][0]])
        m.node(op, [x, m.of(x.dtype, [x.dims[1]]), m.of(x.dtype, [x.dims[1]])], [result], num_groups=groups, epsilon=eps)
    elif op == "LpNormalization":
        axis = m.int(0, x.rank - 1)
        m.node(op, [x], [(x.dtype, x.dims, {"wild": True, "mag": 1.0})], axis=axis, p=m.int(1, 2))
    elif op == "LRN":
        m.need(x.rank == 4)
        m.node(op, [x], [passed(x, x.dims)], size=m.one([1, 3, 5]), alpha=0.01)
    else:
        axes = [0, 2, 3] if x.rank == 4 else [0, 2]
        m.avoid("norm of one", tuple(np.prod([x.dims[axis][i] for axis in axes]) for i in range(len(m.sizes))), 2)
        m.node(op, [x], [result], **({} if x.rank == 4 else {"axes": axes}))


def resize(m):
    m.need(m.opset >= 11)
    x = image(m, "f32", m.one([3, 4, 4]), 1)
    m.need(not x.wild)  # known.OPEN: resize infinities
    mode = m.one(["nearest", "linear", "linear", "cubic"])
    m.need(mode != "cubic" or x.rank == 4)
    for dim in x.dims[2:]:
        m.at_least(dim, 1)
    where_ = m.one(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"] if mode != "nearest" else ["asymmetric", "half_pixel", "align_corners"])
    attrs = {"mode": mode, "coordinate_transformation_mode": where_}
    if mode == "nearest":
        attrs["nearest_mode"] = m.one(["floor", "round_prefer_floor", "ceil"])
    none = m.const(np.zeros(0, np.float32)) if m.opset < 13 else None
    if m.chance(0.5):
        factor = [np.float32(m.one([1, 2, 2, 0.5, 0.7, 1.3, 0.7071068])) for _ in x.dims[2:]]
        spatial = [tuple(int(np.float32(size) * f) for size in dim) for dim, f in zip(x.dims[2:], factor)]
        for dim in spatial:
            m.at_least(dim, 1)
        scales = m.const(np.array([1, 1] + factor, np.float32))
        m.node("Resize", [x, none, scales], [passed(x, x.dims[:2] + spatial)], **attrs)
    else:
        spatial = [m.one([m.lit(2), m.lit(5), m.any_dim()]) for _ in x.dims[2:]]
        for dim in spatial:
            m.at_least(dim, 1)
        m.small(x.dims[:2] + spatial)
        ends = m.list_of(x.dims[:2] + spatial)
        if m.chance(0.3) and m.local is None and where_ != "align_corners":  # a scale: the wanted size over the size
            real = [m.node("Cast", [part], [("f32", [m.lit(x.rank)])], seen=False, to=1) for part in (ends, m.shape_of(x))]
            scales = m.node("Div", real, [("f32", [m.lit(x.rank)])], seen=False)
            m.node("Resize", [x, none, scales], [passed(x, x.dims[:2] + spatial)], **attrs)
            return
        m.node("Resize", [x, none, m.const(np.zeros(0, np.float32)) if m.opset < 13 else None, ends], [passed(x, x.dims[:2] + spatial)], **attrs)


def recurrent(m):
    op, gates = m.one([("LSTM", 4), ("GRU", 3), ("RNN", 1)])
    m.need(m.local is None)
    time, batch, width, hidden = m.any_dim(), m.any_dim(), m.lit(m.int(1, 4)), m.int(1, 4)
    m.avoid("crash", time)
    m.avoid("crash", batch)
    direction = m.one(["forward", "reverse", "bidirectional"])
    d = 2 if direction == "bidirectional" else 1
    x = m.calm(m.of("f32", m.small([time, batch, width])), 10)
    w, r = m.random_const("f32", (d, gates * hidden, width[0])), m.random_const("f32", (d, gates * hidden, hidden))
    b = m.random_const("f32", (d, 2 * gates * hidden)) if m.chance(0.6) else None
    lens = None
    if m.chance(0.3):
        lens = m.input("i32", [batch], "l", [m.rng.integers(1, max(2, t + 1), n) for t, n in zip(time, batch)])
    h = m.of("f32", [m.lit(d), batch, m.lit(hidden)]) if m.chance(0.4) else None
    c = m.of("f32", [m.lit(d), batch, m.lit(hidden)]) if m.chance(0.4) and op == "LSTM" else None
    attrs = {"hidden_size": hidden, "direction": direction}
    if op == "GRU":
        attrs["linear_before_reset"] = m.int(0, 1)
    y = ("f32", [time, m.lit(d), batch, m.lit(hidden)], {"mag": 1.0})
    last = ("f32", [m.lit(d), batch, m.lit(hidden)], {"mag": 1.0})
    m.need(not (x.wild or (h is not None and h.wild) or (c is not None and c.wild)))
    outs = [y, last] + ([("f32", last[1], {"mag": 10.0})] if op == "LSTM" else [])
    outs = outs[:m.int(1, len(outs))]
    if m.chance(0.2) and len(outs) > 1:
        outs[0] = None
    m.node(op, [x, w, r, b, lens, h, c], outs, **attrs)


def quantise(m):
    m.need(m.opset >= 10)
    x = m.pick({"f32"}, rank=(0, 4), where=lambda v: not v.wild)
    draw = m.rng.random()
    if draw < 0.3:
        m.need(m.opset >= 11)
        for dim in x.dims:
            m.avoid("arg of nothing", dim)
        y, scale, zero = m.node("DynamicQuantizeLinear", [x], [("u8", x.dims), ("f32", [], {"mag": 10.0}), ("u8", [])])
        m.node("DequantizeLinear", [y, scale, zero], [("f32", x.dims, {"mag": x.mag})])
        return
    dtype = m.one(["u8", "i8"])
    few = m.opset >= 21 and m.chance(0.4)
    if few:
        dtype = m.one(FEW_BITS)
    per_axis = m.opset >= 13 and x.rank >= 2 and m.is_lit(x.dims[1]) and m.chance(0.4)
    shape = (x.dims[1][0],) if per_axis else ()
    scale = m.const(m.rng.choice([0.25, 0.5, 0.1, 1.0], shape), "f32")
    zero = m.const(m.rng.integers(0, 8 if few else 10, shape), dtype) if m.chance(0.7) or dtype == "i8" else None
    attrs = {"axis": 1} if per_axis else {}
    if few and zero is not None and m.chance(0.3):
        turned = m.node("Reshape", [zero, m.const(np.array([1, -1]))], [(dtype, [m.lit(1), m.lit(zero.fixed.size)])], seen=False)
        zero = m.node("Reshape", [turned, m.const(np.array(shape, np.int64))], [(dtype, [m.lit(n) for n in shape])], seen=False)
    to = {"output_dtype": ONNX_TYPES[dtype]} if few and zero is None else {}
    y = m.node("QuantizeLinear", [x, scale, zero], [(dtype, x.dims)], seen=not few, **attrs, **to)
    if few or m.chance(0.8):
        m.node("DequantizeLinear", [y, scale, zero], [("f32", x.dims, {"mag": 256.0})], **attrs)


def integer_product(m):
    m.need(m.opset >= 10)
    a, b = m.pick({"u8", "i8"}, rank=(2, 3)), None
    out = m.any_dim()
    dtype = m.one(["u8", "i8"])
    b = m.of(dtype, m.small([a.dims[-1], out]))
    za = m.const(np.array(m.int(0, 9)), a.dtype) if m.chance(0.6) else None
    zb = m.const(np.array(m.int(0, 9)), b.dtype) if za is not None and m.chance(0.6) else None
    m.node("MatMulInteger", [a, b, za, zb], [("i32", a.dims[:-1] + [out])])


def dropout(m):
    x = m.pick({"f32", "f64"})
    if m.opset >= 12 and m.chance(0.3):
        m.node("Dropout", [x], [passed(x, x.dims), ("bool", x.dims)])
    else:
        m.node("Dropout", [x], [passed(x, x.dims)])


def attention(m):
    """As exporters spell it."""
    b, h, q, k = m.any_dim(), m.lit(m.int(1, 3)), m.any_dim(), m.any_dim()
    width = m.lit(m.one([2, 4, 8]))
    m.need(m.local is None)
    qs, ks, vs = (m.calm(m.of("f32", m.small([b, h, n, width])), 10) for n in (q, k, k))
    m.need(not qs.wild and not ks.wild and not vs.wild)  # known.OPEN: masked NaN
    kt = m.node("Transpose", [ks], [passed(ks, [b, h, width, k])], perm=[0, 1, 3, 2])
    s = m.node("MatMul", [qs, kt], [("f32", m.small([b, h, q, k]), {"mag": 100.0})])
    s = m.node(m.one(["Div", "Mul"]), [s, m.const(np.float32(m.one([1.0, 0.5, 2.0, 1.414])))], [passed(s, s.dims)])
    if m.chance(0.6):
        bias = m.broadcast_of(s)
        s = m.node("Add", [s, bias], [("f32", m.broadcast(s, bias), {"mag": 300.0, "wild": bias.wild})])
    elif m.chance(0.5):
        mask = m.broadcast_of(s, "bool")
        m.need("f32" in m.takes("Where", 1) | {"f32"} and m.opset >= 9)
        s = m.node("Where", [mask, s, m.const(np.float32(m.one([-1e9, -np.inf])))], [("f32", m.broadcast(s, mask), {"mag": 100.0})])
    m.need(s.dims == [b, h, q, k])
    p = m.node("Softmax", [s], [("f32", s.dims, {"mag": 1.0, "wild": True})], axis=-1 if m.opset >= 11 else 3)
    m.node("MatMul", [p, vs], [("f32", [b, h, q, width], {"mag": vs.mag, "wild": True})])


FAMILY = [(7, matmul), (3, gemm), (3, einsum), (4, conv), (2, conv_transpose), (4, pool), (1, global_pool), (6, norm), (3, resize), (3, recurrent),
          (3, quantise), (2, integer_product), (1, dropout), (2, attention)]
