// SPDX-License-Identifier: Apache-2.0
// Products against a plain f64 loop: every Isa, sizes around every border, poisoned tails, strides, one part and many.
#include "backends/cpu/gemm/gemm.h"

#include "guarded.h"

namespace rlx::cpu {
namespace {

double activate(Activation act, double x) {
  switch (act) {
    case Activation::kNone: return x;
    case Activation::kRelu: return x < 0 ? 0 : x;
    case Activation::kGelu: return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::kGeluTanh: return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kSilu: return x / (1 + std::exp(-x));
    case Activation::kSigmoid: return 1 / (1 + std::exp(-x));
    case Activation::kTanh: return std::tanh(x);
    case Activation::kHardSigmoid: return std::clamp(0.2 * x + 0.5, 0.0, 1.0);
    case Activation::kHardSwish: return x * std::clamp(x / 6 + 0.5, 0.0, 1.0);
    case Activation::kLeakyRelu: return x < 0 ? 0.25 * x : x;
  }
  return x;
}

// The sum's bound (class SUM) plus the activation's (class ACT).
double tolerance(int64_t k, double terms, double y) {
  return std::ldexp(1.0, -24) * (16 + 2 * std::sqrt(double(k))) * terms + 1e-6 * std::fmax(1, terms) +
         4e-6 * std::fabs(y);
}

struct Element {
  double sum = 0, size = 0;
};

struct Size {
  int64_t m, n, k;
};
const Size kSizes[] = {{0, 5, 3},     {3, 0, 3},     {2, 5, 0},     {1, 1, 1},       {1, 33, 7},    {2, 48, 65},
                       {3, 96, 513},  {4, 31, 17},   {5, 144, 20},  {14, 64, 100},   {15, 65, 31},  {29, 47, 64},
                       {128, 96, 40}, {131, 50, 9},  {7, 32, 1025}, {130, 33, 1030}, {9, 1, 700},   {5, 1, 9000},
                       {1, 300, 70},  {1, 700, 600}, {70, 600, 6},  {40, 2100, 4},   {300, 1500, 3}};

// What happens to a product before it is stored.
struct Ends {
  Activation act = Activation::kNone;
  bool bias = false, residual = false;
};

// Half of a row times a column.
Element half_product(const Size& s, const float* row, const float* column) {
  Element e;
  for (int64_t t = 0; t < s.k; ++t) {
    double term = 0.5 * row[t] * column[t * s.n];
    e.sum += term;
    e.size += std::fabs(term);
  }
  return e;
}

void check_product(Isa isa, const Size& s, const Ends& ends, std::mt19937& rng) {
  const GemmFns& fns = gemm_fns(isa);
  int64_t a_row = s.k + 3, y_row = s.n + 2;
  Guarded a = Guarded::random(s.m * a_row, rng), b = Guarded::random(s.k * s.n, rng, -1, 1, 3);
  Guarded bias_values = Guarded::random(s.n, rng), residuals = Guarded::random(s.m * s.n, rng, -1, 1, 5);
  Guarded packed(packed_size(s.k, s.n), 0), y(s.m * y_row, 2), again(s.m * y_row, 2);

  PackArgs pack;
  pack.pieces[0] = {b.data(), s.n, s.n, 1};
  pack.piece_count = 1;
  pack.k = s.k;
  pack.n = s.n;
  pack.packed = packed.data();
  run_whole(fns.pack, pack);
  ASSERT_TRUE(packed.guards_intact());

  ProductArgs args;
  args.a = a.data();
  args.a_row = a_row;
  args.packed = packed.data();
  args.y = y.data();
  args.y_row = y_row;
  args.m = s.m;
  args.n = s.n;
  args.k = s.k;
  Ending ending{ends.act, 0.25f};
  if (ends.bias) ending.lo = -0.75f, ending.hi = 2;
  args.epilogue = {
      ending, 0.5f, ends.bias ? bias_values.data() : nullptr, nullptr, ends.residual ? residuals.data() : nullptr, s.n};
  run_whole(fns.product.whole, args);
  args.y = again.data();
  run_backwards(fns.product.whole, args);
  ASSERT_TRUE(y.same_bits(again));
  ASSERT_TRUE(y.guards_intact());

  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      Element e = half_product(s, a.data() + i * a_row, b.data() + j);
      if (ends.bias) e.sum += bias_values[j], e.size += std::fabs(bias_values[j]);
      if (ends.residual) e.sum += residuals[i * s.n + j], e.size += std::fabs(residuals[i * s.n + j]);
      double want = activate(ends.act, e.sum);
      if (ends.bias) want = std::clamp(want, -0.75, 2.0);
      ASSERT_NEAR(y[i * y_row + j], want, tolerance(s.k, e.size, want)) << i << ' ' << j << " act " << int(ends.act);
    }
    for (int64_t j = s.n; j < y_row; ++j) ASSERT_EQ(std::memcmp(&y[i * y_row + j], &kPoison, 4), 0);
  }
}

