// SPDX-License-Identifier: Apache-2.0
// How a param set follows from the one before it: the pieces that read a changed param are computed again, without a
// lock, and the new set is published if nobody else has published meanwhile.
#include "runtime/params.h"

#include <algorithm>
#include <numeric>

#include "base/nearest.h"
#include "base/undo.h"

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
  return Status(Code::kNotFound, format("there is no param '{}'{}", name, hint.empty() ? only(known) : hint))
      .with("value", name)
      .with("expected", listed(known));
}

Result<Tensor> TakenParams::Taking::take(const std::string& name, const Weights& weights) {
  std::lock_guard lock(from_.mutex_);
  names_.push_back(name);
  Undo undo([&] { names_.pop_back(); });
  auto known = from_.tensors_.find(name);
  if (known == from_.tensors_.end()) {
    Tensor tensor = RLX_TRY(weights.find_undropped(name));
    if (!tensor) return tensor;
    known = from_.tensors_.emplace(name, Taken{std::move(tensor)}).first;
  }
  undo.commit();
  known->second.stores++;
  return known->second.tensor;
}

void TakenParams::give_back(std::span<const std::string> names) noexcept {
  for (const std::string& name : names) {
    Tensor gone;  // released without the lock
    std::lock_guard lock(mutex_);
    auto known = tensors_.find(name);
    if (--known->second.stores > 0 || known->second.is_set) continue;
    gone = std::move(known->second.tensor);
    tensors_.erase(known);
  }
}

Tensor TakenParams::set(std::string_view name, Tensor tensor) {
  std::lock_guard lock(mutex_);
  Taken& taken = tensors_[std::string(name)];
  taken.is_set = true;
  return std::exchange(taken.tensor, std::move(tensor));
}

Result<std::shared_ptr<ParamStore>> ParamStore::make(std::shared_ptr<Env> env,
                                                     std::shared_ptr<const CompiledGraph> source,
                                                     std::shared_ptr<Weights> weights, Progress progress,
                                                     TakenParams::Taking* taking) {
  auto params = std::make_shared<ParamStore>();
  params->env_ = std::move(env);
  params->progress_ = progress;
  params->compiled_graph_ = std::move(source);
  params->prologue_ = std::make_unique<Prologue>(params->env_, params->compiled_graph_);
  params->weights_ = weights ? std::move(weights) : std::make_shared<Weights>();
  const Graph& graph = params->compiled_graph_->graph();
  std::vector<ParamSet::Param> first;
  first.reserve(graph.params().size());
  for (uint32_t node : graph.params()) {
    const std::string& name = graph.leaf_name(node);
    Tensor tensor = RLX_TRY(taking ? taking->take(name, *params->weights_) : params->weights_->find_undropped(name));
    if (tensor) RLX_TRY(check_param(graph, node, tensor));
    first.push_back({std::move(tensor)});
  }
  params->note_reads();
  ParamSet set;
  set.params = SharedVector(std::move(first));
  Change change = RLX_TRY(params->change_to(nullptr, std::move(set), {}, *params->weights_));
  params->publish(change);
  params->first_ = std::move(change);
  return params;
}

void ParamStore::note_reads() {
  const std::vector<Piece>& pieces = compiled_graph_->pieces;
  readers_.resize(compiled_graph_->graph().params().size());
  is_read_plainly_.resize(readers_.size(), false);
  for (uint32_t i = 0; i < pieces.size(); i++)
    for (uint32_t param : pieces[i].params) {
      if (readers_[param].empty()) needed_.push_back(param);
      readers_[param].push_back(i);
      if (pieces[i].is_plain()) is_read_plainly_[param] = true;
    }
}

// The pieces that read one of these params, in order.
std::vector<uint32_t> ParamStore::readers_of(std::span<const uint32_t> params) const {
  std::vector<uint32_t> readers;
  for (uint32_t param : params) readers.insert(readers.end(), readers_[param].begin(), readers_[param].end());
  std::sort(readers.begin(), readers.end());
  readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
  return readers;
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
  const Graph& graph = compiled_graph_->graph();
  std::shared_ptr<const ParamSet> now = current();
  for (size_t i = 0; i < graph.params().size(); i++) {
    const std::string& name = graph.leaf_name(graph.params()[i]);
    Result<Tensor> held = weights.find_undropped(name);
    if (!held.ok() && now->params[i].dropped) continue;  // what was made of its bytes is here
    Tensor tensor = RLX_TRY(std::move(held));
    if (tensor) changes.emplace_back(name, std::move(tensor));
  }
  return set_from(changes, weights);
}

