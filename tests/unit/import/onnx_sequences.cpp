// SPDX-License-Identifier: Apache-2.0
// Sequences, optionals and defaults as inputs and outputs, and what is written out trip by trip.
#include "opened.h"

namespace rlx {

using onnx::Maker;

static ImportOptions of_sequence(int64_t length, int64_t rank) {
  ImportOptions options;
  options.choices.sequences = {{"s", length}};
  options.choices.ranks = {{"s", rank}};
  return options;
}

static std::string outputs_of(const Maker& maker, const ImportOptions& options) {
  auto bytes = std::make_shared<const std::string>(maker.bytes());
  auto imported = import_onnx({std::as_bytes(std::span(*bytes)), bytes, {}}, options);
  if (!imported.ok()) return std::string(imported.status().message());
  std::string text;
  for (const GraphOutput& output : imported->graph.outputs())
    text += output.name + text_of(imported->graph.type(output.value).dims) + " ";
  return text;
}

TEST(onnx_sequences, elements_are_inputs_and_outputs_of_their_own) {
  Maker maker(13);
  maker.sequence("s", 1).input("x", 1, {"3"}).node("SequenceInsert", {"s", "x"}, {"y"}).output("y");
  EXPECT_EQ(outputs_of(maker, of_sequence(2, 1)), "y.0[s.0.0] y.1[s.1.0] y.2[3] ");
  EXPECT_EQ(outputs_of(maker, of_sequence(0, 1)), "y.0[3] ");
  EXPECT_NE(outputs_of(maker, {}).find("sequence.s"), std::string::npos);
  ImportOptions no_rank;
  no_rank.choices.sequences = {{"s", 1}};
  EXPECT_NE(outputs_of(maker, no_rank).find("rank.s.0"), std::string::npos);
}

TEST(onnx_inputs, a_failed_import_names_all_inputs_without_a_rank) {
  Maker maker(13);
  maker.sequence("s", 1).input_of_any_rank("x", 1).input_of_any_rank("z", 1).input("w", 1, {"3"});
  maker.node("Add", {"x", "z"}, {"y"}).output("y");
  ImportOptions options;
  options.choices.sequences = {{"s", 2}};
  EXPECT_NE(outputs_of(maker, options).find("rank.s.0, rank.s.1, rank.x, rank.z"), std::string::npos);
  options.choices.ranks = {{"s", 0}, {"x", 1}};
  EXPECT_NE(outputs_of(maker, options).find("rank.z"), std::string::npos);
  options.choices.values = {{"z", counting({2})}};  // which has a rank
  EXPECT_EQ(outputs_of(maker, options), "y[2] ");
}

TEST(onnx_sequences, a_position_is_named_as_the_file_has_it) {
  Maker maker(11);
  maker.input("x", 1, {"2"}).i64("at", {}, {-3}).node("SequenceConstruct", {"x", "x"}, {"s"});
  maker.node("SequenceInsert", {"s", "x", "at"}, {"longer"}).node("SequenceLength", {"longer"}, {"y"}).output("y");
  EXPECT_NE(Opened(maker).run({counting({2})}).find("position -3 of a sequence of 2"), std::string::npos);
}

TEST(onnx_sequences, an_optional_is_there_unless_it_is_left_out) {
  Maker maker(16);
  maker.sequence("s", 1, true).node("OptionalHasElement", {"s"}, {"y"}).output("y");
  EXPECT_EQ(Opened(maker, {}, of_sequence(1, 1)).run({counting({2})}), "bool[] 1");
  ImportOptions absent;
  absent.choices.absent = {"s"};
  EXPECT_EQ(Opened(maker, {}, absent).run({}), "bool[] 0");
}

// ONNX: an initializer that is an input too is the default of the input.
TEST(onnx_inputs, an_initializer_that_is_an_input_may_be_given_at_every_run) {
  Maker maker;
  maker.input("x", 1, {"n", "2"}).input("w", 1, {"2"}).input("axes", 7, {"1"});
  maker.f32("w", {2}, {10, 20}).i64("axes", {1}, {1}).f32("own", {1}, {1});
  maker.node("Add", {"x", "w"}, {"s"}).node("ReduceSum", {"s", "axes"}, {"t"}, {Maker::attr("keepdims", 0)});
  maker.node("Mul", {"t", "own"}, {"y"}).output("y");
  Tensor x = counting({2, 2});
  EXPECT_EQ(Opened(maker).run({x}), "f32[2] 31 35");
  ImportOptions options;
  options.choices.given = {"w"};
  EXPECT_EQ(Opened(maker, {}, options).run({x, counting({2})}), "f32[2] 2 6");
  EXPECT_EQ(Opened(maker, {}, options).run({x}), "the input 'w' is missing");
  options.choices.given = {"axes"};  // which decides the structure of the graph
  EXPECT_EQ(Opened(maker, {}, options).run({x, list({0})}), "f32[2] 22 44");
  EXPECT_EQ(Opened(maker, {}, options).run({x, list({1})}), "f32[2] 31 35");
  options.choices.given = {"own"};
  EXPECT_EQ(Opened(maker, {}, options).run({x}), "'input.own': there is no input with a default 'own', only w, axes");
}

// A list that each trip makes one axis richer.
TEST(onnx_trips, a_carry_may_change_its_rank) {
  Maker body, maker(13);
  body.input("i", 7, {}).input("c", 9, {}).input("h", 1, {}).i64("front", {1}, {0});
  body.node("Identity", {"c"}, {"d"}).node("Unsqueeze", {"h", "front"}, {"g"}).output("d").output("g");
  maker.input("x", 1, {"n"}).input("m", 7, {});
  maker.node("Loop", {"m", "", "x"}, {"y"}, {Maker::attr("body", body)}).output("y");
  Opened opened(maker);
  for (int64_t trips : {0, 1, 3}) {
    Tensor count = *Tensor::create(DType::kI64, std::span<const int64_t>());
    count.as<int64_t>()[0] = trips;
    EXPECT_EQ(opened.run({counting({2}), count}), trips == 0   ? "f32[2] 0 1"
                                                  : trips == 1 ? "f32[1,2] 0 1"
                                                               : "f32[1,1,1,2] 0 1");
  }
}

TEST(onnx_sequences, a_body_reads_elements_of_a_sequence_around_it) {
  Maker yes, no, maker(13);
  yes.node("SequenceInsert", {"s", "x"}, {"t"}).node("ConcatFromSequence", {"t"}, {"a"}, {Maker::attr("axis", 0)});
  yes.node("ReduceSum", {"a"}, {"c"}).output("c");
  no.node("SequenceAt", {"s", "one"}, {"b"}).node("ReduceSum", {"b"}, {"d"}).output("d");
  maker.sequence("s", 1).input("x", 1, {"1"}).input("p", 9, {}).i64("one", {}, {1});
  maker.node("If", {"p"}, {"y"}, {Maker::attr("then_branch", yes), Maker::attr("else_branch", no)}).output("y");
  Opened opened(maker, {}, of_sequence(2, 1));
  Tensor truth = *Tensor::create(DType::kBool, std::span<const int64_t>());
  for (bool p : {true, false}) {
    truth.as<uint8_t>()[0] = p;
    EXPECT_EQ(opened.run({counting({4}), counting({3}), counting({1}), truth}), p ? "f32[1] 9" : "f32[1] 3");
  }
}

TEST(onnx_sequences, a_graph_is_mapped_over_elements) {
  Maker body, maker(17);
  body.input("a", 1, {"n"}).input("b", 1, {"1"}).node("Add", {"a", "b"}, {"c"}).output("c");
  maker.sequence("s", 1).input("x", 1, {"1"}).node("SequenceMap", {"s", "x"}, {"t"}, {Maker::attr("body", body)});
  maker.node("ConcatFromSequence", {"t"}, {"y"}, {Maker::attr("axis", 0)}).output("y");
  Opened opened(maker, {}, of_sequence(2, 1));
  EXPECT_EQ(opened.run({counting({2}), counting({3}), counting({1})}), "f32[5] 0 1 0 1 2");
}

// Trip t adds a row of t + 1 elements; how many trips there are, the run says.
TEST(onnx_sequences, a_loop_of_growing_elements_is_written_out) {
  Maker body, maker(13);
  body.input("i", 7, {}).input("c", 9, {}).sequence("before", 1);
  body.node("Identity", {"c"}, {"c2"}).node("Add", {"i", "one"}, {"n"}).node("Unsqueeze", {"n", "zero"}, {"end"});
  body.node("Slice", {"x", "zero", "end"}, {"row"}).node("SequenceInsert", {"before", "row"}, {"after"});
  body.output("c2").output("after");
  maker.input("x", 1, {"4"}).input("trips", 7, {}).i64("one", {}, {1}).i64("zero", {1}, {0});
  maker.node("SequenceEmpty", {}, {"none"}).node("Loop", {"trips", "", "none"}, {"t"}, {Maker::attr("body", body)});
  maker.node("ConcatFromSequence", {"t"}, {"y"}, {Maker::attr("axis", 0)}).output("y");
  Opened opened(maker);
  EXPECT_EQ(opened.run({counting({4}), *list({1}).reshaped({})}), "f32[1] 0");
  EXPECT_EQ(opened.run({counting({4}), *list({3}).reshaped({})}), "f32[6] 0 0 1 0 1 2");
}

// A trip doubles a number and adds it to the list, until it reaches the limit: 1 2 4 ...
static Maker doubling(const char* axis_mode, bool is_new) {
  Maker body, maker(13);
  body.input("i", 7, {}).input("c", 9, {}).input("h", 1, {"2"}).sequence("before", 1);
  body.node("Add", {"h", "h"}, {"h2"}).node("SequenceInsert", {"before", "h"}, {"after"});
  body.node("ReduceMax", {"h2"}, {"most"}, {Maker::attr("keepdims", 0)}).node("Less", {"most", "limit"}, {"c2"});
  body.output("c2").output("h2").output("after");
  maker.input("x", 1, {"2"}).input("limit", 1, {}).i64("last", {}, {-1});
  maker.node("SequenceEmpty", {}, {"none"});
  maker.node("Loop", {"", "", "x", "none"}, {"h", "t"}, {Maker::attr("body", body)});
  if (std::string(axis_mode) == "at") maker.node("SequenceAt", {"t", "last"}, {"y"});
  if (std::string(axis_mode) == "length") maker.node("SequenceLength", {"t"}, {"y"});
  if (std::string(axis_mode) == "join")
    maker.node("ConcatFromSequence", {"t"}, {"y"}, {Maker::attr("axis", 0), Maker::attr("new_axis", is_new ? 1 : 0)});
  if (std::string(axis_mode) == "across")
    maker.node("ConcatFromSequence", {"t"}, {"y"}, {Maker::attr("axis", -1), Maker::attr("new_axis", 1)});
  return std::move(maker.output("y"));
}

TEST(onnx_sequences, a_sequence_that_trips_without_a_known_number_append_to_is_what_they_stack) {
  auto limit = [](int64_t number) { return *scalar_tensor(DType::kF32, static_cast<double>(number)); };
  Opened rows(doubling("join", true)), flat(doubling("join", false)), across(doubling("across", false)),
      last(doubling("at", false)), length(doubling("length", false));
  EXPECT_EQ(rows.run({counting({2}), limit(4)}), "f32[2,2] 0 1 0 2");
  EXPECT_EQ(rows.run({counting({2}), limit(16)}), "f32[4,2] 0 1 0 2 0 4 0 8");
  EXPECT_EQ(flat.run({counting({2}), limit(4)}), "f32[4] 0 1 0 2");
  EXPECT_EQ(across.run({counting({2}), limit(4)}), "f32[2,2] 0 0 1 2");
  EXPECT_EQ(last.run({counting({2}), limit(16)}), "f32[2] 0 8");
  EXPECT_EQ(length.run({counting({2}), limit(16)}), "i64[] 4");
}

// x, x + 1, ... from a loop whose trips only the run knows, after the elements of `start`. At a position there are as
// many trips as `grid` has elements that are not 0.
static Maker counted(const std::vector<std::string>& start, const char* position = "") {
  Maker body, maker(13);
  body.input("i", 7, {}).input("more", 9, {}).sequence("s", 1).node("Cast", {"i"}, {"f"}, {Maker::attr("to", 1)});
  body.node("Constant", {}, {"inner"}, {Maker::attr("value_int", 0)});
  body.node("Add", {"x", "f"}, {"row"}).node("SequenceInsert", {"s", "row", position}, {"longer"});
  body.node("Identity", {"more"}, {"again"}).output("again").output("longer");
  maker.input("x", 1, {"2"}).input("trips", 7, {}).input("at", 7, {});
  maker.node(start.empty() ? "SequenceEmpty" : "SequenceConstruct", start, {"none"});
  if (*position) {
    maker.input("grid", 1, {"1", "3"}).i64("last", {}, {1}).node("NonZero", {"grid"}, {"places"});
    maker.node("Shape", {"places"}, {"dims"}).node("Gather", {"dims", "last"}, {"many"});
  }
  maker.node("Loop", {*position ? "many" : "trips", "", "none"}, {"rows"}, {Maker::attr("body", body)});
  return maker;
}

TEST(onnx_sequences, what_trips_have_stacked_gains_and_loses_elements) {
  auto run = [](const char* op_type, const std::vector<std::string>& in, int64_t at, int64_t trips = 3) {
    Maker maker = counted({});
    maker.node(op_type, in, {"s"}).node("ConcatFromSequence", {"s"}, {"y"}, {Maker::attr("axis", 0)}).output("y");
    auto number = [](int64_t value) { return *list({value}).reshaped({}); };
    return Opened(maker).run({floats({2}, {7, 8}), number(trips), number(at)});
  };
  EXPECT_EQ(run("SequenceInsert", {"rows", "x"}, 0), "f32[8] 7 8 8 9 9 10 7 8");
  EXPECT_EQ(run("SequenceInsert", {"rows", "x", "at"}, 1), "f32[8] 7 8 7 8 8 9 9 10");
  EXPECT_EQ(run("SequenceInsert", {"rows", "x", "at"}, -1), "f32[8] 7 8 8 9 7 8 9 10");
  EXPECT_NE(run("SequenceInsert", {"rows", "x", "at"}, 3, 0).substr(0, 3), "f32");
  EXPECT_NE(run("SequenceInsert", {"rows", "x", "at"}, 4).substr(0, 3), "f32");
  EXPECT_NE(run("SequenceInsert", {"rows", "x", "at"}, -4).substr(0, 3), "f32");
  EXPECT_EQ(run("SequenceErase", {"rows"}, 0), "f32[4] 7 8 8 9");
  EXPECT_EQ(run("SequenceErase", {"rows", "at"}, -3), "f32[4] 8 9 9 10");
  EXPECT_NE(run("SequenceErase", {"rows", "at"}, 3).substr(0, 3), "f32");
  EXPECT_EQ(run("SequenceErase", {"rows", "at"}, 0, 1), "f32[0]");
  EXPECT_NE(run("SequenceErase", {"rows", "at"}, 1, 1).substr(0, 3), "f32");
  EXPECT_NE(run("SequenceErase", {"rows"}, 0, 0).substr(0, 3), "f32");
}

TEST(onnx_sequences, a_graph_is_mapped_over_rows) {
  Maker body, maker = counted({});
  body.input("a", 1, {"2"}).input("k", 1, {"2"}).input("b", 1, {"2"}).node("Mul", {"a", "k"}, {"c"});
  body.node("Add", {"b", "x"}, {"d"}).output("c").output("d");
  maker.node("SequenceMap", {"rows", "x", "rows"}, {"s", "t"}, {Maker::attr("body", body)});
  maker.node("SequenceInsert", {"t", "x"}, {"u"});
  maker.node("ConcatFromSequence", {"s"}, {"v"}, {Maker::attr("axis", 0)});
  maker.node("ConcatFromSequence", {"u"}, {"w"}, {Maker::attr("axis", 0)});
  maker.node("Concat", {"v", "w"}, {"y"}, {Maker::attr("axis", 0)}).output("y");
  Tensor two = *list({2}).reshaped({});
  EXPECT_EQ(Opened(maker).run({floats({2}, {7, 8}), two, two}), "f32[10] 49 64 56 72 14 16 15 17 7 8");
}

// What trips have stacked is one value, of which a graph for every element must not take the whole for an element.
TEST(onnx_sequences, a_graph_is_not_mapped_over_all_rows_at_once) {
  Maker body, maker = counted({});
  body.input("a", 1, {"2"}).input("b", 1, {"2"}).node("Add", {"a", "b"}, {"c"}).output("c");
  maker.node("SequenceConstruct", {"x"}, {"one"});
  maker.node("SequenceMap", {"one", "rows"}, {"s"}, {Maker::attr("body", body)});
  maker.node("ConcatFromSequence", {"s"}, {"y"}, {Maker::attr("axis", 0)}).output("y");
  Tensor two = *list({2}).reshaped({});
  EXPECT_NE(Opened(maker).run({floats({2}, {7, 8}), two, two}).find("whose length only the run knows"),
            std::string::npos);
}

TEST(onnx_sequences, trips_append_to_elements_that_are_there) {
  Maker maker = counted({"x", "x"});
  maker.node("ConcatFromSequence", {"rows"}, {"y"}, {Maker::attr("axis", 0)}).output("y");
  Tensor two = *list({2}).reshaped({});
  EXPECT_EQ(Opened(maker).run({floats({2}, {7, 8}), two, two}), "f32[8] 7 8 7 8 7 8 8 9");
}

TEST(onnx_sequences, trips_put_elements_in_front) {
  for (const char* position : {"inner", "outer"})
    for (bool is_empty : {true, false}) {
      std::vector<std::string> start(is_empty ? 0 : 2, "x");
      Maker maker = counted(start, position).i64("outer", {}, {0});
      maker.node("ConcatFromSequence", {"rows"}, {"y"}, {Maker::attr("axis", 0)}).output("y");
      Tensor unread = *list({0}).reshaped({});
      EXPECT_EQ(Opened(maker).run({floats({2}, {7, 8}), unread, unread, floats({1, 3}, {5, 0, 5})}),
                is_empty ? "f32[4] 8 9 7 8" : "f32[8] 8 9 7 8 7 8 7 8");
    }
}

TEST(onnx_sequences, a_sequence_is_split_by_the_sizes_of_the_run) {
  Maker maker(13);
  maker.input("x", 1, {"n", "2"})
      .i64("at", {}, {-1})
      .node("SplitToSequence", {"x"}, {"s"}, {Maker::attr("keepdims", 0)});
  maker.node("SequenceAt", {"s", "at"}, {"y"}).output("y");
  Opened opened(maker);
  EXPECT_EQ(opened.run({counting({2, 2})}), "f32[2] 2 3");
  EXPECT_EQ(opened.run({counting({3, 2})}), "f32[2] 4 5");
}

// The run finds how many elements of a list there are, and the pieces are as many.
TEST(onnx_sequences, a_sequence_is_split_by_the_contents_of_a_run) {
  auto run = [](int64_t axis, int64_t keep, const char* op_type, const std::vector<std::string>& in) {
    Maker maker(17);
    maker.input("x", 1, {"n"}).i64("at", {}, {-1}).i64("two", {2}, {1, 2}).node("NonZero", {"x"}, {"places"});
    maker.node("Cast", {"places"}, {"real"}, {Maker::attr("to", 1)}).node("Tile", {"real", "two"}, {"row"});
    if (axis == 0) maker.node("Transpose", {"row"}, {"z"});
    maker.node("SplitToSequence", {axis == 0 ? "z" : "row"}, {"s"},
               {Maker::attr("axis", axis), Maker::attr("keepdims", keep)});
    maker.node(op_type, in, {"y"}).output("y");
    return Opened(maker).run({floats({4}, {3, 0, 0, 5})});
  };
  EXPECT_EQ(run(0, 1, "SequenceAt", {"s", "at"}), "f32[1,1] 3");
  EXPECT_EQ(run(0, 0, "SequenceAt", {"s", "at"}), "f32[1] 3");
  EXPECT_EQ(run(1, 1, "ConcatFromSequence", {"s"}), "f32[4,1] 0 3 0 3");
  EXPECT_EQ(run(1, 0, "SequenceLength", {"s"}), "i64[] 4");
}

// A body cannot take the element of a trip out of a sequence; trip by trip, at known sizes, its place is known.
TEST(onnx_sequences, trips_that_read_elements_by_their_number_are_written_out) {
  Maker body, maker(13);
  body.input("i", 7, {}).input("goes", 9, {}).sequence("made", 1).i64("one", {}, {1});
  body.node("SequenceAt", {"s", "i"}, {"row"}).node("Neg", {"row"}, {"turned"});
  body.node("SequenceInsert", {"made", "turned"}, {"more"}).node("Add", {"i", "one"}, {"next"});
  body.node("Less", {"next", "n"}, {"goes_on"}).output("goes_on").output("more");
  maker.input("x", 1, {"n", "2"}).node("SplitToSequence", {"x"}, {"s"}, {Maker::attr("keepdims", 0)});
  maker.i64("zero", {}, {0}).node("Shape", {"x"}, {"shape"}).node("Gather", {"shape", "zero"}, {"n"});
  maker.node("Less", {"zero", "n"}, {"any"}).node("SequenceEmpty", {}, {"none"});
  maker.node("Loop", {"", "any", "none"}, {"all"}, {Maker::attr("body", body)});
  maker.node("ConcatFromSequence", {"all"}, {"y"}, {Maker::attr("axis", 0)}).output("y");
  Opened opened(maker);
  EXPECT_EQ(opened.run({counting({1, 2})}), "f32[2] 0 -1");
  EXPECT_EQ(opened.run({counting({2, 2})}), "f32[4] 0 -1 -2 -3");
}

TEST(onnx_sequences, an_old_scan_has_a_batch) {
  Maker body, maker(8);
  body.input("sum", 1, {}).input("x", 1, {}).node("Add", {"sum", "x"}, {"next"}).node("Neg", {"next"}, {"row"});
  body.output("next").output("row");
  maker.input("first", 1, {"2"}).input("xs", 1, {"2", "n"});
  maker.node("Scan", {"", "first", "xs"}, {"last", "y"},
             {Maker::attr("body", body), Maker::attr("num_scan_inputs", 1)});
  maker.output("y");
  EXPECT_EQ(Opened(maker).run({counting({2}), counting({2, 3})}), "f32[2,3] 0 -1 -3 -4 -8 -13");
}

// Rows are compared from the first column on.
TEST(onnx_sequences, distinct_slices_along_an_axis) {
  for (int64_t sorted : {1, 0}) {
    Maker maker(13);
    maker.input("x", 7, {"n"}).i64("three", {2}, {-1, 2}).node("Reshape", {"x", "three"}, {"rows"});
    maker.node("Unique", {"rows"}, {"y"}, {Maker::attr("axis", 0), Maker::attr("sorted", sorted)}).output("y");
    Opened opened(maker);
    EXPECT_EQ(opened.run({list({5, 1, 2, 9, 5, 0, 2, 9, 5, 1})}),
              sorted ? "i64[3,2] 2 9 5 0 5 1" : "i64[3,2] 5 1 2 9 5 0");
    EXPECT_EQ(opened.run({list({5, 1})}), "i64[1,2] 5 1");
    EXPECT_EQ(opened.run({list({})}), "i64[0,2]");
  }
}

TEST(onnx_sequences, n_grams_are_counted_with_gaps) {
  auto grams = [](int64_t skipped) {
    Maker maker(9);
    maker.input("x", 7, {"n"});
    maker.node("TfIdfVectorizer", {"x"}, {"y"},
               {Message().text(1, "mode").text(4, "TF").number(20, 3), Maker::attr("min_gram_length", 1),
                Maker::attr("max_gram_length", 2), Maker::attr("max_skip_count", skipped),
                Maker::attr("ngram_counts", std::vector<int64_t>{0, 1}),
                Maker::attr("ngram_indexes", std::vector<int64_t>{3, 0, 1}),
                Maker::attr("pool_int64s", std::vector<int64_t>{7, 7, 8, 8, 8})});
    maker.output("y");
    return maker;
  };
  EXPECT_EQ(Opened(grams(0)).run({list({7, 8, 7, 8})}), "f32[4] 2 0 0 2");
  EXPECT_EQ(Opened(grams(2)).run({list({7, 8, 7, 8})}), "f32[4] 3 1 0 2");
  EXPECT_EQ(Opened(grams(2)).run({list({})}), "f32[4] 0 0 0 0");
}

// The trip number decides which element is read, so only a loop that is unrolled knows it.
TEST(onnx_sequences, a_loop_reads_the_element_of_its_trip) {
  Maker body, maker(13);
  body.input("i", 7, {}).input("more", 9, {}).input("sum", 1, {"2"});
  body.node("SequenceAt", {"s", "i"}, {"element"}).node("Add", {"sum", "element"}, {"next"});
  body.node("Identity", {"more"}, {"again"}).output("again").output("next");
  maker.input("x", 1, {"3", "2"}).f32("zero", {2}, {0, 0});
  maker.node("SplitToSequence", {"x"}, {"s"}, {Maker::attr("axis", 0), Maker::attr("keepdims", 0)});
  maker.node("SequenceLength", {"s"}, {"length"});
  maker.node("Loop", {"length", "", "zero"}, {"y"}, {Maker::attr("body", body)}).output("y");
  EXPECT_EQ(Opened(maker).run({counting({3, 2})}), "f32[2] 6 9");
}

// As torch writes `unbind`.
TEST(onnx_sequences, a_list_splits_into_many) {
  Maker maker(13);
  maker.input("x", 1, {"100"}).i64("sizes", {100}, std::vector<int64_t>(100, 1)).i64("place", {}, {77});
  maker.node("SplitToSequence", {"x", "sizes"}, {"s"}).node("SequenceAt", {"s", "place"}, {"y"}).output("y");
  EXPECT_EQ(Opened(maker).run({counting({100})}), "f32[1] 77");
}

// The length of the range is found in the run; with its limit as a constant it is known.
TEST(onnx_sequences, inputs_that_decide_how_many_pieces_there_are_are_static) {
  Maker maker(13);
  maker.input("limit", 7, {}).i64("first", {}, {0}).i64("step", {}, {1}).i64("each", {}, {2}).i64("last", {}, {-1});
  maker.node("Range", {"first", "limit", "step"}, {"x"}).node("SplitToSequence", {"x", "each"}, {"s"});
  maker.node("SequenceAt", {"s", "last"}, {"y"}).output("y");
  Maker beside = maker;  // an input of an open size
  beside.input("z", 1, {"n"}).node("Abs", {"z"}, {"w"}).output("w");
  Opened alone(maker), opened(beside);
  for (auto [limit, last] : {std::pair(5, "i64[1] 4"), std::pair(6, "i64[2] 4 5")}) {
    Tensor tensor = *Tensor::create(DType::kI64, std::span<const int64_t>());
    *tensor.as<int64_t>() = limit;
    EXPECT_EQ(alone.run({tensor}), last);
    EXPECT_EQ(opened.run({tensor, counting({100})}).substr(0, 6), std::string(last).substr(0, 6));
  }
}

// Each trip leaves out the first element, until few are left: more than 2, or more than `limit`.
static Maker shrinking(int64_t trips, const char* least) {
  Maker body, maker(17);
  body.input("i", 7, {}).input("c", 9, {}).input("h", 1, {""}).sequence("s", 1).i64("two", {}, {2});
  body.i64("one", {1}, {1}).i64("end", {1}, {INT64_MAX}).i64("axis", {1}, {0});
  body.node("Slice", {"h", "one", "end", "axis"}, {"rest"}).node("SequenceInsert", {"s", "rest"}, {"longer"});
  body.node("Size", {"rest"}, {"left"}).node("Greater", {"left", least}, {"more"});
  body.output("more").output("rest").output("longer");
  maker.input("x", 1, {"n"}).input("limit", 7, {}).i64("trips", {}, {trips}).node("SequenceEmpty", {}, {"none"});
  maker.node("Loop", {"trips", "", "x", "none"}, {"last", "all"}, {Maker::attr("body", body)});
  maker.node("ConcatFromSequence", {"all"}, {"y"}, {Maker::attr("axis", 0)}).output("y");
  return maker;
}

TEST(onnx_sequences, a_condition_of_sizes_or_static_inputs_ends_a_loop) {
  for (int64_t trips : {3, 100}) {  // few of them are unrolled at once, many are stacked if possible
    Opened by_size(shrinking(trips, "two")), by_limit(shrinking(trips, "limit"));
    Tensor unread = *list({0}).reshaped({}), three = *list({3}).reshaped({});
    EXPECT_EQ(by_size.run({counting({5}), unread}), "f32[9] 1 2 3 4 2 3 4 3 4");
    EXPECT_EQ(by_size.run({counting({3}), unread}), "f32[2] 1 2");
    EXPECT_EQ(by_limit.run({counting({5}), three}), "f32[7] 1 2 3 4 2 3 4");
  }
}

static Maker appending(const char* op_type) {
  Maker body, maker(13);
  body.input("i", 7, {}).input("more", 9, {}).sequence("s", 1);
  body.node(op_type, {"x", "axis"}, {"row"}).node("SequenceInsert", {"s", "row"}, {"longer"});
  body.node("Identity", {"more"}, {"again"}).output("again").output("longer");
  maker.input("x", 1, {"2", "2"}).input("axis", 7, {}).i64("trips", {}, {2}).node("SequenceEmpty", {}, {"none"});
  maker.node("Loop", {"trips", "", "none"}, {"all"}, {Maker::attr("body", body)});
  maker.node("ConcatFromSequence", {"all"}, {"y"}, {Maker::attr("axis", 0)}).output("y");
  return maker;
}

TEST(onnx_sequences, inputs_that_decide_structure_in_an_unrolled_loop_are_static) {
  Tensor axis = *Tensor::create(DType::kI64, std::span<const int64_t>());
  axis.as<int64_t>()[0] = 1;
  EXPECT_EQ(Opened(appending("CumSum")).run({counting({2, 2}), axis}), "f32[4,2] 0 1 2 5 0 1 2 5");
}

// Rows of one size are stacked, so that a graph does not grow with the trips; else each trip has nodes of its own.
TEST(onnx_sequences, many_trips_of_a_known_number_are_stacked_where_that_is_possible) {
  for (bool grows : {false, true}) {
    Maker body, maker(13);
    body.input("i", 7, {}).input("more", 9, {}).sequence("s", 1).i64("zero", {1}, {0}).i64("one", {1}, {1});
    body.node("Add", {"i", "one"}, {"end"}).node("Slice", {"x", "zero", grows ? "end" : "one"}, {"row"});
    body.node("SequenceInsert", {"s", "row"}, {"longer"}).node("Identity", {"more"}, {"again"});
    body.output("again").output("longer");
    maker.input("x", 1, {"100"}).i64("trips", {}, {100}).node("SequenceEmpty", {}, {"none"});
    maker.node("Loop", {"trips", "", "none"}, {"all"}, {Maker::attr("body", body)});
    maker.node("ConcatFromSequence", {"all"}, {"joined"}, {Maker::attr("axis", 0)});
    maker.node("ReduceSum", {"joined"}, {"y"}, {Maker::attr("keepdims", 0)}).output("y");
    auto imported = maker.import();
    ASSERT_TRUE(imported.ok()) << imported.status().message();
    EXPECT_EQ(imported->graph.nodes().size() < 100, !grows);
    EXPECT_EQ(Opened(maker).run({counting({100})}), grows ? "f32[] 166650" : "f32[] 0");
  }
}

}  // namespace rlx
