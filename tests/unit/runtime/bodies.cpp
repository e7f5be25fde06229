// SPDX-License-Identifier: Apache-2.0
// What bodies take of the program around them: prepared values that they share, and memory that reports name.
#include "ir/text.h"
#include "runtime/model.h"
#include "tests/support/transforms.h"
#include "tests/unit/programs.h"
#include "tests/unit/tensors.h"

namespace rlx {

using namespace testing_programs;

namespace {

std::shared_ptr<Program> compiled(const std::string& text, const NamedAttrs& options = {},
                                  const std::shared_ptr<Weights>& weights = nullptr, const char* device = "cpu") {
  auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  auto env = env_with(1);
  auto program = Program::compile(env, *graph, weights, *env->find_device(device), options);
  EXPECT_TRUE(program.ok()) << program.status().message();
  return program.ok() ? *program : nullptr;
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) count++;
  return count;
}

// Two branches that read tanh(w) packed, one of them in a branch of its own.
std::string readers(int count) {
  std::string text = "graph {\nx = input f32[2,64]\np = input bool[]\nw = param f32[64,64]\nt = tanh(w)\n", last = "x";
  const std::string product = "a = input f32[2,64]\nt = input f32[64,64]\ns = matmul(a, t)\n";
  for (int i = 0; i < count; i++) {
    std::string name = "y" + std::to_string(i);
    text +=
        name + " = if(p, " + last + ", t, p) then=graph {\n" + product +
        "p = input bool[]\ni = if(p, s, t) then=graph {\n" + product +
        "output s\n} else=graph {\na = input f32[2,64]\nt = input f32[64,64]\noutput a\n}\noutput i\n} else=graph {\n" +
        product + "p = input bool[]\nb = neg(s)\noutput b\n}\n";
    last = name;
  }
  return text + "output " + last + "\n}";
}

}  // namespace

TEST(bodies, share_the_values_that_are_prepared_for_them) {
  auto weights = std::make_shared<Weights>();
  ASSERT_TRUE(weights->put("w", noise({64, 64}, 3, 0.2f)).ok());
  std::vector<std::shared_ptr<Program>> programs;
  for (const char* device : {"cpu", "reference"}) programs.push_back(compiled(readers(5), {}, weights, device));
  ASSERT_TRUE(programs[0] && programs[1]);
  const CompiledGraph& source = programs[0]->compiled_graph();
  int64_t bytes = 0;
  for (const Resident& resident : source.lowered->residents) bytes += resident.bytes();
  EXPECT_EQ(bytes, 64 * 64 * 4) << *programs[0]->report("memory");
  for (uint32_t seed : {3, 4}) {
    for (const auto& program : programs) ASSERT_TRUE(program->set_param("w", noise({64, 64}, seed, 0.2f)).ok());
    for (bool which : {true, false}) {
      std::array in{noise({2, 64}), truth(which)};
      auto got = programs[0]->run({}, in, {}, 1), want = programs[1]->run({}, in, {}, 1);
      ASSERT_TRUE(got.ok() && want.ok()) << got.status().message() << want.status().message();
      expect_near((*got)[0], (*want)[0]);
    }
  }
}

// Both branches add table[index] and many values that follow from it, which are computed together; one also reads
// one of these at `other`, which may be out of range.
TEST(bodies, share_no_failure_with_one_that_does_not_read_it) {
  std::string many = "x = input f32[2]\ntable = param f32[2]\nindex = param i64[2]\nc0 = gather(table, index) axis=0\n";
  many += "s0 = add(x, c0)\n";
  for (int i = 1; i < 60; i++) many += format("c{} = sin(c{})\ns{} = mul(s{}, c{})\n", i, i - 1, i, i - 1, i);
  std::string text = "graph {\nx = input f32[2]\np = input bool[]\ny = if(p, x) then=graph {\n" + many +
                     "other = param i64[2]\nq = gather(c59, other) axis=0\ny = mul(s59, q)\n"
                     "output y\n} else=graph {\n" +
                     many + "y = neg(s59)\noutput y\n}\noutput y\n}";
  auto index = [](int64_t first) {
    Tensor tensor = *Tensor::create(DType::kI64, std::array<int64_t, 1>{2});
    tensor.as<int64_t>()[0] = first, tensor.as<int64_t>()[1] = 0;
    return tensor;
  };
  auto program = compiled(text);
  ASSERT_TRUE(program && program->set_param("table", noise({2}, 4)).ok());
  for (int64_t shared : {1, 2})
    for (int64_t alone : {1, 2}) {
      ASSERT_TRUE(program->set_param("index", index(shared)).ok());
      ASSERT_TRUE(program->set_param("other", index(alone)).ok());
      for (bool which : {true, false})
        EXPECT_EQ(program->run({}, std::array{noise({2}), truth(which)}, {}, 1).ok(),
                  shared < 2 && (!which || alone < 2))
            << shared << " " << alone << " " << which;
    }
}

