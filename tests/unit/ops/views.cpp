// SPDX-License-Identifier: Apache-2.0
// The views that rows declare agree with their evals: elements read through the strides are those of the result. The
// input is dense, or lies transposed in its buffer.
#include "ops/views.h"

#include <cstring>

#include "ops/eval.h"
#include "tests/support/samples.h"
#include "tests/unit/ops/op_test.h"

namespace rlx {

using namespace test;

// The input with its axes the other way round, and how it lies there.
static Tensor turned(const Tensor& x, Strided& lies) {
  Sizes dims(x.dims().begin(), x.dims().end());
  std::reverse(dims.begin(), dims.end());
  std::vector<int64_t> perm;
  for (size_t i = dims.size(); i-- > 0;) perm.push_back(static_cast<int64_t>(i));
  lies.strides = dense_strides(std::vector<Dim>(dims.begin(), dims.end()));
  std::reverse(lies.strides.begin(), lies.strides.end());
  return (*run(Op::kTranspose, {x}, {{"perm", perm}}))[0];
}

static void expect_view(const Node& node, const Tensor& buffer, std::span<const Dim> from, const Strided& lies,
                        const Tensor& result, bool& is_view) {
  auto strided = op_table().info(node.op).view({from, node.out[0].dims, node.attrs, lies});
  is_view = strided.has_value();
  if (!is_view) return;
  Dims strides;
  for (const Dim& stride : strided->strides) strides.push_back(stride.literal());
  Odometer<1> at(result.dims(), {strides});
  auto unit = static_cast<size_t>(element_bytes(result.dtype()));
  for (int64_t i = 0; i < result.count(); i++, at.next()) {
    auto offset = static_cast<size_t>(strided->shift.literal() + at.offset(0));
    ASSERT_EQ(std::memcmp(result.data() + static_cast<size_t>(i) * unit, buffer.data() + offset * unit, unit), 0) << i;
  }
}

TEST(views, lie_where_eval_finds_their_elements) {
  for (const OpInfo& info : op_table().rows()) {
    if (!info.view) continue;
    size_t dense_views = 0, turned_views = 0;
    for (const Sample* sample : samples_of(info.name)) {
      if (!sample->error.empty() || !sample->program.empty()) continue;
      SCOPED_TRACE(sample->where);
      auto graph = graph_of(*sample);
      ASSERT_TRUE(graph.ok()) << graph.status().message();
      auto results = test::run(*sample, *graph, sample->in, EvalMode::kTyped);
      ASSERT_TRUE(results.ok()) << results.status().message();
      const Tensor& x = sample->in[0];
      const std::vector<Dim>& from = graph->node(0).out[0].dims;
      bool is_view = false;
      expect_view(graph->nodes().back(), x, from, {dense_strides(from), 0}, (*results)[0], is_view);
      dense_views += is_view;
      Strided lies;
      Tensor other = turned(x, lies);
      expect_view(graph->nodes().back(), other, from, lies, (*results)[0], is_view);
      turned_views += is_view;
    }
    EXPECT_GT(dense_views, 0u) << info.name;
    EXPECT_GT(turned_views, 0u) << info.name;
  }
}

TEST(views, a_reshape_that_merges_what_lies_apart_is_none) {
  std::vector<Dim> from{2, 3}, merged{6}, split{2, 3, 1};
  Attrs none;
  Strided columns{{1, 2}, 0};
  EXPECT_FALSE(view_reshape({from, merged, none, columns}));
  auto view = view_reshape({from, split, none, columns});
  ASSERT_TRUE(view);
  EXPECT_EQ(view->strides, (std::vector<Dim>{1, 2, 0}));
}

}  // namespace rlx
