// SPDX-License-Identifier: Apache-2.0
// Convolutions of groups of one channel and few filters. The rows of x that a part reads are copied once, by residues
// modulo the strides, with zeros around them; then an output lies a fixed distance from each of its taps, whole blocks
// of rows are summed as one long row, and a register keeps a sum over all taps.

inline constexpr int64_t kPlaneCopy = 16384;  // elements of x, on the stack
inline constexpr int64_t kPlaneSums = 8192;   // outputs, and what lies between them, on the stack
inline constexpr int64_t kPlaneTaps = 128;
inline constexpr int64_t kPlaneVecs = 8;  // sums at once

// The copy is [residue of y][row][residue of x][column], so that an output row is `pitch` from the next.
struct PlaneShape {
  int64_t phases_y, phases_x;  // residues that taps read
  int64_t width, pitch;        // of a row of one residue, of all
  int64_t reach;               // rows of a residue beyond those of outputs
  int64_t rows;                // of outputs in a part
};
inline int64_t phases_of(const ConvAxis& axis) {
  return axis.taps == 1 ? 1 : axis.stride;
}
inline PlaneShape plane_shape(const ConvArgs& p) {
  const ConvAxis &y = p.axes[1], &x = p.axes[2];
  PlaneShape shape;
  shape.phases_y = phases_of(y), shape.phases_x = phases_of(x);
  shape.width = x.out + (x.taps - 1) * x.dilation / x.stride;
  shape.pitch = shape.width * shape.phases_x;
  shape.reach = (y.taps - 1) * y.dilation / y.stride;
  int64_t most = kPlaneCopy / (shape.pitch > 0 ? shape.pitch : 1) / shape.phases_y - shape.reach - 1;
  int64_t most_sums = kPlaneSums / (shape.pitch > 0 ? shape.pitch : 1);
  if (most_sums < most) most = most_sums;
  if (most > y.out) most = y.out;
  int64_t blocks = most > 0 ? ceil_div(y.out, most) : 0;
  shape.rows = blocks ? ceil_div(y.out, blocks) : 0;
  return shape;
}
inline int64_t plane_blocks(const ConvArgs& p, const PlaneShape& shape) {
  return shape.rows ? ceil_div(p.axes[1].out, shape.rows) : 0;
}
inline int64_t plane_parts(const ConvArgs& p) {
  return p.items * p.groups * plane_blocks(p, plane_shape(p));
}

inline void copy_plane(const ConvArgs& p, const PlaneShape& shape, const float* x, int64_t first, int64_t rows,
                       float* to) {
  const ConvAxis &y = p.axes[1], &last = p.axes[2];
  for (int64_t phase = 0; phase < shape.phases_y; ++phase) {
    for (int64_t row = 0; row < rows + shape.reach; ++row) {
      int64_t at = (first + row) * y.stride + phase - y.lo;
      for (int64_t i = 0; i < shape.phases_x; ++i, to += shape.width) {
        if (at < 0 || at >= y.size)
          for (int64_t k = 0; k < shape.width; ++k) to[k] = 0;
        else
          read_phase(last, x + at * last.size, i - last.lo, shape.width, shape.width, 0, to);
      }
    }
  }
}

struct PlaneTap {
  const float* from;
  float weight;
};

// sums[i] = the taps at i, for whole vectors up to `count`.
template <int Vecs>
inline void sum_span(const PlaneTap* taps, int64_t count, int64_t at, float* sums) {
  Vec acc[Vecs] = {};
  for (int64_t tap = 0; tap < count; ++tap) {
    const float* from = taps[tap].from + at;
    Vec weight = splat(taps[tap].weight);
    RLX_UNROLL for (int v = 0; v < Vecs; ++v) acc[v] = fma(load(from + v * kLanes), weight, acc[v]);
  }
  RLX_UNROLL for (int v = 0; v < Vecs; ++v) store(sums + at + v * kLanes, acc[v]);
}

// Rows of outputs, `pitch` apart in sums.
struct PlaneRows {
  const float *sums, *residual;
  float bias;
  float* y;
  int64_t rows, columns, pitch;
};
template <Vec (*act)(Vec)>
void finish_plane_rows(const PlaneRows& p) {
  for (int64_t r = 0; r < p.rows; ++r) {
    for (int64_t c = 0; c < p.columns; c += kLanes) {
      int64_t at = r * p.columns + c, left = p.columns - c;
      Vec v = load(p.sums + r * p.pitch + c) + splat(p.bias);
      if (p.residual) v += load_some(p.residual + at, left);
      store_some(p.y + at, act(v), left);
    }
  }
}
inline void finish_plane(const PlaneRows& rows, Activation act) {
  using Finish = void (*)(const PlaneRows&);
#define RLX_ACT(act) finish_plane_rows<act>,
  static constexpr Finish kFinish[] = {RLX_ACTIVATIONS};
#undef RLX_ACT
  kFinish[static_cast<int>(act)](rows);
}

inline void plane_part(const ConvArgs& p, const PlaneShape& shape, int64_t part) {
  alignas(64) float copy[kPlaneCopy + kPlaneVecs * kLanes];
  alignas(64) float sums[kPlaneSums + kPlaneVecs * kLanes];
  PlaneTap taps[kPlaneTaps];
  const ConvAxis &y = p.axes[1], &x = p.axes[2];
  int64_t blocks = plane_blocks(p, shape), first = part % blocks * shape.rows, plane = part / blocks;
  int64_t rows = y.out - first < shape.rows ? y.out - first : shape.rows, count = p.taps();
  copy_plane(p, shape, p.x + plane * p.plane(), first, rows, copy);
  int64_t length = (rows - 1) * shape.pitch + x.out, all = (rows + shape.reach) * shape.pitch;
  for (int64_t filter = plane % p.groups * p.filters, i = 0; i < p.filters; ++i, ++filter) {
    for (int64_t tap = 0; tap < count; ++tap) {
      int64_t at_y = tap / x.taps * y.dilation, at_x = tap % x.taps * x.dilation;
      taps[tap] = {copy + at_y % y.stride * all + at_y / y.stride * shape.pitch + at_x % x.stride * shape.width +
                       at_x / x.stride,
                   p.w[filter * count + tap]};
    }
    int64_t at = 0;
    for (; at + 7 * kLanes < length; at += 8 * kLanes) sum_span<8>(taps, count, at, sums);
    for (; at + 3 * kLanes < length; at += 4 * kLanes) sum_span<4>(taps, count, at, sums);
    for (; at < length; at += kLanes) sum_span<1>(taps, count, at, sums);
    int64_t to = ((plane / p.groups * p.groups * p.filters + filter) * y.out + first) * x.out;
    const Epilogue& e = p.epilogue;
    finish_plane({sums, e.residual ? e.residual + to : nullptr, e.row_bias ? e.row_bias[filter] : 0, p.y + to, rows,
                  x.out, shape.pitch},
                 e.act);
  }
}

inline void plane_run(const ConvArgs& p, int64_t begin, int64_t end) {
  PlaneShape shape = plane_shape(p);
  for (int64_t part = begin; part < end; ++part) plane_part(p, shape, part);
}

inline bool planes_fit(const ConvArgs& p) {
  const ConvAxis &z = p.axes[0], &y = p.axes[1], &x = p.axes[2];
  bool flat = z.size == 1 && z.out == 1 && z.taps == 1 && z.lo == 0;
  return flat && p.channels == 1 && y.spread == 1 && x.spread == 1 && p.taps() <= kPlaneTaps &&
         (p.places() == 0 || plane_shape(p).rows > 0);
}
