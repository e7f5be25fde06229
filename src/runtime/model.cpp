// SPDX-License-Identifier: Apache-2.0
// A model's policy, params and devices, and how it runs: on the devices in order, by a plan or a special model.
// Plans are in model_plans.cpp, reports in model_report.cpp.
#include "runtime/model.h"

#include <algorithm>
#include <map>

#include "base/check_size.h"
#include "base/contains.h"
#include "base/nearest.h"
#include "base/size_failure.h"
#include "base/split.h"
#include "base/undo.h"
#include "compile/bodies.h"
#include "passes/at_sizes.h"
#include "runtime/special.h"

namespace rlx {

Result<std::shared_ptr<Model>> Model::create(std::shared_ptr<Env> env, const Graph& graph,
                                             std::shared_ptr<Weights> weights, const NamedAttrs& policy,
                                             std::shared_ptr<SpecialModels> special) {
  RLX_TRY(check_outputs(graph));
  std::shared_ptr<Model> model = RLX_TRY(make(std::move(env), graph, std::move(weights), policy));
  if (!special && graph.symbols().empty()) return model;
  auto remake = [graph](const ImportChoices& choices, Weights&) { return at_sizes(graph, choices.dims); };
  model->special_ = special ? std::move(special) : std::make_shared<SpecialModels>(remake, SpecialModels::From::kGraph);
  return model;
}

Result<std::shared_ptr<Model>> Model::make(std::shared_ptr<Env> env, const Graph& graph,
                                           std::shared_ptr<Weights> weights, const NamedAttrs& policy,
                                           std::vector<std::string> open_ranks) {
  if (!weights) weights = std::make_shared<Weights>();
  Graph whole = RLX_TRY(with_body_params(graph));
  std::shared_ptr<Model> model(new Model(std::move(env), std::move(whole), std::move(weights)));
  model->open_ranks_ = std::move(open_ranks);
  model->policy_ = std::make_shared<const Policy>(RLX_TRY(parse_policy(policy)));
  RLX_TRY(check_policy(*model->policy_, *model->env_, graph, model->open_ranks_));
  return model;
}

Result<std::shared_ptr<Model>> Model::create_special(std::shared_ptr<Env> env, const Graph& interface,
                                                     std::shared_ptr<Weights> weights, const NamedAttrs& policy,
                                                     std::shared_ptr<SpecialModels> special, Status why,
                                                     std::vector<std::string> open_ranks) {
  std::shared_ptr<Model> model =
      RLX_TRY(make(std::move(env), interface, std::move(weights), policy, std::move(open_ranks)));
  model->special_ = std::move(special);
  model->not_general_ = std::move(why);
  return model;
}

bool Model::has_open_rank(std::string_view input) const {
  return contains(open_ranks_, input);
}

Result<std::shared_ptr<Model>> Model::create_for(const Model& general, const Graph& graph, const Policy& policy) {
  RLX_TRY(check_outputs(graph));
  Graph whole = RLX_TRY(with_body_params(graph));
  std::shared_ptr<Model> model(new Model(general.env_, std::move(whole), general.weights_));
  model->taken_ = general.taken_;
  model->policy_ = std::make_shared<const Policy>(without_absent_sizes(policy, graph));
  return model;
}

std::shared_ptr<const Policy> Model::policy() const {
  std::lock_guard lock(mutex_);
  return policy_;
}

Status Model::set_policy(const NamedAttrs* policy) {
  std::shared_ptr<const Policy> next;
  if (policy) {
    next = std::make_shared<const Policy>(RLX_TRY(parse_policy(*policy)));
    RLX_TRY(check_policy(*next, *env_, graph_, open_ranks_));
  }
  std::vector<std::shared_ptr<OnDevice>> gone;  // released without the lock
  std::vector<std::shared_ptr<Program>> programs;
  std::shared_ptr<const LastCall> last;
  std::unique_lock lock(mutex_);
  size_t count = 0;
  for (const auto& on : devices_) count += on->programs.size();
  programs.reserve(count);  // nothing has changed yet, and from here on nothing fails
  last.swap(last_call_);
  for (const auto& on : devices_) {
    std::move(on->programs.begin(), on->programs.end(), std::back_inserter(programs));
    on->programs.clear();
  }
  if (policy) {
    std::swap(policy_, next);
    gone.swap(devices_);  // other options need another compiled graph; prepared forms stay in the weights
  }
  lock.unlock();
  if (special_) special_->forget();
  return {};
}

// Prepares the param for every device without the lock, then publishes it for all of them at once.
Status Model::set_param(std::string_view name, const Tensor& tensor) {
  auto leaf = graph_.find_leaf(name);
  if (!leaf || graph_.node(*leaf).op != Op::kParam) return unknown_param(graph_, name);
  RLX_TRY(check_param(graph_, leaf->node, tensor));
  std::pair<std::string_view, Tensor> change{name, tensor};
  std::map<ParamStore*, ParamStore::Change> tried;
  Replaced gone;  // released without the lock: that may call the host
  while (true) {
    std::vector<std::shared_ptr<OnDevice>> on;
    {
      std::lock_guard lock(mutex_);
      on = devices_;
    }
    std::vector<ParamStore::Change> changes;
    for (const auto& it : on) {
      auto earlier = tried.find(it->params.get());
      const ParamStore::Change* before = earlier == tried.end() ? nullptr : &earlier->second;
      changes.push_back(RLX_TRY(it->params->prepare({&change, 1}, *weights_, before)));
    }
    std::unique_lock lock(mutex_);
    bool is_current = on == devices_;
    for (size_t i = 0; i < on.size() && is_current; i++) is_current = on[i]->params->is_current(changes[i]);
    if (!is_current) {
      lock.unlock();
      for (size_t i = 0; i < on.size(); i++) tried[on[i]->params.get()] = std::move(changes[i]);
      continue;
    }
    gone = note_given(name, tensor);
    for (size_t i = 0; i < on.size(); i++) on[i]->params->publish(changes[i]);  // nothing fails any more
    lock.unlock();
    for (ParamStore::Change& it : changes) ParamStore::settle(it);
    return {};
  }
}

// The place of a param among those that were given. A new one has no tensor, and a version before all others.
Model::Given& Model::given_at(std::string_view name) {
  auto known = given_at_.find(name);
  if (known != given_at_.end()) return given_[known->second];
  given_.push_back({std::string(name), Tensor(), 0});
  Undo undo([&] { given_.pop_back(); });
  given_at_.emplace(std::string(name), given_.size() - 1);
  undo.commit();
  return given_.back();
}

// If it throws, nothing has changed.
Model::Replaced Model::note_given(std::string_view name, Tensor tensor) {
  Given& given = given_at(name);
  Tensor taken = taken_->set(name, tensor);  // the last step that may fail
  given.version = params_version_.fetch_add(1, std::memory_order_acq_rel) + 1;
  return {std::exchange(given.tensor, std::move(tensor)), std::move(taken)};
}

Model::GivenParams Model::params_given(uint64_t after, uint64_t until) const {
  std::lock_guard lock(mutex_);
  GivenParams given{{}, params_version_};
  for (const Given& it : given_)
    if (it.version > after && it.version <= until) given.params.emplace_back(it.name, it.tensor);
  return given;
}

// ---- devices ----

std::vector<Device*> Model::viable() const {
  std::shared_ptr<const Policy> policy = this->policy();
  std::vector<Device*> found;
  for (const auto& device : env_->devices())
    if (allows(*policy, *device) &&
        (!must_be_named(*device) || lists(policy->allow, *device) || lists(policy->chain, *device)))
      found.push_back(device.get());
  return found;
}

Result<std::vector<Device*>> Model::candidates(std::string_view device) const {
  std::vector<std::string> specs;
  std::shared_ptr<const Policy> policy;
  {
    std::lock_guard lock(mutex_);
    policy = policy_;
    if (device.empty()) specs = policy->chain;
  }
  for (std::string_view spec : split(device, ',')) specs.emplace_back(spec);
  if (specs.empty()) specs = allowed(*policy, *env_);
  if (specs.empty()) return none_allowed(*policy, *env_);
  std::vector<Device*> found;
  Status why;
  for (const std::string& spec : specs) {
    auto it = spec.empty() ? Result<Device*>(env_->no_device(spec)) : env_->find_device(spec);
    if (it.ok() && allows(*policy, **it)) {
      found.push_back(*it);
    } else if (why.ok()) {
      why = !it.ok()
                ? it.status()
                : Status(Code::kUnavailable, format("the policy does not allow the device '{}'", (*it)->info().name))
                      .with("device", (*it)->info().name);
    }
  }
  if (found.empty()) return why;
  return found;
}

Result<Device*> Model::resolve(std::string_view device) {
  std::vector<Device*> list = RLX_TRY(candidates(device));
  if (!not_general_.ok()) return list.front();  // whether it can run is known only with inputs
  Status first;
  for (Device* it : list) {
    auto on = on_device(it);
    if (on.ok()) return it;
    if (first.ok()) first = on.status();
  }
  return first;
}

// The compiled graph and params on a device.
Result<std::shared_ptr<Model::OnDevice>> Model::on_device(Device* device) {
  std::shared_ptr<OnDevice> made;  // before the lock: what has failed is released without it
  TakenParams::Taking taking(*taken_);
  Turn turn(turns_, device);
  std::unique_lock lock(mutex_);
  do {
    for (const auto& on : devices_)
      if (on->device == device && on->is_ready) return on;
  } while (!turn.begin(lock));
  std::shared_ptr<const Policy> policy = policy_;
  lock.unlock();
  CompileOptions options = RLX_TRY(parse_compile_options(policy->options));
  Device* fallback = env_->fallback_of(*device);
  std::shared_ptr<const CompiledGraph> source =
      RLX_TRY(compile(graph_, *device, std::move(options), env_->host().get(), fallback));
  auto params = RLX_TRY(ParamStore::make(env_, std::move(source), weights_, Progress::kTold, &taking));
  made = std::make_shared<OnDevice>(OnDevice{device, std::move(params)});
  lock.lock();
  if (policy_ != policy) {  // it serves this call alone
    lock.unlock();
    GivenParams given = params_given(0);
    std::vector<std::pair<std::string_view, Tensor>> changes(given.params.begin(), given.params.end());
    RLX_TRY(made->params->set(changes));
    taking.keep();
    return made;
  }
  devices_.push_back(made);  // from here on whatever is set is set here too
  uint64_t version = params_version_;
  lock.unlock();
  Undo leave([&] {
    std::lock_guard leaving(mutex_);
    std::erase(devices_, made);
  });
  RLX_TRY(catch_up(*made, version));
  leave.commit();
  taking.keep();
  lock.lock();
  made->is_ready = true;
  return made;
}

// Sets the params that were set before `on` took part in changes, except for those that have been set again since.
Status Model::catch_up(OnDevice& on, uint64_t version) {
  ParamStore::Change change;
  for (bool is_first = true;; is_first = false) {
    GivenParams given = params_given(0, version);
    if (given.params.empty()) return {};
    std::vector<std::pair<std::string_view, Tensor>> changes(given.params.begin(), given.params.end());
    change = RLX_TRY(on.params->prepare(changes, *weights_, is_first ? nullptr : &change));
    std::unique_lock lock(mutex_);
    if (!on.params->publish(change)) continue;
    lock.unlock();
    ParamStore::settle(change);
    return {};
  }
}

// ---- running ----

// Whether another device may succeed where this one failed. A wrong argument is wrong on every device.
static bool tries_next(const Status& failure) {
  Code code = failure.code();
  if (failure.detail(kMayHaveEffects)) return false;
  return code == Code::kUnsupported || code == Code::kUnavailable || code == Code::kNoMemory || code == Code::kUnknown;
}

// Checks a size that the caller asks for.
static Status check_wanted(const Graph& graph, std::string_view name, int64_t size) {
  if (!graph.has_symbol(name)) {
    std::vector<std::string_view> known;
    for (const auto& [symbol, range] : graph.symbols()) known.push_back(symbol);
    return Status(Code::kNotFound, format("the model has no size '{}'{}", name, only(known)))
        .with("value", name)
        .with("expected", listed(known));
  }
  return check_size(name, size, graph.symbol_range(name));
}

Status Model::check_general() const {
  if (not_general_.ok()) return {};
  return Status(Code::kUnsupported,
                "the model has no graph for all sizes and values: " + std::string(not_general_.message()));
}

Result<std::shared_ptr<Program>> Model::get(std::string_view device,
                                            std::span<const std::pair<std::string_view, int64_t>> sizes) {
  RLX_TRY(check_general());
  Sizes wanted;
  std::unordered_set<std::string_view> names;
  for (const auto& [name, size] : sizes) {
    RLX_TRY(check_wanted(graph_, name, size));
    if (!names.insert(name).second)
      return Status(Code::kInvalidArgument, format("the size '{}' is given twice", name)).with("value", name);
    wanted.emplace_back(name, size);
  }
  UpperSizes of_policy = RLX_TRY(parse_compile_options(policy()->options)).dims;
  RLX_TRY(check_all_wanted(std::move(names), of_policy, "give one, or"));
  std::vector<Device*> list = RLX_TRY(candidates(device));
  Status first;
  for (Device* it : list) {
    auto program = program_for_sizes(it, wanted);
    if (program.ok() || !tries_next(program.status())) return program;
    if (first.ok()) first = program.status();
  }
  return first;
}

bool Model::LastCall::fits(const Call& call) const {
  auto same_dims = [](const Dims& known, const Tensor& tensor) { return std::ranges::equal(known, tensor.dims()); };
  return spec == call.device && std::ranges::equal(in_names, call.in_names) &&
         std::equal(dims.begin(), dims.end(), call.in.begin(), call.in.end(), same_dims);
}

// Without memory for it, the next call searches again: this one has succeeded.
void Model::note_last_call(const Call& call, Device* device, const std::shared_ptr<Program>& program) try {
  auto made = std::make_shared<LastCall>(LastCall{std::string(call.device), {}, {}, device, program});
  made->in_names.assign(call.in_names.begin(), call.in_names.end());
  for (const Tensor& tensor : call.in) made->dims.emplace_back(tensor.dims());
  std::shared_ptr<const LastCall> next = std::move(made);  // later the previous one, released without the lock
  {
    std::lock_guard lock(mutex_);
    for (const auto& on : devices_)
      if (contains(on->programs, program)) last_call_.swap(next);
  }
  if (next && next->program != program) retire_if_large(*next->program);
} catch (const std::bad_alloc&) {}

// A plan for a range of sizes may need far more memory than these sizes do: (n - k)^2 is planned as n^2 + k^2. A run
// that has begun is not begun again where it may have written its inputs.
static bool may_pass_at_sizes(const Status& failure, const Policy& policy) {
  auto shares_memory = [](const auto& option) { return option.first == "io.alias"; };
  if (failure.detail(kMayHaveEffects)) return false;
  if (failure.detail(kFoundSizes) && std::ranges::any_of(policy.options, shares_memory)) return false;
  return failure.detail(kDependsOnSizes) || failure.detail(kUnequalSizes) || failure.code() == Code::kNoMemory;
}

Result<Model::Ran> Model::run(const Call& call) {
  auto ran = not_general_.ok() ? run_general(call) : run_special(call, Serves::kAllSizes);
  if (ran.ok() || !special_ || !may_pass_at_sizes(ran.status(), *policy())) return ran;
  auto again = run_special(call, Serves::kOneSet);
  // The general graph's error names the sizes that do not fit.
  return again.ok() || !not_general_.ok() || !again.status().detail(kDependsOnSizes) ? std::move(again)
                                                                                     : std::move(ran);
}

// Another special model runs now, or none.
void Model::set_last_special(std::shared_ptr<Model> next) {
  {
    std::lock_guard lock(mutex_);
    if (last_special_ == next) return;
    last_special_.swap(next);
  }
  std::shared_ptr<const LastCall> last;
  if (next) {
    std::lock_guard lock(next->mutex_);
    last = next->last_call_;
  }
  if (last) retire_if_large(*last->program);
}

Result<Model::Ran> Model::run_special(const Call& call, Serves serves) {
  auto special = special_->find(*this, call.in_names, call.in, serves);
  if (!special.ok()) return std::move(special).status();
  set_last_special(*special);
  return (*special)->run(call);
}

Result<Model::Ran> Model::run_general(const Call& call) {
  std::shared_ptr<const LastCall> last;
  {
    std::lock_guard lock(mutex_);
    last = last_call_;
  }
  if (last && last->fits(call)) {
    log_hit(*last->device);
    auto outputs = last->program->run(call.in_names, call.in, call.out_names, call.n_out);
    if (outputs.ok()) return Ran{std::move(*outputs), last->device};
    if (!tries_next(outputs.status())) return outputs.status();
  }
  return run_anew(call);
}

Result<Model::Ran> Model::run_anew(const Call& call) {
  set_last_special(nullptr);
  Sizes sizes = RLX_TRY(sizes_of(call.in_names, call.in));
  std::vector<Device*> list = RLX_TRY(candidates(call.device));
  std::string attempts;
  Status last;
  for (Device* it : list) {
    auto program = program_for_sizes(it, sizes);
    auto outputs = program.ok() ? (*program)->run(call.in_names, call.in, call.out_names, call.n_out)
                                : Result<std::vector<Tensor>>(Status(program.status()));
    if (outputs.ok()) {
      if (it == list.front())
        note_last_call(call, it, *program);  // else the next call has to ask the first device again
      return Ran{std::move(*outputs), it};
    }
    last = outputs.status();
    if (program.ok()) retire_if_large(**program);
    if (list.size() == 1 || !tries_next(last)) return last;
    attempts += "\n  " + it->info().name + ": " + std::string(last.message());
  }
  return Status(last.code(), "every device of the chain failed:" + attempts);
}

}  // namespace rlx
