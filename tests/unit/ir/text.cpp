// SPDX-License-Identifier: Apache-2.0
// Graphs as text: what is printed reads back to the same graph, and errors say where they are.
#include "ir/text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>

#include "ir/verify.h"

namespace rlx {

static bool same(const Graph& a, const Graph& b) {
  return equal(std::make_shared<const Graph>(a), std::make_shared<const Graph>(b));
}

static std::string failure_of(std::string_view body) {
  auto graph = parse("graph {\n" + std::string(body) + "\n}");
  return graph.ok() ? "" : std::string(graph.status().message());
}

TEST(text, a_size_may_have_any_name) {
  for (std::string name :
       {"n", "min", "a b", "it's", "a,b", "(n)", "]", "a\nb", "\\x41", "\"", ";", "#", "\x7f", "3", "n'"}) {
    Graph graph;
    ASSERT_TRUE(graph.add_input("x", DType::kF32, {Dim::symbol(name), Dim::symbol(name) + 1}).ok()) << name;
    std::string text = print(graph);
    auto again = parse(text);
    ASSERT_TRUE(again.ok()) << again.status().message() << "\n" << text;
    EXPECT_TRUE(again->has_symbol(name)) << text;
    EXPECT_EQ(print(*again), text);
  }
  EXPECT_FALSE(parse_dim("'a\\q'").ok());
  EXPECT_FALSE(parse_dim("'a\\").ok());
  EXPECT_FALSE(parse_dim("'a").ok());
}

TEST(text, a_number_that_is_none_prints_without_a_sign) {
  Graph graph;
  Value x = *graph.add_input("x", DType::kF32, {Dim(2)});
  double none = -std::numeric_limits<double>::quiet_NaN();
  ASSERT_TRUE(graph.add(Op::kHardSigmoid, std::array{x}, {{"alpha", none}}).ok());
  std::string text = print(graph);
  EXPECT_NE(text.find("alpha=nan"), std::string::npos) << text;
  EXPECT_TRUE(parse(text).ok()) << text;
}

TEST(text, a_graph_reads_like_a_program_and_reads_back) {
  static constexpr char kText[] = R"(graph "mlp" (batch in [1, 512], seq in [1, inf], n) {
  guard batch = n "add"
  x = input f32[batch,16]
  w = param f32[16,8]
  c = constant f32[2] {1, 2.5}
  h = matmul(x, w) -> f32[batch,8]
  norm, _, norm.inv_std = layer_norm(h) eps=1e-06 -> f32[batch,8], f32[batch,1], f32[batch,1]
  %5 = add(norm, norm.inv_std) -> f32[batch,8]
  y = input "a name" f32[n,8]
  %7 = add(%5, y) -> f32[batch,8]
  r = reshape(%7) shape=[-1,1,2] -> f32[4*batch,1,2]
  s = reduce(r) fn=sum axes=[0] keep_dims=true -> f32[1,1,2]
  output s
  output "logits of it" = %7
}
)";
  auto graph = parse(kText);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  std::string text = print(*graph);
  // The leaf keeps its own name, so its label is a number now.
  std::string expected = kText;
  size_t at = expected.find("y = input");
  expected.replace(at, 1, "%6");
  at = expected.find("%5, y");
  expected.replace(at, 5, "%5, %6");
  at = expected.find("-1");
  expected.replace(at, 2, "4*batch");
  EXPECT_EQ(text, expected);
  auto again = parse(text);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_TRUE(same(*graph, *again));
  EXPECT_EQ(again->name(), "mlp");
  EXPECT_EQ(again->symbol_range("batch").hi, 512);
  EXPECT_EQ(again->guards().size(), 1u);
}

