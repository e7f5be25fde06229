# SPDX-License-Identifier: Apache-2.0
"""What is made of attention: its gradient query by query, whole blocks, rotation by column and row; and splats, each
Gaussian and each pixel alone.
"""

import itertools

import numpy as np

from families.attention import LSE, RULE, attention, rope, small, to_layout
from families.contractions import ACTIVATIONS
from golden import F, Tensor, numbers, oracle, tensor

# ---- the gradient of attention ----


def weights(q, k, position, keys, scale, softcap, slope, bias, mask, sink, lse, rule):
    """The weight of each key, that of the sink, and the capped scores, of one query."""
    j = np.arange(len(k))
    t = scale * (k @ q)
    t = softcap * np.tanh(t / softcap) if softcap else t
    s = t - slope * np.abs(position - j) + bias
    seen = (j < keys) & mask
    seen &= (j <= position) | (not rule["causal"])
    seen &= (j >= position - rule["window_left"]) | (rule["window_left"] < 0)
    seen &= (j <= position + rule["window_right"]) | (rule["window_right"] < 0)
    if lse == -np.inf:
        return np.zeros(len(k)), 0.0, t
    return np.where(seen, np.exp(s - lse), 0), 0.0 if sink is None else np.exp(sink - lse), t


def attention_grad(y, lse, dy, q, k, v, mask=None, bias=None, kv_len=None, alibi=None, sinks=None, scale=None, softcap=0, **rule):
    rule = RULE | rule
    (batch, heads, rows, width), keys = q.shape, k.shape[2]
    full, scale = (batch, heads, rows, keys), width**-0.5 if scale is None else scale
    mask = np.broadcast_to(True if mask is None else mask, full)
    added = np.broadcast_to(0.0 if bias is None else bias, full)
    dq, dk, dv, ds_all = np.zeros(q.shape), np.zeros(k.shape), np.zeros(v.shape), np.zeros(full)
    dsinks = np.zeros(0 if sinks is None else heads)
    for b, h, i in np.ndindex(batch, heads, rows):
        n = keys if kv_len is None else min(max(int(kv_len[b]), 0), keys)
        position, g = i + (0 if rule["align"] == "upper_left" else n - rows), h // (heads // k.shape[1])
        sink, slope = None if sinks is None else sinks[h], 0.0 if alibi is None else alibi[h]
        p, of_sink, t = weights(
            q[b, h, i], k[b, g], position, n, scale, softcap, slope, added[b, h, i], mask[b, h, i], sink, lse[b, h, i], rule
        )
        if lse[b, h, i] == -np.inf and rule["empty_row"] == "mean" and n:
            dv[b, g, :n] += dy[b, h, i] / n
        of_row = dy[b, h, i] @ y[b, h, i]
        ds = p * (v[b, g] @ dy[b, h, i] - of_row)
        dv[b, g] += np.outer(p, dy[b, h, i])
        ds_all[b, h, i] = ds
        if sinks is not None:
            dsinks[h] -= of_sink * of_row
        ds = ds * (1 - (t / softcap) ** 2) if softcap else ds
        dq[b, h, i] += scale * ds @ k[b, g]
        dk[b, g] += scale * np.outer(ds, q[b, h, i])
    if bias is None:
        return dq, dk, dv, np.zeros(0), dsinks
    dbias = ds_all.sum(tuple(range(4 - bias.ndim)))
    dbias = dbias.sum(tuple(a for a in range(bias.ndim) if bias.shape[a] == 1 != dbias.shape[a]), keepdims=True)
    return dq, dk, dv, dbias, dsinks


