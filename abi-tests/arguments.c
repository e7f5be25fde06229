/* SPDX-License-Identifier: Apache-2.0
 * Calls every function of rlx.h with right and wrong arguments, one and two wrong ones at a time (calls.inc, made from
 * the header). Whatever happens, the answer is a status with words, its outputs are zero, and nothing crashes.
 *
 * usage: arguments fuzz        all combinations; built with sanitizers it also sees every byte that is touched
 *        arguments contain     a library with test hooks: each entry throws once, and each throw becomes a status
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <rlx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kMaxParameters = 12 };
struct call {
  const char *name;
  void (*run)(const unsigned char *pick);
  int has_status; /* the result is a new status */
  int parameters;
  unsigned char choices[kMaxParameters];
};

/* ---- what the calls are made with: see new_fixture ---- */
static rlx_env_t *env;
static const rlx_device_t *device;
static rlx_tensor_t *tensor, *tensor_other;
static rlx_graph_t *graph;
static rlx_weights_t *weights;
static rlx_compiled_t *compiled;
static rlx_exec_t *exec;
static rlx_model_t *model;
static rlx_blob_t *blob;
static rlx_status_t *status;
static rlx_attrs_t *attrs, *attrs_unknown, *attrs_failed;
static rlx_fence_t *fence;
static rlx_value_t x, graph_x; /* the input of the last graph that new_graph made, and of `graph` */

static char *long_text;
static int64_t *dims_23, *dims_zero, *dims_negative, *dims_huge, *dims_open, *out_i64s;
static double *doubles, *out_f64s;
static size_t *slots_zero, *slots_bad;
static const char **names_x, **names_y, **names_batch, **names_null;
static rlx_value_t *values_x, *values_zero, *values_bad;
static rlx_tensor_t **tensors_good, **tensors_null;
static rlx_fence_t **fences_done, **fences_null;
static unsigned char *model_text, *zeros, *scratch;
static size_t model_bytes;
static char *out_text;
static rlx_host_t *host_block, *hosts[8];
static rlx_op_def_t *op_def_block, *op_defs[6];

/* ---- verdicts ---- */
static int failures, seen_failures_of_one;
static long calls;
static void (*test_throw)(int kind); /* of a library with test hooks */
static int throw_kind;               /* 0 while no throw is asked for */
static const char *throw_words;
static int throw_code;

static void fail(const char *function, const char *what) {
  failures++;
  if (seen_failures_of_one++ < 5) printf("FAILED %s: %s\n", function, what);
}

static void before_call(void) {
  calls++;
  if (throw_kind) test_throw(throw_kind);
}

static void after_call(const char *function) {
  (void)function;
  if (throw_kind) test_throw(0);
}

/* Whether every byte above 7f belongs to a character of UTF-8, which has a leading byte and one to three others. */
static int is_utf8(const char *text) {
  while (*text) {
    unsigned char first = (unsigned char)*text++;
    int more = first < 0x80 ? 0 : first < 0xc2 ? -1 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : first < 0xf5 ? 3 : -1;
    if (more < 0) return 0;
    for (; more > 0; more--)
      if (((unsigned char)*text++ & 0xc0) != 0x80) return 0;
  }
  return 1;
}

/* Returns whether the call succeeded, after releasing the status. */
static int after_status(const char *function, rlx_status_t *result) {
  char text[256];
  rlx_code_t code;
  after_call(function);
  if (!result) {
    if (throw_kind) fail(function, "an exception was swallowed: the result is success");
    return 1;
  }
  code = rlx_status_code(result);
  if (code <= 0 || code > RLX_E_CALLBACK) fail(function, "a status with an unknown code");
  if (!rlx_status_message(result)[0]) fail(function, "a status without words");
  if (!is_utf8(rlx_status_message(result))) fail(function, "a message that is not UTF-8");
  if (rlx_status_take(result, text, sizeof text) != code) fail(function, "rlx_status_take returned another code");
  if (!throw_kind && code == RLX_E_INTERNAL) fail(function, text);
  if (throw_kind && (code != throw_code || !strstr(text, throw_words))) fail(function, text);
  return 0;
}

