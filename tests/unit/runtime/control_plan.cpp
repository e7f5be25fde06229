// SPDX-License-Identifier: Apache-2.0
// Bodies are programs: what `cpu` plans and walks is what `reference` interprets.
#include "tests/unit/programs.h"
#include "tests/unit/tensors.h"

#include <chrono>
#include <cstdio>
#include <ctime>
#include <thread>

#include "ir/text.h"

namespace rlx {

using namespace testing_programs;

using Exprs = std::vector<Expr>;
using Body = std::function<Exprs(Builder&, const Exprs&)>;

struct Formal {
  const char* name;
  std::vector<Dim> dims;
  DType dtype = DType::kF32;
};

static std::shared_ptr<const Graph> body_of(const std::vector<Formal>& inputs, const Body& body,
                                            const std::vector<std::pair<const char*, Interval>>& symbols = {}) {
  auto graph = std::make_shared<Graph>();
  Builder b(*graph);
  for (const auto& [name, range] : symbols) EXPECT_TRUE(graph->declare_symbol(name, range).ok());
  Exprs in;
  for (const Formal& formal : inputs) in.push_back(b.wrap(*graph->add_input(formal.name, formal.dtype, formal.dims)));
  int i = 0;
  for (const Expr& out : body(b, in)) output(b, ("y" + std::to_string(i++)).c_str(), out);
  return graph;
}

// Both devices on the same inputs, each twice.
class Pair {
 public:
  explicit Pair(const Graph& graph, std::shared_ptr<Weights> weights = nullptr, const NamedAttrs& options = {})
      : env_(env_with(2)) {
    for (const char* name : {"cpu", "reference"}) {
      auto program = Program::compile(env_, graph, weights, *env_->find_device(name), options);
      EXPECT_TRUE(program.ok()) << name << ": " << program.status().message();
      programs_.push_back(program.ok() ? *program : nullptr);
    }
  }

  void check(const std::vector<Tensor>& in, float tolerance = 2e-5f) {
    ASSERT_TRUE(programs_[0] && programs_[1]);
    size_t count = programs_[0]->slots(SlotKind::kOutput).size();
    for (int round = 0; round < 2; round++) {
      auto got = programs_[0]->run({}, in, {}, count), want = programs_[1]->run({}, in, {}, count);
      ASSERT_EQ(got.ok(), want.ok()) << got.status().message() << want.status().message();
      if (!got.ok()) continue;
      for (size_t i = 0; i < count; i++) expect_near((*got)[i], (*want)[i], tolerance);
    }
  }
  Program& cpu() { return *programs_[0]; }

