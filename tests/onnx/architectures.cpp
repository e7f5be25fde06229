// SPDX-License-Identifier: Apache-2.0
// Runs networks with random weights that another framework exported (tests/peer/architectures.py), at the sizes for
// which it stored its results.
//     architectures [--suite NAME] [--device NAME] [--list FILE] [--only GLOB] [--verbose] FOLDER ...
// A folder holds *.cases: a line NET.EXPORTER KIND: NOTE for each export NET.EXPORTER.onnx, with its tensors at three
// sizes. Of the kinds, "runs" must pass or stand in the list; "peer" runs too, but another runtime fails there as well;
// "refused" and "fails" left no file and are counted.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/contains.h"
#include "tests/onnx/suite.h"
#include "tests/support/models.h"

namespace fs = std::filesystem;

namespace rlx::test {
namespace {

constexpr double kTolerance = 1e-3;  // of the largest value
constexpr int kSizes = 3;            // NET.EXPORTER.0.tensors, .1., .2.

struct Run {
  rlx_env_t* env = nullptr;
  rlx_model_t* model = nullptr;
  std::vector<std::string> inputs, outputs;
};

std::vector<std::string> names_of(const rlx_graph_t* graph, int32_t kind) {
  std::vector<std::string> names;
  for (size_t i = 0; i < rlx_graph_count(graph, kind); i++) names.emplace_back(rlx_graph_name(graph, kind, i));
  return names;
}

// A model that is imported for each set of values shows no outputs: they are what is stored beside its inputs.
std::vector<std::string> outputs_among(const TensorsByName& tensors, const std::vector<std::string>& inputs) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors)
    if (!contains(inputs, name)) names.push_back(name);
  return names;
}

std::string difference(const Tensor& got, const Tensor& want) {
  if (want.dtype() == DType::kF32) {
    double far = relative_difference(got, want);
    return far < kTolerance ? "" : std::to_string(far) + " of the largest value away";
  }
  bool equal = std::memcmp(got.data(), want.data(), static_cast<size_t>(want.bytes())) == 0;
  return equal ? "" : "other elements";
}

std::string run_at(const Run& run, const std::string& device, const TensorsByName& tensors) {
  std::vector<rlx_tensor_t*> in(run.inputs.size()), out(run.outputs.size());
  std::vector<const char*> in_names, out_names;
  for (size_t i = 0; i < in.size(); i++) {
    auto given = tensors.find(run.inputs[i]);
    if (given == tensors.end()) return "data: no tensor is called " + run.inputs[i];
    if (auto why = copied(run.env, given->second, &in[i]); !why.empty()) return why;
    in_names.push_back(run.inputs[i].c_str());
  }
  for (const std::string& name : run.outputs) out_names.push_back(name.c_str());
  std::string why = taken(rlx_model_run(run.model, device.c_str(), in_names.data(), in.data(), in.size(),
                                        out_names.data(), out.data(), out.size(), nullptr));
  if (!why.empty()) return "run: " + why;
  for (size_t i = 0; i < out.size(); i++) {
    auto want = tensors.find(run.outputs[i]);
    if (want == tensors.end()) return "data: no tensor is called " + run.outputs[i];
    Tensor got;
    if (why = same_type(out[i], want->second, got); why.empty()) why = difference(got, want->second);
    if (!why.empty()) return "wrong: " + run.outputs[i] + ": " + why;
  }
  return {};
}

std::string run_network(const fs::path& stem, const std::vector<std::string>& devices) {
  Run run;
  rlx_attrs_t* options = nullptr;
  if (auto why = taken(rlx_attrs_create("threads=1", &options)); !why.empty()) return why;
  if (auto why = taken(rlx_env_create(options, nullptr, &run.env)); !why.empty()) return why;
  if (auto why = taken(rlx_model_open(run.env, (stem.string() + ".onnx").c_str(), nullptr, &run.model)); !why.empty())
    return why;
  const rlx_graph_t* graph = rlx_model_graph(run.model);
  run.inputs = names_of(graph, RLX_INPUT);
  run.outputs = names_of(graph, RLX_OUTPUT);
  for (const std::string& device : devices)
    for (int i = 0; i < kSizes; i++) {
      std::string file = "." + std::to_string(i) + ".tensors";
      auto tensors = read_tensors(stem.string() + file);
      if (!tensors.ok()) return "data: " + std::string(tensors.status().message());
      if (run.outputs.empty()) run.outputs = outputs_among(*tensors, run.inputs);
      if (auto why = run_at(run, device, *tensors); !why.empty()) return why + " (of" + file + " on " + device + ")";
    }
  return {};
}

Cases find_networks(const Options& options, std::map<std::string, int>& unmade) {
  Cases cases;
  for (const std::string& folder : options.folders)
    for (const auto& file : fs::directory_iterator(folder)) {
      if (file.path().extension() != ".cases") continue;
      std::ifstream lines(file.path());
      std::string name, kind, note;
      while (lines >> name >> kind && std::getline(lines, note)) {
        kind.pop_back();  // the colon
        if (kind != "runs" && kind != "peer") {
          unmade[kind]++;
          if (options.verbose) std::printf("none %s %s:%s\n", name.c_str(), kind.c_str(), note.c_str());
          continue;
        }
        fs::path stem = fs::path(folder) / name;
        cases[name] = {[stem, &options] { return run_network(stem, options.devices); }, note.substr(1), kind == "runs"};
      }
    }
  return cases;
}

}  // namespace
}  // namespace rlx::test

int main(int argc, char** argv) {
  rlx::test::Options defaults;
  defaults.suite = "architectures";
  defaults.seconds = 120;
  auto options = rlx::test::parse_options(argc, argv, defaults);
  std::map<std::string, int> unmade;
  auto cases = rlx::test::find_networks(options, unmade);
  if (cases.empty()) return rlx::test::nothing_to_run("tests/peer/architectures.py makes them", "RLX_REQUIRE_PEERS");
  int status = rlx::test::run_cases(options, std::move(cases));
  for (const auto& [kind, count] : unmade) std::printf("%d exports: %s\n", count, kind.c_str());
  return status;
}