// A body knows the sizes of all graphs around it, also where the one between does not name them.
TEST(text, bodies_declare_what_no_graph_around_does) {
  auto body = [](const std::string& symbol, std::shared_ptr<const Graph> inner) {
    Graph graph("body");
    if (!symbol.empty()) {
      EXPECT_TRUE(graph.declare_symbol(symbol, {}).ok());
    }
    Value x = *graph.add_input("a0", DType::kF32, {});
    if (inner) {
      Value yes = *graph.add_constant(*scalar_tensor(DType::kBool, 1));
      x = *graph.add(Op::kIf, std::array{yes, x}, {{"then", inner}, {"else", inner}});
    }
    EXPECT_TRUE(graph.add_output("y", x).ok());
    return std::make_shared<const Graph>(std::move(graph));
  };
  auto outer = *body("", body("", body("m", nullptr)));
  Graph graph("g");
  ASSERT_TRUE(graph.declare_symbol("m", {}).ok());
  Value x = *graph.add_input("x", DType::kF32, {Dim::symbol("m")}), first = *graph.add_input("s", DType::kF32, {});
  Value yes = *graph.add_constant(*scalar_tensor(DType::kBool, 1));
  auto inner = std::make_shared<const Graph>(outer);
  Value y = *graph.add(Op::kIf, std::array{yes, first}, {{"then", inner}, {"else", inner}});
  ASSERT_TRUE(graph.add_output("x", x).ok() && graph.add_output("y", y).ok());
  auto again = parse(print(graph));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(print(*again), print(graph));
}

