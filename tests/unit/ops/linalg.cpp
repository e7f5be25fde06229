// SPDX-License-Identifier: Apache-2.0
// Factorisations: golden values, reconstruction and orthogonality of random, tall, wide, singular and empty matrices,
// the signs that are fixed, and what a NaN does.
#include "op_test.h"

#include <ctime>
#include <functional>

namespace rlx::test {

static constexpr double kClose = 1e-8;  // of golden values of nine digits

static Tensor outcome(Op op, const std::vector<Tensor>& in, NamedAttrs attrs = {}, size_t output = 0) {
  auto got = run(op, in, std::move(attrs));
  EXPECT_TRUE(got.ok()) << got.status().message();
  return (*got)[output];
}

static Tensor multiplied(const Tensor& a, const Tensor& b, bool flip_a = false) {
  return outcome(Op::kMatmul, {a, b}, {{"transpose_a", int64_t{flip_a}}});
}

static Tensor identity(int64_t n) {
  Tensor result = *Tensor::create(DType::kF64, std::array{n, n});
  for (int64_t i = 0; i < n; i++) result.as<double>()[i * n + i] = 1;
  return result;
}

// Numbers in [-1, 1] without a pattern, the same in every run.
static Tensor noise(int64_t rows, int64_t columns, uint32_t seed) {
  Tensor result = *Tensor::create(DType::kF64, std::array{rows, columns});
  for (int64_t i = 0; i < result.count(); i++) {
    seed = seed * 1664525 + 1013904223;
    result.as<double>()[i] = static_cast<double>(seed) / 2147483648.0 - 1;
  }
  return result;
}

static Tensor diagonal(const Tensor& s, int64_t rows, int64_t columns) {
  Tensor result = *Tensor::create(DType::kF64, std::array{rows, columns});
  for (int64_t i = 0; i < s.count(); i++) result.as<double>()[i * columns + i] = s.as<double>()[i];
  return result;
}

static void expect_orthonormal_columns(const Tensor& q) {
  expect_equal(multiplied(q, q, true), identity(q.dims()[1]), 1e-14);
}

// ---- golden values ----

TEST(linalg, golden_values) {
  expect_op(Op::kLu, {f64s({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 10})}, {},
            {f64s({3, 3}, {7, 8, 10, 0.142857143, 0.857142857, 1.57142857, 0.571428571, 0.5, -0.5}),
             i64s({3}, {2, 0, 1}), f64s({}, {1})},
            {}, kClose);
  expect_op(Op::kCholesky, {f64s({3, 3}, {4, 12, -16, 12, 37, -43, -16, -43, 98})}, {},
            f64s({3, 3}, {2, 0, 0, 6, 1, 0, -8, 5, 3}), {}, kClose);
  Tensor a = f64s({3, 2}, {1, 2, 3, 4, 5, 6});
  expect_op(Op::kQr, {a}, {},
            {f64s({3, 2}, {0.169030851, 0.897085227, 0.507092553, 0.276026224, 0.845154255, -0.34503278}),
             f64s({2, 2}, {5.91607978, 7.43735744, 0, 0.828078671})},
            {}, kClose);
  expect_op(Op::kSvd, {a}, {},
            {f64s({3, 2}, {0.229847696, 0.883461018, 0.524744819, 0.240782492, 0.819641941, -0.401896033}),
             f64s({2}, {9.52551809, 0.514300581}), f64s({2, 2}, {0.619629484, 0.784894453, -0.784894453, 0.619629484})},
            {}, kClose);
  expect_op(Op::kEigh, {f64s({3, 3}, {2, 1, 0, 1, 3, 1, 0, 1, 2})}, {},
            {f64s({3}, {1, 2, 4}), f64s({3, 3}, {0.577350269, 0.707106781, 0.408248290, -0.577350269, 0, 0.816496581,
                                                 0.577350269, -0.707106781, 0.408248290})},
            {}, kClose);
}

TEST(linalg, triangular_solve_reads_one_triangle_only) {
  Tensor a = f64s({2, 2}, {2, 7, 3, 4}), b = f64s({2, 1}, {2, 11});
  expect_op(Op::kTriangularSolve, {a, b}, {}, f64s({2, 1}, {1, 2}));
  expect_op(Op::kTriangularSolve, {a, b}, {{"transpose", int64_t{1}}}, f64s({2, 1}, {-3.125, 2.75}));
  expect_op(Op::kTriangularSolve, {a, b}, {{"lower", int64_t{0}}}, f64s({2, 1}, {-8.625, 2.75}));
  expect_op(Op::kTriangularSolve, {a, b}, {{"unit_diagonal", int64_t{1}}}, f64s({2, 1}, {2, 5}));
  Tensor unread = f64s({2, 2}, {1, kNan, 3, 1});
  expect_op(Op::kTriangularSolve, {unread, b}, {}, f64s({2, 1}, {2, 5}));
  Tensor diagonal_unread = f64s({2, 2}, {kNan, 0, 3, kInf});
  expect_op(Op::kTriangularSolve, {diagonal_unread, b}, {{"unit_diagonal", int64_t{1}}}, f64s({2, 1}, {2, 5}));
  expect_op(Op::kTriangularSolve, {f64s({1, 1}, {0}), f64s({1, 2}, {1, 0})}, {}, f64s({1, 2}, {kInf, kNan}));
  expect_op(Op::kTriangularSolve, {f64s({2, 1, 1}, {2, 4}), f64s({1, 1}, {8})}, {}, f64s({2, 1, 1}, {4, 2}));
}

// ---- properties ----

TEST(linalg, lu_reconstructs_a_with_its_rows_permuted) {
  for (int64_t n : {1, 2, 5, 9}) {
    Tensor a = noise(n, n, static_cast<uint32_t>(n)), l = identity(n),
           u = *Tensor::create(DType::kF64, std::array{n, n});
    auto got = *run(Op::kLu, {a}, {{"index_dtype", "i32"}});
    EXPECT_EQ(got[1].dtype(), DType::kI32);
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < n; j++) (j < i ? l : u).as<double>()[i * n + j] = got[0].as<double>()[i * n + j];
    expect_equal(multiplied(l, u), outcome(Op::kGather, {a, got[1]}), 1e-14);
  }
}

