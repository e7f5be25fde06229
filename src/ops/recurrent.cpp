// SPDX-License-Identifier: Apache-2.0
#include "ops/recurrent.h"

#include <algorithm>

#include "ir/symbols.h"
#include "ops/fused_act.h"

namespace rlx {

// ---- scans ----

// An input for an operand of the scan, without its first `dropped_axes` axes: a slice of it.
static Expr body_input(Builder& body, Expr operand, const std::string& name, size_t dropped_axes) {
  if (!operand.valid()) return operand;
  std::vector<Dim> dims(operand.dims().begin() + static_cast<ptrdiff_t>(dropped_axes), operand.dims().end());
  if (Status status = share_symbols(operand.builder().graph(), dims, body.graph()); !status.ok())
    return body.fail(std::move(status));
  auto input = body.graph().add_input(name, operand.dtype(), std::move(dims));
  return input.ok() ? body.wrap(*input) : body.fail(std::move(input).status());
}

Outputs scan(std::span<const Expr> carries, std::span<const Expr> xs, std::span<const Expr> invariants, ScanOrder order,
             const StepBody& step) {
  Builder& b = carries.front().builder();
  Graph body("step");
  Builder inner(body);
  std::vector<Expr> in;
  auto inputs = [&](std::span<const Expr> operands, const char* name, size_t dropped_axes) {
    std::vector<Expr> made;
    for (Expr operand : operands) {
      made.push_back(body_input(inner, operand, name + std::to_string(made.size()), dropped_axes));
      in.push_back(operand);
    }
    return made;
  };
  std::vector<Expr> carried = inputs(carries, "carry", 0), slices = inputs(xs, "x", 1),
                    kept = inputs(invariants, "inv", 0);
  if (!inner.status().ok()) return {b.fail(Status(inner.status()))};
  std::vector<Expr> next = step(carried, slices, kept);
  if (!inner.status().ok()) return {b.fail(Status(inner.status()))};
  for (size_t i = 0; i < next.size(); i++)
    if (Status status = body.add_output("y" + std::to_string(i), next[i].value()); !status.ok())
      return {b.fail(std::move(status))};
  return b.ops(Op::kScan, in,
               {{"n_carry", static_cast<int64_t>(carries.size())},
                {"n_xs", static_cast<int64_t>(xs.size())},
                {"reverse", int64_t{order == ScanOrder::kReverse}},
                {"body", std::make_shared<const Graph>(std::move(body))}});
}

// ---- cells ----

// The values of one step of one direction, in the body of its scan.
struct CellStep {
  const Recurrence& all;
  std::span<const Activate> acts;
  std::span<const Expr> state;  // h, and c of an LSTM
  Expr given;                   // [B, gates * H]: the product with the input, plus its bias
  Expr recurrent;               // [gates * H, H]
  Expr bias;                    // [gates * H]: the bias of the state
  Expr peephole;                // may be absent

