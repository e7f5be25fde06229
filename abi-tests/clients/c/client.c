/* SPDX-License-Identifier: Apache-2.0
 * The client of ../README.md in C89: one input, any number of outputs, f32. */
#include <rlx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANK 8

static char why[1024];
#define TRY(call)                                            \
  if (rlx_status_take(call, why, sizeof why) != RLX_OK) {    \
    fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, why); \
    exit(1);                                                 \
  }

/* Prints "input image: f32 [batch,1,16,16]". */
static void print_value(const rlx_graph_t *graph, int32_t kind, const char *word, size_t index) {
  const char *name = rlx_graph_name(graph, kind, index);
  int64_t dims[MAX_RANK];
  size_t rank, i;
  rlx_dtype_t dtype;
  char text[128];
  TRY(rlx_graph_value_info(graph, rlx_graph_find(graph, kind, name), &dtype, dims, MAX_RANK, &rank));
  printf("%s %s: %s [", word, name, rlx_dtype_name(dtype));
  for (i = 0; i < rank; i++) {
    rlx_graph_dim_text(graph, dims[i], text, sizeof text);
    printf("%s%s", i ? "," : "", text);
  }
  printf("]\n");
}

/* An input of the model in which every open size is `size`. */
static rlx_tensor_t *make_input(rlx_env_t *env, const rlx_graph_t *graph, int64_t size) {
  int64_t dims[MAX_RANK];
  size_t rank, i, count = 1;
  rlx_dtype_t dtype;
  rlx_tensor_t *tensor;
  float *data;
  TRY(rlx_graph_value_info(graph, rlx_graph_find(graph, RLX_INPUT, rlx_graph_name(graph, RLX_INPUT, 0)), &dtype, dims,
                           MAX_RANK, &rank));
  for (i = 0; i < rank; i++) {
    if (dims[i] < 0) dims[i] = size;
    count *= (size_t)dims[i];
  }
  data = malloc(count * sizeof *data);
  for (i = 0; i < count; i++) data[i] = (float)(i * 37 % 101) / 128;
  TRY(rlx_tensor_copy_from(env, dtype, dims, rank, data, count * sizeof *data, &tensor));
  free(data);
  return tensor;
}

/* Prints "y [3,10] bits 1234567890 largest 7 1 3". */
static void print_output(const char *name, const rlx_tensor_t *tensor) {
  int64_t dims[MAX_RANK];
  size_t rank = rlx_tensor_shape(tensor, dims, MAX_RANK), count = rlx_tensor_bytes(tensor) / sizeof(float), i;
  size_t row = rank ? (size_t)dims[rank - 1] : 1, best = 0;
  const float *data = rlx_tensor_data(tensor);
  uint32_t bits, sum = 0;
  printf("  %s [", name);
  for (i = 0; i < rank; i++) printf("%s%lu", i ? "," : "", (unsigned long)dims[i]);
  for (i = 0; i < count; i++) {
    memcpy(&bits, data + i, sizeof bits);
    sum += bits;
  }
  printf("] bits %lu largest", (unsigned long)sum);
  for (i = 0; i < count; i++) {
    if (i % row == 0 || data[i] > data[best]) best = i;
    if (i % row == row - 1) printf(" %lu", (unsigned long)(best % row));
  }
  printf("\n");
}

static void run(rlx_env_t *env, rlx_model_t *model, int64_t size) {
  const rlx_graph_t *graph = rlx_model_graph(model);
  size_t n = rlx_graph_count(graph, RLX_OUTPUT), i;
  rlx_tensor_t *in = make_input(env, graph, size), **out = calloc(n, sizeof *out);
  TRY(rlx_model_run(model, NULL, NULL, &in, 1, NULL, out, n, NULL));
  printf("size %d\n", (int)size);
  for (i = 0; i < n; i++) {
    print_output(rlx_graph_name(graph, RLX_OUTPUT, i), out[i]);
    rlx_tensor_release(out[i]);
  }
  rlx_tensor_release(in);
  free(out);
}

static void provoke(rlx_env_t *env, rlx_model_t *model) {
  static const int64_t dims[2] = {2, 3};
  rlx_tensor_t *wrong, *out;
  rlx_status_t *status;
  TRY(rlx_tensor_create(env, NULL, RLX_F32, dims, 2, &wrong));
  status = rlx_model_run(model, NULL, NULL, &wrong, 1, NULL, &out, 1, NULL);
  printf("error %s: %s\n", rlx_code_name(rlx_status_code(status)), rlx_status_message(status));
  rlx_status_release(status);
  rlx_tensor_release(wrong);
}

static void misbuild(rlx_env_t *env) {
  static const int64_t a_dims[2] = {2, 3}, b_dims[2] = {5, 4};
  rlx_graph_t *graph;
  rlx_status_t *status;
  rlx_value_t a, b;
  TRY(rlx_graph_create(env, "built", &graph));
  a = rlx_graph_input(graph, "a", RLX_F32, a_dims, 2);
  b = rlx_graph_input(graph, "b", RLX_F32, b_dims, 2);
  rlx_graph_push_name(graph, "layer.0");
  rlx_graph_matmul(graph, a, b);
  rlx_graph_pop_name(graph);
  status = rlx_graph_status(graph);
  printf("error %s: %s\n", rlx_code_name(rlx_status_code(status)), rlx_status_message(status));
  rlx_status_release(status);
  rlx_graph_release(graph);
}

int main(int argc, char **argv) {
  rlx_env_t *env;
  rlx_model_t *model;
  const rlx_graph_t *graph;
  size_t i;
  if (argc != 2) return fprintf(stderr, "usage: client MODEL\n"), 2;
  printf("librlx %s\n", rlx_version_string());
  TRY(rlx_env_create(NULL, NULL, &env));
  TRY(rlx_model_open(env, argv[1], NULL, &model));
  graph = rlx_model_graph(model);
  for (i = 0; i < rlx_graph_count(graph, RLX_INPUT); i++) print_value(graph, RLX_INPUT, "input", i);
  for (i = 0; i < rlx_graph_count(graph, RLX_OUTPUT); i++) print_value(graph, RLX_OUTPUT, "output", i);
  run(env, model, 1);
  run(env, model, 3);
  provoke(env, model);
  misbuild(env);
  rlx_model_release(model);
  rlx_env_release(env);
  return 0;
}