// The columns of a transposed matrix have adjacent terms.
TEST(gemm, packing_of_a_transposed_matrix) {
  std::mt19937 rng(3);
  for (Isa isa : available_isas()) {
    for (auto [n, k] : {std::pair<int64_t, int64_t>{1, 1}, {7, 40}, {48, 33}, {50, 16}, {65, 100}}) {
      Guarded b = Guarded::random(k * n, rng), turned(k * n), packed(packed_size(k, n), 1), again(packed_size(k, n), 2);
      for (int64_t t = 0; t < k; ++t)
        for (int64_t c = 0; c < n; ++c) turned[c * k + t] = b[t * n + c];
      PackArgs args;
      args.piece_count = 1, args.k = k, args.n = n;
      args.pieces[0] = {b.data(), n, n, 1}, args.packed = packed.data();
      run_whole(gemm_fns(isa).pack, args);
      args.pieces[0] = {turned.data(), n, 1, k}, args.packed = again.data();
      run_whole(gemm_fns(isa).pack, args);
      ASSERT_TRUE(again.guards_intact());
      ASSERT_TRUE(packed.same_bits(again)) << n << " columns of " << k;
    }
  }
}

TEST(gemm, product_is_the_sum_at_every_size) {
  std::mt19937 rng(1);
  for (Isa isa : available_isas()) {
    for (const Size& s : kSizes) {
      SCOPED_TRACE(testing::Message() << isa_name(isa) << ' ' << s.m << 'x' << s.n << 'x' << s.k);
      ASSERT_NO_FATAL_FAILURE(check_product(isa, s, {}, rng));
      ASSERT_NO_FATAL_FAILURE(check_product(isa, s, {.act = Activation::kGelu, .bias = true, .residual = true}, rng));
    }
  }
}

TEST(gemm, every_activation_equals_its_formula) {
  std::mt19937 rng(2);
  for (Isa isa : available_isas()) {
    for (int act = 0; act <= static_cast<int>(Activation::kLeakyRelu); ++act) {
      ASSERT_NO_FATAL_FAILURE(
          check_product(isa, {9, 37, 70}, {.act = static_cast<Activation>(act), .bias = true}, rng));
    }
  }
}

TEST(gemm, residual_may_be_the_output) {
  std::mt19937 rng(3);
  const int64_t m = 20, n = 70, k = 600;
  Guarded a = Guarded::random(m * k, rng), packed(packed_size(k, n), 0), start = Guarded::random(m * n, rng);
  Guarded b = Guarded::random(k * n, rng);
  for (Isa isa : available_isas()) {
    PackArgs pack;
    pack.pieces[0] = {b.data(), n, n, 1};
    pack.piece_count = 1;
    pack.k = k;
    pack.n = n;
    pack.packed = packed.data();
    run_whole(gemm_fns(isa).pack, pack);
    Guarded apart(m * n), in_place = start;
    ProductArgs args;
    args.a = a.data();
    args.a_row = k;
    args.packed = packed.data();
    args.y = apart.data();
    args.y_row = n;
    args.m = m;
    args.n = n;
    args.k = k;
    args.epilogue.residual = start.data();
    args.epilogue.residual_row = n;
    run_whole(gemm_fns(isa).product.whole, args);
    args.y = in_place.data();
    args.epilogue.residual = in_place.data();
    run_whole(gemm_fns(isa).product.whole, args);
    EXPECT_TRUE(in_place.same_bits(apart));
  }
}

