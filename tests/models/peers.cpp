// SPDX-License-Identifier: Apache-2.0
// Networks that another framework exported in two ways each, in f32 and in halves (tests/peer/export.py), through the
// whole library. Every composite forms, in halves as in f32, and nothing is left of its parts. At three sizes the
// results are those of the framework.
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/text.h"
#include "runtime/program.h"
#include "tests/support/models.h"
#include "tests/support/paths.h"
#include "tests/support/transforms.h"

namespace rlx::test {

namespace {

namespace fs = std::filesystem;

constexpr int kSizes = 3;  // NET.0.tensors, .1., .2.

// How far results may be from those in f32, of the largest value: for halves 8 times what one rounding changes.
const std::map<std::string, double> kTolerances = {{"", 1e-4}, {".f16", 8.0 / (1 << 11)}, {".bf16", 8.0 / (1 << 8)}};

// The folder that `./dev peers` fills, unless RLX_PEERS names another.
fs::path folder() {
  const char* given = std::getenv("RLX_PEERS");
  return given ? fs::path(given) : test_path("../build/peers/exports");
}

using Counts = std::map<std::string, int>;

// What a network is to become.
struct Net {
  Counts ops;  // how often each stands in it, and no other one
  bool causal;
  int64_t kv_heads;  // of 4 query heads
};

const std::map<std::string, Net> kNets = {
    {"encoder",
     {{{"add", 2},  // of the three embeddings
       {"attention", 2},
       {"cast", 1},    // the mask as booleans
       {"concat", 4},  // weights and biases of q, k and v
       {"gather", 2},
       {"layer_norm", 1},
       {"linear", 8},
       {"reshape", 2},
       {"residual_layer_norm", 4},
       {"slice", 7}},
      false,
      4}},
    {"decoder",
     {{{"attention", 2},
       {"cast", 2},
       {"concat", 8},  // weights of q, k and v and of gate and up; the cache of k and v
       {"cos", 1},
       {"gather", 1},
       {"glu", 2},
       {"linear", 9},
       {"mul", 1},  // angles
       {"reshape", 10},
       {"residual_rms_norm", 4},
       {"rms_norm", 1},
       {"rope", 4},
       {"sin", 1},
       {"slice", 7},
       {"transpose", 8}},  // to and from [batch, heads, ...], which the caches have
      true,
      2}},
    {"vision",
     {{{"add", 1},  // positions
       {"attention", 2},
       {"broadcast_to", 1},  // the class token
       {"concat", 5},
       {"layer_norm", 1},
       {"linear", 10},  // the first one of patches
       {"reshape", 6},
       {"residual_layer_norm", 4},
       {"slice", 7},
       {"transpose", 1}},
      false,
      4}},
};

Counts count_ops(const Graph& graph) {
  Counts counts;
  for (const Node& node : graph.nodes())
    if (!graph.info(node).is(kLeaf)) counts[std::string(graph.info(node).name)]++;
  return counts;
}

std::string text_of(const Counts& counts) {
  std::string text;
  for (const auto& [op, count] : counts) text += op + " " + std::to_string(count) + "\n";
  return text;
}

// The symbols that the inputs' dims name, each at the largest size of the cases.
NamedAttrs largest_sizes(const Graph& graph, const std::vector<TensorsByName>& cases) {
  std::map<std::string, int64_t> largest;
  for (uint32_t node : graph.inputs())
    for (size_t axis = 0; axis < graph.node(node).out[0].rank(); axis++)
      for (const TensorsByName& tensors : cases)
        if (const std::string* symbol = graph.node(node).out[0].dims[axis].symbol_name())
          largest[*symbol] = std::max(largest[*symbol], tensors.at(graph.leaf_name(node)).dims()[axis]);
  NamedAttrs options;
  for (const auto& [symbol, size] : largest) options.emplace_back("dims." + symbol, size);
  return options;
}

// All outputs by name.
Result<TensorsByName> run(Program& program, const TensorsByName& given) {
  std::vector<std::string_view> in_names, out_names;
  std::vector<Tensor> in;
  for (const Slot& slot : program.slots(SlotKind::kInput)) {
    in_names.push_back(slot.name);
    in.push_back(given.at(slot.name));
  }
  for (const Slot& slot : program.slots(SlotKind::kOutput)) out_names.push_back(slot.name);
  std::vector<Tensor> results = RLX_TRY(program.run(in_names, in, out_names, out_names.size()));
  TensorsByName tensors;
  for (size_t i = 0; i < results.size(); i++) tensors.emplace(out_names[i], results[i]);
  return tensors;
}

// Results of halves are compared in f32.
Tensor widened(const Tensor& x) {
  if (!is_half(x.dtype())) return x;
  Tensor wide = *Tensor::create(DType::kF32, x.dims());
  for (int64_t i = 0; i < x.count(); i++) wide.as<float>()[i] = static_cast<float>(element_as_f64(x, i));
  return wide;
}

// By the file's name without `.onnx`: NET.EXPORTER, for halves NET.EXPORTER.DTYPE
class peers : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    fs::path path = folder() / (std::string(GetParam()) + ".onnx");
    if (!fs::exists(path)) {
      std::string why = path.string() + " is not there: `./dev peers` makes it by tests/peer/export.py";
      if (std::getenv("RLX_REQUIRE_PEERS")) FAIL() << why;
      GTEST_SKIP() << why;
    }
    auto model = open_onnx(path);
    ASSERT_TRUE(model.ok()) << model.status().message();
    model_ = std::move(*model);
    std::string name = GetParam();
    size_t exporter = name.find('.'), dtype = name.find('.', exporter + 1);
    net_ = name.substr(0, exporter);
    dtype_ = dtype == std::string::npos ? "" : name.substr(dtype);
    for (int i = 0; i < kSizes; i++) {
      auto tensors = read_tensors(folder() / (net_ + dtype_ + "." + std::to_string(i) + ".tensors"));
      ASSERT_TRUE(tensors.ok()) << tensors.status().message();
      cases_.push_back(std::move(*tensors));
    }
  }