def grad_case(family, dtype, qkv, extras=None, layout="bhsd", lse_dtype=None, **attributes):
    """What the forward op returned is rounded, so p need not add up to 1."""
    extras = extras or {}
    given = {n: t.a for n, t in extras.items()}
    arrays = [t.a for t in qkv]
    y, lse = attention(*arrays, **given, **attributes)
    dy = numbers(dtype, y.shape, 40)
    forward = [tensor(dtype, y), tensor(lse_dtype or LSE[dtype], lse)]
    dq, dk, dv, dbias, dsinks = attention_grad(*[t.a for t in forward], dy.a, *arrays, **given, **attributes)
    shown = attributes | ({} if layout == "bhsd" else {"layout": layout})
    if layout == "bsx":
        shown |= {"num_heads": qkv[0].a.shape[1], "num_kv_heads": qkv[1].a.shape[1]}
    inputs = [*qkv, *(extras.get(n) for n in ("mask", "bias", "kv_len", "alibi", "sinks")), forward[0], forward[1], dy]
    placed = [
        Tensor(t.dtype, to_layout(t.a, layout)) if i in (0, 1, 2, 8, 10) else t for i, t in enumerate(inputs)
    ]
    outputs = [oracle(dtype, to_layout(a, layout)) for a in (dq, dk, dv)]
    outputs += [oracle(LSE[dtype], a) for a in (dbias, dsinks)]
    family.case("attention_grad", placed, outputs, **shown)


def attention_grads(family):
    for dtype in ("f32", "f64"):
        grad_case(family, dtype, small(dtype, batch=1), causal=True)
        extras = {"bias": numbers(dtype, (3, 1), 8), "alibi": numbers(dtype, (4,), 9), "sinks": numbers(dtype, (4,), 10)}
        grad_case(family, dtype, small(dtype, batch=1, keys=3), extras)
    for dtype in ("f16", "bf16"):
        extras = {"bias": numbers(dtype, (2, 2), 8), "alibi": numbers(dtype, (1,), 9), "sinks": numbers(dtype, (1,), 10)}
        grad_case(family, dtype, small(dtype, 1, 1, 1, 2, 2, 2, 2), extras)
        grad_case(family, dtype, small(dtype, 1, 1, 1, 2, 2, 2, 2), lse_dtype=dtype)
    hole = tensor("bool", [[0, 0, 0, 0, 0], [1, 0, 1, 0, 0]], (2, 1, 1, 5))
    for empty_row in ("zero", "mean"):
        grad_case(family, "f32", small("f32", seed=3), {"mask": hole}, empty_row=empty_row)
    qkv = small("f32", 1, 2, 1, 2, 3, 2, 2)
    grad_case(family, "f32", qkv, empty_row="nan")
    for layout in ("bshd", "bsx"):
        grad_case(family, "f32", small("f32", value_width=4), layout=layout)
    grad_case(family, "f32", small("f32", seed=4), softcap=0.75, scale=0.5, window_left=1, window_right=1)
    for index in ("i32", "i64"):
        extras = {"kv_len": tensor(index, [3, 0])}
        grad_case(family, "f32", small("f32", seed=5), extras, align="upper_left")
        grad_case(family, "f32", small("f32", seed=5), extras, empty_row="mean", causal=True)
    grad_case(family, "f32", small("f32", seed=6), {"bias": numbers("f32", (2, 1, 3, 5), 4)})


# ---- blocks ----


def block(x, w_qkv, w_out, heads, kv_heads, turned=False, tables=None, b_qkv=0.0, b_out=0.0, style="half", **rule):
    qkv = x @ (w_qkv.T if turned else w_qkv) + b_qkv
    width = qkv.shape[2] // (heads + 2 * kv_heads)
    split = np.split(qkv, [heads * width, (heads + kv_heads) * width], 2)
    q, k, v = (np.swapaxes(p.reshape(*p.shape[:2], -1, width), 1, 2) for p in split)
    if tables is not None:
        q, k = (rope(p, *tables, style, False) for p in (q, k))
    y, _ = attention(q, k, v, **rule)
    return to_layout(y, "bsx") @ (w_out.T if turned else w_out) + b_out


def layer_norm(x, gamma, beta, eps):
    c = x - x.mean(-1, keepdims=True)
    y = c / np.sqrt((c * c).mean(-1, keepdims=True) + eps)
    return y * (1 if gamma is None else gamma) + (0 if beta is None else beta)


def a_of(t, fallback=0.0):
    return fallback if t is None else t.a


