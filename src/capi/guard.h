// SPDX-License-Identifier: Apache-2.0
// guard: the frame of every function of rlx.h. It clears the outputs, refuses NULL and lengths that exceed memory,
// calls the body, and turns its result or exception into a status. No exception crosses the C boundary.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "base/exception.h"
#include "base/status.h"
#include "rlx.h"

namespace rlx::capi {

// A pointer that must not be NULL, and its name in rlx.h. An empty array may be NULL. Text must be UTF-8.
struct Argument {
  Argument(const void* data, const char* its_name, size_t length = 1, size_t bytes = 1,
           const uint32_t* of_handle = nullptr)
      : pointer(data), name(its_name), count(length), element_bytes(bytes), alive(of_handle) {}
  Argument(const char* text, const char* its_name) : pointer(text), name(its_name), is_text(true) {}

  const void* pointer;
  const char* name;
  size_t count = 1;
  size_t element_bytes = 1;
  const uint32_t* alive = nullptr;  // of a handle; 0 in a forked child, which may not use it
  bool is_text = false;
};

// Text that may be NULL.
inline Argument optional_text(const char* text, const char* name) {
  return {text ? text : "", name};
}

// The name of a file, which to the system is any bytes.
inline Argument path_argument(const char* path, const char* name) {
  return {static_cast<const void*>(path), name};
}

// A handle that belongs to an environment.
template <class Handle>
Argument handle(Handle* pointer, const char* name) {
  return {pointer, name, 1, 1, pointer ? pointer->alive() : nullptr};
}

template <class T>
constexpr size_t kBytesOf = sizeof(T);
template <>
inline constexpr size_t kBytesOf<const void> = 1;
template <>
inline constexpr size_t kBytesOf<void> = 1;

constexpr bool is_possible(size_t count, size_t element_bytes) {
  return count <= static_cast<size_t>(PTRDIFF_MAX) / element_bytes;
}

template <class T>
Argument array(T* pointer, size_t count, const char* name) {
  return {pointer, name, count, kBytesOf<T>};
}

// An output. It is set to NULL or 0 here, so that a failure leaves no stale value.
template <class T>
Argument cleared(T* pointer, const char* name) {
  if (pointer) *pointer = T{};
  return {pointer, name};
}

template <class T>
Argument cleared(T* pointer, size_t count, const char* name) {
  if (pointer && is_possible(count, sizeof(T))) std::fill_n(pointer, count, T{});
  return array(pointer, count, name);
}

Status check(const char* function, std::initializer_list<Argument> arguments);
Status made_before_fork(std::string_view name);                                             // RLX_E_FORKED
std::string element_name(std::string_view array, size_t index);                             // "in[1]"
Status null_element(std::string_view array, size_t index);                                  // RLX_E_INVALID_ARGUMENT
Status check_text(std::string_view subject, std::string_view name, std::string_view text);  // is UTF-8
Status readable(Status status);  // as UTF-8, whatever bytes of a path or of the host's words it repeats

#ifdef RLX_TEST_HOOKS
void test_hook();  // throws when a test asks for it
#else
inline void test_hook() {}
#endif

template <class Body>
Status contained(const char* function, std::initializer_list<Argument> arguments, Body&& body) noexcept {
  try {
    test_hook();
    RLX_TRY(check(function, arguments));
    return readable(body());
  } catch (...) {
    return from_exception(function);
  }
}

// The C handle of a status is its failure pointer.
inline rlx_status_t* to_c(Status status) {
  return reinterpret_cast<rlx_status_t*>(const_cast<Failure*>(std::move(status).take()));
}
inline const Failure* from_c(const rlx_status_t* status) {
  return reinterpret_cast<const Failure*>(status);
}

// For functions that return a status. Body: () -> Status.
template <class Body>
[[nodiscard]] rlx_status_t* guard(std::initializer_list<Argument> arguments, Body&& body,
                                  const char* function = __builtin_FUNCTION()) noexcept {
  return to_c(contained(function, arguments, body));
}

// For functions that return a value, and a fallback instead of a status. Body: () -> T.
template <class Body, class T = std::invoke_result_t<Body>>
T guard_value(std::type_identity_t<T> none, std::initializer_list<Argument> arguments, Body&& body,
              const char* function = __builtin_FUNCTION()) noexcept {
  T value = none;
  Status status = contained(function, arguments, [&] {
    value = body();
    return Status();
  });
  return status.ok() ? value : none;
}

// For setters and builders: the first failure stays in `kept`, to be returned later. Body: () -> Status.
template <class Body>
bool keep(Status& kept, std::initializer_list<Argument> arguments, Body&& body,
          const char* function = __builtin_FUNCTION()) noexcept {
  Status status = contained(function, arguments, body);
  bool ok = status.ok();
  if (kept.ok()) kept = std::move(status);
  return ok;
}

}  // namespace rlx::capi
