// SPDX-License-Identifier: Apache-2.0
#include "passes/pass.h"

namespace rlx {

RewriteOptions PassContext::rewrite_options(std::string_view pass) const {
  RewriteOptions options;
  options.math = math;
  options.skip = skip;
  options.checks_indices = checks_indices;
  options.is_body = is_body;
  options.report = report;
  options.pass = pass;
  return options;
}

bool is_spelling(const Facts& facts, Value value) {
  return facts.graph().info(facts.graph().node(value)).is(kSpelling);
}

}  // namespace rlx
