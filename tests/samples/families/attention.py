# SPDX-License-Identifier: Apache-2.0
"""attention, written query by query from the steps of the op set, the scores that rules put together, and rope."""

import numpy as np

from golden import F, Tensor, numbers, oracle, tensor

LSE = {"f16": "f32", "bf16": "f32", "f32": "f32", "f64": "f64"}


def one_query(q, k, v, position, keys, scale, softcap, slope, bias, mask, sink, rule):
    """y and lse of one row; keys: how many of the rows of k count."""
    j = np.arange(len(k))
    s = scale * (k @ q)
    s = softcap * np.tanh(s / softcap) if softcap else s
    s = s - slope * np.abs(position - j) + bias
    allowed = (j < keys) & mask
    if rule["causal"]:
        allowed &= j <= position
    if rule["window_left"] >= 0:
        allowed &= j >= position - rule["window_left"]
    if rule["window_right"] >= 0:
        allowed &= j <= position + rule["window_right"]
    s = np.where(allowed, s, -np.inf)
    most = max([-np.inf, *s, *([] if sink is None else [sink])])
    most = 0.0 if most == -np.inf else most
    e = np.exp(s - most)
    total = e.sum() + (0.0 if sink is None else np.exp(sink - most))
    if not allowed.any() and sink is None:
        empty = {
            "zero": np.zeros(v.shape[1]),
            "mean": v[:keys].mean(0) if keys else np.zeros(v.shape[1]),
            "nan": np.full(v.shape[1], np.nan),
        }
        return empty[rule["empty_row"]], -np.inf
    return (e[:, None] * v).sum(0) / (total if total else 1.0), most + np.log(total)


RULE = dict(causal=False, align="lower_right", window_left=-1, window_right=-1, empty_row="zero")


def attention(q, k, v, mask=None, bias=None, kv_len=None, alibi=None, sinks=None, scale=None, softcap=0, **rule):
    """Everything in bhsd form."""
    rule = RULE | rule
    (batch, heads, rows, width), keys = q.shape, k.shape[2]
    full = (batch, heads, rows, keys)
    mask = np.broadcast_to(True if mask is None else mask, full)
    bias = np.broadcast_to(0.0 if bias is None else bias, full)
    y, lse = np.zeros((batch, heads, rows, v.shape[3])), np.zeros((batch, heads, rows))
    for b, h, i in np.ndindex(batch, heads, rows):
        counted = keys if kv_len is None else min(max(int(kv_len[b]), 0), keys)
        position = i + (0 if rule["align"] == "upper_left" else counted - rows)
        group = h // (heads // k.shape[1])
        y[b, h, i], lse[b, h, i] = one_query(
            q[b, h, i],
            k[b, group],
            v[b, group],
            position,
            counted,
            width**-0.5 if scale is None else scale,
            softcap,
            0.0 if alibi is None else alibi[h],
            bias[b, h, i],
            mask[b, h, i],
            None if sinks is None else sinks[h],
            rule,
        )
    return y, lse


def to_layout(a, layout):
    if layout == "bhsd":
        return a
    a = np.swapaxes(a, 1, 2)
    return a if layout == "bshd" else a.reshape(*a.shape[:2], -1)


def case(family, dtype, q, k, v, extras=None, layout="bhsd", **attributes):
    """extras: the optional inputs by name; layout is that of the inputs given to the op."""
    extras = extras or {}
    names = ["mask", "bias", "kv_len", "alibi", "sinks"]
    while names and names[-1] not in extras:
        names.pop()
    shown = dict(attributes)
    if layout != "bhsd":
        shown = dict(layout=layout, **shown)
    if layout == "bsx":
        shown |= dict(num_heads=q.a.shape[1], num_kv_heads=k.a.shape[1])
    y, lse = attention(q.a, k.a, v.a, **{n: t.a for n, t in extras.items()}, **attributes)
    inputs = [Tensor(t.dtype, to_layout(t.a, layout)) for t in (q, k, v)] + [extras.get(n) for n in names]
    family.case("attention", inputs, [oracle(dtype, to_layout(y, layout)), oracle(LSE[dtype], lse)], **shown)
    return y, lse


def small(dtype, batch=2, heads=4, kv_heads=2, rows=3, keys=5, width=4, value_width=3, seed=0):
    return (
        numbers(dtype, (batch, heads, rows, width), seed, 1.0),
        numbers(dtype, (batch, kv_heads, keys, width), seed + 1, 1.0),
        numbers(dtype, (batch, kv_heads, keys, value_width), seed + 2, 1.0),
    )


