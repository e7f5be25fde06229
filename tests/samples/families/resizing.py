# SPDX-License-Identifier: Apache-2.0
"""Resampling of images: resize, grids, boxes, deformed convolution, each element by its definition in float64."""

import itertools
import math

import numpy as np

from golden import A, F, I, N, X, int_range, numbers, oracle, tensor

COORDS = [
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
]
NEAREST = {
    "round_prefer_floor": lambda c: math.ceil(c - 0.5),
    "round_prefer_ceil": lambda c: math.floor(c + 0.5),
    "floor": math.floor,
    "ceil": math.ceil,
}


def source(j, n, o, scale, coord, start, end):
    if coord == "align_corners":
        return j * (n - 1) / (o - 1) if o > 1 else 0.0
    if coord == "asymmetric":
        return j / scale
    if coord == "tf_half_pixel_for_nn":
        return (j + 0.5) / scale
    if coord == "tf_crop_and_resize":
        if o > 1:
            return start * (n - 1) + j * ((end - start) * (n - 1)) / (o - 1)
        return 0.5 * (start + end) * (n - 1)
    c = (j + 0.5) / scale - 0.5
    if coord == "half_pixel_symmetric":
        return n / 2 * (1 - o / (scale * n)) + c
    return c if coord == "half_pixel" or o > 1 else 0.0


def keys(t, a):
    t = abs(t)
    if t <= 1:
        return ((a + 2) * t - (a + 3)) * t * t + 1
    return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a if t < 2 else 0.0


def taps(c, n, scale, rule):
    """(index, weight) of each element that counts at a coordinate."""
    if rule["mode"] == "nearest":
        return [(min(max(NEAREST[rule["nearest_mode"]](c), 0), n - 1), 1.0)]
    cubic = rule["mode"] == "cubic"
    sigma = min(scale, 1.0) if rule["antialias"] else 1.0
    reach = math.ceil((2 if cubic else 1) / sigma)
    found = []
    for i in range(math.floor(c) - reach + 1, math.floor(c) + reach + 1):
        t = sigma * (i - c)
        w = keys(t, rule["cubic_a"]) if cubic else max(0.0, 1 - abs(t))
        found.append((i, 0.0 if rule["exclude_outside"] and not 0 <= i < n else w))
    total = sum(w for _, w in found) if rule["antialias"] or rule["exclude_outside"] else 1.0
    return [(min(max(i, 0), n - 1), w / total) for i, w in found]


def resized(a, axes, sizes=None, scales=None, coord="half_pixel", roi=None, extrapolation=0.0, **given):
    rule = {"mode": "nearest", "nearest_mode": "round_prefer_floor", "cubic_a": -0.75}
    rule |= {"exclude_outside": False, "antialias": False} | given
    outside = []
    for k, axis in enumerate(axes):
        n = a.shape[axis]
        o = sizes[k] if sizes else math.floor(n * scales[k])
        scale = scales[k] if scales else o / n
        places = [source(j, n, o, scale, coord, *((roi[k], roi[k + len(axes)]) if roi else (0, 1))) for j in range(o)]
        rows = []
        moved = np.moveaxis(a, axis, 0)
        for c in places:
            rows.append(sum((moved[i] * w for i, w in taps(c, n, scale, rule)), np.zeros(moved.shape[1:])))
        a = np.moveaxis(np.array(rows).reshape(o, *moved.shape[1:]), 0, axis)
        outside.append((axis, [not 0 <= c <= n - 1 for c in places]))
    for axis, flags in outside if coord == "tf_crop_and_resize" else []:
        moved = np.moveaxis(a, axis, 0)
        moved[flags] = extrapolation
    return a


def integral(dtype, a):
    return tensor(dtype, np.clip(np.rint(a), *(float(v) for v in int_range(dtype)))) if dtype in I else oracle(dtype, a)


def resize_case(family, x, axes=None, **attributes):
    every = list(range(x.a.ndim)) if axes is None else [axis % x.a.ndim for axis in axes]
    y = resized(np.asarray(x.a, np.float64), every, **attributes)
    family.case("resize", [x], integral(x.dtype, y), axes=axes, **attributes)
    return y


