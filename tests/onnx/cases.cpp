// SPDX-License-Identifier: Apache-2.0
// Runs ONNX's own test cases through the C API: each model is imported, compiled and run on its inputs, and its outputs
// are compared as ONNX's runner compares them.
//     onnx_cases [--suite NAME] [--device NAME] [--list FILE] [--only GLOB] [--verbose] FOLDER ...
// A folder holds kinds of cases ("node"), a kind the cases, a case model.onnx and test_data_set_*/{input,output}_*.pb.
#include <algorithm>
#include <cmath>
#include <complex>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/visit.h"
#include "import/onnx/tensor.h"
#include "tests/onnx/suite.h"

namespace fs = std::filesystem;

namespace rlx::test {
namespace {

struct Tolerance {
  double relative = 1e-3, absolute = 1e-7;  // ONNX's own, where data.json of the case has no other
};

// ---- one case, in a process of its own: "" or what is wrong ----

// The tensors of all inputs or outputs, one after another. Also what the model must be told of them before it is
// opened.
struct Data {
  std::vector<Tensor> tensors;
  std::string options;

  void add(const std::string& key, size_t value) {
    options += (options.empty() ? "" : " ") + key + "=" + std::to_string(value);
  }
};

Status read_value(const fs::path& path, const onnx::ValueInfoProto& info, Data& data) {
  const onnx::TypeProto* type = &info.type;
  Source source = RLX_TRY(Source::open(path.string()));
  auto protos = RLX_TRY(onnx::parse_value(source.bytes, *type));
  std::string name(info.name);
  if (!protos) data.add("absent." + name, 1);
  if (!protos) return {};
  if (!type->optional_type.empty() && !type->optional_type[0].elem_type.empty())
    type = &type->optional_type[0].elem_type[0];
  if (!type->sequence_type.empty()) data.add("sequence." + name, protos->size());
  for (const onnx::TensorProto& proto : *protos) {
    Tensor tensor = RLX_TRY(onnx::TensorReader(source).read(proto));
    data.tensors.push_back(RLX_TRY(tensor.aligned()));
  }
  return {};
}

Result<Data> read_data(const fs::path& folder, const std::string& kind,
                       const std::vector<onnx::ValueInfoProto>& values) {
  Data data;
  for (size_t i = 0; i < values.size(); i++) {
    fs::path path = folder / (kind + "_" + std::to_string(i) + ".pb");
    if (!fs::exists(path)) break;
    RLX_TRY(read_value(path, values[i], data));
  }
  return data;
}

// numpy.testing.assert_allclose; two bfloat16 are close if they differ by two units in the last place.
bool is_close(std::complex<double> got, std::complex<double> want, const Tolerance& tolerance) {
  if (std::isnan(want.real()) || std::isnan(want.imag())) return std::isnan(got.real()) || std::isnan(got.imag());
  if (got == want) return true;
  if (std::isinf(want.real()) || std::isinf(got.real())) return false;
  return std::abs(got - want) <= tolerance.absolute + tolerance.relative * std::abs(want);
}

std::string difference(const Tensor& got, const Tensor& want, Tolerance tolerance) {
  if (want.dtype() == DType::kBF16) tolerance.relative = std::max(tolerance.relative, 0x1p-6);
  std::string found;
  visit<dtypes::A>(want.dtype(), [&]<class T>() {
    auto number = [](T x) -> std::complex<double> {
      if constexpr (is_complex_type<T>)
        return {x.real(), x.imag()};
      else
        return static_cast<double>(static_cast<Compute<T>>(x));
    };
    for (int64_t i = 0; i < want.count() && found.empty(); i++) {
      auto a = number(got.as<T>()[i]), b = number(want.as<T>()[i]);
      if (is_close(a, b, tolerance)) continue;
      std::ostringstream text;
      text.precision(9);
      text << "element " << i << " is " << a.real() << ", not " << b.real();
      found = text.str();
    }
  });
  return found;
}

std::string run_data(rlx_env_t* env, rlx_model_t* model, const char* device, const std::vector<Tensor>& in,
                     const std::vector<Tensor>& want, const Tolerance& tolerance) {
  if (want.empty()) return "data: there are no outputs to compare";
  std::vector<rlx_tensor_t*> inputs(in.size()), outputs(want.size());
  for (size_t i = 0; i < in.size(); i++)
    if (std::string why = copied(env, in[i], &inputs[i]); !why.empty()) return why;
  std::string why = taken(rlx_model_run(model, device, nullptr, inputs.data(), inputs.size(), nullptr, outputs.data(),
                                        outputs.size(), nullptr));
  if (!why.empty()) return "run: " + why;
  for (size_t i = 0; i < want.size(); i++) {
    Tensor got;
    if (why = same_type(outputs[i], want[i], got); why.empty()) why = difference(got, want[i], tolerance);
    if (!why.empty()) return "wrong: output " + std::to_string(i) + ": " + why;
  }
  return {};
}

struct Interface {
  std::vector<onnx::ValueInfoProto> input, output;
  std::shared_ptr<const void> owner;  // of their names
};

// Of what is no initializer.
Result<Interface> read_interface(const std::string& path) {
  Source source = RLX_TRY(Source::open(path));
  onnx::GraphProto graph = RLX_TRY(onnx::parse_model(source.bytes)).graph;
  return Interface{std::move(graph.input), std::move(graph.output), source.owner};
}

fs::path data_of(const fs::path& folder, int i) {
  return folder / ("test_data_set_" + std::to_string(i));
}

std::string run_case(const fs::path& folder, const std::vector<std::string>& devices) {
  Tolerance tolerance;
  if (std::ifstream file(folder / "data.json"); file) {
    auto data = nlohmann::json::parse(file, nullptr, false);
    if (data.is_object()) tolerance = {data.value("rtol", 1e-3), data.value("atol", 1e-7)};
  }
  rlx_attrs_t* options = nullptr;
  rlx_env_t* env = nullptr;
  rlx_model_t* model = nullptr;
  if (auto why = taken(rlx_attrs_create("threads=1", &options)); !why.empty()) return why;
  if (auto why = taken(rlx_env_create(options, nullptr, &env)); !why.empty()) return why;
  std::string path = (folder / "model.onnx").string();
  auto values = read_interface(path);
  if (!values.ok()) return std::string(values.status().message());
  std::string opened_with = "-";
  for (int i = 0; i == 0 || fs::exists(data_of(folder, i)); i++) {
    auto in = read_data(data_of(folder, i), "input", values->input);
    auto want = read_data(data_of(folder, i), "output", values->output);
    if (!in.ok()) return "data: " + std::string(in.status().message());
    if (!want.ok()) return "data: " + std::string(want.status().message());
    if (in->options != opened_with) {
      if (model) rlx_model_release(model);
      if (auto why = taken(rlx_attrs_create(in->options.c_str(), &options)); !why.empty()) return why;
      if (auto why = taken(rlx_model_open(env, path.c_str(), options, &model)); !why.empty()) return why;
      opened_with = in->options;
    }
    for (const std::string& device : devices)
      if (auto why = run_data(env, model, device.c_str(), in->tensors, want->tensors, tolerance); !why.empty())
        return device == devices[0] ? why : why + " (on " + device + ")";
  }
  return {};
}

// ---- all cases ----

Cases find_cases(const Options& options) {
  Cases cases;
  for (const std::string& folder : options.folders)
    if (fs::is_directory(folder))
      for (const auto& kind : fs::directory_iterator(folder))
        if (kind.is_directory())
          for (const auto& each : fs::directory_iterator(kind.path()))
            if (fs::exists(each.path() / "model.onnx"))
              cases[kind.path().filename().string() + "/" + each.path().filename().string()].run =
                  [path = each.path(), &options] { return run_case(path, options.devices); };
  return cases;
}

}  // namespace
}  // namespace rlx::test

int main(int argc, char** argv) {
  using namespace rlx::test;
  Options defaults;
  defaults.suite = "debian";
  Options options = parse_options(argc, argv, defaults);
  Cases cases = find_cases(options);
  if (cases.empty()) return nothing_to_run("is libonnx-testdata installed?", "RLX_REQUIRE_ONNX");
  return run_cases(options, std::move(cases));
}
