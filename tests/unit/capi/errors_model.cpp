// SPDX-License-Identifier: Apache-2.0
// Mistakes with models: their policies, plans, runs and reports.
#include "errors.h"

namespace rlx::errors {

// What `body` returns for a model of the small graph, whose param is not set.
template <class Body>
static rlx_status_t* with_model(User& u, Body&& body) {
  rlx_model_t* model = nullptr;
  u.small_graph();
  if (rlx_status_t* status = rlx_model_create(u.graph, nullptr, nullptr, &model)) return status;
  rlx_status_t* status = body(model);
  rlx_model_release(model);
  return status;
}

static rlx_status_t* got(rlx_model_t* model, const char* device, const char* symbol, int64_t size) {
  rlx_compiled_t* program = nullptr;
  rlx_status_t* status = rlx_model_get(model, device, &symbol, &size, 1, &program);
  rlx_compiled_release(program);
  return status;
}

static rlx_status_t* planned_without_size(User& u) {
  rlx_model_t* model = nullptr;
  u.small_graph(false);
  rlx_status_t* status = rlx_model_create(u.graph, nullptr, nullptr, &model);
  rlx_compiled_t* program = nullptr;
  if (!status) status = got(model, nullptr, "n", 3);
  if (!status) status = rlx_model_get(model, nullptr, nullptr, nullptr, 0, &program);
  rlx_model_release(model);
  return status;
}

static rlx_status_t* ran(rlx_model_t* model, const char* device, const char* name, rlx_tensor_t* x) {
  rlx_tensor_t* y = nullptr;
  rlx_status_t* status = rlx_model_run(model, device, name ? &name : nullptr, &x, 1, nullptr, &y, 1, nullptr);
  rlx_tensor_release(y);
  return status;
}

TEST(errors, policies_that_a_model_refuses) {
  expect_told({
      {"gives a policy an unknown option",
       RLX_E_OPTION,
       {"'speed'", "rlx_schema", "options.model"},
       [](User& u) {
         rlx_model_t* model;
         u.small_graph();
         return rlx_model_create(u.graph, nullptr, u.attrs("speed=fast"), &model);
       }},
      {"names buckets by a word",
       RLX_E_OPTION,
       {"'buckets.n'", "sizes, or pow2", "'pow3'"},
       [](User& u) {
         rlx_model_t* model;
         u.small_graph();
         return rlx_model_create(u.graph, nullptr, u.attrs("buckets.n=pow3"), &model);
       }},
      {"keeps no plan",
       RLX_E_OPTION,
       {"'cache.capacity'", "at least 1", "not 0"},
       [](User& u) {
         rlx_model_t* model;
         u.small_graph();
         return rlx_model_create(u.graph, nullptr, u.attrs("cache.capacity=0"), &model);
       }},
      {"a policy for a size outside of its range",
       RLX_E_RANGE,
       {"'n' = 9", "[1, 4]"},
       [](User& u) {
         return with_model(u, [&](rlx_model_t* model) { return rlx_model_set_policy(model, u.attrs("dims.n=9")); });
       }},
  });
}

TEST(errors, sizes_that_a_model_cannot_plan) {
  expect_told({
      {"plans for a size that is not there",
       RLX_E_NOT_FOUND,
       {"size 'm'", "only n"},
       [](User& u) { return with_model(u, [](rlx_model_t* model) { return got(model, nullptr, "m", 1); }); }},
      {"plans for a negative size",
       RLX_E_RANGE,
       {"'n' = -1", "[1, 4]"},
       [](User& u) { return with_model(u, [](rlx_model_t* model) { return got(model, nullptr, "n", -1); }); }},
      {"plans above the maximum",
       RLX_E_RANGE,
       {"'n' = 9", "[1, 4]"},
       [](User& u) { return with_model(u, [](rlx_model_t* model) { return got(model, nullptr, "n", 9); }); }},
      {"plans for a negative size where a plan is there",
       RLX_E_RANGE,
       {"'n' = -1", "[1, 4]"},
       [](User& u) {
         return with_model(u, [](rlx_model_t* model) {
           if (rlx_status_t* status = got(model, nullptr, "n", 3)) return status;
           return got(model, nullptr, "n", -1);
         });
       }},
      {"plans for two sizes of one name",
       RLX_E_INVALID_ARGUMENT,
       {"size 'n'", "twice"},
       [](User& u) {
         return with_model(u, [](rlx_model_t* model) {
           const char* names[] = {"n", "n"};
           int64_t sizes[] = {2, 3};
           rlx_compiled_t* program = nullptr;
           return rlx_model_get(model, nullptr, names, sizes, 2, &program);
         });
       }},
      {"plans without a size where a plan is there", RLX_E_SHAPE, {"missing for n", "dims.n"}, planned_without_size},
      {"plans above the size of the policy",
       RLX_E_RANGE,
       {"'n' = 3", "above 2", "dims.n"},
       [](User& u) {
         return with_model(u, [&](rlx_model_t* model) {
           if (rlx_status_t* status = rlx_model_set_policy(model, u.attrs("dims.n=2"))) return status;
           return got(model, nullptr, "n", 3);
         });
       }},
  });
}

TEST(errors, runs_that_a_model_refuses) {
  expect_told({
      {"runs on a device that is not there",
       RLX_E_UNAVAILABLE,
       {"'gpu'", "cpu"},
       [](User& u) {
         return with_model(u, [&](rlx_model_t* model) { return ran(model, "gpu", nullptr, u.tensor({1, 3})); });
       }},
      {"misspells an input",
       RLX_E_NOT_FOUND,
       {"input 'z'", "only x"},
       [](User& u) {
         return with_model(u, [&](rlx_model_t* model) { return ran(model, nullptr, "z", u.tensor({1, 3})); });
       }},
      {"gives an input of another rank",
       RLX_E_SHAPE,
       {"input 'x'", "f32[n,3]", "f32[3]"},
       [](User& u) {
         return with_model(u, [&](rlx_model_t* model) { return ran(model, nullptr, nullptr, u.tensor({3})); });
       }},
      {"runs above the maximum",
       RLX_E_RANGE,
       {"'n' = 5", "[1, 4]"},
       [](User& u) {
         return with_model(u, [&](rlx_model_t* model) { return ran(model, nullptr, nullptr, u.tensor({5, 3})); });
       }},
      {"asks where a run on a device that is not there goes",
       RLX_E_UNAVAILABLE,
       {"'gpu'", "cpu"},
       [](User& u) {
         return with_model(u, [](rlx_model_t* model) {
           const rlx_device_t* device;
           return rlx_model_resolve(model, "gpu", &device);
         });
       }},
      {"times no runs",
       RLX_E_INVALID_ARGUMENT,
       {"at least one"},
       [](User& u) {
         return with_model(u, [&](rlx_model_t* model) {
           rlx_tensor_t* x = u.tensor({1, 3});
           rlx_blob_t* json;
           return rlx_model_benchmark(model, nullptr, &x, 1, 0, &json);
         });
       }},
  });
}

TEST(errors, params_policies_and_reports_that_a_model_refuses) {
  expect_told({
      {"sets a param that is not there",
       RLX_E_NOT_FOUND,
       {"param 'v'"},
       [](User& u) {
         return with_model(u, [&](rlx_model_t* model) { return rlx_model_set_param(model, "v", u.tensor({3})); });
       }},
      {"sets a param of another shape",
       RLX_E_SHAPE,
       {"param 'w'", "f32[3]", "f32[5]"},
       [](User& u) {
         return with_model(u, [&](rlx_model_t* model) { return rlx_model_set_param(model, "w", u.tensor({5})); });
       }},
      {"sets a param in one plan",
       RLX_E_STATE,
       {"model", "rlx_model_set_param"},
       [](User& u) {
         return with_model(u, [&](rlx_model_t* model) {
           const char* n = "n";
           int64_t size = 2;
           rlx_compiled_t* plan;
           if (rlx_status_t* status = rlx_model_get(model, nullptr, &n, &size, 1, &plan)) return status;
           rlx_status_t* status = rlx_compiled_set_param(plan, "w", u.tensor({3}));
           rlx_compiled_release(plan);
           return status;
         });
       }},
      {"sets a policy with a wrong option",
       RLX_E_OPTION,
       {"'chian'"},
       [](User& u) {
         return with_model(u, [&](rlx_model_t* model) { return rlx_model_set_policy(model, u.attrs("chian=[cpu]")); });
       }},
      {"asks for an unknown report",
       RLX_E_NOT_FOUND,
       {"'speed'"},
       [](User& u) {
         return with_model(u, [](rlx_model_t* model) {
           rlx_blob_t* json;
           return rlx_model_report(model, "speed", &json);
         });
       }},
  });
}

}  // namespace rlx::errors
