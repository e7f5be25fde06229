// SPDX-License-Identifier: Apache-2.0
// Inputs on which a network gives a meaningful result, made by formula: speech-like sound and its spectrum, lines of
// digits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace networks {

// Syllables of a voice whose pitch moves, then silence with a little noise.
std::vector<float> speech(size_t samples, int rate, double voiced_seconds);

// The logarithm of the energy in 80 bands of 3000 frames of 10 ms, as Whisper's preprocessor scales it: [80, 3000].
std::vector<float> log_mel(const std::vector<float>& sound);

// Black digits on white, 0 to 1, row by row.
struct Page {
  int64_t height, width;
  std::vector<float> ink;
  Page(int64_t height, int64_t width) : height(height), width(width), ink(static_cast<size_t>(height * width), 1.0F) {}
  void write(const std::string& digits, int64_t top, int64_t left, int64_t scale);
  Page turned() const;  // upside down
  // [3, height, width] of (ink - mean) / deviation
  std::vector<float> channels(double mean, double deviation) const;
};

}  // namespace networks
