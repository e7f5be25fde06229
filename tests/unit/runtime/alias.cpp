// SPDX-License-Identifier: Apache-2.0
// io.alias: an output and an input of one memory. And what a plan makes in place by itself.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "runtime/model.h"
#include "tests/unit/programs.h"

namespace rlx {

using namespace testing_programs;

static NamedAttrs aliased(std::vector<std::string> pairs) {
  return {{"io.alias", std::move(pairs)}};
}

static std::shared_ptr<Program> compiled(const Graph& graph, std::vector<std::string> pairs) {
  auto program = Program::compile(env_with(1), graph, nullptr, nullptr, aliased(std::move(pairs)));
  EXPECT_TRUE(program.ok()) << program.status().message();
  return *program;
}

static Code refusal(const Graph& graph, std::vector<std::string> pairs) {
  return Program::compile(env_with(1), graph, nullptr, nullptr, aliased(std::move(pairs))).status().code();
}

static Graph graph_with_slots() {  // next = state + x
  Graph graph;
  Dim n = Dim::symbol("n");
  EXPECT_TRUE(graph.declare_symbol("n", {0, 10}).ok());
  Builder b(graph);
  Expr state = input(b, "state", {n}), x = input(b, "x", {n});
  output(b, "next", state + x);
  output(b, "double", reshape(concat(std::array{x, x}, 0), {2 * n}));
  output(b, "positive", less(scalar_like(x, 0), x));
  return graph;
}

TEST(exec_alias, names_and_types_are_checked) {
  EXPECT_EQ(refusal(graph_with_slots(), {"next=state"}), Code::kOk);
  EXPECT_EQ(refusal(graph_with_slots(), {"next"}), Code::kOption);
  EXPECT_EQ(refusal(graph_with_slots(), {"nxt=state"}), Code::kNotFound);
  EXPECT_EQ(refusal(graph_with_slots(), {"next=y"}), Code::kNotFound);
  EXPECT_EQ(refusal(graph_with_slots(), {"next=state", "next=x"}), Code::kOption);
  EXPECT_EQ(refusal(graph_with_slots(), {"next=state", "double=state"}), Code::kOption);
  EXPECT_EQ(refusal(graph_with_slots(), {"double=x"}), Code::kShape);
  EXPECT_EQ(refusal(graph_with_slots(), {"positive=x"}), Code::kDtype);
}

TEST(exec_alias, names_may_have_an_equals_sign) {
  Graph graph;
  Builder b(graph);
  output(b, "y=", exp(input(b, "x=x", {2})));
  EXPECT_EQ(refusal(graph, {"y==x=x"}), Code::kOk);
  EXPECT_EQ(refusal(graph, {"y=x"}), Code::kNotFound);
}

TEST(exec_alias, the_two_slots_are_one) {
  auto program = compiled(graph_with_slots(), {"next=state"});
  EXPECT_EQ((*program->report("passes")).find("missed\": \"it"), std::string::npos);
  auto exec = Exec::create(program).value();
  ASSERT_TRUE(exec->set_dim("n", 3).ok());
  write(*exec, 0, {0, 0, 0});
  write(*exec, 1, {1, 2, 3});
  for (int run = 1; run <= 3; run++) {
    ASSERT_TRUE(exec->run().ok());
    for (SlotKind kind : {SlotKind::kInput, SlotKind::kOutput})
      for (int i = 0; i < 3; i++) EXPECT_EQ(shown(*exec, kind, 0).as<float>()[i], static_cast<float>(run * (i + 1)));
  }
  EXPECT_EQ(exec->tensor(SlotKind::kInput, 0)->storage(), exec->tensor(SlotKind::kOutput, 0)->storage());
  EXPECT_EQ(exec->link(0, 1).code(), Code::kExists);
}

TEST(exec_alias, what_is_bound_to_one_is_bound_to_both_and_written) {
  auto program = compiled(graph_with_slots(), {"next=state"});
  for (SlotKind kind : {SlotKind::kInput, SlotKind::kOutput}) {
    auto exec = Exec::create(program).value();
    Tensor state = noise({4}), before = noise({4}), x = noise({4}, 2);
    ASSERT_TRUE(exec->bind(kind, 0, state).ok());
    ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, x).ok());
    ASSERT_TRUE(exec->run().ok());
    ASSERT_TRUE(exec->run().ok());
    for (int i = 0; i < 4; i++)
      EXPECT_EQ(state.as<float>()[i], before.as<float>()[i] + x.as<float>()[i] + x.as<float>()[i]);
  }
}