def blocks(family):
    rules = [{}, {"causal": True, "align": "upper_left"}, {"softcap": 1.5, "scale": 0.5}]
    rules += [{"window_left": 1, "window_right": 0}, {"empty_row": "mean"}, {"empty_row": "nan"}]
    cases = [(d, turned, {}) for d in F for turned in (False, True)] + [("f32", False, rule) for rule in rules]
    for dtype, turned, rule in cases:
        x = numbers(dtype, (2, 3, 4), 1, 0.7)
        w_qkv, w_out = numbers(dtype, (16, 4) if turned else (4, 16), 2, 0.5), numbers(dtype, (4, 8) if turned else (8, 4), 3, 0.5)
        shown = {"num_heads": 4, "num_kv_heads": 2, "transpose_w": turned} | rule
        y = block(x.a, w_qkv.a, w_out.a, 4, 2, turned, **rule)
        family.case("attention_block", [x, w_qkv, w_out], oracle(dtype, y), **shown)
        mask, bias = numbers("bool", (1, 1, 3, 3), 4), numbers(dtype, (3, 3), 5)
        b_qkv, b_out = numbers(dtype, (16,), 6), numbers(dtype, (4,), 7)
        y = block(
            x.a, w_qkv.a, w_out.a, 4, 2, turned, b_qkv=b_qkv.a, b_out=b_out.a, **({"mask": mask.a, "bias": bias.a} | rule)
        )
        inputs = [x, w_qkv, w_out, mask, bias, b_qkv, b_out]
        family.case("attention_block", inputs, oracle(dtype, y), **shown)
        angles = np.arange(5)[:, None] * np.array([[1.0]])
        tables = [tensor(dtype, np.cos(angles)), tensor(dtype, np.sin(angles))]
        for style, index in (("half", "i64"), ("interleaved", "i32")):
            positions = tensor(index, [4, 0, 2])
            used = [t.a[positions.a] for t in tables]
            y = block(x.a, w_qkv.a, w_out.a, 4, 2, turned, used, style=style, **rule)
            inputs = [x, w_qkv, w_out, None, None, None, None, *tables, positions]
            family.case("attention_block", inputs, oracle(dtype, y), rope_style=style, **shown)


def layers(family):
    def case(dtype, pre_norm=False, act="gelu", full=True, turned=False, causal=False, eps=(1e-5, 1e-5)):
        def matrix(rows, columns, seed):
            return numbers(dtype, (columns, rows) if turned else (rows, columns), seed, 0.5)

        x = numbers(dtype, (1, 3, 4), 1)
        w_qkv, w_out, w1, w2 = matrix(4, 12, 2), matrix(4, 4, 3), matrix(4, 5, 4), matrix(5, 4, 5)
        mask, bias = (numbers("bool", (3, 3), 6), numbers(dtype, (3, 3), 7)) if full else (None, None)
        vectors = [numbers(dtype, (n,), 8 + i) if full else None for i, n in enumerate((12, 4, 4, 4, 5, 4, 4, 4))]
        b_qkv, b_out, gamma1, beta1, b1, b2, gamma2, beta2 = vectors
        rule = {"causal": causal, "mask": None if mask is None else mask.a, "bias": None if bias is None else bias.a}

        def attend(h):
            return block(h, w_qkv.a, w_out.a, 2, 2, turned, b_qkv=a_of(b_qkv), b_out=a_of(b_out), **rule)

        def feed(h):
            h = ACTIVATIONS[act](h @ (w1.a.T if turned else w1.a) + a_of(b1))
            return h @ (w2.a.T if turned else w2.a) + a_of(b2)

        def norm(h, gamma, beta, eps):
            return layer_norm(h, a_of(gamma, None), a_of(beta, None), eps)

        if pre_norm:
            h = x.a + attend(norm(x.a, gamma1, beta1, eps[0]))
            y = h + feed(norm(h, gamma2, beta2, eps[1]))
        else:
            h = norm(x.a + attend(x.a), gamma1, beta1, eps[0])
            y = norm(h + feed(h), gamma2, beta2, eps[1])
        inputs = [x, w_qkv, w_out, w1, w2, mask, bias, b_qkv, b_out, gamma1, beta1, b1, b2, gamma2, beta2]
        shown = {"num_heads": 2, "transpose_w": turned, "pre_norm": pre_norm, "act": act, "causal": causal}
        family.case("transformer_layer", inputs, oracle(dtype, y), eps1=eps[0], eps2=eps[1], **shown)

    for dtype, pre_norm in itertools.product(F, (False, True)):
        case(dtype, pre_norm)
    for act in ACTIVATIONS:
        case("f32", act=act, full=False, turned=True, causal=True)
    case("f32", True, eps=(0.25, 0.5))


