// SPDX-License-Identifier: Apache-2.0
// Attention against the definition (semantics.md A1-A5) written as plain f64 loops.
#include "backends/cpu/kernels/attention.h"

#include <optional>

#include "guarded.h"

namespace rlx::cpu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

float at(const float* p, const HeadStrides& s, int64_t b, int64_t i, int64_t h, int64_t e) {
  return p[b * s.batch + i * s.seq + h * s.head + e];
}
int64_t score_offset(const ScoreStrides& s, int64_t b, int64_t h, int64_t i, int64_t j) {
  return b * s.batch + h * s.head + i * s.query + j * s.key;
}

struct Row {
  std::vector<double> y;
  double lse;
};

int64_t valid_keys(const AttentionArgs& p, int64_t b) {
  if (!p.kv_len) return p.k_len;
  int64_t n = p.kv_len_is_i64 ? static_cast<const int64_t*>(p.kv_len)[b] : static_cast<const int32_t*>(p.kv_len)[b];
  return std::clamp<int64_t>(n, 0, p.k_len);
}

// Nothing where the key is not allowed.
std::optional<double> score(const AttentionArgs& p, int64_t b, int64_t h, int64_t i, int64_t j) {
  int64_t g = h / (p.q_heads / p.kv_heads), n = valid_keys(p, b), at_key = i + (p.upper_left ? 0 : n - p.q_len);
  double s = 0;
  for (int64_t e = 0; e < p.d; ++e) s += double(at(p.q, p.q_strides, b, i, h, e)) * at(p.k, p.k_strides, b, j, g, e);
  s *= p.scale;
  if (p.softcap > 0) s = p.softcap * std::tanh(s / p.softcap);
  if (p.alibi) s -= p.alibi[h] * std::fabs(double(at_key - j));
  if (p.bias)
    s = static_cast<float>(s) + p.bias[score_offset(p.bias_strides, b, h, i, j)];  // f32: a fill must swallow s
  if (p.bias) s = static_cast<float>(s);
  bool allowed = j < n && !(p.causal && j > at_key) && !(p.window_left >= 0 && j < at_key - p.window_left) &&
                 !(p.window_right >= 0 && j > at_key + p.window_right) &&
                 !(p.mask && p.mask[score_offset(p.mask_strides, b, h, i, j)] == 0);
  return allowed ? std::optional(s) : std::nullopt;
}

Row attend(const AttentionArgs& p, int64_t b, int64_t h, int64_t i) {
  int64_t g = h / (p.q_heads / p.kv_heads), n = valid_keys(p, b);
  std::vector<std::optional<double>> s(n);
  double m = p.sinks ? p.sinks[h] : -kInfinity, l = 0;
  bool any = false;
  for (int64_t j = 0; j < n; ++j) {
    s[j] = score(p, b, h, i, j);
    if (!s[j]) continue;
    any = any || *s[j] != -kInfinity;
    m = *s[j] > m || std::isnan(*s[j]) ? *s[j] : m;
  }
  double base = m == -kInfinity ? 0 : m;
  if (p.sinks) l += std::exp(p.sinks[h] - base);
  Row row{std::vector<double>(p.dv, 0.0), 0};
  for (int64_t j = 0; j < n; ++j) {
    if (!s[j]) continue;
    double w = std::exp(*s[j] - base);
    l += w;
    for (int64_t e = 0; e < p.dv; ++e) row.y[e] += w * at(p.v, p.v_strides, b, j, g, e);
  }
  for (double& y : row.y) y /= l == 0 ? 1 : l;
  row.lse = m + std::log(l);
  if (!any && !p.sinks && p.k_len > 0 && p.empty_row == EmptyRow::kNan) row.y.assign(p.dv, NAN);
  if (!any && !p.sinks && n > 0 && p.empty_row == EmptyRow::kMean) {
    for (int64_t e = 0; e < p.dv; ++e) {
      for (int64_t j = 0; j < n; ++j) row.y[e] += at(p.v, p.v_strides, b, j, g, e) / double(n);
    }
  }
  return row;
}

// Operands with views of their own, and the result of every Isa against the loops above.
struct Case {
  int64_t batch = 1, q_heads = 1, kv_heads = 1, q_len = 1, k_len = 1, d = 4, dv = 4;
  bool fused_qkv = false;  // q, k, v are slices of one [batch, seq, width]
  std::mt19937 rng{7};
  Guarded q{0}, k{0}, v{0}, y{0}, again{0}, lse{0};
  AttentionArgs args;