TEST(linalg, lu_of_a_singular_matrix_has_a_zero_on_its_diagonal) {
  expect_op(Op::kLu, {f64s({2, 2}, {1, 2, 2, 4})}, {},
            {f64s({2, 2}, {2, 4, 0.5, 0}), i64s({2}, {1, 0}), f64s({}, {-1})});
  expect_op(Op::kLu, {f64s({2, 2}, {-1, 0, 1, 0})}, {},
            {f64s({2, 2}, {-1, 0, -1, 0}), i64s({2}, {0, 1}), f64s({}, {1})});
}

TEST(linalg, qr_and_svd_reconstruct_tall_square_wide_and_rank_deficient_matrices) {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{5, 3}, {4, 4}, {3, 6}, {1, 4}, {6, 1}})
    for (bool deficient : {false, true})
      for (bool full : {false, true}) {
        SCOPED_TRACE(format("{} x {}, full {}, deficient {}", m, n, full, deficient));
        Tensor a = noise(m, n, static_cast<uint32_t>(m * 10 + n));
        for (int64_t i = 0; i < m && deficient; i++)  // the last column repeats the first, or is zero
          a.as<double>()[i * n + n - 1] = n > 1 ? a.as<double>()[i * n] : 0;
        NamedAttrs attrs{{"full", int64_t{full}}};
        auto qr = *run(Op::kQr, {a}, attrs);
        expect_equal(multiplied(qr[0], qr[1]), a, 1e-14);
        expect_orthonormal_columns(qr[0]);
        for (int64_t i = 0; i < std::min(m, n); i++) EXPECT_GE(qr[1].as<double>()[i * n + i], 0);

        auto svd = *run(Op::kSvd, {a}, attrs);
        Tensor middle = diagonal(svd[1], svd[0].dims()[1], svd[2].dims()[0]);
        expect_equal(multiplied(multiplied(svd[0], middle), svd[2]), a, 1e-14);
        expect_orthonormal_columns(svd[0]);
        expect_orthonormal_columns(outcome(Op::kTranspose, {svd[2]}, {{"perm", std::vector<int64_t>{1, 0}}}));
        for (int64_t i = 1; i < svd[1].count(); i++) EXPECT_LE(svd[1].as<double>()[i], svd[1].as<double>()[i - 1]);
        EXPECT_EQ(svd[0].dims()[1], full ? m : std::min(m, n));
        EXPECT_EQ(svd[2].dims()[0], full ? n : std::min(m, n));
      }
}