TEST(exec_alias, memory_that_may_not_be_written_is_refused) {
  auto program = compiled(graph_with_slots(), {"next=state"});
  auto exec = Exec::create(program).value();
  Tensor state = noise({4}), x = noise({4}, 2);
  auto frozen = Storage::frozen(state.storage());
  ASSERT_TRUE(frozen);
  EXPECT_EQ(exec->bind(SlotKind::kInput, 0, state).code(), Code::kState);
  EXPECT_EQ(exec->bind(SlotKind::kOutput, 0, state).code(), Code::kState);
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, x).ok());
  EXPECT_EQ(exec->bind(SlotKind::kInput, 0, x).code(), Code::kInvalidArgument) << "it would be written and read";
}

TEST(exec_alias, pointers_that_the_device_cannot_use_are_read_and_written_back) {
  auto exec = Exec::create(compiled(graph_with_slots(), {"next=state"})).value();
  ASSERT_TRUE(exec->set_dim("n", 2).ok());
  alignas(16) char bytes[64] = {};
  float x[2] = {10, 20}, state[2] = {1, 2};
  std::memcpy(bytes + 1, state, sizeof state);
  ASSERT_TRUE(exec->bind_ptr(SlotKind::kOutput, 0, bytes + 1, sizeof state).ok());
  ASSERT_TRUE(exec->bind_ptr(SlotKind::kInput, 1, x, sizeof x).ok());
  std::vector<size_t> none{1};
  ASSERT_TRUE(exec->want(none).ok());  // state goes back all the same
  ASSERT_TRUE(exec->run().ok());
  ASSERT_TRUE(exec->run().ok());
  std::memcpy(state, bytes + 1, sizeof state);
  EXPECT_EQ(state[0], 21.0f);
  EXPECT_EQ(state[1], 42.0f);
}

TEST(exec_alias, a_call_leaves_what_it_was_given) {
  auto env = env_with(1);
  auto program = *Program::compile(env, graph_with_slots(), nullptr, nullptr,
                                   {{"io.alias", std::vector<std::string>{"next=state"}}, {"io.convert", int64_t{1}}});
  Tensor state = noise({4}), x = noise({4}, 2), wide = *Tensor::create(DType::kF64, std::array<int64_t, 1>{4});
  for (int i = 0; i < 4; i++) wide.as<double>()[i] = state.as<float>()[i];
  for (const Tensor& given : {state, wide, state}) {
    auto results = program->run({}, std::array{given, x}, {}, 1);
    ASSERT_TRUE(results.ok()) << results.status().message();
    for (int i = 0; i < 4; i++) {
      EXPECT_EQ((*results)[0].as<float>()[i], noise({4}).as<float>()[i] + x.as<float>()[i]);
      EXPECT_EQ(state.as<float>()[i], noise({4}).as<float>()[i]);
    }
  }
  EXPECT_TRUE(program->run({}, std::array{state, x}, std::array<std::string_view, 1>{"double"}, 1).ok());
  auto model = *Model::create(env, graph_with_slots(), nullptr, aliased({"next=state"}));
  auto ran = model->run("", {}, std::array{state, x}, {}, 1);
  ASSERT_TRUE(ran.ok()) << ran.status().message();
  EXPECT_EQ(ran->outputs[0].as<float>()[1], state.as<float>()[1] + x.as<float>()[1]);
}

