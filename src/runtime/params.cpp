// SPDX-License-Identifier: Apache-2.0
#include "runtime/params.h"

#include <algorithm>

#include "base/nearest.h"

namespace rlx {

Status check_param(const Graph& graph, uint32_t node, const Tensor& tensor) {
  const ValueType& type = graph.node(node).out[0];
  const std::string& name = graph.leaf_name(node);
  auto refuse = [&](Code code) {
    std::string got = type_text(tensor.dtype(), tensor.dims());
    return Status(code, "the param '" + name + "' is " + text_of(type) + ", not " + got)
        .with("value", name)
        .with("expected", text_of(type))
        .with("got", got);
  };
  if (tensor.dtype() != type.dtype) return refuse(Code::kDtype);
  bool fits = tensor.rank() == type.rank();
  for (size_t i = 0; fits && i < type.rank(); i++) fits = type.dims[i].is(tensor.dims()[i]);
  return fits ? Status() : refuse(Code::kShape);
}

Status unknown_param(const Graph& graph, std::string_view name) {
  std::vector<std::string_view> known;
  for (uint32_t node : graph.params()) known.push_back(graph.leaf_name(node));
  std::string hint = did_you_mean(name, known);
  return Status(Code::kNotFound,
                format("there is no param '{}'{}", name, hint.empty() ? ", only " + listed(known) : hint))
      .with("value", name)
      .with("expected", listed(known));
}

Result<std::shared_ptr<ParamStore>> ParamStore::make(std::shared_ptr<Env> env,
                                                     std::shared_ptr<const CompiledGraph> source,
                                                     std::shared_ptr<Weights> weights, bool is_told) {
  auto params = std::make_shared<ParamStore>();
  params->env_ = std::move(env);
  params->is_told_ = is_told;
  params->source_ = std::move(source);
  params->prologue_ = std::make_unique<Prologue>(params->env_, params->source_);
  params->weights_ = weights ? std::move(weights) : std::make_shared<Weights>();
  const Graph& graph = params->source_->graph();
  ParamSet first;
  first.params.reserve(graph.params().size());
  params->index_of_.reserve(graph.params().size());
  for (uint32_t node : graph.params()) {
    params->index_of_.emplace(graph.leaf_name(node), params->index_of_.size());
    Tensor tensor = params->weights_->find(graph.leaf_name(node));
    if (tensor) RLX_TRY(check_param(graph, node, tensor));
    first.params.push_back(std::move(tensor));
  }
  first.dropped.resize(first.params.size(), false);
  first.residents.resize(params->source_->pieces.size());
  Change change = RLX_TRY(params->change_to(nullptr, std::move(first), {}, *params->weights_));
  params->publish(change);
  settle(change);
  return params;
}

std::shared_ptr<const ParamSet> ParamStore::current() const {
  std::lock_guard lock(mutex_);
  return current_;
}

Status ParamStore::set(std::span<const std::pair<std::string_view, Tensor>> changes) {
  return set_from(changes, *weights_);
}

Status ParamStore::set_all(Weights& weights) {
  std::vector<std::pair<std::string_view, Tensor>> changes;
  const Graph& graph = source_->graph();
  for (uint32_t node : graph.params())
    if (Tensor tensor = weights.find(graph.leaf_name(node))) changes.emplace_back(graph.leaf_name(node), tensor);
  return set_from(changes, weights);
}

// Prepared from a snapshot; where another thread has published meanwhile, again from what it published.
Status ParamStore::set_from(std::span<const std::pair<std::string_view, Tensor>> changes, Weights& owner) {
  Change change = RLX_TRY(prepare(changes, owner));
  while (!publish(change)) change = RLX_TRY(prepare(changes, owner, &change));
  settle(change);
  return {};
}

Result<ParamStore::Change> ParamStore::prepare(std::span<const std::pair<std::string_view, Tensor>> changes,
                                               Weights& owner, const Change* tried) const {
  const Graph& graph = source_->graph();
  std::shared_ptr<const ParamSet> base = current();
  ParamSet next = *base;
  std::vector<bool> changed(next.params.size(), false);
  for (const auto& [name, tensor] : changes) {
    auto found = index_of_.find(name);
    if (found == index_of_.end()) return unknown_param(graph, name);
    size_t index = found->second;
    RLX_TRY(check_param(graph, graph.params()[index], tensor));
    changed[index] = !next.params[index] || next.params[index].storage() != tensor.storage();
    next.params[index] = tensor;
    next.dropped[index] = false;
  }
  return change_to(std::move(base), std::move(next), changed, owner, tried);
}

bool ParamStore::publish(Change& change) {
  {
    std::lock_guard lock(mutex_);
    if (current_ != change.base) return false;
    std::swap(current_, change.next);
  }
  version_.fetch_add(1, std::memory_order_release);
  return true;
}

void ParamStore::settle(Change& change) {
  for (const auto& [name, tensor] : change.originals) change.owner->drop(name, tensor);
  change = {};
}

// ---- preparing ----

Device& ParamStore::reader_of(const Resident& resident) const {
  return resident.on_host ? *source_->fallback : *source_->device;
}

// As the device can use it: the same bytes, or a copy in its own memory.
static Result<Tensor> on_device(Device& device, Tensor value) {
  if (device.can_use(*value.storage()->buffer())) return value;
  auto buffer = RLX_TRY(device.allocate(value.bytes(), MemoryKind::kPrepared));
  RLX_TRY(copy_bytes({*buffer, 0}, value.storage()->place(), value.bytes()));
  size_t bytes = value.bytes();
  return Tensor::over(value.dtype(), value.dims(), std::make_shared<Storage>(std::move(buffer), 0, bytes));
}

// The value of one resident, computed from the params of a set. False where one of them is missing.
Result<Tensor> ParamStore::resident(size_t index, const ParamSet& set, Weights& owner,
                                    std::optional<FormKey>& made) const {
  const Piece& piece = source_->pieces[index];
  const Resident& resident = source_->lowered->residents[index];
  const Graph& graph = source_->graph();
  Device& device = reader_of(resident);
  bool is_plain = piece.is_leaf && !piece.pack;
  if (is_plain && piece.params.empty()) return on_device(device, *resident.scope->graph.constant(resident.value));
  auto is_usable = [&](const Tensor& tensor) { return !tensor || device.can_use(*tensor.storage()->buffer()); };
  if (is_plain && !set.dropped[piece.params[0]] && is_usable(set.params[piece.params[0]])) {
    uint32_t param = piece.params[0];
    return owner.aligned(graph.leaf_name(graph.params()[param]), set.params[param], *env_);
  }
  std::vector<Tensor> params;
  FormKey key{resident.packing ? resident.packing->text() : "",
              device.info().name,
              source_->options.kernels.bounds,
              piece.body,
              {}};
  bool is_owned = true;  // every tensor is one of the weights object: its form may be kept there
  for (uint32_t param : piece.params) {
    const std::string& name = graph.leaf_name(graph.params()[param]);
    if (set.dropped[param])
      return Status(Code::kState, "the bytes of '" + name + "' were released by weights.drop").with("value", name);
    if (!set.params[param]) return Tensor();
    params.push_back(set.params[param]);
    key.sources.push_back(set.params[param].storage());
    is_owned &= owner.find(name).storage() == set.params[param].storage();
  }
  auto dense = [&]() -> Result<Tensor> {
    if (!piece.is_leaf) return prologue_->run(piece.body, device, params);
    return params.empty() ? *resident.scope->graph.constant(resident.value) : params[0];
  };
  auto make = [&]() -> Result<Tensor> {
    Tensor value = RLX_TRY(dense());
    return piece.pack ? prologue_->run(piece.pack, device, {&value, 1}) : on_device(device, std::move(value));
  };
  if (!is_owned) return make();
  auto note_and_make = [&] {
    made = key;
    return make();
  };
  return owner.form(key, note_and_make);
}

// Without a base, everything is new.
Result<ParamStore::Change> ParamStore::change_to(std::shared_ptr<const ParamSet> base, ParamSet next,
                                                 const std::vector<bool>& changed, Weights& owner,
                                                 const Change* tried) const {
  const std::vector<Piece>& pieces = source_->pieces;
  std::vector<size_t> stale;
  for (size_t i = 0; i < pieces.size(); i++) {
    bool is_stale = !base || std::any_of(pieces[i].params.begin(), pieces[i].params.end(),
                                         [&](uint32_t param) { return changed[param]; });
    if (is_stale && !(tried && take_over(i, *tried->next, next))) stale.push_back(i);
  }
  std::vector<FormKey> forms;  // that are new
  if (Status status = prepare_all(stale, next, owner, forms); !status.ok()) {
    for (const FormKey& form : forms) owner.forget(form);
    return status;
  }
  note_hole(next);
  Change change{std::move(base), nullptr, {}, &owner};
  if (source_->options.drop_weights) change.originals = drop_originals(next);
  change.next = std::make_shared<const ParamSet>(std::move(next));
  return change;
}

// What a try has made of the very params that are set now.
bool ParamStore::take_over(size_t index, const ParamSet& tried, ParamSet& next) const {
  for (uint32_t param : source_->pieces[index].params)
    if (tried.params[param].storage() != next.params[param].storage() || next.dropped[param]) return false;
  if (!tried.residents[index]) return false;
  next.residents[index] = tried.residents[index];
  return note_failure(index, Status(), next).ok();
}

Status ParamStore::prepare_all(std::span<const size_t> stale, ParamSet& next, Weights& owner,
                               std::vector<FormKey>& forms) const {
  const Host* host = is_told_ ? env_->host().get() : nullptr;
  for (size_t i = 0; i < stale.size(); i++) {
    std::optional<FormKey> made;
    auto result = resident(stale[i], next, owner, made);
    if (made) forms.push_back(*std::move(made));
    Status status = result.ok() ? Status() : result.status();
    if (result.ok()) next.residents[stale[i]] = *std::move(result);
    RLX_TRY(note_failure(stale[i], std::move(status), next));
    if (host) RLX_TRY(host->progress("prepare params", static_cast<double>(i + 1) / static_cast<double>(stale.size())));
  }
  if (host && !stale.empty())
    host->log(LogLevel::kTrace, "params", [&] {
      return format("prepared {} of the params, {} anew", plural(stale.size(), "value"), forms.size());
    });
  return {};
}

// An index out of range in a body is an error of the run that enters it (semantics.md B3).
Status ParamStore::note_failure(size_t index, Status status, ParamSet& set) const {
  if (!status.ok()) {
    bool is_of_body = source_->lowered->residents[index].scope != source_->lowered.get();
    if (!is_of_body || status.code() != Code::kRange) return status;
    set.residents[index] = {};
    set.failures.resize(set.residents.size());
  }
  if (!set.failures.empty()) set.failures[index] = std::move(status);
  return {};
}

void ParamStore::note_hole(ParamSet& set) const {
  const Graph& graph = source_->graph();
  set.hole = nullptr;
  for (const Piece& piece : source_->pieces)
    for (uint32_t param : piece.params)
      if (!set.hole && !set.params[param] && !set.dropped[param]) set.hole = &graph.leaf_name(graph.params()[param]);
}

// Gives up the originals of params that are read in prepared forms only.
std::vector<std::pair<std::string_view, Tensor>> ParamStore::drop_originals(ParamSet& set) const {
  const Graph& graph = source_->graph();
  std::vector<bool> needed(set.params.size(), false);
  for (const Piece& piece : source_->pieces)
    if (piece.is_leaf && !piece.pack)
      for (uint32_t param : piece.params) needed[param] = true;
  std::vector<std::pair<std::string_view, Tensor>> originals;
  for (size_t i = 0; i < set.params.size(); i++) {
    if (needed[i] || !set.params[i]) continue;
    originals.emplace_back(graph.leaf_name(graph.params()[i]), std::move(set.params[i]));
    set.params[i] = {};
    set.dropped[i] = true;
  }
  return originals;
}

}  // namespace rlx
