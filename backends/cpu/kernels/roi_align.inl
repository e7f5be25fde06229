// SPDX-License-Identifier: Apache-2.0
// Some bins of a box at a time: what they read is listed once, and serves all channels, which lie along the lanes.

inline constexpr int64_t kBinsAtOnce = 64, kListedCorners = 4096;

// The two elements of an axis between which a sample lies.
struct AxisSample {
  int64_t low, high;
  double part;  // of `high`
  bool inside;  // or at most one element outside: there the edge counts
};
struct BoxAxis {
  double start, step;  // of samples
  int64_t size;

  AxisSample at(int64_t sample) const {
    const double place = start + (static_cast<double>(sample) + 0.5) * step, n = static_cast<double>(size);
    if (size == 0 || !(place >= -1 && place <= n)) return {0, 0, 0, false};
    const double held = place > n - 1 ? n - 1 : place > 0 ? place : 0;
    const auto low = static_cast<int64_t>(held);
    return {low, min(low + 1, size - 1), held - static_cast<double>(low), true};
  }
};
inline BoxAxis box_axis(const RoiAlignArgs& p, const float* box, int64_t bins, int64_t size) {
  const double shift = p.half_pixel ? 0.5 : 0, start = box[0] * p.scale - shift, end = box[2] * p.scale - shift;
  const double extent = !p.half_pixel && end - start < 1 ? 1 : end - start;
  return {start, extent / static_cast<double>(bins * p.sampling), size};
}

// What each bin reads of a channel: four corners for each sample that is inside.
struct Corners {
  int64_t at[kListedCorners];
  float weight[kListedCorners];
  int64_t end[kBinsAtOnce];   // of a bin's corners
  bool outside[kBinsAtOnce];  // whether it has a sample there, which counts as 0
};
inline void list_corners(const RoiAlignArgs& p, const BoxAxis& down, const BoxAxis& across, int64_t first, int64_t bins,
                         Corners& list) {
  int64_t count = 0;
  for (int64_t b = 0; b < bins; ++b) {
    const int64_t row = (first + b) / p.columns * p.sampling, column = (first + b) % p.columns * p.sampling;
    list.outside[b] = false;
    for (int64_t i = 0; i < p.sampling; ++i) {
      const AxisSample y = down.at(row + i);
      for (int64_t j = 0; j < p.sampling; ++j) {
        const AxisSample x = across.at(column + j);
        if (!y.inside || !x.inside) {
          list.outside[b] = true;
          continue;
        }
        for (int corner = 0; corner < 4; ++corner, ++count) {
          const bool lower = corner & 2, right = corner & 1;
          list.at[count] = (lower ? y.high : y.low) * p.row + (right ? x.high : x.low) * p.column;
          list.weight[count] = static_cast<float>((lower ? y.part : 1 - y.part) * (right ? x.part : 1 - x.part));
        }
      }
    }
    list.end[b] = count;
  }
}

// One element of some channels.
inline Vec load_channels(const RoiAlignArgs& p, const float* x, int64_t channels) {
  if (p.channel == 1) return load_some(x, channels);
  Vec v{};
  for (int64_t i = 0; i < kLanes && i < channels; ++i) v[i] = x[i * p.channel];
  return v;
}

inline Vec mean_of_bin(const RoiAlignArgs& p, const float* x, int64_t channels, const Corners& list, int64_t from,
                       int64_t to) {
  Vec sums[2] = {};
  for (int64_t i = from; i < to; i += 2) {
    RLX_UNROLL for (int k = 0; k < 2; ++k) sums[k] =
        fma(load_channels(p, x + list.at[i + k], channels), list.weight[i + k], sums[k]);
  }
  return (sums[0] + sums[1]) / static_cast<float>(p.sampling * p.sampling);
}
inline Vec largest_of_bin(const RoiAlignArgs& p, const float* x, int64_t channels, const Corners& list, int64_t from,
                          int64_t to, bool outside) {
  Vec largest = splat(outside ? 0.0f : -kInf);
  for (int64_t i = from; i < to; i += 4) {
    Vec sample{};
    for (int k = 0; k < 4; ++k)
      sample = fma(load_channels(p, x + list.at[i + k], channels), list.weight[i + k], sample);
    largest = max(largest, sample);
  }
  return largest;
}

// Writes the bins of some channels, which were computed bin by bin.
inline void write_bins(const float* values, int64_t bins, int64_t channels, float* y, int64_t plane) {
  for (int64_t b = 0; b < bins; b += kLanes) {
    Vec rows[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) rows[i] = b + i < bins ? load(values + (b + i) * kLanes) : Vec{};
    transpose(rows);
    for (int64_t c = 0; c < channels && c < kLanes; ++c) store_some(y + c * plane + b, rows[c], bins - b);
  }
}

inline void align_box(const RoiAlignArgs& p, int64_t number) {
  Corners list;
  alignas(64) float values[kBinsAtOnce * kLanes];
  int64_t image =
      p.image_is_i64 ? static_cast<const int64_t*>(p.image)[number] : static_cast<const int32_t*>(p.image)[number];
  const float* x = p.x + max(min(image, p.items - 1), int64_t{0}) * p.item;
  const float* box = p.boxes + number * 4;
  const int64_t height = p.items > 0 ? p.height : 0;  // without an image, no sample is inside
  const BoxAxis across = box_axis(p, box, p.columns, p.width), down = box_axis(p, box + 1, p.rows, height);
  const int64_t plane = p.rows * p.columns, most = min(kBinsAtOnce, kListedCorners / (4 * p.sampling * p.sampling));
  float* y = p.y + number * p.channels * plane;
  for (int64_t first = 0, bins; first < plane; first += bins) {
    bins = min(most, plane - first);
    list_corners(p, down, across, first, bins, list);
    for (int64_t c = 0; c < p.channels; c += kLanes) {
      const float* from = x + c * p.channel;
      for (int64_t b = 0; b < bins; ++b) {
        const int64_t begin = b > 0 ? list.end[b - 1] : 0, end = list.end[b];
        store(values + b * kLanes, p.is_max ? largest_of_bin(p, from, p.channels - c, list, begin, end, list.outside[b])
                                            : mean_of_bin(p, from, p.channels - c, list, begin, end));
      }
      write_bins(values, bins, p.channels - c, y + c * plane + first, plane);
    }
  }
}

inline int64_t roi_align_parts(const RoiAlignArgs& p) {
  return p.channels > 0 ? p.count : 0;
}
inline void roi_align_run(const RoiAlignArgs& p, int64_t begin, int64_t end) {
  for (int64_t part = begin; part < end; ++part) align_box(p, part);
}

inline constexpr RoiAlignFns kRoiAlign = {{roi_align_parts, roi_align_run}};
