// SPDX-License-Identifier: Apache-2.0
// The published networks of files.txt, each with inputs that it was made for.
#pragma once

#include <span>

#include "stage.h"

namespace networks {

struct Network {
  const char* name;
  const char* file;  // below the cache
  Bar bar;
  void (*play)(Stage& stage, const std::string& cache);
  bool has_signed_weights = false;  // of 8 bits
};
std::span<const Network> all();

}  // namespace networks
