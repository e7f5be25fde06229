// SPDX-License-Identifier: Apache-2.0
// Runs ONNX's own test cases through the C API: each model is imported, compiled and run on its inputs, and its outputs
// are compared as ONNX's runner compares them.
//     onnx_cases [--suite NAME] [--device NAME] [--list FILE] [--only GLOB] [--verbose] FOLDER ...
// A folder holds kinds of cases ("node"), a kind the cases, a case model.onnx and test_data_set_*/{input,output}_*.pb.
// What fails must stand in the list, with its reason; what stands there must fail. Each case runs in a process of its
// own, so that one that crashes or hangs fails alone.
#include <fnmatch.h>
#include <rlx.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/visit.h"
#include "import/onnx/tensor.h"

namespace fs = std::filesystem;

namespace rlx::test {
namespace {

constexpr unsigned kSeconds = 30;  // a case may take
constexpr rlim_t kBytes = rlim_t{4} << 30;
constexpr int kSkipped = 77;  // what CTest takes for a test that did not run

struct Options {
  std::string suite = "debian", list, only = "*";
  std::vector<std::string> devices, folders;
  bool verbose = false;
};

struct Tolerance {
  double relative = 1e-3, absolute = 1e-7;  // ONNX's own, where data.json of the case has no other
};

struct Expectation {
  std::string pattern, reason;
  bool is_used = false;
};

// ---- one case, in a process of its own: "" or what is wrong ----

std::string taken(rlx_status_t* status) {
  char text[2000];
  if (rlx_status_take(status, text, sizeof text) == RLX_OK) return {};
  return text[0] ? text : "a status without a message";
}

Result<Tensor> read_tensor(const fs::path& path) {
  Source source = RLX_TRY(Source::open(path.string()));
  onnx::TensorProto proto = RLX_TRY(onnx::parse_tensor(source.bytes));
  Tensor tensor = RLX_TRY(onnx::TensorReader(source).read(proto));
  return tensor.aligned();
}

Result<std::vector<Tensor>> read_tensors(const fs::path& folder, const std::string& kind) {
  std::vector<Tensor> tensors;
  for (size_t i = 0;; i++) {
    fs::path path = folder / (kind + "_" + std::to_string(i) + ".pb");
    if (!fs::exists(path)) return tensors;
    tensors.push_back(RLX_TRY(read_tensor(path)));
  }
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

std::string compare(rlx_tensor_t* got, const Tensor& want, const Tolerance& tolerance) {
  std::vector<int64_t> dims(rlx_tensor_shape(got, nullptr, 0));
  rlx_tensor_shape(got, dims.data(), dims.size());
  auto shape = [](std::span<const int64_t> dims) {
    std::string text;
    for (int64_t dim : dims) text += (text.empty() ? "" : ",") + std::to_string(dim);
    return "[" + text + "]";
  };
  auto dtype = static_cast<DType>(rlx_tensor_dtype(got));
  if (dtype != want.dtype())
    return "the dtype is " + std::string(name(dtype)) + ", not " + std::string(name(want.dtype()));
  if (!std::ranges::equal(dims, want.dims())) return "the shape is " + shape(dims) + ", not " + shape(want.dims());
  Tensor copy = *Tensor::create(dtype, dims);
  if (copy.bytes()) std::memcpy(copy.data(), rlx_tensor_data(got), static_cast<size_t>(copy.bytes()));
  return difference(copy, want, tolerance);
}

std::string run_data(rlx_env_t* env, rlx_model_t* model, const char* device, const fs::path& folder,
                     const Tolerance& tolerance) {
  auto in = read_tensors(folder, "input"), want = read_tensors(folder, "output");
  if (!in.ok()) return "data: " + std::string(in.status().message());
  if (!want.ok()) return "data: " + std::string(want.status().message());
  if (want->empty()) return "data: there are no outputs to compare";
  std::vector<rlx_tensor_t*> inputs(in->size()), outputs(want->size());
  for (size_t i = 0; i < in->size(); i++) {
    const Tensor& tensor = (*in)[i];
    std::string why = taken(rlx_tensor_copy_from(env, static_cast<rlx_dtype_t>(tensor.dtype()), tensor.dims().data(),
                                                 tensor.dims().size(), tensor.data(),
                                                 static_cast<size_t>(tensor.bytes()), &inputs[i]));
    if (!why.empty()) return why;
  }
  std::string why = taken(rlx_model_run(model, device, nullptr, inputs.data(), inputs.size(), nullptr, outputs.data(),
                                        outputs.size(), nullptr));
  if (!why.empty()) return "run: " + why;
  for (size_t i = 0; i < want->size(); i++)
    if (why = compare(outputs[i], (*want)[i], tolerance); !why.empty())
      return "wrong: output " + std::to_string(i) + ": " + why;
  return {};
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
  if (auto why = taken(rlx_model_open(env, (folder / "model.onnx").c_str(), nullptr, &model)); !why.empty()) return why;
  if (!fs::exists(folder / "test_data_set_0")) return "it has no data";
  for (const std::string& device : devices)
    for (int i = 0; fs::exists(folder / ("test_data_set_" + std::to_string(i))); i++)
      if (auto why = run_data(env, model, device.c_str(), folder / ("test_data_set_" + std::to_string(i)), tolerance);
          !why.empty())
        return device == devices[0] ? why : why + " (on " + device + ")";
  return {};
}

// ---- all cases ----

std::string run_apart(const fs::path& folder, const std::vector<std::string>& devices) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  pid_t child = fork();
  if (child == 0) {
    alarm(kSeconds);
    rlimit memory{kBytes, kBytes};
    setrlimit(RLIMIT_AS, &memory);
    std::string why = run_case(folder, devices);
    std::replace(why.begin(), why.end(), '\n', ' ');
    bool written = write(ends[1], why.data(), why.size()) == static_cast<ssize_t>(why.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string why;
  char part[4096];
  for (ssize_t n; (n = read(ends[0], part, sizeof part)) > 0;) why.append(part, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return "crash: more than " + std::to_string(kSeconds) + " s";
  if (WIFSIGNALED(status)) return "crash: signal " + std::to_string(WTERMSIG(status));
  return status == 0 ? why : "crash: exit " + std::to_string(WEXITSTATUS(status));
}

// What is counted as one reason: of a refusal its first kind of node, without the names of one file.
std::string reason_of(const std::string& why) {
  if (auto at = why.find("in all: ["); at != std::string::npos) return why.substr(at + 9, why.find(';', at) - at - 9);
  std::string reason = why.substr(0, 100);
  if (reason.starts_with("wrong: ")) reason = "wrong";
  bool in_quotes = false;
  std::string kept;
  for (char c : reason) {
    if (c == '\'') in_quotes = !in_quotes;
    if (!in_quotes && !std::isdigit(static_cast<unsigned char>(c))) kept += c;
  }
  return kept;
}

std::vector<Expectation> read_list(const Options& options) {
  std::vector<Expectation> list;
  std::ifstream file(options.list);
  for (std::string line; std::getline(file, line);) {
    size_t split = line.find(": ");
    if (line.empty() || line[0] == '#' || split == std::string::npos) continue;
    if (std::string pattern = line.substr(0, split); fnmatch((options.suite + "/*").c_str(), pattern.c_str(), 0) == 0)
      list.push_back({pattern, line.substr(split + 2)});
    else if (pattern.starts_with("*/"))
      list.push_back({pattern, line.substr(split + 2)});
  }
  return list;
}

std::map<std::string, fs::path> find_cases(const Options& options) {
  std::map<std::string, fs::path> cases;
  for (const std::string& folder : options.folders)
    if (fs::is_directory(folder))
      for (const auto& kind : fs::directory_iterator(folder))
        if (kind.is_directory())
          for (const auto& each : fs::directory_iterator(kind.path()))
            if (fs::exists(each.path() / "model.onnx"))
              cases[kind.path().filename().string() + "/" + each.path().filename().string()] = each.path();
  std::erase_if(cases, [&](const auto& pair) { return fnmatch(options.only.c_str(), pair.first.c_str(), 0) != 0; });
  return cases;
}

int run_all(const Options& options) {
  std::vector<Expectation> list = read_list(options);
  auto cases = find_cases(options);
  if (cases.empty()) {
    std::printf("no cases here: is libonnx-testdata installed?\n");
    return std::getenv("RLX_REQUIRE_ONNX") ? 1 : kSkipped;
  }
  std::map<std::string, int> reasons;
  size_t passed = 0, listed = 0, faults = 0;
  for (const auto& [name, folder] : cases) {
    std::string why = run_apart(folder, options.devices);
    Expectation* known = nullptr;
    for (Expectation& each : list)
      if (!known && fnmatch(each.pattern.c_str(), (options.suite + "/" + name).c_str(), 0) == 0) known = &each;
    if (known) known->is_used = true;
    if (why.empty()) passed++;
    if (!why.empty()) reasons[known ? "listed: " + known->reason : reason_of(why)]++;
    if (!why.empty() && known) listed++;
    if (why.empty() != !known) faults++;
    if (why.empty() && known) std::printf("PASSES, but stands in the list: %s\n", name.c_str());
    if (!why.empty() && (!known || options.verbose)) std::printf("FAIL %s: %s\n", name.c_str(), why.c_str());
  }
  for (const Expectation& each : list)
    if (!each.is_used && options.only == "*" && each.pattern.starts_with(options.suite))
      std::printf("the list names what is not there: %s\n", each.pattern.c_str()), faults++;
  std::vector<std::pair<int, std::string>> order;
  for (const auto& [reason, count] : reasons) order.emplace_back(-count, reason);
  std::sort(order.begin(), order.end());
  for (const auto& [count, reason] : order) std::printf("%5d  %s\n", -count, reason.c_str());
  std::printf("%s: %zu cases, %zu passed, %zu fail as listed, %zu faults\n", options.suite.c_str(), cases.size(),
              passed, listed, faults);
  return faults ? 1 : 0;
}

}  // namespace
}  // namespace rlx::test

int main(int argc, char** argv) {
  rlx::test::Options options;
  std::map<std::string, std::string*> texts{
      {"--suite", &options.suite}, {"--list", &options.list}, {"--only", &options.only}};
  for (int i = 1; i < argc; i++) {
    std::string word = argv[i];
    if (word == "--verbose")
      options.verbose = true;
    else if (word == "--device" && i + 1 < argc)
      options.devices.emplace_back(argv[++i]);
    else if (texts.contains(word) && i + 1 < argc)
      *texts[word] = argv[++i];
    else
      options.folders.push_back(word);
  }
  if (options.devices.empty()) options.devices = {"cpu"};
  return rlx::test::run_all(options);
}
