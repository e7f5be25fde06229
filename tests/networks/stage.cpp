// SPDX-License-Identifier: Apache-2.0
#include "stage.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "bench/measure.h"

namespace networks {

namespace {

constexpr double kTolerance = 1e-3;  // of the largest value
constexpr double kCosine = 0.999;
constexpr double kMeasured_ms = 300;  // on each side, in all turns
constexpr int kTurns = 3;

using bench::Ort;

Ort::Type type_of(rlx_dtype_t dtype) {
  return dtype == RLX_I64 ? Ort::Type::kI64 : dtype == RLX_BOOL ? Ort::Type::kBool : Ort::Type::kF32;
}

Values run(Ort& peer, const Values& in) {
  static constexpr char kNothing = 0;  // an address for tensors without elements
  for (const auto& [name, value] : in)
    peer.bind(name, type_of(value.dtype), value.dims, value.bytes.empty() ? &kNothing : value.bytes.data());
  peer.run();
  Values out;
  for (size_t i = 0; i < peer.outputs().size(); i++)
    out[peer.outputs()[i]] = Value::of(RLX_F32, peer.output_dims(i), peer.output(i));
  return out;
}

std::string taken(rlx_status_t* status) {
  char text[1024];
  return rlx_status_take(status, text, sizeof text) == RLX_OK ? "" : text;
}

// The tensors of one run.
class Tensors {
 public:
  Tensors() = default;
  Tensors(const Tensors&) = delete;
  Tensors& operator=(const Tensors&) = delete;
  ~Tensors() { clear(); }
  void clear() {
    for (rlx_tensor_t*& tensor : handles) {
      rlx_tensor_release(tensor);
      tensor = nullptr;
    }
  }
  std::vector<const char*> names;
  std::vector<rlx_tensor_t*> handles;
};

std::string fill(rlx_env_t* env, const Values& in, Tensors& tensors) {
  for (const auto& [name, value] : in) {
    tensors.names.push_back(name.c_str());
    std::string why =
        taken(rlx_tensor_copy_from(env, value.dtype, value.dims.data(), value.dims.size(), value.bytes.data(),
                                   value.bytes.size(), &tensors.handles.emplace_back(nullptr)));
    if (!why.empty()) return why;
  }
  return {};
}

void name_all(const std::vector<std::string>& outputs, Tensors& tensors) {
  for (const std::string& name : outputs) tensors.names.push_back(name.c_str());
  tensors.handles.resize(outputs.size());
}

rlx_status_t* run(rlx_model_t* model, const Tensors& in, Tensors& out) {
  return rlx_model_run(model, "cpu", in.names.data(), in.handles.data(), in.handles.size(), out.names.data(),
                       out.handles.data(), out.handles.size(), nullptr);
}

Value value_of(const rlx_tensor_t* tensor) {
  Value value{rlx_tensor_dtype(tensor), std::vector<int64_t>(8), {}};
  value.dims.resize(rlx_tensor_shape(tensor, value.dims.data(), value.dims.size()));
  auto data = static_cast<const char*>(rlx_tensor_data(tensor));
  value.bytes.assign(data, data + rlx_tensor_bytes(tensor));
  return value;
}

struct Difference {
  double largest = 0, worst = 0, cosine = 1;
  double relative() const { return worst > 0 ? worst / largest : 0; }
};

Difference difference(std::span<const float> got, std::span<const float> want) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  Difference it;
  double dot = 0, got_square = 0, want_square = 0;
  for (size_t i = 0; i < want.size(); i++) {
    double x = got[i], y = want[i];
    if (!std::isfinite(x) || !std::isfinite(y)) {
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      return {1, kInfinite, 0};
    }
    it.largest = std::max(it.largest, std::fabs(y));
    it.worst = std::max(it.worst, std::fabs(x - y));
    dot += x * y;
    got_square += x * x;
    want_square += y * y;
  }
  if (got_square > 0 || want_square > 0) it.cosine = dot / std::sqrt(std::max(1e-300, got_square * want_square));
  return it;
}

Difference worse(Difference a, const Difference& b) {
  if (b.relative() > a.relative()) a.worst = b.worst, a.largest = b.largest;
  a.cosine = std::min(a.cosine, b.cosine);
  return a;
}

// Of how many rows along the last axis the largest elements stand at different places.
int other_choices(const Value& got, const Value& want) {
  auto row = static_cast<size_t>(want.dims.back());
  int count = 0;
  for (size_t begin = 0; row > 0 && begin + row <= want.floats().size(); begin += row) {
    auto place = [&](const Value& value) {
      auto part = value.floats().subspan(begin, row);
      return std::max_element(part.begin(), part.end()) - part.begin();
    };
    count += place(got) != place(want);
  }
  return count;
}

[[noreturn]] void die(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

}  // namespace

Stage::Stage(std::string path, Bar bar, bool times) : path_(std::move(path)), bar_(bar), times_(times) {
  rlx_attrs_t* options = nullptr;
  std::string why = taken(rlx_attrs_create(times ? "threads=1" : "threads=2", &options));
  if (why.empty()) why = taken(rlx_env_create(options, nullptr, &env_));
  rlx_attrs_release(options);
  if (!why.empty()) die(why);
  peer_ = std::make_unique<Ort>(path_, 1, false);
  output_names_ = peer_->outputs();
  why = taken(rlx_model_open(env_, path_.c_str(), nullptr, &model_));
  if (why.empty()) return;
  std::printf("  FAILED: %s\n", why.c_str());
  failed_++;
}

Stage::~Stage() {
  rlx_model_release(model_);
  rlx_env_release(env_);
}

Values Stage::peer_run(const std::string& path, const Values& in) {
  Ort peer(path, 1, false);
  return networks::run(peer, in);
}

Values Stage::ours(const Values& in) {
  Tensors given, made;
  name_all(output_names_, made);
  std::string why = fill(env_, in, given);
  if (why.empty()) why = taken(networks::run(model_, given, made));
  if (!why.empty()) {
    std::printf("FAILED: %s\n", why.c_str());
    return {};
  }
  Values out;
  for (size_t i = 0; i < made.handles.size(); i++) out[made.names[i]] = value_of(made.handles[i]);
  return out;
}

Values Stage::run(const std::string& label, const Values& in) {
  Values want = networks::run(*peer_, in);
  if (!model_) return want;
  runs_++;
  std::printf("  %-34s ", label.c_str());
  Values got = ours(in);
  bool is_right = !got.empty() && compare(got, want, in);
  if (!is_right) failed_++;
  if (is_right && times_) time(in);
  std::printf("\n");
  std::fflush(stdout);
  return want;
}

Ort& Stage::fast_peer() {
  if (!fast_peer_) fast_peer_ = std::make_unique<Ort>(path_, 1, true);
  return *fast_peer_;
}

bool Stage::compare(const Values& got, const Values& want, const Values& in) {
  Difference worst;
  std::string fault;
  for (const auto& [name, expected] : want) {
    const Value& value = got.at(name);
    if (value.dims != expected.dims || value.dtype != expected.dtype) {
      fault = name + " has another shape or dtype";
      continue;
    }
    worst = worse(worst, difference(value.floats(), expected.floats()));
    if (bar_ == Bar::kQuantised && name == "logits" && other_choices(value, expected) > 0)
      fault = name + " has another largest element";
  }
  std::printf("within %.1e", worst.relative());
  if (bar_ == Bar::kClose && worst.relative() > kTolerance) fault = "too far away";
  if (bar_ == Bar::kQuantised) {
    std::printf(", cosine %.6f", worst.cosine);
    if (worst.cosine < kCosine && worst.cosine < peer_cosine(want, in)) fault = "too far away";
  }
  if (!fault.empty()) std::printf("  FAILED: %s", fault.c_str());
  return fault.empty();
}

// A long chain of roundings to 8 bits multiplies the last bits of its floats: what ONNX Runtime's own optimisations
// change is no fault of ours, and neither is as much again.
double Stage::peer_cosine(const Values& want, const Values& in) {
  Difference own;
  for (const auto& [name, value] : networks::run(fast_peer(), in))
    own = worse(own, difference(value.floats(), want.at(name).floats()));
  std::printf(" (of ONNX Runtime, optimised: %.6f)", own.cosine);
  return 1 - 2 * (1 - own.cosine);
}

// In turns, each long enough to be measured.
void Stage::time(const Values& in) {
  Tensors given, made;
  name_all(output_names_, made);
  if (!fill(env_, in, given).empty()) return;
  auto ours = [&] {
    if (!taken(networks::run(model_, given, made)).empty()) die("a run that went well before has failed");
    made.clear();
  };
  networks::run(fast_peer(), in);
  auto peer = [&] { fast_peer().run(); };
  auto slower = std::max(bench::time_ms(ours), bench::time_ms(peer));
  int runs = std::clamp(static_cast<int>(kMeasured_ms / kTurns / std::max(slower, 1e-3)), 1, 200);
  bench::Duel duel = bench::duel({kTurns, 0}, runs, ours, peer);
  std::printf("  %9.3f %9.3f ms %6.2f", duel.ours.median, duel.peer.median, duel.ratio());
  ratios_.push_back(duel.ratio());
}

double Stage::ratio() const {
  double sum = 0;
  for (double ratio : ratios_) sum += std::log(ratio);
  return ratios_.empty() ? 0 : std::exp(sum / static_cast<double>(ratios_.size()));
}

}  // namespace networks
