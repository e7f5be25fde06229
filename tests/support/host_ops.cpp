// SPDX-License-Identifier: Apache-2.0
#include "tests/support/host_ops.h"

#include "ir/text.h"

namespace rlx::test {

static Result<std::vector<ValueType>> infer_scale(std::span<const ValueType* const> in, const NamedAttrs&) {
  if (in[0]->dtype == DType::kF32) return std::vector{*in[0]};
  return Status(Code::kDtype, "takes f32 only");
}

static Status run_scale(std::span<const Operand> in, std::span<const Operand> out, const NamedAttrs& attrs) {
  auto by = static_cast<float>(attrs.empty() ? 2.0 : std::get<double>(attrs[0].second));
  for (int64_t i = 0; i < in[0].count(); i++) out[0].as<float>()[i] = by * in[0].as<float>()[i];
  return {};
}

static std::shared_ptr<const CustomOps> make_host_ops() {
  auto ops = std::make_shared<CustomOps>();
  auto square = parse("graph (n) {\n x = input f32[n]\n y = mul(x, x)\n output y\n}");
  CustomOp ops_made[] = {{.name = "test.square", .body = std::make_shared<const Graph>(*std::move(square))},
                         {.name = "test.scale", .infer = infer_scale, .run = run_scale}};
  for (CustomOp& op : ops_made)
    if (!ops->add(std::make_shared<const CustomOp>(std::move(op))).ok()) return nullptr;
  return ops;
}

std::shared_ptr<const CustomOps> host_ops() {
  static const std::shared_ptr<const CustomOps> kOps = make_host_ops();
  return kOps;
}

}  // namespace rlx::test
