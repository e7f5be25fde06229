// SPDX-License-Identifier: Apache-2.0
// A table of figures beside their limits. Rows may measure different things; columns have a fixed width.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

#include "measure.h"

namespace bench {

constexpr double kUnknown = NAN;

// A limit that must not be exceeded, and a lower figure to aim for. 0: there is none.
struct Target {
  double must = 0, stretch = 0;
  bool is_least = false;  // the figure must be reached, and a higher one is the aim
  // False for an unknown value.
  bool holds(double value, double bound) const { return is_least ? value >= bound : value <= bound; }
};

inline std::string with_commas(int64_t number) {
  std::string digits = std::to_string(number);
  for (size_t end = digits.size(); end > 3; end -= 3) digits.insert(end - 3, ",");
  return digits;
}

// Three significant digits, or all digits before the point.
inline std::string figure(double value) {
  if (value == 0 || std::isnan(value)) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", value < 10 ? 2 : value < 100 ? 1 : 0, value);
  return text;
}

inline std::string figure(const Spread& spread) {
  return figure(spread.median) + " [" + figure(spread.low) + ", " + figure(spread.high) + "]";
}

struct Line {
  std::string name, now;
  double value = kUnknown;  // compared with the target
  Target target;
  std::string first, in_all, peer, ratio;
};

class Table {
 public:
  static void print_heading() {
    print("", "librlx [quartiles]", "must", "stretch", "met", "first", "in all", "ONNX Runtime", "ratio");
  }
  void print(const Line& line) {
    print(line.name, line.now, figure(line.target.must), figure(line.target.stretch), verdict(line), line.first,
          line.in_all, line.peer, line.ratio);
    std::fflush(stdout);
  }
  void print_count() const {
    std::printf("\n%d of %d figures are met, %d of them as stretched\n", met_ + stretched_, met_ + stretched_ + missed_,
                stretched_);
  }

 private:
  template <class... Cells>
  static void print(const Cells&... cells) {
    auto text = [](const auto& cell) { return std::string(cell); };
    std::printf("%-52s %24s %6s %8s %-8s %8s %8s  %24s %6s\n", text(cells).c_str()...);
  }
  std::string verdict(const Line& line) {
    if (line.target.must == 0) return "";
    const Target& target = line.target;
    bool is_met = target.holds(line.value, target.must), is_stretched = target.holds(line.value, target.stretch);
    ++(is_stretched ? stretched_ : is_met ? met_ : missed_);
    return is_stretched ? "stretch" : is_met ? "must" : "NO";
  }
  int missed_ = 0, met_ = 0, stretched_ = 0;
};

// How a time grows with a size: as size ^ exponent.
struct Point {
  double size, ms;
};

inline double exponent(const Point& a, const Point& b) {
  return std::log(b.ms / a.ms) / std::log(b.size / a.size);
}

// The slope of the line through the logarithms; points without a time are left out.
inline double fitted_exponent(const std::vector<Point>& points) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const Point& point : points) {
    if (std::isnan(point.ms)) continue;
    double lx = std::log(point.size), ly = std::log(point.ms);
    n += 1, x += lx, y += ly, xx += lx * lx, xy += lx * ly;
  }
  return n < 2 ? kUnknown : (n * xy - x * y) / (n * xx - x * x);
}

}  // namespace bench