// ---- memory ----

static constexpr const char* kLargeBody = R"(graph {
  x = input f32[4]
  y = scan(x) body=graph {
    a = input f32[4]
    b = broadcast_to(a) shape=[1000,4]
    c = sort(b) axis=0
    d = cumulative(c) fn=sum axis=0
    e = reduce(d) fn=sum axes=[0] keep_dims=false
    output e
  } n_carry=1 n_xs=0 length=2
  output y
})";

TEST(bodies, have_buffers_in_the_memory_report_and_above_the_limit) {
  auto program = compiled(kLargeBody);
  ASSERT_TRUE(program);
  std::string memory = *program->report("memory");
  EXPECT_GT(count_of(memory, "\"body\": \"scan 'y' (%1) body\""), 1u) << memory;
  for (const MemoryPart& part : memory_parts(program->plan())) {
    if (part.region != "arena") continue;
    EXPECT_GE(part.offset, 0) << part.text();
    EXPECT_LE(part.offset + part.bytes, program->plan().arena_bytes) << part.text();
  }
  auto env = env_with(1);
  Status refused =
      Program::compile(env, *parse(kLargeBody), nullptr, *env->find_device("cpu"), {{"memory.limit", int64_t{1000}}})
          .status();
  EXPECT_EQ(refused.code(), Code::kNoMemory);
  EXPECT_NE(refused.message().find("the largest: scan 'y' (%1) body: "), std::string::npos) << refused.message();
}

// ---- carries ----

// `x` decides nothing, and goes from trip to trip as it is.
static std::string passing(const std::string& loop) {
  return "graph (n in [1, 1000]) {\nx = input f32[n]\ns = input f32[]\n" + loop + "output y\noutput z\n}";
}
static const std::string kBody = R"(body=graph {
    a = input f32[]
    b = input f32[n]
    c = reduce(b) fn=sum axes=[0]
    e = add(a, c)
    output e
    output b
  })";

TEST(bodies, do_not_copy_a_carry_that_they_pass_on) {
  const std::string cond = R"(cond=graph {
    a = input f32[]
    b = input f32[n]
    k = constant f32[] {9}
    l = lt(a, k)
    output l
  } )";
  std::vector<std::string> loops;
  for (const char* length : {"0", "1", "2", "3"})
    loops.push_back("y, z = scan(s, x) " + kBody + " n_carry=2 n_xs=0 length=" + length + "\n");
  loops.push_back("y, z = while(s, x) " + cond + kBody + " n_carry=2\n");
  for (const std::string& loop : loops) {
    auto program = compiled(passing(loop)), reference = compiled(passing(loop), {}, nullptr, "reference");
    ASSERT_TRUE(program && reference);
    for (const Control& control : program->plan().controls) {
      EXPECT_EQ(control.carries[1].way, Carry::Way::kPasses);
      EXPECT_LT(program->plan().arena_bytes, 1000);
    }
    for (int64_t n : {1000, 3}) {
      std::array in{filled({n}, 1), filled({}, 0)};
      auto got = program->run({}, in, {}, 2), want = reference->run({}, in, {}, 2);
      ASSERT_TRUE(got.ok() && want.ok()) << got.status().message() << want.status().message();
      for (size_t i = 0; i < 2; i++) expect_near((*got)[i], (*want)[i]);
    }
  }
}

