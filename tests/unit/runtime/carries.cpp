// SPDX-License-Identifier: Apache-2.0
// Carries that a body passes on as they are: they change places, and their bytes stay where they are.
#include "tests/unit/programs.h"
#include "tests/unit/tensors.h"

namespace rlx {

using namespace testing_programs;

namespace {

std::shared_ptr<Program> compiled(const std::string& text, const char* device, const NamedAttrs& options = {}) {
  auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  auto env = env_with(1);
  auto program = Program::compile(env, *graph, nullptr, *env->find_device(device), options);
  EXPECT_TRUE(program.ok()) << program.status().message();
  return program.ok() ? *program : nullptr;
}

// The device of the tests and `reference` on the same inputs, twice; no run may change its inputs.
void check(const std::string& text, const std::vector<std::vector<Tensor>>& runs, const NamedAttrs& options = {}) {
  auto program = compiled(text, test_device().c_str(), options), reference = compiled(text, "reference");
  ASSERT_TRUE(program && reference);
  size_t count = program->slots(SlotKind::kOutput).size();
  for (int round = 0; round < 2; round++)
    for (const std::vector<Tensor>& in : runs) {
      auto want = reference->run({}, in, {}, count);
      ASSERT_TRUE(want.ok()) << want.status().message();
      for (int again = 0; again < 2; again++) {
        auto got = program->run({}, in, {}, count);
        ASSERT_TRUE(got.ok()) << got.status().message() << text;
        for (size_t i = 0; i < count; i++) expect_near(on_host((*got)[i]), (*want)[i]);
      }
    }
}

// A scan or a `while` of so many trips, with three carries of n numbers and the statements of its body. The body also
// has the capture w, and that of a scan the row r. The first values are computed, so that results may lie over them.
std::string loop_text(bool is_scan, int trips, const std::string& body) {
  const std::string carries = "a = input f32[n]\nb = input f32[n]\nc = input f32[n]\n", count = std::to_string(trips);
  const std::string of_while = "t = input f32[]\n" + carries + "w = input f32[n]\n";
  std::string text = "graph (n in [1, 100]) {\n" + carries + "w = input f32[n]\n";
  if (is_scan) text += "rows = input f32[" + count + ",n]\n";
  text += "p = sin(a)\nq = cos(b)\ns = tanh(c)\n";
  if (is_scan)
    text += "x, y, z = scan(p, q, s, rows, w) body=graph {\n" + carries + "r = input f32[n]\nw = input f32[n]\n" +
            body + "} n_carry=3 n_xs=1\n";
  else
    text += "t = constant f32[] {0}\nlast, x, y, z = while(t, p, q, s, w) cond=graph {\n" + of_while +
            "most = constant f32[] {" + count + "}\nmore = lt(t, most)\noutput more\n} body=graph {\n" + of_while +
            "one = constant f32[] {1}\nnext = add(t, one)\noutput next\n" + body + "} n_carry=4\n";
  return text + "output x\noutput y\noutput z\n}";
}

std::vector<Tensor> loop_inputs(bool is_scan, int trips, int64_t n) {
  std::vector<Tensor> in{noise({n}, 1), noise({n}, 2), noise({n}, 3), noise({n}, 4)};
  if (is_scan) in.push_back(noise({trips, n}, 5));
  return in;
}

void check_loop(bool is_scan, const std::string& body, const NamedAttrs& options = {}) {
  for (int trips : {0, 1, 2, 3, 4, 5, 8})
    check(loop_text(is_scan, trips, body),
          {loop_inputs(is_scan, trips, 3), loop_inputs(is_scan, trips, 100), loop_inputs(is_scan, trips, 1)}, options);
}

size_t copies(const Plan& body) {
  return static_cast<size_t>(std::ranges::count(body.steps, nullptr, &Step::kernel));
}

constexpr size_t kPassed = SIZE_MAX;
struct Passing {
  const char* body;              // of loop_text
  std::array<size_t, 3> spares;  // by carry; kPassed: no trip writes it
  size_t copies = 0;             // of the plan of the body
};

TEST(carries, change_places_without_a_copy) {
  const Passing cases[] = {
      {"output b\noutput a\noutput c\n", {kPassed, kPassed, kPassed}},                  // exchange
      {"output c\noutput a\noutput b\n", {kPassed, kPassed, kPassed}},                  // in a circle
      {"d = add(c, w)\noutput d\noutput a\noutput b\n", {3, kPassed, kPassed}},         // a delay line
      {"d = add(a, b)\noutput b\noutput d\noutput c\n", {kPassed, 2, kPassed}},         // the last two values
      {"d = sin(a)\noutput d\noutput a\noutput e = a\n", {2, kPassed, kPassed}},        // one for two others
      {"d = sin(a)\noutput d\noutput c\noutput b\n", {0, kPassed, kPassed}},            // beside an exchange
      {"d = sin(c)\noutput w\noutput a\noutput d\n", {kPassed, kPassed, 0}},            // a capture
      {"d = sin(a)\ne = cos(b)\noutput d\noutput e\noutput b\n", {0, 2, kPassed}},      // two new ones
      {"d = sin(a)\noutput d\noutput a\noutput e = d\n", {2, kPassed, 0}, 1},           // one new one for two
      {"d = flip(b) axes=[0]\noutput d\noutput a\noutput c\n", {2, kPassed, kPassed}},  // not over what it reads
  };
  for (const Passing& it : cases)
    for (bool is_scan : {false, true}) {
      auto program = compiled(loop_text(is_scan, 5, it.body), test_device().c_str());
      ASSERT_TRUE(program);
      const Control& loop = program->plan().controls[0];
      EXPECT_EQ(copies(*loop.bodies.back().plan), it.copies) << plan_text(program->plan());
      for (size_t i = 0; i < it.spares.size(); i++) {
        const Carry& carry = loop.carries[i + (is_scan ? 0 : 1)];
        EXPECT_EQ(carry.way == Carry::Way::kPasses, it.spares[i] == kPassed) << i << plan_text(program->plan());
        EXPECT_EQ(carry.spares.size(), it.spares[i] == kPassed ? 0 : it.spares[i]) << i << plan_text(program->plan());
      }
      check_loop(is_scan, it.body);
    }
}

TEST(carries, stand_in_the_text_of_the_plan) {
  auto program = compiled(loop_text(true, 5, "d = sin(a)\ne = cos(c)\noutput d\noutput a\noutput e\n"), "cpu");
  ASSERT_TRUE(program);
  std::string text = *program->report("text");
  EXPECT_NE(text.find("; carry 0 <- output.0 in turn with 2 spare places\n; carry 1 <- input.0\n"
                      "; carry 2 <- output.2 over the last one\n"),
            text.npos)
      << text;
}

// The row before, and the one before that.
TEST(carries, hold_rows_where_they_lie) {
  const std::string body = "output r\noutput a\noutput d = b\n";
  auto program = compiled(loop_text(true, 5, body), test_device().c_str());
  ASSERT_TRUE(program);
  const Control& loop = program->plan().controls[0];
  EXPECT_EQ(loop.bodies.back().plan->steps.size(), 0u) << plan_text(program->plan());
  EXPECT_EQ(loop.carries[0].from, 3u);
  check_loop(true, body);
  check_loop(true, "d = add(r, a)\noutput r\noutput d\noutput b\n");
}

// A view that leaves out nothing is the value itself; any other is copied.
TEST(carries, are_copied_where_their_elements_move) {
  auto copied = [](const std::string& next) {
    std::string text =
        "graph {\na = input f32[4,4]\nb = input f32[4,4]\np = sin(a)\ny, z = scan(p, b) body=graph {\n"
        "a = input f32[4,4]\nb = input f32[4,4]\n" +
        next + "output c\noutput a\n} n_carry=2 n_xs=0 length=3\noutput y\noutput z\n}";
    check(text, {{noise({4, 4}, 1), noise({4, 4}, 2)}});
    auto program = compiled(text, test_device().c_str());
    return program->plan().controls[0].bodies[0].plan->steps.size();
  };
  EXPECT_EQ(copied("d = reshape(b) shape=[2,8]\nc = reshape(d) shape=[4,4]\n"), 0u);
  EXPECT_EQ(copied("c = transpose(b) perm=[1,0]\n"), 1u);
}

// The input of an alias is not overwritten before the other results are there.
TEST(carries, change_places_beside_aliases) {
  for (bool is_scan : {false, true})
    for (const char* body : {"output b\noutput a\noutput c\n", "d = sin(c)\noutput d\noutput a\noutput b\n"})
      check_loop(is_scan, body, {{"io.alias", std::vector<std::string>{"x=a", "y=b"}}});
}

// ---- sizes ----

// Two carries of different sizes: each result has the size of what it is.
std::string sizes_text(const std::string& range, int trips, const std::string& next) {
  return "graph (n in [0, 20], m in [0, 20]) {\na = input f32[n]\nb = input f32[m]\np = sin(a)\nq = sin(b)\n"
         "y, z = scan(p, q) body=graph (s" +
         range + ", t" + range + ") {\na = input f32[s]\nb = input f32[t]\n" + next +
         "} n_carry=2 n_xs=0 length=" + std::to_string(trips) + "\noutput y\noutput z\n}";
}

TEST(carries, change_places_with_their_sizes) {
  const std::string exchange = "output b\noutput a\n", grows = "c = concat(a, b) axis=0\noutput b\noutput c\n",
                    shrinks = "c = slice(a) axes=[0] starts=[0] ends=[1]\noutput c\noutput a\n",
                    skips = "c = slice(a) axes=[0] starts=[1] ends=[4]\noutput b\noutput c\n";
  for (const std::string& next : {exchange, grows, shrinks, skips})
    for (const char* range : {" in [0, 200]", ""})
      for (int trips : {0, 1, 2, 3, 4})
        check(sizes_text(range, trips, next), {{noise({20}, 1), noise({7}, 2)},
                                               {noise({3}, 1), noise({20}, 2)},
                                               {noise({1}, 1), noise({0}, 2)},
                                               {noise({20}, 1), noise({20}, 2)}});
}

// ---- nested loops ----

TEST(carries, change_places_in_loops_in_loops) {
  const std::string inner[] = {"output b\noutput a\n", "d = sin(a)\noutput b\noutput d\n", "output a\noutput b\n"},
                    outer[] = {"output v\noutput u\n", "w = tanh(v)\noutput w\noutput u\n", "output b\noutput u\n"};
  const std::string carries = "a = input f32[n]\nb = input f32[n]\n";
  for (const std::string& of_inner : inner)
    for (const std::string& of_outer : outer)
      for (int trips : {0, 1, 2, 5})
        check("graph (n in [1, 100]) {\n" + carries + "p = sin(a)\nx, y = scan(p, b) body=graph {\n" + carries +
                  "u, v = scan(a, b) body=graph {\n" + carries + of_inner + "} n_carry=2 n_xs=0 length=3\n" + of_outer +
                  "} n_carry=2 n_xs=0 length=" + std::to_string(trips) + "\noutput x\noutput y\n}",
              {{noise({100}, 1), noise({100}, 2)}, {noise({3}, 1), noise({3}, 2)}});
}

}  // namespace

}  // namespace rlx