  void make() {
    AttentionArgs& a = args;
    a.batch = batch, a.q_heads = q_heads, a.kv_heads = kv_heads;
    a.q_len = q_len, a.k_len = k_len, a.d = d, a.dv = dv;
    a.scale = static_cast<float>(1 / std::sqrt(double(d)));
    if (fused_qkv) {
      int64_t width = q_heads * d + kv_heads * (d + dv);
      q = Guarded::random(batch * q_len * width, rng);
      a.q = q.data(), a.k = a.q + q_heads * d, a.v = a.k + kv_heads * d;
      a.q_strides = a.k_strides = {q_len * width, width, d};
      a.v_strides = {q_len * width, width, dv};
    } else {
      q = Guarded::random(batch * q_heads * q_len * d, rng);
      k = Guarded::random(batch * kv_heads * k_len * d, rng, -1, 1, 3);
      v = Guarded::random(batch * kv_heads * k_len * dv, rng, -1, 1, 2);
      a.q = q.data(), a.k = k.data(), a.v = v.data();
      a.q_strides = {q_heads * q_len * d, d, q_len * d};
      a.k_strides = {kv_heads * k_len * d, d, k_len * d};
      a.v_strides = {kv_heads * k_len * dv, dv, k_len * dv};
    }
    a.y_strides = {q_len * q_heads * dv, q_heads * dv, dv};
    y = again = Guarded(batch * q_len * q_heads * dv);
    lse = Guarded(batch * q_heads * q_len);
    a.lse = lse.data();
  }

  void check() {
    for (Isa isa : available_isas()) {
      SCOPED_TRACE(testing::Message() << isa_name(isa) << " q " << q_len << " k " << k_len << " d " << d << " dv "
                                      << dv);
      const Loop<AttentionArgs>& loop = attention_fns(isa).attention;
      args.y = again.data();
      run_backwards(loop, args);
      args.y = y.data();
      run_whole(loop, args);
      ASSERT_TRUE(y.guards_intact() && lse.guards_intact());
      compare();
      if (HasFatalFailure()) return;
      for (int64_t i = 0; i < y.size(); ++i) {
        ASSERT_TRUE(y[i] == again[i] || (std::isnan(y[i]) && std::isnan(again[i])));
      }
    }
  }

  static bool HasFatalFailure() { return testing::Test::HasFatalFailure(); }

  void compare() {
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t h = 0; h < q_heads; ++h) {
        for (int64_t i = 0; i < q_len; ++i) {
          Row want = attend(args, b, h, i);
          for (int64_t e = 0; e < dv; ++e) {
            float got = at(args.y, args.y_strides, b, i, h, e);
            if (same_special(got, want.y[e])) continue;
            ASSERT_NEAR(got, want.y[e], 1e-5 + 1e-4 * std::fabs(want.y[e])) << b << ' ' << h << ' ' << i << ' ' << e;
          }
          float got = lse[(b * q_heads + h) * q_len + i];
          if (same_special(got, want.lse)) continue;
          ASSERT_NEAR(got, want.lse, 1e-5 + 1e-4 * std::fabs(want.lse));
        }
      }
    }
  }
};

TEST(attention, plain_at_every_size) {
  struct Size {
    int64_t q, k, d, dv;
  };
  for (const Size& s : {Size{0, 3, 4, 4},
                        {3, 0, 4, 4},
                        {1, 1, 1, 1},
                        {5, 7, 3, 9},
                        {17, 40, 32, 32},
                        {33, 257, 64, 20},
                        {40, 700, 16, 48},
                        {2, 9, 300, 270},
                        {3, 4, 0, 2},
                        {3, 4, 2, 0},
                        {1, 700, 64, 64},
                        {1, 33, 300, 270},
                        {1, 20, 7, 90},
                        {1, 3, 0, 2}}) {
    Case c;
    c.q_len = s.q, c.k_len = s.k, c.d = s.d, c.dv = s.dv;
    c.batch = 2, c.q_heads = 4, c.kv_heads = 2;
    c.make();
    ASSERT_NO_FATAL_FAILURE(c.check());
  }
}

TEST(attention, slices_of_one_product) {
  Case c;
  c.batch = 2, c.q_heads = 3, c.kv_heads = 3, c.q_len = c.k_len = 45, c.d = c.dv = 32;
  c.fused_qkv = true;
  c.make();
  c.check();
}