def resizes(family):
    x = numbers("f32", (1, 2, 4, 5), 1)
    for coord in COORDS:
        roi = {"roi": [0.1, -0.25, 0.8, 1.3], "extrapolation": 7.5} if coord == "tf_crop_and_resize" else {}
        for mode in ("nearest", "linear", "cubic"):
            resize_case(family, x, [2, 3], sizes=[7, 3], coord=coord, mode=mode, **roi)
            resize_case(family, x, [3, -2], scales=[1.5, 0.5], coord=coord, mode=mode, **roi)
        resize_case(family, x, [2, 3], sizes=[1, 5], coord=coord, mode="linear", **roi)
        resize_case(family, x, [2, 3], sizes=[6, 4], scales=[1.4, 0.7], coord=coord, mode="linear", **roi)
        resize_case(family, x, [3, 2], sizes=[4, 6], scales=[0.7, 1.4], coord=coord, **roi)
    for rule in NEAREST:
        resize_case(family, x, [2, 3], sizes=[6, 4], nearest_mode=rule, coord="asymmetric")
        resize_case(family, x, [2, 3], sizes=[2, 10], nearest_mode=rule)
    for mode, exclude, antialias in itertools.product(("linear", "cubic"), (False, True), (False, True)):
        flags = {"exclude_outside": exclude, "antialias": antialias}
        resize_case(family, x, [2, 3], sizes=[2, 9], mode=mode, **flags)
        resize_case(family, x, [2, 3], scales=[0.4, 0.6], mode=mode, cubic_a=-0.5, **flags)
        resize_case(family, x, [2, 3], sizes=[2, 3], scales=[0.4, 0.55], mode=mode, **flags)
    for dtype in N:
        resize_case(family, numbers(dtype, (2, 3), 2), scales=[1.0, 2.0])
        resize_case(family, numbers(dtype, (2, 3), 3), [1], sizes=[5], mode="linear")
    resize_case(family, numbers("f32", (2, 0, 3), 4), [1, 2], scales=[2.0, 2.0])
    resize_case(family, numbers("f32", (2, 3), 4), [1], sizes=[0], mode="cubic")
    line = tensor("f32", [1, 2, 4, 8])
    y = resize_case(family, line, [0], scales=[2.0], mode="linear")
    assert y.tolist() == [1, 1.25, 1.75, 2.5, 3.5, 5, 7, 8]
    y = resize_case(family, line, [0], scales=[2.0], mode="cubic", exclude_outside=True)
    assert np.allclose(y[:3], [0.863636364, 1.14134276, 1.54339623])
    assert resize_case(family, line, [0], scales=[0.5], mode="linear", antialias=True).tolist() == [1.75, 5.75]
    y = resize_case(family, line, [0], scales=[0.5], mode="cubic", antialias=True)
    assert np.allclose(y, [1.33984375, 5.94921875])
    y = resize_case(family, line, [0], sizes=[4], coord="tf_crop_and_resize", roi=[0.25, 1.25], extrapolation=-1.0, mode="linear")
    assert y.tolist() == [1.75, 3.5, 7, -1]
    y = resize_case(family, tensor("f32", np.arange(1, 6)), [0], scales=[0.7], coord="half_pixel_symmetric", mode="linear")
    assert np.allclose(y, [1.57142857, 3, 4.42857143])
    for bad in ({}, {"sizes": [2], "scales": [1.0, 1.0]}, {"sizes": [2, 2]}, {"scales": [0.0]}):
        family.case("resize", [line], "RLX_E_OPTION", **bad)


# ---- grids ----


def mirrored(c, low, high):
    if high == low:
        return 0.0
    far = abs(c - low)
    flips, rest = divmod(far, high - low)
    return rest + low if flips % 2 == 0 else high - rest