  // Planned at the largest of the sizes.
  Result<std::shared_ptr<Program>> compiled(const Graph& graph, std::string_view device) {
    std::shared_ptr<Env> env = RLX_TRY(Env::create({.threads = 2}));
    Device* found = RLX_TRY(env->find_device(device));
    return Program::compile(env, graph, model_.weights, found, largest_sizes(graph, cases_));
  }

  // Run at all of them.
  void expect_torch_results(const Graph& graph, std::string_view device) {
    auto program = compiled(graph, device);
    ASSERT_TRUE(program.ok()) << program.status().message();
    double worst = 0;
    for (size_t i = 0; i < cases_.size(); i++) {
      auto got = run(**program, cases_[i]);
      ASSERT_TRUE(got.ok()) << got.status().message();
      EXPECT_EQ(got->size(), graph.outputs().size());
      for (const auto& [name, tensor] : *got) {
        double difference = relative_difference(widened(tensor), cases_[i].at(name));
        EXPECT_LT(difference, kTolerances.at(dtype_)) << name << " of case " << i << " on " << device;
        worst = std::max(worst, difference);
      }
    }
    RecordProperty(std::string(device), std::to_string(worst));
  }

  FileModel model_;
  std::string net_, dtype_;
  std::vector<TensorsByName> cases_;
};

class peers_in_f32 : public peers {};

}  // namespace

TEST_P(peers, compute_what_torch_computed) {
  expect_torch_results(model_.graph, "reference");
  expect_torch_results(model_.graph, "cpu");
}

TEST_P(peers, form_every_composite) {
  auto graph = test::composed(model_.graph);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const Net& net = kNets.at(net_);
  EXPECT_EQ(text_of(count_ops(*graph)), text_of(net.ops));
  for (const Node& node : graph->nodes()) {
    if (node.op != Op::kAttention) continue;
    EXPECT_EQ(node.attrs.flag("causal"), net.causal);
    bool split = node.attrs.is("layout", "bhsd");
    EXPECT_EQ(split ? graph->type(node.in[1]).dims[1] : Dim(node.attrs.i64("num_kv_heads")), Dim(net.kv_heads));
  }
  if (HasFailure()) std::fprintf(stderr, "%s\n", print(*graph).c_str());
  // Composites that the CPU has no kernel for are what they say: it runs them expanded.
  expect_torch_results(*graph, "cpu");
}

// Of the composites, those that it has kernels for, which take f32; and nothing is left of what they are made of.
TEST_P(peers_in_f32, form_what_the_cpu_has) {
  auto program = compiled(model_.graph, "cpu");
  ASSERT_TRUE(program.ok()) << program.status().message();
  Counts counts = count_ops((*program)->compiled_graph().graph());
  for (const auto& [op, count] : kNets.at(net_).ops)
    if (op == "attention" || op == "linear" || op == "rope" || op == "glu" || op.ends_with("_norm")) {
      EXPECT_EQ(counts[op], count) << op;
    }
  for (const char* part : {"matmul", "softmax", "mean", "reduce", "erf", "rsqrt", "sqrt", "pow", "gather_nd", "le"})
    EXPECT_EQ(counts[part], 0) << part;
}

static std::string test_name(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

#define RLX_PEERS_IN(dtype)                                                                           \
  "encoder.traced" dtype, "encoder.scripted" dtype, "decoder.traced" dtype, "decoder.scripted" dtype, \
      "vision.traced" dtype, "vision.scripted" dtype
INSTANTIATE_TEST_SUITE_P(, peers, testing::Values(RLX_PEERS_IN(""), RLX_PEERS_IN(".f16"), RLX_PEERS_IN(".bf16")),
                         test_name);
INSTANTIATE_TEST_SUITE_P(, peers_in_f32, testing::Values(RLX_PEERS_IN("")), test_name);

}  // namespace rlx::test
