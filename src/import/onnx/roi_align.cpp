// SPDX-License-Identifier: Apache-2.0
// RoiAlign as ONNX has it where the op roi_align differs: each box may have a number of samples of its own, and the
// largest is taken of the weighted corners of samples, not of samples. Samples are taken one after another, by a scan.
#include "import/onnx/roi_align.h"

#include <limits>

#include "ops/recurrent.h"

namespace rlx::onnx {

namespace {

// The samples of every box along one axis: where the box begins, how wide a bin is, how many samples a bin has. [R, 1]
struct BoxAxis {
  Expr start, bin, count;
};

// One sample of every bin along one axis: the two elements around it and their weights, [R, bins]; whether it lies in
// the image; and whether the box has it, [R, 1].
struct Sample {
  Expr low, high, low_weight, high_weight, inside, counted;
};

BoxAxis box_axis(Call& call, Expr boxes, int64_t axis, int64_t bins, int64_t sampling, bool half_pixel) {
  Expr start = slice(boxes, 1, axis, axis + 1), extent = slice(boxes, 1, axis + 2, axis + 3) - start;
  if (!half_pixel) extent = maximum(extent, 1);
  Expr bin = extent / static_cast<double>(bins);
  if (!bin.valid()) return {bin, bin, bin};
  if (sampling <= 0) return {start, bin, maximum(call.op("ceil", {bin}), 0)};
  return {start, bin, broadcast_to(scalar_like(bin, static_cast<double>(sampling)), bin.dims())};
}

Sample sample_of(const BoxAxis& box, Expr number, int64_t bins, const Dim& size) {
  Builder& b = number.builder();
  DType dtype = box.start.dtype();
  Expr n = b.size(size, dtype), last = maximum(n - 1.0, 0), at = cast(number, dtype);
  Expr place = box.start + (iota(b, {Dim(bins)}, 0, dtype) + (at + 0.5) / maximum(box.count, 1)) * box.bin;
  Expr held = minimum(maximum(place, 0), last), low = floor(held), weight = held - low;
  return {as_index(low, n),
          as_index(low + 1.0, n),
          1.0 - weight,
          weight,
          logical_and(less_equal(scalar_like(place, -1), place), less_equal(place, n)),
          less(at, box.count)};
}

// What the scan needs to know of the node.
struct Align {
  int64_t bins[2] = {1, 1};
  Dim height, width;
  bool is_max = false;
};

// [R, h, w, C]: a sample of every bin, from rows of channels [N * H * W, C]. `first` is the row where an image begins.
Expr value_of(const Align& it, Expr rows, Expr first, const Sample& y, const Sample& x) {
  Builder& b = rows.builder();
  Expr width = b.size(it.width, DType::kI64), total;
  auto column = [](Expr v) { return unsqueeze(v, 2); };
  auto row = [](Expr v) { return unsqueeze(v, 1); };
  for (bool is_high : {false, true})
    for (bool is_right : {false, true}) {
      Expr place = column(is_high ? y.high : y.low) * width + row(is_right ? x.high : x.low);
      Expr weight = column(is_high ? y.high_weight : y.low_weight) * row(is_right ? x.high_weight : x.low_weight);
      Expr part = gather(rows, unsqueeze(unsqueeze(first, 1), 2) + place, 0) * unsqueeze(weight, 3);
      total = !total ? part : it.is_max ? maximum(total, part) : total + part;
    }
  Expr inside = unsqueeze(logical_and(column(y.inside), row(x.inside)), 3);
  Expr counted = unsqueeze(logical_and(column(y.counted), row(x.counted)), 3);
  double none = it.is_max ? -std::numeric_limits<double>::infinity() : 0;
  return where(counted, where(inside, total, 0), none);
}

// The largest number of samples of any box, as a value.
Expr most_of(const BoxAxis& box) {
  return maximum(cast(reshape(reduce(box.count, "max", {0}), {}), DType::kI64), 0);
}

}  // namespace

Expr roi_align_by_samples(Call& call, const RoiAlign& node) {
  Expr x = call.in(0), boxes = call.in(1), image = call.in(2);
  if (!x.valid() || !boxes.valid() || !image.valid()) return x;
  if (x.rank() != 4 || boxes.rank() != 2 || image.rank() != 1)
    return call.fail(Code::kShape, "its inputs must have rank 4, 2 and 1"), x;
  Builder& b = call.builder();
  DType result = x.dtype(), dtype = result == DType::kF64 ? result : DType::kF32;
  x = cast(x, dtype);
  boxes = cast(boxes, dtype) * node.scale;
  if (node.half_pixel) boxes = boxes - 0.5;
  BoxAxis across = box_axis(call, boxes, 0, node.width, node.sampling, node.half_pixel),
          down = box_axis(call, boxes, 1, node.height, node.sampling, node.half_pixel);
  Align it{{node.height, node.width}, x.dim(2), x.dim(3), node.is_max};
  Dim channels = x.dim(1), count = boxes.dim(0);
  Expr rows = reshape(transpose(x, {0, 2, 3, 1}), {x.dim(0) * it.height * it.width, channels});
  Expr first = reshape(cast(image, DType::kI64), {count}) * b.size(it.height * it.width, DType::kI64);
  Expr columns = node.sampling > 0 ? b.scalar(DType::kI64, static_cast<double>(node.sampling)) : most_of(across);
  Expr numbers = node.sampling > 0 ? iota(b, {Dim(node.sampling * node.sampling)}, 0, DType::kI64)
                                   : call.op("dynamic_iota", {columns * most_of(down)});
  double least = node.is_max ? -std::numeric_limits<double>::infinity() : 0;
  Expr start = broadcast_to(b.scalar(dtype, least), {count, Dim(node.height), Dim(node.width), channels});
  Expr kept[] = {rows, first, columns, down.start, down.bin, down.count, across.start, across.bin, across.count};
  for (const Expr& each : kept)
    if (!each.valid()) return each;
  if (!numbers.valid() || !start.valid()) return numbers;
  Outputs sums = scan(std::span(&start, 1), std::span(&numbers, 1), kept, ScanOrder::kForward,
                      [&](auto carry, auto number, auto in) -> std::vector<Expr> {
                        Expr row = number[0] / maximum(in[2], 1),
                             column = binary(Op::kRem, number[0], maximum(in[2], 1));
                        Sample y = sample_of({in[3], in[4], in[5]}, row, it.bins[0], it.height);
                        Sample x = sample_of({in[6], in[7], in[8]}, column, it.bins[1], it.width);
                        Expr value = value_of(it, in[0], in[1], y, x);
                        return {it.is_max ? maximum(carry[0], value) : carry[0] + value};
                      });
  Expr samples = unsqueeze(unsqueeze(down.count * across.count, 2), 3);
  Expr y = node.is_max ? where(less(samples, 1), 0, sums[0]) : sums[0] / maximum(samples, 1);
  return cast(transpose(y, {0, 3, 1, 2}), result);
}

}  // namespace rlx::onnx
