// SPDX-License-Identifier: Apache-2.0
#include "ops/trips.h"

#include <cstring>
#include <unordered_set>

#include "ir/body.h"

namespace rlx {

SymbolLookup without_carried(const Attrs& attrs, const SymbolLookup& around) {
  const std::vector<std::string>& names = carried_symbols(attrs);
  std::unordered_set<std::string_view> carried(names.begin(), names.end());
  return [&around, carried = std::move(carried)](std::string_view name) {
    return carried.contains(name) ? std::nullopt : around(name);
  };
}

Result<bool> takes_then(const Attrs& attrs, const Operand& pred, const SymbolLookup& sizes) {
  if (attrs.has("when")) return RLX_TRY(evaluate(attrs.dim("when"), sizes)) != 0;
  return static_cast<bool>(*pred.as<bool8>());
}

static bool is_scan(const Attrs& attrs) {
  return attrs.info()->op() == Op::kScan;
}

static bool runs_backwards(const Attrs& attrs) {
  return is_scan(attrs) && attrs.flag("reverse");
}

Result<LoopRun> run_loop(const Attrs& attrs, std::vector<Tensor> values, int64_t most, const RunBody& run) {
  auto carries = static_cast<size_t>(attrs.i64("n_carry")),
       xs = is_scan(attrs) ? static_cast<size_t>(attrs.i64("n_xs")) : 0;
  std::vector<Tensor> given = values;
  LoopRun done;
  while (most < 0 || done.trips() < most) {
    int64_t at = runs_backwards(attrs) ? most - 1 - done.trips() : done.trips();
    for (size_t i = carries; i < carries + xs; i++) values[i] = RLX_TRY(given[i].row(at));
    if (!is_scan(attrs)) {
      std::vector<Tensor> more = RLX_TRY(run(*attrs.graph("cond"), values));
      if (!*more[0].as<bool8>()) break;
    }
    std::vector<Tensor> results = RLX_TRY(run(*attrs.graph("body"), values));
    auto rows = results.begin() + static_cast<ptrdiff_t>(carries);
    std::move(results.begin(), rows, values.begin());
    done.rows.emplace_back(std::make_move_iterator(rows), std::make_move_iterator(results.end()));
  }
  values.resize(carries);
  done.carries = std::move(values);
  return done;
}

void LoopRun::stack(const Attrs& attrs, size_t i, std::byte* to) const {
  for (size_t trip = 0; trip < rows.size(); trip++) {
    const Tensor& row = rows[trip][i];
    size_t at = runs_backwards(attrs) ? rows.size() - 1 - trip : trip;
    if (row.bytes()) std::memcpy(to + at * row.bytes(), row.data(), row.bytes());
  }
}

Result<int64_t> scan_trips(const Attrs& attrs, std::span<const Tensor> values, const SymbolLookup& sizes) {
  if (attrs.i64("n_xs") == 0) return evaluate(attrs.dim("length"), sizes);
  return values[static_cast<size_t>(attrs.i64("n_carry"))].dims()[0];
}

}  // namespace rlx