def check(family):
    """The op set's own example, each of its variants."""
    q, k, v = (
        tensor("f64", first + step * np.arange(n), shape)
        for first, step, n, shape in (
            (-0.7, 0.1, 16, (1, 4, 2, 2)),
            (-0.8, 0.15, 12, (1, 2, 3, 2)),
            (-1, 0.2, 12, (1, 2, 3, 2)),
        )
    )
    y, lse = case(family, "f64", q, k, v, causal=True)
    assert np.allclose(y.ravel()[:4], [-0.827403713, -0.627403713, -0.650604822, -0.450604822], atol=1e-9)
    assert np.allclose(lse.ravel()[:3], [1.23648908, 1.38649722, 0.903149272], atol=1e-8)
    y, _ = case(family, "f64", q, k, v, causal=True, align="upper_left")
    assert np.allclose(y.ravel()[:4], [-1, -0.8, -0.819034102, -0.619034102], atol=1e-9)
    y, lse = case(family, "f64", q, k, v, dict(kv_len=tensor("i64", [1])), causal=True)
    assert (
        np.allclose(y.ravel()[:4], [0, 0, -1, -0.8])
        and lse.ravel()[0] == -np.inf
        and abs(lse.ravel()[1] - 0.466690476) < 1e-9
    )
    y, _ = case(family, "f64", q, k, v, dict(mask=tensor("bool", [False, True, False])))
    assert np.allclose(y[0, :2], [-0.6, -0.4])
    extras = dict(alibi=tensor("f32", [0.5, 0.25, 0.125, 0.0625]), sinks=tensor("f64", [0, 0.5, -1, 2]))
    y, lse = case(family, "f64", q, k, v, extras, scale=1.0, softcap=0.5, window_left=0, window_right=1)
    assert np.allclose(y.ravel()[:4], [-0.324222509, -0.186490609, -0.105880601, 0], atol=1e-9)
    assert np.allclose(lse.ravel()[:3], [1.16686812, 0.753753188, 1.31194156], atol=1e-8)


def attentions(family):
    for dtype in F:
        case(family, dtype, *small(dtype, batch=1), causal=True)
        extras = dict(bias=numbers(dtype, (3, 1), 8), alibi=numbers(dtype, (4,), 9), sinks=numbers(dtype, (4,), 10))
        case(family, dtype, *small(dtype, batch=1, keys=3), extras)
    case(family, "f32", *small("f32"))
    for layout in ("bshd", "bsx"):
        case(family, "f32", *small("f32", value_width=4), layout=layout)
        case(family, "f32", *small("f32", heads=3, kv_heads=3), layout=layout, causal=True)
    q, k, v = small("f32", seed=3)
    padding = tensor("bool", [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], (2, 1, 1, 5))
    hole = tensor("bool", [[0, 0, 0, 0, 0], [1, 0, 1, 0, 0]], (2, 1, 1, 5))
    for empty_row in ("zero", "mean", "nan"):
        case(family, "f32", q, k, v, dict(mask=hole), empty_row=empty_row)
    case(family, "f32", q, k, v, dict(mask=padding), causal=True)
    case(family, "f32", q, k, v, dict(mask=numbers("bool", (1, 1, 3, 5), 2)), window_left=2)
    case(family, "f32", q, k, v, dict(bias=numbers("f32", (1, 4, 3, 5), 4)))
    case(family, "f32", q, k, v, dict(mask=padding, bias=numbers("f32", (4, 1, 5), 5)), softcap=2.0)
    for cap in (1e-30, 1e-40, 1e-300):
        case(family, "f32", q, k, v, softcap=cap)
        case(family, "f32", tensor("f32", 0 * q.a), k, v, softcap=cap)
    case(family, "f32", q, k, v, softcap=1e300)
    case(family, "f32", q, k, v, dict(bias=tensor("f32", [[0, -np.inf, 0, 0, -np.inf]] * 3)))
    for index in ("i32", "i64"):
        case(family, "f32", q, k, v, dict(kv_len=tensor(index, [3, 0])), causal=True)
    case(family, "f32", q, k, v, dict(kv_len=tensor("i64", [2, 9]), mask=hole), empty_row="mean")
    case(family, "f32", q, k, v, dict(sinks=numbers("f32", (4,), 6)))
    case(family, "f32", q, k, v, dict(sinks=numbers("f32", (4,), 6), mask=hole), causal=True)
    case(family, "f32", q, k, v, dict(alibi=tensor("f32", [0.5, 0.25, 0.125, 0.0625])), causal=True)
    case(family, "f32", q, k, v, causal=True, align="upper_left", window_left=1)
    case(family, "f32", q, k, v, window_left=1, window_right=0, scale=0.25)
    bad = Tensor("f32", q.a.copy())
    bad.a[0, 1, 2, 0] = np.nan
    case(family, "f32", bad, k, v)
    for sizes in (
        dict(rows=1, keys=1),
        dict(rows=1, keys=7, heads=1, kv_heads=1),
        dict(rows=6, keys=2, heads=2, kv_heads=1),
        dict(batch=0),
        dict(rows=0),
        dict(batch=1, rows=20, keys=70, heads=1, kv_heads=1, width=8),
    ):
        case(family, "f32", *small("f32", **sizes, seed=7), causal=True)
    none = small("f32", batch=1, heads=1, kv_heads=1, rows=2, keys=0)
    family.case(
        "attention", [*none], [oracle("f32", np.zeros((1, 1, 2, 3))), oracle("f32", np.full((1, 1, 2), -np.inf))]
    )


