// SPDX-License-Identifier: Apache-2.0
// Measures the most that this machine can do: multiply-adds on registers, and bytes moved from the caches and from
// memory, by one thread and by two. Other figures can be read as a share of these.
#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "measure.h"

namespace {

constexpr int kTurns = 9;
constexpr int64_t kRounds = 4'000'000;

// Independent chains of multiply-adds: more than latency x ports, and no more than there are registers. Their sum is
// returned, so that the compiler removes none.
[[gnu::target("avx512f")]] float fma_avx512() {
  constexpr int kChains = 24;
  __m512 sums[kChains], factor = _mm512_set1_ps(0.999f), addend = _mm512_set1_ps(1e-3f);
  for (int i = 0; i < kChains; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  for (int64_t round = 0; round < kRounds; ++round) {
#pragma GCC unroll 24
    for (int i = 0; i < kChains; ++i) sums[i] = _mm512_fmadd_ps(sums[i], factor, addend);
  }
  float total = 0;
#pragma GCC unroll 24
  for (int i = 0; i < kChains; ++i) total += _mm512_cvtss_f32(sums[i]);
  return total;
}

[[gnu::target("avx2,fma")]] float fma_avx2() {
  constexpr int kChains = 12;
  __m256 sums[kChains], factor = _mm256_set1_ps(0.999f), addend = _mm256_set1_ps(1e-3f);
  for (int i = 0; i < kChains; ++i) sums[i] = _mm256_set1_ps(static_cast<float>(i));
  for (int64_t round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = _mm256_fmadd_ps(sums[i], factor, addend);
  }
  float total = 0;
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) total += _mm256_cvtss_f32(sums[i]);
  return total;
}

float multiply_add_sse2() {
  constexpr int kChains = 12;
  __m128 sums[kChains], factor = _mm_set1_ps(0.999f), addend = _mm_set1_ps(1e-3f);
  for (int i = 0; i < kChains; ++i) sums[i] = _mm_set1_ps(static_cast<float>(i));
  for (int64_t round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = _mm_add_ps(_mm_mul_ps(sums[i], factor), addend);
  }
  float total = 0;
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) total += _mm_cvtss_f32(sums[i]);
  return total;
}

[[gnu::target("avx2")]] float read_all(const float* data, int64_t count) {
  __m256 sums[4] = {};
  for (int64_t i = 0; i + 32 <= count; i += 32) {
#pragma GCC unroll 4
    for (int s = 0; s < 4; ++s) sums[s] = _mm256_add_ps(sums[s], _mm256_load_ps(data + i + 8 * s));
  }
  return _mm256_cvtss_f32(_mm256_add_ps(_mm256_add_ps(sums[0], sums[1]), _mm256_add_ps(sums[2], sums[3])));
}

// y = a + 3 b with streaming stores
[[gnu::target("avx2")]] void triad(float* y, const float* a, const float* b, int64_t count) {
  __m256 three = _mm256_set1_ps(3);
  for (int64_t i = 0; i + 8 <= count; i += 8) {
    _mm256_stream_ps(y + i, _mm256_add_ps(_mm256_load_ps(a + i), _mm256_mul_ps(three, _mm256_load_ps(b + i))));
  }
  _mm_sfence();
}

// The shortest time of several turns in which every thread does the work once.
template <class Work>
double best_ms(int threads, const Work& work) {
  double best = 1e300;
  for (int turn = 0; turn < kTurns; ++turn) {
    best = std::min(best, bench::time_ms([&] {
                      std::vector<std::thread> others;
                      for (int i = 1; i < threads; ++i) others.emplace_back(work, i);
                      work(0);
                      for (std::thread& other : others) other.join();
                    }));
  }
  return best;
}

void print_row(const char* name, const char* unit, double one, double two) {
  std::printf("%-36s %10.1f %10.1f  %s\n", name, one, two, unit);
}

volatile float sink;  // keeps results alive

void print_peak(const char* name, float (*work)(), double flops_per_round) {
  auto rate = [&](int threads) {
    double ms = best_ms(threads, [&](int) { sink = work(); });
    return threads * flops_per_round * kRounds / ms / 1e6;
  };
  print_row(name, "Gflop/s", rate(1), rate(2));
}

struct Free {
  void operator()(float* p) const { std::free(p); }
};
using Floats = std::unique_ptr<float[], Free>;

Floats zeros(int64_t count) {
  Floats data(static_cast<float*>(std::aligned_alloc(64, count * sizeof(float))));
  std::fill_n(data.get(), count, 0.0f);
  return data;
}

void print_read(const char* name, int64_t bytes, int repeats) {
  const int64_t count = bytes / 4;
  std::vector<Floats> slices;
  for (int i = 0; i < 2; ++i) slices.push_back(zeros(count));
  auto rate = [&](int threads) {
    double ms = best_ms(threads, [&](int thread) {
      for (int i = 0; i < repeats; ++i) sink = read_all(slices[thread].get(), count);
    });
    return threads * repeats * static_cast<double>(bytes) / ms / 1e6;
  };
  print_row(name, "GB/s", rate(1), rate(2));
}

void print_triad(const char* name, int64_t bytes) {
  const int64_t count = bytes / 4;
  std::vector<Floats> slices;
  for (int i = 0; i < 6; ++i) slices.push_back(zeros(count));
  auto rate = [&](int threads) {
    double ms = best_ms(threads, [&](int thread) {
      triad(slices[3 * thread].get(), slices[3 * thread + 1].get(), slices[3 * thread + 2].get(), count);
    });
    return threads * 3 * static_cast<double>(bytes) / ms / 1e6;
  };
  print_row(name, "GB/s", rate(1), rate(2));
}

}  // namespace

int main() {
  std::printf("%s, %u cores\n", bench::cpu_name().c_str(), std::thread::hardware_concurrency());
  std::printf("%-36s %10s %10s\n", "", "1 thread", "2 threads");
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (__builtin_cpu_supports("avx512f")) print_peak("f32 fused multiply-add, AVX-512", fma_avx512, 24 * 16 * 2);
  if (avx2) print_peak("f32 fused multiply-add, AVX2", fma_avx2, 12 * 8 * 2);
  print_peak("f32 multiply and add, baseline", multiply_add_sse2, 12 * 4 * 2);
  if (!avx2) return 0;
  print_read("read, 256 KiB a thread", 256 << 10, 2000);
  print_read("read, 16 MiB a thread", 16 << 20, 20);
  print_read("read, 512 MiB a thread", 512 << 20, 1);
  print_triad("triad with streaming stores, 3 x 128 MiB", 128 << 20);
}