// As it is, then with queries and keys exchanged.
void check_both_ways(Case& c) {
  c.make();
  ASSERT_NO_FATAL_FAILURE(c.check());
  std::swap(c.q_len, c.k_len);
  for (EmptyRow empty : {EmptyRow::kZero, EmptyRow::kMean, EmptyRow::kNan}) {
    c.make();
    c.args.empty_row = empty;
    ASSERT_NO_FATAL_FAILURE(c.check());
  }
}

// Where there are more queries than keys, the first see none.
TEST(attention, causal_and_windows_in_both_alignments) {
  for (int bits = 0; bits < 4; ++bits) {
    for (int64_t left : {-1, 0, 5}) {
      for (auto [right, queries] : {std::pair<int64_t, int64_t>{-1, 37}, {0, 37}, {3, 37}, {0, 1}, {3, 1}}) {
        Case c;
        c.q_len = queries, c.k_len = 300, c.q_heads = 2, c.kv_heads = 1;
        c.args.causal = bits & 1, c.args.upper_left = bits & 2;
        c.args.window_left = left, c.args.window_right = right;
        ASSERT_NO_FATAL_FAILURE(check_both_ways(c));
      }
    }
  }
}

TEST(attention, biases_and_masks_broadcast_over_any_axis) {
  for (int broadcast = 0; broadcast < 32; ++broadcast) {
    Case c;
    c.batch = 2, c.q_heads = 2, c.kv_heads = 2, c.q_len = broadcast & 16 ? 1 : 19, c.k_len = 23, c.d = 8, c.dv = 5;
    c.make();
    int64_t sizes[4] = {broadcast & 1 ? 1 : 2, broadcast & 2 ? 1 : 2, broadcast & 4 ? 1 : c.q_len,
                        broadcast & 8 ? 1 : 23};
    int64_t strides[4], total = 1;
    for (int axis = 3; axis >= 0; --axis) {
      strides[axis] = sizes[axis] == 1 ? 0 : total;
      total *= sizes[axis];
    }
    Guarded bias = Guarded::random(total, c.rng, -3, 3);
    std::vector<uint8_t> mask(total);
    for (uint8_t& m : mask) m = c.rng() % 3 ? 255 : 0;
    c.args.bias = bias.data();
    c.args.bias_strides = {strides[0], strides[1], strides[2], strides[3]};
    ASSERT_NO_FATAL_FAILURE(c.check());
    c.args.mask = mask.data();
    c.args.mask_strides = c.args.bias_strides;
    c.args.empty_row = EmptyRow::kMean;
    ASSERT_NO_FATAL_FAILURE(c.check());
  }
}

TEST(attention, valid_lengths_softcap_alibi_and_sinks) {
  const int32_t short_lengths[] = {-2, 5, 1000};
  const int64_t long_lengths[] = {0, 299, 17};
  const float slopes[] = {0.5f, 0.25f}, sinks[] = {0.3f, -std::numeric_limits<float>::infinity()};
  for (int64_t queries : {20, 1}) {
    Case c;
    c.batch = 3, c.q_heads = 2, c.kv_heads = 1, c.q_len = queries, c.k_len = 300, c.d = 6, c.dv = 7;
    c.make();
    for (int64_t j = 17; j < 300; ++j) c.v[(2 * 300 + j) * 7] = NAN;  // the unused part of a cache
    c.args.kv_len = long_lengths, c.args.kv_len_is_i64 = true;
    ASSERT_NO_FATAL_FAILURE(c.check());
    c.make();
    c.args.kv_len = short_lengths, c.args.kv_len_is_i64 = false, c.args.causal = true;
    ASSERT_NO_FATAL_FAILURE(c.check());
    c.args.softcap = 0.5f, c.args.alibi = slopes;
    ASSERT_NO_FATAL_FAILURE(c.check());
    c.args.sinks = sinks, c.args.empty_row = EmptyRow::kNan;
    ASSERT_NO_FATAL_FAILURE(c.check());
  }
}

// -3.4e38 on every key swallows the scores: all weights are equal, and y is the mean, by plain arithmetic.
TEST(attention, a_finite_fill_on_every_key_gives_the_mean) {
  Case c;
  c.q_len = 18, c.k_len = 280, c.d = 8, c.dv = 8;
  c.make();
  std::vector<float> fill(280, -3.4028234663852886e38f);
  c.args.bias = fill.data(), c.args.bias_strides = {0, 0, 0, 1};
  c.check();
  double mean = 0;
  for (int64_t j = 0; j < 280; ++j) mean += c.v[j * 8] / 280.0;
  EXPECT_NEAR(c.y[0], mean, 1e-5);
}

