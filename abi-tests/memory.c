/* SPDX-License-Identifier: Apache-2.0
 * What happens when memory ends: the n-th allocation of a whole life (open a model, run it, ask for reports, release
 * everything) fails, for n spread over all of them. Every time the answer is RLX_E_NO_MEMORY or a result made without
 * that memory, nothing is lost, and the next life is a good one. The program's malloc stands before libc's.
 * Then the same of single calls on handles that stay: the first allocation of a call fails, the second, and so on until
 * none is left to fail, once on the caller's thread alone and once on any; and the same of the host's allocator. After
 * each failure the same call on the same handles succeeds.
 *
 *   abi_memory MODEL.onnx
 */
#include <rlx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failing_malloc.h"

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

/* ---- single calls ---- */

struct handles {
  rlx_env_t *env;
  rlx_graph_t *graph;
  rlx_weights_t *weights;
  rlx_model_t *model;
  rlx_compiled_t *program, *counter, *reference; /* the last two double four numbers */
  rlx_exec_t *exec;
  rlx_tensor_t *x, *w, *four;
  const char *path, *param;
};

static rlx_status_t *import_again(struct handles *h) {
  rlx_graph_t *graph = NULL;
  rlx_weights_t *weights = NULL;
  rlx_status_t *status = rlx_import_file(h->env, NULL, h->path, NULL, &graph, &weights);
  rlx_graph_release(graph);
  rlx_weights_release(weights);
  return status;
}

/* On the reference device, which converts what it reads and writes. */
static rlx_status_t *run_reference(struct handles *h) {
  rlx_tensor_t *y = NULL;
  rlx_status_t *status = rlx_compiled_run(h->reference, NULL, &h->four, 1, NULL, &y, 1);
  if (!status && ((const float *)rlx_tensor_data(y))[3] != 2)
    status = rlx_status_create(RLX_E_INTERNAL, "a run that succeeded has not written its output");
  rlx_tensor_release(y);
  return status;
}

/* Weights alone, with a header in JSON. */
static rlx_status_t *import_weights(struct handles *h) {
  static const char header[] =
      "{\"__metadata__\":{\"format\":\"pt\"},\"a\":{\"dtype\":\"U8\",\"shape\":[2,1],\"data_offsets\":[0,2]}}";
  static char file[8 + sizeof header + 1] = {(char)(sizeof header - 1)}; /* the length, the header, two bytes */
  rlx_weights_t *weights = NULL;
  rlx_status_t *status;
  memcpy(file + 8, header, sizeof header - 1);
  status = rlx_import_memory(h->env, "safetensors", file, sizeof file, NULL, NULL, NULL, NULL, &weights);
  rlx_weights_release(weights);
  return status;
}

static rlx_status_t *compile_again(struct handles *h) {
  rlx_compiled_t *program = NULL;
  rlx_attrs_t *options = NULL;
  rlx_status_t *status = rlx_attrs_create("dims.batch=4", &options);
  TRY(rlx_compile(h->graph, h->weights, NULL, options, &program));
  rlx_attrs_release(options);
  rlx_compiled_release(program);
  return status;
}

static rlx_status_t *run_program(struct handles *h) {
  rlx_tensor_t *y = NULL;
  rlx_status_t *status = rlx_compiled_run(h->program, NULL, &h->x, 1, NULL, &y, 1);
  rlx_tensor_release(y);
  return status;
}

static rlx_status_t *run_model(struct handles *h) {
  rlx_tensor_t *y = NULL;
  rlx_status_t *status = rlx_model_run(h->model, NULL, NULL, &h->x, 1, NULL, &y, 1, NULL);
  rlx_tensor_release(y);
  return status;
}

static rlx_status_t *run_new_model(struct handles *h) {
  rlx_model_t *model = NULL;
  rlx_tensor_t *y = NULL;
  rlx_status_t *status = rlx_model_create(h->graph, h->weights, NULL, &model);
  TRY(rlx_model_run(model, NULL, NULL, &h->x, 1, NULL, &y, 1, NULL));
  rlx_tensor_release(y);
  rlx_model_release(model);
  return status;
}