 private:
  std::shared_ptr<Env> env_;
  std::vector<std::shared_ptr<Program>> programs_;
};

static std::shared_ptr<const Graph> below(double limit, std::vector<Formal> inputs) {
  return body_of(inputs, [=](Builder& b, const Exprs& in) {
    std::vector<int64_t> axes(in[0].rank());
    for (size_t i = 0; i < axes.size(); i++) axes[i] = static_cast<int64_t>(i);
    return Exprs{less(reduce(in[0], "sum", axes, KeepDims::kNo), b.scalar(DType::kF32, limit))};
  });
}

TEST(control_plan, a_loop_of_products_with_params_and_constants) {
  auto weights = std::make_shared<Weights>();
  std::vector<Formal> inputs{{"x", {3, 32}}, {"inv", {32}}};
  auto body = body_of(inputs, [&](Builder& b, const Exprs& in) {
    Expr w = b.wrap(*b.graph().add_param("w", DType::kF32, {32, 32}));
    return Exprs{b.op(Op::kSoftmax, {matmul(in[0], w)}) * 0.5 + in[1] * b.constant(noise({32}, 9))};
  });
  EXPECT_TRUE(weights->put("w", noise({32, 32}, 5)).ok());
  for (int64_t trips : {0, 1, 2, 7}) {
    Graph graph;
    Builder b(graph);
    Expr x = input(b, "x", {3, 32}), inv = input(b, "inv", {32});
    NamedAttrs attrs{{"cond", below(1e9, inputs)}, {"body", body}, {"n_carry", int64_t{1}}, {"max_trips", trips}};
    output(b, "y", b.ops(Op::kWhile, std::array{x, inv}, attrs)[0] + 1.0);
    Pair pair(graph, weights);
    pair.check({noise({3, 32}), noise({32}, 2)});
    EXPECT_TRUE(pair.cpu().set_param("w", noise({32, 32}, 6)).ok());
    EXPECT_TRUE(pair.cpu().set_param("w", noise({32, 32}, 5)).ok());
    pair.check({noise({3, 32}, 3), noise({32}, 4)});
  }
}

TEST(control_plan, a_condition_that_is_false_at_once_gives_what_came) {
  std::vector<Formal> inputs{{"x", {4}}, {"y", {4}}};
  auto swap = body_of(inputs, [](Builder&, const Exprs& in) { return Exprs{in[1], in[0] + 1.0}; });
  for (double limit : {-100.0, 3.0, 30.0}) {
    Graph graph;
    Builder b(graph);
    Expr x = input(b, "x", {4}), y = input(b, "y", {4});
    auto loop =
        b.ops(Op::kWhile, std::array{x, y}, {{"cond", below(limit, inputs)}, {"body", swap}, {"n_carry", int64_t{2}}});
    output(b, "a", loop[0]);
    output(b, "b", loop[1]);
    Pair(graph).check({noise({4}), noise({4}, 2)});
  }
}

TEST(control_plan, a_scan_slices_what_it_reads_and_stacks_what_it_gives) {
  std::vector<Formal> inputs{{"h", {2, 8}}, {"x", {2, 8}}, {"w", {8, 8}}};
  auto body = body_of(inputs, [](Builder&, const Exprs& in) {
    Expr next = tanh(matmul(in[0], in[2]) + in[1]);
    return Exprs{next, next * 2.0, in[1]};
  });
  for (bool reverse : {false, true}) {
    Graph graph;
    EXPECT_TRUE(graph.declare_symbol("n", {0, 9}).ok());
    Builder b(graph);
    Expr h = input(b, "h", {2, 8}), xs = input(b, "xs", {Dim::symbol("n"), 2, 8}), w = input(b, "w", {8, 8});
    auto loop = b.ops(Op::kScan, std::array{h, xs, w},
                      {{"body", body}, {"n_carry", int64_t{1}}, {"n_xs", int64_t{1}}, {"reverse", int64_t{reverse}}});
    for (size_t i = 0; i < 3; i++) output(b, std::string("y" + std::to_string(i)).c_str(), loop[i]);
    Pair pair(graph);
    for (int64_t n : {9, 1, 0, 4}) pair.check({noise({2, 8}), noise({n, 2, 8}, 2), noise({8, 8}, 3)});
  }
}

TEST(control_plan, bodies_nest_and_captures_pass_through_levels) {
  // scan over rows; in it an if; in one branch a while that reads what the outermost graph gave.
  std::vector<Formal> inner{{"x", {6}}, {"far", {6}}};
  auto loop = [&](Builder& b, const Exprs& in) {
    auto body =
        body_of(inner, [](Builder& b, const Exprs& it) { return Exprs{it[0] * b.constant(noise({6}, 11)) + it[1]}; });
    NamedAttrs attrs{{"cond", below(50, inner)}, {"body", body}, {"n_carry", int64_t{1}}, {"max_trips", int64_t{3}}};
    return Exprs{b.ops(Op::kWhile, std::array{in[0], in[1]}, attrs)[0]};
  };
  std::vector<Formal> outer{{"h", {6}}, {"row", {6}}, {"flag", {}, DType::kBool}, {"far", {6}}};
  auto body = body_of(outer, [&](Builder& b, const Exprs& in) {
    auto otherwise = body_of(inner, [](Builder&, const Exprs& it) { return Exprs{it[0] - it[1]}; });
    Expr y = b.ops(Op::kIf, std::array{in[2], in[0] + in[1], in[3]},
                   {{"then", body_of(inner, loop)}, {"else", otherwise}})[0];
    return Exprs{y, y + in[1]};
  });
  Graph graph;
  Builder b(graph);
  Expr h = input(b, "h", {6}), xs = input(b, "xs", {5, 6});
  Expr flags = b.wrap(*graph.add_input("flags", DType::kBool, {5}));
  Expr far = input(b, "far", {6});
  auto scan = b.ops(Op::kScan, std::array{h, xs, flags, far * 0.5},
                    {{"body", body}, {"n_carry", int64_t{1}}, {"n_xs", int64_t{2}}});
  output(b, "h", scan[0]);
  output(b, "ys", scan[1]);
  Tensor which = *Tensor::create(DType::kBool, std::array<int64_t, 1>{5});
  for (int i = 0; i < 5; i++) which.as<uint8_t>()[i] = i % 2;
  Pair(graph).check({noise({6}), noise({5, 6}, 2), which, noise({6}, 3)});
}

TEST(control_plan, sizes_that_branches_decide_are_known_after_them) {
  std::vector<Formal> inputs{{"x", {6, 2}}};
  auto half = body_of(inputs, [](Builder&, const Exprs& in) { return Exprs{slice(in[0], 0, 0, 3) * 2.0}; });
  auto whole = body_of(inputs, [](Builder&, const Exprs& in) { return Exprs{in[0]}; });
  Graph graph;
  Builder b(graph);
  Expr pred = b.wrap(*graph.add_input("pred", DType::kBool, {}));
  Expr x = input(b, "x", {6, 2});
  Expr y = b.ops(Op::kIf, std::array{pred, x}, {{"then", half}, {"else", whole}})[0];
  output(b, "y", y);
  output(b, "sum", reduce(y, "sum", {0}, KeepDims::kNo));
  NamedAttrs options;
  for (const auto& [name, range] : graph.symbols()) options.emplace_back("dims." + name, int64_t{6});
  Pair pair(graph, nullptr, options);
  for (bool which : {true, false, true}) pair.check({truth(which), noise({6, 2})});
  NamedAttrs tight;
  for (const auto& [name, range] : graph.symbols()) tight.emplace_back("dims." + name, int64_t{4});
  auto env = env_with(1);
  auto program = *Program::compile(env, graph, nullptr, nullptr, tight);
  EXPECT_TRUE(program->run({}, std::array{truth(true), noise({6, 2})}, {}, 2).ok());
  EXPECT_EQ(program->run({}, std::array{truth(false), noise({6, 2})}, {}, 2).status().code(), Code::kRange);
}

TEST(control_plan, a_loop_is_cancelled_between_trips) {
  std::vector<Formal> inputs{{"x", {2}}};
  auto body = body_of(inputs, [](Builder&, const Exprs& in) { return Exprs{in[0] * 1.0}; });
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {2});
  output(b, "y",
         b.ops(Op::kWhile, std::array{x}, {{"cond", below(10, inputs)}, {"body", body}, {"n_carry", int64_t{1}}})[0]);
  auto env = env_with(1);
  for (Device* device : {static_cast<Device*>(nullptr), *env->find_device("reference")}) {
    auto exec = Exec::create(*Program::compile(env, graph, nullptr, device, {})).value();
    ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, noise({2})).ok());
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      exec->cancel();
    });
    EXPECT_EQ(exec->run().code(), Code::kCancelled);
    other.join();
  }
}