  Expr part(Expr x, int64_t i) const {
    Dim size = state[0].dim(1);
    return slice(x, static_cast<int64_t>(x.rank()) - 1, Dim(i) * size, Dim(i + 1) * size);
  }
  Expr act(size_t i, Expr x) const {
    if (all.clip > 0) x = minimum(maximum(x, -all.clip), all.clip);
    return acts[i](x);
  }
};

static std::vector<Expr> step_rnn(const CellStep& s) {
  return {s.act(0, s.given + matmul(s.state[0], s.recurrent, {.b = true}) + s.bias)};
}

static std::vector<Expr> step_gru(const CellStep& s) {
  Expr h = s.state[0];
  auto gate = [&](int64_t i, Expr from) {
    int64_t rows = 0;
    Expr weights = slice(s.recurrent, rows, Dim(i) * h.dim(1), Dim(i + 1) * h.dim(1));
    return matmul(from, weights, {.b = true});
  };
  Expr z = s.act(0, s.part(s.given, 0) + gate(0, h) + s.part(s.bias, 0));
  Expr r = s.act(0, s.part(s.given, 1) + gate(1, h) + s.part(s.bias, 1));
  Expr inner = s.all.reset_after ? r * (gate(2, h) + s.part(s.bias, 2)) : gate(2, r * h) + s.part(s.bias, 2);
  Expr n = s.act(1, s.part(s.given, 2) + inner);
  return {(1.0 - z) * n + z * h};
}

static std::vector<Expr> step_lstm(const CellStep& s) {
  Expr h = s.state[0], c = s.state[1];
  Expr factor = s.all.state_to_product ? s.all.state_to_product(h) : h;
  Expr z = s.given + matmul(factor, s.recurrent, {.b = true}) + s.bias;
  auto peep = [&](Expr gate, int64_t i, Expr from) { return s.peephole ? gate + s.part(s.peephole, i) * from : gate; };
  Expr i = s.act(0, peep(s.part(z, 0), 0, c));
  Expr f = s.all.input_forget ? 1.0 - i : s.act(0, peep(s.part(z, 2), 2, c));
  Expr cell = f * c + i * s.act(1, s.part(z, 3));
  Expr o = s.act(0, peep(s.part(z, 1), 1, cell));
  return {o * s.acts[2](cell), cell};
}

struct CellRow {
  int64_t gates;
  size_t states, acts;
  std::vector<Expr> (*step)(const CellStep&);
};
static constexpr CellRow kCells[] = {{1, 1, 1, step_rnn}, {3, 1, 2, step_gru}, {4, 2, 3, step_lstm}};

// ---- directions ----

// The part of one direction of a value for all directions.
static Expr of_direction(Expr x, int64_t i) {
  if (!x || !x.valid()) return x;
  return reshape(slice(x, 0, i, i + 1), {x.dims().begin() + 1, x.dims().end()});
}

static Expr flipped(Expr x, Expr lengths) {
  return x.builder().op(Op::kReverseSequence, {x, lengths}, {{"time_axis", int64_t{0}}, {"batch_axis", int64_t{1}}});
}

// y [S, B, H], then the last states. With lengths, each sequence is reversed within its own.
static Outputs run_direction(const Recurrence& all, int64_t direction) {
  const CellRow& cell = kCells[static_cast<size_t>(all.cell)];
  bool is_back = direction == 1 || all.reverse, flips = is_back && all.lengths;
  Expr x = flips ? flipped(all.x, all.lengths) : all.x, r = of_direction(all.r, direction);
  Dim steps = x.dim(0), batch = x.dim(1), hidden = r.dim(1), gates = Dim(cell.gates) * hidden;
  std::vector<Expr> state;
  for (Expr first : {all.h0, all.c0})
    if (state.size() < cell.states)
      state.push_back(first ? of_direction(first, direction) : broadcast_to(scalar_like(x, 0), {batch, hidden}));
  Expr given = matmul(x, of_direction(all.w, direction), {.b = true}), bias = of_direction(all.bias, direction);
  if (bias) given = given + slice(bias, 0, 0, gates);
  bias = bias ? slice(bias, 0, gates, gates + gates) : broadcast_to(scalar_like(x, 0), {gates});
  std::vector<Expr> xs{given}, invariants{r, bias};
  if (all.lengths) xs.push_back(iota(x.builder(), {steps}, 0, all.lengths.dtype()));
  if (all.peephole) invariants.push_back(of_direction(all.peephole, direction));
  if (all.lengths) invariants.push_back(all.lengths);
  auto step = [&](std::span<const Expr> carries, std::span<const Expr> slices, std::span<const Expr> kept) {
    auto acts = std::span(all.acts).subspan(static_cast<size_t>(direction) * cell.acts, cell.acts);
    std::vector<Expr> next =
        cell.step({all, acts, carries, slices[0], kept[0], kept[1], all.peephole ? kept[2] : Expr()});
    Expr y = next[0];
    if (all.lengths) {
      Expr is_running = unsqueeze(less(slices[1], kept.back()), 1);
      for (size_t i = 0; i < next.size(); i++) next[i] = where(is_running, next[i], carries[i]);
      y = where(is_running, y, 0);
    }
    next.push_back(y);
    return next;
  };
  Outputs results =
      scan(state, xs, invariants, is_back && !all.lengths ? ScanOrder::kReverse : ScanOrder::kForward, step);
  if (results.size() != state.size() + 1) return {};
  std::rotate(results.begin(), results.end() - 1, results.end());
  if (flips) results[0] = flipped(results[0], all.lengths);
  return results;
}

static bool shapes_agree(const Recurrence& all, const CellRow& cell) {
  Builder& b = all.x.builder();
  for (Expr e : {all.x, all.w, all.r})
    if (e.rank() != 3) return b.fail(wrong_rank("each of x, w and r", "3", e.rank())), false;
  const Dim &directions = all.r.dim(0), &batch = all.x.dim(1), &hidden = all.r.dim(2);
  Dim gates = Dim(cell.gates) * hidden;
  auto fits = [](Expr e, const char* what, std::initializer_list<Dim> dims) {
    return !e || require_shape(e, what, dims);
  };
  return fits(all.w, "w", {directions, gates, all.x.dim(2)}) && fits(all.r, "r", {directions, gates, hidden}) &&
         fits(all.bias, "bias", {directions, gates + gates}) && fits(all.lengths, "lens", {batch}) &&
         fits(all.h0, "h0", {directions, batch, hidden}) && fits(all.c0, "c0", {directions, batch, hidden}) &&
         fits(all.peephole, "peephole", {directions, Dim(3) * hidden});
}

Outputs run_recurrence(const Recurrence& all) {
  const CellRow& cell = kCells[static_cast<size_t>(all.cell)];
  if (!all.x.valid() || !all.w.valid() || !all.r.valid() || !shapes_agree(all, cell)) return {};
  std::vector<std::vector<Expr>> parts(1 + cell.states);  // y and the states; in each, one part per direction
  for (size_t i = 0; i * cell.acts < all.acts.size(); i++) {
    Outputs results = run_direction(all, static_cast<int64_t>(i));
    if (results.size() != parts.size()) return {};
    for (size_t k = 0; k < parts.size(); k++) parts[k].push_back(unsqueeze(results[k], k == 0 ? 1 : 0));
  }
  Outputs joined;
  for (size_t k = 0; k < parts.size(); k++)
    joined.push_back(parts[k].size() == 1 ? parts[k][0] : concat(parts[k], k == 0 ? 1 : 0));
  return joined;
}

// ---- ops ----

// The common part of the three ops. `acts` names the default activations of one direction.
static Outputs recurrent_op(Recurrence all, const Inputs& in, const Attrs& attrs,
                            std::initializer_list<const char*> acts) {
  all.x = in[0], all.w = in[1], all.r = in[2], all.bias = in[3], all.lengths = in[4], all.h0 = in[5];
  int64_t directions = attrs.is("direction", "bidirectional") ? 2 : 1;
  if (!all.w.dim(0).is(directions))
    return refuse(in, Code::kShape,
                  format("w has {} directions, '{}' is {}", all.w.dim(0), attrs.str("direction"), directions));
  all.reverse = attrs.is("direction", "reverse");
  all.clip = attrs.f64("clip");
  for (int64_t i = 0; i < directions; i++)
    for (const char* name : acts) all.acts.push_back([act = attrs.str(name)](Expr x) { return apply_act(x, act); });
  return run_recurrence(all);
}

Outputs decompose_rnn(const Inputs& in, const Attrs& attrs) {
  return recurrent_op({.cell = Cell::kRnn}, in, attrs, {"act"});
}
Outputs decompose_gru(const Inputs& in, const Attrs& attrs) {
  return recurrent_op({.cell = Cell::kGru, .reset_after = attrs.flag("linear_before_reset")}, in, attrs,
                      {"act_f", "act_g"});
}
Outputs decompose_lstm(const Inputs& in, const Attrs& attrs) {
  return recurrent_op({.cell = Cell::kLstm, .c0 = in[6], .peephole = in[7], .input_forget = attrs.flag("input_forget")},
                      in, attrs, {"act_f", "act_g", "act_h"});
}

// ---- state spaces ----

static Expr time_first(Expr x) {
  Axes perm = trailing_axes(0, x.rank());
  std::swap(perm[0], perm[1]);
  return transpose(x, perm);
}

static bool have_shapes(std::initializer_list<std::tuple<Expr, const char*, std::vector<Dim>>> wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [](const auto& each) {
    const auto& [x, what, dims] = each;
    return !x || require_shape(x, what, dims);
  });
}