static double seconds(const std::function<void()>& body) {
  std::clock_t begin = std::clock();
  body();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

// Neither has as many columns as the matrix has rows: 10,000 rows would need 800 MB.
TEST(linalg, qr_of_a_tall_matrix_takes_linear_time) {
  auto seconds_for = [](int64_t rows) {
    Tensor a = noise(rows, 3, 1);
    return seconds([&] { expect_orthonormal_columns((*run(Op::kQr, {a}))[0]); });
  };
  double few = seconds_for(1000), many = seconds_for(10000);
  std::printf("qr: %.1f ms for 1,000 rows, %.1f ms for 10,000\n", few * 1e3, many * 1e3);
  EXPECT_LT(many, 10 * 3 * few + 0.05);
}

// 180 rows took 7 seconds, 250 rows of full factors 19.
TEST(linalg, svd_completes_a_basis_in_cubic_time) {
  Tensor ones = *Tensor::create(DType::kF64, std::array<int64_t, 2>{200, 200});
  std::fill_n(ones.as<double>(), ones.count(), 1.0);
  std::vector<Tensor> deficient, full;
  double all = seconds([&] {
    deficient = *run(Op::kSvd, {ones});
    full = *run(Op::kSvd, {noise(300, 4, 2)}, {{"full", int64_t{1}}});
  });
  std::printf("svd: %.1f ms\n", all * 1e3);
  EXPECT_LT(all, 2);
  for (const auto& factors : {deficient, full}) expect_orthonormal_columns(factors[0]);
  expect_orthonormal_columns(outcome(Op::kTranspose, {deficient[2]}, {{"perm", std::vector<int64_t>{1, 0}}}));
}

TEST(linalg, eigh_diagonalises_and_reads_the_lower_triangle) {
  for (int64_t n : {1, 3, 8}) {
    Tensor a = noise(n, n, static_cast<uint32_t>(n + 40)), s = *Tensor::create(DType::kF64, std::array{n, n});
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < n; j++) s.as<double>()[i * n + j] = a.as<double>()[std::max(i, j) * n + std::min(i, j)];
    auto got = *run(Op::kEigh, {a});
    expect_equal(multiplied(s, got[1]), multiplied(got[1], diagonal(got[0], n, n)), 1e-14);
    expect_orthonormal_columns(got[1]);
    for (int64_t i = 1; i < n; i++) EXPECT_LE(got[0].as<double>()[i - 1], got[0].as<double>()[i]);
  }
}

TEST(linalg, eigh_converges_at_every_scale) {
  Tensor a = noise(8, 8, 48), values = outcome(Op::kEigh, {a});
  for (double scale : {1e-30, 1e30}) {
    Tensor scaled = outcome(Op::kMul, {a, f64s({}, {scale})}), got = outcome(Op::kEigh, {scaled});
    for (int64_t i = 0; i < 8; i++) EXPECT_NEAR(got.as<double>()[i] / scale, values.as<double>()[i], 1e-13);
  }
}

