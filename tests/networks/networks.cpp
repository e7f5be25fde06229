// SPDX-License-Identifier: Apache-2.0
#include "networks.h"

#include <algorithm>

#include "signals.h"

namespace networks {

namespace {

std::string text(int64_t number) {
  return std::to_string(number);
}

// The same values again, another `count` times.
template <class T>
std::vector<T> repeated(std::vector<T> values, int64_t count) {
  std::vector<T> all;
  for (int64_t i = 0; i < count; i++) all.insert(all.end(), values.begin(), values.end());
  return all;
}

// ---- texts ----

// "the cat is on the table", "where is my dog", as all-MiniLM-L6-v2's vocabulary numbers them.
void play_minilm(Stage& stage, const std::string&) {
  std::vector<int64_t> cat{101, 1996, 4937, 2003, 2006, 1996, 2795, 102}, dog{101, 2073, 2003, 2026, 3899, 102, 0, 0};
  auto in = [](int64_t rows, const std::vector<int64_t>& ids) {
    std::vector<int64_t> dims{rows, static_cast<int64_t>(ids.size()) / rows}, mask(ids), types(ids.size());
    for (int64_t& it : mask) it = it != 0;
    return Values{{"input_ids", Value::i64(dims, ids)},
                  {"attention_mask", Value::i64(dims, mask)},
                  {"token_type_ids", Value::i64(dims, types)}};
  };
  stage.run("1 x 8", in(1, cat));
  std::vector<int64_t> both = cat;
  both.insert(both.end(), dog.begin(), dog.end());
  stage.run("2 x 8, one is padded", in(2, both));
  stage.run("1 x 96", in(1, repeated(cat, 12)));
}

// ---- pictures ----

Values picture(std::vector<int64_t> dims, const std::vector<float>& channels) {
  return {{"x", Value::f32(std::move(dims), channels)}};
}

void play_detection(Stage& stage, const std::string&) {
  for (auto [height, width] : {std::pair<int64_t, int64_t>{320, 480}, {160, 96}, {64, 256}}) {
    Page page(height, width);
    page.write("20261122", 20, 16, 3);
    page.write("31415926535", height / 2, width / 4, 2);
    stage.run(text(height) + " x " + text(width), picture({1, 3, height, width}, page.channels(0.45, 0.225)));
  }
}

Page line(int64_t width, const std::string& digits) {
  Page page(48, width);
  page.write(digits, 6, 10, 5);
  return page;
}

void play_angle(Stage& stage, const std::string&) {
  Page page = line(192, "31415");
  std::vector<float> upright = page.channels(0.5, 0.5), turned = page.turned().channels(0.5, 0.5), both = upright;
  stage.run("upright", picture({1, 3, 48, 192}, upright));
  stage.run("upside down", picture({1, 3, 48, 192}, turned));
  both.insert(both.end(), turned.begin(), turned.end());
  stage.run("2 of them", picture({2, 3, 48, 192}, both));
  stage.run("96 wide", picture({1, 3, 48, 96}, line(96, "27").channels(0.5, 0.5)));
}

void play_recognition(Stage& stage, const std::string&) {
  stage.run("320 wide", picture({1, 3, 48, 320}, line(320, "2026112215").channels(0.5, 0.5)));
  stage.run("640 wide", picture({1, 3, 48, 640}, line(640, "31415926535897932384").channels(0.5, 0.5)));
  stage.run("2 of 160", picture({2, 3, 48, 160}, repeated(line(160, "2718").channels(0.5, 0.5), 2)));
}

// ---- sound ----

// Frame by frame, with the state that the frame before has left.
void play_voice(Stage& stage, const std::string&) {
  struct Way {
    int rate;
    int64_t samples, overlap, batch;
  };
  for (Way way : {Way{16000, 512, 64, 1}, {8000, 256, 32, 1}, {16000, 512, 0, 2}}) {
    std::vector<float> sound = speech(static_cast<size_t>(4 * way.samples), way.rate, 0.08);
    Value state = Value::f32({2, way.batch, 128}, std::vector<float>(static_cast<size_t>(256 * way.batch)));
    for (int64_t begin = 0; begin + way.samples + way.overlap <= 4 * way.samples; begin += way.samples) {
      std::vector<float> frame(sound.begin() + begin, sound.begin() + begin + way.samples + way.overlap);
      Values in{{"input", Value::f32({way.batch, way.samples + way.overlap}, repeated(frame, way.batch))},
                {"state", state},
                {"sr", Value::i64({}, {way.rate})}};
      Values out = stage.run(text(way.rate) + " Hz, " + text(way.batch) + " x " + text(way.samples + way.overlap), in);
      state = out.at("stateN");
    }
  }
}

std::vector<float> half_a_minute(double voiced_seconds) {
  return log_mel(speech(size_t{30} * 16000, 16000, voiced_seconds));
}

void play_whisper_encoder(Stage& stage, const std::string&) {
  std::vector<float> two = half_a_minute(20), quiet = half_a_minute(3);
  stage.run("20 s of sound", {{"input_features", Value::f32({1, 80, 3000}, two)}});
  two.insert(two.end(), quiet.begin(), quiet.end());
  stage.run("2 sounds", {{"input_features", Value::f32({2, 80, 3000}, two)}});
}

// ---- decoders: every step gets what ONNX Runtime has left, so that each is judged by itself ----

int64_t likeliest(const Value& logits) {
  auto row = logits.floats().last(static_cast<size_t>(logits.dims.back()));
  return std::max_element(row.begin(), row.end()) - row.begin();
}

// The outputs "present..." as the inputs "past_key_values...", except for those without elements.
void carry(const Values& out, Values& in) {
  for (const auto& [name, value] : out)
    if (name.starts_with("present") && !value.bytes.empty()) in["past_key_values" + name.substr(7)] = value;
}

void play_minimind(Stage& stage, const std::string&) {
  std::vector<int64_t> prompt{1, 87, 364, 275, 201, 412, 1033, 5};
  for (int64_t batch : {1, 2}) {
    Values in;
    for (int layer = 0; layer < 8; layer++)
      for (const char* part : {".key", ".value"})
        in["past_key_values." + std::to_string(layer) + part] = Value::f32({batch, 2, 0, 64}, {});
    std::vector<int64_t> ids = prompt;
    int64_t past = 0;
    for (int step = 0; step < 5; step++) {
      auto length = static_cast<int64_t>(ids.size());
      std::vector<int64_t> positions;
      for (int64_t i = 0; i < length; i++) positions.push_back(past + i);
      in["input_ids"] = Value::i64({batch, length}, repeated(ids, batch));
      in["position_ids"] = Value::i64({batch, length}, repeated(positions, batch));
      in["attention_mask"] =
          Value::i64({batch, past + length}, std::vector<int64_t>(static_cast<size_t>(batch * (past + length)), 1));
      Values out = stage.run(text(batch) + " x " + text(length) + " after " + text(past), in);
      carry(out, in);
      past += length;
      ids = {likeliest(out.at("logits"))};
      if (step == 2) ids.push_back(275);  // two at once
    }
  }
}

// Its first step makes the keys of the sound, by the other branch than the steps that follow.
void play_whisper_decoder(Stage& stage, const std::string& cache) {
  Values sound{{"input_features", Value::f32({1, 80, 3000}, half_a_minute(20))}};
  Value states = Stage::peer_run(cache + "/networks/whisper_encoder.onnx", sound).at("last_hidden_state");
  for (int64_t frames : {1500, 400}) {
    std::vector<float> part(states.floats().begin(), states.floats().begin() + frames * 384);
    Values in{{"encoder_hidden_states", Value::f32({1, frames, 384}, part)}};
    for (int layer = 0; layer < 4; layer++)
      for (const char* side : {".decoder", ".encoder"})
        for (const char* what : {".key", ".value"})
          in["past_key_values." + std::to_string(layer) + side + what] = Value::f32({1, 6, 0, 64}, {});
    std::vector<int64_t> ids{50258, 50259, 50359, 50363};  // English, to be written down, without times
    int64_t past = 0;
    for (int step = 0; step < 4; step++) {
      auto length = static_cast<int64_t>(ids.size());
      in["input_ids"] = Value::i64({1, length}, ids);
      in["use_cache_branch"] = Value::truth(step > 0);
      Values out = stage.run(text(length) + " after " + text(past) + ", sound of " + text(frames), in);
      carry(out, in);
      past += length;
      ids = {likeliest(out.at("logits"))};
    }
  }
}

constexpr Network kNetworks[] = {
    {"minilm", "minilm/model.onnx", Bar::kClose, play_minilm},
    {"text_detection", "networks/text_detection.onnx", Bar::kClose, play_detection},
    {"angle", "networks/angle.onnx", Bar::kClose, play_angle},
    {"text_recognition", "networks/text_recognition.onnx", Bar::kClose, play_recognition},
    {"voice_v5", "networks/voice_v5.onnx", Bar::kClose, play_voice},
    {"voice_v6", "networks/voice_v6.onnx", Bar::kClose, play_voice},
    {"minimind", "networks/minimind.onnx", Bar::kQuantised, play_minimind, true},
    {"whisper_encoder", "networks/whisper_encoder.onnx", Bar::kQuantised, play_whisper_encoder},
    {"whisper_decoder", "networks/whisper_decoder.onnx", Bar::kQuantised, play_whisper_decoder, true},
};

}  // namespace

std::span<const Network> all() {
  return kNetworks;
}

}  // namespace networks
