/* SPDX-License-Identifier: Apache-2.0
 * The program's malloc, which stands before libc's: it counts, and fails where a test wants it to. */
#pragma once

#include <errno.h>
#include <stdlib.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);
void __libc_free(void *memory);

#define SEEN __attribute__((visibility("default"))) /* by the library, in place of libc's */

static long made, failing = -1, live; /* allocations so far, the one that fails, those not given back */
static int fails_on;                  /* all that come after it fail too */
static int counts_all = 1;            /* threads, or only the one whose flag is set */
static _Thread_local int is_caller;

static int fails(void) {
  long first, now;
  if (!__atomic_load_n(&counts_all, __ATOMIC_RELAXED) && !is_caller) return 0;
  first = __atomic_load_n(&failing, __ATOMIC_RELAXED);
  now = __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED);
  return now == first || (fails_on && first >= 0 && now > first);
}

static void count_block(long change) {
  __atomic_fetch_add(&live, change, __ATOMIC_RELAXED);
}

static void *counted(void *memory) {
  count_block(memory != NULL);
  return memory;
}

SEEN void *malloc(size_t bytes) {
  return fails() ? NULL : counted(__libc_malloc(bytes));
}

SEEN void *calloc(size_t count, size_t bytes) {
  return fails() ? NULL : counted(__libc_calloc(count, bytes));
}

SEEN void *realloc(void *old, size_t bytes) {
  void *memory = fails() ? NULL : __libc_realloc(old, bytes);
  count_block(memory && !old);
  return memory;
}

SEEN void *aligned_alloc(size_t align, size_t bytes) {
  return fails() ? NULL : counted(__libc_memalign(align, bytes));
}

SEEN int posix_memalign(void **out, size_t align, size_t bytes) {
  *out = fails() ? NULL : counted(__libc_memalign(align, bytes));
  return *out ? 0 : ENOMEM;
}

SEEN void free(void *memory) {
  count_block(-(memory != NULL));
  __libc_free(memory);
}