// state = exp(dt a) state + dt b x, y = c state + d x, for each channel of x.
Outputs decompose_selective_scan(const Inputs& in, const Attrs&) {
  Builder& builder = in.builder();
  Expr x = in[0], dt = in[1], a = in[2], b = in[3], c = in[4], d = in[5], state = in[6];
  if (x.rank() != 3) return {builder.fail(wrong_rank("x", "3", x.rank())), builder.wrap(kInvalid)};
  if (a.rank() != 2) return {builder.fail(wrong_rank("a", "2", a.rank())), builder.wrap(kInvalid)};
  Dim batch = x.dim(0), steps = x.dim(1), channels = x.dim(2), size = a.dim(1);
  if (!have_shapes({{dt, "dt", x.dims()},
                    {a, "a", {channels, size}},
                    {b, "b", {batch, steps, size}},
                    {c, "c", {batch, steps, size}},
                    {d, "d", {channels}},
                    {state, "state", {batch, channels, size}}}))
    return {};
  if (!state) state = broadcast_to(scalar_like(x, 0), {batch, channels, size});
  std::array carries{state}, invariants{a};
  std::array xs{time_first(x), time_first(dt), time_first(b), time_first(c)};
  Outputs results =
      scan(carries, xs, invariants, ScanOrder::kForward, [](auto carry, auto now, auto kept) -> std::vector<Expr> {
        Expr change = unsqueeze(now[1], 2);
        Expr next = exp(change * kept[0]) * carry[0] + unsqueeze(now[1] * now[0], 2) * unsqueeze(now[2], 1);
        return {next, reduce(next * unsqueeze(now[3], 1), "sum", {2}, KeepDims::kNo)};
      });
  if (results.size() != 2) return {};
  Expr y = time_first(results[1]);
  return {d ? y + x * d : y, results[0]};
}