def corners(g, n, mode, padding, align):
    """(index or None, weight) along one axis."""
    c = (g + 1) / 2 * (n - 1) if align else ((g + 1) * n - 1) / 2
    low, high = (0, n - 1) if align else (-0.5, n - 0.5)

    def kept(p):
        if padding == "zeros":
            return p
        return min(max(mirrored(p, low, high) if padding == "reflection" else p, 0), n - 1)

    if mode == "cubic":
        first = math.floor(c)
        found = [(kept(first + k), keys(c - first - k, -0.75)) for k in range(-1, 3)]
    else:
        c = kept(c)
        first = math.floor(c)
        found = [(np.rint(c), 1.0)] if mode == "nearest" else [(first, first + 1 - c), (first + 1, c - first)]
    return [(int(p) if 0 <= p <= n - 1 else None, w) for p, w in found]


def clamped(p, n):
    return None if p is None else min(max(p, 0), n - 1)


def grid_sampled(x, grid, mode="linear", padding="zeros", align_corners=False):
    axes = x.ndim - 2
    y = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for at in np.ndindex(*grid.shape[:-1]):
        each = [corners(grid[at][axes - 1 - i], x.shape[2 + i], mode, padding, align_corners) for i in range(axes)]
        for choice in itertools.product(*each):
            index, weight = [p for p, _ in choice], math.prod(w for _, w in choice)
            if None not in index:
                y[(at[0], slice(None), *at[1:])] += weight * x[(at[0], slice(None), *index)]
    return y


def grids(family):
    def case(x, grid, **attributes):
        y = grid_sampled(np.asarray(x.a, np.float64), grid.a, **attributes)
        family.case("grid_sample", [x, grid], integral(x.dtype, y), **attributes)

    for mode, padding, align in itertools.product(
        ("nearest", "linear", "cubic"), ("zeros", "border", "reflection"), (False, True)
    ):
        rule = {"mode": mode, "padding": padding, "align_corners": align}
        case(numbers("f32", (2, 2, 3, 4), 5), numbers("f32", (2, 3, 2, 2), 6, 0.8), **rule)
        case(numbers("f32", (1, 2, 5), 7), numbers("f32", (1, 6, 1), 8, 1.5), **rule)
    case(numbers("f32", (1, 1, 2, 3, 2), 9), numbers("f32", (1, 2, 1, 2, 3), 10, 0.8))
    case(numbers("f32", (1, 1, 1, 1), 9), numbers("f32", (1, 2, 2, 2), 10, 2), padding="reflection", align_corners=True)
    for dtype in N:
        case(numbers(dtype, (1, 1, 3, 3), 11), numbers("f32", (1, 2, 2, 2), 12, 0.5))
        case(numbers(dtype, (1, 1, 3, 3), 11), numbers("f32", (1, 2, 2, 2), 12, 0.5), mode="nearest")
    for dtype in F:
        case(numbers("f32", (1, 1, 3, 3), 13), numbers(dtype, (1, 2, 2, 2), 14, 0.5))

    for size, align, dtype in itertools.product(((2, 1, 3, 2), (1, 2, 2, 3, 1), (1, 1, 4)), (False, True), F):
        axes = len(size) - 2
        theta = numbers(dtype, (size[0], axes, axes + 1), 15)
        y = np.zeros((size[0], *size[2:], axes))
        for at in np.ndindex(*size[2:]):
            base = [
                (2 * i / (n - 1) - 1 if n > 1 else 0.0) if align else (2 * i + 1) / n - 1
                for i, n in zip(at, size[2:], strict=True)
            ]
            for item in range(size[0]):
                y[(item, *at)] = theta.a[item] @ np.array([*reversed(base), 1.0])
        family.case("affine_grid", [theta], oracle(dtype, y), size=list(size), align_corners=align)


# ---- boxes and offsets ----


def bilinear(plane, y, x):
    """Corners outside count as 0. plane: [..., H, W]."""
    total = np.zeros(plane.shape[:-2])
    for i, j in itertools.product((0, 1), (0, 1)):
        p, q = math.floor(y) + i, math.floor(x) + j
        weight = (1 - abs(y - p)) * (1 - abs(x - q))
        if 0 <= p < plane.shape[-2] and 0 <= q < plane.shape[-1]:
            total = total + weight * plane[..., p, q]
    return total


