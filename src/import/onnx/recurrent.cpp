// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU, RNN: the recurrences of ops/recurrent.h with ONNX's activations, which have parameters.
#include "ops/recurrent.h"

#include "import/onnx/call.h"

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

// Each function takes its parameters from the two lists in turn.
std::vector<Activation> activations_of(Call& call, size_t directions, std::initializer_list<const char*> fallback) {
  std::vector<std::string_view> names = call.texts("activations");
  std::vector<double> alphas = call.f64s("activation_alpha"), betas = call.f64s("activation_beta");
  if (names.empty())
    for (size_t i = 0; i < directions; i++) names.insert(names.end(), fallback.begin(), fallback.end());
  size_t count = directions * fallback.size();
  if (names.size() == 2 * count) names.resize(count);  // exporters write the default, which is of two directions
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
  if (acts.size() != count) call.fail(Code::kData, "'activations' does not suit the directions");
  return acts;
}

// x quantised to 8 bits by its own range, and back.
Expr rounded(Expr x) {
  Outputs q = x.builder().ops(Op::kDynamicQuantizeLinear, {x});
  return q.size() < 3 ? x : x.builder().op(Op::kDequantizeLinear, {q[0], q[1], q[2]});
}

struct Kind {
  Cell cell;
  std::initializer_list<const char*> acts;
  const char* flag;
};
const Kind& kind_of(std::string_view op_type) {
  static const Kind kLstm{Cell::kLstm, {"Sigmoid", "Tanh", "Tanh"}, "input_forget"};
  static const Kind kGru{Cell::kGru, {"Sigmoid", "Tanh"}, "linear_before_reset"};
  static const Kind kRnn{Cell::kRnn, {"Tanh"}, ""};
  return op_type.ends_with("LSTM") ? kLstm : op_type == "GRU" ? kGru : kRnn;
}

// 8-bit weights [directions, in, gates], with a scale and a zero point per direction or per gate, as real values in the
// layout of LSTM.
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
  bool is_lstm = kind.cell == Cell::kLstm, by_batch = call.i64("layout", 0) != 0;
  call.ignore("output_sequence");
  call.ignore("hidden_size");
  std::string_view direction = call.text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return call.fail(Code::kData, "'direction' is " + std::string(direction));
  size_t directions = direction == "bidirectional" ? 2 : 1;
  bool flag = *kind.flag && call.i64(kind.flag, 0) != 0;
  auto batch_second = [&](Expr x) { return x && by_batch ? transpose(x, {1, 0, 2}) : x; };
  Recurrence all{.cell = kind.cell,
                 .x = call.in(0),
                 .w = call.in(1),
                 .r = call.in(2),
                 .bias = call.in(3),
                 .lengths = call.in(4),
                 .h0 = batch_second(call.in(5)),
                 .c0 = is_lstm ? batch_second(call.in(6)) : Expr(),
                 .peephole = is_lstm ? call.in(7) : Expr(),
                 .reverse = direction == "reverse",
                 .acts = {},
                 .clip = call.f64("clip", 0),
                 .input_forget = is_lstm && flag,
                 .reset_after = flag};
  for (const Activation& act : activations_of(call, directions, kind.acts))
    all.acts.push_back([act](Expr x) { return apply(act, x); });
  if (!call.status().ok() || !all.x.valid() || !all.w.valid() || !all.r.valid()) return;
  if (all.w.rank() != 3 || !all.w.dim(0).is(static_cast<int64_t>(directions)))
    return call.fail(Code::kShape, "W must have rank 3, and one slice a direction");
  if (call.kind().op_type == "DynamicQuantizeLSTM") {
    all.x = rounded(all.x), all.w = dequantised(call, 1, 8), all.r = dequantised(call, 2, 10);
    all.state_to_product = rounded;
  }
  all.x = batch_second(all.x);
  Outputs results = run_recurrence(all);
  for (size_t k = 0; k < results.size(); k++)
    call.out(k, !by_batch ? results[k] : transpose(results[k], k == 0 ? Axes{2, 0, 1, 3} : Axes{1, 0, 2}));
}

constexpr NodeKind kKinds[] = {
    {"LSTM", build_recurrent},
    {"GRU", build_recurrent},
    {"RNN", build_recurrent},
    microsoft("DynamicQuantizeLSTM", build_recurrent),
};

}  // namespace

std::span<const NodeKind> recurrent_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