// Outputs that are inputs, and readers that come when a value has been written.
TEST(exec_alias, the_old_value_is_kept_for_all_who_read_it) {
  Graph graph;
  Builder b(graph);
  Expr x0 = input(b, "x0", {8}), x1 = input(b, "x1", {8}), x2 = input(b, "x2", {8}), x3 = input(b, "x3", {8});
  output(b, "y0", x1);
  output(b, "y1", x0);
  output(b, "y2", concat(std::array{slice(x2, 0, 4, 8), slice(x2, 0, 0, 4)}, 0));
  output(b, "y3", concat(std::array{slice(x3, 0, 4, 8), slice(x0, 0, 0, 4)}, 0));
  output(b, "old", x3);
  output(b, "late", reduce(concat(std::array{x2, x2}, 0), "sum", {0}, KeepDims::kNo));
  for (const char* device : {"", "reference"}) {
    auto env = env_with(1);
    auto program = *Program::compile(env, graph, nullptr, *env->find_device(device),
                                     aliased({"y0=x0", "y1=x1", "y2=x2", "y3=x3"}));
    auto plain = *Program::compile(env, graph, nullptr, *env->find_device(device), {});
    std::vector<Tensor> in;
    for (uint32_t i = 0; i < 4; i++) in.push_back(noise({8}, i + 1));
    auto got = *program->run({}, in, {}, 6), want = *plain->run({}, in, {}, 6);
    for (size_t i = 0; i < want.size(); i++)
      EXPECT_EQ(std::memcmp(got[i].data(), want[i].data(), want[i].bytes()), 0) << i << plan_text(program->plan());
    std::string report = *program->report("passes"), memory = *program->report("memory");
    for (const char* why :
         {"it is the input 'x1'", "it is the input 'x0'", "reads the old value", "the output 'old' is the old value"}) {
      if (*device) continue;
      EXPECT_NE(report.find(why), std::string::npos) << why << report;
      EXPECT_NE(memory.find(why), std::string::npos) << why;
    }
  }
}

TEST(exec_alias, many_pairs_in_any_order) {
  constexpr int kPairs = 40;
  Graph graph;
  Builder b(graph);
  std::vector<Expr> in;
  for (int i = 0; i < kPairs; i++) in.push_back(input(b, format("x{}", i).c_str(), {4}));
  for (int i = 0; i < kPairs; i++) output(b, format("y{}", i).c_str(), in[i] * static_cast<double>(i) + 1.0);
  std::vector<std::string> pairs;
  for (int i = 0; i < kPairs; i++) {
    int slot = i * 7 % kPairs;
    pairs.push_back(format("y{}=x{}", slot, slot));
  }
  auto program = compiled(graph, pairs);
  auto exec = Exec::create(program).value();
  for (uint32_t i = 0; i < kPairs; i++) write(*exec, i, {1, 2, 3, 4});
  ASSERT_TRUE(exec->run().ok());
  for (uint32_t i = 0; i < kPairs; i++) {
    Tensor x = shown(*exec, SlotKind::kInput, i), y = shown(*exec, SlotKind::kOutput, i);
    EXPECT_EQ(y.as<float>()[3], 4 * static_cast<float>(i) + 1);
    EXPECT_EQ(x.as<float>()[3], y.as<float>()[3]) << i;
  }
}

static bool copies(const Program& program) {
  return plan_text(program.plan()).find("copy") != std::string::npos;
}

TEST(exec_alias, an_unchanged_input_costs_no_step) {
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {4}), z = input(b, "z", {4});
  output(b, "y", x);
  output(b, "w", exp(z));
  auto program = compiled(graph, {"y=x", "w=z"});
  EXPECT_EQ(program->plan().steps.size(), 1u);
  auto exec = Exec::create(program).value();
  write(*exec, 0, {1, 2, 3, 4});
  write(*exec, 1, {0, 0, 0, 0});
  ASSERT_TRUE(exec->run().ok());
  EXPECT_EQ(shown(*exec, SlotKind::kOutput, 0).as<float>()[3], 4);
  EXPECT_EQ(shown(*exec, SlotKind::kInput, 1).as<float>()[3], 1);
}