def axial_ropes(family):
    for dtype, layout, inverse in [(d, "bsx", False) for d in F] + [("f32", x, True) for x in ("bhsd", "bshd", "bsx")]:
        for end_x, end_y, repeat, theta in ((3, 2, 1, 10000.0), (2, 2, 2, 50.0)):
            rows, width = end_x * end_y * repeat, 8
            x = numbers(dtype, (2, 2, rows, width), 1)
            place = np.arange(rows) % (end_x * end_y)
            steps = theta ** (-4 * np.arange(width // 4) / width)
            angles = np.concatenate([np.outer(place % end_x, steps), np.outer(place // end_x, steps)], 1)
            y = rope(x.a, np.cos(angles), np.sin(angles), "interleaved", inverse)
            shown = {"layout": layout, "end_x": end_x, "end_y": end_y, "repeat": repeat, "theta": theta, "inverse": inverse}
            given = Tensor(dtype, to_layout(x.a, layout))
            count = 2 if layout == "bsx" else None
            family.case("axial_rope_2d", [given], oracle(dtype, to_layout(y, layout)), num_heads=count, **shown)


# ---- Gaussian splatting ----

C1, C2, C3 = 0.4886025119029199, 1.0925484305920792, 0.5900435899266435


def basis(d, count):
    x, y, z = d
    band = [-C1 * y, C1 * z, -C1 * x]
    band += [C2 * x * y, -C2 * y * z, 0.31539156525252005 * (2 * z * z - x * x - y * y), -C2 * x * z]
    band += [0.5462742152960396 * (x * x - y * y), -C3 * y * (3 * x * x - y * y), 2.890611442640554 * x * y * z]
    band += [-0.4570457994644658 * y * (4 * z * z - x * x - y * y)]
    band += [0.3731763325901154 * z * (2 * z * z - 3 * x * x - 3 * y * y)]
    band += [-0.4570457994644658 * x * (4 * z * z - x * x - y * y), 1.445305721320277 * z * (x * x - y * y)]
    band += [-C3 * x * (x * x - 3 * y * y)]
    return np.array(band[:count])


def project(means, log_scales, quats, opacity, colors, sh, view, intrinsics, width, height, near, blur, radius_scale):
    fx, fy, cx, cy = intrinsics
    rows = []
    for i in range(len(means)):
        x, y, z, w = quats[i] / np.linalg.norm(quats[i])
        turn = np.array(
            [
                [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
            ]
        )
        m = turn @ np.diag(np.exp(log_scales[i]))
        t = view[:3, :3] @ means[i] + view[:3, 3]
        depth = t[2] if t[2] > near else 1.0
        ux = np.clip(t[0] / depth, -1.3 * width / (2 * fx), 1.3 * width / (2 * fx))
        uy = np.clip(t[1] / depth, -1.3 * height / (2 * fy), 1.3 * height / (2 * fy))
        jacobian = np.array([[fx / depth, 0, -fx * ux / depth], [0, fy / depth, -fy * uy / depth]])
        flat = jacobian @ view[:3, :3]
        (a, b), (_, c) = flat @ m @ m.T @ flat.T + blur * np.eye(2)
        det, mid = a * c - b * b, (a + c) / 2
        d = means[i] + view[:3, :3].T @ view[:3, 3]
        color = colors[i]
        if sh is not None:
            color = np.maximum(color + basis(d / np.linalg.norm(d), sh.shape[1]) @ sh[i], 0)
        radius = radius_scale * np.sqrt(mid + np.sqrt(max(mid * mid - det, 0)))
        mean2d = [fx * t[0] / depth + cx, fy * t[1] / depth + cy]
        alpha = 1 / (1 + np.exp(-opacity[i]))
        rows.append((mean2d, np.array([c, -b, a]) / det, t[2], color, alpha, radius, t[2] > near and det > 0))
    return [np.array(column) for column in zip(*rows, strict=True)]


def rasterize(mean2d, conic, depth, color, alpha, radius, valid, width, height, cutoff, most, least, limit):
    image = np.zeros((height, width, 4))
    order = sorted(range(len(depth)), key=lambda i: (not valid[i], depth[i]))
    for y, x in np.ndindex(height, width):
        left, seen = 1.0, 0
        for i in order:
            dx, dy = mean2d[i] - (x + 0.5, y + 0.5)
            power = -0.5 * (conic[i][0] * dx * dx + conic[i][2] * dy * dy) - conic[i][1] * dx * dy
            a = min(most, alpha[i] * np.exp(min(power, 0)))
            if not (valid[i] and dx * dx + dy * dy <= radius[i] ** 2 and power <= 0 and a >= cutoff):
                continue
            seen += 1
            if left * (1 - a) >= least and (limit == 0 or seen <= limit):
                image[y, x] += left * a * np.array([*color[i], 1])
            left *= 1 - a
    return image


def splats(family):
    view = tensor("f64", [[0.8, 0, 0.6, 0.1], [0, 1, 0, -0.2], [-0.6, 0, 0.8, 3], [0, 0, 0, 1]])
    camera = tensor("f64", [4, 3, 2.5, 1.5])
    for dtype, bands in [(d, 3) for d in F] + [("f32", n) for n in (0, 8, 15)]:
        count = 5
        means, log_scales = numbers(dtype, (count, 3), 1, 0.5), numbers(dtype, (count, 3), 2, 0.3)
        means.a[3, 2] = -9  # behind the camera
        quats, opacity, colors = numbers(dtype, (count, 4), 3), numbers(dtype, (count,), 4), numbers(dtype, (count, 3), 5, 0.5)
        sh = numbers(dtype, (count, bands, 3), 6, 0.3) if bands else None
        inputs = [means, log_scales, quats, opacity, colors, sh, tensor(dtype, view.a), tensor(dtype, camera.a)]
        arrays = [None if t is None else t.a for t in inputs]
        for near, blur, radius_scale in ((0.2, 0.3, 3.0), (2.75, 0.5, 1.5)):
            size = {"width": 5, "height": 3}
            shown = size | {"near": near, "blur": blur, "radius_scale": radius_scale}
            result = project(*arrays, *shown.values())
            outputs = [oracle(dtype, a) for a in result[:-1]] + [tensor("bool", result[-1])]
            family.case("gaussian_splat_prepare", inputs, outputs, **shown)
            for cutoff, most, least, limit in ((1 / 255, 0.99, 1e-4, 0), (0.1, 0.5, 0.3, 2)):
                rules = {"alpha_cutoff": cutoff, "alpha_max": most, "transmittance_min": least, "max_splats": limit}
                image = rasterize(*result, *size.values(), *rules.values())
                family.case("gaussian_splat_render", inputs, oracle(dtype, image), **shown, **rules)
    for dtype in F:
        mean2d = tensor(dtype, [[1, 1], [2.5, 1.5], [1, 2], [0.5, 0.5]])
        conic = tensor(dtype, [[0.5, 0, 0.5], [1, 0.25, 0.5], [0.25, 0, 0.25], [np.nan, 1, 1]])
        depth, color = tensor(dtype, [2, 1, 2, 0]), numbers(dtype, (4, 3), 7)
        alpha, radius = tensor(dtype, [0.5, 0.75, 0.25, 1]), tensor(dtype, [2, 3, 2, 1])
        inputs = [mean2d, conic, depth, color, alpha, radius, tensor("bool", [1, 1, 1, 0])]
        for cutoff, most, least, limit in ((1 / 255, 0.99, 1e-4, 0), (0.125, 0.625, 0.25, 1)):
            rules = {"alpha_cutoff": cutoff, "alpha_max": most, "transmittance_min": least, "max_splats": limit}
            image = rasterize(*[t.a for t in inputs], 4, 3, *rules.values())
            family.case("gaussian_splat_rasterize", inputs, oracle(dtype, image), width=4, height=3, **rules)


def add(family):
    attention_grads(family)
    blocks(family)
    layers(family)
    axial_ropes(family)
    splats(family)
