// SPDX-License-Identifier: Apache-2.0
#include "tests/support/models.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>

#include "import/onnx/onnx.h"

namespace rlx::test {

Result<FileModel> open_onnx(const std::filesystem::path& path) {
  Source source = RLX_TRY(Source::open(path.string()));
  Imported file = RLX_TRY(import_onnx(source, {}));
  auto weights = std::make_shared<Weights>();
  for (auto& [name, tensor] : file.weights) RLX_TRY(weights->put(name, std::move(tensor)));
  return FileModel{std::move(file.graph), std::move(weights)};
}

Result<TensorsByName> read_tensors(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status(Code::kIo, "cannot read " + path.string());
  TensorsByName tensors;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name, dtype;
    words >> name >> dtype;
    Dims dims;
    for (int64_t dim; words >> dim;) dims.push_back(dim);
    auto known = find_dtype(dtype);
    if (!known) return Status(Code::kData, path.string() + ": no tensor begins with '" + line + "'");
    Tensor tensor = RLX_TRY(Tensor::create(*known, dims));
    if (!file.read(reinterpret_cast<char*>(tensor.data()), static_cast<std::streamsize>(tensor.bytes())))
      return Status(Code::kData, path.string() + ": ends inside " + name);
    tensors.emplace(name, std::move(tensor));
  }
  return tensors;
}

std::filesystem::path fetched(std::string_view name) {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path folder =
      cache && *cache ? std::filesystem::path(cache) : std::filesystem::path(home ? home : "/") / ".cache";
  std::filesystem::path path = folder / "rlx" / name;
  if (std::filesystem::exists(path)) return path;
  EXPECT_FALSE(std::getenv("RLX_REQUIRE_MODELS")) << path << " is not there: ./dev demo fetches it";
  return {};
}

double relative_difference(const Tensor& got, const Tensor& want) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (got.dtype() != DType::kF32 || want.dtype() != DType::kF32) return kInfinite;
  if (!std::equal(got.dims().begin(), got.dims().end(), want.dims().begin(), want.dims().end())) return kInfinite;
  double largest = 0, worst = 0;
  for (int64_t i = 0; i < want.count(); i++) {
    double x = got.as<float>()[i], y = want.as<float>()[i];
    if (!std::isfinite(x) || !std::isfinite(y)) {
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      return kInfinite;
    }
    largest = std::max(largest, std::fabs(y));
    worst = std::max(worst, std::fabs(x - y));
  }
  return worst > 0 ? worst / largest : 0;
}

}  // namespace rlx::test