// The change is prepared from a snapshot. If another thread has published meanwhile, it is prepared again from what
// that thread published.
Status ParamStore::set_from(std::span<const std::pair<std::string_view, Tensor>> changes, Weights& owner) {
  Change change = RLX_TRY(prepare(changes, owner));
  while (!publish(change)) change = RLX_TRY(prepare(changes, owner, &change));
  settle(change);
  return {};
}

Result<ParamStore::Change> ParamStore::prepare(std::span<const std::pair<std::string_view, Tensor>> changes,
                                               Weights& owner, const Change* tried) const {
  const Graph& graph = compiled_graph_->graph();
  std::shared_ptr<const ParamSet> base = current();
  std::vector<SharedVector<ParamSet::Param>::Change> given;
  std::vector<uint32_t> changed;
  for (const auto& [name, tensor] : changes) {
    auto index = graph.index_of_param(name);
    if (!index) return unknown_param(graph, name);
    RLX_TRY(check_param(graph, graph.params()[*index], tensor));
    const Tensor& before = base->params[*index].tensor;
    if (!before || before.storage() != tensor.storage()) changed.push_back(static_cast<uint32_t>(*index));
    given.push_back({*index, {tensor}});
  }
  ParamSet next = *base;
  next.params = next.params.with(std::move(given));
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

void ParamStore::settle(Change& change) noexcept {
  for (const auto& [name, tensor] : change.originals) change.owner->drop(name, tensor);
  change = {};
}

// ---- preparing ----

Device& ParamStore::reader_of(const Piece& piece) const {
  return compiled_graph_->lowered->residents[piece.residents[0]].on_host ? *compiled_graph_->fallback
                                                                         : *compiled_graph_->device;
}

// The value where the device can use it: itself, or a copy in the memory of the device.
static Result<Tensor> on_device(Device& device, Tensor value) {
  if (device.can_use(value.storage()->buffer())) return value;
  auto buffer = RLX_TRY(device.allocate(value.bytes(), MemoryKind::kPrepared));
  RLX_TRY(copy_bytes({*buffer, 0}, value.storage()->place(), value.bytes()));
  size_t bytes = value.bytes();
  return Tensor::over(value.dtype(), value.dims(), std::make_shared<Storage>(std::move(buffer), 0, bytes));
}

namespace {

struct PieceParams {
  std::vector<Tensor> tensors;
  bool are_owned = true;  // every tensor is one of the weights object: a form of them may be kept there
};

// What a piece reads of a set; nothing if a param is missing.
Result<std::optional<PieceParams>> params_of(const Piece& piece, const Graph& graph, const ParamSet& set,
                                             const Weights& owner) {
  PieceParams params;
  for (uint32_t index : piece.params) {
    const std::string& name = graph.leaf_name(graph.params()[index]);
    const auto& [tensor, dropped] = set.params[index];
    if (dropped) return dropped_bytes(name);
    if (!tensor) return std::optional<PieceParams>();
    Tensor owned = owner.find(name);  // of the same bytes: a form is forgotten when this one goes
    bool is_owned = owned.storage() == tensor.storage();
    params.tensors.push_back(is_owned ? owned : tensor);
    params.are_owned &= is_owned;
  }
  return std::optional(std::move(params));
}

}  // namespace

FormKey ParamStore::form_key(const Piece& piece, std::span<const Tensor> params) const {
  FormKey key{.forms = {}, .device = reader_of(piece).info().name, .body = piece.body, .sources = {}};
  for (uint32_t index : piece.residents) {
    const auto& form = compiled_graph_->lowered->residents[index].form;
    key.forms.push_back(form ? form->text() : "");
  }
  if (!piece.is_leaf)
    key.kernels = compiled_graph_->options.kernels, key.dispatch_of = compiled_graph_->options.dispatch_of;
  for (const Tensor& param : params) key.sources.push_back(param.storage());
  return key;
}

// Computes and packs: each dense value goes as soon as its packed form is there.
Result<std::vector<Tensor>> ParamStore::made_of(const Piece& piece, std::span<const Tensor> params) const {
  Device& device = reader_of(piece);
  std::vector<Tensor> made;
  if (!piece.is_leaf) {
    made = RLX_TRY(prologue_->run(piece.body, device, params));
  } else if (!params.empty()) {
    made = {params[0]};
  } else {
    const Resident& resident = compiled_graph_->lowered->residents[piece.residents[0]];
    made = {*resident.scope->graph.constant(resident.value)};
  }
  for (size_t i = 0; i < made.size(); i++)
    made[i] = piece.packs[i] ? RLX_TRY(prologue_->run(piece.packs[i], device, {&made[i], 1}))[0]
                             : RLX_TRY(on_device(device, std::move(made[i])));
  return made;
}

// A param or constant as it is; a Tensor that tests false where the param has to be copied or is not there.
Result<Tensor> ParamStore::plain(const Piece& piece, const ParamSet& set, Weights& owner) const {
  Device& device = reader_of(piece);
  if (piece.params.empty()) {
    const Resident& resident = compiled_graph_->lowered->residents[piece.residents[0]];
    return on_device(device, *resident.scope->graph.constant(resident.value));
  }
  uint32_t leaf = piece.params[0];
  const auto& [tensor, dropped] = set.params[leaf];
  if (dropped || !tensor || !device.can_use(tensor.storage()->buffer())) return Tensor();
  const Graph& graph = compiled_graph_->graph();
  return owner.aligned(graph.leaf_name(graph.params()[leaf]), tensor, *env_);
}

// The values of the residents of a piece, computed from the params of a set; they test false if one of these is
// missing.
Result<std::vector<Tensor>> ParamStore::residents_of(const Piece& piece, const ParamSet& set, Weights& owner,
                                                     std::optional<FormKey>& made) const {
  auto params = RLX_TRY(params_of(piece, compiled_graph_->graph(), set, owner));
  if (!params) return std::vector<Tensor>(piece.residents.size());
  if (!params->are_owned) return made_of(piece, params->tensors);
  FormKey key = form_key(piece, params->tensors);
  auto note_and_make = [&] {
    made = key;
    return made_of(piece, params->tensors);
  };
  return owner.form(key, note_and_make);
}

// Prepares what differs from `base`; null: everything.
Result<ParamStore::Change> ParamStore::change_to(std::shared_ptr<const ParamSet> base, ParamSet next,
                                                 std::span<const uint32_t> changed, Weights& owner,
                                                 const Change* tried) const {
  std::vector<uint32_t> stale, all;  // pieces, params
  if (base) {
    stale = readers_of(changed);
  } else {
    stale.resize(compiled_graph_->pieces.size());
    std::iota(stale.begin(), stale.end(), 0U);
    all.resize(readers_.size());
    std::iota(all.begin(), all.end(), 0U);
    changed = all;
  }
  Prepared prepared;
  Undo undo([&] {  // also where a callback of the host throws
    for (const FormKey& form : prepared.forms) owner.forget(form);
  });
  if (tried)
    std::erase_if(stale, [&](uint32_t i) { return reuse(compiled_graph_->pieces[i], *tried->next, next, prepared); });
  RLX_TRY(prepare_all(stale, next, owner, prepared));
  apply(prepared, next);
  note_first_unset(next);
  Change change{std::move(base), nullptr, {}, &owner};
  if (compiled_graph_->options.drop_weights) change.originals = take_originals(next, changed);
  change.next = std::make_shared<const ParamSet>(std::move(next));
  undo.commit();
  return change;
}

// Uses again what an earlier try has made of the very params that are set now.
bool ParamStore::reuse(const Piece& piece, const ParamSet& tried, const ParamSet& next, Prepared& prepared) const {
  for (uint32_t param : piece.params)
    if (tried.params[param].tensor.storage() != next.params[param].tensor.storage() || next.params[param].dropped)
      return false;
  std::vector<Tensor> made;
  for (uint32_t index : piece.residents) {
    if (!tried.residents[index]) return false;
    made.push_back(tried.residents[index]);
  }
  return note(piece, std::move(made), prepared).ok();
}

// A plain piece is the common case: it needs no list of its tensors.
Status ParamStore::prepare_one(const Piece& piece, const ParamSet& next, Weights& owner, Prepared& prepared) const {
  if (piece.is_plain()) {
    if (Tensor tensor = RLX_TRY(plain(piece, next, owner))) {
      prepared.residents.emplace_back(piece.residents[0], std::move(tensor));
      return {};
    }
  }
  std::optional<FormKey> made;
  auto result = residents_of(piece, next, owner, made);
  if (made) prepared.forms.push_back(*std::move(made));
  return note(piece, std::move(result), prepared);
}

Status ParamStore::prepare_all(std::span<const uint32_t> stale, const ParamSet& next, Weights& owner,
                               Prepared& prepared) const {
  const Host* host = progress_ == Progress::kTold ? env_->host().get() : nullptr;
  prepared.residents.reserve(stale.size());
  for (size_t i = 0; i < stale.size(); i++) {
    RLX_TRY(prepare_one(compiled_graph_->pieces[stale[i]], next, owner, prepared));
    if (host) RLX_TRY(host->progress("prepare params", static_cast<double>(i + 1) / static_cast<double>(stale.size())));
  }
  if (host && !stale.empty())
    host->log(LogLevel::kTrace, "params", [&] {
      return format("prepared {} of the params, {} anew", plural(prepared.residents.size(), "value"),
                    prepared.forms.size());
    });
  return {};
}

// An index out of range in a body is an error of the run that enters it (semantics.md B3).
Status ParamStore::note(const Piece& piece, Result<std::vector<Tensor>> result, Prepared& prepared) const {
  bool is_of_body = compiled_graph_->lowered->residents[piece.residents[0]].scope != compiled_graph_->lowered.get();
  Status status = result.ok() ? Status() : result.status();
  if (!status.ok() && !(is_of_body && status.code() == Code::kRange)) return status;
  for (size_t i = 0; i < piece.residents.size(); i++) {
    prepared.residents.emplace_back(piece.residents[i], result.ok() ? std::move((*result)[i]) : Tensor());
    if (!status.ok()) prepared.failures.emplace_back(piece.residents[i], status);
  }
  return {};
}

// The list of failures is as long as that of residents, so it is copied only where one comes or goes.
void ParamStore::apply(Prepared& prepared, ParamSet& next) const {
  std::vector<size_t> cured;  // residents that failed before
  if (next.failures)
    for (const auto& [index, value] : prepared.residents)
      if (!(*next.failures)[index].ok()) cured.push_back(index);
  const size_t count = compiled_graph_->lowered->residents.size();
  if (next.residents.size() == count) {
    next.residents = next.residents.with(std::move(prepared.residents));
  } else {  // the first set
    std::vector<Tensor> all(count);
    for (auto& [index, value] : prepared.residents) all[index] = std::move(value);
    next.residents = SharedVector(std::move(all));
  }
  if (cured.empty() && prepared.failures.empty()) return;
  auto failures = next.failures ? *next.failures : std::vector<Status>(count);
  for (size_t index : cured) failures[index] = {};
  for (auto& [index, status] : prepared.failures) failures[index] = std::move(status);
  next.failures = std::make_shared<const std::vector<Status>>(std::move(failures));
}

// A param that is set stays set, so the search begins where that of the earlier set ended.
void ParamStore::note_first_unset(ParamSet& set) const {
  const Graph& graph = compiled_graph_->graph();
  while (set.needed_set < needed_.size() && set.params[needed_[set.needed_set]].is_set()) set.needed_set++;
  bool is_whole = set.needed_set == needed_.size();
  set.first_unset = is_whole ? nullptr : &graph.leaf_name(graph.params()[needed_[set.needed_set]]);
}

// Gives up the originals of params that are read in prepared forms only.
std::vector<std::pair<std::string_view, Tensor>> ParamStore::take_originals(ParamSet& set,
                                                                            std::span<const uint32_t> changed) const {
  const Graph& graph = compiled_graph_->graph();
  std::vector<std::pair<std::string_view, Tensor>> originals;
  std::vector<SharedVector<ParamSet::Param>::Change> dropped;
  for (uint32_t param : changed) {
    const Tensor& tensor = set.params[param].tensor;
    if (is_read_plainly_[param] || !tensor) continue;
    originals.emplace_back(graph.leaf_name(graph.params()[param]), tensor);
    dropped.push_back({param, {Tensor(), true}});
  }
  set.params = set.params.with(std::move(dropped));
  return originals;
}

}  // namespace rlx