def aligned(x, rois, batch, out, sampling, scale, half_pixel, mode):
    height, width = x.shape[2:]
    y = np.zeros((len(rois), x.shape[1], *out))
    for r, box in enumerate(rois):
        x1, y1, x2, y2 = box * scale - (0.5 if half_pixel else 0)
        extent = [y2 - y1, x2 - x1]
        if not half_pixel:
            extent = [max(e, 1.0) for e in extent]
        for i, j in np.ndindex(*out):
            samples = []
            for p, q in np.ndindex(sampling, sampling):
                v = y1 + (i + (p + 0.5) / sampling) * extent[0] / out[0]
                h = x1 + (j + (q + 0.5) / sampling) * extent[1] / out[1]
                inside = -1 <= v <= height and -1 <= h <= width
                at = min(max(v, 0), height - 1), min(max(h, 0), width - 1)
                samples.append(bilinear(x[batch[r]], *at) if inside else np.zeros(x.shape[1]))
            y[r, :, i, j] = np.mean(samples, 0) if mode == "avg" else np.max(samples, 0)
    return y


def boxes(family):
    for dtype, half_pixel, mode in itertools.product(F, (True, False), ("avg", "max")):
        x = numbers(dtype, (2, 2, 6, 5), 16)
        rois = tensor(dtype, [[1, 1, 8, 6], [0, 0, 3, 3], [-4, 2, 1, 30]])
        batch = tensor("i64" if half_pixel else "i32", [1, 0, 1])
        y = aligned(x.a, rois.a, batch.a, (2, 3), 2, 0.5, half_pixel, mode)
        rule = {"out_h": 2, "out_w": 3, "sampling": 2, "scale": 0.5, "half_pixel": half_pixel, "mode": mode}
        family.case("roi_align", [x, rois, batch], oracle(dtype, y), **rule)