static void must_be_zero(const char *function, const char *parameter, const void *block, size_t size, size_t count) {
  const unsigned char *bytes = block;
  char text[128];
  size_t i;
  if (count > 8) return; /* an absurd length: nothing may be touched */
  for (i = 0; i < size * count; i++)
    if (bytes[i]) {
      snprintf(text, sizeof text, "failed, but its output '%s' is not zero", parameter);
      fail(function, text);
      return;
    }
}

static void read_text(const char *text) {
  if (text && strlen(text) == (size_t)-1) abort(); /* for the sanitizer: every byte up to the NUL can be read */
}

static void require(rlx_status_t *result) {
  char text[512];
  if (rlx_status_take(result, text, sizeof text) == RLX_OK) return;
  printf("FAILED to make what the calls need: %s\n", text);
  exit(1);
}

static void count_free(void *user, void *data) {
  (void)user;
  (void)data;
}

/* ---- fixture ---- */
static void *copied(const void *from, size_t size) {
  void *block = malloc(size);
  memcpy(block, from, size);
  return block;
}
#define BLOCK(type, ...) copied((type[]){__VA_ARGS__}, sizeof((type[]){__VA_ARGS__}))

static rlx_attrs_t *new_attrs(void) {
  rlx_attrs_t *made;
  require(rlx_attrs_create("axis=1 op=gelu", &made));
  return made;
}

static void fill(rlx_value_t *values, rlx_value_t value) {
  int i;
  for (i = 0; i < 5; i++) values[i] = value;
}

/* x[batch,3] -> y = relu(x * w), w a param */
static rlx_graph_t *new_graph(void) {
  rlx_graph_t *made;
  int64_t x_dims[2], w_dims[2] = {3, 3};
  rlx_value_t w;
  require(rlx_graph_create(env, "fixture", &made));
  x_dims[0] = rlx_graph_dim(made, "batch", 1, 4);
  x_dims[1] = 3;
  x = rlx_graph_input(made, "x", RLX_F32, x_dims, 2);
  if (values_x) fill(values_x, x);
  w = rlx_graph_param(made, "w", RLX_F32, w_dims, 2);
  rlx_graph_output(made, "y", rlx_graph_unary(made, "relu", rlx_graph_matmul(made, x, w)));
  require(rlx_graph_status(made));
  return made;
}

static rlx_exec_t *new_exec(void) {
  rlx_exec_t *made;
  require(rlx_exec_create(compiled, NULL, &made));
  return made;
}

static rlx_host_t *new_host(uint32_t struct_size, size_t block, int tail) {
  rlx_host_t *host = calloc(1, block);
  host->struct_size = struct_size;
  host->log_level = RLX_LOG_OFF;
  if (block > sizeof *host) ((unsigned char *)host)[block - 1] = (unsigned char)tail;
  return host;
}

static void new_hosts(void) {
  uint32_t exact = sizeof(rlx_host_t);
  int i;
  hosts[0] = new_host(exact, exact, 0);
  hosts[1] = new_host(0, exact, 0);
  hosts[2] = new_host(8, exact, 0);
  hosts[3] = new_host(exact + 64, exact + 64, 0);
  hosts[4] = new_host(exact + 64, exact + 64, 1);
  hosts[5] = new_host(UINT32_MAX, exact, 0);
  hosts[6] = new_host(exact, exact, 0);
  hosts[7] = new_host(exact, exact, 0);
  hosts[6]->alloc = (void *(*)(void *, size_t, size_t, uint32_t))abort; /* half a pair: refused, never called */
  hosts[7]->thread_count = (uint32_t(*)(void *))abort;
  for (i = 0; i < 8; i++) hosts[i]->log_level = RLX_LOG_OFF;
  host_block = malloc(4096);
}

static rlx_op_def_t *new_op_def(uint32_t struct_size, size_t block, int tail) {
  rlx_op_def_t *def = calloc(1, block);
  def->struct_size = struct_size;
  def->name = "it";
  def->infer = (int32_t(*)(void *, rlx_opcall_t *))abort; /* no graph uses the op: never called */
  def->run = (int32_t(*)(void *, rlx_opcall_t *))abort;
  if (block > sizeof *def) ((unsigned char *)def)[block - 1] = (unsigned char)tail;
  return def;
}

