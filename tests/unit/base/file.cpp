// SPDX-License-Identifier: Apache-2.0
// Reading, mapping and replacing files, and what a failure says.
#include "base/os/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace rlx {
namespace {

namespace fs = std::filesystem;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// A folder of its own for each test, gone afterwards.
class file : public testing::Test {
 protected:
  file() {
    std::string name = (fs::temp_directory_path() / "rlx-file-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~file() override { fs::remove_all(folder_); }
  std::string path(const char* name) const { return folder_ / name; }
  fs::path folder_;
};

TEST_F(file, what_is_written_can_be_read_and_mapped) {
  std::string text("a\0b\n", 4);
  ASSERT_TRUE(write_file(path("x"), bytes_of(text)).ok());
  EXPECT_EQ(*read_file(path("x")), text);
  Result<MappedFile> mapped = MappedFile::open(path("x"));
  ASSERT_TRUE(mapped.ok());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(mapped->bytes().data()), mapped->bytes().size()), text);
}

TEST_F(file, a_copy_of_a_mapping_outlives_the_first_and_the_file) {
  ASSERT_TRUE(write_file(path("x"), bytes_of("kept")).ok());
  auto first = std::make_unique<MappedFile>(*MappedFile::open(path("x")));
  MappedFile second = *first;
  first.reset();
  fs::remove(path("x"));
  EXPECT_EQ(static_cast<char>(second.bytes()[3]), 't');
}

TEST_F(file, an_empty_file_maps_to_nothing) {
  ASSERT_TRUE(write_file(path("x"), {}).ok());
  EXPECT_EQ(MappedFile::open(path("x"))->bytes().size(), 0u);
  EXPECT_EQ(*read_file(path("x")), "");
}

TEST_F(file, a_replaced_file_leaves_mappings_and_no_temporary_behind) {
  ASSERT_TRUE(write_file(path("x"), bytes_of("old")).ok());
  MappedFile old = *MappedFile::open(path("x"));
  ASSERT_TRUE(write_file(path("x"), bytes_of("new")).ok());
  EXPECT_EQ(static_cast<char>(old.bytes()[0]), 'o');
  EXPECT_EQ(*read_file(path("x")), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(file, a_failed_write_leaves_no_temporary_behind) {
  fs::create_directories(folder_ / "x" / "inside");
  EXPECT_FALSE(write_file(path("x"), bytes_of("new")).ok());  // a folder is in the way
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(file, failures_name_the_path_and_the_reason) {
  Status missing = MappedFile::open(path("no")).status();
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_EQ(missing.message(), "cannot open \"" + path("no") + "\": No such file or directory");
  EXPECT_EQ(MappedFile::open(folder_).status().message(), "cannot open \"" + folder_.string() + "\": Is a directory");
  EXPECT_EQ(read_file("/dev/null").status().code(), Code::kIo);
  EXPECT_EQ(write_file(path("no/x"), {}).code(), Code::kNotFound);
}

TEST_F(file, a_pipe_without_a_writer_is_refused_at_once) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(MappedFile::open(path("pipe")).status().code(), Code::kIo);
  EXPECT_EQ(read_file(path("pipe")).status().message(), "cannot open \"" + path("pipe") + "\": not a regular file");
}

TEST_F(file, a_file_of_proc_is_read_although_it_claims_no_size) {
  EXPECT_NE(read_file("/proc/self/status")->find("Threads:"), std::string::npos);
}

TEST_F(file, a_file_above_the_limit_is_refused) {
  ASSERT_TRUE(write_file(path("x"), bytes_of("12345")).ok());
  EXPECT_EQ(read_file(path("x"), 4).status().code(), Code::kRange);
  EXPECT_TRUE(read_file(path("x"), 5).ok());
}

}  // namespace
}  // namespace rlx
