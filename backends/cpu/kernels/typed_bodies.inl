// SPDX-License-Identifier: Apache-2.0
// What an op makes of elements, as its `eval` does (semantics.md N1-N3): integers wrap, NaN wins.

template <class T>
using Wrapping = std::conditional_t<std::is_floating_point_v<T>, T, std::common_type_t<T, unsigned>>;

struct Add {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(Wrapping<T>(a) + Wrapping<T>(b));
  }
};
struct Sub {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(Wrapping<T>(a) - Wrapping<T>(b));
  }
};
struct Mul {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(Wrapping<T>(a) * Wrapping<T>(b));
  }
};
struct Quotient {
  template <class T>
  static T of(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return a / b;
    } else {
      if (b == 0) return static_cast<T>(~T(0));
      if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(Sub::of<std::make_unsigned_t<T>>(0, a));
      return static_cast<T>(a / b);
    }
  }
};
struct Remainder {
  template <class T>
  static T of(T a, T b) {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
  }
};
struct Larger {
  template <class T>
  static T of(T a, T b) {
    T larger = a < b ? b : a;
    larger = b != b ? b : larger;
    return a != a ? a : larger;
  }
};
struct Smaller {
  template <class T>
  static T of(T a, T b) {
    T smaller = b < a ? b : a;
    smaller = b != b ? b : smaller;
    return a != a ? a : smaller;
  }
};
struct And {
  template <class T>
  static T of(T a, T b) {
    return a & b;
  }
};
struct Or {
  template <class T>
  static T of(T a, T b) {
    return a | b;
  }
};
struct Xor {
  template <class T>
  static T of(T a, T b) {
    return a ^ b;
  }
};
struct ShiftLeft {  // T unsigned
  template <class T>
  static T of(T a, T b) {
    return b < 8 * sizeof(T) ? static_cast<T>(Wrapping<T>(a) << b) : T(0);
  }
};
struct ShiftRight {
  template <class T>
  static T of(T a, T b) {
    constexpr std::make_unsigned_t<T> kMost = 8 * sizeof(T) - 1;
    auto by = static_cast<std::make_unsigned_t<T>>(b);
    T most = std::is_signed_v<T> ? static_cast<T>(a >> kMost) : T(0);
    return by > kMost ? most : static_cast<T>(a >> by);
  }
};
struct Equal {
  template <class T>
  static bool of(T a, T b) {
    return a == b;
  }
};
struct Unequal {
  template <class T>
  static bool of(T a, T b) {
    return a != b;
  }
};
struct Less {
  template <class T>
  static bool of(T a, T b) {
    return a < b;
  }
};
struct NotMore {
  template <class T>
  static bool of(T a, T b) {
    return a <= b;
  }
};
struct More {
  template <class T>
  static bool of(T a, T b) {
    return a > b;
  }
};
struct NotLess {
  template <class T>
  static bool of(T a, T b) {
    return a >= b;
  }
};

struct Negative {
  template <class T>
  static T of(T a) {
    if constexpr (std::is_floating_point_v<T>)
      return -a;
    else
      return static_cast<T>(Wrapping<T>(0) - Wrapping<T>(a));
  }
};
struct Absolute {
  template <class T>
  static T of(T a) {
    if constexpr (std::is_floating_point_v<T>)
      return std::fabs(a);
    else
      return a < 0 ? static_cast<T>(Sub::of<std::make_unsigned_t<T>>(0, a)) : a;
  }
};
struct Complement {
  template <class T>
  static T of(T a) {
    return static_cast<T>(~a);
  }
};
struct Falsehood {
  template <class T>
  static T of(uint8_t a) {
    return a == 0;
  }
};
struct Root {
  template <class T>
  static T of(T a) {
    return std::sqrt(a);
  }
};
struct Floor {
  template <class T>
  static T of(T a) {
    return std::floor(a);
  }
};
struct Nearest {
  template <class T>
  static T of(T a) {
    return std::nearbyint(a);
  }
};
struct NotANumber {
  template <class>
  static uint8_t of(double a) {
    return a != a;
  }
};
struct Truth {
  template <class, class From>
  static uint8_t of(From a) {
    return a != From(0);
  }
};
struct OfTruth {
  template <class To>
  static To of(uint8_t a) {
    return static_cast<To>(a != 0);
  }
};
// A function of stored bools. Any byte but 0 is true (semantics.md T6).
template <class Body>
struct OfTruths {
  static uint8_t of(uint8_t a, uint8_t b) { return Body::of(uint8_t{a != 0}, uint8_t{b != 0}); }
};
// Conversion between numbers. A float outside the range of an integer becomes the nearest integer, NaN becomes 0
// (semantics.md T8). No lane converts a value that its type cannot hold, so lanes need no branch.
struct Conversion {
  template <class To, class From>
  static To of(From x) {
    if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
      using Limits = std::numeric_limits<To>;
      constexpr From kLow = static_cast<From>(Limits::min());
      constexpr From kEnd = From(2) * static_cast<From>(To(1) << (Limits::digits - 1));  // exact, as max() is not
      From inside = x < kLow ? kLow : x;
      inside = inside < kEnd ? inside : kLow;
      To to = static_cast<To>(inside);
      to = x >= kEnd ? Limits::max() : to;
      return x == x ? to : To(0);
    } else {
      return static_cast<To>(x);
    }
  }
};
