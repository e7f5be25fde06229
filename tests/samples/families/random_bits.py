# SPDX-License-Identifier: Apache-2.0
"""Primitive 67: Philox4x32-10, in Python's integers."""

import numpy as np

from golden import tensor

M32 = 2**32 - 1


def philox(counter, key):
    c, (k0, k1) = list(counter), key
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k0, p1 & M32, (p0 >> 32) ^ c[3] ^ k1, p0 & M32]
        k0, k1 = (k0 + 0x9E3779B9) & M32, (k1 + 0xBB67AE85) & M32
    return c


def plus(counter, n):
    total = (sum(word << 32 * i for i, word in enumerate(counter)) + n) % 2**128
    return [total >> 32 * i & M32 for i in range(4)]


def bits(key, counter, count):
    """(words of the stream, the counter after them)"""
    blocks = -(-count // 4)
    words = [w for i in range(blocks) for w in philox(plus(counter, i), key)]
    return words[:count], plus(counter, blocks)


def check():
    assert philox([0] * 4, [0, 0]) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox([M32] * 4, [M32] * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    assert bits([1, 0], [0] * 4, 6)[0][-1] == 0xDFC5CCBE
    assert bits([1, 0], [M32, M32, 0, 0], 5)[0] == [0xCD60644B, 0x892854E3, 0xCE8609EF, 0x1D7E96DD, 0x07071C12]


def add(family):
    check()
    starts = ([0] * 4, [M32, M32, 0, 0], [M32] * 4, [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344])
    for key in ([1, 0], [0xA4093822, 0x299F31D0]):
        for counter in starts:
            for shape in ((), (6,), (0,), (2, 3), (1, 4)):
                count = int(np.prod(shape))
                words, after = bits(key, counter, count)
                inputs = [tensor("u32", key), tensor("u32", counter)]
                family.case("rng_bits", inputs, [tensor("u32", words, shape), tensor("u32", after)], shape=list(shape))
                words, after = bits(key, counter, 2 * count)
                pairs = [low + (high << 32) for low, high in zip(words[::2], words[1::2], strict=True)]
                family.case(
                    "rng_bits",
                    inputs,
                    [tensor("u64", pairs, shape), tensor("u32", after)],
                    shape=list(shape),
                    dtype="u64",
                )
