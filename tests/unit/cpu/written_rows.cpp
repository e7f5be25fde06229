// SPDX-License-Identifier: Apache-2.0
// The CPU's rows that write rows into an axis: appends, updates of a slice and scatters, in place and beside x, for
// every rule about indices out of range.
#include "ir/text.h"
#include "tests/unit/programs.h"

namespace rlx {

using namespace testing_programs;

struct Written {
  Status status;
  Tensor y;
};

static Written written(const Graph& graph, const std::vector<Tensor>& in, NamedAttrs options, bool native) {
  if (!native) options.emplace_back("dispatch", "reference");
  auto program = Program::compile(env_with(2), graph, nullptr, nullptr, options);
  EXPECT_TRUE(program.ok()) << program.status().message();
  EXPECT_EQ((*program)->report("dispatch")->find("\"reference\"") == std::string::npos, native);
  auto results = (*program)->run({}, in, {}, 1);
  return results.ok() ? Written{{}, (*results)[0]} : Written{Status(results.status()), {}};
}

static void expect_same_rows(const Graph& graph, const std::vector<Tensor>& in) {
  for (const char* bounds : {"error", "clamp", "drop"})
    for (bool in_place : {false, true}) {
      NamedAttrs options{{"bounds", bounds}};
      if (in_place) options.emplace_back("io.alias", std::vector<std::string>{"y=x"});
      Written got = written(graph, in, options, true), want = written(graph, in, {{"bounds", bounds}}, false);
      ASSERT_EQ(got.status.code(), want.status.code()) << got.status.message() << want.status.message();
      if (!want.y) continue;
      ASSERT_TRUE(got.y.same_bytes(want.y)) << bounds;
    }
}

static Tensor positions(DType dtype, std::vector<int64_t> dims, std::initializer_list<int64_t> values) {
  Tensor tensor = *Tensor::create(dtype, dims);
  for (int64_t i = 0; i < tensor.count(); i++) {
    int64_t value = values.begin()[static_cast<size_t>(i) % values.size()];
    if (dtype == DType::kI32)
      tensor.as<int32_t>()[i] = static_cast<int32_t>(value);
    else
      tensor.as<int64_t>()[i] = value;
  }
  return tensor;
}

static Tensor bytes_of(DType dtype, std::vector<int64_t> dims, uint32_t seed) {
  Tensor tensor = *Tensor::create(dtype, dims);
  for (size_t i = 0; i < tensor.bytes(); i++) tensor.data()[i] = std::byte((i * 37 + seed * 11) % 60);
  return tensor;
}

// Small ones, so that no fold of a few rounds.
static Tensor whole_numbers(DType dtype, std::vector<int64_t> dims, uint32_t seed) {
  Tensor tensor = bytes_of(dtype, dims, seed);
  auto value = [&](int64_t i) { return (i * 37 + seed) % 11 - 5; };
  for (int64_t i = 0; i < tensor.count(); i++) {
    if (dtype == DType::kF32) tensor.as<float>()[i] = static_cast<float>(value(i));
    if (dtype == DType::kF64) tensor.as<double>()[i] = static_cast<double>(value(i));
  }
  return tensor;
}

TEST(written_rows, are_written_as_their_scatters_would) {
  struct Case {
    std::vector<int64_t> x, u, pos;
    int64_t axis;
  };
  const Case cases[] = {{{5, 3}, {2, 3}, {}, 0},        {{2, 5, 3}, {2, 2, 3}, {}, 1},  {{2, 3, 4}, {2, 3, 6}, {}, 2},
                        {{2, 5, 3}, {2, 2, 3}, {2}, 1}, {{2, 2, 5}, {2, 2, 3}, {2}, 2}, {{2, 0, 5}, {2, 0, 3}, {2}, 2},
                        {{0, 5, 3}, {0, 2, 3}, {}, 1},  {{3, 0}, {1, 0}, {}, 0},        {{0, 3}, {1, 3}, {}, 0}};
  for (DType dtype : {DType::kF32, DType::kF16, DType::kU8, DType::kF64, DType::kC128})
    for (DType index : {DType::kI32, DType::kI64})
      for (const Case& it : cases)
        for (Op op : {Op::kKvAppend, Op::kDynamicUpdateSlice})
          for (bool wrap : {false, true}) {
            if (op == Op::kDynamicUpdateSlice && (wrap || !it.pos.empty())) continue;
            for (int64_t at : {0, 3, -2, -6, -9, 7, INT32_MIN, INT32_MAX - 1}) {
              Graph graph;
              Builder b(graph);
              auto in = [&](const char* name, DType type, const std::vector<int64_t>& dims) {
                return b.wrap(*graph.add_input(name, type, std::vector<Dim>(dims.begin(), dims.end())));
              };
              Expr x = in("x", dtype, it.x), u = in("u", dtype, it.u), pos = in("pos", index, it.pos);
              NamedAttrs attrs{{"axis", it.axis}};
              if (wrap) attrs.emplace_back("wrap", true);
              output(b, "y", b.op(op, {x, u, pos}, attrs));
              SCOPED_TRACE(std::to_string(at) + print(graph));
              expect_same_rows(
                  graph, {bytes_of(dtype, it.x, 1), bytes_of(dtype, it.u, 2), positions(index, it.pos, {at, at + 1})});
              if (HasFatalFailure() || HasNonfatalFailure()) return;
            }
          }
}

TEST(written_rows, scatters_without_a_reduction_are_rows) {
  for (bool in_batch : {false, true})
    for (int64_t at : {0, -1, 9}) {
      Graph graph;
      Builder b(graph);
      Expr x = input(b, "x", {2, 4, 3, 2});
      Expr index =
          b.wrap(*graph.add_input("i", DType::kI64, in_batch ? std::vector<Dim>{2, 3, 2} : std::vector<Dim>{3, 2}));
      Expr u = input(b, "u", in_batch ? std::vector<Dim>{2, 3, 2} : std::vector<Dim>{3, 3, 2});
      output(b, "y", b.op(Op::kScatterNd, {x, index, u}, {{"batch_dims", int64_t{in_batch ? 1 : 0}}}));
      std::vector<int64_t> index_dims = in_batch ? std::vector<int64_t>{2, 3, 2} : std::vector<int64_t>{3, 2};
      expect_same_rows(graph, {noise({2, 4, 3, 2}), positions(DType::kI64, index_dims, {at, 1, 0, -1, 1, 0}),
                               in_batch ? noise({2, 3, 2}, 2) : noise({3, 3, 2}, 2)});
    }
  for (int64_t at : {0, -4, 5}) {
    Graph graph;
    Builder b(graph);
    Expr x = input(b, "x", {3, 4, 2});
    Expr index = b.wrap(*graph.add_input("i", DType::kI32, {2, 3}));
    Expr u = input(b, "u", {3, 2, 3, 2});
    output(b, "y", b.op(Op::kScatter, {x, index, u}, {{"axis", int64_t{1}}}));
    expect_same_rows(graph,
                     {noise({3, 4, 2}), positions(DType::kI32, {2, 3}, {at, 1, 1, -1, 2}), noise({3, 2, 3, 2}, 2)});
  }
}

TEST(written_rows, scatters_write_or_fold_elements) {
  struct Case {
    std::vector<int64_t> x, index;
    int64_t axis;
  };
  const Case cases[] = {{{7}, {5}, 0},
                        {{4, 3}, {9, 2}, 0},
                        {{4, 3}, {3, 7}, 1},
                        {{3, 4, 5}, {2, 6, 4}, 1},
                        {{3, 4, 5}, {2, 3, 300}, 2},
                        {{3, 4, 5, 2}, {2, 2, 5, 2}, 1},
                        {{2, 0, 3}, {2, 0, 3}, 0}};
  for (const char* reduction : {"none", "add", "mul", "max", "min"})
    for (DType dtype : {DType::kI32, DType::kU8, DType::kF64, DType::kF32})
      for (const Case& it : cases)
        for (int64_t at : {0, -1, 9}) {
          if (dtype == DType::kF32 && std::string_view(reduction) == "mul") continue;  // rounds once: `eval` does
          Graph graph;
          Builder b(graph);
          auto in = [&](const char* name, DType type, const std::vector<int64_t>& dims) {
            return b.wrap(*graph.add_input(name, type, std::vector<Dim>(dims.begin(), dims.end())));
          };
          Expr x = in("x", dtype, it.x), index = in("i", DType::kI64, it.index), u = in("u", dtype, it.index);
          output(b, "y", b.op(Op::kScatterElements, {x, index, u}, {{"axis", it.axis}, {"reduction", reduction}}));
          SCOPED_TRACE(print(graph));
          expect_same_rows(graph,
                           {whole_numbers(dtype, it.x, 1), positions(DType::kI64, it.index, {at, 1, 1, -1, 2, 0, 1}),
                            whole_numbers(dtype, it.index, 2)});
          if (HasFatalFailure()) return;
        }
}

// Sums of f32 whose updates are too many for an f32 accumulator are those of `eval`, to the bit.
TEST(written_rows, crowded_places_are_summed_in_f64) {
  constexpr int64_t kUpdates = 700;
  for (bool by_elements : {false, true}) {
    Graph graph;
    Builder b(graph);
    Expr x = input(b, "x", {40, 2}), u = input(b, "u", {kUpdates, 2});
    std::vector<int64_t> index_dims{kUpdates, by_elements ? 2 : 1};
    Expr index = b.wrap(*graph.add_input("i", DType::kI64, {index_dims[0], index_dims[1]}));
    output(b, "y", b.op(by_elements ? Op::kScatterElements : Op::kScatterNd, {x, index, u}, {{"reduction", "add"}}));
    expect_same_rows(graph, {noise({40, 2}), noise({kUpdates, 2}, 2), positions(DType::kI64, index_dims, {7})});
    if (HasFatalFailure()) return;
  }
}

// One row of x takes several updates. Integers: sums of floats may differ from the reference in their last bits.
TEST(written_rows, scatters_fold_rows) {
  for (const char* reduction : {"add", "mul", "max", "min"})
    for (int64_t at : {0, -4, 5})
      for (Op op : {Op::kScatter, Op::kScatterNd}) {
        Graph graph;
        Builder b(graph);
        bool by_tuples = op == Op::kScatterNd;
        Expr x = b.wrap(*graph.add_input("x", DType::kI32, {4, 3, 2}));
        Expr index =
            b.wrap(*graph.add_input("i", DType::kI64, by_tuples ? std::vector<Dim>{5, 1} : std::vector<Dim>{5}));
        Expr u = b.wrap(*graph.add_input("u", DType::kI32, {5, 3, 2}));
        output(b, "y", b.op(op, {x, index, u}, {{"reduction", reduction}}));
        SCOPED_TRACE(print(graph));
        std::vector<int64_t> index_dims = by_tuples ? std::vector<int64_t>{5, 1} : std::vector<int64_t>{5};
        expect_same_rows(graph,
                         {bytes_of(DType::kI32, {4, 3, 2}, 1), positions(DType::kI64, index_dims, {at, 1, 1, -1, 1}),
                          bytes_of(DType::kI32, {5, 3, 2}, 2)});
      }
}

}  // namespace rlx
