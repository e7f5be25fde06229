# SPDX-License-Identifier: Apache-2.0
"""Recurrent networks and state spaces, step by step in float64: each sequence of a batch alone, each direction alone."""

import numpy as np

from families.contractions import ACTIVATIONS
from golden import F, numbers, oracle, tensor


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


DEFAULTS = {"act": np.tanh, "act_f": sigmoid, "act_g": np.tanh, "act_h": np.tanh}


def lstm_step(z_of, state, r, bias, peephole, acts, clip, flag):
    h, c = state
    size = len(h)
    z = z_of + r @ h + bias

    def cut(x):
        return np.clip(x, -clip, clip) if clip else x

    def gate(i):
        return z[i * size : (i + 1) * size]

    def peep(i, value):
        return 0 if peephole is None else peephole[i * size : (i + 1) * size] * value

    i = acts["act_f"](cut(gate(0) + peep(0, c)))
    f = 1 - i if flag else acts["act_f"](cut(gate(2) + peep(2, c)))
    cell = f * c + i * acts["act_g"](cut(gate(3)))
    o = acts["act_f"](cut(gate(1) + peep(1, cell)))
    return o * acts["act_h"](cell), cell


def gru_step(z_of, state, r, bias, _, acts, clip, flag):
    (h,) = state
    size = len(h)
    w = [r[i * size : (i + 1) * size] for i in range(3)]
    b = [bias[i * size : (i + 1) * size] for i in range(3)]
    g = [z_of[i * size : (i + 1) * size] for i in range(3)]

    def cut(x):
        return np.clip(x, -clip, clip) if clip else x

    z = acts["act_f"](cut(g[0] + w[0] @ h + b[0]))
    reset = acts["act_f"](cut(g[1] + w[1] @ h + b[1]))
    inner = reset * (w[2] @ h + b[2]) if flag else w[2] @ (reset * h) + b[2]
    n = acts["act_g"](cut(g[2] + inner))
    return ((1 - z) * n + z * h,)


def rnn_step(z_of, state, r, bias, _, acts, clip, flag):
    z = z_of + r @ state[0] + bias
    return (acts["act"](np.clip(z, -clip, clip) if clip else z),)


KINDS = {"lstm": (4, 2, lstm_step), "gru": (3, 1, gru_step), "rnn": (1, 1, rnn_step)}


def recurrent(kind, x, w, r, bias, lens, first, peephole, direction="forward", clip=0, flag=False, **acts):
    gates, states, step = KINDS[kind]
    (steps, batch, _), (directions, _, size) = x.shape, r.shape
    acts = DEFAULTS | {name: ACTIVATIONS[act] for name, act in acts.items()}
    y = np.zeros((steps, directions, batch, size))
    last = np.zeros((states, directions, batch, size))
    for d, b in np.ndindex(directions, batch):
        length = steps if lens is None else int(lens[b])
        state = tuple(np.zeros(size) if each is None else each[d, b] for each in first[:states])
        order = range(length)
        both = np.zeros(2 * gates * size) if bias is None else bias[d]
        for t in reversed(order) if d == 1 or direction == "reverse" else order:
            given = w[d] @ x[t, b] + both[: gates * size]
            peep = None if peephole is None else peephole[d]
            state = step(given, state, r[d], both[gates * size :], peep, acts, clip, flag)
            y[t, d, b] = state[0]
        last[:, d, b] = state
    return [y, *last]