// No input tells what n is. Of the second graph, the branch alone would, but its nodes take its place.
TEST(bodies, that_are_inlined_know_the_sizes_that_options_give) {
  const std::string head = "graph (n in [0, 100]) {\nx = input f32[3]\n", padded = "p = pad(x) lo=[0] hi=[n]\n";
  const std::string branch = "graph {\nx = input f32[n]\n" + padded + "y = reduce(p) fn=sum\noutput y\n}";
  const std::string plain = head + padded + "y = reduce(p) fn=sum\noutput y\n}";
  const std::string chosen =
      head + "yes = constant bool[] {true}\ny = if(yes, x) then=" + branch + " else=" + branch + "\noutput y\n}";
  for (const std::string& text : {plain, chosen})
    for (const char* device : {"cpu", "reference"}) {
      auto program = compiled(text, {{"dims.n", int64_t{3}}}, nullptr, device);
      ASSERT_TRUE(program);
      EXPECT_FALSE(test::has_op(program->plan().graph(), Op::kIf)) << device;
      auto got = program->run({}, std::array{row({1, 2, 4})}, {}, 1);
      ASSERT_TRUE(got.ok()) << device << ": " << got.status().message();
      expect_near((*got)[0], filled({}, 7));
    }
}

// One carry stays, one takes its value, and the size of one changes.
TEST(bodies, pass_on_a_carry_beside_others_that_change) {
  for (const char* length : {"0", "1", "4", "5"}) {
    std::string text = std::string(R"(graph (n in [1, 50]) {
      x = input f32[n]
      y, z, w = scan(x, x, x) body=graph (s) {
        a = input f32[n]
        b = input f32[n]
        c = input f32[s]
        d = concat(c, b) axis=0
        output a
        output e = a
        output d
      } n_carry=3 n_xs=0 length=)") +
                       length + "\noutput y\noutput z\noutput w\n}";
    auto program = compiled(text), reference = compiled(text, {}, nullptr, "reference");
    ASSERT_TRUE(program && reference);
    for (int64_t n : {50, 3}) {
      auto got = program->run({}, std::array{noise({n})}, {}, 3),
           want = reference->run({}, std::array{noise({n})}, {}, 3);
      ASSERT_TRUE(got.ok() && want.ok()) << got.status().message() << want.status().message();
      for (size_t i = 0; i < 3; i++) expect_near((*got)[i], (*want)[i]);
    }
  }
}

// Of no bound, in a loop in a loop; the outer one passes it on too.
TEST(bodies, pass_on_a_carry_of_open_size) {
  std::string text = R"(graph {
    k = input i64[]
    i = dynamic_iota(k) symbol="m"
    x = cast(i) to=f32
    s = constant f32[] {0}
    y, z = scan(s, x) body=graph {
      a = input f32[]
      b = input f32[m]
      e, f = scan(a, b) body=graph {
        a = input f32[]
        b = input f32[m]
        c = reduce(b) fn=sum axes=[0]
        e = add(a, c)
        output e
        output b
      } n_carry=2 n_xs=0 length=3
      output e
      output f
    } n_carry=2 n_xs=0 length=2
    output y
    output z
  })";
  auto program = compiled(text), reference = compiled(text, {}, nullptr, "reference");
  ASSERT_TRUE(program && reference);
  for (int64_t count : {4, 1000, 0, 7}) {
    std::array in{scalar_i64(count)};
    auto got = program->run({}, in, {}, 2), want = reference->run({}, in, {}, 2);
    ASSERT_TRUE(got.ok() && want.ok()) << got.status().message() << want.status().message();
    for (size_t i = 0; i < 2; i++) expect_near((*got)[i], (*want)[i]);
  }
}

// ---- sizes ----

TEST(bodies, choose_sizes_that_nobody_sets) {
  auto exec = exec_of(R"(graph (n in [1, 5]) {
    x = input f32[n]
    l = dim_size(x) axis=0
    k = constant i64[] {3}
    p = lt(l, k)
    z = if(p, x) then=graph {
      a = input f32[n]
      b = concat(a, a) axis=0
      output b
    } else=graph {
      a = input f32[n]
      output a
    }
    output z
  })");
  EXPECT_EQ(exec->set_dim("if.0", 2).code(), Code::kInvalidArgument);
  EXPECT_TRUE(exec->set_dim("n", 2).ok());
}

