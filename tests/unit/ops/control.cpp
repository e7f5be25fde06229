// SPDX-License-Identifier: Apache-2.0
// if, while, scan: golden values, sizes that contents decide, sub-graphs in sub-graphs, and what inference refuses.
#include "ir/text.h"
#include "ir/verify.h"
#include "op_test.h"

namespace rlx::test {

using Body = std::function<std::vector<Expr>(Builder&, const std::vector<Expr>&)>;

static std::shared_ptr<const Graph> sub_graph(const std::vector<ValueType>& inputs, const Body& body) {
  auto graph = std::make_shared<Graph>();
  Builder builder(*graph);
  std::vector<Expr> in;
  for (const ValueType& type : inputs)
    in.push_back(builder.wrap(*graph->add_input("x" + std::to_string(in.size()), type.dtype, type.dims)));
  for (const Expr& output : body(builder, in)) {
    EXPECT_TRUE(builder.status().ok()) << builder.status().message();
    EXPECT_TRUE(graph->add_output("y" + std::to_string(graph->outputs().size()), output.value()).ok());
  }
  return graph;
}

static const ValueType kScalar{DType::kF64, {}};

static NamedAttrs loop(int64_t carries, int64_t xs, std::shared_ptr<const Graph> body) {
  return {{"body", body}, {"n_carry", carries}, {"n_xs", xs}};
}

// ---- if ----

static NamedAttrs branches(const std::vector<ValueType>& inputs, const Body& then, const Body& otherwise) {
  return {{"then", sub_graph(inputs, then)}, {"else", sub_graph(inputs, otherwise)}};
}

TEST(control, if_runs_the_chosen_branch_only) {
  auto attrs = branches(
      {kScalar}, [](Builder&, auto& in) { return std::vector{in[0] + 1.0}; },
      [](Builder& b, auto& in) {  // an index out of range, in the run
        Expr index = cast(floor(in[0]), DType::kI64);
        return std::vector{gather(b.constant(f64s({1}, {5})), index, 0)};
      });
  expect_op(Op::kIf, {bools({}, {1}), f64s({}, {7})}, attrs, f64s({}, {8}));
  expect_op(Op::kIf, {bools({}, {0}), f64s({}, {0})}, attrs, f64s({}, {5}));
  expect_failure(Op::kIf, {bools({}, {0}), f64s({}, {7})}, attrs, Code::kRange);
}

TEST(control, if_takes_no_arguments_and_gives_several_outputs) {
  auto attrs = branches(
      {},
      [](Builder& b, auto&) {
        return std::vector{b.scalar(DType::kF64, 1), b.scalar(DType::kI32, 2)};
      },
      [](Builder& b, auto&) {
        return std::vector{b.scalar(DType::kF64, 3), b.scalar(DType::kI32, 4)};
      });
  expect_op(Op::kIf, {bools({}, {1})}, attrs, {f64s({}, {1}), i32s({}, {2})});
  expect_op(Op::kIf, {bools({}, {0})}, attrs, {f64s({}, {3}), i32s({}, {4})});
}

static Expr counted(Builder& b, Expr x) {  // as many positions as x says
  return b.op(Op::kDynamicIota, {cast(x, DType::kI64)}, {{"max", int64_t{9}}});
}

TEST(control, sizes_in_which_branches_differ_are_fresh_symbols_and_those_that_agree_are_not) {
  ValueType vector{DType::kF64, {Dim(2)}};
  auto attrs = branches(
      {vector},
      [](Builder&, auto& in) {
        return std::vector{in[0], concat(std::array{in[0], in[0]}, 0), in[0]};
      },
      [](Builder& b, auto& in) {
        Expr five = b.constant(f64s({5}, {1, 2, 3, 4, 5}));
        return std::vector{five, five, in[0] * 2.0};
      });
  Graph graph;
  Value pred = *graph.add_input("pred", DType::kBool, {}), x = *graph.add_input("x", DType::kF64, {Dim(2)});
  Value node = *graph.add(Op::kIf, std::array{pred, x}, attrs);
  const auto& out = graph.node(node).out;
  EXPECT_EQ(out[0].dims, std::vector{Dim::symbol("if.0")});
  EXPECT_EQ(out[1].dims, std::vector{Dim::symbol("if.1")});
  EXPECT_EQ(out[2].dims, std::vector{Dim(2)});
  Interval range = graph.range(out[0].dims[0]);
  EXPECT_EQ(range.lo, 2);
  EXPECT_EQ(range.hi, 5);
  // Built again in another graph from its completed attributes, the node means the same sizes.
  Graph other;
  Value p = *other.add_input("pred", DType::kBool, {}), z = *other.add_input("x", DType::kF64, {Dim(2)});
  auto again = other.add(graph.info(Op::kIf), std::array{p, z}, graph.node(node).attrs);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(other.node(*again).out, out);

  for (uint32_t i = 0; i < 3; i++) ASSERT_TRUE(graph.add_output("y" + std::to_string(i), {node.node, i}).ok());
  for (bool taken : {true, false}) {
    auto got = interpret(graph, std::array{bools({}, {taken ? 1.0 : 0.0}), f64s({2}, {7, 8})});
    ASSERT_TRUE(got.ok()) << got.status().message();
    expect_equal((*got)[0], taken ? f64s({2}, {7, 8}) : f64s({5}, {1, 2, 3, 4, 5}));
    expect_equal((*got)[1], taken ? f64s({4}, {7, 8, 7, 8}) : f64s({5}, {1, 2, 3, 4, 5}));
    expect_equal((*got)[2], taken ? f64s({2}, {7, 8}) : f64s({2}, {14, 16}));
  }
}

TEST(control, what_a_branch_decides_by_contents_is_its_own_even_where_names_agree) {
  Graph graph;
  Builder b(graph);
  Expr pred = b.wrap(*graph.add_input("pred", DType::kBool, {})), x = b.wrap(*graph.add_input("x", DType::kF64, {}));
  Expr outside = counted(b, x);
  auto attrs = branches(
      {kScalar}, [](Builder& inner, auto& in) { return std::vector{counted(inner, in[0] + 1.0)}; },
      [](Builder& inner, auto& in) { return std::vector{counted(inner, in[0] + 2.0)}; });
  Expr chosen = b.op(Op::kIf, {pred, x}, attrs);
  ASSERT_TRUE(b.status().ok()) << b.status().message();
  EXPECT_NE(chosen.dim(0), outside.dim(0));
  ASSERT_TRUE(graph.add_output("outside", outside.value()).ok());
  ASSERT_TRUE(graph.add_output("chosen", chosen.value()).ok());
  auto got = interpret(graph, std::array{bools({}, {0}), f64s({}, {1})});
  ASSERT_TRUE(got.ok()) << got.status().message();
  expect_equal((*got)[0], i64s({1}, {0}));
  expect_equal((*got)[1], i64s({3}, {0, 1, 2}));
}

TEST(control, if_refuses_branches_that_do_not_agree) {
  Tensor yes = bools({}, {1}), x = f64s({}, {1});
  auto same = [](Builder&, auto& in) { return std::vector{in[0]}; };
  auto twice = [](Builder&, auto& in) { return std::vector{in[0], in[0]}; };
  auto whole = [](Builder&, auto& in) { return std::vector{cast(in[0], DType::kI32)}; };
  auto longer = [](Builder&, auto& in) { return std::vector{reshape(in[0], {1})}; };
  expect_failure(Op::kIf, {yes, x}, branches({kScalar}, same, twice), Code::kInvalidArgument, "2 outputs, not 1");
  expect_failure(Op::kIf, {yes, x}, branches({kScalar}, same, whole), Code::kDtype, "f64[] in 'then' and i32[]");
  expect_failure(Op::kIf, {yes, x}, branches({kScalar}, same, longer), Code::kShape, "f64[] in 'then' and f64[1]");
  expect_failure(Op::kIf, {yes, x, x}, branches({kScalar}, same, same), Code::kInvalidArgument, "takes 1 input, not 2");
  expect_failure(Op::kIf, {yes, f32s({}, {1})}, branches({kScalar}, same, same), Code::kDtype, "'then', input 'x0'");
  expect_failure(Op::kIf, {bools({1}, {1}), x}, branches({kScalar}, same, same), Code::kShape, "scalar");
  ValueType open{DType::kF64, {Dim::symbol("n")}};
  expect_failure(Op::kIf, {yes, f64s({2}, {1, 2})}, branches({open}, same, same), Code::kShape,
                 "the size 'n' is not known");
}

TEST(control, a_branch_reads_params_by_name_and_sizes_of_the_graph_around_it) {
  Graph graph;
  Builder b(graph);
  Dim n = Dim::symbol("n");
  Expr pred = b.wrap(*graph.add_input("pred", DType::kBool, {})), x = b.wrap(*graph.add_input("x", DType::kF32, {n}));
  auto attrs = branches(
      {{DType::kF32, {n}}},
      [](Builder& inner, auto& in) {
        return std::vector{in[0] * inner.wrap(*inner.graph().add_param("w", DType::kF32, {}))};
      },
      [n](Builder& inner, auto&) { return std::vector{iota(inner, {n}, 0, DType::kF32)}; });
  ASSERT_TRUE(graph.add_output("y", b.op(Op::kIf, {pred, x}, attrs).value()).ok());
  for (auto mode : {EvalMode::kTyped, EvalMode::kOracle}) {
    DType stored = mode == EvalMode::kOracle ? DType::kF64 : DType::kF32;
    auto scaled = interpret(graph, std::array{bools({}, {1}), f32s({2}, {3, 4})}, {{"w", f32s({}, {10})}}, {mode});
    auto counted = interpret(graph, std::array{bools({}, {0}), f32s({3}, {3, 4, 5})}, {{"w", f32s({}, {10})}}, {mode});
    ASSERT_TRUE(scaled.ok() && counted.ok());
    expect_equal((*scaled)[0], tensor(stored, {2}, {30, 40}));
    expect_equal((*counted)[0], tensor(stored, {3}, {0, 1, 2}));
  }
}

// A condition that sizes make: the size of x is below 4.
static Expr is_short(Builder& b, Expr x) {
  return less(b.op(Op::kDimSize, {x}, {{"axis", int64_t{0}}}), 4);
}

TEST(control, sizes_choose_a_branch_before_the_run_and_the_size_of_its_result) {
  Graph graph;
  Builder b(graph);
  Dim n = Dim::symbol("n");
  Expr x = b.wrap(*graph.add_input("x", DType::kF64, {n}));
  std::vector<ValueType> vector{{DType::kF64, {n}}};
  auto attrs = branches(
      vector,
      [](Builder&, auto& in) {
        return std::vector{concat(std::array{in[0], in[0]}, 0)};
      },
      [](Builder&, auto& in) { return std::vector{slice(in[0], 0, 0, 1)}; });
  Expr y = b.op(Op::kIf, {is_short(b, x), x}, attrs);
  ASSERT_TRUE(b.status().ok()) << b.status().message();
  const Node& node = graph.node(y.value());
  EXPECT_EQ(node.attrs.dim("when").text(), is_less(n, 4).text());
  EXPECT_EQ(node.attrs.strs("chosen"), std::vector<std::string>{"if.0"});
  EXPECT_FALSE(node.attrs.has("symbols"));
  ASSERT_TRUE(graph.add_output("y", y.value()).ok());
  auto few = interpret(graph, std::array{f64s({2}, {1, 2})}),
       many = interpret(graph, std::array{f64s({4}, {1, 2, 3, 4})});
  ASSERT_TRUE(few.ok() && many.ok()) << few.status().message() << many.status().message();
  expect_equal((*few)[0], f64s({4}, {1, 2, 1, 2}));
  expect_equal((*many)[0], f64s({1}, {1}));
}

// The size that chooses is one that the run finds, so what the branches come to is too: the verifier knows it as well.
TEST(control, sizes_from_data_choose_between_branches_of_different_shape) {
  Graph graph;
  Builder b(graph);
  Expr count = b.wrap(*graph.add_input("count", DType::kF64, {})), x = b.wrap(*graph.add_input("x", DType::kF64, {5}));
  Expr found = b.size(counted(b, count).dim(0), DType::kI64);
  auto attrs = branches(
      {x.type()},
      [](Builder&, auto& in) {
        return std::vector{concat(std::array{in[0], in[0]}, 0)};
      },
      [](Builder&, auto& in) { return std::vector{slice(in[0], 0, 0, 1)}; });
  Expr y = b.op(Op::kIf, {less(found, 4), x}, attrs);
  ASSERT_TRUE(b.status().ok()) << b.status().message();
  EXPECT_TRUE(graph.node(y.value()).attrs.has("when"));
  EXPECT_EQ(graph.node(y.value()).attrs.strs("symbols"), std::vector<std::string>{"if.0"});
  ASSERT_TRUE(graph.add_output("y", y.value()).ok());
  EXPECT_TRUE(verify(graph).ok()) << verify(graph).message();
  auto many = interpret(graph, std::array{f64s({}, {6}), f64s({5}, {1, 2, 3, 4, 5})});
  ASSERT_TRUE(many.ok()) << many.status().message();
  expect_equal((*many)[0], f64s({1}, {1}));
}

TEST(control, branches_of_unequal_rank_need_sizes_that_are_fixed) {
  auto shapes = [](Dim n) {
    std::vector<ValueType> vector{{DType::kF64, {n}}};
    return branches(
        vector, [](Builder&, auto& in) { return std::vector{in[0]}; },
        [n](Builder&, auto& in) {
          return std::vector{reshape(in[0], {n, 1})};
        });
  };
  Graph graph;
  Builder b(graph);
  Expr fixed = b.wrap(*graph.add_input("fixed", DType::kF64, {Dim(5)}));
  Expr y = b.op(Op::kIf, {is_short(b, fixed), fixed}, shapes(5));
  ASSERT_TRUE(b.status().ok()) << b.status().message();
  EXPECT_EQ(y.type(), (ValueType{DType::kF64, {Dim(5), Dim(1)}}));
  Expr open = b.wrap(*graph.add_input("open", DType::kF64, {Dim::symbol("n")}));
  b.op(Op::kIf, {is_short(b, open), open}, shapes(Dim::symbol("n")));
  EXPECT_NE(b.status().message().find("the sizes in 'min(1,max(0,-n + 4))' choose"), std::string::npos)
      << b.status().message();
  Value pred = *graph.add_input("pred", DType::kBool, {}), x = graph.find_leaf("fixed").value();
  auto chosen = graph.add(Op::kIf, std::array{pred, x}, shapes(5), "choice");
  EXPECT_EQ(
      chosen.status().message(),
      "if 'choice': output 0 is f64[5] in 'then' and f64[5,1] in 'else': data chooses between them, so their ranks "
      "must agree; pred is input 'pred' bool[], input 1 is input 'fixed' f64[5]");
}

// ---- while ----

static NamedAttrs while_below(double limit, int64_t max_trips = -1) {
  std::vector<ValueType> values{{DType::kF64, {Dim(2)}}, kScalar};
  auto cond = sub_graph(values, [=](Builder&, auto& in) {
    return std::vector{less(reduce(in[0], "max", {0}, KeepDims::kNo), in[1] * limit)};
  });
  auto body = sub_graph(values, [](Builder&, auto& in) { return std::vector{in[0] * in[0]}; });
  return {{"cond", cond}, {"body", body}, {"n_carry", int64_t{1}}, {"max_trips", max_trips}};
}

TEST(control, while_repeats_until_cond_fails_or_the_trips_are_spent) {
  Tensor x = f64s({2}, {2, 3}), one = f64s({}, {1});
  expect_op(Op::kWhile, {x, one}, while_below(6000), f64s({2}, {256, 6561}));
  expect_op(Op::kWhile, {x, one}, while_below(1e30, 3), f64s({2}, {256, 6561}));
  expect_op(Op::kWhile, {x, one}, while_below(1e30, 0), x);
  expect_op(Op::kWhile, {x, one}, while_below(1), x);
}

TEST(control, while_refuses_a_carry_that_changes_its_type) {
  Tensor x = f64s({2}, {2, 3});
  std::vector<ValueType> values{{DType::kF64, {Dim(2)}}};
  auto cond = sub_graph(values, [](Builder& b, auto&) { return std::vector{b.constant(bools({}, {0}))}; });
  auto with = [&](const Body& body) {
    return NamedAttrs{{"cond", cond}, {"body", sub_graph(values, body)}, {"n_carry", int64_t{1}}};
  };
  expect_failure(Op::kWhile, {x}, with([](Builder&, auto& in) { return std::vector{cast(in[0], DType::kF32)}; }),
                 Code::kDtype, "(a carry) is f32[2], not f64[2]");
  expect_failure(Op::kWhile, {x}, with([](Builder&, auto& in) {
                   return std::vector{concat(std::array{in[0], in[0]}, 0)};
                 }),
                 Code::kShape, "4 is not 2");
  expect_failure(Op::kWhile, {x},
                 with([](Builder&, auto& in) { return std::vector{reduce(in[0], "max", {0}, KeepDims::kNo)}; }),
                 Code::kShape, "f64[]");
  expect_failure(Op::kWhile, {x}, with([](Builder& b, auto& in) {
                   return std::vector{cast(counted(b, reduce(in[0], "max", {0}, KeepDims::kNo)), DType::kF64)};
                 }),
                 Code::kShape, "depends on contents");
  NamedAttrs number = with([](Builder&, auto& in) { return std::vector{in[0]}; });
  number[0].second = sub_graph(values, [](Builder&, auto& in) { return std::vector{in[0]}; });
  expect_failure(Op::kWhile, {x}, number, Code::kDtype, "'cond', output 'y0' is f64[2], not bool[]");
}

TEST(control, while_stacks_what_every_trip_gives) {
  auto stacking = [](int64_t max_trips) {
    auto cond = sub_graph({kScalar}, [](Builder&, auto& in) { return std::vector{less(in[0], 10)}; });
    auto body = sub_graph({kScalar}, [](Builder& b, auto& in) {
      return std::vector{in[0] * 2.0, in[0], b.constant(i32s({2}, {1, 2}))};
    });
    return NamedAttrs{{"cond", cond}, {"body", body}, {"n_carry", int64_t{1}}, {"max_trips", max_trips}};
  };
  Graph graph;
  Value x = *graph.add_input("x", DType::kF64, {});
  Value loop = *graph.add(Op::kWhile, std::array{x}, stacking(7));
  EXPECT_EQ(graph.node(loop).out[2].dims, (std::vector{Dim::symbol("while.0"), Dim(2)}));
  EXPECT_EQ(graph.symbol_range("while.0").hi, 7);
  for (uint32_t i = 0; i < 3; i++) ASSERT_TRUE(graph.add_output("y" + std::to_string(i), {loop.node, i}).ok());
  auto four = interpret(graph, std::array{f64s({}, {1})}), none = interpret(graph, std::array{f64s({}, {10})});
  ASSERT_TRUE(four.ok() && none.ok()) << four.status().message() << none.status().message();
  expect_equal((*four)[0], f64s({}, {16}));
  expect_equal((*four)[1], f64s({4}, {1, 2, 4, 8}));
  expect_equal((*four)[2], i32s({4, 2}, {1, 2, 1, 2, 1, 2, 1, 2}));
  expect_equal((*none)[0], f64s({}, {10}));
  expect_equal((*none)[1], f64s({0}, {}));
}

// ---- scan ----

TEST(control, a_carry_of_a_scan_may_change_its_size) {
  Dim rows = Dim::symbol("rows");
  auto body = sub_graph({{DType::kF64, {rows}}, kScalar}, [](Builder&, auto& in) {
    return std::vector{concat(std::array{in[0], reshape(in[1], {1})}, 0), reduce(in[0], "sum", {0}, KeepDims::kNo)};
  });
  Graph graph;
  Value h = *graph.add_input("h", DType::kF64, {Dim::symbol("n")}), xs = *graph.add_input("xs", DType::kF64, {Dim(3)});
  Value scan = *graph.add(Op::kScan, std::array{h, xs}, loop(1, 1, body));
  EXPECT_EQ(graph.node(scan).out[0].dims, std::vector{Dim::symbol("scan.0")});
  for (uint32_t i = 0; i < 2; i++) ASSERT_TRUE(graph.add_output("y" + std::to_string(i), {scan.node, i}).ok());
  auto got = interpret(graph, std::array{f64s({2}, {1, 2}), f64s({3}, {3, 4, 5})});
  ASSERT_TRUE(got.ok()) << got.status().message();
  expect_equal((*got)[0], f64s({5}, {1, 2, 3, 4, 5}));
  expect_equal((*got)[1], f64s({3}, {3, 6, 10}));
}

// x grows by a row in each of three trips; nobody around knows of `rows`.
static Graph growing_scan() {
  auto body = sub_graph({{DType::kF64, {Dim::symbol("rows")}}, kScalar}, [](Builder&, auto& in) {
    return std::vector{concat(std::array{in[0], reshape(in[1], {1})}, 0)};
  });
  Graph graph;
  Value h = *graph.add_input("h", DType::kF64, {Dim(2)}), xs = *graph.add_input("xs", DType::kF64, {Dim(3)});
  Value scan = *graph.add(Op::kScan, std::array{h, xs}, loop(1, 1, body));
  EXPECT_EQ(graph.node(scan).attrs.strs("carried"), std::vector<std::string>{"rows"});
  EXPECT_TRUE(graph.add_output("y", scan).ok());
  return graph;
}

TEST(control, what_a_carry_brings_stays_the_own_size_of_the_body) {
  Graph graph = growing_scan();
  ASSERT_TRUE(graph.declare_symbol("rows", {0, 2}).ok());
  Value later = *graph.add_input("later", DType::kF64, {Dim::symbol("rows")});
  ASSERT_TRUE(graph.add_output("z", *graph.add(Op::kNeg, std::array{later})).ok());
  EXPECT_TRUE(verify(graph).ok()) << verify(graph).message();
  auto again = parse(print(graph));
  ASSERT_TRUE(again.ok()) << again.status().message() << print(graph);
  EXPECT_TRUE(equal(std::make_shared<const Graph>(graph), std::make_shared<const Graph>(*again))) << print(*again);
  EXPECT_EQ(print(*again), print(graph));
  for (const Graph* it : {&graph, &*again}) {
    auto got = interpret(*it, std::array{f64s({2}, {1, 2}), f64s({3}, {3, 4, 5}), f64s({1}, {6})});
    ASSERT_TRUE(got.ok()) << got.status().message();
    expect_equal((*got)[0], f64s({5}, {1, 2, 3, 4, 5}));
    expect_equal((*got)[1], f64s({1}, {-6}));
  }
}

TEST(control, a_size_that_is_known_may_be_named_as_that_of_a_carry) {
  auto body = sub_graph({{DType::kF64, {Dim::symbol("n")}}}, [](Builder&, auto& in) {
    return std::vector{concat(std::array{in[0], in[0]}, 0)};
  });
  auto cond = sub_graph({{DType::kF64, {Dim::symbol("n")}}}, [](Builder&, auto& in) {
    return std::vector{less(reduce(in[0], "sum", {0}, KeepDims::kNo), 10)};
  });
  NamedAttrs attrs{{"cond", cond}, {"body", body}, {"n_carry", int64_t{1}}};
  Graph graph;
  Value x = *graph.add_input("x", DType::kF64, {Dim::symbol("n")});
  attrs.emplace_back("carried", std::vector<std::string>{"n"});
  Value loop = *graph.add(Op::kWhile, std::array{x}, attrs);
  EXPECT_EQ(graph.type(loop).dims, std::vector{Dim::symbol("while.0")});
  ASSERT_TRUE(graph.add_output("y", loop).ok());
  EXPECT_TRUE(verify(graph).ok()) << verify(graph).message();
  auto got = interpret(graph, std::array{f64s({1}, {3})});
  ASSERT_TRUE(got.ok()) << got.status().message();
  expect_equal((*got)[0], f64s({4}, {3, 3, 3, 3}));
  attrs.back().second = std::vector<std::string>{"m"};
  expect_failure(Op::kWhile, {f64s({1}, {3})}, attrs, Code::kOption, "'carried' names 'm'");
}

// Another size follows from that of a carry: around the loop nothing can be said of it.
TEST(control, an_input_may_not_hang_on_the_size_of_a_carry) {
  Dim rows = Dim::symbol("rows");
  auto body = sub_graph({{DType::kF64, {rows}}, {DType::kF64, {rows + 1}}},
                        [](Builder&, auto& in) { return std::vector{in[0]}; });
  NamedAttrs attrs = loop(1, 0, body);
  attrs.emplace_back("length", int64_t{2});
  expect_failure(Op::kScan, {f64s({1}, {1}), f64s({2}, {1, 2})}, attrs, Code::kShape, "a size that a carry brings");
}

static std::shared_ptr<const Graph> product_body() {
  return sub_graph({kScalar, kScalar}, [](Builder&, auto& in) {
    Expr c = in[0] * in[1];
    return std::vector{c, c};
  });
}

TEST(control, scan_golden_values_forward_and_reverse) {
  Tensor one = f64s({}, {1}), xs = f64s({3}, {2, 3, 4});
  NamedAttrs attrs = loop(1, 1, product_body());
  expect_op(Op::kScan, {one, xs}, attrs, {f64s({}, {24}), f64s({3}, {2, 6, 24})});
  expect_op(Op::kScan, {one, f64s({0}, {})}, attrs, {one, f64s({0}, {})});
  attrs.emplace_back("reverse", int64_t{1});
  expect_op(Op::kScan, {one, xs}, attrs, {f64s({}, {24}), f64s({3}, {24, 12, 4})});
}

TEST(control, scan_without_carries_or_without_xs) {
  auto plus = sub_graph({kScalar, kScalar}, [](Builder&, auto& in) { return std::vector{in[0] + in[1]}; });
  expect_op(Op::kScan, {f64s({2}, {1, 2}), f64s({}, {10})}, loop(0, 1, plus), f64s({2}, {11, 12}));
  NamedAttrs counted = loop(1, 0, plus);
  expect_failure(Op::kScan, {f64s({}, {1}), f64s({}, {2})}, counted, Code::kOption, "'length' is needed");
  counted.emplace_back("length", int64_t{3});
  expect_op(Op::kScan, {f64s({}, {1}), f64s({}, {2})}, counted, f64s({}, {7}));
  counted[2].second = int64_t{1};
  expect_failure(Op::kScan, {f64s({}, {1}), f64s({3}, {1, 2, 3})}, counted, Code::kOption, "may not be given");
}

TEST(control, scan_in_a_scan_sums_a_matrix) {
  ValueType row{DType::kF64, {Dim(2)}};
  auto inner = sub_graph({kScalar, kScalar}, [](Builder&, auto& in) { return std::vector{in[0] + in[1]}; });
  auto outer = sub_graph({kScalar, row}, [&](Builder& b, auto& in) {
    return std::vector{b.ops(Op::kScan, {in[0], in[1]}, loop(1, 1, inner))[0]};
  });
  expect_op(Op::kScan, {f64s({}, {0}), f64s({3, 2}, {1, 2, 3, 4, 5, 6})}, loop(1, 1, outer), f64s({}, {21}));
}

TEST(control, scan_refuses_xs_of_different_lengths_and_a_scalar) {
  Tensor one = f64s({}, {1});
  auto two = sub_graph({kScalar, kScalar}, [](Builder&, auto& in) { return std::vector{in[0] + in[1]}; });
  expect_failure(Op::kScan, {f64s({2}, {1, 2}), f64s({3}, {1, 2, 3})}, loop(0, 2, two), Code::kShape, "3 is not 2");
  expect_failure(Op::kScan, {one, one}, loop(1, 1, product_body()), Code::kShape, "needs rank 1 or more");
  expect_failure(Op::kScan, {one}, loop(1, 1, product_body()), Code::kOption,
                 "n_carry is 1 and n_xs is 1, but the node has 1 input: first the carries, then the xs");
}

// Each name of a node is a size of its own: readers of two values of one size would take the one for as long as the
// other.
TEST(control, a_node_names_each_size_once) {
  auto refused = [](const char* node) {
    auto graph = parse(std::string(R"(
graph (n, m) {
  p = input bool[]
  x = input f32[n]
  y = input f32[m]
  )") + node + "\n  output a\n  output b\n}");
    EXPECT_EQ(graph.status().code(), Code::kOption) << graph.status().message();
    return std::string(graph.status().message());
  };
  std::string branch = R"(if(p, x, y) then=graph {
    x = input f32[n]
    y = input f32[m]
    output x
    output y
  } else=graph {
    x = input f32[n]
    y = input f32[m]
    output y
    output x
  } symbols=["s","s"])";
  EXPECT_NE(refused(("a, b = " + branch).c_str()).find("'symbols' names the size 's' twice"), std::string::npos);
  std::string loop = R"(scan(x, y) body=graph {
    x = input f32[k]
    y = input f32[l]
    output x
    output y
  } n_carry=2 n_xs=0 length=2 symbols=["s","s"])";
  EXPECT_NE(refused(("a, b = " + loop).c_str()).find("'symbols' names the size 's' twice"), std::string::npos);
}