def recurrences(family):
    flags = {"lstm": "input_forget", "gru": "linear_before_reset", "rnn": None}
    choices = {"lstm": ("act_f", "act_g", "act_h"), "gru": ("act_f", "act_g"), "rnn": ("act",)}
    for kind, (gates, states, _) in KINDS.items():

        def case(dtype="f32", steps=3, batch=2, width=2, size=2, full=True, lens=None, flag=False, kind=kind, **more):
            gates, states, _ = KINDS[kind]
            directions = 2 if more.get("direction") == "bidirectional" else 1
            x = numbers(dtype, (steps, batch, width), 1, 0.7)
            w = numbers(dtype, (directions, gates * size, width), 2, 0.7)
            r = numbers(dtype, (directions, gates * size, size), 3, 0.7)
            bias = numbers(dtype, (directions, 2 * gates * size), 4, 0.5) if full else None
            first = [numbers(dtype, (directions, batch, size), 5 + i) if full else None for i in range(states)]
            peephole = numbers(dtype, (directions, 3 * size), 7) if full and kind == "lstm" else None
            lengths = None if lens is None else tensor(*lens)
            inputs = [x, w, r, bias, lengths, *first, *([peephole] if kind == "lstm" else [])]
            arrays = [None if t is None else t.a for t in inputs]
            result = recurrent(
                kind, *arrays[:5], arrays[5 : 5 + states], arrays[7] if kind == "lstm" else None, flag=flag, **more
            )
            attributes = more | ({flags[kind]: True} if flag else {})
            family.case(kind, inputs, [oracle(dtype, a) for a in result], **attributes)

        for dtype in F:
            case(dtype)
        for direction in ("forward", "reverse", "bidirectional"):
            case(direction=direction)
            case(direction=direction, full=False, lens=("i32", [3, 1]))
            case(direction=direction, batch=3, lens=("i64", [0, 2, 3]))
        case(clip=0.25)
        case(steps=1, batch=1, size=3, width=1)
        case(steps=0)
        if flags[kind]:
            case(flag=True)
            case(flag=True, direction="bidirectional", full=False)
        for name in choices[kind]:
            for act in ACTIVATIONS:
                case(steps=2, batch=1, **{name: act})


# ---- state spaces ----


def selective_scan(x, dt, a, b, c, d, state):
    (batch, steps, channels), size = x.shape, a.shape[1]
    y, state = np.zeros(x.shape), np.zeros((batch, channels, size)) if state is None else state.copy()
    for n, t, h in np.ndindex(batch, steps, channels):
        state[n, h] = np.exp(dt[n, t, h] * a[h]) * state[n, h] + dt[n, t, h] * x[n, t, h] * b[n, t]
        y[n, t, h] = (c[n, t] * state[n, h]).sum() + (0 if d is None else d[h] * x[n, t, h])
    return y, state


def gated_delta_net(q, k, v, g, beta, state, scale=None):
    batch, steps, heads, width = q.shape
    y = np.zeros(v.shape)
    state = np.zeros((batch, heads, width, v.shape[3])) if state is None else state.copy()
    for n, t, h in np.ndindex(batch, steps, heads):
        s = np.exp(g[n, t, h]) * state[n, h]
        s = s + np.outer(k[n, t, h], (v[n, t, h] - k[n, t, h] @ s) * beta[n, t, h])
        y[n, t, h] = (width**-0.5 if scale is None else scale) * (q[n, t, h] @ s)
        state[n, h] = s
    return y, state


def state_spaces(family):
    for dtype, batch, steps, full in [*[(d, 2, 3, True) for d in F], ("f32", 1, 1, False), ("f32", 2, 0, True)]:
        channels, size, heads, width, out = 3, 2, 2, 3, 2
        x, dt = numbers(dtype, (batch, steps, channels), 1), numbers(dtype, (batch, steps, channels), 2, 0.5)
        a = numbers(dtype, (channels, size), 3, 0.5)
        b, c = (numbers(dtype, (batch, steps, size), i) for i in (4, 5))
        d = numbers(dtype, (channels,), 6) if full else None
        state = numbers(dtype, (batch, channels, size), 7) if full else None
        inputs = [x, dt, a, b, c, d, state]
        result = selective_scan(*[None if t is None else t.a for t in inputs])
        family.case("selective_scan", inputs, [oracle(dtype, r) for r in result])
        q, k = (numbers(dtype, (batch, steps, heads, width), i, 0.7) for i in (1, 2))
        v = numbers(dtype, (batch, steps, heads, out), 3)
        g, beta = (numbers(dtype, (batch, steps, heads), i, 0.5) for i in (4, 5))
        state = numbers(dtype, (batch, heads, width, out), 6) if full else None
        inputs = [q, k, v, g, beta, state]
        for scale in (None, 0.5):
            result = gated_delta_net(*[None if t is None else t.a for t in inputs], scale=scale)
            family.case("gated_delta_net", inputs, [oracle(dtype, r) for r in result], scale=scale)


def add(family):
    recurrences(family)
    state_spaces(family)