static void new_op_defs(void) {
  uint32_t exact = sizeof(rlx_op_def_t);
  op_defs[0] = new_op_def(exact, exact, 0);
  op_defs[1] = new_op_def(8, exact, 0);
  op_defs[2] = new_op_def(exact + 64, exact + 64, 1);
  op_defs[3] = new_op_def(UINT32_MAX, exact, 0);
  op_defs[4] = new_op_def(exact, exact, 0);
  op_defs[5] = new_op_def(exact, exact, 0);
  op_defs[4]->name = NULL;
  op_defs[5]->run = NULL;
  op_def_block = malloc(4096);
}

static void new_arrays(void) {
  size_t i;
  long_text = malloc(70000);
  memset(long_text, 'a', 69999);
  long_text[69999] = 0;
  dims_23 = BLOCK(int64_t, 2, 3, 1, 1, 1, 1, 1, 1, 1);
  dims_zero = BLOCK(int64_t, 0, 3, 0, 0, 0, 0, 0, 0, 0);
  dims_negative = BLOCK(int64_t, -1, -5, -1, -1, -1, -1, -1, -1, -1);
  dims_huge = BLOCK(int64_t, INT64_MAX, (int64_t)1 << 40, 2, 2, 2, 2, 2, 2, 2);
  dims_open = BLOCK(int64_t, INT64_MIN, -((int64_t)1 << 50), 1, 1, 1, 1, 1, 1, 1);
  doubles = BLOCK(double, 0.5, NAN, INFINITY, 1e300, -0.0);
  out_i64s = calloc(8, sizeof *out_i64s);
  out_f64s = calloc(8, sizeof *out_f64s);
  out_text = calloc(1 << 17, 1); /* a capacity may be a lie: what is written is a message, never more than this */
  slots_zero = BLOCK(size_t, 0, 0, 0, 0, 0);
  slots_bad = BLOCK(size_t, 7, SIZE_MAX, 0, 1, 2);
  names_x = BLOCK(const char *, "x", "x", "x", "x", "x");
  names_y = BLOCK(const char *, "y", "y", "y", "y", "y");
  names_batch = BLOCK(const char *, "batch", "batch", "nothing", "", "x");
  names_null = BLOCK(const char *, NULL, NULL, NULL, NULL, NULL);
  zeros = calloc(model_bytes, 1);
  scratch = calloc(64, 1);
  tensors_good = calloc(5, sizeof *tensors_good);
  tensors_null = calloc(5, sizeof *tensors_null);
  for (i = 0; i < 5; i++) tensors_good[i] = tensor;
  values_x = BLOCK(rlx_value_t, x, x, x, x, x);
  values_zero = BLOCK(rlx_value_t, 0, 0, 0, 0, 0);
  values_bad = BLOCK(rlx_value_t, UINT64_MAX, 999, RLX_ABSENT, 1, 1);
}

static void new_fixture(void) {
  static const int64_t x_dims[2] = {2, 3}, w_dims[2] = {3, 3};
  rlx_attrs_t *no_threads;
  require(rlx_attrs_create("threads=0", &no_threads));
  require(rlx_env_create(no_threads, NULL, &env));
  rlx_attrs_release(no_threads);
  device = rlx_env_device(env, 0);
  require(rlx_tensor_create(env, NULL, RLX_F32, x_dims, 2, &tensor));
  require(rlx_tensor_create(env, NULL, RLX_F32, w_dims, 2, &tensor_other));
  require(rlx_weights_create(env, &weights));
  require(rlx_weights_put(weights, "w", tensor_other));
  graph = new_graph();
  graph_x = x;
  require(rlx_compile(graph, weights, device, NULL, &compiled));
  exec = new_exec();
  require(rlx_model_create(graph, weights, NULL, &model));
  require(rlx_graph_print(graph, "rlx", &blob));
  model_bytes = rlx_blob_size(blob);
  model_text = copied(rlx_blob_data(blob), model_bytes);
  require(rlx_fence_create(env, &fence));
  require(rlx_fence_signal(fence, NULL));
  fences_done = BLOCK(rlx_fence_t *, fence, fence);
  fences_null = BLOCK(rlx_fence_t *, NULL, NULL);
  attrs = new_attrs();
  require(rlx_attrs_create("no.such.option=1", &attrs_unknown));
  require(rlx_attrs_create(NULL, &attrs_failed));
  rlx_attrs_set_str(attrs_failed, NULL, NULL);
  status = rlx_env_find_device(env, "nothing", &(const rlx_device_t *){NULL});
  if (!status || !device) exit(printf("FAILED: no device, or one of the name 'nothing'\n"));
}

