// SPDX-License-Identifier: Apache-2.0
// Stores a tile of sums through the epilogue.

#include "backends/cpu/gemm/tile.inl"

inline constexpr int64_t kTileStride = 48;  // of a tile that the epilogue reads: the width of the widest panel

inline Vec identity(Vec v) {
  return v;
}

using End = Vec (*)(Vec, const Ending&);
template <Vec (*act)(Vec)>
inline Vec end(Vec v, const Ending& e) {
  return clamp(act(v), e.lo, e.hi);
}
inline Vec end_leaky_relu(Vec v, const Ending& e) {
  return clamp(select(v < splat(0.0f), v * e.slope, v), e.lo, e.hi);
}

// A function for each way to end, in the order of Activation.
template <class Function, template <End> class Of>
inline constexpr Function kByActivation[] = {
    Of<end<identity>>::run,   Of<end<relu>>::run,      Of<end<gelu_near>>::run, Of<end<gelu_tanh_near>>::run,
    Of<end<silu>>::run,       Of<end<sigmoid>>::run,   Of<end<tanh>>::run,      Of<end<hard_sigmoid>>::run,
    Of<end<hard_swish>>::run, Of<end_leaky_relu>::run,
};

// The corner of a block in the arrays of the epilogue; null for an array that it does not read.
struct Corner {
  const float *bias, *row_bias, *residual;
  float* y;
  int64_t y_row;
};
inline Corner corner(const Epilogue& e, int64_t row, int64_t column, float* y, int64_t y_row) {
  return {e.bias ? e.bias + column : nullptr, e.row_bias ? e.row_bias + row : nullptr,
          e.residual ? e.residual + row * e.residual_row + column : nullptr, y + row * y_row + column, y_row};
}

template <End last>
struct FinishRows {
  static void run(const Epilogue& e, const float* tile, int64_t rows, int64_t columns, const Corner& to) {
    Ending ending = e;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; c += kLanes) {
        Vec v = load(tile + r * kTileStride + c) * e.alpha;
        if (to.bias) v += load_some(to.bias + c, columns - c);
        if (to.row_bias) v += to.row_bias[r];
        if (to.residual) v += load_some(to.residual + r * e.residual_row + c, columns - c);
        store_some(to.y + r * to.y_row + c, last(v, ending), columns - c);
      }
    }
  }
};

// Whether sums are stored as they are: then tiles that fill whole vectors write them to y.
inline bool is_plain(const Epilogue& e) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return e.act == Activation::kNone && e.alpha == 1 && !e.bias && !e.row_bias && !e.residual && e.lo == -kInfinity &&
         e.hi == kInfinity;
}

// Whether sums are stored as a tile can end: a number for each row and two bounds.
inline bool ends_in_tile(const Epilogue& e) {
  return (e.act == Activation::kNone || e.act == Activation::kRelu) && e.alpha == 1 && !e.bias && !e.residual;
}
inline TileEnd tile_end(const Epilogue& e, const float* row_bias) {
  return {row_bias, e.act == Activation::kRelu && e.lo < 0 ? 0 : e.lo, e.hi};
}

inline void finish(const Epilogue& e, const float* tile, int64_t rows, int64_t columns, const Corner& to) {
  using Finish = void (*)(const Epilogue&, const float*, int64_t, int64_t, const Corner&);
  kByActivation<Finish, FinishRows>[static_cast<int>(e.act)](e, tile, rows, columns, to);
}
