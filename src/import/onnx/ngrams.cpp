// SPDX-License-Identifier: Apache-2.0
// TfIdfVectorizer: how often the n-grams of a pool occur in each row of numbers.
#include <algorithm>

#include "import/onnx/call.h"
#include "import/onnx/list.h"

namespace rlx::onnx {

namespace {

constexpr int64_t kMaxWindows = 4096;  // n-gram lengths and distances

// The n-grams of one length, as rows, and their columns of the result.
struct Grams {
  int64_t length = 1;
  std::vector<int64_t> tokens, columns;
};

template <class T>
Expr literal(Call& call, DType dtype, const std::vector<T>& values) {
  auto tensor = list_tensor(dtype, std::span<const T>(values));
  return tensor.ok() ? call.builder().constant(*tensor) : call.builder().fail(tensor.status());
}

// An attribute says where the n-grams of each length begin in the pool. Lengths that are not counted have columns too.
std::vector<Grams> grams_of(Call& call, int64_t shortest, int64_t longest) {
  std::vector<int64_t> pool = call.i64s("pool_int64s"), starts = call.i64s("ngram_counts"),
                       columns = call.i64s("ngram_indexes");
  std::vector<Grams> result;
  size_t column = 0;
  auto size = static_cast<int64_t>(pool.size());
  for (size_t i = 0; i < starts.size(); i++) {
    int64_t begin = starts[i], end = i + 1 < starts.size() ? starts[i + 1] : size;
    auto length = static_cast<int64_t>(i + 1);
    if (begin < 0 || end < begin || end > size || (end - begin) % length != 0) {
      call.fail(Code::kData, "'ngram_counts' does not suit the pool");
      return {};
    }
    auto count = static_cast<size_t>((end - begin) / length);
    if (column + count > columns.size()) break;
    if (length >= shortest && length <= longest && count > 0)
      result.push_back({length,
                        {pool.begin() + begin, pool.begin() + end},
                        {columns.begin() + static_cast<std::ptrdiff_t>(column),
                         columns.begin() + static_cast<std::ptrdiff_t>(column + count)}});
    column += count;
  }
  if (column != columns.size()) call.fail(Code::kData, "'ngram_indexes' does not name a column for each n-gram");
  return result;
}

// How often each n-gram occurs in the rows of x, its tokens `distance` apart: [rows, n-grams].
Expr count_windows(Call& call, Expr x, const Grams& grams, int64_t distance) {
  Dim width = max(Dim(0), x.dim(1) - Dim((grams.length - 1) * distance)), slack = x.dim(1) - width;
  Expr pool = reshape(literal(call, DType::kI64, grams.tokens), {Dim(-1), Dim(grams.length)}), found;
  for (int64_t i = 0; i < grams.length; i++) {
    Dim start = i == 0 ? Dim(0) : min(Dim(i * distance), slack);
    Expr tokens = unsqueeze(slice(x, 1, start, start + width), 2);
    Expr same = equal(tokens, reshape(slice(pool, 1, i, i + 1), {Dim(1), Dim(1), Dim(-1)}));
    found = i == 0 ? same : logical_and(found, same);
  }
  return reduce(cast(found, DType::kF32), "sum", {1}, KeepDims::kNo);
}

// Skips do not change 1-grams.
Expr count_grams(Call& call, Expr x, const Grams& grams, int64_t most_skipped) {
  Expr sum;
  for (int64_t distance = 1; distance <= (grams.length == 1 ? 1 : most_skipped + 1); distance++) {
    Expr counts = count_windows(call, x, grams, distance);
    sum = distance == 1 ? counts : sum + counts;
  }
  return sum;
}

// For each column the n-gram that it counts; `none` for one without.
std::vector<int64_t> sources_of(Call& call, const std::vector<Grams>& grams, const std::vector<int64_t>& columns) {
  int64_t last = -1, none = 0;
  for (int64_t column : columns) {
    last = std::max(last, column);
    if (column < 0 || column > int64_t{1} << 24) call.fail(Code::kData, format("column {}", column));
  }
  if (last < 0) call.fail(Code::kData, "no n-grams");
  if (!call.status().ok()) return {};
  for (const Grams& each : grams) none += static_cast<int64_t>(each.columns.size());
  std::vector<int64_t> sources(static_cast<size_t>(last) + 1, none);
  int64_t at = 0;
  for (const Grams& each : grams)
    for (int64_t column : each.columns) {
      int64_t& source = sources[static_cast<size_t>(column)];
      if (source != none) call.fail(Code::kUnsupported, "two n-grams of one column");
      source = at++;
    }
  return sources;
}

// The weight of each column, 1 where no n-gram has it.
std::vector<float> weights_of(Call& call, const std::vector<double>& given, const std::vector<int64_t>& columns,
                              size_t count) {
  std::vector<float> weights(count, 1);
  if (!given.empty() && given.size() != columns.size()) call.fail(Code::kData, "'weights' is not one for each n-gram");
  for (size_t i = 0; i < std::min(given.size(), columns.size()); i++)
    weights[static_cast<size_t>(columns[i])] = static_cast<float>(given[i]);
  return weights;
}

void build_tf_idf(Call& call) {
  Expr x = call.in(0);
  std::string_view mode = call.text("mode", "");
  int64_t shortest = call.i64("min_gram_length", 1), longest = call.i64("max_gram_length", 1),
          skipped = call.i64("max_skip_count", 0);
  if (call.has_attr("pool_strings")) return call.fail(Code::kUnsupported, "n-grams of strings");
  if (!x.valid()) return;
  if (x.rank() != 1 && x.rank() != 2) return call.fail(Code::kShape, "its input is neither a row nor rows");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") return call.fail(Code::kData, "'mode' is not TF, IDF or TFIDF");
  if (shortest < 1 || longest < shortest) return call.fail(Code::kData, "n-grams without a length");
  if (skipped < 0 || skipped >= kMaxWindows || longest > kMaxWindows || (skipped + 1) * longest > kMaxWindows)
    return call.fail(Code::kUnsupported, format("n-grams of up to {} with {} skipped", longest, skipped));
  std::vector<Grams> grams = grams_of(call, shortest, longest);
  std::vector<int64_t> columns = call.i64s("ngram_indexes");
  std::vector<double> given = call.f64s("weights");
  std::vector<int64_t> sources = sources_of(call, grams, columns);
  if (!call.status().ok()) return;
  std::vector<float> weights = weights_of(call, given, columns, sources.size());
  Expr rows = cast(x.rank() == 1 ? unsqueeze(x, 0) : x, DType::kI64);
  std::vector<Expr> counts;
  for (const Grams& each : grams) counts.push_back(count_grams(call, rows, each, skipped));
  counts.push_back(broadcast_to(call.builder().scalar(DType::kF32, 0), {rows.dim(0), Dim(1)}));
  Expr y = gather(concat(counts, 1), literal(call, DType::kI64, sources), 1);
  if (mode != "TF") {
    Expr weight = literal(call, DType::kF32, weights);
    y = mode == "IDF" ? where(greater(y, 0), weight, 0) : y * weight;
  }
  call.out(0, x.rank() == 1 ? reshape(y, {y.dim(1)}) : y);
}

constexpr NodeKind kKinds[] = {{"TfIdfVectorizer", build_tf_idf}};

}  // namespace

std::span<const NodeKind> ngram_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
