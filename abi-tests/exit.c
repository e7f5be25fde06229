/* SPDX-License-Identifier: Apache-2.0
 * The library at exit: a handler that the host registered before it first used the library still uses it, with handles
 * from before and with new ones. Handlers run in the opposite order of their registration, so whatever the library has
 * registered itself is gone by then.
 */
#include <rlx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static rlx_env_t *env;
static rlx_compiled_t *program;
static rlx_model_t *model;

static void check(rlx_status_t *status) {
  char why[512];
  if (rlx_status_take(status, why, sizeof why) == RLX_OK) return;
  printf("%s\n", why);
  fflush(stdout);
  _exit(1);
}

static void use(void) {
  static const int64_t three = 3;
  static const char text[] =
      "graph (n) {\n  x = input f32[n]\n  m = mul(x, x)\n  s = softmax(m)\n  y = gelu(s)\n  output y\n}\n";
  rlx_graph_t *graph;
  rlx_attrs_t *options;
  rlx_compiled_t *made;
  rlx_blob_t *schema;
  rlx_tensor_t *x, *y;
  if (!env) check(rlx_env_create(NULL, NULL, &env));
  check(rlx_import_memory(env, "rlx", text, sizeof text - 1, NULL, NULL, NULL, &graph, NULL));
  check(rlx_attrs_create("dims.n=4 passes.skip=[sink]", &options));
  check(rlx_compile(graph, NULL, NULL, options, &made));
  if (!program) program = rlx_compiled_retain(made);
  if (!model) check(rlx_model_create(graph, NULL, NULL, &model));
  check(rlx_tensor_create(env, NULL, RLX_F32, &three, 1, &x));
  check(rlx_compiled_run(program, NULL, &x, 1, NULL, &y, 1));
  rlx_tensor_release(y);
  check(rlx_model_run(model, NULL, NULL, &x, 1, NULL, &y, 1, NULL));
  check(rlx_schema(env, "options.import", &schema));
  rlx_blob_release(schema);
  check(rlx_schema(env, "options.model", &schema));
  rlx_blob_release(schema);
  rlx_tensor_release(y);
  rlx_tensor_release(x);
  rlx_compiled_release(made);
  rlx_attrs_release(options);
  rlx_graph_release(graph);
}

static void use_again(void) {
  use();
  rlx_model_release(model);
  rlx_compiled_release(program);
  rlx_env_release(env);
  env = NULL, program = NULL, model = NULL;
  use();
  rlx_model_release(model);
  rlx_compiled_release(program);
  rlx_env_release(env);
}

int main(void) {
  if (atexit(use_again) != 0) return 2;
  use();
  return 0;
}
