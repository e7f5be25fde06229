// SPDX-License-Identifier: Apache-2.0
// Compile options. One table in options.cpp gives their names, kinds, defaults and the schema; other options are
// refused.
#pragma once

#include <climits>
#include <string>
#include <vector>

#include "ir/attr.h"
#include "plan/plan.h"

namespace rlx {

struct CompileOptions {
  UpperSizes dims;
  KernelOptions kernels;
  std::vector<std::pair<std::string, Dispatch>> dispatch_of;  // by op name
  std::vector<std::string> skip, expect;
  DType precision = DType::kNone;  // the dtype to compute floats in; kNone: as the graph declares
  bool plain_layout = false;       // layouts stay as the graph has them
  bool verify_each = false;        // after every pass, not only after the last
  bool io_convert = false;
  bool falls_back = false;         // nodes without a kernel on the device run on the host
  std::vector<std::string> alias;  // "output=input": one memory for both
  bool drop_weights = false;
  int threads = INT_MAX;
  int64_t memory_limit = INT64_MAX;  // bytes of arena, sized region and what is prepared
  std::string dump;                  // folder for the graph after each pass; empty: none
};

// `others`: names of options that stand beside these; a message about an unknown one may suggest them. A name that ends
// in '.' is a family: "dims." stands for "dims.n".
Result<CompileOptions> parse_compile_options(const NamedAttrs& given, std::span<const std::string_view> others = {});
std::vector<AttrDef> compile_options();
// Of a family, such as "dims.<symbol>", the part before what completes it: "dims."; else the whole name.
std::string_view stem_of(std::string_view option);

}  // namespace rlx
