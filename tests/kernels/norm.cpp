// SPDX-License-Identifier: Apache-2.0
// Softmax and norms against f64 loops, in class NRM; statistics too.
#include "backends/cpu/kernels/norm.h"

#include "guarded.h"

namespace rlx::cpu {
namespace {

const int64_t kLengths[] = {1, 2, 3, 4, 15, 16, 17, 31, 64, 65, 384, 1000, 4099, 20001};

void expect_norm_class(const float* got, const std::vector<double>& want) {
  double largest = 0;
  for (double w : want) largest = std::fmax(largest, std::fabs(w));
  for (size_t i = 0; i < want.size(); ++i) {
    if (same_special(got[i], want[i])) continue;
    ASSERT_NEAR(got[i], want[i], 2e-6 * (1 + largest) + 1e-5 * std::fabs(want[i])) << "element " << i;
  }
}

std::vector<double> softmax(const float* x, int64_t n, bool is_log) {
  double m = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; ++i) m = std::isnan(x[i]) || x[i] > m ? x[i] : m;
  std::vector<double> y(n);
  for (int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - m);
  for (int64_t i = 0; i < n; ++i)
    y[i] = is_log ? x[i] - static_cast<float>(m) - std::log(sum) : std::exp(x[i] - m) / sum;
  return y;
}

void check_softmax(Guarded& x, int64_t rows, int64_t n, int64_t stride, bool is_log) {
  for (Isa isa : available_isas()) {
    SCOPED_TRACE(testing::Message() << isa_name(isa) << ' ' << rows << " rows of " << n);
    const Loop<SoftmaxArgs>& loop = norm_fns(isa).softmax;
    Guarded y(rows * n, 3), again = x;
    SoftmaxArgs args{x.data(), y.data(), rows, n, stride, n, is_log};
    run_whole(loop, args);
    ASSERT_TRUE(y.guards_intact());
    args.x = args.y = again.data();  // in place, part by part
    args.y_row = stride;
    run_backwards(loop, args);
    ASSERT_TRUE(again.guards_intact());
    for (int64_t r = 0; r < rows; ++r) {
      ASSERT_NO_FATAL_FAILURE(expect_norm_class(&y[r * n], softmax(&x[r * stride], n, is_log)));
      ASSERT_EQ(std::memcmp(&y[r * n], &again[r * stride], n * 4), 0);
    }
  }
}

TEST(rows, softmax_at_every_length) {
  std::mt19937 rng(1);
  for (int64_t n : kLengths) {
    int64_t rows = n < 100 ? 700 : 5;
    Guarded x = Guarded::random(rows * (n + 3), rng, -20, 20);
    for (bool is_log : {false, true}) ASSERT_NO_FATAL_FAILURE(check_softmax(x, rows, n, n + 3, is_log));
  }
  Guarded none(0);
  check_softmax(none, 0, 7, 7, false);
  check_softmax(none, 3, 0, 0, true);
}

TEST(rows, softmax_of_special_values) {
  const float inf = INFINITY;
  const float rows[][5] = {{-inf, 0, -inf, 1, 2}, {-inf, -inf, -inf, -inf, -inf}, {inf, 0, 1, 2, 3},
                           {0, 1, NAN, 2, 3},     {1000, 1000, -inf, 0, 0},       {NAN, -inf, -inf, 0, 0},
                           {0, 0, 0, 0, inf},     {3e38f, -3e38f, 0, 0, 0}};
  for (const auto& row : rows) {
    for (int64_t shift : {0, 17, 40}) {  // the special ones in a vector's tail, and beyond the first vectors
      Guarded x(shift + 5);
      for (int64_t i = 0; i < shift + 5; ++i) x[i] = i < shift ? row[i % 2] : row[i - shift];
      for (bool is_log : {false, true}) ASSERT_NO_FATAL_FAILURE(check_softmax(x, 1, shift + 5, shift + 5, is_log));
    }
  }
}

struct NormCase {
  bool centre, residual, bias, gamma, beta, sum;
};

struct NormWant {
  std::vector<double> y, sum;
  double mean, inv;
};

NormWant norm(const NormArgs& p, int64_t r, bool centre) {
  NormWant w{std::vector<double>(p.n), std::vector<double>(p.n), 0, 0};
  double squares = 0, count = static_cast<double>(p.n);
  for (int64_t i = 0; i < p.n; ++i) {
    w.sum[i] = p.x[r * p.x_row + i];
    if (p.residual) w.sum[i] += p.residual[r * p.residual_row + i];
    if (p.bias) w.sum[i] += p.bias[i];
    if (centre) w.mean += w.sum[i] / count;
  }
  for (double s : w.sum) squares += (s - w.mean) * (s - w.mean);
  w.inv = 1 / std::sqrt(squares / count + p.eps);
  for (int64_t i = 0; i < p.n; ++i) {
    w.y[i] = (w.sum[i] - w.mean) * w.inv * (p.gamma ? p.gamma[i] : 1) + (p.beta ? p.beta[i] : 0);
  }
  return w;
}

// By its parts, from the last to the first; rows that are cut in phases.
void run_norm(Isa isa, bool centre, NormArgs args) {
  const NormFns& fns = norm_fns(isa);
  if (norm_pieces(args.rows, args.n).count == 1) return run_backwards(centre ? fns.layer_norm : fns.rms_norm, args);
  NormPiece found[kManyParts];
  args.found = found;
  run_backwards(centre ? fns.layer_norm_sums : fns.rms_norm_sums, args);
  if (centre) run_backwards(fns.layer_norm_squares, args);
  run_backwards(centre ? fns.layer_norm_write : fns.rms_norm_write, args);
}

void check_norm(const NormCase& c, int64_t rows, int64_t n, float offset, std::mt19937& rng) {
  Guarded x = Guarded::random(rows * n, rng, offset - 1, offset + 1), residual = Guarded::random(rows * (n + 1), rng);
  Guarded bias = Guarded::random(n, rng, -1, 1, 2), gamma = Guarded::random(n, rng, -1, 1, 5);
  Guarded beta = Guarded::random(n, rng, -1, 1, 7);
  for (Isa isa : available_isas()) {
    SCOPED_TRACE(testing::Message() << isa_name(isa) << ' ' << rows << " rows of " << n << " centre " << c.centre);
    Guarded y(rows * n, 3), sum(rows * n), mean(rows), inv(rows), in_place = x;
    NormArgs args;
    args.x = x.data();
    args.residual = c.residual ? residual.data() : nullptr;
    args.bias = c.bias ? bias.data() : nullptr;
    args.gamma = c.gamma ? gamma.data() : nullptr;
    args.beta = c.beta ? beta.data() : nullptr;
    args.y = y.data();
    args.sum = c.sum ? sum.data() : nullptr;
    args.mean = mean.data();
    args.inv = inv.data();
    args.rows = rows, args.n = n;
    args.x_row = args.y_row = args.sum_row = n, args.residual_row = n + 1;
    run_norm(isa, c.centre, args);
    ASSERT_TRUE(y.guards_intact() && sum.guards_intact() && mean.guards_intact() && inv.guards_intact());
    for (int64_t r = 0; r < rows; ++r) {
      NormWant want = norm(args, r, c.centre);
      ASSERT_NO_FATAL_FAILURE(expect_norm_class(&y[r * n], want.y));
      if (!c.sum) want.sum.clear();
      ASSERT_NO_FATAL_FAILURE(expect_norm_class(&sum[r * n], want.sum));
      ASSERT_NEAR(mean[r], want.mean, 1e-6 * std::fabs(want.mean) + 1e-6);
      ASSERT_NEAR(inv[r], want.inv, 1e-5 * want.inv);
    }
    args.x = args.y = in_place.data();
    run_norm(isa, c.centre, args);
    ASSERT_TRUE(in_place.guards_intact());
    ASSERT_TRUE(in_place.same_bits(y));
  }
}

TEST(rows, norms_at_every_length) {
  std::mt19937 rng(2);
  const NormCase cases[] = {{true, false, false, true, true, false},  {true, true, true, true, true, true},
                            {true, true, false, false, false, false}, {false, false, false, true, false, false},
                            {false, true, true, true, true, true},    {false, false, true, false, true, false}};
  for (const NormCase& c : cases) {
    for (int64_t n : kLengths) ASSERT_NO_FATAL_FAILURE(check_norm(c, n < 100 ? 300 : 5, n, 0, rng));
    ASSERT_NO_FATAL_FAILURE(check_norm(c, 0, 9, 0, rng));
  }
}

// Rows of channels, each with one gamma and beta, against the same norm with these written out.
TEST(rows, norms_of_channels) {
  std::mt19937 rng(9);
  struct Shape {
    int64_t items, groups, channels, run;
  };
  for (const Shape& s :
       {Shape{3, 4, 12, 1}, {2, 5, 5, 7}, {40, 3, 6, 9}, {2, 2, 8, 100}, {1, 2, 6, 5000}, {5, 1, 4, 17}})
    for (Isa isa : available_isas()) {
      SCOPED_TRACE(testing::Message() << isa_name(isa) << " runs of " << s.run);
      int64_t rows = s.items * s.groups, n = s.channels / s.groups * s.run;
      Guarded x = Guarded::random(rows * n, rng, -2, 3), gamma = Guarded::random(s.channels, rng);
      Guarded beta = Guarded::random(s.channels, rng), plain(rows * n), y(rows * n, 3);
      NormArgs args{.x = x.data(), .y = plain.data(), .rows = rows, .n = n, .x_row = n, .y_row = n};
      run_norm(isa, true, args);
      args.y = y.data(), args.run = s.run, args.channels = s.channels;
      for (int given = 0; given < 4; given++) {
        args.gamma = given & 1 ? gamma.data() : nullptr, args.beta = given & 2 ? beta.data() : nullptr;
        run_norm(isa, true, args);
        ASSERT_TRUE(y.guards_intact());
        for (int64_t i = 0; i < rows * n; i++) {
          int64_t channel = i / s.run % s.channels;
          float want = plain[i] * (given & 1 ? gamma[channel] : 1) + (given & 2 ? beta[channel] : 0);
          ASSERT_NEAR(y[i], want, 1e-5) << i;
        }
      }
    }
}

// Rows that lie side by side in lanes may round otherwise than single ones.
TEST(rows, norms_do_not_depend_on_which_parts_run_together) {
  std::mt19937 rng(8);
  for (int64_t n : {1, 3, 7, 100, 127, 128, 129}) {
    int64_t rows = 40000 / n + 7;
    Guarded x = Guarded::random(rows * n, rng, -3, 3);
    for (Isa isa : available_isas())
      for (const Loop<NormArgs>* loop : {&norm_fns(isa).layer_norm, &norm_fns(isa).rms_norm}) {
        SCOPED_TRACE(testing::Message() << isa_name(isa) << ' ' << rows << " rows of " << n);
        Guarded y(rows * n), again(rows * n);
        NormArgs args{.x = x.data(), .y = y.data(), .rows = rows, .n = n, .x_row = n, .y_row = n};
        run_whole(*loop, args);
        args.y = again.data();
        run_backwards(*loop, args);
        EXPECT_TRUE(y.same_bits(again));
      }
  }
}

TEST(rows, norms_of_few_long_rows_are_cut) {
  std::mt19937 rng(4);
  for (int64_t n : {16384, 40001})
    for (bool centre : {true, false}) {
      ASSERT_NO_FATAL_FAILURE(check_norm({centre, true, true, true, true, true}, 2, n, 0, rng));
      ASSERT_NO_FATAL_FAILURE(check_norm({centre, false, false, true, false, false}, 3, n, centre ? 100 : 0, rng));
    }
}

// Far from zero f32 cannot hold the mean; what it leaves must be taken off as well.
TEST(rows, layer_norm_far_from_zero) {
  std::mt19937 rng(3);
  for (float offset : {100.0f, -1e4f}) {
    ASSERT_NO_FATAL_FAILURE(check_norm({true, false, false, true, true, false}, 6, 777, offset, rng));
    ASSERT_NO_FATAL_FAILURE(check_norm({true, false, false, true, true, false}, 40, 96, offset, rng));
  }
}

// One element that is not finite; the rows around it stay as they are.
TEST(rows, layer_norm_of_special_values) {
  constexpr int64_t kRows = 40;
  for (int64_t n : {5, 96, 300})
    for (float odd : {INFINITY, -INFINITY, NAN})
      for (Isa isa : available_isas()) {
        SCOPED_TRACE(testing::Message() << isa_name(isa) << " rows of " << n << ", " << odd);
        std::mt19937 rng(6);
        Guarded x = Guarded::random(kRows * n, rng), y(kRows * n), mean(kRows), inv(kRows);
        NormArgs args{.x = x.data(), .y = y.data(), .mean = mean.data(), .inv = inv.data(), .rows = kRows, .n = n};
        args.x_row = args.y_row = n;
        x[7 * n + 2] = odd;
        run_norm(isa, true, args);
        for (int64_t r = 0; r < kRows; ++r) {
          NormWant want = norm(args, r, true);
          ASSERT_NO_FATAL_FAILURE(expect_norm_class(&y[r * n], want.y));
          ASSERT_TRUE(same_special(mean[r], want.mean) || std::fabs(mean[r] - want.mean) < 1e-5) << mean[r];
          ASSERT_EQ(std::isnan(inv[r]), r == 7);
        }
      }
}

TEST(rows, nan_stays_in_its_row) {
  for (Isa isa : available_isas()) {
    Guarded x(3 * 20), y(3 * 20);
    for (int64_t i = 0; i < 60; ++i) x[i] = static_cast<float>(i % 7);
    x[25] = NAN;
    NormArgs args;
    args.x = x.data(), args.y = y.data();
    args.rows = 3, args.n = 20, args.x_row = args.y_row = 20;
    for (const Loop<NormArgs>* loop : {&norm_fns(isa).layer_norm, &norm_fns(isa).rms_norm}) {
      run_whole(*loop, args);
      for (int64_t i = 0; i < 60; ++i) EXPECT_EQ(std::isnan(y[i]), i / 20 == 1);
    }
  }
}

}  // namespace
}  // namespace rlx::cpu
