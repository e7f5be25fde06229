# SPDX-License-Identifier: Apache-2.0
"""Writes a program, valid C and C++, that takes the address of every function of rlx.h and calls one.

usage: generate_link.py rlx.h link.c
"""
import sys

import header


def main(header_path, out_path):
    functions = header.read(header_path)
    rows = "\n".join(f"    (function)&{f.name}," for f in functions)
    with open(out_path, "w", encoding="utf-8") as file:
        file.write(f"""/* Made by generate_link.py from rlx.h. */
#include <rlx.h>
#include <stdio.h>

typedef void (*function)(void);
static function volatile kFunctions[] = {{
{rows}
}};

int main(void) {{
  size_t i, linked = 0;
  for (i = 0; i < sizeof kFunctions / sizeof *kFunctions; i++) linked += kFunctions[i] != 0;
  printf("%lu of {len(functions)} functions linked, librlx %s\\n", (unsigned long)linked, rlx_version_string());
  return linked != {len(functions)} || rlx_version() != RLX_VERSION;
}}
""")


if __name__ == "__main__":
    main(*sys.argv[1:])
