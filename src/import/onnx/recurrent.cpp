// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU, RNN: a scan a direction. What the inputs give to the gates is one product for all steps; a step adds what
// the state gives. With lengths, a sequence that has ended keeps its state, and its outputs are 0.
#include <algorithm>

#include "import/onnx/call.h"
#include "ops/act.h"

namespace rlx::onnx {

namespace {

struct Activation {
  std::string name;
  double alpha = 0, beta = 0;
};

struct ActivationRow {
  std::string_view theirs;
  const char* ours;  // null: spelled out below
  const char *alpha, *beta;
  double alpha_default, beta_default;
};
constexpr ActivationRow kActivations[] = {
    {"sigmoid", "sigmoid", nullptr, nullptr, 0, 0},
    {"tanh", "tanh", nullptr, nullptr, 0, 0},
    {"relu", "relu", nullptr, nullptr, 0, 0},
    {"softsign", "softsign", nullptr, nullptr, 0, 0},
    {"softplus", "softplus", nullptr, nullptr, 0, 0},
    {"leakyrelu", "leaky_relu", "alpha", nullptr, 0.01, 0},
    {"thresholdedrelu", "thresholded_relu", "alpha", nullptr, 1, 0},
    {"elu", "elu", "alpha", nullptr, 1, 0},
    {"hardsigmoid", "hard_sigmoid", "alpha", "beta", 0.2, 0.5},
    {"affine", nullptr, "alpha", "beta", 1, 0},
    {"scaledtanh", nullptr, "alpha", "beta", 1, 1},
};

const ActivationRow* find_activation(std::string_view name) {
  for (const ActivationRow& row : kActivations)
    if (row.theirs == name) return &row;
  return nullptr;
}

Expr apply(const Activation& act, Expr x) {
  const ActivationRow& row = *find_activation(act.name);
  if (act.name == "affine") return x * act.alpha + act.beta;
  if (act.name == "scaledtanh") return tanh(x * act.beta) * act.alpha;
  NamedAttrs attrs;
  if (row.alpha) attrs.emplace_back(row.alpha, act.alpha);
  if (row.beta) attrs.emplace_back(row.beta, act.beta);
  return x.builder().op(op_table().find(row.ours)->op(), {x}, attrs);
}

// Each function takes what parameters it has from the two lists in turn.
std::vector<Activation> activations_of(Call& call, size_t directions, std::initializer_list<const char*> fallback) {
  std::vector<std::string_view> names = call.texts("activations");
  std::vector<double> alphas = call.f64s("activation_alpha"), betas = call.f64s("activation_beta");
  if (names.empty())
    for (size_t i = 0; i < directions; i++) names.insert(names.end(), fallback.begin(), fallback.end());
  std::vector<Activation> acts;
  size_t alpha = 0, beta = 0;
  for (std::string_view given : names) {
    std::string name(given);
    for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    const ActivationRow* row = find_activation(name);
    if (!row) return call.fail(Code::kUnsupported, "the activation " + std::string(given)), std::vector<Activation>();
    Activation act{name, row->alpha_default, row->beta_default};
    if (row->alpha && alpha < alphas.size()) act.alpha = alphas[alpha++];
    if (row->beta && beta < betas.size()) act.beta = betas[beta++];
    acts.push_back(act);
  }
  if (acts.size() != directions * fallback.size()) call.fail(Code::kData, "'activations' does not suit the directions");
  return acts;
}

// To what 8 bits say of it, by its own range.
Expr rounded(Expr x) {
  Outputs q = x.builder().ops(Op::kDynamicQuantizeLinear, {x});
  return q.size() < 3 ? x : x.builder().op(Op::kDequantizeLinear, {q[0], q[1], q[2]});
}

// What a step of one direction works with; in the body of its scan.
struct Step {
  Expr given;               // [B, gates * H]: of the input, with its bias
  Expr recurrent;           // [gates * H, H]
  Expr bias;                // [gates * H]: of the state
  Expr peephole;            // [3 * H] of an LSTM, may be absent
  std::vector<Expr> state;  // h, and c of an LSTM
  std::vector<Activation> acts;
  double clip = 0;
  bool flag = false;  // input_forget of LSTM, linear_before_reset of GRU
  bool quantised = false;

