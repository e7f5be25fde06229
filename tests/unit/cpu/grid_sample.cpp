// SPDX-License-Identifier: Apache-2.0
// The kernel of grid_sample against the oracle: positions beyond the ends, at them, and at none; images with values
// that are no numbers.
#include <cmath>

#include "ir/text.h"
#include "tests/unit/cpu/run_on.h"

namespace rlx {

using namespace testing_programs;

TEST(grid_sample, reads_what_the_oracle_reads) {
  Tensor x = noise({2, 3, 5, 4}), grid = noise({2, 6, 7, 2}, 3, 1.5f);
  const float odd[] = {NAN, INFINITY, -INFINITY, -1, 1, 0, 1e30f, -0.0f};
  for (int64_t i = 0; i < 40; i++) grid.as<float>()[i * 3] = odd[i % 8];
  x.as<float>()[7] = NAN, x.as<float>()[30] = INFINITY;
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const char* padding : {"zeros", "border", "reflection"})
      for (int64_t align : {0, 1}) {
        Graph graph;
        Builder b(graph);
        output(b, "y",
               b.op(Op::kGridSample, {input(b, "x", {2, 3, 5, 4}), input(b, "grid", {2, 6, 7, 2})},
                    {{"mode", mode}, {"padding", padding}, {"align_corners", align}}));
        SCOPED_TRACE(print(graph));
        expect_alike(run_on("cpu", graph, {x, grid}, {"grid_sample_f32"})[0], run_on("reference", graph, {x, grid})[0]);
      }
}

}  // namespace rlx