TEST(control_plan, params_given_to_a_body_are_packed_in_it_and_what_does_not_vary_leaves_it) {
  std::vector<Formal> inputs{{"x", {3, 64}}, {"w", {64, 64}}, {"inv", {3, 64}}};
  auto body = body_of(
      inputs, [](Builder&, const Exprs& in) { return Exprs{tanh(matmul(in[0], in[1]) + (in[2] * in[2] + 1.0))}; });
  auto weights = std::make_shared<Weights>();
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {3, 64}), w = weight(b, *weights, "w", {64, 64}), inv = input(b, "inv", {3, 64});
  NamedAttrs attrs{{"cond", below(1e9, inputs)}, {"body", body}, {"n_carry", int64_t{1}}, {"max_trips", int64_t{4}}};
  output(b, "y", b.ops(Op::kWhile, std::array{x, w, inv}, attrs)[0]);
  Pair pair(graph, weights);
  pair.check({noise({3, 64}), noise({3, 64}, 2)});
  std::string memory = *pair.cpu().report("memory");
  EXPECT_NE(memory.find("\"form\""), std::string::npos) << *pair.cpu().report("text");
  bool is_hoisted = false;
  const Graph& compiled = pair.cpu().compiled_graph().graph();
  for (const Node& node : compiled.nodes()) is_hoisted |= !compiled.info(node).is(kLeaf) && node.op != Op::kWhile;
  EXPECT_TRUE(is_hoisted);
}

