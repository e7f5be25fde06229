// SPDX-License-Identifier: Apache-2.0
// A plan as text and as the memory report.
#include <algorithm>

#include "base/json.h"
#include "plan/control.h"
#include "plan/plan.h"

namespace rlx {

static std::string base_text(const Plan& plan, uint32_t base) {
  if (base == kArenaBase) return "arena";
  if (base == kSizedBase) return "sized";
  if (uint32_t slot = plan.input_slot(base); slot != Plan::kNoSlot) return "input." + std::to_string(slot);
  if (uint32_t slot = plan.output_slot(base); slot != Plan::kNoSlot) return "output." + std::to_string(slot);
  if (base < plan.room_base(0)) return "resident." + std::to_string(base - plan.resident_base(0));
  return "room." + std::to_string(base - plan.room_base(0));
}

static std::string access_text(const Plan& plan, const Access& access) {
  if (access.dtype == DType::kNone) return "-";
  auto dims = [&](std::span<const SizeId> ids) { return text_of(plan.dims(ids)); };
  std::string text = base_text(plan, access.base);
  if (access.offset) text += "+" + std::to_string(access.offset);
  text += ":" + std::string(name(access.dtype)) + dims(access.dims);
  if (!access.dense) text += " strides " + dims(access.strides);
  if (!plan.sizes[access.shift].is(0)) text += " shift " + plan.sizes[access.shift].text();
  return text;
}

// What the next trip of a loop gets as its carry: an input of the body, or an output and the places where it is
// written.
static std::string carry_text(const Plan& body, size_t index, const Carry& carry) {
  if (carry.way == Carry::Way::kPasses)
    return format("; carry {} <- {}\n", index, base_text(body, body.input_base(carry.from)));
  std::string text = format("; carry {} <- {}", index, base_text(body, body.output_base(index)));
  if (carry.way == Carry::Way::kStays) return text + " over the last one\n";
  return text + " in turn with " + plural(carry.spares.size(), "spare place") + "\n";
}

static void add_bodies(const Plan& plan, const Step& step, std::string& text) {
  if (step.control == Step::kNoControl) return;
  const Node& node = plan.graph().node(step.node);
  const Control& control = plan.controls[step.control];
  for (size_t i = 0; i < control.bodies.size(); i++) {
    std::string body = plan_text(*control.bodies[i].plan);
    text += "; " + std::string(body_attrs(node.op)[i]) + ":\n";
    for (size_t at = 0, end; at < body.size(); at = end + 1) {
      end = body.find('\n', at);
      text += ";  " + body.substr(at + 1, end - at);
    }
  }
  for (size_t i = 0; i < control.carries.size(); i++)
    text += carry_text(*control.bodies.back().plan, i, control.carries[i]);
}

std::string plan_text(const Plan& plan) {
  std::string text;
  for (const PlanSymbol& symbol : plan.symbols)
    text += "; size " + symbol.name + (symbol.is_open ? "" : " <= " + std::to_string(symbol.upper)) + "\n";
  text += format("; arena {}, sized {}\n", plan.arena_bytes, plan.sized_bytes);
  for (size_t i = 0; i < plan.steps.size(); i++) {
    const Step& step = plan.steps[i];
    text += "; " + std::to_string(i) + (i < plan.first_run_step ? " sized " : " ");
    text += step.kernel ? std::string(step.kernel->name) : "copy";
    for (const Access& out : step.out) text += " " + access_text(plan, out);
    text += " <-";
    for (const Access& in : step.in) text += " " + access_text(plan, in);
    if (step.scratch_bytes) text += format(" scratch {}", step.scratch_bytes);
    if (step.on_host) text += " on host";
    text += "\n";
    add_bodies(plan, step, text);
  }
  return text;
}

// The most bytes of the arena that are alive at one step: a lower bound wherever buffers lie.
static int64_t peak_bytes(const Plan& plan) {
  std::vector<int64_t> change(plan.steps.size() + 1, 0);  // from the previous step to this one
  for (const PlanBuffer& buffer : plan.buffers) {
    if (buffer.base != kArenaBase || buffer.first > buffer.last) continue;
    change[buffer.first] += buffer.bytes;
    change[buffer.last + 1] -= buffer.bytes;
    if (buffer.over == PlanBuffer::kNone) continue;
    int64_t shared = plan.buffers[buffer.over].bytes;
    change[buffer.first] -= shared;
    change[buffer.first + 1] += shared;
  }
  int64_t peak = 0, alive = 0;
  for (uint32_t step = 0; step < plan.steps.size(); step++) {
    alive += change[step];
    peak = std::max(peak, alive + static_cast<int64_t>(plan.steps[step].scratch_bytes));
  }
  return peak;
}

static void write_residents(JsonWriter& json, const Plan& plan) {
  json.key("resident").begin_array();
  for (const Resident& resident : plan.lowered->residents) {
    const ValueType& type = resident.scope->graph.type(resident.value);
    json.begin_object()
        .member("value", std::string_view(resident.scope->graph.describe(resident.value.node)))
        .member("type", std::string_view(text_of(type)));
    if (resident.form) json.member("form", std::string_view(resident.form->text()));
    if (resident.bytes()) json.member("bytes", resident.bytes());
    json.end_object();
  }
  json.end_array();
}

static void write_aliases(JsonWriter& json, const Plan& plan) {
  json.key("aliases").begin_array();
  for (const SlotAlias& alias : plan.aliases) {
    json.begin_object()
        .member("output", std::string_view(plan.graph().outputs()[alias.output].name))
        .member("input", std::string_view(plan.graph().leaf_name(plan.graph().inputs()[alias.input])));
    if (!alias.why_copied.empty()) json.member("copied", std::string_view(alias.why_copied));
    json.end_object();
  }
  json.end_array();
}

namespace {

class Parts {
 public:
  // `arena` and `sized`: where these regions of a body begin in those of the whole plan.
  void add(const Plan& plan, const std::string& body, int64_t arena, int64_t sized) {
    for (const PlanBuffer& buffer : plan.buffers) {
      if (buffer.base >= kFirstSlotBase && buffer.base < plan.room_base(0)) continue;
      int64_t begin = buffer.base == kArenaBase ? arena : buffer.base == kSizedBase ? sized : 0;
      parts_.push_back({buffer.name, body, base_text(plan, buffer.base), begin + buffer.offset, buffer.bytes,
                        buffer.first, buffer.last});
      if (buffer.over != PlanBuffer::kNone) parts_.back().over = plan.buffers[buffer.over].name;
    }
    for (uint32_t i = 0; i < plan.steps.size(); i++) add_scratch(plan, i, body, arena, sized);
  }

