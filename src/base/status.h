// SPDX-License-Identifier: Apache-2.0
// Status and Result: how every failure travels. A Status is one pointer, null on success; a failure is immutable and
// reference counted, so it may be copied between threads. Out of memory is a static object: reporting it cannot fail.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"

namespace rlx {

// The values are the RLX_E_* constants of rlx.h; capi/status.cpp asserts that they agree.
enum class Code : int32_t {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kTimeout = 4,
  kNotFound = 5,
  kExists = 6,
  kDenied = 7,
  kNoMemory = 8,
  kState = 9,
  kAborted = 10,
  kRange = 11,
  kUnsupported = 12,
  kInternal = 13,
  kUnavailable = 14,
  kData = 15,
  kVersion = 16,
  kIo = 17,
  kShape = 18,
  kDtype = 19,
  kOption = 20,
  kForked = 21,
  kCallback = 22,
};

std::string_view code_name(Code code);  // "RLX_E_SHAPE"; "RLX_E_UNKNOWN" for a number that is none

// What a failure says. `details` are for programs: "op" "value" "input" "device" "expected" "got" "line".
struct Failure {
  Code code;
  std::string message;
  std::vector<std::pair<std::string, std::string>> details;
  mutable std::atomic<int64_t> references{1};
  bool is_static = false;  // never freed: the out-of-memory failure
};

class [[nodiscard]] Status {
 public:
  Status() = default;  // success
  Status(Code code, std::string message) : failure_(new Failure{code, std::move(message), {}}) {}
  Status(const Status& other) : failure_(other.failure_) { retain(failure_); }
  Status(Status&& other) noexcept : failure_(std::exchange(other.failure_, nullptr)) {}
  Status& operator=(Status other) noexcept {
    std::swap(failure_, other.failure_);
    return *this;
  }
  ~Status() {
    if (failure_) release(failure_);
  }

  static Status no_memory();  // allocates nothing
  static void retain(const Failure* failure);
  static void release(const Failure* failure);

  bool ok() const { return failure_ == nullptr; }
  Code code() const { return failure_ ? failure_->code : Code::kOk; }
  std::string_view message() const { return failure_ ? std::string_view(failure_->message) : std::string_view(); }
  const std::string* detail(std::string_view key) const;  // null: no such detail

  // The same failure with one more detail (the first value of a key stays; an empty value is ignored), or with words
  // before or after its message.
  Status with(std::string_view key, std::string_view value) &&;
  Status prefixed(std::string_view words) &&;
  Status suffixed(std::string_view words) &&;

  // For the C API: the pointer that crosses the boundary. `take` gives the reference away, `adopt` receives one.
  const Failure* take() && { return std::exchange(failure_, nullptr); }
  static Status adopt(const Failure* failure) {
    Status status;
    status.failure_ = failure;
    return status;
  }

 private:
  Failure* unique();  // this status's own, changeable copy
  const Failure* failure_ = nullptr;
};

// A value, or the failure that prevented it.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}            // NOLINT: conversion is the point
  Result(Status failure) : status_(std::move(failure)) {}  // NOLINT
  bool ok() const { return value_.has_value(); }
  const Status& status() const& { return status_; }
  Status status() && { return std::move(status_); }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T value() && { return *std::move(value_); }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

// How RLX_TRY takes a Status or Result apart. It moves out of a temporary. Of a named one it copies only the failure;
// the value of a named Result stays in place: RLX_TRY(result); use(*result);
namespace detail {
inline Status failure_of(Status&& status) {
  return std::move(status);
}
inline Status failure_of(const Status& status) {
  return status;
}
template <class T>
Status failure_of(Result<T>&& result) {
  return std::move(result).status();
}
template <class T>
Status failure_of(const Result<T>& result) {
  return result.status();
}
inline void value_of(const Status&) {}
template <class T>
void value_of(const Result<T>&) {}
template <class T>
T value_of(Result<T>&& result) {
  return std::move(result).value();
}
}  // namespace detail

// RLX_TRY(status_call());  auto x = RLX_TRY(result_call());   returns the failure from the enclosing function.
// Not inside of `new` or of a braced list: what those have made by then is lost (tests/house.py looks for it).
#define RLX_TRY(call)                                                                                      \
  __extension__({                                                                                          \
    auto&& rlx_result = (call);                                                                            \
    if (!rlx_result.ok()) return ::rlx::detail::failure_of(static_cast<decltype(rlx_result)>(rlx_result)); \
    ::rlx::detail::value_of(static_cast<decltype(rlx_result)>(rlx_result));                                \
  })

}  // namespace rlx
