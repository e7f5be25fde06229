// SPDX-License-Identifier: Apache-2.0
// Kinds of ai.onnx.ml. The numbers of the support vector machines are those of ONNX Runtime.
#include <cmath>

#include "opened.h"

namespace rlx {

using onnx::Maker;
using Attributes = std::vector<Message>;

static constexpr const char* kMl = "ai.onnx.ml";

static Tensor column(std::vector<float> values) {
  Tensor tensor = *Tensor::create(DType::kF32, std::array<int64_t, 2>{static_cast<int64_t>(values.size()), 1});
  std::copy(values.begin(), values.end(), tensor.as<float>());
  return tensor;
}

static Message reals(const char* name, std::vector<float> values) {
  Message attribute = Message().text(1, name).number(20, 6);
  for (float value : values) attribute.f32(7, value);
  return attribute;
}

static Message whole(const char* name, std::vector<int64_t> values) {
  return Maker::attr(name, values);
}

static Message texts(const char* name, std::initializer_list<const char*> values) {
  Message attribute = Message().text(1, name).number(20, 8);
  for (const char* value : values) attribute.text(9, value);
  return attribute;
}

// A list as a tensor of f32, or of u8.
static Message tensor_of(const char* name, std::initializer_list<float> values, bool is_u8 = false) {
  Message tensor = Message().number(1, values.size()).number(2, is_u8 ? 2 : 1);
  for (float value : values) is_u8 ? tensor.number(5, static_cast<uint64_t>(value)) : tensor.f32(4, value);
  return Message().text(1, name).sub(5, tensor).number(20, 4);
}

// A thousand times the first output of a node on x [n, 1].
static std::string thousandfold(const char* op_type, const Attributes& attributes, std::vector<float> x,
                                std::vector<std::string> outputs = {"y"}) {
  Maker maker(13);
  maker.input("x", 1, {"n", "1"}).f32("thousand", {}, {1000}).node(op_type, {"x"}, outputs, attributes, kMl);
  maker.node("Mul", {outputs.back(), "thousand"}, {"z"}).output("z");
  return Opened(maker).run({column(std::move(x))});
}

TEST(onnx_ml, support_vectors_weigh_a_kernel) {
  auto regression = [](const char* kernel) {
    return thousandfold(
        "SVMRegressor",
        {reals("support_vectors", {0, 2}), reals("coefficients", {1, -2}), reals("rho", {3}),
         Maker::attr("n_supports", 2), Maker::attr("kernel_type", kernel), reals("kernel_params", {0.5f, 1, 3})},
        {0, 2, -1});
  };
  EXPECT_EQ(regression("LINEAR"), "f32[3,1] 3000 -5000 7000");
  EXPECT_EQ(regression("RBF"), "f32[3,1] 3729 1135 3584");
  EXPECT_EQ(regression("POLY"), "f32[3,1] 2000 -50000 4000");
  EXPECT_EQ(regression("SIGMOID"), "f32[3,1] 2238 1771 3761");
}

TEST(onnx_ml, without_support_vectors_the_coefficients_are_a_row) {
  Attributes attributes{reals("coefficients", {2}), reals("rho", {-3}), Maker::attr("one_class", 1)};
  EXPECT_EQ(thousandfold("SVMRegressor", attributes, {0, 2}), "f32[2,1] -1000 1000");
}

static Attributes three_classes() {
  return {reals("support_vectors", {1, 2, -1, 3}),
          whole("vectors_per_class", {1, 2, 1}),
          reals("coefficients", {1, -1, 0.5f, 2, 0.25f, -2, 1, -1}),
          reals("rho", {0.5f, -1, 0.25f}),
          Maker::attr("kernel_type", "RBF"),
          reals("kernel_params", {0.5f, 0, 3}),
          whole("classlabels_ints", {10, 20, 30})};
}

TEST(onnx_ml, pairs_of_classes_vote) {
  Maker maker(13);
  maker.input("x", 1, {"n", "1"}).node("SVMClassifier", {"x"}, {"y", "scores"}, three_classes(), kMl).output("y");
  EXPECT_EQ(Opened(maker).run({column({0, 1, 2, 3, -2})}), "i64[5] 10 30 10 10 10");
  EXPECT_EQ(thousandfold("SVMClassifier", three_classes(), {0, 1}, {"y", "scores"}),
            "f32[2,3] 1274 -826 574 961 -479 -963");
}

TEST(onnx_ml, one_score_of_two_classes_is_two_probabilities) {
  Attributes attributes{whole("vectors_per_class", {1, 1}), reals("support_vectors", {1, 0}),
                        reals("coefficients", {1, -1}),     reals("rho", {0.5f}),
                        whole("classlabels_ints", {0, 1}),  Maker::attr("kernel_type", "LINEAR"),
                        reals("kernel_params", {0, 0, 0}),  Maker::attr("post_transform", "LOGISTIC")};
  EXPECT_EQ(thousandfold("SVMClassifier", attributes, {1, 3}, {"y", "scores"}), "f32[2,2] 182 817 29 970");
}

TEST(onnx_ml, grams_have_weights) {
  auto weighed = [](const char* mode) {
    Maker maker(13);
    maker.input("x", 7, {"3"});
    maker.node("TfIdfVectorizer", {"x"}, {"y"},
               {Maker::attr("mode", mode), Maker::attr("min_gram_length", 1), Maker::attr("max_gram_length", 1),
                Maker::attr("max_skip_count", 0), whole("ngram_counts", {0}), whole("ngram_indexes", {0, 1}),
                whole("pool_int64s", {2, 3}), reals("weights", {1, 5})});
    return Opened(maker.output("y")).run({list({2, 3, 3})});
  };
  EXPECT_EQ(weighed("TF"), "f32[2] 1 2");
  EXPECT_EQ(weighed("IDF"), "f32[2] 1 5");
  EXPECT_EQ(weighed("TFIDF"), "f32[2] 1 10");
}

TEST(onnx_ml, probabilities_of_pairs_are_coupled) {
  Attributes attributes = three_classes();
  attributes.push_back(reals("prob_a", {-1, -2, -1.5f}));
  attributes.push_back(reals("prob_b", {0, 0.1f, -0.1f}));
  EXPECT_EQ(thousandfold("SVMClassifier", attributes, {0, 1, 2}, {"y", "scores"}),
            "f32[3,3] 277 337 385 237 132 630 482 145 372");
}

TEST(onnx_ml, machines_whose_lists_do_not_suit_are_refused) {
  Attributes attributes = three_classes();
  attributes[2] = reals("coefficients", {1, -1});
  Maker maker(13);
  maker.input("x", 1, {"n", "1"}).node("SVMClassifier", {"x"}, {"y", "scores"}, attributes, kMl).output("y");
  EXPECT_EQ(maker.import().status().code(), Code::kData);
}

// One split at 1: 10 where it holds, else 20.
TEST(onnx_ml, a_forest_whose_splits_have_one_test) {
  struct Row {
    const char *mode, *result;
  };
  for (const Row& row : {Row{"BRANCH_LEQ", "10 10 20"}, Row{"BRANCH_LT", "10 20 20"}, Row{"BRANCH_GTE", "20 10 10"},
                         Row{"BRANCH_GT", "20 20 10"}, Row{"BRANCH_EQ", "20 10 20"}, Row{"BRANCH_NEQ", "10 20 10"}})
    for (bool tracks_true : {false, true}) {
      Message modes = Message().text(1, "nodes_modes").number(20, 8).text(9, row.mode).text(9, "LEAF").text(9, "LEAF");
      Maker maker(13);
      maker.input("x", 1, {"n", "1"});
      maker.node("TreeEnsembleRegressor", {"x"}, {"y"},
                 {whole("nodes_treeids", {0, 0, 0}), whole("nodes_nodeids", {0, 1, 2}),
                  whole("nodes_featureids", {0, 0, 0}), reals("nodes_values", {1, 0, 0}), modes,
                  whole("nodes_truenodeids", {1, 0, 0}), whole("nodes_falsenodeids", {2, 0, 0}),
                  whole("nodes_missing_value_tracks_true", {tracks_true, 0, 0}), whole("target_treeids", {0, 0}),
                  whole("target_nodeids", {1, 2}), whole("target_ids", {0, 0}), reals("target_weights", {10, 20})},
                 kMl);
      maker.output("y");
      bool holds = tracks_true || std::string_view(row.mode) == "BRANCH_NEQ";
      EXPECT_EQ(Opened(maker).run({column({0, 1, 2, NAN})}),
                std::string("f32[4,1] ") + row.result + (holds ? " 10" : " 20"))
          << row.mode;
    }
}

TEST(onnx_ml, categories_become_a_last_axis) {
  Maker maker(13);
  maker.input("x", 7, {"n"}).node("OneHotEncoder", {"x"}, {"y"}, {whole("cats_int64s", {5, 7})}, kMl).output("y");
  EXPECT_EQ(Opened(maker).run({list({7, 5, 6})}), "f32[3,2] 0 1 1 0 0 0");
}

TEST(onnx_ml, features_stand_side_by_side) {
  Maker maker(13);
  maker.input("a", 1, {"n", "2"}).input("b", 1, {"n", "1"});
  maker.node("FeatureVectorizer", {"a", "b"}, {"y"}, {whole("inputdimensions", {2, 1})}, kMl).output("y");
  EXPECT_EQ(Opened(maker).run({counting({2, 2}), column({7, 8})}), "f32[2,3] 0 1 7 2 3 8");
}

// Converters end classifiers with it.
TEST(onnx_ml, a_map_for_every_row_is_the_rows) {
  Maker maker(13);
  maker.input("x", 1, {"n", "2"}).node("ZipMap", {"x"}, {"y"}, {whole("classlabels_int64s", {3, 1})}, kMl).output("y");
  EXPECT_EQ(Opened(maker).run({counting({2, 2})}), "f32[2,2] 0 1 2 3");
}

TEST(onnx_ml, labels_are_found_in_a_table) {
  Maker maker(13);
  maker.input("x", 7, {"n"});
  maker.node("LabelEncoder", {"x"}, {"y"},
             {Maker::attr("keys_int64s", std::vector<int64_t>{30, 10, 20}),
              Maker::attr("values_int64s", std::vector<int64_t>{3, 1, 2}), Maker::attr("default_int64", -7)},
             kMl);
  maker.output("y");
  EXPECT_EQ(Opened(maker).run({list({10, 11, 30, 20, 99, -5})}), "i64[6] 1 -7 3 2 -7 -7");
}

// Feature 0 up to 1, then feature 1 above 5.
TEST(onnx_ml, a_tree_is_walked_to_its_leaves) {
  Maker maker(13);
  maker.input("x", 1, {"n", "2"});
  maker.node("TreeEnsembleRegressor", {"x"}, {"y"},
             {whole("nodes_treeids", {0, 0, 0, 0, 0}), whole("nodes_nodeids", {0, 1, 2, 3, 4}),
              whole("nodes_featureids", {0, 0, 1, 0, 0}), reals("nodes_values", {1, 0, 5, 0, 0}),
              texts("nodes_modes", {"BRANCH_LEQ", "LEAF", "BRANCH_GT", "LEAF", "LEAF"}),
              whole("nodes_truenodeids", {1, 0, 3, 0, 0}), whole("nodes_falsenodeids", {2, 0, 4, 0, 0}),
              whole("target_treeids", {0, 0, 0}), whole("target_nodeids", {1, 3, 4}), whole("target_ids", {0, 0, 0}),
              reals("target_weights", {10, 20, 30}), reals("base_values", {1}), Maker::attr("n_targets", 1)},
             kMl);
  maker.output("y");
  Opened opened(maker);
  EXPECT_EQ(opened.run({floats({3, 2}, {1, 9, 2, 9, 2, 5})}), "f32[3,1] 11 21 31");
}

// As ONNX Runtime has it: a probability of 0.4 is not enough, though it is more than the 0 of a label without votes.
TEST(onnx_ml, trees_may_vote_for_one_of_two_labels) {
  for (int64_t named : {0, 1}) {
    Maker maker(17);
    maker.input("x", 1, {"n", "1"});
    maker.node(
        "TreeEnsembleClassifier", {"x"}, {"y", "scores"},
        {whole("nodes_treeids", {0, 0, 0}), whole("nodes_nodeids", {0, 1, 2}), whole("nodes_featureids", {0, 0, 0}),
         reals("nodes_values", {0, 0, 0}), texts("nodes_modes", {"BRANCH_LEQ", "LEAF", "LEAF"}),
         whole("nodes_truenodeids", {1, 0, 0}), whole("nodes_falsenodeids", {2, 0, 0}), whole("class_treeids", {0, 0}),
         whole("class_nodeids", {1, 2}), whole("class_ids", {named, named}), reals("class_weights", {0.4f, 0.6f}),
         whole("classlabels_int64s", {7, 8})},
        kMl);
    EXPECT_EQ(Opened(maker.output("y")).run({floats({2, 1}, {-1, 1})}), "i64[2] 7 8");
  }
}

// A tree that is a leaf has a node whose branches both name that leaf, whatever the node's own number.
TEST(onnx_ml, trees_that_are_leaves_have_the_leaves_that_they_name) {
  Maker maker(21);
  maker.imports(kMl, 5).input("x", 1, {"n", "1"});
  maker.node("TreeEnsemble", {"x"}, {"y"},
             {whole("tree_roots", {0, 1}), whole("nodes_featureids", {0, 0}), whole("nodes_truenodeids", {2, 1}),
              whole("nodes_falsenodeids", {2, 1}), whole("nodes_trueleafs", {1, 1}), whole("nodes_falseleafs", {1, 1}),
              tensor_of("nodes_splits", {0, 0}), tensor_of("nodes_modes", {0, 0}, true),
              whole("leaf_targetids", {0, 1, 2}), tensor_of("leaf_weights", {1, 2, 3}), Maker::attr("n_targets", 3)},
             kMl);
  EXPECT_EQ(Opened(maker.output("y")).run({floats({1, 1}, {0})}), "f32[1,3] 0 2 3");
}

// The root asks for 1, node 1 on its side of no for 2, node 2 on its side of yes for 3.
TEST(onnx_ml, sets_of_members_stand_in_the_order_of_the_nodes) {
  Maker maker(21);
  maker.imports(kMl, 5).input("x", 1, {"n", "2"});
  maker.node(
      "TreeEnsemble", {"x"}, {"y"},
      {whole("tree_roots", {0}), whole("nodes_featureids", {0, 1, 1}), whole("nodes_truenodeids", {2, 0, 2}),
       whole("nodes_falsenodeids", {1, 1, 3}), whole("nodes_trueleafs", {0, 1, 1}),
       whole("nodes_falseleafs", {0, 1, 1}), tensor_of("nodes_splits", {0, 0, 0}),
       tensor_of("nodes_modes", {6, 6, 6}, true), tensor_of("membership_values", {1, NAN, 2, NAN, 3, NAN}),
       whole("leaf_targetids", {0, 0, 0, 0}), tensor_of("leaf_weights", {10, 20, 30, 40}), Maker::attr("n_targets", 1)},
      kMl);
  EXPECT_EQ(Opened(maker.output("y")).run({floats({4, 2}, {0, 2, 0, 3, 1, 3, 1, 2})}), "f32[4,1] 10 20 30 40");
}

TEST(onnx_ml, large_integers_are_imputed_exactly) {
  constexpr int64_t kLarge = (int64_t{1} << 53) + 1;
  Maker maker(13);
  maker.input("x", 7, {"n"})
      .node("Imputer", {"x"}, {"y"}, {whole("imputed_value_int64s", {5}), Maker::attr("replaced_value_int64", kLarge)},
            kMl);
  EXPECT_EQ(Opened(maker.output("y")).run({list({kLarge, kLarge - 1})}), "i64[2] 5 " + std::to_string(kLarge - 1));
}

// A label without votes has the score 0. It is the first of several with less, but for SOFTMAX_ZERO, where 0 is
// nothing.
TEST(onnx_ml, trees_give_the_label_of_the_highest_score) {
  for (const char* transform : {"NONE", "SOFTMAX", "SOFTMAX_ZERO"}) {
    Maker maker(17);
    maker.input("x", 1, {"n", "1"});
    maker.node("TreeEnsembleClassifier", {"x"}, {"y", "scores"},
               {whole("nodes_treeids", {0}), whole("nodes_nodeids", {0}), whole("nodes_featureids", {0}),
                reals("nodes_values", {0}), texts("nodes_modes", {"LEAF"}), whole("nodes_truenodeids", {0}),
                whole("nodes_falsenodeids", {0}), whole("class_treeids", {0, 0}), whole("class_nodeids", {0, 0}),
                whole("class_ids", {0, 2}), reals("class_weights", {-2, -1}), whole("classlabels_int64s", {7, 8, 9}),
                Maker::attr("post_transform", transform)},
               kMl);
    EXPECT_EQ(Opened(maker.output("y")).run({floats({1, 1}, {0})}),
              std::string(transform) == "SOFTMAX_ZERO" ? "i64[1] 9" : "i64[1] 8");
  }
}

TEST(onnx_ml, a_list_is_normalised_as_a_list) {
  Maker maker(17);
  maker.input("x", 1, {"n"}).node("Normalizer", {"x"}, {"y"}, {Maker::attr("norm", "MAX")}, kMl).output("y");
  EXPECT_EQ(Opened(maker).run({floats({2}, {2, -4})}), "f32[2] 1 -2");
}

TEST(onnx_ml, columns_of_features_may_be_a_symbol) {
  Maker maker(13);
  maker.input("x", 1, {"n", "m"});
  maker.node("FeatureVectorizer", {"x", "x"}, {"y"}, {Maker::attr("inputdimensions", std::vector<int64_t>{2, 2})},
             "ai.onnx.ml");
  maker.output("y");
  EXPECT_EQ(Opened(maker).run({counting({1, 2})}), "f32[1,4] 0 1 0 1");
  EXPECT_NE(Opened(maker).run({counting({1, 3})}).find("does not hold"), std::string::npos);
}

// As ONNX Runtime has it; since version 4 the specification says that NaN may be a key.
TEST(onnx_ml, nan_is_a_key_since_version_4) {
  for (uint64_t version : {3, 4}) {
    Maker maker(13);
    maker.imports(kMl, version).input("x", 1, {"n"});
    maker.node(
        "LabelEncoder", {"x"}, {"y"},
        {reals("keys_floats", {1, NAN, 2}), reals("values_floats", {10, 11, 12}), Maker::attr("default_float", -7.0F)},
        kMl);
    EXPECT_EQ(Opened(maker.output("y")).run({floats({4}, {1, NAN, 2, 3})}),
              version == 3 ? "f32[4] 10 -7 12 -7" : "f32[4] 10 11 12 -7");
  }
}

// ONNX Runtime and the reference evaluator transform the only score of a row by PROBIT alone.
TEST(onnx_ml, the_only_score_of_a_row_is_not_transformed) {
  for (const char* transform : {"NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"}) {
    Attributes linear{reals("coefficients", {2}), reals("intercepts", {0.5F}),
                      Maker::attr("post_transform", transform)};
    EXPECT_EQ(thousandfold("LinearRegressor", linear, {0, 2}), "f32[2,1] 500 4500");
    Attributes machine{reals("coefficients", {2}), reals("rho", {-3}), Maker::attr("kernel_type", "LINEAR"),
                       whole("classlabels_ints", {7}), Maker::attr("post_transform", transform)};
    EXPECT_EQ(thousandfold("SVMClassifier", machine, {0, 2}, {"label", "y"}), "f32[2,1] -3000 1000");
  }
}

}  // namespace rlx