def rope(x, cos, sin, style, inverse):
    """x: bhsd; tables: [..., S, R/2] that broadcast over heads."""
    half = cos.shape[-1]
    sin = -sin if inverse else sin
    y = x.copy()
    a, b = (
        (slice(0, half), slice(half, 2 * half)) if style == "half" else (slice(0, 2 * half, 2), slice(1, 2 * half, 2))
    )
    y[..., a] = x[..., a] * cos - x[..., b] * sin
    y[..., b] = x[..., b] * cos + x[..., a] * sin
    return y


def rope_case(family, x, tables, positions=None, layout="bhsd", style="half", inverse=False):
    used = [t.a if positions is None else t.a[positions.a] for t in tables]
    used = [t[:, None] if t.ndim == 3 else t for t in used]
    y = rope(x.a, *used, style, inverse)
    shown = {} if layout == "bhsd" else dict(layout=layout)
    shown |= dict(num_heads=x.a.shape[1]) if layout == "bsx" else {}
    inputs = [Tensor(x.dtype, to_layout(x.a, layout)), *tables] + ([] if positions is None else [positions])
    family.case("rope", inputs, oracle(x.dtype, to_layout(y, layout)), style=style, inverse=inverse, **shown)
    return y


def table(dtype, positions, rotary):
    angles = np.asarray(positions)[..., None] * 10000.0 ** (-2 * np.arange(rotary // 2) / rotary)
    return [tensor(dtype, np.cos(angles)), tensor(dtype, np.sin(angles))]


def ropes(family):
    x = tensor("f64", np.arange(1, 9), (1, 1, 1, 8))
    y = rope_case(family, x, table("f64", [3], 6))
    assert np.allclose(
        y.ravel(), [-1.55447253, 1.28665089, 2.96115778, -3.81884998, 5.2291997, 6.01926445, 7, 8], atol=1e-8
    )
    y = rope_case(family, x, table("f64", [3], 6), style="interleaved")
    assert np.allclose(y.ravel()[:3], [-1.27223251, -1.83886499, 2.41576969], atol=1e-8)
    for dtype in F:
        for style in ("half", "interleaved"):
            x = numbers(dtype, (2, 3, 4, 6), 1)
            rope_case(family, x, table(dtype, range(4), 6), style=style)
            rope_case(family, x, table(dtype, range(4), 4), style=style, inverse=True)
            if dtype in ("f16", "bf16"):
                rope_case(family, x, table("f32", range(4), 6), style=style)
    x = numbers("f32", (2, 3, 4, 6), 2)
    for layout in ("bhsd", "bshd", "bsx"):
        rope_case(family, x, table("f32", range(4), 6), layout=layout)
        rope_case(family, x, table("f32", [[0, 1, 2, 3], [7, 5, 3, 1]], 6), layout=layout)
        rope_case(family, x, table("f32", range(9), 4), tensor("i64", [8, 0, -1, 2]), layout)
        rope_case(
            family, x, table("f32", range(9), 6), tensor("i32", [[8, 0, 1, 2], [3, 3, 4, 5]]), layout, "interleaved"
        )
    for shape in ((1, 1, 1, 2), (0, 2, 3, 4), (2, 1, 0, 4)):
        rope_case(family, numbers("f32", shape, 3), table("f32", range(shape[2]), 2))


def scores(family):
    """The internal op of the rules is the value that it is a note on."""
    for dtype in F:
        for other in F:
            value = numbers(dtype, (1, 2, 3, 3))
            q, k, bias = (numbers(other, (1, 2, 3, n)) for n in (4, 4, 3))
            mask = numbers("bool", (3, 3))
            family.case("scores", [value, q, k], [value], scale=0.5, softcap=2.0)
            family.case("scores", [value, q, k, mask, bias, bias], [value], fill=-1e9, stays_additive=True)


def add(family):
    check(family)
    scores(family)
    attentions(family)
    ropes(family)
