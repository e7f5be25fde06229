// SPDX-License-Identifier: Apache-2.0
#include "runtime/model.h"

#include <algorithm>
#include <bit>

#include "base/nearest.h"
#include "runtime/sizes.h"

namespace rlx {

// ---- policy ----

static Result<AttrValue> checked(std::string_view key, AttrKind kind, const AttrValue& value, double least = 0) {
  AttrDef def{key, kind, true, {}, {}, least};
  return coerce(def, value);
}

Result<Policy> parse_policy(const NamedAttrs& given) {
  Policy policy;
  for (const auto& [key, value] : given) {
    std::vector<std::string>* specs = key == "chain"   ? &policy.chain
                                      : key == "allow" ? &policy.allow
                                      : key == "deny"  ? &policy.deny
                                                       : nullptr;
    if (specs) {
      *specs = std::get<std::vector<std::string>>(RLX_TRY(checked(key, AttrKind::kStrs, value)));
    } else if (key == "cache.capacity") {
      policy.capacity = static_cast<size_t>(std::get<int64_t>(RLX_TRY(checked(key, AttrKind::kI64, value, 1))));
    } else if (key.starts_with("buckets.")) {
      std::vector<int64_t> ends;
      if (auto* text = std::get_if<std::string>(&value); !text || *text != "pow2")
        ends = std::get<std::vector<int64_t>>(RLX_TRY(checked(key, AttrKind::kI64s, value)));
      std::sort(ends.begin(), ends.end());
      policy.buckets.emplace_back(key.substr(8), std::move(ends));
    } else {
      policy.options.emplace_back(key, value);
    }
  }
  RLX_TRY(parse_compile_options(policy.options));
  return policy;
}

Result<std::shared_ptr<Model>> Model::create(std::shared_ptr<Env> env, const Graph& graph,
                                             std::shared_ptr<Weights> weights, const NamedAttrs& policy) {
  if (!weights) weights = std::make_shared<Weights>();
  std::shared_ptr<Model> model(new Model(std::move(env), graph, std::move(weights)));
  model->policy_ = RLX_TRY(parse_policy(policy));
  return model;
}

Status Model::set_policy(const NamedAttrs* policy) {
  Policy next;
  if (policy) next = RLX_TRY(parse_policy(*policy));
  std::lock_guard lock(mutex_);
  if (policy) policy_ = std::move(next);
  for (OnDevice& on : devices_) on.plans.clear();
  if (policy) devices_.clear();  // other options make another compiled graph; prepared forms stay in the weights
  return {};
}

Status Model::set_param(std::string_view name, Tensor tensor) {
  auto leaf = graph_.find_leaf(name);
  if (!leaf || graph_.node(*leaf).op != Op::kParam)
    return Status(Code::kNotFound, "the model has no param '" + std::string(name) + "'").with("value", name);
  RLX_TRY(check_param(graph_, leaf->node, tensor));
  std::lock_guard lock(mutex_);
  std::pair<std::string_view, Tensor> change{name, tensor};
  for (OnDevice& on : devices_) RLX_TRY(on.params->set({&change, 1}));
  auto known = std::find_if(set_.begin(), set_.end(), [&](const auto& pair) { return pair.first == name; });
  if (known != set_.end())
    known->second = std::move(tensor);
  else
    set_.emplace_back(name, std::move(tensor));
  return {};
}

// ---- devices ----

static bool lists(const std::vector<std::string>& specs, const Device& device) {
  return std::any_of(specs.begin(), specs.end(),
                     [&](const std::string& spec) { return spec == device.info().name || spec == device.info().kind; });
}

Result<std::vector<Device*>> Model::candidates(std::string_view device) const {
  std::vector<std::string> specs;
  {
    std::lock_guard lock(mutex_);
    if (device.empty() || device == "fastest") specs = policy_.chain;
  }
  bool is_given = !device.empty() && device != "fastest";
  for (std::string_view rest = is_given ? device : std::string_view(); !rest.empty();) {
    size_t comma = std::min(rest.find(','), rest.size());
    specs.emplace_back(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  if (specs.empty()) specs.emplace_back();
  std::vector<Device*> found;
  Status why;
  std::lock_guard lock(mutex_);
  for (const std::string& spec : specs) {
    auto it = env_->find_device(spec);
    if (!it.ok()) {
      why = it.status();
    } else if (lists(policy_.deny, **it) || (!policy_.allow.empty() && !lists(policy_.allow, **it))) {
      why = Status(Code::kUnavailable, "the policy does not allow the device '" + (*it)->info().name + "'");
    } else {
      found.push_back(*it);
    }
  }
  if (found.empty()) return why;
  return found;
}

Result<Device*> Model::resolve(std::string_view device) {
  std::vector<Device*> list = RLX_TRY(candidates(device));
  Status first;
  std::lock_guard lock(mutex_);
  for (Device* it : list) {
    auto on = on_device(it);
    if (on.ok()) return it;
    if (first.ok()) first = on.status();
  }
  return first;
}

// The compiled graph and params on a device; the caller holds the lock.
Result<Model::OnDevice*> Model::on_device(Device* device) {
  for (OnDevice& on : devices_)
    if (on.device == device) return &on;
  CompileOptions options = RLX_TRY(parse_compile_options(policy_.options));
  std::shared_ptr<const CompiledGraph> source = RLX_TRY(compile(graph_, *device, std::move(options)));
  std::shared_ptr<ParamStore> params = RLX_TRY(ParamStore::make(env_, std::move(source), weights_));
  std::vector<std::pair<std::string_view, Tensor>> changes(set_.begin(), set_.end());
  if (!changes.empty()) RLX_TRY(params->set(changes));
  devices_.push_back({device, std::move(params), {}});
  return &devices_.back();
}

// ---- sizes ----

static Status unknown_input(const Graph& graph, const std::string& which) {
  std::vector<std::string_view> known;
  for (uint32_t node : graph.inputs()) known.push_back(graph.leaf_name(node));
  return Status(Code::kNotFound, "the model has no input " + which + ", only " + listed(known)).with("value", which);
}

Result<Model::Sizes> Model::sizes_of(std::span<const std::string_view> names, std::span<const Tensor> in) const {
  std::vector<std::string_view> symbols;
  for (const auto& [name, range] : graph_.symbols()) symbols.push_back(name);
  std::vector<GivenDims> given;
  for (size_t i = 0; i < in.size(); i++) {
    std::optional<Value> leaf;
    if (!names.empty())
      leaf = graph_.find_leaf(names[i]);
    else if (i < graph_.inputs().size())
      leaf = Value{graph_.inputs()[i], 0};
    if (!leaf || graph_.node(*leaf).op != Op::kInput)
      return unknown_input(graph_, names.empty() ? std::to_string(i) : "'" + std::string(names[i]) + "'");
    if (in[i].rank() != graph_.type(*leaf).rank())
      return Status(Code::kShape, format("the input '{}' is {}, not {}", graph_.leaf_name(leaf->node),
                                         graph_.type(*leaf), type_text(in[i].dtype(), in[i].dims())))
          .with("value", graph_.leaf_name(leaf->node));
    given.push_back({&graph_.type(*leaf), in[i].dims(), graph_.leaf_name(leaf->node)});
  }
  std::vector<std::optional<int64_t>> solved = solve_symbols(symbols, given);
  Sizes sizes;
  for (size_t i = 0; i < symbols.size(); i++)
    if (solved[i]) sizes.emplace_back(symbols[i], *solved[i]);
  return sizes;
}

static const PlanSymbol* find_symbol(const Program& plan, std::string_view name) {
  for (const PlanSymbol& symbol : plan.plan().symbols)
    if (symbol.name == name) return &symbol;
  return nullptr;
}

static int64_t round_up(int64_t size) {
  return size <= 1 ? size : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(size)));
}

// The upper sizes of a plan: a bucket's end; else exact in the first plan, and later a power of two where every plan is
// outgrown.
Result<UpperSizes> Model::upper_sizes(const OnDevice& on, const Sizes& sizes) const {
  UpperSizes upper = RLX_TRY(parse_compile_options(policy_.options)).dims;
  for (const auto& [name, size] : sizes) {
    if (std::any_of(upper.begin(), upper.end(), [&, &name = name](const auto& pair) { return pair.first == name; }))
      continue;
    int64_t chosen = size;
    auto bucket = std::find_if(policy_.buckets.begin(), policy_.buckets.end(),
                               [&, &name = name](const auto& pair) { return pair.first == name; });
    if (bucket != policy_.buckets.end()) {
      auto end = std::lower_bound(bucket->second.begin(), bucket->second.end(), size);
      chosen = bucket->second.empty() ? round_up(size) : end == bucket->second.end() ? size : *end;
    } else if (!on.plans.empty()) {
      int64_t fits = INT64_MAX;
      for (const auto& plan : on.plans)
        if (const PlanSymbol* known = find_symbol(*plan, name); known && known->upper >= size)
          fits = std::min(fits, known->upper);
      chosen = fits != INT64_MAX ? fits : round_up(size);
    }
    upper.emplace_back(name, std::max(size, std::min(chosen, graph_.symbol_range(name).hi)));
  }
  return upper;
}

static bool fits(const Program& plan, const std::vector<std::pair<std::string, int64_t>>& sizes) {
  return std::all_of(sizes.begin(), sizes.end(), [&](const auto& pair) {
    const PlanSymbol* symbol = find_symbol(plan, pair.first);
    return !symbol || symbol->upper >= pair.second;
  });
}

Result<std::shared_ptr<Program>> Model::plan_for_sizes(Device* device, const Sizes& sizes) {
  std::lock_guard lock(mutex_);
  OnDevice* on = RLX_TRY(on_device(device));
  std::shared_ptr<Program> best;
  for (const auto& plan : on->plans)
    if (fits(*plan, sizes) && (!best || plan->plan().arena_bytes < best->plan().arena_bytes)) best = plan;
  if (best) return best;
  UpperSizes upper = RLX_TRY(upper_sizes(*on, sizes));
  std::shared_ptr<Program> made = RLX_TRY(Program::plan(on->params, upper));
  if (on->plans.size() >= policy_.capacity) on->plans.erase(on->plans.begin());
  on->plans.push_back(made);
  return made;
}

// ---- running ----

// What another device may do better; a wrong argument is wrong everywhere.
static bool tries_next(Code code) {
  return code == Code::kUnsupported || code == Code::kUnavailable || code == Code::kNoMemory || code == Code::kUnknown;
}

Result<std::shared_ptr<Program>> Model::get(std::string_view device,
                                            std::span<const std::pair<std::string_view, int64_t>> sizes) {
  Sizes wanted;
  std::vector<std::string_view> known;
  for (const auto& [symbol, range] : graph_.symbols()) known.push_back(symbol);
  for (const auto& [name, size] : sizes) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      return Status(Code::kNotFound, "the model has no size '" + std::string(name) + "', only " + listed(known))
          .with("value", name);
    wanted.emplace_back(name, size);
  }
  std::vector<Device*> list = RLX_TRY(candidates(device));
  Status first;
  for (Device* it : list) {
    auto plan = plan_for_sizes(it, wanted);
    if (plan.ok() || !tries_next(plan.status().code())) return plan;
    if (first.ok()) first = plan.status();
  }
  return first;
}

Result<Model::Ran> Model::run(std::string_view device, std::span<const std::string_view> in_names,
                              std::span<const Tensor> in, std::span<const std::string_view> out_names, size_t n_out) {
  Sizes sizes = RLX_TRY(sizes_of(in_names, in));
  std::vector<Device*> list = RLX_TRY(candidates(device));
  std::string attempts;
  Status last;
  for (Device* it : list) {
    auto plan = plan_for_sizes(it, sizes);
    auto outputs =
        plan.ok() ? (*plan)->run(in_names, in, out_names, n_out) : Result<std::vector<Tensor>>(Status(plan.status()));
    if (outputs.ok()) return Ran{std::move(*outputs), it};
    last = outputs.status();
    if (list.size() == 1 || !tries_next(last.code())) return last;
    attempts += "\n  " + it->info().name + ": " + std::string(last.message());
  }
  return Status(last.code(), "every device of the chain failed:" + attempts);
}

}  // namespace rlx