// Adam: all state in place, and no arena.
TEST(exec_alias, an_optimizer_step_copies_nothing) {
  Graph graph;
  Builder b(graph);
  Expr p = input(b, "p", {64, 3}), m = input(b, "m", {64, 3}), v = input(b, "v", {64, 3}), g = input(b, "g", {64, 3});
  Expr m1 = m * 0.9 + g * 0.1, v1 = v * 0.999 + g * g * 0.001;
  output(b, "p1", p - m1 * 0.01 / (sqrt(v1) + 1e-8));
  output(b, "m1", m1);
  output(b, "v1", v1);
  auto program = compiled(graph, {"p1=p", "m1=m", "v1=v"});
  EXPECT_FALSE(copies(*program)) << plan_text(program->plan());
  EXPECT_EQ(program->plan().arena_bytes, 0) << plan_text(program->plan());
  EXPECT_EQ((*program->report("memory")).find("copied"), std::string::npos) << *program->report("memory");
  std::vector<Tensor> in;
  for (uint32_t i = 0; i < 4; i++) in.push_back(noise({64, 3}, i + 1));
  for (int64_t i = 0; i < in[2].count(); i++) in[2].as<float>()[i] += 1;
  auto got = *program->run({}, in, {}, 3), want = *compiled(graph, {})->run({}, in, {}, 3);
  for (size_t i = 0; i < 3; i++) expect_near(got[i], want[i], 0);
}

// ---- appending to a cache ----

// y = cache with rows at pos, around its end.
static Graph decoder(int64_t heads, int64_t capacity, int64_t width) {
  Graph graph;
  Builder b(graph);
  Expr cache = input(b, "cache", {1, heads, capacity, width}), rows = input(b, "rows", {1, heads, 1, width});
  Expr pos = b.wrap(*graph.add_input("pos", DType::kI64, {}));
  Expr y = b.op(Op::kKvAppend, {cache, rows, pos}, {{"axis", int64_t{2}}, {"wrap", true}});
  output(b, "y", y);
  return graph;
}

TEST(exec_alias, an_append_writes_nothing_but_the_rows) {
  if (is_far()) GTEST_SKIP() << "its memory is copied, as the host has it";
  auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  auto width = static_cast<int64_t>(page / sizeof(float));
  constexpr int64_t kHeads = 2, kCapacity = 16;
  size_t bytes = static_cast<size_t>(kHeads * kCapacity) * page;
  auto* memory =
      static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  auto exec = Exec::create(compiled(decoder(kHeads, kCapacity, width), {"y=cache"})).value();
  ASSERT_TRUE(exec->bind_ptr(SlotKind::kInput, 0, memory, bytes).ok());
  Tensor rows = noise({1, kHeads, 1, width});
  int64_t pos = 0;
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, rows).ok());
  ASSERT_TRUE(exec->bind_ptr(SlotKind::kInput, 2, &pos, sizeof pos).ok());
  for (pos = 0; pos < 2 * kCapacity; pos++) {
    ASSERT_EQ(mprotect(memory, bytes, PROT_READ), 0);
    for (int64_t head = 0; head < kHeads; head++)
      ASSERT_EQ(mprotect(memory + static_cast<size_t>(head * kCapacity + pos % kCapacity) * page, page,
                         PROT_READ | PROT_WRITE),
                0);
    rows.as<float>()[0] = static_cast<float>(pos);
    ASSERT_TRUE(exec->run().ok());  // any other write would end the process
    EXPECT_EQ(reinterpret_cast<float*>(memory + static_cast<size_t>(pos % kCapacity) * page)[0],
              static_cast<float>(pos));
  }
  munmap(memory, bytes);
}

