// SPDX-License-Identifier: Apache-2.0
// What is known of values without running anything, where no rule of the library asks for it often.
#include "ir/facts.h"
#include "ir/text.h"
#include "tests/unit/programs.h"

namespace rlx {

TEST(facts, a_number_is_rounded_by_a_cast) {
  Graph graph;
  Builder b(graph);
  Expr tenth = b.scalar(DType::kF32, 0.1), as_half = cast(tenth, DType::kF16), huge = b.scalar(DType::kF32, 1e30);
  Expr back = cast(as_half, DType::kF32), beyond = cast(huge, DType::kF16), truth = cast(tenth, DType::kBool);
  Facts facts(graph);
  EXPECT_EQ(facts.splat(tenth.value()), static_cast<double>(0.1f));
  EXPECT_EQ(facts.splat(as_half.value()), 0.0999755859375);
  EXPECT_EQ(facts.splat(back.value()), 0.0999755859375);
  EXPECT_EQ(facts.splat(beyond.value()), std::nullopt);
  EXPECT_EQ(facts.splat(truth.value()), 1);
}

TEST(facts, positions_move_with_their_axes) {
  Graph graph;
  Builder b(graph);
  Expr rows = b.op(Op::kIota, {}, {{"shape", std::vector<Dim>{2, 3, 4}}, {"axis", int64_t{1}}, {"dtype", DType::kI64}});
  Expr turned = transpose(rows, {1, 2, 0});
  Facts facts(graph);
  const Affine* form = facts.affine(turned.value());
  ASSERT_NE(form, nullptr);
  EXPECT_TRUE(form->offset.is(0));
  EXPECT_EQ(form->steps, (std::vector<Dim>{1, 0, 0}));
}

// A loop over params is run when they are set, unless its body holds params of its own, whose names are the program's.
TEST(facts, a_loop_has_the_phase_of_what_it_reads) {
  auto phase = [](const std::string& xs, const std::string& leaf) {
    auto graph = parse("graph {\n xs = " + xs + R"( f32[3,4]
      y = scan(xs) n_carry=0 n_xs=1 body=graph "body" {
        a = input f32[4]
        )" + leaf + R"(
        b = exp(a)
        output b
      }
      output y
    })");
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    Facts facts(*graph);
    return facts.phase(graph->outputs()[0].value.node);
  };
  EXPECT_EQ(phase("param", ""), Phase::kResident);
  EXPECT_EQ(phase("input", ""), Phase::kRun);
  EXPECT_EQ(phase("param", "c = param f32[4]\n d = add(a, c)"), Phase::kRun);
}

}  // namespace rlx
