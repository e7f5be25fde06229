// SPDX-License-Identifier: Apache-2.0
#include "ir/structure.h"

#include <gtest/gtest.h>

#include "ir/text.h"

namespace rlx {

static Graph with_header(std::string_view symbols, std::string_view guards) {
  return *parse("graph" + std::string(symbols) + " {\n" + std::string(guards) +
                "\nx = input f32[n,m]\ny = neg(x)\noutput y\n}");
}

TEST(structure, holds_what_a_run_checks) {
  Graph plain = with_header("", "");
  EXPECT_TRUE(same_structure(plain, with_header(" \"named\"", "")));
  EXPECT_FALSE(same_structure(plain, with_header("", "guard n = m \"mine\"")));
  EXPECT_FALSE(same_structure(plain, with_header("", "guard n <= 3 \"mine\"")));
  EXPECT_FALSE(same_structure(with_header("", "guard n <= 3 \"mine\""), with_header("", "guard n <= 4 \"mine\"")));
  EXPECT_TRUE(same_structure(with_header("", "guard n <= 3 \"a\""), with_header("", "guard n <= 3 \"b\"")));
  EXPECT_FALSE(same_structure(plain, with_header(" (n in [0, 3])", "")));
}

// Two nodes of equal bodies are one node only if a run checks the same for both.
TEST(structure, of_bodies_is_part_of_their_nodes) {
  auto made = parse(R"(graph (n, m) {
    p = input bool[]
    x = input f32[n]
    z = input f32[m]
    a = if(p, x) then=graph {
      x0 = input f32[n]
      y = neg(x0)
      output y
    } else=graph {
      x0 = input f32[n]
      output x0
    }
    b = if(p, x) then=graph (m) {
      guard n = m "mine"
      x0 = input f32[n]
      y = neg(x0)
      output y
    } else=graph {
      x0 = input f32[n]
      output x0
    }
    output a
    output b
  })");
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_FALSE(made->node(3).attrs == made->node(4).attrs);
}

}  // namespace rlx