// A loop's carry that every trip appends to stays where it is, from the input to the output.
TEST(exec_alias, a_loop_appends_in_place) {
  auto body = std::make_shared<Graph>();
  {
    Builder b(*body);
    Expr cache = input(b, "cache", {8, 4});
    Expr pos = b.wrap(*body->add_input("pos", DType::kI64, {}));
    Expr row = input(b, "row", {4});
    Expr one = b.op(Op::kDynamicUpdateSlice, {cache, reshape(row, {1, 4}), pos}, {{"axis", int64_t{0}}});
    output(b, "next",
           b.op(Op::kDynamicUpdateSlice, {one, reshape(row * 2.0, {1, 4}), pos + 4}, {{"axis", int64_t{0}}}));
    ASSERT_TRUE(body->add_output("pos1", (pos + 1).value()).ok());
  }
  Graph graph;
  Builder b(graph);
  Expr cache = input(b, "cache", {8, 4});
  Expr pos = b.wrap(*graph.add_input("pos", DType::kI64, {}));
  Expr rows = input(b, "rows", {3, 4});
  auto loop = b.ops(Op::kScan, std::array{cache, pos, rows},
                    {{"body", std::shared_ptr<const Graph>(body)}, {"n_carry", int64_t{2}}, {"n_xs", int64_t{1}}});
  output(b, "y", loop[0]);
  for (bool is_aliased : {false, true}) {
    auto program = compiled(graph, is_aliased ? std::vector<std::string>{"y=cache"} : std::vector<std::string>());
    const Plan& plan = program->plan();
    ASSERT_EQ(plan.controls.size(), 1u);
    EXPECT_EQ(plan.controls[0].carries[0].way, Carry::Way::kStays) << plan_text(plan);
    if (is_aliased) {
      EXPECT_EQ(plan.aliases[0].why_copied, "");
    }
    Tensor start = *Tensor::create(DType::kI64, {});
    *start.as<int64_t>() = 1;
    Tensor before = noise({8, 4}), x = noise({3, 4}, 5);
    for (int round = 0; round < 2; round++) {
      auto got = program->run({}, std::array{before, start, x}, {}, 1);
      ASSERT_TRUE(got.ok()) << got.status().message();
      for (int64_t row = 0; row < 8; row++)
        for (int64_t i = 0; i < 4; i++) {
          int64_t trip = row % 4 - 1;
          float want =
              trip < 0 ? before.as<float>()[row * 4 + i] : x.as<float>()[trip * 4 + i] * (row < 4 ? 1.0f : 2.0f);
          EXPECT_EQ((*got)[0].as<float>()[row * 4 + i], want) << row << ' ' << i;
        }
    }
  }
}

// ---- in place without being asked ----

TEST(exec_in_place, a_chain_lies_in_its_output) {
  Graph graph;
  ASSERT_TRUE(graph.declare_symbol("n", {0, 100}).ok());
  Builder b(graph);
  Expr x = input(b, "x", {Dim::symbol("n"), 16});
  Expr a = b.op(Op::kSoftmax, {x}), c = b.op(Op::kSoftmax, {sqrt(a)});
  output(b, "y", tanh(c));
  auto program = compiled(graph, {});
  EXPECT_EQ(program->plan().arena_bytes, 0) << plan_text(program->plan());
  Tensor in = noise({5, 16});
  auto want = *(*Program::compile(env_with(1), graph, nullptr, nullptr, {{"dispatch", "reference"}}))
                   ->run({}, std::array{in}, {}, 1);
  expect_near((*program->run({}, std::array{in}, {}, 1))[0], want[0]);
}

// A value that is read again, of another size, or seen from elsewhere keeps its place.
TEST(exec_in_place, what_is_still_read_is_not_overwritten) {
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {6, 6});
  Expr a = b.op(Op::kSoftmax, {x}), t = b.op(Op::kSoftmax, {a + transpose(a, {1, 0})});
  Expr row = b.op(Op::kSoftmax, {slice(t, 0, 0, 1)});
  output(b, "y", exp(t) + row);
  output(b, "z", b.op(Op::kSoftmax, {a * 3.0}));
  auto program = compiled(graph, {});
  Tensor in = noise({6, 6});
  auto want = *(*Program::compile(env_with(1), graph, nullptr, nullptr, {{"dispatch", "reference"}}))
                   ->run({}, std::array{in}, {}, 2);
  auto got = *program->run({}, std::array{in}, {}, 2);
  for (size_t i = 0; i < 2; i++) expect_near(got[i], want[i]);
}

}  // namespace rlx
