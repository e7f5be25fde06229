/* SPDX-License-Identifier: Apache-2.0
 * What happens when memory ends: the n-th allocation of a whole life (open a model, run it, ask for reports, release
 * everything) fails, for n spread over all of them. Every time the answer is RLX_E_NO_MEMORY or a result made without
 * that memory, nothing is lost, and the next life is a good one. The program's malloc stands before libc's.
 *
 *   abi_memory MODEL.onnx
 */
#include <errno.h>
#include <rlx.h>
#include <stdio.h>
#include <stdlib.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);
void __libc_free(void *memory);

#define SEEN __attribute__((visibility("default"))) /* by the library, in place of libc's */

static long made, failing = -1, live; /* allocations so far, the one that fails, those not given back */

static int fails(void) {
  return made++ == failing;
}

static void *counted(void *memory) {
  live += memory != NULL;
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
  live += memory && !old;
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
  live -= memory != NULL;
  __libc_free(memory);
}

#define TRY(call) \
  if (!status) status = call

static rlx_code_t life(const char *path, char *why, size_t capacity) {
  static const int64_t dims[] = {3, 1, 16, 16}, batch = 2;
  static const char *const symbol = "batch";
  static float image[3 * 256];
  rlx_attrs_t *options = NULL;
  rlx_env_t *env = NULL;
  rlx_model_t *model = NULL;
  rlx_tensor_t *x = NULL, *y = NULL;
  rlx_compiled_t *program = NULL;
  rlx_exec_t *exec = NULL;
  rlx_blob_t *dispatch = NULL, *cache = NULL;
  rlx_status_t *status = rlx_attrs_create("threads=0", &options);
  TRY(rlx_env_create(options, NULL, &env));
  TRY(rlx_model_open(env, path, NULL, &model));
  TRY(rlx_tensor_copy_from(env, RLX_F32, dims, 4, image, sizeof image, &x));
  TRY(rlx_model_run(model, NULL, NULL, &x, 1, NULL, &y, 1, NULL));
  TRY(rlx_model_get(model, "cpu", &symbol, &batch, 1, &program));
  TRY(rlx_compiled_report(program, "dispatch", &dispatch));
  TRY(rlx_model_report(model, "cache", &cache));
  TRY(rlx_exec_create(program, NULL, &exec));
  TRY(rlx_exec_run(exec));
  rlx_exec_release(exec);
  rlx_blob_release(cache);
  rlx_blob_release(dispatch);
  rlx_compiled_release(program);
  rlx_tensor_release(y);
  rlx_tensor_release(x);
  rlx_model_release(model);
  rlx_env_release(env);
  rlx_attrs_release(options);
  return rlx_status_take(status, why, capacity);
}

int main(int argc, char **argv) {
  enum { kPoints = 400 };
  char why[1024];
  long total, before, point, refused = 0;
  if (argc != 2) return 2;
  life(argv[1], why, sizeof why); /* what is made once for all lives is made here */
  before = live;
  made = 0;
  if (life(argv[1], why, sizeof why) != RLX_OK || live != before) {
    printf("a life with memory: %s, %ld blocks lost\n", why, live - before);
    return 1;
  }
  total = made;
  for (point = 0; point < kPoints; point++) {
    rlx_code_t code;
    made = 0;
    failing = total * point / kPoints;
    code = life(argv[1], why, sizeof why);
    failing = -1;
    refused += code == RLX_E_NO_MEMORY;
    if ((code == RLX_OK || code == RLX_E_NO_MEMORY) && live == before) continue;
    printf("allocation %ld of %ld: %s, %ld blocks lost\n", total * point / kPoints, total, why, live - before);
    return 1;
  }
  printf("%d of %ld allocations failed, %ld times the life did\n", (int)kPoints, total, refused);
  return life(argv[1], why, sizeof why) == RLX_OK && refused > kPoints / 2 ? 0 : 1;
}
