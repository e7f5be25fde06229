// SPDX-License-Identifier: Apache-2.0
#include "tests/support/samples.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/visit.h"
#include "ir/text.h"
#include "tests/support/host_ops.h"
#include "tests/support/paths.h"

namespace rlx::test {

namespace fs = std::filesystem;

// ---- tensors ----

// The dtype that holds an expected value of this dtype.
static DType held_in(DType dtype) {
  if ((dtypes::F | dtypes::E).has(dtype)) return DType::kF64;
  return is_complex(dtype) ? DType::kC128 : dtype;
}

template <class T>
static bool read_words(std::span<const std::string> words, T* to) {
  if constexpr (is_complex_type<T>) {
    using Part = typename T::value_type;
    return read_words(words, reinterpret_cast<Part*>(to));
  } else {
    for (size_t i = 0; i < words.size(); i++) {
      Compute<T> number{};
      if constexpr (std::is_same_v<T, bool8>) {
        number = words[i] == "1";
        if (!number && words[i] != "0") return false;
      } else {
        auto [end, failure] = std::from_chars(words[i].data(), words[i].data() + words[i].size(), number);
        if (failure != std::errc() || *end) return false;
      }
      to[i] = T(number);
    }
    return true;
  }
}

// "f32 [2,3] : 1 2 3 4 5 6", stored in its dtype or in that of `held_in`.
static Result<Tensor> read_tensor(std::istringstream& line, DType& dtype, bool expected) {
  std::string type, dims_text, colon;
  line >> type >> dims_text >> colon;
  auto found = find_dtype(type);
  if (!found || dims_text.empty() || colon != ":") return Status(Code::kData, "expected a dtype, its dims and ':'");
  dtype = *found;
  NamedAttrs attrs = RLX_TRY(parse_attrs("dims=" + dims_text));
  auto* dims = std::get_if<std::vector<int64_t>>(&attrs[0].second);
  if (!dims) return Status(Code::kData, "dims are not numbers");
  Tensor tensor = RLX_TRY(Tensor::create(expected ? held_in(dtype) : dtype, *dims));
  std::vector<std::string> words;
  for (std::string word; line >> word;) words.push_back(word);
  bool fits;
  if (is_block(dtype)) {
    fits = words.size() == tensor.bytes() && read_words(std::span<const std::string>(words), tensor.as<uint8_t>());
  } else {
    size_t per_element = is_complex(dtype) ? 2 : 1;
    fits = words.size() == static_cast<size_t>(tensor.count()) * per_element &&
           visit<dtypes::A>(tensor.dtype(),
                            [&]<class T>() { return read_words(std::span<const std::string>(words), tensor.as<T>()); });
  }
  if (!fits) return Status(Code::kData, "these are not the elements of " + type + dims_text);
  return tensor;
}

// ---- files ----

// One line of a case; `sample` is the case that it belongs to.
static Status read_line(const std::string& text, Sample& sample) {
  std::istringstream line(text);
  std::string word;
  line >> word;
  if (word == "error") {
    line >> sample.error;
  } else if (word == "program") {
    sample.program += text.substr(word.size()) + "\n";
  } else if (word == "option") {
    line >> word;
    if (word != "bounds=clamp" && word != "bounds=drop") return Status(Code::kData, "unknown option " + word);
    sample.bounds = word == "bounds=clamp" ? Bounds::kClamp : Bounds::kDrop;
  } else if (word == "in" && text == "in absent") {
    sample.in.emplace_back();
  } else if (word == "in" || word == "out" || word == "param") {
    std::string name;
    if (word == "param") line >> name;
    DType dtype = DType::kNone;
    Tensor tensor = RLX_TRY(read_tensor(line, dtype, word == "out"));
    if (word == "in") sample.in.push_back(tensor);
    if (word == "out") sample.out.push_back({dtype, tensor});
    if (word == "param") sample.params[name] = tensor;
  } else {
    return Status(Code::kData, "unknown line \"" + text + "\"");
  }
  return {};
}

// The cases of a *.golden file; or those in the comments of a *.rlx file, whose program they all run.
static void read_file(const fs::path& path, std::vector<Sample>& samples) {
  bool is_program = path.extension() == ".rlx";
  std::ifstream file(path);
  std::string program;
  size_t first = samples.size();
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    number++;
    if (is_program && !line.starts_with("; ")) {
      program += line + "\n";
      continue;
    }
    if (is_program) line = line.substr(2);
    if (line.empty() || line[0] == '#') continue;
    std::string where = path.filename().string() + ":" + std::to_string(number);
    if (line.starts_with("case ")) {
      size_t end = std::min(line.find(' ', 5), line.size());
      samples.push_back({where, line.substr(5, end - 5), line.substr(end)});
    } else if (samples.size() > first) {
      Status status = read_line(line, samples.back());
      if (!status.ok()) samples.back().error = where + ": " + std::string(status.message());
    }
  }
  for (size_t i = first; i < samples.size() && is_program; i++) samples[i].program = program;
}

