/* SPDX-License-Identifier: Apache-2.0
 * What a call leaves behind that memory did not suffice for: everything as it was. The first allocation of the call
 * fails, the second, and so on until none is left to fail; once it alone, and once all that follow too. Each time the
 * handles are new ones, and later calls show what they have become.
 */
#include <rlx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "failing_malloc.h"

static char why[1024];
static const char *scene;
static long nth; /* of the allocations */
static int problems;

static void problem(const char *text, double got) {
  printf("%s, allocation %ld%s: %s (%g): %s\n", scene, nth, fails_on ? " and all after it" : "", text, got, why);
  if (++problems >= 10) exit(1);
}

/* A call that has all the memory that it wants. */
#define OK(call)                                            \
  do {                                                      \
    if (rlx_status_take(call, why, sizeof why) != RLX_OK) { \
      problem(#call, 0);                                    \
      exit(1);                                              \
    }                                                       \
  } while (0)

#define EXPECT(condition, got) \
  if (!(condition)) problem(#condition, got)

/* Begins what may fail. */
static void begin(void) {
  made = 0;
  is_caller = 1;
  failing = nth;
}

/* Ends it. Returns whether memory has sufficed. */
static int ended(rlx_status_t *status) {
  rlx_code_t code;
  failing = -1;
  is_caller = 0;
  code = rlx_status_take(status, why, sizeof why);
  EXPECT(code == RLX_OK || code == RLX_E_NO_MEMORY, code);
  return code == RLX_OK;
}

static rlx_attrs_t *attrs(const char *text) {
  rlx_attrs_t *made_of_it;
  OK(rlx_attrs_create(text, &made_of_it));
  return made_of_it;
}

static rlx_env_t *env_of(const char *text) {
  rlx_attrs_t *options = attrs(text);
  rlx_env_t *env;
  OK(rlx_env_create(options, NULL, &env));
  rlx_attrs_release(options);
  return env;
}

static rlx_graph_t *graph_of(rlx_env_t *env, const char *text) {
  rlx_graph_t *graph;
  OK(rlx_import_memory(env, "rlx", text, strlen(text), NULL, NULL, NULL, &graph, NULL));
  return graph;
}

/* With `value` in every place. */
static rlx_tensor_t *filled(rlx_env_t *env, const int64_t *dims, size_t rank, float value) {
  rlx_tensor_t *tensor;
  size_t i;
  OK(rlx_tensor_create(env, NULL, RLX_F32, dims, rank, &tensor));
  for (i = 0; i < rlx_tensor_bytes(tensor) / sizeof value; i++) ((float *)rlx_tensor_data(tensor))[i] = value;
  return tensor;
}

static rlx_tensor_t *row(rlx_env_t *env, int64_t n, float value) {
  return filled(env, &n, 1, value);
}

static rlx_tensor_t *square(rlx_env_t *env, float value) {
  static const int64_t dims[] = {64, 64};
  return filled(env, dims, 2, value);
}

static void put(rlx_weights_t *weights, const char *name, rlx_tensor_t *tensor) {
  OK(rlx_weights_put(weights, name, tensor));
  rlx_tensor_release(tensor);
}

static void set(rlx_model_t *model, const char *name, rlx_tensor_t *tensor) {
  OK(rlx_model_set_param(model, name, tensor));
  rlx_tensor_release(tensor);
}

/* The first element of the output. */
static float first_of(rlx_tensor_t *y) {
  float value = *(const float *)rlx_tensor_data(y);
  rlx_tensor_release(y);
  return value;
}

/* The model's answer to n ones. */
static float answer(rlx_env_t *env, rlx_model_t *model, int64_t n) {
  rlx_tensor_t *x = row(env, n, 1), *y;
  OK(rlx_model_run(model, NULL, NULL, &x, 1, NULL, &y, 1, NULL));
  rlx_tensor_release(x);
  return first_of(y);
}

static void change_policy(rlx_model_t *model) {
  rlx_attrs_t *strict = attrs("math=strict");
  OK(rlx_model_set_policy(model, strict));
  rlx_attrs_release(strict);
}

/* ---- scenes: each returns whether the call had an allocation left to fail ---- */

/* Memory that is given back is either kept for later or freed. */
static int release_of_a_large_tensor(void) {
  rlx_env_t *env = env_of("threads=0");
  rlx_tensor_t *large = row(env, 1 << 15, 1);
  int64_t now, kept;
  long used;
  begin();
  rlx_tensor_release(large);
  ended(NULL);
  used = made;
  OK(rlx_env_stat(env, "memory.tensor.now", &now));
  EXPECT(now == 0, (double)now);
  OK(rlx_env_stat(env, "memory.kept", &kept));
  EXPECT((kept > 0) == (used <= nth), (double)kept);
  rlx_env_release(env);
  return used > nth;
}

static const char line[] =
    "graph {\n a = param f32[2]\n b = param f32[2]\n x = input f32[2]\n t = mul(a, x)\n y = add(t, b)\n output y\n}\n";

/* A param of a model is set for all devices and policies, or for none. */
static int set_param_of(int has_run) {
  rlx_env_t *env = env_of("threads=0");
  rlx_graph_t *graph = graph_of(env, line);
  rlx_weights_t *weights;
  rlx_model_t *model;
  rlx_tensor_t *ten = row(env, 2, 10);
  int is_set;
  long used;
  OK(rlx_weights_create(env, &weights));
  put(weights, "a", row(env, 2, 1));
  put(weights, "b", row(env, 2, 1));
  OK(rlx_model_create(graph, weights, NULL, &model));
  if (has_run) EXPECT(answer(env, model, 2) == 2, 0);
  begin();
  is_set = ended(rlx_model_set_param(model, "a", ten));
  used = made;
  EXPECT(answer(env, model, 2) == (is_set ? 11 : 2), answer(env, model, 2));
  change_policy(model);
  EXPECT(answer(env, model, 2) == (is_set ? 11 : 2), answer(env, model, 2));
  set(model, "b", row(env, 2, 5));
  EXPECT(answer(env, model, 2) == (is_set ? 15 : 6), answer(env, model, 2));
  set(model, "a", row(env, 2, 20));
  EXPECT(answer(env, model, 2) == 25, answer(env, model, 2));
  change_policy(model);
  EXPECT(answer(env, model, 2) == 25, answer(env, model, 2));
  rlx_tensor_release(ten);
  rlx_model_release(model);
  rlx_weights_release(weights);
  rlx_graph_release(graph);
  rlx_env_release(env);
  return used > nth;
}

static int set_param_of_a_new_model(void) {
  return set_param_of(0);
}

static int set_param_of_a_model_that_has_run(void) {
  return set_param_of(1);
}

static int set_policy(void) {
  rlx_env_t *env = env_of("threads=0");
  rlx_graph_t *graph = graph_of(env, "graph (n) {\n x = input f32[n]\n y = neg(x)\n output y\n}\n");
  rlx_model_t *model;
  rlx_blob_t *cache;
  int64_t n;
  long used;
  OK(rlx_model_create(graph, NULL, NULL, &model));
  for (n = 3; n < 2000; n *= 8) EXPECT(answer(env, model, n) == -1, 0);
  begin();
  ended(rlx_model_set_policy(model, NULL));
  used = made;
  OK(rlx_model_report(model, "cache", &cache));
  rlx_blob_release(cache);
  for (n = 3; n < 2000; n *= 8) EXPECT(answer(env, model, n) == -1, 0);
  rlx_model_release(model);
  rlx_graph_release(graph);
  rlx_env_release(env);
  return used > nth;
}

/* The first use of the pool, and of the queue. */
static int first_use_by(rlx_status_t *(*call)(rlx_exec_t *exec)) {
  rlx_env_t *env = env_of("threads=2");
  rlx_graph_t *graph =
      graph_of(env, "graph {\n x = input f32[200000]\n t = sin(x)\n y = reduce(t) fn=sum\n output y\n}\n");
  rlx_compiled_t *program;
  rlx_exec_t *exec;
  rlx_tensor_t *x, *y;
  long used;
  OK(rlx_compile(graph, NULL, NULL, NULL, &program));
  OK(rlx_exec_create(program, NULL, &exec));
  OK(rlx_exec_tensor(exec, RLX_INPUT, 0, &x));
  memset(rlx_tensor_data(x), 0, rlx_tensor_bytes(x));
  OK(rlx_exec_tensor(exec, RLX_OUTPUT, 0, &y));
  begin();
  ended(call(exec));
  used = made;
  *(float *)rlx_tensor_data(y) = 1;
  OK(call(exec));
  EXPECT(*(const float *)rlx_tensor_data(y) == 0, *(const float *)rlx_tensor_data(y));
  rlx_tensor_release(x);
  rlx_tensor_release(y);
  rlx_exec_release(exec);
  rlx_compiled_release(program);
  rlx_graph_release(graph);
  rlx_env_release(env);
  return used > nth;
}

static rlx_status_t *submit_and_wait(rlx_exec_t *exec) {
  rlx_fence_t *done;
  rlx_status_t *status = rlx_exec_submit(exec, NULL, 0, &done);
  if (!status) status = rlx_fence_wait(&done, 1, 1, UINT64_MAX, NULL);
  if (!status) status = rlx_fence_result(done, NULL);
  rlx_fence_release(done);
  return status;
}

static int first_run(void) {
  return first_use_by(rlx_exec_run);
}

static int first_submit(void) {
  return first_use_by(submit_and_wait);
}

static const char product[] =
    "graph {\n w = param f32[64,64]\n v = param f32[64,64]\n x = input f32[1,64]\n t = matmul(x, w)\n z = tanh(t)\n"
    " y = matmul(z, v)\n output t\n output y\n}\n";

static rlx_weights_t *weights_of_product(rlx_env_t *env, float value) {
  rlx_weights_t *weights;
  OK(rlx_weights_create(env, &weights));
  put(weights, "w", square(env, value));
  put(weights, "v", square(env, value));
  return weights;
}

static void check_weight(rlx_weights_t *weights, const char *name, int is_there) {
  rlx_tensor_t *found;
  rlx_code_t code = rlx_status_take(rlx_weights_get(weights, name, &found), why, sizeof why);
  EXPECT(code == (is_there ? RLX_OK : RLX_E_STATE), code);
  rlx_tensor_release(found);
}

/* A program drops the weights that it was compiled from; a compile that failed drops none. */
static int compile_that_drops(void) {
  rlx_env_t *env = env_of("threads=0");
  rlx_graph_t *graph = graph_of(env, product);
  rlx_weights_t *weights = weights_of_product(env, 1);
  rlx_attrs_t *options = attrs("weights.drop=true");
  rlx_compiled_t *program;
  int is_made;
  long used;
  begin();
  is_made = ended(rlx_compile(graph, weights, NULL, options, &program));
  used = made;
  check_weight(weights, "w", !is_made);
  check_weight(weights, "v", !is_made);
  rlx_compiled_release(program);
  rlx_attrs_release(options);
  rlx_weights_release(weights);
  rlx_graph_release(graph);
  rlx_env_release(env);
  return used > nth;
}

static int set_params_that_drops(void) {
  static const int64_t dims[] = {1, 64};
  rlx_env_t *env = env_of("threads=0");
  rlx_graph_t *graph = graph_of(env, product);
  rlx_weights_t *weights = weights_of_product(env, 1), *others = weights_of_product(env, 2);
  rlx_attrs_t *options = attrs("weights.drop=true");
  rlx_tensor_t *x = filled(env, dims, 2, 1), *y;
  rlx_compiled_t *program;
  int is_set;
  long used;
  float value;
  OK(rlx_compile(graph, weights, NULL, options, &program));
  begin();
  is_set = ended(rlx_compiled_set_params(program, others));
  used = made;
  OK(rlx_compiled_run(program, NULL, &x, 1, NULL, &y, 1));
  value = first_of(y);
  EXPECT(value == (is_set ? 128 : 64), value);
  check_weight(others, "w", !is_set);
  check_weight(others, "v", !is_set);
  rlx_tensor_release(x);
  rlx_compiled_release(program);
  rlx_attrs_release(options);
  rlx_weights_release(others);
  rlx_weights_release(weights);
  rlx_graph_release(graph);
  rlx_env_release(env);
  return used > nth;
}

/* A model takes a weight when it has compiled with it. What fails before that pins nothing: from the first allocation
 * after which the old weight stays, it stays after all others. */
static int first_run_of_a_model(void) {
  static int has_taken;
  rlx_env_t *env = env_of("threads=0");
  rlx_graph_t *graph = graph_of(env, line);
  rlx_weights_t *weights;
  rlx_model_t *model;
  rlx_tensor_t *x = row(env, 2, 1), *y;
  int has_run;
  long used;
  float value;
  if (nth == 0) has_taken = 0;
  OK(rlx_weights_create(env, &weights));
  put(weights, "a", row(env, 2, 1));
  put(weights, "b", row(env, 2, 1));
  OK(rlx_model_create(graph, weights, NULL, &model));
  begin();
  has_run = ended(rlx_model_run(model, NULL, NULL, &x, 1, NULL, &y, 1, NULL));
  used = made;
  rlx_tensor_release(y);
  put(weights, "a", row(env, 2, 7));
  value = answer(env, model, 2);
  EXPECT(value == 2 || (value == 8 && !has_run && !has_taken), value);
  has_taken |= value == 2 && !has_run;
  rlx_tensor_release(x);
  rlx_model_release(model);
  rlx_weights_release(weights);
  rlx_graph_release(graph);
  rlx_env_release(env);
  return used > nth;
}

/* Whether what is listed under a kind is what is found by its name. */
static void check_found(const rlx_graph_t *graph, int32_t kind, const char *name) {
  size_t i, count = rlx_graph_count(graph, kind), listed = 0;
  for (i = 0; i < count; i++) listed += strcmp(rlx_graph_name(graph, kind, i), name) == 0;
  EXPECT(listed <= 1, (double)listed);
  EXPECT((rlx_graph_find(graph, kind, name) != 0) == (listed == 1), (double)listed);
}

/* A graph goes on after a call that failed: each of its calls is made again, with enough memory. The two additions need
 * conditions: n1 = n2, and n3 = n4 where one is known already. */
static int building(void) {
  static const char *const sizes[] = {"n1", "n2", "n3", "n4"}, *const names[] = {"a", "b", "c", "d"};
  rlx_env_t *env = env_of("threads=0");
  rlx_graph_t *graph;
  int64_t two = 2;
  long used = 0;
  int round, i;
  OK(rlx_graph_create(env, "built", &graph));
  for (round = 0; round < 2; round++) {
    rlx_value_t x[4];
    if (round == 0) begin();
    for (i = 0; i < 4; i++) {
      int64_t n = rlx_graph_dim(graph, sizes[i], 1, 64);
      x[i] = rlx_graph_input(graph, names[i], RLX_F32, &n, 1);
    }
    rlx_graph_output(graph, "y", rlx_graph_binary(graph, "add", x[0], x[1]));
    rlx_graph_output(graph, "z", rlx_graph_binary(graph, "add", x[2], x[3]));
    rlx_graph_param(graph, "p", RLX_F32, &two, 1);
    if (round > 0) continue;
    used = made;
    ended(rlx_graph_status(graph));
    for (i = 0; i < 4; i++) check_found(graph, RLX_INPUT, names[i]);
  }
  for (i = 0; i < 4; i++) check_found(graph, RLX_INPUT, names[i]);
  check_found(graph, RLX_PARAM, "p");
  check_found(graph, RLX_OUTPUT, "y");
  check_found(graph, RLX_OUTPUT, "z");
  rlx_graph_release(graph);
  rlx_env_release(env);
  return used > nth;
}

/* What a call says does not depend on how much memory there is. */
static int saying(void) {
  static const char text[] = "graph {\n x = input f32[2]\n c = constant f32[1] {1}\n y = add(x, c)\n output y\n}";
  rlx_env_t *env = env_of("threads=0");
  rlx_graph_t *graph = graph_of(env, text);
  rlx_model_t *model;
  rlx_blob_t *printed, *report;
  long used;
  OK(rlx_model_create(graph, NULL, NULL, &model));
  begin();
  if (ended(rlx_graph_print(graph, "rlx", &printed))) EXPECT(strstr(rlx_blob_data(printed), "{1}") != NULL, 0);
  used = made;
  begin();
  if (ended(rlx_model_report(model, "devices", &report)))
    EXPECT(strstr(rlx_blob_data(report), "out of memory") == NULL, 0);
  if (made > used) used = made;
  rlx_blob_release(printed);
  rlx_blob_release(report);
  rlx_model_release(model);
  rlx_graph_release(graph);
  rlx_env_release(env);
  return used > nth;
}

static const struct {
  const char *name;
  int (*play)(void);
  long threads; /* libc keeps the stacks of ended ones, with a block for each */
} scenes[] = {{"release of a large tensor", release_of_a_large_tensor},
              {"set_param of a new model", set_param_of_a_new_model},
              {"set_param of a model that has run", set_param_of_a_model_that_has_run},
              {"set_policy", set_policy},
              {"first run", first_run, 2},
              {"first submit", first_submit, 2},
              {"first run of a model", first_run_of_a_model},
              {"set_params with weights.drop", set_params_that_drops},
              {"compile with weights.drop", compile_that_drops},
              {"building a graph", building},
              {"printing and reporting", saying}};

/* In a process of its own: what libc loads when it is first needed is not there yet. */
static int play(size_t which) {
  long before, lost;
  scene = scenes[which].name;
  nth = 1000000;
  scenes[which].play(); /* what is made once for all is made here */
  before = live;
  for (nth = 0; scenes[which].play();) nth++;
  lost = live - before;
  printf("%s: %ld allocations%s\n", scene, nth, fails_on ? ", each with all after it" : "");
  if (lost > scenes[which].threads) problem("blocks are lost", (double)lost);
  return problems > 0;
}

int main(void) {
  size_t i;
  int result = 0;
  counts_all = 0;
  for (i = 0; i < sizeof scenes / sizeof scenes[0]; i++)
    for (fails_on = 0; fails_on < 2; fails_on++) {
      int status = 1;
      pid_t child = fork();
      if (child == 0) exit(play(i));
      if (child < 0 || waitpid(child, &status, 0) != child || status != 0) result = 1;
      if (WIFSIGNALED(status)) printf("%s: signal %d\n", scenes[i].name, WTERMSIG(status));
      fflush(stdout);
    }
  return result;
}
