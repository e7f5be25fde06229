# SPDX-License-Identifier: Apache-2.0
"""Reads rlx.h: every exported function with its result, its parameters and the comment above it.

The header is plain enough (one declaration per `RLX_API` or `RLX_MUST`) that no C parser is needed; what this reader
does not understand is an error, so that no function can slip past the tests.
"""
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Parameter:
    type: str  # "const char *", "rlx_env_t **", "size_t"
    name: str


@dataclass(frozen=True)
class Function:
    name: str
    result: str
    parameters: tuple
    comment: str  # "" if no comment ends on the line above
    must_use: bool


DECLARATION = re.compile(r"^(RLX_API|RLX_MUST) ([^;]*?)\b(rlx_\w+)\(([^;]*)\);", re.M)
COMMENT_ABOVE = re.compile(r"/\*((?:(?!\*/).)*)\*/\n\Z", re.S)


def _parameter(text):
    function_pointer = re.fullmatch(r"(.*)\(\*(\w+)\)(\(.*\))", text)
    if function_pointer:
        return Parameter(f"{function_pointer[1]}(*){function_pointer[3]}", function_pointer[2])
    match = re.fullmatch(r"(.*?[\s*])(\w+)", text)
    if not match:
        raise ValueError(f"rlx.h: cannot read the parameter '{text}'")
    return Parameter(match[1].strip(), match[2])


def read(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    functions = []
    for match in DECLARATION.finditer(text):
        macro, result, name, parameters = match.groups()
        flat = " ".join(parameters.split())
        listed = () if flat == "void" else tuple(_parameter(p.strip()) for p in flat.split(","))
        comment = COMMENT_ABOVE.search(text[: match.start()])
        functions.append(Function(name, " ".join(result.split()), listed, comment[1].strip() if comment else "",
                                  macro == "RLX_MUST"))
    declared = len(re.findall(r"^RLX_(?:API|MUST)\b", text, re.M))
    if declared != len(functions):
        raise ValueError(f"rlx.h: {declared} declarations, {len(functions)} of them readable")
    return functions