static rlx_status_t *set_params(struct handles *h) {
  rlx_status_t *status = rlx_compiled_set_param(h->program, h->param, h->w);
  TRY(rlx_model_set_param(h->model, h->param, h->w));
  return status;
}

static rlx_status_t *run_exec(struct handles *h) {
  rlx_exec_t *exec = NULL;
  rlx_status_t *status = rlx_exec_create(h->program, NULL, &exec);
  TRY(rlx_exec_bind(exec, RLX_INPUT, 0, h->x));
  TRY(rlx_exec_run(exec));
  rlx_exec_release(exec);
  TRY(rlx_exec_bind(h->exec, RLX_INPUT, 0, h->x));
  TRY(rlx_exec_run(h->exec));
  return status;
}

/* A link that could not be made has left nothing behind: the same call makes it. */
static rlx_status_t *link_slots(struct handles *h) {
  rlx_exec_t *exec = NULL;
  rlx_tensor_t *shown = NULL;
  rlx_status_t *status = rlx_exec_create(h->counter, NULL, &exec);
  TRY(rlx_exec_tensor(exec, RLX_INPUT, 0, &shown));
  TRY(rlx_exec_link(exec, 0, 0));
  if (shown && rlx_status_code(status) == RLX_E_NO_MEMORY) {
    rlx_status_release(status);
    status = rlx_exec_link(exec, 0, 0);
  }
  TRY(rlx_exec_run(exec));
  TRY(rlx_exec_run(exec));
  rlx_tensor_release(shown);
  rlx_exec_release(exec);
  return status;
}

/* Two runs in flight behind a fence of the caller's, on one context. */
static rlx_status_t *submit_runs(struct handles *h) {
  rlx_fence_t *gate = NULL, *done[2] = {NULL, NULL};
  rlx_status_t *status = rlx_fence_create(h->env, &gate), *opened = NULL;
  TRY(rlx_exec_submit(h->exec, &gate, 1, &done[0]));
  TRY(rlx_exec_submit(h->exec, &gate, 1, &done[1]));
  if (gate) opened = rlx_fence_signal(gate, NULL);
  TRY(opened);
  else rlx_status_release(opened);
  TRY(rlx_fence_wait(done, 2, 1, UINT64_MAX, NULL));
  TRY(rlx_fence_result(done[0], NULL));
  TRY(rlx_fence_result(done[1], NULL));
  rlx_fence_release(gate);
  rlx_fence_release(done[0]);
  rlx_fence_release(done[1]);
  return status;
}

/* A weight is there, with its name, or it is not. */
static rlx_status_t *put_weight(struct handles *h) {
  rlx_weights_t *weights = NULL;
  rlx_status_t *status = rlx_weights_create(h->env, &weights);
  TRY(rlx_weights_put(weights, h->param, h->w));
  if (rlx_weights_count(weights) != (size_t)(status == NULL)) {
    rlx_status_release(status);
    status = rlx_status_create(RLX_E_INTERNAL, "a put that failed has left a name");
  }
  rlx_weights_release(weights);
  return status;
}

/* Runs that were aborted leave the context as it was, even if there is no memory to take note of them. */
static rlx_status_t *run_after_failures(struct handles *h) {
  rlx_fence_t *gate = NULL, *done[2] = {NULL, NULL};
  rlx_status_t *status = rlx_fence_create(h->env, &gate);
  TRY(rlx_exec_submit(h->exec, &gate, 1, &done[0]));
  TRY(rlx_exec_submit(h->exec, &gate, 1, &done[1]));
  rlx_fence_release(gate); /* nobody can signal it any more */
  TRY(rlx_fence_wait(done, 2, 1, UINT64_MAX, NULL));
  TRY(rlx_exec_run(h->exec));
  rlx_fence_release(done[0]);
  rlx_fence_release(done[1]);
  return status;
}

