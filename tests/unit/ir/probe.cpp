// SPDX-License-Identifier: Apache-2.0
#include "ir/probe.h"

#include <gtest/gtest.h>

#include "ir/text.h"

namespace rlx {

TEST(probe, tries_sizes_of_the_declared_range) {
  Graph graph = *parse("graph (n in [3, 9]) {\nx = input f32[n]\noutput x\n}");
  Dim n = Dim::symbol("n");
  EXPECT_TRUE(holds_at_samples(graph, {Guard::kLessEqual, 3, n, ""}));
  EXPECT_TRUE(holds_at_samples(graph, {Guard::kLessEqual, n, 9, ""}));
  EXPECT_FALSE(holds_at_samples(graph, {Guard::kLessEqual, 4, n, ""}));
  EXPECT_FALSE(holds_at_samples(graph, {Guard::kLessEqual, n, 4, ""}));
}

}  // namespace rlx
