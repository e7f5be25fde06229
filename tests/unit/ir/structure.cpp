// SPDX-License-Identifier: Apache-2.0
#include "ir/structure.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/text.h"
#include "tests/support/host_ops.h"

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

// Each differs from the first, and from all others, in one thing: ops, operands, attributes, types of leaves, names and
// values of outputs, the number of either.
TEST(structure, is_nodes_and_outputs) {
  const std::string leaves = "graph {\na = input f32[4]\nb = input f32[4]\n";
  const std::string texts[] = {
      leaves + "c = sub(a, b)\noutput c\n}",
      leaves + "c = max(a, b)\noutput c\n}",
      leaves + "c = sub(b, a)\noutput c\n}",
      leaves + "c = sub(a, b)\noutput d = c\n}",
      leaves + "c = sub(a, b)\noutput c = a\n}",
      leaves + "c = sub(a, b)\noutput c\noutput d = c\n}",
      leaves + "c = sub(a, b)\nd = exp(c)\noutput c\n}",
      leaves + "c = leaky_relu(a) alpha=0.5\noutput c\n}",
      leaves + "c = leaky_relu(a) alpha=0.25\noutput c\n}",
      "graph {\na = input f16[4]\nb = input f16[4]\nc = sub(a, b)\noutput c\n}",
      "graph {\na = input f32[5]\nb = input f32[5]\nc = sub(a, b)\noutput c\n}",
  };
  for (const std::string& one : texts)
    for (const std::string& other : texts) {
      auto a = parse(one), b = parse(other);
      ASSERT_TRUE(a.ok() && b.ok()) << a.status().message() << b.status().message();
      EXPECT_EQ(same_structure(*a, *b), one == other) << one << other;
    }
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

// Tables find a graph, a node with a body and a call of the host's by these: those of one hash are compared in full.
TEST(structure, hashes_tell_edges_and_outputs_apart) {
  auto hash = [](const std::string& nodes) {
    auto graph = parse("graph {\na = input f32[4]\nb = input f32[4]\n" + nodes + "}");
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    return structure_hash(*graph);
  };
  EXPECT_NE(hash("c = sub(a, b)\noutput c\n"), hash("c = sub(b, a)\noutput c\n"));
  EXPECT_NE(hash("c = exp(a)\nd = exp(b)\noutput c\n"), hash("c = exp(a)\nd = exp(b)\noutput y = d\n"));
}

TEST(structure, attributes_hash_their_bodies) {
  auto hash_of_loop = [](const char* number) {
    auto graph = parse(
        "graph {\nx = input f32[4]\ny = scan(x) n_carry=1 n_xs=0 length=3 body=graph {\n"
        "c = input f32[4]\nk = constant f32[] {" +
        std::string(number) +
        "}\nd = mul(c, k)\noutput d\n}\n"
        "output y\n}");
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    return graph->node(graph->outputs()[0].value).attrs.hash();
  };
  EXPECT_EQ(hash_of_loop("1"), hash_of_loop("1"));
  EXPECT_NE(hash_of_loop("1"), hash_of_loop("2"));
}

TEST(structure, attributes_hash_what_a_call_of_the_host_is_given) {
  auto hash_of_call = [](const char* by) {
    auto graph =
        parse("graph {\nx = input f32[4]\ny = custom(x) name=\"test.scale\" by=" + std::string(by) + "\noutput y\n}",
              op_table(), test::host_ops());
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    return graph->node(graph->outputs()[0].value).attrs.hash();
  };
  EXPECT_EQ(hash_of_call("2.0"), hash_of_call("2.0"));
  EXPECT_NE(hash_of_call("2.0"), hash_of_call("3.0"));
}

// An op of the host may tell 0 from -0, also in a list.
TEST(structure, numbers_of_attributes_are_equal_by_bits) {
  auto list = [](double number) { return AttrValue(std::vector<double>{1, number}); };
  EXPECT_FALSE(equal(list(0.0), list(-0.0)));
  EXPECT_TRUE(equal(list(NAN), list(NAN)));
  EXPECT_TRUE(equal(list(-0.0), list(-0.0)));
  EXPECT_FALSE(equal(list(0.0), AttrValue(std::vector<double>{1})));
  EXPECT_FALSE(equal(AttrValue(0.0), AttrValue(-0.0)));
}

}  // namespace rlx