TEST(text, a_string_that_is_no_word_is_quoted) {
  auto graph = parse(R"(graph {
    a = input f32[2,3]
    b = input f32[3,4]
    y = einsum(a, b) equation="ij,jk->ik"
    output y
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_NE(print(*graph).find("equation=\"ij,jk->ik\""), std::string::npos) << print(*graph);
  auto again = parse(print(*graph));
  ASSERT_TRUE(again.ok()) << print(*graph) << again.status().message();
  EXPECT_EQ(print(*again), print(*graph));
}

TEST(text, every_bit_of_a_constant_survives) {
  Graph graph;
  auto constant = [&](DType dtype, std::vector<uint8_t> bytes) {
    auto count = static_cast<int64_t>(bytes.size()) / element_bytes(dtype);
    Tensor tensor = *Tensor::create(dtype, std::array{count});
    std::transform(bytes.begin(), bytes.end(), tensor.data(), [](uint8_t byte) { return std::byte{byte}; });
    ASSERT_TRUE(graph.add_constant(tensor).ok());
  };
  constant(DType::kF32, {0, 0, 0xc0, 0x7f, 0, 0, 0x80, 0xff, 0, 0, 0, 0x80, 1, 0, 0, 0});  // nan -inf -0 denormal
  constant(DType::kF32, {1, 0, 0xc0, 0x7f});                                               // a NaN with a payload
  constant(DType::kF16, {0x66, 0x2e, 0xff, 0x7b, 0x00, 0x7e});
  constant(DType::kF8E4M3, {0x7f, 0x7e, 0x01, 0x80});
  constant(DType::kBool, {0, 1, 1});
  constant(DType::kBool, {0, 2});
  constant(DType::kU64, std::vector<uint8_t>(8, 0xff));
  constant(DType::kC64, {0, 0, 0x80, 0x3f, 0, 0, 0x80, 0xbf});
  constant(DType::kI64, std::vector<uint8_t>(8 * 65, 7));
  constant(DType::kF64, {});
  std::string text = print(graph);
  auto again = parse(text);
  ASSERT_TRUE(again.ok()) << again.status().message() << "\n" << text;
  EXPECT_TRUE(same(graph, *again)) << text;
  EXPECT_NE(text.find("f32[4] {nan, -inf, -0, 1e-45}"), text.npos) << text;
  EXPECT_NE(text.find("c64[1] {(1, -1)}"), text.npos) << text;
}

// Prints, reads, and prints again.
static void expect_to_read_back(const Graph& graph) {
  std::string text = print(graph);
  auto again = parse(text);
  ASSERT_TRUE(again.ok()) << again.status().message() << "\n" << text;
  EXPECT_TRUE(same(graph, *again)) << text;
  EXPECT_EQ(print(*again), text);
}

static void expect_to_read_back(std::string_view text) {
  auto graph = parse(text);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  expect_to_read_back(*graph);
}

TEST(text, strings_keep_every_character) {
  Graph graph;
  std::string name = "a\n\"\\\t\x01\x1f\x7f é";
  ASSERT_TRUE(graph.add_output(name, *graph.add_input("x", DType::kF32, {})).ok());
  expect_to_read_back(graph);
  EXPECT_NE(print(graph).find(R"("a\n\"\\\x09\x01\x1f\x7f é")"), std::string::npos) << print(graph);
  for (const char* text : {R"(a="\x4a\x4f")", R"(a="\x4A\x4F")"})
    EXPECT_TRUE(equal((*parse_attrs(text))[0].second, "JO")) << text;
  EXPECT_TRUE(equal((*parse_attrs(R"(a="\x50\x30")"))[0].second, "P0"));
  for (const char* text : {R"(a="\x4g")", R"(a="\xg4")", R"(a="\x4")", R"(a="\x80")", R"(a="\a")"})
    EXPECT_EQ(parse_attrs(text).status().message(), R"(column 4: expected \", \\, \n or \x and 00 to 7f)") << text;
}

static Value add_if(Graph& graph, Value x, const Graph& branch) {
  Value yes = *graph.add_constant(*scalar_tensor(DType::kBool, 1));
  auto body = std::make_shared<const Graph>(branch);
  return *graph.add(Op::kIf, std::array{yes, x}, {{"then", body}, {"else", body}});
}

// A body knows the sizes of all graphs around it, whether those between declare them or not.
TEST(text, bodies_say_of_sizes_what_is_not_known_around_them) {
  Graph top, middle, inner;
  ASSERT_TRUE(top.declare_symbol("n", {0, 9}).ok());
  ASSERT_TRUE(top.declare_symbol("m", {1, 7}).ok());
  ASSERT_TRUE(inner.declare_symbol("own", {2, 3}).ok());
  ASSERT_TRUE(inner.declare_symbol("n", {0, 9}).ok());
  ASSERT_TRUE(inner.declare_symbol("m", {0, 5}).ok());
  ASSERT_TRUE(inner.add_output("y", *inner.add_input("x", DType::kF32, {3})).ok());
  ASSERT_TRUE(middle.add_output("y", add_if(middle, *middle.add_input("x", DType::kF32, {3}), inner)).ok());
  ASSERT_TRUE(top.add_output("y", add_if(top, *top.add_input("x", DType::kF32, {3}), middle)).ok());
  expect_to_read_back(top);
  EXPECT_NE(print(top).find("then=graph (own in [2, 3], m in [0, 5]) {"), std::string::npos) << print(top);
}

// Around the body the same name is another size, of the same range.
TEST(text, a_size_that_a_node_of_a_body_decides_is_declared_there) {
  auto graph = parse(R"(graph (s in [0, 4]) {
    p = input bool[]
    x = input f32[9]
    y = input f32[s]
    z = if(p, x) then=graph (s in [0, 4]) {
      x = input f32[9]
      z = nonzero(x) symbol="s"
      output z
    } else=graph {
      x = input f32[9]
      z = constant i64[0,1] {}
      output z
    }
    output y
    output z
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_NE(print(*graph).find("then=graph (s in [0, 4]) {"), std::string::npos) << print(*graph);
  expect_to_read_back(*graph);
}

// Each body stands within its node, and its lines further to the right.
TEST(text, bodies_in_bodies_are_printed_within_each_other) {
  Graph top("top"), middle("middle"), inner("inner");
  ASSERT_TRUE(
      inner.add_output("y", *inner.add(Op::kExp, std::array{*inner.add_input("x", DType::kF32, {3})}, {})).ok());
  ASSERT_TRUE(middle.add_output("y", add_if(middle, *middle.add_input("x", DType::kF32, {3}), inner)).ok());
  ASSERT_TRUE(top.add_output("y", add_if(top, *top.add_input("x", DType::kF32, {3}), middle)).ok());
  expect_to_read_back(top);
  const std::string inner_text = R"(graph "inner" {
      x = input f32[3]
      %1 = exp(x) -> f32[3]
      output y = %1
    })";
  const std::string middle_text = R"(graph "middle" {
    x = input f32[3]
    %1 = constant bool[] {true}
    %2 = if(%1, x) then=)" + inner_text +
                                  " else=" + inner_text + R"( when=1 -> f32[3]
    output y = %2
  })";
  EXPECT_EQ(print(top), R"(graph "top" {
  x = input f32[3]
  %1 = constant bool[] {true}
  %2 = if(%1, x) then=)" + middle_text +
                            " else=" + middle_text + R"( when=1 -> f32[3]
  output y = %2
}
)");
}

