/* SPDX-License-Identifier: Apache-2.0 */
/* custom_op.c - an op of one's own: the running sum of a vector, on any number of elements.
 *     custom_op 1 2 3.5
 * The library asks `infer` for the shape of the result, once for all sizes, and calls `run` in every run. */
#include <rlx.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_NUMBERS 64

static void check(rlx_status_t* status) {
  char why[1024];
  if (rlx_status_take(status, why, sizeof why) == RLX_OK) return;
  fprintf(stderr, "custom_op: %s\n", why);
  exit(1);
}

/* The result is as the input. Its size may be open: then it is a token, which is copied as a number would be. */
static int32_t infer(void* user, rlx_opcall_t* call) {
  const rlx_tensor_t* x = rlx_opcall_tensor(call, RLX_INPUT, 0);
  char why[1024];
  rlx_status_t* status;
  rlx_code_t code;
  int64_t n;
  (void)user;
  if (rlx_tensor_shape(x, &n, 1) != 1) return rlx_opcall_fail(call, RLX_E_SHAPE, "takes a vector");
  if (rlx_tensor_dtype(x) != RLX_F32) return rlx_opcall_fail(call, RLX_E_DTYPE, "takes f32");
  status = rlx_opcall_set_shape(call, 0, RLX_F32, &n, 1);
  if (!status) return RLX_CB_OK;
  code = rlx_status_take(status, why, sizeof why);
  return rlx_opcall_fail(call, code, why);
}

static int32_t run(void* user, rlx_opcall_t* call) {
  const rlx_tensor_t* in = rlx_opcall_tensor(call, RLX_INPUT, 0);
  const float* x = rlx_tensor_data(in);
  float *y = rlx_tensor_data(rlx_opcall_tensor(call, RLX_OUTPUT, 0)), sum = 0;
  int64_t n, i;
  (void)user;
  (void)rlx_tensor_shape(in, &n, 1);
  for (i = 0; i < n; i++) y[i] = sum += x[i];
  return RLX_CB_OK;
}

int main(int argc, char** argv) {
  float numbers[MAX_NUMBERS];
  int64_t n = argc - 1, size, i;
  rlx_env_t* env;
  rlx_graph_t* graph;
  rlx_model_t* model;
  rlx_tensor_t *in, *out;
  rlx_value_t x, y;
  rlx_op_def_t def;

  if (n > MAX_NUMBERS) n = MAX_NUMBERS;
  for (i = 0; i < n; i++) numbers[i] = (float)atof(argv[1 + i]);

  check(rlx_env_create(NULL, NULL, &env));
  rlx_op_def_init(&def, sizeof def);
  def.name = "example.running_sum";
  def.infer = infer;
  def.run = run;
  check(rlx_env_register_op(env, &def));

  check(rlx_graph_create(env, "running sum", &graph));
  size = rlx_graph_dim(graph, "n", 0, MAX_NUMBERS);
  x = rlx_graph_input(graph, "x", RLX_F32, &size, 1);
  y = rlx_graph_op(graph, "custom name=example.running_sum", &x, 1, NULL);
  rlx_graph_output(graph, "y", y);
  check(rlx_model_create(graph, NULL, NULL, &model));

  check(rlx_tensor_copy_from(env, RLX_F32, &n, 1, numbers, (size_t)n * sizeof *numbers, &in));
  check(rlx_model_run(model, NULL, NULL, &in, 1, NULL, &out, 1, NULL));
  for (i = 0; i < n; i++) printf("%g\n", (double)((const float*)rlx_tensor_data(out))[i]);

  rlx_tensor_release(out);
  rlx_tensor_release(in);
  rlx_model_release(model);
  rlx_graph_release(graph);
  rlx_env_release(env);
  return 0;
}