TEST(gemm, packs_pieces_side_by_side) {
  std::mt19937 rng(4);
  for (Isa isa : available_isas()) {
    const int64_t k = 11, widths[] = {20, 7, 50};
    const int64_t n = 77;
    Guarded row_major = Guarded::random(k * 20, rng), transposed = Guarded::random(7 * k, rng);
    Guarded strided = Guarded::random(k * 150, rng), packed(packed_size(k, n), 0);
    PackArgs pack;
    pack.pieces[0] = {row_major.data(), widths[0], widths[0], 1};
    pack.pieces[1] = {transposed.data(), widths[1], 1, k};
    pack.pieces[2] = {strided.data(), widths[2], 150, 3};
    pack.piece_count = 3;
    pack.k = k;
    pack.n = n;
    pack.packed = packed.data();
    run_backwards(gemm_fns(isa).pack, pack);
    ASSERT_TRUE(packed.guards_intact());
    // Strips of a tile's width: 8 columns of the baseline, 16 of AVX2, whole panels of AVX-512.
    int64_t width = isa == Isa::kBaseline ? 8 : isa == Isa::kAvx2 ? 16 : panel_width(n);
    for (int64_t c = 0; c < panel_count(n) * panel_width(n); ++c) {
      for (int64_t t = 0; t < k; ++t) {
        float want = c < 20   ? row_major[t * 20 + c]
                     : c < 27 ? transposed[(c - 20) * k + t]
                     : c < 77 ? strided[t * 150 + (c - 27) * 3]
                              : 0;
        ASSERT_EQ(packed[(c / width * k + t) * width + c % width], want);
      }
    }
  }
}

struct Layout {
  bool a_transposed, b_transposed, broadcast_a;
};

void check_matmul(Isa isa, const Size& s, const Layout& layout, std::mt19937& rng) {
  const Loop<MatmulArgs>& loop = gemm_fns(isa).matmul.whole;
  const int64_t outer = 2, inner = s.m * s.n * s.k > 100000 ? 1 : 3;
  Guarded a = Guarded::random((layout.broadcast_a ? inner : outer * inner) * s.m * s.k, rng);
  Guarded b = Guarded::random(outer * s.k * s.n, rng, -1, 1, 3);  // broadcast over `inner`
  Guarded y(outer * inner * s.m * s.n), again(outer * inner * s.m * s.n);
  MatmulArgs args;
  args.a = a.data();
  args.b = b.data();
  args.y = y.data();
  args.m = s.m;
  args.n = s.n;
  args.k = s.k;
  args.a_row = layout.a_transposed ? 1 : s.k;
  args.a_col = layout.a_transposed ? s.m : 1;
  args.b_row = layout.b_transposed ? 1 : s.n;
  args.b_col = layout.b_transposed ? s.k : 1;
  args.y_row = s.n;
  args.batch_rank = 2;
  args.batch[0] = outer;
  args.batch[1] = inner;
  args.a_batch[0] = layout.broadcast_a ? 0 : inner * s.m * s.k;
  args.a_batch[1] = s.m * s.k;
  args.b_batch[0] = s.k * s.n;
  args.y_batch[0] = inner * s.m * s.n;
  args.y_batch[1] = s.m * s.n;
  args.epilogue.alpha = 2;
  run_whole(loop, args);
  args.y = again.data();
  run_backwards(loop, args);
  ASSERT_TRUE(y.same_bits(again));
  ASSERT_TRUE(y.guards_intact());
  for (int64_t index = 0; index < outer * inner * s.m * s.n; ++index) {
    int64_t j = index % s.n, i = index / s.n % s.m, in = index / s.n / s.m % inner, out = index / s.n / s.m / inner;
    double sum = 0, size = 0;
    for (int64_t t = 0; t < s.k; ++t) {
      double term = 2.0 * a[out * args.a_batch[0] + in * args.a_batch[1] + i * args.a_row + t * args.a_col] *
                    b[out * args.b_batch[0] + t * args.b_row + j * args.b_col];
      sum += term;
      size += std::fabs(term);
    }
    ASSERT_NEAR(y[index], sum, tolerance(s.k, size, sum)) << i << ' ' << j;
  }
}