TEST(control_plan, a_branch_that_a_constant_chooses_is_inlined) {
  std::vector<Formal> inputs{{"x", {4}}};
  auto then = body_of(inputs, [](Builder&, const Exprs& in) { return Exprs{in[0] + 1.0}; });
  auto otherwise = body_of(inputs, [](Builder&, const Exprs& in) { return Exprs{in[0] - 1.0}; });
  for (bool which : {true, false}) {
    Graph graph;
    Builder b(graph);
    Expr x = input(b, "x", {4});
    output(b, "y", b.ops(Op::kIf, std::array{b.constant(truth(which)), x}, {{"then", then}, {"else", otherwise}})[0]);
    Pair pair(graph);
    pair.check({noise({4})});
    for (const Node& node : pair.cpu().compiled_graph().graph().nodes()) EXPECT_NE(node.op, Op::kIf);
  }
}

static Tensor number(float value) {
  Tensor tensor = noise({});
  tensor.as<float>()[0] = value;
  return tensor;
}

// A loop over x that grows by a row at every trip, as long as there are fewer than `most`.
static std::vector<Expr> growing_loop(Builder& b, Expr x, Expr most, Interval range, bool stacks) {
  Dim rows = Dim::symbol("rows");
  auto sized = [&](Body body) { return body_of({{"x", {rows, 3}}, {"most", {}}}, body, {{"rows", range}}); };
  auto cond = sized([&](Builder&, const Exprs& in) {
    return Exprs{less(reduce(in[0] * 0.0 + 1.0, "sum", {0, 1}, KeepDims::kNo), in[1] * 3.0)};
  });
  auto body = sized([&](Builder& inner, const Exprs& in) {
    Expr row = reduce(in[0], "max", {0}) * 0.5;
    Exprs outs{inner.op(Op::kConcat, {in[0], row}, {{"axis", int64_t{0}}})};
    if (stacks) outs.push_back(reshape(row, {Dim(3)}));
    return outs;
  });
  auto loop = b.ops(Op::kWhile, std::array{x, most}, {{"cond", cond}, {"body", body}, {"n_carry", int64_t{1}}});
  return {loop.begin(), loop.end()};
}

// A carry that gains a row at every trip, and a sum over what it has grown to.
TEST(control_plan, the_size_of_a_carry_may_change_at_every_trip) {
  Graph graph;
  ASSERT_TRUE(graph.declare_symbol("n", {1, 6}).ok());
  Builder b(graph);
  Expr x = input(b, "x", {Dim::symbol("n"), 3}), most = input(b, "most", {});
  Expr y = growing_loop(b, x, most, {0, 9}, false)[0];
  output(b, "y", y);
  output(b, "sum", reduce(y, "sum", {0}, KeepDims::kNo));
  Pair pair(graph);
  for (float rows_wanted : {5.f, 1.f, 9.f, 2.f})
    for (int64_t n : {1, 4}) pair.check({noise({n, 3}), number(rows_wanted)});
  EXPECT_EQ(pair.cpu().run({}, std::array{noise({1, 3}), number(20)}, {}, 2).status().code(), Code::kRange);
}