// However much its guards prove, of each other and of the types that were found before they were known.
TEST(text, guards_and_types_stay_as_they_are) {
  Graph graph;
  Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  Value x = *graph.add_input("x", DType::kF32, {n, m});
  Value y =
      *graph.add(Op::kSlice, std::array{x},
                 {{"starts", std::vector<Dim>{0}}, {"ends", std::vector<Dim>{m}}, {"axes", std::vector<int64_t>{0}}});
  ASSERT_TRUE(graph.add_output("y", y).ok());
  ASSERT_TRUE(graph.add_guard({Guard::kLessEqual, n, m, ""}).ok());
  ASSERT_TRUE(graph.add_guard({Guard::kEqual, m, n, ""}).ok());
  EXPECT_EQ(graph.guards().size(), 2u);
  expect_to_read_back(graph);
  EXPECT_NE(print(graph).find("f32[min("), std::string::npos) << print(graph);
}

TEST(text, errors_name_line_and_column) {
  EXPECT_EQ(failure_of("  x = input f32[4]\n  y = laier_norm(x)"),
            "3:7: unknown op 'laier_norm' (did you mean 'layer_norm'?)");
  EXPECT_EQ(failure_of("  hidden = input f32[4]\n  y = exp(hiden)"),
            "3:11: unknown value 'hiden' (did you mean 'hidden'?)");
  EXPECT_EQ(failure_of("  x = input f32[4]\n  y = exp(x) -> f32[5]"), "3:17: 'y' is f32[4], not f32[5]");
  EXPECT_EQ(failure_of("  x = input float32[4]"),
            "2:13: unknown dtype 'float32', known: f32, f16, bf16, f64, i8, i16, i32, i64, u8, u16, u32, u64, ...");
  EXPECT_EQ(failure_of("  x = input f33[4]"), "2:13: unknown dtype 'f33' (did you mean 'f32'?)");
  EXPECT_EQ(failure_of("  x = input f32[4"), "2:18: expected ',' or ']'");
  EXPECT_EQ(failure_of("  x = input f32[4]\n  x = exp(x)"), "3:3: there is already a value 'x'");
  EXPECT_EQ(failure_of("  x = input f32[4]\n  y = gelu(x) approx=erf"),
            "3:15: gelu 'y': 'approx' must be one of none|tanh, not 'erf'");
  EXPECT_EQ(failure_of("  x = input f32[4]\n  i = input i64[4]\n  y = mul(x, i)"),
            "4:14: mul 'y': input 'b' is i64, but input 'a' is f32: they must agree (a cast converts); a is input 'x' "
            "f32[4], b is input 'i' "
            "i64[4]");
  EXPECT_EQ(failure_of("  x = input f32[4,4]\n  y = softmax(x) axis=0.5"),
            "3:18: softmax 'y': 'axis' must be of kind i64, not 0.5");
  EXPECT_EQ(failure_of("  x = input f32[4,4]\n  y = softmax(x) axis=1e0"), "");
  EXPECT_EQ(failure_of("  c = constant f32[3] {1, 2}"), "2:16: f32[3] does not have 2 elements");
  EXPECT_EQ(failure_of("  c = constant u8[1] {256}"), "2:23: '256' does not fit the dtype");
  EXPECT_EQ(failure_of("  x = input f32[4]\n  a, b = exp(x)"), "3:6: exp has 1 output, not 2");
  EXPECT_EQ(failure_of("  output y = x"), "2:14: unknown value 'x'");
  EXPECT_EQ(parse("grap {}").status().message(), "1:5: expected graph");
  EXPECT_EQ(failure_of("  x = input \"größe\" f33[4]"),
            "2:21: unknown dtype 'f33' (did you mean 'f32'?)");  // characters, not bytes
  EXPECT_EQ(parse("graph (n in [1, m]) {}").status().message(), "1:17: expected a number or inf");
  EXPECT_EQ(parse("graph (n in [1, +]) {}").status().message(), "1:17: expected a number or inf");
  Status status = parse("graph {\n x = nop()\n}").status();
  EXPECT_EQ(*status.detail("line"), "2");
  EXPECT_EQ(*status.detail("column"), "6");
  EXPECT_EQ(status.code(), Code::kData);
}

