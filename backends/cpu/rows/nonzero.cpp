// SPDX-License-Identifier: Apache-2.0
// The row for the padded form of nonzero, of which the exact one is made.
#include "backends/cpu/kernels/nonzero.h"

#include "backends/cpu/rows/native.h"

namespace rlx::cpu {

namespace {

std::string_view refuse_nonzero(const KernelQuery& query) {
  if (!query.node.attrs.flag("bounded")) return "finds places in the bounded form only";
  return query.type(0).dtype == DType::kBool ? "" : "takes truth values only";
}

void encode_nonzero(const StepView& view, const Caps&, void* block, Launch& launch) {
  const View& x = view.in[0];
  NonzeroArgs args;
  args.x = x.as<uint8_t>();
  args.index = view.out[0].as<int64_t>();
  args.count = view.out[1].as<int64_t>();
  args.n = x.count();
  args.most = view.out[0].dims[0];
  args.rank = static_cast<int32_t>(x.dims.size());
  std::copy(x.dims.begin(), x.dims.end(), args.dims);
  auto scanned = static_cast<double>(args.n), stored = static_cast<double>(args.most * args.rank);
  double work = 50 + 0.3 * scanned + stored;
  if (nonzero_pieces(args.n).count == 1) return load(block, nonzero_loop(), args, work, launch);
  args.counts = reinterpret_cast<int64_t*>(view.scratch);
  load(block, nonzero_count_loop(), args, 0.3 * scanned, launch);
  load_after<NonzeroArgs>(block, nonzero_loop(), args, work, launch);
}

size_t nonzero_scratch(const Node&, std::span<const Dims> upper) {
  return largest_count(upper[0]) < 2 * kNonzeroPiece ? 0 : kManyParts * sizeof(int64_t);
}

}  // namespace

void add_nonzero_rows(RowsByOp& by_op) {
  add(by_op, loops<NonzeroArgs, NonzeroArgs>(Op::kNonzero, "nonzero", refuse_nonzero, encode_nonzero)
                 .scratch(nonzero_scratch));
}

}  // namespace rlx::cpu
