#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ccache.sh CCACHE COMPILER ...: runs a compiler through ccache. Where a precompiled header is made, the old one goes
# first: ccache would take it for a file that the compiler reads, and give the old one back though a header has changed.
# And headers count with their comments and blanks: GCC keeps their sizes for "#pragma once", and would read a header
# again that has another one by now.
before=
for argument; do
  case $before$argument in -o*.gch | -o*.pch) rm -f "$argument"; export CCACHE_DEPEND=1 ;; esac
  before=$argument
done
# Unless told so, it caches nothing that a precompiled header went into.
CCACHE_SLOPPINESS=pch_defines,time_macros exec "$@"