const std::vector<Sample>& all_samples() {
  static const std::vector<Sample> kSamples = [] {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(test_path("samples")))
      if (entry.path().extension() == ".golden" || entry.path().extension() == ".rlx") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    std::vector<Sample> samples;
    for (const fs::path& path : files) read_file(path, samples);
    return samples;
  }();
  return kSamples;
}

std::vector<const Sample*> samples_of(std::string_view op) {
  std::vector<const Sample*> found;
  for (const Sample& sample : all_samples())
    if (sample.op == op) found.push_back(&sample);
  return found;
}

// ---- running ----

static std::vector<Dim> dims_of(const Tensor& tensor) {
  return {tensor.dims().begin(), tensor.dims().end()};
}

// On inputs of these dims, one list for each.
static Result<Graph> graph_on(const Sample& sample, const OpTable& table, const std::vector<std::vector<Dim>>& dims) {
  const OpInfo* info = table.find(sample.op);
  if (!info) return Status(Code::kNotFound, "no row '" + sample.op + "'");
  Graph graph("", &table);
  std::vector<Value> in;
  for (size_t i = 0; i < sample.in.size(); i++) {
    const Tensor& tensor = sample.in[i];
    std::string name = "in" + std::to_string(i);
    if (!tensor)
      in.push_back(kAbsent);
    else if (is_block(tensor.dtype()))
      in.push_back(RLX_TRY(graph.add_param(name, tensor.dtype(), dims[i])));
    else
      in.push_back(RLX_TRY(graph.add_input(name, tensor.dtype(), dims[i])));
  }
  NamedAttrs attrs = RLX_TRY(parse_attrs(sample.attrs));
  Value first = RLX_TRY(graph.add(info->op(), in, std::move(attrs)));
  for (uint32_t i = 0; i < graph.node(first).out.size(); i++)
    RLX_TRY(graph.add_output("out" + std::to_string(i), Value{first.node, i}));
  return graph;
}

static std::vector<std::vector<Dim>> dims_of(const Sample& sample) {
  std::vector<std::vector<Dim>> dims;
  for (const Tensor& tensor : sample.in) dims.push_back(tensor ? dims_of(tensor) : std::vector<Dim>());
  return dims;
}

Result<Graph> graph_of(const Sample& sample, const OpTable& table) {
  if (!sample.program.empty()) return parse(sample.program, table, host_ops());
  return graph_on(sample, table, dims_of(sample));
}

Result<Graph> graph_of(const Sample& sample, int64_t size, const Dim& dim) {
  std::vector<std::vector<Dim>> dims = dims_of(sample);
  for (std::vector<Dim>& list : dims) std::replace(list.begin(), list.end(), Dim(size), dim);
  return graph_on(sample, op_table(), dims);
}

Result<std::vector<Tensor>> run(const Sample& sample, const Graph& graph, std::span<const Tensor> in, EvalMode mode) {
  std::vector<Tensor> inputs;
  std::map<std::string, Tensor> params = sample.params;
  for (size_t i = 0; i < in.size(); i++) {
    if (in[i] && is_block(in[i].dtype()))
      params["in" + std::to_string(i)] = in[i];
    else if (in[i])
      inputs.push_back(in[i]);
  }
  return interpret(graph, inputs, params, {mode, sample.bounds});
}

}  // namespace rlx::test
