// SPDX-License-Identifier: Apache-2.0
// A model that is imported again finds the files that it was opened with, whatever has their names by then.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "import/format.h"
#include "opened.h"

namespace rlx::onnx {

namespace fs = std::filesystem;

// Two folders with a model each, the same but for the numbers in the file beside it.
class ExternalFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("rlx_files_" + std::to_string(::getpid()));
    for (const auto& [folder, factor] : {std::pair("a", 2.f), {"b", 7.f}}) {
      fs::create_directories(root_ / folder);
      write(root_ / folder / "m.onnx", sums_of_products().bytes());
      std::array<float, 3> w{factor, factor, factor};
      write(root_ / folder / "m.bin", {reinterpret_cast<const char*>(w.data()), sizeof w});
    }
    before_ = fs::current_path();
  }
  void TearDown() override {
    fs::current_path(before_);
    fs::remove_all(root_);
  }

  static void write(const fs::path& path, std::string_view bytes) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  // y = the sums of x * w over axes that the run gives.
  static Maker sums_of_products() {
    Maker maker(13);
    maker.input("x", 1, {"n", "3"}).input("axes", 7, {"1"}).external_f32("w", {3}, "m.bin");
    return maker.node("Mul", {"x", "w"}, {"p"})
        .node("ReduceSum", {"p", "axes"}, {"y"}, {Maker::attr("keepdims", 0)})
        .output("y");
  }
  static std::shared_ptr<Model> open(const std::string& path) {
    return open_model(testing_programs::env_with(1), *Source::open(path), {}, {}).value();
  }
  static std::string summed(Model& model, int64_t over) {
    auto ran = model.run("", {}, std::array{floats({2, 3}, {1, 2, 3, 4, 5, 6}), list({over})}, {}, 1);
    if (!ran.ok()) return std::string(ran.status().message());
    std::string text;
    for (int64_t i = 0; i < ran->outputs[0].count(); i++)
      text += std::to_string(static_cast<int>(ran->outputs[0].as<float>()[i])) + " ";
    return text;
  }

  fs::path root_, before_;
};

TEST_F(ExternalFilesTest, another_file_takes_the_name) {
  auto model = open((root_ / "a" / "m.onnx").string());
  EXPECT_EQ(summed(*model, 0), "10 14 18 ");
  fs::rename(root_ / "b" / "m.bin", root_ / "a" / "m.bin");
  fs::rename(root_ / "b" / "m.onnx", root_ / "a" / "m.onnx");
  EXPECT_EQ(summed(*model, 1), "12 30 ");
  EXPECT_EQ(summed(*open((root_ / "a" / "m.onnx").string()), 1), "42 105 ");
}

TEST_F(ExternalFilesTest, the_host_changes_its_folder) {
  fs::current_path(root_ / "a");
  auto model = open("m.onnx");
  EXPECT_EQ(summed(*model, 0), "10 14 18 ");
  fs::current_path(root_ / "b");
  EXPECT_EQ(summed(*model, 1), "12 30 ");
  fs::current_path("/");
  EXPECT_EQ(summed(*model, -1), "12 30 ");
}

TEST_F(ExternalFilesTest, the_files_are_removed) {
  auto model = open((root_ / "a" / "m.onnx").string());
  EXPECT_EQ(summed(*model, 0), "10 14 18 ");
  fs::remove_all(root_ / "a");
  EXPECT_EQ(summed(*model, 1), "12 30 ");
}

// The first import reads the inputs alone: what the nodes hold is needed at the second one.
TEST_F(ExternalFilesTest, what_only_a_later_import_reads_was_there_at_the_first) {
  Maker maker(13);
  Message value = Maker::attr("value", Maker::external_tensor("", {3}, "m.bin"));
  maker.input("x", 1, {"3"}).node("Constant", {}, {"w"}, {value}).node("Add", {"x", "w"}, {"y"}).output("y");
  write(root_ / "a" / "m.onnx", maker.bytes());
  Source source = *Source::open((root_ / "a" / "m.onnx").string());
  ASSERT_TRUE(import_source(source, "", {.choices = {.interface_only = true}}).ok());
  fs::rename(root_ / "b" / "m.bin", root_ / "a" / "m.bin");
  auto imported = import_source(source, "", {});
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_NE(print(imported->graph).find("{2, 2, 2}"), std::string::npos) << print(imported->graph);
}

TEST_F(ExternalFilesTest, a_file_that_was_missing_may_come_later) {
  fs::rename(root_ / "a" / "m.bin", root_ / "away");
  fs::current_path(root_ / "a");
  Source source = *Source::open("m.onnx");
  fs::current_path(root_ / "b");
  EXPECT_EQ(import_source(source, "", {}).status().code(), Code::kNotFound);
  fs::rename(root_ / "away", root_ / "a" / "m.bin");
  EXPECT_NE(import_source(source, "", {}).status().code(), Code::kNotFound);
  EXPECT_EQ((*source.external->open("m.bin")).bytes.size(), 12u);
}

}  // namespace rlx::onnx
