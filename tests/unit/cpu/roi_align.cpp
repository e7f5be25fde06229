// SPDX-License-Identifier: Apache-2.0
// The kernel of roi_align against the oracle: boxes beyond the ends and of no size, images that are copied first and
// images that are read in place, values that are no numbers.
#include <cmath>

#include "ir/text.h"
#include "tests/unit/cpu/run_on.h"

namespace rlx {

using namespace testing_programs;

static void expect_agreement(const Graph& graph, const std::vector<Tensor>& in) {
  SCOPED_TRACE(print(graph));
  expect_alike(run_on("cpu", graph, in, {"roi_align_f32"})[0], run_on("reference", graph, in)[0]);
}

// Boxes of images [2, channels, 9, 11].
static void check(int64_t channels, int64_t boxes, int64_t bins, int64_t sampling, bool has_odd_values) {
  Tensor x = noise({2, channels, 9, 11}), rois = noise({boxes, 4}, 3, 30);
  for (int64_t i = 0; i < boxes; i++) {
    float* box = rois.as<float>() + i * 4;
    if (i % 5 == 1) box[2] = box[0];
    if (i % 5 == 2) box[0] = -1, box[1] = 0, box[2] = 11, box[3] = 9;
    if (i % 5 == 3) box[0] = 500, box[1] = NAN;
  }
  if (has_odd_values) x.as<float>()[7] = NAN, x.as<float>()[99] = INFINITY;
  for (const char* mode : {"avg", "max"})
    for (int64_t half_pixel : {0, 1}) {
      Graph graph;
      Builder b(graph);
      NamedAttrs attrs{{"out_h", bins}, {"out_w", bins + 1},        {"sampling", sampling},
                       {"scale", 0.75}, {"half_pixel", half_pixel}, {"mode", mode}};
      Expr images = iota(b, {Dim(boxes)}, 0, DType::kI64) - 1.0;  // the first and the last ones are held within [0, 2)
      output(b, "y",
             b.op(Op::kRoiAlign, {input(b, "x", {2, channels, 9, 11}), input(b, "rois", {boxes, 4}), images}, attrs));
      ASSERT_NO_FATAL_FAILURE(expect_agreement(graph, {x, rois}));
    }
}

TEST(roi_align, reads_what_the_oracle_reads) {
  ASSERT_NO_FATAL_FAILURE(check(3, 1, 1, 1, false));
  ASSERT_NO_FATAL_FAILURE(check(1, 10, 3, 2, false));
  ASSERT_NO_FATAL_FAILURE(check(21, 10, 9, 2, false));
  ASSERT_NO_FATAL_FAILURE(check(37, 5, 2, 16, false));
  ASSERT_NO_FATAL_FAILURE(check(5, 10, 3, 3, true));
}

// Without an image, or where images have no element, no sample is inside.
TEST(roi_align, images_without_elements_are_zeros) {
  for (std::vector<int64_t> dims : {std::vector<int64_t>{0, 3, 4, 5}, {1, 3, 0, 5}, {1, 3, 4, 0}})
    for (const char* mode : {"avg", "max"}) {
      Graph graph;
      Builder b(graph);
      for (const char* name : {"n", "h", "w"}) ASSERT_TRUE(graph.declare_symbol(name, {0, 9}).ok());
      Expr x = input(b, "x", {Dim::symbol("n"), 3, Dim::symbol("h"), Dim::symbol("w")});
      Expr images = iota(b, {2}, 0, DType::kI64);
      NamedAttrs attrs{{"sampling", int64_t{2}}, {"mode", mode}};
      output(b, "y", b.op(Op::kRoiAlign, {x, input(b, "rois", {2, 4}), images}, attrs));
      ASSERT_NO_FATAL_FAILURE(expect_agreement(graph, {*Tensor::create(DType::kF32, dims), noise({2, 4}, 3, 5)}));
    }
}

}  // namespace rlx
