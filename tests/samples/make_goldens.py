# SPDX-License-Identifier: Apache-2.0
"""Writes the goldens of the ops: FAMILY.golden beside this file, computed by NumPy and SciPy alone.

    python make_goldens.py [FAMILY...]          (numpy, scipy, ml_dtypes as in ../peer/requirements.txt)

Each family is one module; golden.py describes the text. The op set's own list of golden values is asserted where these
modules compute the same thing, so that one misreading cannot pass both.
"""

import importlib
import pathlib
import sys

import numpy as np

from golden import Family

FAMILIES = [
    "leaves",
    "elementwise",
    "casts",
    "movement",
    "indexing",
    "reductions",
    "contractions",
    "blocks",
    "spectral",
    "linear_algebra",
    "random_bits",
    "composites",
    "functions",
    "rearrangements",
    "dynamic",
    "statistics",
    "regions",
    "layers",
    "attention",
    "resizing",
    "windows",
    "solvers",
    "drawn",
    "quantised",
    "gradients",
    "sequences",
    "losses",
    "transformers",
]


def main(names):
    folder = pathlib.Path(__file__).resolve().parent
    for name in names or FAMILIES:
        family = Family()
        with np.errstate(all="ignore"):
            importlib.import_module(f"families.{name}").add(family)
        text = "# Made by make_goldens.py; not edited by hand.\n\n" + "\n".join(family.lines)
        (folder / f"{name}.golden").write_text(text)
        print(f"{name}: {family.count} cases, {len(text) // 1024} KB")


if __name__ == "__main__":
    main(sys.argv[1:])
