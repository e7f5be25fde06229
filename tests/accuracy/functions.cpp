// SPDX-License-Identifier: Apache-2.0
#include "functions.h"

#include <cmath>
#include <numbers>
#include <sstream>

#include "base/format.h"
#include "ir/text.h"
#include "ops/expr.h"
#include "ops/interpret.h"
#include "tests/support/isas.h"

namespace rlx::accuracy {

// ---- which functions there are ----

static std::vector<std::string> listed(std::string_view choices) {
  std::vector<std::string> names;
  std::istringstream text{std::string(choices)};
  for (std::string name; std::getline(text, name, '|');) names.push_back(name);
  return names;
}

// Every combination of the values of enums and flags; other attributes keep their defaults. Empty: one has no default.
static std::vector<NamedAttrs> variants_of(const OpInfo& info) {
  std::vector<NamedAttrs> variants(1);
  for (const AttrDef& def : info.attrs) {
    std::vector<AttrValue> values;
    if (def.kind == AttrKind::kEnum)
      for (const std::string& choice : listed(def.choices)) values.emplace_back(choice);
    else if (def.kind == AttrKind::kBool)
      values = {int64_t{0}, int64_t{1}};
    else if (def.required)
      return {};
    if (values.empty()) continue;
    std::vector<NamedAttrs> longer;
    for (const NamedAttrs& variant : variants)
      for (const AttrValue& value : values) {
        longer.push_back(variant);
        longer.back().emplace_back(std::string(def.name), value);
      }
    variants = std::move(longer);
  }
  return variants;
}

static std::string name_of(const OpInfo& info, const NamedAttrs& attrs) {
  std::string text(info.name);
  for (const auto& [name, value] : attrs) {
    auto* choice = std::get_if<std::string>(&value);
    text += format(" {}={}", name, choice ? *choice : std::to_string(std::get<int64_t>(value)));
  }
  return text;
}

static bool takes(const OpInfo& info, DType dtype, size_t arity) {
  if (!info.is(kElementwise) || !info.is(kPure) || !info.is_for_users() || info.signature.out.size() != 1) return false;
  size_t required = 0;
  for (const Port& port : info.signature.in) {
    if (port.variadic || (!port.optional && !port.set.has(dtype))) return false;
    required += !port.optional;
  }
  if (arity > 1 && !info.primitive()) return false;
  return required == arity;
}

// y = function(x0, x1 ...), or the error of the builder.
static Result<Graph> graph_of(const Function& function, DType dtype) {
  Graph graph;
  Builder b(graph);
  std::vector<Expr> in;
  for (size_t i = 0; i < function.arity; i++)
    in.push_back(b.wrap(RLX_TRY(graph.add_input("x" + std::to_string(i), dtype, {Dim(kBlock)}))));
  Outputs out = b.ops(function.info->op(), in, function.attrs);
  RLX_TRY(b.status());
  RLX_TRY(graph.add_output("y", out[0].value()));
  return graph;
}

std::vector<Function> functions_of(DType dtype, size_t arity) {
  std::vector<Function> functions;
  for (const OpInfo& info : op_table().rows()) {
    if (!takes(info, dtype, arity)) continue;
    for (NamedAttrs& attrs : variants_of(info)) {
      Function function{&info, arity, std::move(attrs), {}};
      function.name = name_of(info, function.attrs);
      auto graph = graph_of(function, dtype);
      if (graph.ok() && !is_complex(graph->type(graph->outputs()[0].value).dtype)) functions.push_back(function);
    }
  }
  return functions;
}

double bound_of(const Function& function, DType dtype) {
  Tol tol = function.info->tol;
  return tol == Tol::kE0 ? 0 : tol == Tol::kU1 || is_half(dtype) ? 1 : 4;
}

// ---- how the CPU computes them ----

static const std::shared_ptr<Env>& env() {
  static const std::shared_ptr<Env> kEnv = *Env::create({.threads = 0, .backends = {{"cpu", test::open_isas}}});
  return kEnv;
}

std::vector<Way> ways_of(const Function& function, DType dtype) {
  std::vector<Way> ways;
  Graph graph = *graph_of(function, dtype);
  for (const std::string& device : test::isa_devices()) {
    std::string seen;
    for (const char* math : {"strict", "close"}) {  // "fast" promises less: semantics.md R3
      auto program = Program::compile(env(), graph, nullptr, *env()->find_device(device), {{"math", math}});
      if (!program.ok()) continue;
      std::string text = print((*program)->compiled_graph().graph());
      if (text != seen) ways.push_back({device + ", " + math, *program});
      seen = text;
    }
  }
  return ways;
}

// ---- what they are ----

// Formulas that lose digits even in f64: the sums 1 + erf and 1 + tanh, where x is far below 0.
struct Sharper {
  std::string_view name;
  double (*exact)(double);
};
static constexpr Sharper kSharper[] = {
    {"gelu approx=none", [](double x) { return 0.5 * x * std::erfc(-x * (std::numbers::sqrt2 / 2)); }},
    {"gelu approx=tanh",
     [](double x) {
       double u = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
       return x / (1 + std::exp(-2 * u));
     }},
};

std::vector<double> exact(const Function& function, std::span<const Tensor> operands) {
  std::vector<double> values(kBlock);
  for (const Sharper& sharper : kSharper)
    if (sharper.name == function.name) {
      for (int64_t i = 0; i < kBlock; i++) {
        double x = element_as_f64(operands[0], i);
        values[static_cast<size_t>(i)] = std::isinf(x) && x < 0 ? std::nan("") : sharper.exact(x);
      }
      return values;
    }
  Graph graph = *graph_of(function, operands[0].dtype());
  Tensor oracle = interpret(graph, operands, {}, {.mode = EvalMode::kOracle}).value()[0];
  for (int64_t i = 0; i < kBlock; i++) values[static_cast<size_t>(i)] = element_as_f64(oracle, i);
  return values;
}

}  // namespace rlx::accuracy
