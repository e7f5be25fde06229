// SPDX-License-Identifier: Apache-2.0
// What the passes do as the device and the options say, and when they say that they have nothing to do.
#include <gtest/gtest.h>

#include "ir/text.h"
#include "ir/verify.h"
#include "passes/pass.h"
#include "tests/support/transforms.h"

namespace rlx {

static Graph parsed(const std::string& body) {
  auto graph = parse("graph (n) {\n  x = input f32[n,4]\n" + body + "\n}");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return *std::move(graph);
}

static Graph after(PassFn pass, const std::string& body, PassContext context) {
  auto made = pass(parsed(body), context);
  EXPECT_TRUE(made.ok()) << made.status().message();
  EXPECT_TRUE(verify(*made).ok());
  return *std::move(made);
}

static std::string takes_all(const Facts&, Value) {
  return {};
}
static std::string takes_primitives(const Facts& facts, Value value) {
  return facts.graph().info(facts.graph().node(value)).primitive() ? "" : "no kernel";
}

TEST(pass_options, a_composite_that_the_device_has_or_that_is_resident_is_not_expanded) {
  constexpr char kBody[] = "w = param f32[4]\ny = softmax(x)\nz = softmax(w)\nu = add(y, z)\noutput u";
  auto is_expanded = [](const Graph& graph, std::string_view name) {
    for (const Node& node : graph.nodes())
      if (node.name == name) return node.op != Op::kSoftmax;
    return true;
  };
  Graph refused = after(expand_composites, kBody, {.refuses = takes_primitives});
  EXPECT_TRUE(is_expanded(refused, "y"));
  EXPECT_FALSE(is_expanded(refused, "z"));
  EXPECT_TRUE(is_expanded(after(expand_composites, kBody, {}), "y"));
  EXPECT_FALSE(is_expanded(after(expand_composites, kBody, {.refuses = takes_all}), "y"));
}

// It is another name for what canonicalize makes of it; simplify leaves it to a device that has a kernel.
TEST(pass_options, a_spelling_is_replaced_unless_the_device_has_it_in_the_end) {
  constexpr char kBody[] = "y = recip(x)\noutput y";
  EXPECT_FALSE(test::has_op(after(canonicalize, kBody, {.refuses = takes_all}), Op::kRecip));
  EXPECT_TRUE(test::has_op(after(simplify, kBody, {.refuses = takes_all}), Op::kRecip));
  EXPECT_FALSE(test::has_op(after(simplify, kBody, {.refuses = takes_primitives}), Op::kRecip));
  EXPECT_FALSE(test::has_op(after(simplify, kBody, {}), Op::kRecip));
}

TEST(pass_options, a_composite_that_the_device_refuses_is_not_formed) {
  constexpr char kBody[] = "s = sigmoid(x)\ny = mul(x, s)\noutput y";
  EXPECT_TRUE(test::has_op(after(fuse_composites, kBody, {.refuses = takes_all}), Op::kSilu));
  EXPECT_FALSE(test::has_op(after(fuse_composites, kBody, {.refuses = takes_primitives}), Op::kSilu));
  EXPECT_FALSE(test::has_op(after(fuse_composites, kBody, {.skip = {"silu"}, .refuses = takes_all}), Op::kSilu));
}

TEST(pass_options, layouts_stay_if_they_shall) {
  constexpr char kBody[] = R"(
  q = input f32[2,5,2,8]
  t = transpose(q) perm=[0,2,1,3]
  y = attention(t, t, t)
  z = transpose(y) perm=[0,2,1,3]
  output z)";
  EXPECT_FALSE(test::has_op(after(choose_layouts, kBody, {.refuses = takes_all}), Op::kTranspose));
  EXPECT_TRUE(test::has_op(after(choose_layouts, kBody, {.refuses = takes_primitives}), Op::kTranspose));
  PassContext plain{.refuses = takes_all, .plain_layout = true};
  EXPECT_TRUE(test::has_op(after(choose_layouts, kBody, plain), Op::kTranspose));
  EXPECT_FALSE(may_choose_layouts(parsed(kBody), plain));
  EXPECT_TRUE(may_choose_layouts(parsed(kBody), {.refuses = takes_all}));
}

TEST(pass_options, what_has_no_kernel_is_named_with_the_device) {
  Graph graph = parsed("w = param f32[4]\nv = exp(w)\ny = sin(x)\nu = add(y, v)\noutput u");
  PassContext context{.device = "abacus"};
  EXPECT_TRUE(has_unsupported(graph, context));
  EXPECT_EQ(check_supported(graph, context).status().message(),
            "2 nodes without a kernel on abacus:\n  sin 'y' (%3): no device\n  add 'u' (%4): no device");
  context.refuses = [](const Facts& facts, Value value) {
    return std::string(facts.graph().node(value).op == Op::kExp ? "no exp" : "");
  };
  EXPECT_FALSE(has_unsupported(graph, context)) << "the prologue computes it";
  EXPECT_TRUE(check_supported(graph, context).ok());
}

TEST(pass_options, passes_say_what_work_there_is) {
  struct Case {
    const char* body;
    bool canonicalize, fuse, simplify, merges, expands;
  };
  for (const Case& it : {Case{"output x", false, false, false, false, false},
                         {"y = floor(x)\noutput y", false, false, false, false, false},
                         {"y = floor(x)\nz = floor(x)\noutput y\noutput z", true, true, true, false, false},
                         {"y = floor(x)\noutput x", true, false, false, false, false},
                         {"y = ceil(x)\noutput y", true, false, true, false, true}}) {
    Graph graph = parsed(it.body);
    PassContext context{.refuses = takes_all};
    EXPECT_EQ(may_canonicalize(graph, context), it.canonicalize) << it.body;
    EXPECT_EQ(may_fuse(graph, context), it.fuse) << it.body;
    EXPECT_EQ(may_simplify(graph, context), it.simplify) << it.body;
    EXPECT_EQ(may_merge_siblings(graph, context), it.merges) << it.body;
    EXPECT_EQ(has_composite(graph, context), it.expands) << it.body;
  }
}

// Passes since canonicalize have made constants and copies.
TEST(pass_options, equal_nodes_are_one_after_passes_that_look_for_them) {
  constexpr char kBody[] = "y = floor(x)\nz = floor(x)\nu = sin(y)\nv = cos(z)\noutput u\noutput v";
  for (PassFn pass : {canonicalize, fuse_composites, simplify})
    EXPECT_EQ(after(pass, kBody, {.refuses = takes_all}).nodes().size(), 4u);
}

}  // namespace rlx