// As many positions as data say, in memory that grows.
TEST(control_plan, a_count_without_a_maximum_is_an_open_size) {
  Graph graph;
  Builder b(graph);
  Expr count = b.wrap(*graph.add_input("count", DType::kI64, {}));
  Expr at = cast(b.op(Op::kDynamicIota, {count}), DType::kF32), range = input(b, "x", {3}) + unsqueeze(at, 1);
  output(b, "y", range * 2.0);
  output(b, "sum", reduce(range, "sum", {0}, KeepDims::kNo));
  Pair pair(graph);
  for (int64_t n : {3, 0, 100000, 1}) {
    Tensor tensor = *Tensor::create(DType::kI64, std::span<const int64_t>());
    *tensor.as<int64_t>() = n;
    pair.check({tensor, noise({3})}, 0.05f);
  }
}

// The graph around knows another size of that name, which comes later and is smaller.
TEST(control_plan, a_carry_has_its_size_whatever_is_called_the_same_later) {
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {2, 3}), most = input(b, "most", {});
  output(b, "last", growing_loop(b, x, most, {0, 9}, false)[0]);
  ASSERT_TRUE(graph.declare_symbol("rows", {0, 4}).ok());
  Expr later = input(b, "later", {Dim::symbol("rows")});
  output(b, "z", later * 2.0);
  Pair pair(graph);
  for (float rows_wanted : {5.f, 1.f, 9.f})
    for (int64_t n : {1, 4}) pair.check({noise({2, 3}), number(rows_wanted), noise({n})});
}

// Nothing bounds the number of trips: carries, rows, and all that is made of them grow.
TEST(control_plan, what_has_no_bound_grows_outside_the_arena) {
  Graph graph;
  ASSERT_TRUE(graph.declare_symbol("n", {1, 6}).ok());
  Builder b(graph);
  Expr x = input(b, "x", {Dim::symbol("n"), 3}), most = input(b, "most", {});
  std::vector<Expr> loop = growing_loop(b, x, most, {}, true);
  output(b, "last", loop[0]);
  output(b, "rows", loop[1]);
  Expr wide = concat(std::array{loop[0] * 2.0, loop[1]}, 0);
  output(b, "sum", reduce(tanh(wide), "sum", {0}, KeepDims::kNo));
  output(b, "wide", wide + 1.0);
  Pair pair(graph);
  for (float rows : {3.f, 1.f, 200.f, 7.f, 1000.f, 2.f})
    for (int64_t n : {1, 4}) pair.check({noise({n, 3}), number(rows)}, 1e-3f);
  // Memory of fixed size is filled as far as it goes, or not at all.
  auto exec = Exec::create(pair.cpu().shared_from_this()).value();
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, noise({1, 3})).ok());
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, number(5)).ok());
  std::vector<float> memory(3 * 5 + 1, -7.f);
  ASSERT_TRUE(exec->bind_ptr(SlotKind::kOutput, 0, memory.data(), 3 * 5 * sizeof(float)).ok());
  ASSERT_TRUE(exec->run().ok());
  EXPECT_EQ(memory[0], noise({1, 3}).as<float>()[0]);
  EXPECT_EQ(memory.back(), -7.f);
  Tensor five = shown(*exec, SlotKind::kOutput, 1);
  EXPECT_EQ(five.dims()[0], 4);
  float first = five.as<float>()[0];
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, number(6)).ok());
  EXPECT_EQ(exec->run().code(), Code::kRange);
  EXPECT_EQ(memory.back(), -7.f);
  EXPECT_EQ(five.as<float>()[0], first);
}