// The body asks for m = 0, so in every trip the carry has the size that it had before; without a trip m may be another.
TEST(control, a_carry_may_have_its_size_by_a_guard_of_the_body) {
  auto graph = parse(R"(graph (m) {
    x = input f32[m,0]
    i = input i64[]
    a, b = while(i, x) cond=graph {
      i0 = input i64[]
      a0 = input f32[m,0]
      most = constant i64[] {2}
      more = lt(i0, most)
      output more
    } body=graph {
      i0 = input i64[]
      a0 = input f32[m,0]
      solved = solve(a0, a0)
      output i1 = i0
      output a1 = solved
    } n_carry=2 max_trips=2
    output b
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_TRUE(graph->guards().empty()) << print(*graph);
}

// One after another: each size of each carry.
TEST(control, a_body_with_guards_is_asked_for_the_sizes_of_all_carries) {
  auto graph = parse(R"(graph (n, m) {
    x = input f32[n,m]
    y, z, w = scan(x, x) body=graph {
      a = input f32[n,m]
      b = input f32[n,m]
      first = slice(a) starts=[0,0] ends=[1,2]
      next = slice(b) starts=[0,0] ends=[3,4]
      last = slice(a) starts=[n - 1] ends=[n] steps=[2] axes=[0]
      sum = reduce(last) fn=sum
      output first
      output next
      output sum
    } n_carry=2 n_xs=0 length=n
    output y
    output z
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_TRUE(graph->guards().empty()) << print(*graph);
  const Graph& body = *graph->node(graph->outputs()[0].value).attrs.graph("body");
  for (Dim size : {Dim::symbol("n"), Dim::symbol("m")})
    EXPECT_TRUE(body.implies(Guard::kLessEqual, size, size == Dim::symbol("n") ? 1 : 2)) << print(*graph);
}

// Where a trip is made, n is 1 or more, as a guard of the body asks. So no trip ends.
TEST(control, a_carry_whose_size_contradicts_a_guard_of_the_body_allows_no_trip) {
  auto graph = parse(R"(graph (n, m) {
    x = input f32[n]
    y, z = scan(x) body=graph {
      a = input f32[n]
      twice = concat(a, a) axis=0
      last = slice(a) starts=[n - 1] ends=[n] steps=[2] axes=[0]
      sum = reduce(last) fn=sum axes=[0]
      output twice
      output sum
    } n_carry=1 n_xs=0 length=m
    output y
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  ASSERT_EQ(graph->guards().size(), 1u) << print(*graph);
  EXPECT_EQ(text_of(graph->guards()[0]), "0 = m");
}

// What is known around by then contradicts what the carry would have to be: n is 0, so no trip asks that it is 1.
TEST(control, a_loop_that_makes_no_trip_is_still_one_when_its_sizes_are_known) {
  auto graph = parse(R"(graph (n) {
    x = input f32[n]
    y = scan(x) body=graph {
      a = input f32[n]
      last = slice(a) starts=[n - 2] ends=[n] steps=[2] axes=[0]
      sum = reduce(last) fn=sum axes=[0] keep_dims=true
      output sum
    } n_carry=1 n_xs=0 length=n
    output y
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  ASSERT_EQ(graph->guards().size(), 1u) << print(*graph);
  EXPECT_EQ(text_of(graph->guards()[0]), "0 = n");
  EXPECT_EQ(verify(*graph).message(), "");
  EXPECT_TRUE(parse(print(*graph)).ok()) << parse(print(*graph)).status().message();
}

// A loop may make no trip, so whether sizes fit is asked in its body; where they cannot fit, the graph is refused.
TEST(control, the_size_of_a_carry_is_a_guard_of_the_body) {
  auto made = [](const std::string& first, const std::string& second) {
    std::string lines = "graph (n, m, k) {\n  x = input f32[" + first + "]\n  z = input f32[" + second +
                        "]\n  y, w = scan(x, z) body=graph {\n    a = input f32[" + first + "]\n    b = input f32[" +
                        second + "]\n    c = sin(b)\n    output c\n    output b\n  } n_carry=2 n_xs=0 length=k\n";
    return parse(lines + "  output y\n}");
  };
  auto graph = made("n", "m");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_TRUE(graph->guards().empty()) << print(*graph);
  const Graph& body = *graph->node(graph->outputs()[0].value).attrs.graph("body");
  EXPECT_TRUE(body.implies(Guard::kEqual, Dim::symbol("n"), Dim::symbol("m"))) << print(*graph);
  EXPECT_EQ(made("3", "4").status().code(), Code::kShape);
}

// Nothing says how many trips a `while` makes. One whose trips all fail is refused, not required to meet what its body
// contradicts.
TEST(control, a_while_whose_trips_cannot_end_is_refused) {
  auto graph = parse(R"(graph (n) {
    x = input f32[n]
    y = while(x) cond=graph {
      a = input f32[n]
      more = constant bool[] {false}
      output more
    } body=graph {
      a = input f32[n]
      twice = concat(a, a) axis=0
      last = slice(twice) starts=[n - 1] ends=[n] steps=[2] axes=[0]
      joined = concat(twice, last) axis=0
      output joined
    } n_carry=1
    output y
  })");
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.status().code(), Code::kShape);
  EXPECT_NE(graph.status().message().find("no trip ends"), std::string::npos) << graph.status().message();
}

}  // namespace rlx::test