TEST(gemm, matmul_of_any_layout) {
  std::mt19937 rng(5);
  for (Isa isa : available_isas()) {
    for (const Size& s : kSizes) {
      for (const Layout& layout :
           {Layout{false, false, true}, {false, true, false}, {true, false, false}, {true, true, true}}) {
        SCOPED_TRACE(testing::Message() << isa_name(isa) << ' ' << s.m << 'x' << s.n << 'x' << s.k << " transposed "
                                        << layout.a_transposed << layout.b_transposed);
        ASSERT_NO_FATAL_FAILURE(check_matmul(isa, s, layout, rng));
      }
    }
  }
}

template <class Args>
void check_cut(const ProductLoops<Args>& loops, Args args, const Size& s) {
  Guarded whole(s.m * s.n, 2), joined(s.m * s.n, 2), again(s.m * s.n, 2);
  args.m = s.m, args.n = s.n, args.k = s.k, args.y_row = s.n;
  args.y = whole.data();
  run_whole(loops.whole, args);
  Pieces pieces{3, (s.k + 2) / 3};
  pieces.count = (s.k + pieces.size - 1) / pieces.size;
  Guarded partial(pieces.count * s.m * s.n, 2);
  for (Guarded* y : {&joined, &again}) {
    args.y = y->data();
    CutProduct<Args> cut{args, pieces, partial.data()};
    y == &joined ? run_whole(loops.pieces, cut) : run_backwards(loops.pieces, cut);
    y == &joined ? run_whole(loops.join, cut) : run_backwards(loops.join, cut);
    ASSERT_TRUE(y->guards_intact() && partial.guards_intact());
  }
  ASSERT_TRUE(joined.same_bits(again));
  for (int64_t i = 0; i < s.m * s.n; ++i)
    ASSERT_NEAR(joined[i], whole[i], 2 * tolerance(s.k, static_cast<double>(s.k), whole[i])) << i;
}

TEST(gemm, a_product_cut_over_k_is_the_same_sum) {
  std::mt19937 rng(8);
  for (Isa isa : available_isas()) {
    for (const Size& s : kSizes) {
      if (s.k < 3) continue;
      SCOPED_TRACE(testing::Message() << isa_name(isa) << ' ' << s.m << 'x' << s.n << 'x' << s.k);
      Guarded a = Guarded::random(s.m * s.k, rng), b = Guarded::random(s.k * s.n, rng, -1, 1, 3);
      Guarded bias = Guarded::random(s.n, rng), packed = Guarded::random(packed_size(s.k, s.n), rng);
      ProductArgs product;
      product.a = a.data(), product.a_row = s.k, product.packed = packed.data();
      product.epilogue.bias = bias.data(), product.epilogue.act = Activation::kGelu;
      ASSERT_NO_FATAL_FAILURE(check_cut(gemm_fns(isa).product, product, s));
      MatmulArgs matmul;
      matmul.a = a.data(), matmul.b = b.data();
      matmul.a_row = s.k, matmul.b_row = s.n;
      ASSERT_NO_FATAL_FAILURE(check_cut(gemm_fns(isa).matmul, matmul, s));
      matmul.a_row = 1, matmul.a_col = s.m, matmul.b_row = 1, matmul.b_col = s.k;
      ASSERT_NO_FATAL_FAILURE(check_cut(gemm_fns(isa).matmul, matmul, s));
    }
  }
}

TEST(gemm, nan_reaches_its_row_and_column_only) {
  std::mt19937 rng(6);
  const int64_t m = 5, n = 40, k = 30;
  for (Isa isa : available_isas()) {
    Guarded a = Guarded::random(m * k, rng), b = Guarded::random(k * n, rng), y(m * n);
    a[2 * k + 7] = NAN;
    b[3 * n + 39] = NAN;
    MatmulArgs args;
    args.a = a.data();
    args.b = b.data();
    args.y = y.data();
    args.m = m, args.n = n, args.k = k;
    args.a_row = k, args.b_row = n, args.y_row = n;
    args.epilogue.act = Activation::kRelu;
    run_whole(gemm_fns(isa).matmul.whole, args);
    for (int64_t i = 0; i < m * n; ++i) EXPECT_EQ(std::isnan(y[i]), i / n == 2 || i % n == 39) << i;
  }
}

}  // namespace
}  // namespace rlx::cpu