static void free_fixture(void) {
  void *blocks[] = {long_text,   dims_23,     dims_zero,  dims_negative, dims_huge,   dims_open,    doubles,
                    out_i64s,    out_f64s,    out_text,   slots_zero,    slots_bad,   names_x,      names_y,
                    names_batch, names_null,  zeros,      scratch,       model_text,  tensors_good, tensors_null,
                    values_x,    values_zero, values_bad, host_block,    fences_done, fences_null,  op_def_block};
  size_t i;
  for (i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
  for (i = 0; i < 8; i++) free(hosts[i]);
  for (i = 0; i < 6; i++) free(op_defs[i]);
  rlx_status_release(status);
  rlx_fence_release(fence);
  rlx_attrs_release(attrs_failed);
  rlx_attrs_release(attrs_unknown);
  rlx_attrs_release(attrs);
  rlx_blob_release(blob);
  rlx_env_release(env); /* first, on purpose: any order is right */
  rlx_model_release(model);
  rlx_exec_release(exec);
  rlx_compiled_release(compiled);
  rlx_graph_release(graph);
  rlx_weights_release(weights);
  rlx_tensor_release(tensor_other);
  rlx_tensor_release(tensor);
}

#include "calls.inc"

/* ---- the two ways to walk them ---- */
static void all_right(const struct call *call) {
  unsigned char pick[kMaxParameters] = {0};
  call->run(pick);
}

static void one_and_two_wrong(const struct call *call) {
  unsigned char pick[kMaxParameters];
  int i, j, a, b;
  all_right(call);
  for (i = 0; i < call->parameters; i++)
    for (a = 1; a < call->choices[i]; a++) {
      memset(pick, 0, sizeof pick);
      pick[i] = (unsigned char)a;
      call->run(pick);
      for (j = i + 1; j < call->parameters; j++)
        for (b = 1; b < call->choices[j]; b++) {
          pick[j] = (unsigned char)b;
          call->run(pick);
          pick[j] = 0;
        }
    }
}

static void each_throws_once(const struct call *call) {
  static const struct {
    int kind, code;
    const char *words;
  } kThrows[] = {
      {1, RLX_E_INTERNAL, "planted"}, {2, RLX_E_NO_MEMORY, "out of memory"}, {3, RLX_E_INTERNAL, "unknown type"}};
  size_t i;
  for (i = 0; i < sizeof kThrows / sizeof *kThrows; i++) {
    throw_kind = kThrows[i].kind;
    throw_code = kThrows[i].code;
    throw_words = kThrows[i].words;
    all_right(call);
    throw_kind = 0;
  }
}

int main(int argc, char **argv) {
  int contain = argc == 2 && strcmp(argv[1], "contain") == 0;
  size_t i, count = sizeof kCalls / sizeof *kCalls;
  if (!contain && (argc != 2 || strcmp(argv[1], "fuzz") != 0)) return printf("usage: arguments fuzz|contain\n"), 2;
  *(void **)&test_throw = dlsym(RTLD_DEFAULT, "rlx_test_throw");
  if (contain && !test_throw) return printf("FAILED: this library has no test hooks\n"), 1;
  new_fixture();
  new_arrays();
  new_hosts();
  new_op_defs();
  for (i = 0; i < count; i++) {
    seen_failures_of_one = 0;
    printf("%s\n", kCalls[i].name);
    fflush(stdout);
    (contain ? each_throws_once : one_and_two_wrong)(&kCalls[i]);
  }
  free_fixture();
  printf("%lu functions, %ld calls, %d failures\n", (unsigned long)count, calls, failures);
  return failures != 0 || count == 0;
}