// kept = e^g state, state = kept + k' (v - k kept) beta, y = scale q state.
Outputs decompose_gated_delta_net(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr q = in[0], k = in[1], v = in[2], g = in[3], beta = in[4], state = in[5];
  for (Expr e : {q, v})
    if (e.rank() != 4) return {b.fail(wrong_rank("each of q, k and v", "4", e.rank())), b.wrap(kInvalid)};
  Dim batch = q.dim(0), steps = q.dim(1), heads = q.dim(2), width = q.dim(3), out = v.dim(3);
  if (!have_shapes({{k, "k", q.dims()},
                    {v, "v", {batch, steps, heads, out}},
                    {g, "g", {batch, steps, heads}},
                    {beta, "beta", {batch, steps, heads}},
                    {state, "state", {batch, heads, width, out}}}))
    return {};
  if (!state) state = broadcast_to(scalar_like(q, 0), {batch, heads, width, out});
  q = attrs.has("scale") ? q * attrs.f64("scale") : q / sqrt(b.size(width, q.dtype()));
  std::array carries{state};
  std::array xs{time_first(q), time_first(k), time_first(v), time_first(g), time_first(beta)};
  Outputs results = scan(carries, xs, {}, ScanOrder::kForward, [](auto carry, auto now, auto) -> std::vector<Expr> {
    auto row = [](Expr x) { return unsqueeze(x, 2); };                 // [B, H, 1, ..]
    auto each = [](Expr x) { return unsqueeze(unsqueeze(x, 2), 3); };  // of [B, H]
    Expr kept = exp(each(now[3])) * carry[0];
    Expr news = (row(now[2]) - matmul(row(now[1]), kept)) * each(now[4]);
    Expr next = kept + unsqueeze(now[1], 3) * news;
    Expr y = matmul(row(now[0]), next);
    return {next, reshape(y, {y.dim(0), y.dim(1), y.dim(3)})};
  });
  if (results.size() != 2) return {};
  return {time_first(results[1]), results[0]};
}

}  // namespace rlx
