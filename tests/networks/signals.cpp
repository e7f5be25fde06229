// SPDX-License-Identifier: Apache-2.0
#include "signals.h"

#include <algorithm>
#include <cmath>

namespace networks {

namespace {

constexpr double kPi = 3.14159265358979323846;

// Of -1 to 1, the same everywhere.
double noise(uint32_t& state) {
  state = state * 1664525U + 1013904223U;
  return static_cast<double>(state >> 8) / (1 << 23) - 1;
}

constexpr int kRate = 16000, kWindow = 400, kHop = 160, kBands = 80, kFrames = 3000, kBins = kWindow / 2 + 1;

double mel_of(double hertz) {
  return hertz < 1000 ? hertz * 3 / 200 : 15 + std::log(hertz / 1000) * 27 / std::log(6.4);
}

double hertz_of(double mel) {
  return mel < 15 ? mel * 200 / 3 : 1000 * std::exp((mel - 15) * std::log(6.4) / 27);
}

// The energies of one window in the bins of its Fourier transform.
std::vector<double> energies(const float* sound) {
  static const std::vector<double> wave = [] {
    std::vector<double> turn;
    for (int i = 0; i < kWindow; i++) turn.push_back(std::cos(2 * kPi * i / kWindow));
    return turn;
  }();
  double faded[kWindow];
  for (int i = 0; i < kWindow; i++) faded[i] = sound[i] * (0.5 - 0.5 * wave[static_cast<size_t>(i)]);
  std::vector<double> energy;
  for (int bin = 0; bin < kBins; bin++) {
    double re = 0, im = 0;
    for (int i = 0, at = 0; i < kWindow; i++, at = (at + bin) % kWindow) {
      re += faded[i] * wave[static_cast<size_t>(at)];
      im += faded[i] * wave[static_cast<size_t>((at + 3 * kWindow / 4) % kWindow)];
    }
    energy.push_back(re * re + im * im);
  }
  return energy;
}

// Triangles between neighbours on the mel scale, each of area 1: [bands][bins].
std::vector<std::vector<double>> band_weights() {
  std::vector<double> edge;
  for (int i = 0; i < kBands + 2; i++) edge.push_back(hertz_of(mel_of(kRate / 2.0) * i / (kBands + 1)));
  std::vector<std::vector<double>> weights;
  for (size_t band = 0; band < kBands; band++) {
    double lo = edge[band], mid = edge[band + 1], hi = edge[band + 2];
    auto& row = weights.emplace_back();
    for (int bin = 0; bin < kBins; bin++) {
      double hertz = static_cast<double>(bin) * kRate / kWindow;
      row.push_back(std::max(0.0, std::min((hertz - lo) / (mid - lo), (hi - hertz) / (hi - mid))) * 2 / (hi - lo));
    }
  }
  return weights;
}

// Five columns a digit, seven rows from the lowest bit.
constexpr uint8_t kDigits[10][5] = {{0x3E, 0x51, 0x49, 0x45, 0x3E}, {0x00, 0x42, 0x7F, 0x40, 0x00},
                                    {0x42, 0x61, 0x51, 0x49, 0x46}, {0x21, 0x41, 0x45, 0x4B, 0x31},
                                    {0x18, 0x14, 0x12, 0x7F, 0x10}, {0x27, 0x45, 0x45, 0x45, 0x39},
                                    {0x3C, 0x4A, 0x49, 0x49, 0x30}, {0x01, 0x71, 0x09, 0x05, 0x03},
                                    {0x36, 0x49, 0x49, 0x49, 0x36}, {0x06, 0x49, 0x49, 0x29, 0x1E}};

}  // namespace

std::vector<float> speech(size_t samples, int rate, double voiced_seconds) {
  std::vector<float> sound;
  uint32_t state = 7;
  double phase = 0;
  for (size_t i = 0; i < samples; i++) {
    double t = static_cast<double>(i) / rate, voice = 0;
    phase += 2 * kPi * (140 + 30 * std::sin(2 * kPi * 0.7 * t)) / rate;
    for (int k = 1; k < 16; k++) voice += std::sin(k * phase) / k;
    double loudness = t < voiced_seconds ? 0.1 * (0.5 - 0.5 * std::cos(2 * kPi * 3 * t)) : 0;
    sound.push_back(static_cast<float>(loudness * voice + 0.002 * noise(state)));
  }
  return sound;
}

std::vector<float> log_mel(const std::vector<float>& sound) {
  std::vector<float> padded(kWindow / 2);  // by what is mirrored at the ends
  for (size_t i = 0; i < padded.size(); i++) padded[i] = sound[padded.size() - i];
  padded.insert(padded.end(), sound.begin(), sound.end());
  for (size_t i = 0; i < kWindow / 2; i++) padded.push_back(sound[sound.size() - 2 - i]);
  auto weights = band_weights();
  std::vector<float> mel(size_t{kBands} * kFrames);
  float largest = -10;
  for (size_t frame = 0; frame < kFrames; frame++) {
    std::vector<double> energy = energies(&padded[frame * kHop]);
    for (size_t band = 0; band < kBands; band++) {
      double sum = 0;
      for (size_t bin = 0; bin < kBins; bin++) sum += weights[band][bin] * energy[bin];
      float& value = mel[band * kFrames + frame];
      value = static_cast<float>(std::log10(std::max(sum, 1e-10)));
      largest = std::max(largest, value);
    }
  }
  for (float& value : mel) value = (std::max(value, largest - 8) + 4) / 4;
  return mel;
}

void Page::write(const std::string& digits, int64_t top, int64_t left, int64_t scale) {
  for (char digit : digits) {
    for (int64_t x = 0; x < 5 * scale; x++)
      for (int64_t y = 0; y < 7 * scale; y++) {
        bool is_ink = kDigits[digit - '0'][x / scale] >> (y / scale) & 1;
        if (is_ink && top + y < height && left + x < width) ink[static_cast<size_t>((top + y) * width + left + x)] = 0;
      }
    left += 6 * scale;
  }
}

Page Page::turned() const {
  Page page = *this;
  std::reverse(page.ink.begin(), page.ink.end());
  return page;
}

std::vector<float> Page::channels(double mean, double deviation) const {
  std::vector<float> values;
  for (int channel = 0; channel < 3; channel++)
    for (float value : ink) values.push_back(static_cast<float>((value - mean) / deviation));
  return values;
}

}  // namespace networks
