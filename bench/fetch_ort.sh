#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the path of ONNX Runtime's C library, which lies in its Python wheel; fetches the wheel once into the cache.
set -eu
version=1.31.1
folder=${XDG_CACHE_HOME:-$HOME/.cache}/rlx/onnxruntime-$version
library=$folder/onnxruntime/capi/libonnxruntime.so.$version
if [ ! -f "$library" ]; then
  echo "fetching onnxruntime $version into $folder" >&2
  wheel=$(mktemp -d)
  trap 'rm -rf "$wheel"' EXIT
  python3 -m pip download -q --no-deps --only-binary=:all: --dest "$wheel" "onnxruntime==$version" >&2
  mkdir -p "$folder"
  python3 -m zipfile -e "$wheel"/onnxruntime-*.whl "$folder"
fi
echo "$library"