  Expr part(Expr x, int64_t i) const {
    int64_t axis = static_cast<int64_t>(x.rank()) - 1;
    Dim size = state[0].dim(1);
    return slice(x, axis, Dim(i) * size, Dim(i + 1) * size);
  }
  Expr act(size_t i, Expr x) const {
    if (clip > 0) x = minimum(maximum(x, -clip), clip);
    return apply(acts[i], x);
  }
};

std::vector<Expr> step_rnn(const Step& s) {
  return {s.act(0, s.given + matmul(s.state[0], s.recurrent, false, true) + s.bias)};
}

// Gates: update z, reset r, hidden h.
std::vector<Expr> step_gru(const Step& s) {
  Expr h = s.state[0];
  auto gate = [&](int64_t i, Expr from) {
    int64_t zero = 0;
    Expr rows = slice(s.recurrent, zero, Dim(i) * h.dim(1), Dim(i + 1) * h.dim(1));
    return matmul(from, rows, false, true);
  };
  Expr z = s.act(0, s.part(s.given, 0) + gate(0, h) + s.part(s.bias, 0));
  Expr r = s.act(0, s.part(s.given, 1) + gate(1, h) + s.part(s.bias, 1));
  Expr inner = s.flag ? r * (gate(2, h) + s.part(s.bias, 2)) : gate(2, r * h) + s.part(s.bias, 2);
  Expr n = s.act(1, s.part(s.given, 2) + inner);
  return {(1.0 - z) * n + z * h};
}

// Gates: input i, output o, forget f, cell c.
std::vector<Expr> step_lstm(const Step& s) {
  Expr h = s.state[0], c = s.state[1];
  Expr z = s.given + matmul(s.quantised ? rounded(h) : h, s.recurrent, false, true) + s.bias;
  auto peep = [&](Expr gate, int64_t i, Expr from) { return s.peephole ? gate + s.part(s.peephole, i) * from : gate; };
  Expr i = s.act(0, peep(s.part(z, 0), 0, c));
  Expr f = s.flag ? 1.0 - i : s.act(0, peep(s.part(z, 2), 2, c));
  Expr cell = f * c + i * s.act(1, s.part(z, 3));
  Expr o = s.act(0, peep(s.part(z, 1), 1, cell));
  return {o * apply(s.acts[2], cell), cell};
}

struct Kind {
  int64_t gates;
  size_t states;
  std::vector<Expr> (*step)(const Step&);
  std::initializer_list<const char*> acts;
  const char* flag;
};
const Kind& kind_of(std::string_view op_type) {
  static const Kind kLstm{4, 2, step_lstm, {"Sigmoid", "Tanh", "Tanh"}, "input_forget"};
  static const Kind kGru{3, 1, step_gru, {"Sigmoid", "Tanh"}, "linear_before_reset"};
  static const Kind kRnn{1, 1, step_rnn, {"Tanh"}, ""};
  return op_type.ends_with("LSTM") ? kLstm : op_type == "GRU" ? kGru : kRnn;
}

// A body's inputs of the types of values around it.
Expr body_input(Builder& b, Expr like, const char* name, bool is_slice) {
  std::vector<Dim> dims = like.dims();
  if (is_slice) dims.erase(dims.begin());
  auto input = b.graph().add_input(name, like.dtype(), dims);
  return input.ok() ? b.wrap(*input) : b.fail(std::move(input).status());
}

struct Direction {
  Expr x, weight, recurrent, bias, lengths, peephole;  // bias, lengths, peephole: may be absent
  std::vector<Expr> state;
  std::vector<Activation> acts;
  double clip;
  bool flag, reverse, quantised;
};

// y [S, B, H], then the last states.
Outputs run_direction(Call& call, const Kind& kind, const Direction& d) {
  Builder& b = call.builder();
  Dim hidden = d.state[0].dim(1), steps = d.x.dim(0);
  Expr given = matmul(d.x, d.weight, false, true);
  Dim gates = Dim(kind.gates) * hidden;
  Expr bias = d.bias ? slice(d.bias, 0, gates, gates + gates) : broadcast_to(scalar_like(d.x, 0), {gates});
  if (d.bias) given = given + slice(d.bias, 0, 0, gates);
  Graph body("step");
  for (const auto& [name, range] : b.graph().symbols())
    if (Status status = body.declare_symbol(name, range); !status.ok()) return {b.fail(std::move(status))};
  Builder inner(body);
  std::vector<Expr> in = d.state;
  Step step{.acts = d.acts, .clip = d.clip, .flag = d.flag, .quantised = d.quantised};
  static constexpr const char* kStates[] = {"h", "c"};
  for (size_t i = 0; i < d.state.size(); i++) step.state.push_back(body_input(inner, d.state[i], kStates[i], false));
  in.push_back(given);
  step.given = body_input(inner, given, "given", true);
  Expr now, lengths;
  if (d.lengths) {
    in.push_back(iota(b, {steps}, 0, DType::kI64));
    now = body_input(inner, in.back(), "now", true);
  }
  in.push_back(d.recurrent);
  step.recurrent = body_input(inner, d.recurrent, "recurrent", false);
  in.push_back(bias);
  step.bias = body_input(inner, bias, "bias", false);
  if (d.peephole) in.push_back(d.peephole), step.peephole = body_input(inner, d.peephole, "peephole", false);
  if (d.lengths) in.push_back(d.lengths), lengths = body_input(inner, d.lengths, "lengths", false);
  std::vector<Expr> next = kind.step(step);
  Expr y = next[0];
  if (d.lengths) {
    Expr goes_on = unsqueeze(less(now, lengths), 1);
    for (size_t i = 0; i < next.size(); i++) next[i] = where(goes_on, next[i], step.state[i]);
    y = where(goes_on, y, 0);
  }
  next.push_back(y);
  if (!inner.status().ok()) return {b.fail(Status(inner.status()))};
  for (size_t i = 0; i < next.size(); i++)
    if (Status status = body.add_output("y" + std::to_string(i), next[i].value()); !status.ok())
      return {b.fail(std::move(status))};
  auto n_carry = static_cast<int64_t>(d.state.size()), n_xs = int64_t{d.lengths ? 2 : 1};
  Outputs results = call.ops("scan", in,
                             {{"n_carry", n_carry},
                              {"n_xs", n_xs},
                              {"reverse", int64_t{d.reverse}},
                              {"body", std::make_shared<const Graph>(std::move(body))}});
  std::rotate(results.begin(), results.end() - 1, results.end());
  return results;
}

Expr flipped(Call& call, Expr x, Expr lengths) {
  return call.op("reverse_sequence", {x, lengths}, {{"time_axis", int64_t{0}}, {"batch_axis", int64_t{1}}});
}

// Of a value of all directions: that of one of them.
Expr of_direction(Expr x, int64_t i) {
  if (!x || !x.valid()) return x;
  std::vector<Dim> dims(x.dims().begin() + 1, x.dims().end());
  return reshape(slice(x, 0, i, i + 1), dims);
}

// [directions, in, gates] of few bits, with a scale and a zero point a direction, or a gate of it: as LSTM has it.
Expr dequantised(Call& call, size_t weight, size_t scale) {
  Expr w = call.in(weight);
  auto along = [&](Expr x) {
    if (!x || !x.valid()) return x;
    return reshape(x, {x.dim(0), Dim(1), x.rank() > 1 ? x.dim(1) : Dim(1)});
  };
  Expr wide = cast(w, DType::kI32);
  if (Expr zero = along(call.in(scale + 1))) wide = wide - cast(zero, DType::kI32);
  return transpose(cast(wide, DType::kF32) * along(call.in(scale)), {0, 2, 1});
}

void build_recurrent(Call& call) {
  const Kind& kind = kind_of(call.kind().op_type);
  bool is_lstm = kind.states == 2, by_batch = call.i64("layout", 0) != 0;
  bool is_quantised = call.kind().op_type == "DynamicQuantizeLSTM";
  call.ignore("output_sequence");
  call.ignore("hidden_size");
  std::string_view direction = call.text("direction", "forward");
  int64_t directions = direction == "bidirectional" ? 2 : 1;
  double clip = call.f64("clip", 0);
  bool flag = *kind.flag && call.i64(kind.flag, 0) != 0;
  std::vector<Activation> acts = activations_of(call, static_cast<size_t>(directions), kind.acts);
  Expr x = call.in(0), w = call.in(1), r = call.in(2), lengths = call.in(4);
  if (!call.status().ok() || !x.valid() || !w.valid() || !r.valid()) return;
  if (x.rank() != 3 || w.rank() != 3 || r.rank() != 3 || !w.dim(0).is(directions))
    return call.fail(Code::kShape, "X, W and R must have rank 3, and W one slice a direction");
  if (is_quantised) x = rounded(x), w = dequantised(call, 1, 8), r = dequantised(call, 2, 10);
  if (by_batch) x = transpose(x, {1, 0, 2});
  if (lengths) lengths = cast(lengths, DType::kI64);
  Dim batch = x.dim(1), hidden = r.dim(2);
  std::vector<std::vector<Expr>> parts(1 + kind.states);  // y and states, a direction each
  for (int64_t i = 0; i < directions; i++) {
    bool is_back = i == 1 || direction == "reverse";
    Direction d{x,
                of_direction(w, i),
                of_direction(r, i),
                of_direction(call.in(3), i),
                lengths,
                is_lstm ? of_direction(call.in(7), i) : Expr(),
                {},
                {},
                clip,
                flag,
                is_back && !lengths,
                is_quantised};
    for (size_t s = 0; s < kind.states; s++) {
      Expr first = call.in(5 + s);
      if (first && by_batch) first = transpose(first, {1, 0, 2});
      d.state.push_back(first ? of_direction(first, i) : broadcast_to(scalar_like(x, 0), {batch, hidden}));
    }
    auto begin = acts.begin() + i * static_cast<int64_t>(kind.acts.size());
    d.acts = {begin, begin + static_cast<int64_t>(kind.acts.size())};
    if (is_back && lengths) d.x = flipped(call, x, lengths);
    Outputs results = run_direction(call, kind, d);
    if (results.size() != parts.size()) return;
    if (is_back && lengths) results[0] = flipped(call, results[0], lengths);
    for (size_t k = 0; k < parts.size(); k++) parts[k].push_back(unsqueeze(results[k], k == 0 ? 1 : 0));
  }
  for (size_t k = 0; k < parts.size(); k++) {
    Expr all = parts[k].size() == 1 ? parts[k][0] : concat(parts[k], k == 0 ? 1 : 0);
    if (by_batch) all = k == 0 ? transpose(all, {2, 0, 1, 3}) : transpose(all, {1, 0, 2});
    call.out(k, all);
  }
}

constexpr NodeKind kKinds[] = {
    {"LSTM", build_recurrent},
    {"GRU", build_recurrent},
    {"RNN", build_recurrent},
    {"DynamicQuantizeLSTM", build_recurrent, "", nullptr, {}, "com.microsoft"},
};

}  // namespace

std::span<const NodeKind> recurrent_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