// In a body of a body: the rooms are those of the bodies.
TEST(control_plan, what_grows_in_a_branch_in_a_scan) {
  std::vector<Formal> inputs{{"x", {2, 3}}, {"most", {}}};
  auto grows = body_of(inputs, [](Builder& b, const Exprs& in) {
    std::vector<Expr> loop = growing_loop(b, in[0], in[1], {}, true);
    return Exprs{reduce(loop[0], "sum", {0}, KeepDims::kNo) + reduce(loop[1], "sum", {0}, KeepDims::kNo), loop[0]};
  });
  auto stays = body_of(inputs, [](Builder&, const Exprs& in) {
    return Exprs{reduce(in[0], "max", {0}, KeepDims::kNo), in[0]};
  });
  std::vector<Formal> outer{{"x", {2, 3}}, {"most", {}}, {"flag", {}, DType::kBool}};
  auto body = body_of({{"flag", {}, DType::kBool}, {"most", {}}, {"x", {2, 3}}}, [&](Builder& b, const Exprs& in) {
    auto branch = b.ops(Op::kIf, std::array{in[0], in[2], in[1]}, {{"then", grows}, {"else", stays}});
    return Exprs{branch[0] * 2.0, reduce(branch[1], "sum", {0}, KeepDims::kNo)};
  });
  Graph graph;
  Builder b(graph);
  Expr flags = b.wrap(*graph.add_input("flags", DType::kBool, {4}));
  Expr mosts = input(b, "mosts", {4}), x = input(b, "x", {2, 3});
  auto scan =
      b.ops(Op::kScan, std::array{flags, mosts, x}, {{"body", body}, {"n_carry", int64_t{0}}, {"n_xs", int64_t{2}}});
  output(b, "a", scan[0]);
  output(b, "b", scan[1]);
  Pair pair(graph);
  Tensor which = *Tensor::create(DType::kBool, std::array<int64_t, 1>{4});
  for (int i = 0; i < 4; i++) which.as<uint8_t>()[i] = i != 2;
  for (float most : {1.f, 50.f, 3.f}) {
    Tensor mosts_now = noise({4});
    for (int i = 0; i < 4; i++) mosts_now.as<float>()[i] = most + static_cast<float>(i);
    pair.check({which, mosts_now, noise({2, 3})}, 1e-3f);
  }
}

TEST(control_plan, a_carry_of_a_scan_changes_its_size) {
  for (Interval range : {Interval{0, 12}, Interval{}}) {
    Dim rows = Dim::symbol("rows");
    auto body = body_of({{"h", {rows, 2}}, {"x", {2}}},
                        [](Builder&, const Exprs& in) {
                          Expr next = concat(std::array{in[0], reshape(in[1], {Dim(1), Dim(2)})}, 0) * 0.5;
                          return Exprs{next, reduce(next, "sum", {0}, KeepDims::kNo)};
                        },
                        {{"rows", range}});
    Graph graph;
    EXPECT_TRUE(graph.declare_symbol("n", {0, 9}).ok());
    EXPECT_TRUE(graph.declare_symbol("m", {0, 3}).ok());
    Builder b(graph);
    Expr h = input(b, "h", {Dim::symbol("m"), 2}), xs = input(b, "xs", {Dim::symbol("n"), 2});
    auto scan = b.ops(Op::kScan, std::array{h, xs}, {{"body", body}, {"n_carry", int64_t{1}}, {"n_xs", int64_t{1}}});
    output(b, "h", scan[0]);
    output(b, "ys", scan[1]);
    output(b, "more", tanh(scan[0]));
    Pair pair(graph);
    for (int64_t n : {3, 9, 0, 1, 4})
      for (int64_t m : {0, 3, 1}) pair.check({noise({m, 2}), noise({n, 2}, 2)});
  }
}

