// SPDX-License-Identifier: Apache-2.0
// The device "reference": the oracle. It keeps the whole graph, interprets it with F in f64 and rounds at the outputs.
// It ignores the offsets of the plan, and does not try to be fast.
#include <algorithm>
#include <cstring>
#include <functional>

#include "device/registry.h"
#include "ops/interpret.h"

namespace rlx {

namespace {

class ReferenceExecutable : public Executable {
 public:
  explicit ReferenceExecutable(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {
    for (uint32_t i = 0; i < plan_->symbols.size(); i++)
      if (plan_->symbols[i].is_fresh()) fresh_.push_back(i);
    std::stable_sort(fresh_.begin(), fresh_.end(),
                     [this](uint32_t a, uint32_t b) { return plan_->symbols[a].made_by < plan_->symbols[b].made_by; });
  }
  Result<std::unique_ptr<ExecState>> make_state() const override { return std::make_unique<ExecState>(); }

  Result<Fence> submit(const RunArgs& args, ExecState&) const override { return Fence::finished(evaluate(args)); }

 private:
  // The bytes of a base as a tensor that does not own them.
  Result<Tensor> borrow(const ValueType& type, std::span<const SizeId> dims, uint32_t base, const RunArgs& args) const {
    Dims now = dims_at(dims, args.sizes.values);
    auto bytes = byte_size(type.dtype, element_count(std::span<const int64_t>(now)).value_or(0));
    return Tensor::adopt(type.dtype, now,
                         std::shared_ptr<std::byte>(std::shared_ptr<void>(), args.bases.values[base].host),
                         static_cast<size_t>(bytes.value_or(0)));
  }

  // A copy of a result that is also an input, because outputs may be written over that input.
  static Result<Tensor> apart(const Tensor& result, std::span<const Tensor> inputs) {
    bool is_input =
        std::any_of(inputs.begin(), inputs.end(), [&](const Tensor& it) { return it.data() == result.data(); });
    if (!is_input || !result.bytes()) return result;
    Tensor copy = RLX_TRY(Tensor::create(result.dtype(), result.dims()));
    std::memcpy(copy.data(), result.data(), result.bytes());
    return copy;
  }

  Result<std::vector<Tensor>> inputs_of(const RunArgs& args) const {
    const Graph& graph = plan_->graph();
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < plan_->inputs.size(); i++)
      inputs.push_back(
          RLX_TRY(borrow(graph.node(graph.inputs()[i]).out[0], plan_->inputs[i].dims, plan_->input_base(i), args)));
    return inputs;
  }

  // By name. Only the params among the residents: without a prologue the graph computes all others itself.
  Result<std::map<std::string, Tensor>> params_of(const RunArgs& args) const {
    const Graph& graph = plan_->graph();
    std::map<std::string, Tensor> params;
    const std::vector<Resident>& residents = plan_->lowered->residents;
    for (size_t i = 0; i < residents.size(); i++) {
      const Node& node = graph.node(residents[i].value);
      if (node.op != Op::kParam) continue;
      Dims dims;
      for (const Dim& dim : node.out[0].dims) dims.push_back(dim.literal());
      std::shared_ptr<std::byte> data(std::shared_ptr<void>(), args.bases.values[plan_->resident_base(i)].host);
      auto bytes = byte_size(node.out[0].dtype, element_count(std::span<const int64_t>(dims)).value_or(0));
      params.emplace(graph.leaf_name(residents[i].value.node),
                     RLX_TRY(Tensor::adopt(node.out[0].dtype, dims, data, static_cast<size_t>(bytes.value_or(0)))));
    }
    return params;
  }

  Status write_outputs(std::span<const Tensor> results, const RunArgs& args) const {
    const Graph& graph = plan_->graph();
    for (size_t i = 0; i < results.size(); i++) {
      DType declared = graph.type(graph.outputs()[i].value).dtype;
      Tensor result = RLX_TRY(convert(results[i], declared));
      if (result.bytes()) std::memcpy(args.bases.values[plan_->output_base(i)].host, result.data(), result.bytes());
    }
    return {};
  }

  Status evaluate(const RunArgs& args) const {
    std::vector<Tensor> inputs = RLX_TRY(inputs_of(args));
    std::map<std::string, Tensor> params = RLX_TRY(params_of(args));
    const std::function<Status()> poll = [&] { return args.cancel.is_set() ? cancelled() : Status(); };
    EvalOptions options{.mode = EvalMode::kOracle, .bounds = plan_->lowered->options.bounds, .poll = &poll};
    SymbolSizes sizes;
    for (uint32_t i = 0; i < plan_->symbols.size(); i++)
      if (!plan_->symbols[i].is_fresh()) sizes.emplace(plan_->symbols[i].name, args.symbols[i]);
    std::vector<Tensor> results = RLX_TRY(interpret(plan_->graph(), inputs, params, options, &sizes));
    for (uint32_t symbol : fresh_) RLX_TRY((*args.set_size)(symbol, sizes.at(plan_->symbols[symbol].name)));
    for (Tensor& result : results)
      if (!plan_->aliases.empty()) result = RLX_TRY(apart(result, inputs));
    return write_outputs(results, args);
  }

  std::shared_ptr<const Plan> plan_;
  std::vector<uint32_t> fresh_;  // symbols that the run finds, in the order of their steps
};

bool makes_symbol(const OpInfo& info) {
  return std::any_of(info.attrs.begin(), info.attrs.end(), [](const AttrDef& def) {
    return def.names == NamedSymbols::kFresh && def.kind == AttrKind::kStr;
  });
}

class ReferenceDevice : public Device {
 public:
  explicit ReferenceDevice(const DeviceContext& context) : Device(context) {
    info_.name = info_.kind = "reference";
    info_.prologue = false;
  }
  const DeviceInfo& info() const override { return info_; }
  Found find(const KernelQuery& query) const override {
    static constexpr Kernel kEval{.op = Op::kNone, .name = "eval", .path = Path::kReference};
    const OpInfo& info = query.graph.info(query.node);
    if (!info.primitive() && makes_symbol(info)) return {nullptr, "plans know the sizes that primitives find in data"};
    return {&kEval, {}};
  }
  Result<std::unique_ptr<Executable>> compile(std::shared_ptr<const Plan> plan, size_t) override {
    return std::unique_ptr<Executable>(new ReferenceExecutable(std::move(plan)));
  }

 private:
  DeviceInfo info_;
};

}  // namespace

Result<Devices> open_reference(const DeviceContext& context) {
  Devices devices;
  devices.push_back(std::make_unique<ReferenceDevice>(context));
  return devices;
}

}  // namespace rlx
