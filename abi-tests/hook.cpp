// SPDX-License-Identifier: Apache-2.0
// Linked into the library of the containment test only: an entry of the C API throws when the test asks for it.
#include <new>
#include <stdexcept>

#include "capi/guard.h"

static int asked = 0;

// 0: nothing; 1: a std::exception; 2: no memory; 3: something that is no exception. Once.
extern "C" __attribute__((visibility("default"))) void rlx_test_throw(int kind) {
  asked = kind;
}

namespace rlx::capi {

void test_hook() {
  switch (std::exchange(asked, 0)) {
    case 1: throw std::runtime_error("planted");
    case 2: throw std::bad_alloc();
    case 3: throw 42;
  }
}

}  // namespace rlx::capi