TEST(control_plan, sizes_choose_a_branch_and_the_results_are_made_to_measure) {
  Dim n = Dim::symbol("n");
  std::vector<Formal> inputs{{"x", {n, 2}}};
  auto twice = body_of(inputs, [](Builder&, const Exprs& in) { return Exprs{concat(std::array{in[0], in[0]}, 0)}; });
  auto half = body_of(inputs, [](Builder&, const Exprs& in) { return Exprs{slice(in[0], 0, 0, 1) * 2.0}; });
  Graph graph;
  EXPECT_TRUE(graph.declare_symbol("n", {1, 9}).ok());
  Builder b(graph);
  Expr x = input(b, "x", {n, 2});
  Expr is_short = less(b.op(Op::kDimSize, {x}, {{"axis", int64_t{0}}}), 4);
  Expr y = b.ops(Op::kIf, std::array{is_short, x}, {{"then", twice}, {"else", half}})[0];
  output(b, "y", y);
  output(b, "next", tanh(y));
  Pair pair(graph);
  for (int64_t rows : {2, 7, 1, 3, 9}) pair.check({noise({rows, 2})});
  // Its size is known without data, so memory of that size is enough.
  auto exec = Exec::create(pair.cpu().shared_from_this()).value();
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, noise({2, 2})).ok());
  ASSERT_TRUE(exec->bind(SlotKind::kOutput, 0, noise({4, 2})).ok());
  ASSERT_TRUE(exec->run().ok());
  EXPECT_EQ(exec->tensor(SlotKind::kOutput, 1)->dims()[0], 4);
}

TEST(control_plan, the_dispatch_report_names_nodes_of_bodies) {
  std::vector<Formal> inputs{{"x", {4}}};
  auto body = body_of(inputs, [&](Builder& b, const Exprs& in) {
    auto then = body_of(inputs, [](Builder&, const Exprs& it) { return Exprs{tanh(it[0])}; });
    auto otherwise = body_of(inputs, [](Builder&, const Exprs& it) { return Exprs{it[0] - 1.0}; });
    Expr flag = less(reduce(in[0], "sum", {0}, KeepDims::kNo), b.scalar(DType::kF32, 0));
    return Exprs{b.ops(Op::kIf, std::array{flag, in[0]}, {{"then", then}, {"else", otherwise}})[0]};
  });
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {4});
  output(b, "y",
         b.ops(Op::kWhile, std::array{x},
               {{"cond", below(10, inputs)}, {"body", body}, {"n_carry", int64_t{1}}, {"max_trips", int64_t{3}}})[0]);
  auto env = env_with(1);
  for (const char* device : {"cpu", "reference"}) {
    auto program = Program::compile(env, graph, nullptr, *env->find_device(device), {});
    ASSERT_TRUE(program.ok()) << program.status().message();
    std::string report = *(*program)->report("dispatch");
    EXPECT_NE(report.find("/body/if "), std::string::npos) << report;
    EXPECT_NE(report.find("/then\""), std::string::npos) << report;
    EXPECT_NE(report.find("/cond\""), std::string::npos) << report;
  }
}