// Statements begin with these words as well.
TEST(text, words_of_statements_may_be_names) {
  auto graph = parse(R"(graph {
  output = input f32[4]
  guard, guard.indices = sort(output)
  output guard
})");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->nodes().size(), 2u);
}

// In quotes these are names like all others.
TEST(text, words_with_a_meaning_may_be_names_in_quotes) {
  auto graph = parse(R"(graph {
  "_" = input f32[4]
  "%x" = relu("_")
  y = clamp("%x", _, "_")
  output y
})");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->leaf_name(graph->inputs()[0]), "_");
  EXPECT_EQ(graph->node(1u).name, "%x");
  EXPECT_FALSE(present(graph->node(2u).in[1]));
  auto again = parse(print(*graph));
  ASSERT_TRUE(again.ok()) << again.status().message() << print(*graph);
  EXPECT_EQ(again->leaf_name(again->inputs()[0]), "_");
}

// An input has the name that the second output of a node would have.
TEST(text, labels_are_given_once) {
  auto graph = parse(R"(graph {
  s.indices = input i64[4]
  x = input f32[4]
  s, i = sort(x)
  output "indices" = i
  output "own" = s.indices
})");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  auto again = parse(print(*graph));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_TRUE(same(*graph, *again)) << print(*graph) << print(*again);
}

TEST(text, attributes_have_one_syntax) {
  auto attrs =
      parse_attrs(R"(axis=-1 eps=1e-5 perm=[0,2,1] act=gelu name="a b" shape=[batch,past + seq,64] z=-0 f=[1,inf])");
  ASSERT_TRUE(attrs.ok()) << attrs.status().message();
  ASSERT_EQ(attrs->size(), 8u);
  auto is = [&](size_t i, const char* key, AttrValue value) {
    return (*attrs)[i].first == key && equal((*attrs)[i].second, value);
  };
  EXPECT_TRUE(is(0, "axis", int64_t{-1}));
  EXPECT_TRUE(is(1, "eps", 1e-5));
  EXPECT_TRUE(is(2, "perm", std::vector<int64_t>{0, 2, 1}));
  EXPECT_TRUE(is(3, "act", "gelu"));
  EXPECT_TRUE(is(4, "name", "a b"));
  EXPECT_TRUE(is(5, "shape", std::vector<std::string>{"batch", "past + seq", "64"}));
  EXPECT_TRUE(is(6, "z", -0.0));
  EXPECT_TRUE(is(7, "f", std::vector<double>{1, std::numeric_limits<double>::infinity()}));

  auto message = [](const char* text) { return std::string(parse_attrs(text).status().message()); };
  EXPECT_EQ(message("axis=1 ; eps=2"), "column 8: expected the name of an attribute") << "no comment";
  EXPECT_TRUE(equal((*parse_attrs("dump=/tmp/a;b"))[0].second, "/tmp/a;b"));
  EXPECT_EQ(message("axis=1 axis=2"), "column 8: 'axis' is given twice");
  EXPECT_EQ(message("axis 1"), "column 5: expected '=' after 'axis'");
  EXPECT_EQ(message("axis="), "column 6: expected a value");
  EXPECT_EQ(message("a=[1,2"), "column 7: expected ',' or ']'");
  EXPECT_EQ(message("a=\"b"), "column 3: this string has no end on its line");
  EXPECT_EQ(parse_attrs("=").status().code(), Code::kOption);
}

TEST(text, garbage_ends_in_a_status) {
  std::string nested = "graph {";
  for (int i = 0; i < 1000; i++) nested += " y = exp() b=graph {";
  EXPECT_NE(parse(nested).status().message().find("nested too deeply"), std::string::npos);
  EXPECT_FALSE(parse("graph { x = constant f32[1000000000000] {1} }").ok());
  EXPECT_FALSE(parse("graph { x = constant f32[99999999,99999999,99999999] base64 \"\" }").ok());
  std::string product = "(a+b+c+d)";
  for (int i = 0; i < 30; i++) product += "*(a+b+c+d)";
  EXPECT_TRUE(parse("graph { x = input f32[" + product + "] }").ok());
  for (int i = 0; i < 300; i++) product += "*(a+b+c+d)";
  EXPECT_NE(parse("graph { x = input f32[" + product + "] }").status().message().find("fewer terms"),
            std::string::npos);
  EXPECT_FALSE(parse("graph \xff {}").ok());
}