// The places of what is not 0, as floats: a size that the run finds and that `s`, a size without a bound, bounds.
static const std::string kPlaces =
    "a = input f32[s]\nz = nonzero(a) symbol=k\nf = cast(z) to=f32\nr = reduce(f) fn=sum axes=[1]\n";
static const std::string kOneTrip =
    "q, y = while(p, x) cond=graph (s) {\np = input bool[]\na = input f32[s]\noutput p\n}"
    " body=graph (s) {\np = input bool[]\n" +
    kPlaces + "n = constant bool[] {false}\noutput n\noutput r\n} n_carry=2\n";
static const std::string kTwice = "v = neg(y)\nu = concat(v, y) axis=0\nw = neg(u)\n";

static std::string in_branch(const std::string& nodes, const std::string& size) {
  std::string inputs = "graph {\nx = input f32[" + size + "]\np = input bool[]\n";
  return "w = if(p, x, p) then=" + inputs + nodes + "output w\n} else=" + inputs +
         "o = constant f32[1] {7}\noutput o\n}\n";
}

// Where a node takes its size from a body, a bound of this size that only follows from sizes without one counts as
// none.
TEST(bodies, decide_sizes_without_a_bound) {
  const std::string x = "graph (n in [0, 6]) {\nx = input f32[n]\np = input bool[]\n";
  auto scan = [](const std::string& last) {
    return "y = scan(x) body=graph (s) {\n" + kPlaces + last + "} n_carry=1 n_xs=0 length=2\n";
  };
  std::string counted = "i = dynamic_iota(c) symbol=m\nx = cast(i) to=f32\n";
  std::string inner =
      "y = if(p, x) then=graph {\na = input f32[m]\nz = nonzero(a) symbol=k\nf = cast(z) to=f32\n"
      "r = reduce(f) fn=sum axes=[1]\noutput r\n} else=graph {\na = input f32[m]\n"
      "e = constant f32[1] {1}\noutput e\n}\n";
  struct Case {
    std::string text;
    bool is_counted;
    std::vector<float> want;
  } cases[] = {
      {x + kOneTrip + kTwice + "output w\n}", false, {0, 2, 3, -0.0f, -2, -3}},
      {x + kOneTrip + "w = neg(y)\noutput w\n}", false, {-0.0f, -2, -3}},
      {x + scan("output r\n") + kTwice + "output w\n}", false, {1, 2, -1, -2}},
      {x + scan("h = slice(r) axes=[0] starts=[0] ends=[k] steps=[2]\noutput h\n") + kTwice + "output w\n}",
       false,
       {1, -1}},
      {x + in_branch(kOneTrip + kTwice, "n") + "output w\n}", false, {0, 2, 3, -0.0f, -2, -3}},
      {"graph {\nc = input i64[]\np = input bool[]\n" + counted + in_branch(inner + kTwice, "m") + "output w\n}",
       true,
       {1, 2, -1, -2}},
  };
  for (const Case& it : cases)
    for (const char* device : {"cpu", "reference"}) {
      auto program = compiled(it.text, {}, nullptr, device);
      ASSERT_TRUE(program) << it.text;
      ASSERT_LT(program->plan().arena_bytes, 1 << 20) << it.text;
      EXPECT_TRUE(program->plan().outputs[0].is_open) << it.text;
      std::array in{it.is_counted ? scalar_i64(3) : row({1, 0, 5, 6}), truth(true)};
      std::span<const Tensor> given(in);
      auto got = program->run({}, given.first(program->plan().inputs.size()), {}, 1);
      ASSERT_TRUE(got.ok()) << got.status().message() << it.text;
      ASSERT_EQ((*got)[0].count(), static_cast<int64_t>(it.want.size())) << it.text;
      for (size_t i = 0; i < it.want.size(); i++) EXPECT_EQ((*got)[0].as<float>()[i], it.want[i]) << i << it.text;
    }
}

}  // namespace rlx