static const struct {
  const char *name;
  rlx_status_t *(*call)(struct handles *h);
} kCalls[] = {{"import", import_again},
              {"import of weights", import_weights},
              {"compile", compile_again},
              {"rlx_compiled_run", run_program},
              {"rlx_model_run", run_model},
              {"a model's first run", run_new_model},
              {"set_param", set_params},
              {"rlx_weights_put", put_weight},
              {"rlx_exec_run", run_exec},
              {"rlx_exec_link", link_slots},
              {"rlx_exec_submit", submit_runs},
              {"a run after runs that failed", run_after_failures},
              {"a run of the reference", run_reference}};

/* The host's allocator: it counts and fails for itself. */
static long host_made, host_failing = -1, host_live;

static void *host_alloc(void *user, size_t size, size_t align, uint32_t kind) {
  void *memory;
  (void)user;
  (void)kind;
  if (__atomic_fetch_add(&host_made, 1, __ATOMIC_RELAXED) == __atomic_load_n(&host_failing, __ATOMIC_RELAXED))
    return NULL;
  memory = __libc_memalign(align, size);
  __atomic_fetch_add(&host_live, memory != NULL, __ATOMIC_RELAXED);
  return memory;
}

static void host_dealloc(void *user, void *data, size_t size, size_t align, uint32_t kind) {
  (void)user;
  (void)size;
  (void)align;
  (void)kind;
  __atomic_fetch_add(&host_live, -1, __ATOMIC_RELAXED);
  __libc_free(data);
}

/* Returns how often the call was refused, or -1. */
static long fail_each(struct handles *h, size_t which, long *counter, long *failing_one, const char *who) {
  enum { kMost = 200000 };
  char why[512];
  long n, refused = 0, step = 1;
  for (n = 0; n < kMost; n += step) {
    rlx_code_t code;
    __atomic_store_n(counter, 0, __ATOMIC_RELAXED);
    __atomic_store_n(failing_one, n, __ATOMIC_RELAXED);
    code = rlx_status_take(kCalls[which].call(h), why, sizeof why);
    __atomic_store_n(failing_one, -1, __ATOMIC_RELAXED);
    refused += code == RLX_E_NO_MEMORY;
    if (code != RLX_OK && code != RLX_E_NO_MEMORY && code != RLX_E_ABORTED) break;
    if (code == RLX_OK && __atomic_load_n(counter, __ATOMIC_RELAXED) <= n) return refused;
    if (rlx_status_take(kCalls[which].call(h), why, sizeof why) != RLX_OK) break;
    if (n == 150) step = 101; /* each of the first, and some of many */
  }
  printf("%s, allocation %ld of %s: %s\n", kCalls[which].name, n, who, why);
  return -1;
}

enum { kLost = 2 }; /* blocks are lost, and all else is right */

