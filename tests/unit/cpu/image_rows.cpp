// SPDX-License-Identifier: Apache-2.0
// Rows of the CPU for images against the oracle, of an open number of them: elements by rows and columns, norms of
// channels, windows, places of extremes.
#include "tests/unit/cpu/run_on.h"

namespace rlx {

using namespace testing_programs;

TEST(image_rows, agree_with_the_oracle) {
  for (int64_t n : {1, 3}) {
    Graph graph;
    ASSERT_TRUE(graph.declare_symbol("n", {0, 9}).ok());
    Builder b(graph);
    Expr x = input(b, "x", {Dim::symbol("n"), 4, 5, 6}), gamma = input(b, "gamma", {4}), beta = input(b, "beta", {4});
    NamedAttrs resizing{{"axes", Axes{2, 3}}, {"scales", std::vector<double>{2, 1.5}}, {"mode", "nearest"}};
    output(b, "enlarged", b.op(Op::kResize, {x}, resizing));
    output(b, "instances", b.op(Op::kInstanceNorm, {x, gamma, beta}));
    output(b, "groups", b.op(Op::kGroupNorm, {x, gamma}, {{"groups", int64_t{2}}}));
    NamedAttrs windows{{"fn", "max"}, {"window", Axes{1, 1, 3, 2}}, {"strides", Axes{1, 1, 2, 2}}};
    output(b, "where", cast(b.op(Op::kArgReduceWindow, {x}, windows), DType::kF32));
    NamedAttrs apart{{"fn", "max"}, {"window", Axes{1, 1, 2, 3}}, {"strides", Axes{1, 1, 1, 40}}};
    output(b, "far_windows", b.op(Op::kReduceWindow, {x}, apart));
    NamedAttrs dilated{{"lhs_dilation", Axes{2, 18}}, {"groups", int64_t{2}}, {"pad_lo", std::vector<Dim>{1, 7}}};
    output(b, "spread", b.op(Op::kConv, {x, input(b, "w", {6, 2, 2, 25})}, dilated));
    std::vector<Tensor> in{noise({n, 4, 5, 6}), noise({4}, 5), noise({4}, 6), noise({6, 2, 2, 25}, 7)};
    std::vector<Tensor> want = run_on("reference", graph, in);
    std::vector<Tensor> got = run_on(
        "cpu", graph, in,
        {"gather_plane", "instance_norm_f32", "group_norm_f32", "arg_window_f32", "window_f32", "conv_f32_scattered"});
    for (size_t i = 0; i < want.size(); i++) expect_near(got[i], want[i]);
  }
}

}  // namespace rlx