TEST(linalg, a_nan_spoils_its_item_of_a_batch_and_no_other) {
  Tensor a = f64s({2, 1, 1}, {kInf, 4});
  expect_op(Op::kLu, {a}, {}, {f64s({2, 1, 1}, {kNan, 4}), i64s({2, 1}, {0, 0}), f64s({2}, {kNan, 1})});
  expect_op(Op::kCholesky, {a}, {}, f64s({2, 1, 1}, {kNan, 2}));
  expect_op(Op::kQr, {a}, {}, {f64s({2, 1, 1}, {kNan, 1}), f64s({2, 1, 1}, {kNan, 4})});
  expect_op(Op::kEigh, {a}, {}, {f64s({2, 1}, {kNan, 4}), f64s({2, 1, 1}, {kNan, 1})});
  expect_op(Op::kSvd, {a}, {}, {f64s({2, 1, 1}, {kNan, 1}), f64s({2, 1}, {kNan, 4}), f64s({2, 1, 1}, {kNan, 1})});
  expect_op(Op::kTriangularSolve, {a, f64s({1, 1}, {8})}, {}, f64s({2, 1, 1}, {kNan, 2}));
  expect_op(Op::kCholesky, {f64s({2, 2}, {1, 0, 2, 1})}, {}, f64s({2, 2}, {kNan, kNan, kNan, kNan}));
}

TEST(linalg, empty_matrices_give_empty_factors) {
  Tensor none = f64s({0, 0}, {});
  expect_op(Op::kLu, {none}, {}, {none, i64s({0}, {}), f64s({}, {1})});
  expect_op(Op::kCholesky, {none}, {}, none);
  expect_op(Op::kEigh, {none}, {}, {f64s({0}, {}), none});
  expect_op(Op::kQr, {f64s({2, 0}, {})}, {{"full", int64_t{1}}}, {f64s({2, 2}, {1, 0, 0, 1}), f64s({2, 0}, {})});
  expect_op(Op::kSvd, {f64s({0, 2}, {})}, {{"full", int64_t{1}}}, {none, f64s({0}, {}), f64s({2, 2}, {1, 0, 0, 1})});
  expect_op(Op::kTriangularSolve, {none, f64s({0, 3}, {})}, {}, f64s({0, 3}, {}));
}

TEST(linalg, refuses_halves_and_what_is_not_square) {
  expect_failure(Op::kLu, {tensor(DType::kF16, {1, 1}, {1})}, {}, Code::kDtype, "a must be f32 or f64");
  expect_failure(Op::kCholesky, {f64s({1, 2}, {1, 2})}, {}, Code::kShape, "square");
  expect_failure(Op::kInverse, {f64s({3, 2, 4}, std::vector<double>(24, 1))}, {}, Code::kShape,
                 "square matrix: 2 is not 4");
  expect_failure(Op::kEigh, {f64s({1}, {1})}, {}, Code::kShape, "rank 2 or more");
  expect_failure(Op::kTriangularSolve, {f64s({1, 1}, {1}), f64s({2, 1}, {1, 2})}, {}, Code::kShape, "rows of b");
}

// What is small beside the largest singular value is lost: by default, larger of both sizes times the dtype's
// precision.
TEST(linalg, pinv_drops_what_is_lost_in_rounding) {
  auto inverse_of = [](double small, double large) {
    std::vector<double> numbers(2 * 64);
    numbers[0] = large, numbers[64 + 1] = small;
    Tensor y = outcome(Op::kPinv, {f32s({2, 64}, numbers)});
    return std::pair<double, double>{y.as<float>()[0], y.as<float>()[3]};
  };
  constexpr double kEps = 0x1p-23;
  EXPECT_EQ(inverse_of(65 * kEps, 1), (std::pair{1.0, double{static_cast<float>(1 / (65 * kEps))}}));
  EXPECT_EQ(inverse_of(63 * kEps, 1), (std::pair{1.0, 0.0}));
  EXPECT_EQ(inverse_of(63 * 1024 * kEps, 1024), (std::pair{0x1p-10, 0.0}));
}

}  // namespace rlx::test