def deformed(x, w, offset, bias, mask, strides, lo, hi, dilation, groups, offset_groups):
    filters, depth, *kernel = w.shape
    n = x.shape[2:]
    out = [(n[i] + lo[i] + hi[i] - dilation[i] * (kernel[i] - 1) - 1) // strides[i] + 1 for i in (0, 1)]
    y = np.zeros((x.shape[0], filters, *out))
    per_offset = x.shape[1] // offset_groups
    for item, f, oy, ox in np.ndindex(*y.shape):
        for c, ky, kx in np.ndindex(depth, *kernel):
            channel = f // (filters // groups) * depth + c
            k = (channel // per_offset * kernel[0] + ky) * kernel[1] + kx
            at = (
                oy * strides[0] - lo[0] + ky * dilation[0] + offset[item, 2 * k, oy, ox],
                ox * strides[1] - lo[1] + kx * dilation[1] + offset[item, 2 * k + 1, oy, ox],
            )
            weight = w[f, c, ky, kx] * (1 if mask is None else mask[item, k, oy, ox])
            y[item, f, oy, ox] += weight * bilinear(x[item, channel], *at)
        y[item, f, oy, ox] += 0 if bias is None else bias[f]
    return y


def empty_images(family):
    """No sample is inside, so each is 0."""
    rule = {"out_h": 1, "out_w": 2, "sampling": 2}
    for shape, mode in itertools.product(((1, 2, 0, 3), (1, 2, 3, 0), (1, 2, 0, 0)), ("avg", "max")):
        x, rois, batch = numbers("f32", shape), tensor("f32", [[0, 0, 2, 2], [-1, -1, 0, 0]]), tensor("i64", [0, 0])
        family.case("roi_align", [x, rois, batch], tensor("f32", np.zeros((2, 2, 1, 2))), mode=mode, **rule)
    x, w, bias = numbers("f32", (1, 1, 0, 3)), numbers("f32", (2, 1, 2, 2), 1), tensor("f32", [0.5, -2])
    offset = numbers("f32", (1, 8, 1, 2), 2)
    y = np.broadcast_to(bias.a[:, None, None], (1, 2, 1, 2))
    family.case("deform_conv", [x, w, offset, bias], tensor("f32", y), pad_lo=[1, 0], pad_hi=[1, 0])
    for mode, padding in itertools.product(("nearest", "linear", "cubic"), ("zeros", "border", "reflection")):
        grid = numbers("f32", (1, 2, 2, 2), 3, 0.8)
        y = tensor("f32", np.zeros((1, 1, 2, 2)))
        family.case("grid_sample", [x, grid], y, mode=mode, padding=padding)


def deforms(family):
    for dtype, groups, offset_groups, extras in (
        ("f32", 1, 1, False),
        ("f32", 2, 1, True),
        ("f32", 1, 2, True),
        ("f16", 2, 2, True),
        ("bf16", 1, 1, True),
        ("f64", 1, 1, True),
    ):
        strides, lo, hi, dilation = [1, 2], [1, 0], [0, 1], [1, 2]
        x, w = numbers(dtype, (2, 4, 4, 6), 17), numbers(dtype, (4, 4 // groups, 2, 2), 18, 0.5)
        out = [(n + a + b - d - 1) // s + 1 for n, a, b, d, s in zip((4, 6), lo, hi, dilation, strides, strict=True)]
        offset = numbers(dtype, (2, offset_groups * 8, *out), 19, 0.7)
        bias = numbers(dtype, (4,), 20) if extras else None
        mask = numbers(dtype, (2, offset_groups * 4, *out), 21, 0.5) if extras else None
        given = [None if t is None else t.a for t in (bias, mask)]
        y = deformed(x.a, w.a, offset.a, *given, strides, lo, hi, dilation, groups, offset_groups)
        rule = {"strides": strides, "pad_lo": lo, "pad_hi": hi, "dilation": dilation}
        inputs = [x, w, offset, bias, mask] if extras else [x, w, offset]
        family.case("deform_conv", inputs, oracle(dtype, y), groups=groups, offset_groups=offset_groups, **rule)


# ---- non_max_suppression ----


def overlap(a, b):
    area = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    if min(area) <= 0:
        return 0.0
    shared = max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    return shared / (sum(area) - shared)


def corner_form(box, center):
    if center:
        x, y, w, h = box
        return y - h / 2, x - w / 2, y + h / 2, x + w / 2
    return min(box[0], box[2]), min(box[1], box[3]), max(box[0], box[2]), max(box[1], box[3])


def suppressed(boxes_, scores, max_out, iou, score, center):
    rows = []
    for b, c in np.ndindex(*scores.shape[:2]):
        kept = []
        for i in sorted(range(scores.shape[2]), key=lambda i: -scores[b, c, i]):
            box = corner_form(boxes_[b, i], center)
            good = score is None or scores[b, c, i] > score
            if good and len(kept) < max_out and all(overlap(box, other) <= iou for _, other in kept):
                kept.append((i, box))
        rows += [(b, c, i) for i, _ in kept]
    return rows


def suppressions(family):
    rng = np.random.default_rng(22)
    for dtype, max_out, iou, score, center, bounded in [(d, 2, 0.3, 0.25, False, False) for d in F] + [
        ("f32", 3, 0.1, None, True, False),
        ("f32", 2, 0.0, None, False, True),
        ("f32", 9, 0.5, 0.5, True, True),
        ("f32", 0, 0.5, None, False, False),
    ]:
        corners_ = tensor(dtype, np.round(rng.uniform(0, 2, (2, 5, 4)) * 16) / 16)
        scores = tensor(dtype, rng.permutation(2 * 2 * 5).reshape(2, 2, 5) / 20)
        rows = suppressed(corners_.a, scores.a, max_out, iou, score, center)
        count = len(rows)
        if bounded:
            rows += [(-1, -1, -1)] * (2 * 2 * max_out - count)
        outputs = [tensor("i64", np.array(rows, object).reshape(-1, 3)), tensor("i64", count)]
        rule = {"max_out": max_out, "iou": iou, "score": score, "center": center, "bounded": bounded}
        family.case("non_max_suppression", [corners_, scores], outputs, **rule)
    empty = [numbers("f32", (1, 0, 4)), numbers("f32", (1, 2, 0))]
    family.case("non_max_suppression", empty, [tensor("i64", np.zeros((0, 3))), tensor("i64", 0)], max_out=3)


def kept_boxes(family):
    # Neighbours share a third of their union; in the second batch a box has no area, and order is not that of places.
    boxes_ = np.array([[[0, i, 2, i + 2] for i in range(4)], [[0, 0, 0, 2], [0, 0, 4, 4], [0, 0, 4, 2], [8, 8, 9, 9]]])
    order = np.array([[[0, 1, 2, 3]], [[0, 2, 1, 3]]])
    good = np.array([[[True, True, True, True]], [[True, True, True, False]]])
    for dtype, iou, most, kept in [(d, 0.25, 4, [[1, 0, 1, 0], [1, 1, 0, 0]]) for d in F] + [
        ("f32", 0.5, 3, [[1, 1, 1, 0], [1, 1, 1, 0]]),
        ("f32", 0.25, 1, [[1, 0, 0, 0], [1, 0, 0, 0]]),
        ("f32", 0.25, -1, [[0, 0, 0, 0], [0, 0, 0, 0]]),
    ]:
        inputs = [tensor(dtype, boxes_), tensor("i64", order), tensor("bool", good), tensor("i64", most)]
        family.case("keep_boxes", inputs, tensor("bool", np.array(kept, bool)[:, None]), iou=iou)
    short = [tensor("f32", boxes_), tensor("i64", order), tensor("bool", good[:, :, :3]), tensor("i64", 1)]
    family.case("keep_boxes", short, "RLX_E_SHAPE")


def weighted_sums(family):
    index = [[0, 1], [2, 2], [1, 0]]
    for dtype in F:
        x, weight = numbers(dtype, (2, 3, 2), 30, 1.0), numbers(dtype, (3, 2), 31, 1.0)
        for axis, along in ((1, (3, 2, 1)), (0, (3, 2, 1, 1)), (2, (3, 2))):
            if axis != 1 and dtype != "f32":
                continue
            at = np.minimum(index, x.a.shape[axis] - 1)
            y = (np.take(x.a, at, axis) * weight.a.reshape(along)).sum(axis + 1)
            family.case("gather_sum", [x, tensor("i64", at), weight], oracle(dtype, y), axis=axis)
    x, weight = numbers("f32", (3,), 32, 1.0), numbers("f32", (3, 2), 33, 1.0)
    for dtype in I:
        y = oracle("f32", (x.a[np.array(index)] * weight.a).sum(1)) if dtype in X else "RLX_E_DTYPE"
        family.case("gather_sum", [x, tensor(dtype, index), weight], y, axis=0)
    family.case("gather_sum", [x, tensor("i64", index), numbers("f32", (2, 3), 34)], "RLX_E_SHAPE", axis=0)


def planes(family):
    rows, columns = [1, 1, 0], [0, 2, 2, 1, 0]
    for dtype in A:
        x = numbers(dtype, (2, 2, 3), 40) if dtype in F else tensor(dtype, np.arange(12) % 2, (2, 2, 3))
        y = x.a[:, rows][:, :, columns]
        family.case("gather_plane", [x, tensor("i64", rows), tensor("i32", columns)], tensor(dtype, y), axis=1)
    x = tensor("f32", np.arange(24), (4, 3, 2))
    y = tensor("f32", x.a[[3, 0]][:, [2, 2, 2]])
    family.case("gather_plane", [x, tensor("i32", [3, 0]), tensor("i64", [2, 2, 2])], y, axis=0)
    index = [tensor("i64", [0]), tensor("i64", [[0]])]
    family.case("gather_plane", [x, *index], "RLX_E_SHAPE", axis=0)
    family.case("gather_plane", [x, *reversed(index)], "RLX_E_SHAPE", axis=0)
    family.case("gather_plane", [x, index[0], index[0]], "RLX_E_SHAPE", axis=2)


def add(family):
    planes(family)
    resizes(family)
    weighted_sums(family)
    kept_boxes(family)
    grids(family)
    boxes(family)
    empty_images(family)
    deforms(family)
    suppressions(family)