// The slice got its size before the guard was known. With the guard, inference gives the size another form.
TEST(text, a_size_inferred_before_a_guard_is_read_after_it) {
  auto graph = parse(R"(graph (n) {
    guard 1 <= n "pad"
    x = input f32[n,1]
    y = slice(x) starts=[-2] ends=[-1] -> f32[max(0,n - 1) - max(0,n - 2),1]
    output y
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_TRUE(verify(*graph).ok()) << verify(*graph).message();
  EXPECT_FALSE(parse(R"(graph (n) { x = input f32[n]  y = neg(x) -> f32[min(n,40)]  output y })").ok());
}

// The first slice gets its size before the second one needs a guard, with which inference would give another form. Read
// again, the guards are known first, and a size of another form would not be that of the other branch.
TEST(text, sizes_keep_the_form_that_they_had_before_a_guard) {
  std::string known_later = R"(
      a = slice(x) starts=[(n/3)] ends=[-2] steps=[-2]
      b = slice(x) starts=[n - 2] ends=[n]
  )";
  std::string found_later = R"(
      a = slice(x) starts=[(n/3)] ends=[-2] steps=[-2]
      nonzero = nonzero(x) symbol="k"
      row = reshape(nonzero) shape=[k]
      found = cast(row) to=f32
      sum = add(x, found)
      b = slice(found) starts=[k - 2] ends=[k]
  )";
  for (const std::string& body : {known_later, found_later}) {
    expect_to_read_back(R"(graph (n) {
      x = input f32[n]
      yes = input bool[]
      y = if(yes, x) then=graph {
        x = input f32[n]
        )" + body + R"(
        output a
      } else=graph {
        x = input f32[n]
        a = slice(x) starts=[(n/3)] ends=[-2] steps=[-2]
        output a
      }
      z = neg(y)
      output z
    })");
    expect_to_read_back(R"(graph (n) {
      x = input f32[n]
      yes = input bool[]
      )" + body + R"(
      y = if(yes, a) then=graph {
        a = input f32[max(0,((-max(-1,n - 2) + min(n - 1,(n/3)) + 1)/2))]
        output a
      } else=graph {
        a = input f32[max(0,((-max(-1,n - 2) + min(n - 1,(n/3)) + 1)/2))]
        output a
      }
      output y
    })");
  }
}

// The first slice knows the guard of the user, but not that of the second one.
TEST(text, sizes_keep_the_form_that_they_had_between_two_guards) {
  expect_to_read_back(R"(graph (n) {
    x = input f32[n]
    guard n <= 40
    a = slice(x) starts=[(n/3)] ends=[-12] steps=[-2]
    b = slice(x) starts=[n - 12] ends=[n]
    output a
    output b
  })");
}

TEST(text, sizes_keep_the_form_that_they_had_before_a_range) {
  auto graph = parse(R"(graph (n) {
    x = input f32[n]
    a = slice(x) starts=[(n/3)] ends=[-12] steps=[-2]
    output a
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  ASSERT_TRUE(graph->declare_symbol("n", {12, 40}).ok());
  expect_to_read_back(*graph);
}

// In f32 both numbers lie halfway between two of the dtype, and would be rounded to the even one.
TEST(text, numbers_are_rounded_once) {
  auto number = [](const char* element) {
    auto graph = parse(std::string("graph \"g\" {\n c = constant ") + element + "\n output c\n}");
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    return element_as_f64(*graph->constant(graph->outputs()[0].value), 0);
  };
  EXPECT_EQ(number("f16[] {1.0004882812500002}"), 1.0009765625);
  EXPECT_EQ(number("bf16[] {1.0039062500000002}"), 1.0078125);
  EXPECT_EQ(number("f8e4m3[] {1.0625000000000002}"), 1.125);
  EXPECT_EQ(number("f8e5m2[] {-1.1250000000000002}"), -1.25);
  EXPECT_EQ(number("f16[] {65519.999999999}"), 65504);
}

}  // namespace rlx