  std::vector<MemoryPart> take() && { return std::move(parts_); }

 private:
  void add_scratch(const Plan& plan, uint32_t index, const std::string& body, int64_t arena, int64_t sized) {
    const Step& step = plan.steps[index];
    int64_t begin = arena + step.scratch_offset;
    std::string node = plan.graph().describe(step.node);
    auto add_part = [&](const std::string& name, int64_t offset, int64_t bytes) {
      parts_.push_back({name, body, base_text(plan, kArenaBase), begin + offset, bytes, index, index});
    };
    if (step.control == Step::kNoControl) {
      if (step.scratch_bytes) add_part("scratch of " + node, 0, static_cast<int64_t>(step.scratch_bytes));
      return;
    }
    const Control& control = plan.controls[step.control];
    for (size_t i = 0; i < control.carries.size(); i++)
      for (int64_t spare : control.carries[i].spares)
        if (control.out_bytes[i]) add_part(format("carry {} of {}", i, node), spare, *control.out_bytes[i]);
    std::span<const std::string_view> attrs = body_attrs(plan.graph().node(step.node).op);
    for (size_t i = 0; i < control.bodies.size(); i++)
      add(*control.bodies[i].plan, format("{}{}{} {}", body, body.empty() ? "" : ": ", node, attrs[i]), begin,
          sized + control.bodies[i].sized_offset);
  }

  std::vector<MemoryPart> parts_;
};

void write_part(JsonWriter& json, const MemoryPart& part) {
  json.begin_object().member("value", std::string_view(part.name));
  if (!part.body.empty()) json.member("body", std::string_view(part.body));
  json.member("region", std::string_view(part.region))
      .member("offset", part.offset)
      .member("bytes", part.bytes)
      .member("first", static_cast<int64_t>(part.first))
      .member("last", static_cast<int64_t>(part.last));
  if (!part.over.empty()) json.member("over", std::string_view(part.over));
  json.end_object();
}

}  // namespace

std::vector<MemoryPart> memory_parts(const Plan& plan) {
  Parts parts;
  parts.add(plan, "", 0, 0);
  return std::move(parts).take();
}

std::string memory_json(const Plan& plan) {
  JsonWriter json;
  json.begin_object()
      .member("arena", plan.arena_bytes)
      .member("peak", peak_bytes(plan))
      .member("sized", plan.sized_bytes)
      .member("prepared", plan.lowered->prepared_bytes())
      .member("steps", static_cast<uint64_t>(plan.steps.size()));
  write_residents(json, plan);
  write_aliases(json, plan);
  json.key("buffers").begin_array();
  for (const MemoryPart& part : memory_parts(plan)) write_part(json, part);
  json.end_array().end_object();
  return std::move(json).take();
}

}  // namespace rlx