TEST(attention, infinite_fill_makes_an_empty_row) {
  Case c;
  c.q_len = 3, c.k_len = 10;
  c.make();
  std::vector<float> fill(10, -std::numeric_limits<float>::infinity());
  c.args.bias = fill.data(), c.args.bias_strides = {0, 0, 0, 1};
  for (EmptyRow empty : {EmptyRow::kZero, EmptyRow::kMean, EmptyRow::kNan}) {
    c.args.empty_row = empty;
    ASSERT_NO_FATAL_FAILURE(c.check());
  }
}

// 0 * inf and 0 * NaN are NaN, except for a key that is not allowed.
TEST(attention, keys_of_no_weight_count_where_they_are_allowed) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  for (auto [bad, queries] : {std::pair(kInfinite, 3), {-kInfinite, 3}, {NAN, 3}, {kInfinite, 1}, {NAN, 1}}) {
    Case c;
    c.q_len = queries, c.k_len = 10;
    c.make();
    c.v[7 * 4 + 1] = bad;
    std::vector<float> fill(10);
    fill[7] = -kInfinite;
    c.args.bias = fill.data(), c.args.bias_strides = {0, 0, 0, 1};
    ASSERT_NO_FATAL_FAILURE(c.check());
    EXPECT_TRUE(std::isnan(c.y[1]) && !std::isnan(c.y[0]));
    c.args.window_left = 9;  // hides nothing
    ASSERT_NO_FATAL_FAILURE(c.check());
    EXPECT_TRUE(std::isnan(c.y[1]));
    std::vector<uint8_t> mask(10, 1);
    mask[7] = 0;
    c.args.mask = mask.data(), c.args.mask_strides = {0, 0, 0, 1};
    ASSERT_NO_FATAL_FAILURE(c.check());
    EXPECT_FALSE(std::isnan(c.y[1]));
  }
}

TEST(attention, nan_reaches_the_rows_that_use_it) {
  for (int which = 0; which < 3; ++which) {
    for (bool causal : {false, true}) {
      Case c;
      c.batch = 1, c.q_heads = 2, c.kv_heads = 1, c.q_len = 21, c.k_len = 21;
      c.make();
      Guarded& target = which == 0 ? c.q : which == 1 ? c.k : c.v;
      target[11 * 4 + 1] = NAN;
      c.args.causal = causal;
      ASSERT_NO_FATAL_FAILURE(c.check());
      EXPECT_EQ(std::isnan(c.y[5 * 2 * 4 + 1]), !causal && which != 0);  // row 5 comes before key 11
    }
  }
}

// Computed in f64 from the definition.
TEST(attention, golden_values) {
  float q[16], k[12], v[12], y[16], lse[8];
  for (int i = 0; i < 16; ++i) q[i] = -0.7f + 0.1f * i;
  for (int i = 0; i < 12; ++i) k[i] = -0.8f + 0.15f * i, v[i] = -1 + 0.2f * i;
  const float alibi[] = {.5f, .25f, .125f, .0625f}, sinks[] = {0, .5f, -1, 2};
  AttentionArgs a;
  a.q = q, a.k = k, a.v = v, a.y = y, a.lse = lse;
  a.batch = 1, a.q_heads = 4, a.kv_heads = 2, a.q_len = 2, a.k_len = 3, a.d = a.dv = 2;
  a.q_strides = a.y_strides = {16, 2, 4};
  a.k_strides = a.v_strides = {12, 2, 6};
  a.softcap = .5f, a.window_left = 0, a.window_right = 1, a.alibi = alibi, a.sinks = sinks;
  const double want[] = {
      -0.324222509, -0.186490609, -0.105880601, 0,           -0.243669506, -0.132468543, -0.0764499216, 0,
      0.683915549,  0.85591624,   0.802223479,  0.962668175, 0.23044993,   0.287964642,  0.181058317,   0.21726998};
  const double want_lse[] = {1.16686812,  0.753753188, 1.31194156, 0.9816708,
                             0.966137525, 0.620617568, 2.33907861, 2.1997424};
  for (Isa isa : available_isas()) {
    run_whole(attention_fns(isa).attention, a);
    for (int i = 0; i < 16; ++i) EXPECT_NEAR(y[i], want[i], 1e-6) << isa_name(isa) << i;
    for (int i = 0; i < 8; ++i) EXPECT_NEAR(lse[i], want_lse[i], 1e-6) << isa_name(isa) << i;
  }
}

}  // namespace
}  // namespace rlx::cpu
