// SPDX-License-Identifier: Apache-2.0
#include "base/exception.h"

#include <exception>
#include <new>

namespace rlx {

static Status rethrown(std::string_view where) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return Status::no_memory();
  } catch (const HostThrew& host) {
    return Status(Code::kCallback, format("{}: the host's {} callback threw an exception", where, host.callback));
  } catch (const std::exception& exception) {
    return Status(Code::kInternal, format("{}: unexpected exception: {}", where, exception.what()));
  } catch (...) {
    return Status(Code::kInternal, format("{}: unexpected exception of an unknown type", where));
  }
}

Status from_exception(std::string_view where) noexcept {
  try {
    return rethrown(where);
  } catch (...) {  // no memory for the message about the first exception
    return Status::no_memory();
  }
}

}  // namespace rlx