static int calls_with(const char *path, const char *threads, int all_threads, int by_host, int fails) {
  static const int64_t dims[] = {3, 1, 16, 16}, batch = 4;
  static const char *const symbol = "batch";
  char why[512] = "";
  long before = live, refused = 0;
  size_t i, rank;
  int64_t shape[8];
  rlx_host_t host;
  rlx_attrs_t *options = NULL, *none = NULL;
  rlx_value_t param;
  rlx_dtype_t dtype = 0;
  static const char counter[] = "graph {\n  s = input f32[4]\n  next = add(s, s)\n  output next\n}\n";
  rlx_graph_t *counting = NULL;
  const rlx_device_t *reference = NULL;
  struct handles h = {0};
  rlx_status_t *status = rlx_attrs_create(threads, &options);
  rlx_host_init(&host, sizeof host);
  host.alloc = host_alloc;
  host.dealloc = host_dealloc;
  h.path = path;
  TRY(rlx_env_create(options, by_host ? &host : NULL, &h.env));
  TRY(rlx_import_file(h.env, NULL, path, NULL, &h.graph, &h.weights));
  TRY(rlx_model_create(h.graph, h.weights, none, &h.model));
  TRY(rlx_model_get(h.model, "cpu", &symbol, &batch, 1, &h.program));
  rlx_compiled_release(h.program);
  rlx_attrs_release(options);
  TRY(rlx_attrs_create("dims.batch=4", &options));
  TRY(rlx_compile(h.graph, h.weights, NULL, options, &h.program));
  TRY(rlx_exec_create(h.program, NULL, &h.exec));
  TRY(rlx_import_memory(h.env, "rlx", counter, sizeof counter - 1, NULL, NULL, NULL, &counting, NULL));
  TRY(rlx_compile(counting, NULL, NULL, NULL, &h.counter));
  TRY(rlx_env_find_device(h.env, "reference", &reference));
  TRY(rlx_compile(counting, NULL, reference, NULL, &h.reference));
  TRY(rlx_tensor_create(h.env, NULL, RLX_F32, &batch, 1, &h.four));
  if (h.four) ((float *)rlx_tensor_data(h.four))[3] = 1;
  rlx_graph_release(counting);
  TRY(rlx_tensor_create(h.env, NULL, RLX_F32, dims, 4, &h.x));
  h.param = rlx_graph_name(h.graph, RLX_PARAM, 0);
  param = rlx_graph_find(h.graph, RLX_PARAM, h.param);
  TRY(rlx_graph_value_info(h.graph, param, &dtype, shape, 8, &rank));
  TRY(rlx_tensor_create(h.env, NULL, dtype, shape, rank, &h.w));
  if (rlx_status_take(status, why, sizeof why) != RLX_OK) return printf("handles: %s\n", why), 1;
  counts_all = all_threads;
  is_caller = 1;
  for (i = 0; i < sizeof kCalls / sizeof kCalls[0]; i++) {
    long more = !fails    ? rlx_status_take(kCalls[i].call(&h), why, sizeof why) == RLX_OK
                : by_host ? fail_each(&h, i, &host_made, &host_failing, "the host")
                          : fail_each(&h, i, &made, &failing, all_threads ? "any thread" : "the caller");
    if (more < 0) return 1;
    refused += more;
  }
  counts_all = 1;
  is_caller = 0;
  rlx_tensor_release(h.w);
  rlx_tensor_release(h.x);
  rlx_exec_release(h.exec);
  rlx_tensor_release(h.four);
  rlx_compiled_release(h.reference);
  rlx_compiled_release(h.counter);
  rlx_compiled_release(h.program);
  rlx_model_release(h.model);
  rlx_weights_release(h.weights);
  rlx_graph_release(h.graph);
  rlx_env_release(h.env);
  rlx_attrs_release(options);
  printf("%s, %s: %ld calls refused, %ld blocks lost, %ld of the host\n", threads,
         by_host       ? "the host's allocator"
         : all_threads ? "any thread"
                       : "the caller's thread",
         refused, live - before, host_live);
  return host_live != 0 || (fails && refused == 0) ? 1 : live != before ? kLost : 0;
}

/* The C library keeps the stacks of threads that have ended, with a block each; how many of them depends on how long
 * they were there together. What the library itself loses it loses every time. */
static int calls_lose_nothing(const char *path, const char *threads, int all_threads, int by_host) {
  int turn, result = kLost;
  for (turn = 0; turn < 4 && result == kLost; turn++) result = calls_with(path, threads, all_threads, by_host, 1);
  return result;
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
  if (life(argv[1], why, sizeof why) != RLX_OK || refused <= kPoints / 2) return 1;
  calls_with(argv[1], "threads=2", 1, 0, 0); /* what is made once for all is made here */
  return calls_with(argv[1], "threads=0", 1, 0, 1) + calls_lose_nothing(argv[1], "threads=2", 0, 0) +
         calls_lose_nothing(argv[1], "threads=2", 1, 0) + calls_lose_nothing(argv[1], "threads=2", 1, 1);
}
