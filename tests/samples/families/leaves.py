# SPDX-License-Identifier: Apache-2.0
"""Primitives 1-3: values that come with a run, from a param set, and out of the graph itself."""

from families.movement import source
from golden import PART, A, tensor_text


def literal(t):
    """The elements as the text form of graphs has them: complex ones in parentheses."""
    words = tensor_text(t).split(" : ")[1].split()
    if t.dtype in PART:
        words = [f"({re}, {im})" for re, im in zip(words[::2], words[1::2], strict=True)]
    return "{" + ", ".join(words) + "}"


def add(family):
    for dtype in A:
        for rows in (0, 1, 3):
            x = source(dtype, (rows, 2))
            family.case("input", [x], x, program=["graph (n) {", f"  x = input {dtype}[n,2]", "  output x", "}"])
        x = source(dtype, (3,))
        param = ["graph {", f"  w = param {dtype}[3]", "  output w", "}"]
        family.case("param", [], x, program=param, params={"w": x})
        constant = ["graph {", f"  c = constant {dtype}[3] {literal(x)}", "  output c", "}"]
        family.case("constant", [], x, program=constant)
    family.case("param", [], "RLX_E_STATE", program=param)  # it is not set