// Of this process, so that other programs do not count.
static double best_seconds(Exec& exec) {
  double best = 1e9;
  for (int i = 0; i < 5; i++) {
    std::clock_t begin = std::clock();
    EXPECT_TRUE(exec.run().ok());
    best = std::min(best, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  return best;
}

// A counter that runs to `trips`, and a carry that `step` changes.
static std::unique_ptr<Exec> counting_loop(const std::shared_ptr<Env>& env, int64_t trips, std::vector<Dim> dims,
                                           const std::function<Expr(Builder&, Expr)>& step) {
  std::vector<Formal> inputs{{"i", {}}, {"x", dims}};
  auto cond = body_of(inputs, [&](Builder& b, const Exprs& in) {
    return Exprs{less(in[0], b.scalar(DType::kF32, static_cast<double>(trips)))};
  });
  auto body = body_of(inputs, [&](Builder& b, const Exprs& in) { return Exprs{in[0] + 1.0, step(b, in[1])}; });
  Graph graph;
  Builder b(graph);
  Expr i = b.wrap(*graph.add_input("i", DType::kF32, {})), x = input(b, "x", dims);
  output(b, "y", b.ops(Op::kWhile, std::array{i, x}, {{"cond", cond}, {"body", body}, {"n_carry", int64_t{2}}})[1]);
  auto exec = Exec::create(*Program::compile(env, graph, nullptr, nullptr, {})).value();
  EXPECT_TRUE(exec->bind(SlotKind::kInput, 0, noise({}, 1, 0)).ok());
  return exec;
}

TEST(control_plan, a_loop_is_as_fast_as_its_steps) {
  constexpr int64_t kWidth = 384;
  auto env = env_with(1);
  auto step = [](Builder& b, Expr x) {
    return b.op(Op::kSoftmax, {matmul(x, b.constant(noise({kWidth, kWidth}, 2)))});
  };
  auto loop = counting_loop(env, 10, {kWidth, kWidth}, step);
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {kWidth, kWidth});
  for (int i = 0; i < 10; i++) x = step(b, x);
  output(b, "y", x);
  auto flat = Exec::create(*Program::compile(env, graph, nullptr, nullptr, {})).value();
  Tensor data = noise({kWidth, kWidth});
  ASSERT_TRUE(loop->bind(SlotKind::kInput, 1, data).ok());
  ASSERT_TRUE(flat->bind(SlotKind::kInput, 0, data).ok());
  double looped = best_seconds(*loop), unrolled = best_seconds(*flat);
  std::printf("10 trips of matmul(384) + softmax: %.2f ms, unrolled %.2f ms\n", 1e3 * looped, 1e3 * unrolled);
  EXPECT_LT(looped, 3 * unrolled);
}

TEST(control_plan, a_trip_costs_little_beyond_its_steps) {
  if (is_far()) GTEST_SKIP() << "a trip there is a piece of work of another thread";
  auto env = env_with(1);
  auto step = [](Builder&, Expr x) { return x * 0.5 + 1.0; };
  auto few = counting_loop(env, 10, {4}, step), many = counting_loop(env, 100010, {4}, step);
  for (auto* exec : {&few, &many}) ASSERT_TRUE((*exec)->bind(SlotKind::kInput, 1, noise({4})).ok());
  double trip = (best_seconds(*many) - best_seconds(*few)) / 100000;
  std::printf("a trip of three small steps: %.0f ns\n", 1e9 * trip);
  EXPECT_LT(trip, 5e-6);
}

// Only a run can be cancelled, so a loop that may take for ever is no part of compiling, even where it reads constants
// alone.
TEST(control_plan, a_long_loop_of_constants_waits_for_the_run) {
  const std::string loops[] = {
      R"(y = while(one) cond=graph {
        a = input f32[1]
        %1 = reduce(a) fn=max
        nine = constant f32[] {9}
        more = lt(%1, nine)
        output more
      } body=graph {
        a = input f32[1]
        next = sin(a)
        output next
      } n_carry=1)",
      R"(y = scan(one) n_carry=1 n_xs=0 length=281474976710656 body=graph {
        a = input f32[1]
        next = sin(a)
        output next
      })",
      R"(y = scan(one) n_carry=1 n_xs=0 length=60000 body=graph {
        a = input f32[1]
        next = scan(a) n_carry=1 n_xs=0 length=60000 body=graph {
          a = input f32[1]
          next = sin(a)
          output next
        }
        output next
      })"};
  for (const std::string& loop : loops) {
    auto graph =
        parse("graph {\nx = input f32[1]\none = constant f32[1] {1}\n" + loop + "\nz = add(x, y)\noutput z\n}");
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    auto program = Program::compile(testing_programs::env_with(1), *graph, nullptr, nullptr, {});
    ASSERT_TRUE(program.ok()) << program.status().message();
    auto exec = Exec::create(*program).value();
    auto done = exec->submit({});
    ASSERT_TRUE(done.ok()) << done.status().message();
    exec->cancel();
    EXPECT_TRUE(done->wait().ok());
    EXPECT_EQ(done->result().code(), Code::kCancelled);
  }
}

}  // namespace rlx
