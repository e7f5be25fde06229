// SPDX-License-Identifier: Apache-2.0
// The parts of the C API that need no graph: statuses, guards, blobs, the version.
#include <gtest/gtest.h>

#include <cstring>
#include <new>
#include <stdexcept>

#include "capi/blob.h"
#include "capi/guard.h"
#include "capi/text.h"
#include "ir/op.h"
#include "words.h"

namespace rlx::capi {

using capi_tests::words;

TEST(capi, version_text_follows_the_number) {
  EXPECT_EQ(rlx_version_string(),
            format("{}.{}.{}", RLX_VERSION / 1000000, RLX_VERSION / 1000 % 1000, RLX_VERSION % 1000));
  EXPECT_EQ(rlx_version(), static_cast<uint32_t>(RLX_VERSION));
}

TEST(capi, features_are_known_by_exact_name) {
  EXPECT_EQ(rlx_feature("format.onnx"), 1);
  EXPECT_EQ(rlx_feature("format.onn"), 0);
  EXPECT_EQ(rlx_feature("format."), 0);
  EXPECT_EQ(rlx_feature(nullptr), 0);
}

TEST(capi, features_are_what_the_tables_hold) {
  for (const OpInfo& row : op_table().rows())
    EXPECT_EQ(rlx_feature(("op." + std::string(row.name)).c_str()), row.is(kLeaf) || row.is(kInternal) ? 0 : 1)
        << row.name;
  EXPECT_EQ(rlx_feature("op.nothing"), 0);
  for (const char* backend : {"backend.cpu", "backend.reference", "backend.null"})
    EXPECT_EQ(rlx_feature(backend), 1) << backend;
  EXPECT_EQ(rlx_feature("backend.metal"), 0);
}

TEST(capi, status_take_copies_and_cuts) {
  char text[64];
  EXPECT_EQ(rlx_status_take(to_c(Status(Code::kShape, "expected [2,3], got [2]")), text, sizeof text), RLX_E_SHAPE);
  EXPECT_STREQ(text, "RLX_E_SHAPE: expected [2,3], got [2]");
  for (size_t capacity = 1; capacity < 30; capacity++) {
    std::memset(text, '#', sizeof text);
    (void)rlx_status_take(to_c(Status(Code::kShape, "0123456789")), text, capacity);
    EXPECT_EQ(std::string("RLX_E_SHAPE: 0123456789").substr(0, capacity - 1), text);
    EXPECT_EQ(text[std::strlen(text) + 1], '#') << "wrote past the NUL at capacity " << capacity;
  }
  EXPECT_EQ(rlx_status_take(nullptr, text, sizeof text), RLX_OK);
  EXPECT_STREQ(text, "");
  EXPECT_EQ(rlx_status_take(to_c(Status(Code::kIo, "x")), nullptr, 0), RLX_E_IO);
}

TEST(capi, text_is_cut_between_characters) {
  char text[8];
  copy_text("a\u00e9\u00e9", text, 3);  // the second byte of the first e-acute does not fit
  EXPECT_STREQ(text, "a");
  copy_text("a\u00e9\u00e9", text, 4);
  EXPECT_STREQ(text, "a\u00e9");
}

TEST(capi, status_details_and_references) {
  rlx_status_t* status = to_c(Status(Code::kDtype, "m").with("op", "add"));
  EXPECT_EQ(rlx_status_retain(status), status);
  rlx_status_release(status);
  EXPECT_STREQ(rlx_status_detail(status, "op"), "add");
  EXPECT_EQ(rlx_status_detail(status, "value"), nullptr);
  EXPECT_STREQ(rlx_status_message(status), "m");
  rlx_status_release(status);
  EXPECT_STREQ(rlx_code_name(RLX_E_CALLBACK), "RLX_E_CALLBACK");
  EXPECT_STREQ(rlx_code_name(-5), "RLX_E_UNKNOWN");
}

static constexpr const void* kNone = nullptr;

TEST(capi, guard_refuses_null_and_impossible_lengths) {
  auto fine = [] { return Status(); };
  int64_t one = 7;
  EXPECT_EQ(words(guard({{kNone, "env"}}, fine, "rlx_f")), "RLX_E_INVALID_ARGUMENT: rlx_f: env is NULL");
  EXPECT_EQ(guard({array(static_cast<int64_t*>(nullptr), 0, "dims")}, fine), nullptr);
  EXPECT_EQ(words(guard({array(&one, SIZE_MAX / 8, "dims")}, fine, "rlx_f")),
            "RLX_E_INVALID_ARGUMENT: rlx_f: dims cannot have 2305843009213693951 elements of 8 bytes");
  EXPECT_EQ(words(guard({cleared(&one, SIZE_MAX, "out")}, fine)).substr(0, 24), "RLX_E_INVALID_ARGUMENT: ");
  EXPECT_EQ(one, 7) << "an impossible length touches nothing";
}

TEST(capi, guard_clears_outputs_and_contains_exceptions) {
  int64_t out = 7;
  EXPECT_EQ(words(guard(
                {cleared(&out, "out")}, []() -> Status { throw std::runtime_error("boom"); }, "rlx_f")),
            "RLX_E_INTERNAL: rlx_f: unexpected exception: boom");
  EXPECT_EQ(out, 0);
  EXPECT_EQ(words(guard({}, []() -> Status { throw std::bad_alloc(); })), "RLX_E_NO_MEMORY: out of memory");
  EXPECT_EQ(words(guard(
                {}, []() -> Status { throw 3; }, "rlx_f")),
            "RLX_E_INTERNAL: rlx_f: unexpected exception of an unknown type");
  EXPECT_EQ(guard_value(-1, {}, []() -> int { throw 3; }), -1);
  EXPECT_EQ(guard_value(-1, {{kNone, "x"}}, [] { return 5; }), -1);
  EXPECT_EQ(guard_value(-1, {}, [] { return 5; }), 5);
}

TEST(capi, keep_holds_the_first_failure) {
  Status kept;
  EXPECT_TRUE(keep(kept, {}, [] { return Status(); }));
  EXPECT_FALSE(keep(kept, {}, [] { return Status(Code::kShape, "first"); }));
  EXPECT_FALSE(keep(kept, {}, [] { return Status(Code::kDtype, "second"); }));
  EXPECT_TRUE(keep(kept, {}, [] { return Status(); }));
  EXPECT_EQ(kept.message(), "first");
}

TEST(capi, blob_ends_with_a_zero_that_does_not_count) {
  auto* blob = new rlx_blob("ab");
  EXPECT_EQ(rlx_blob_size(blob), 2u);
  EXPECT_STREQ(static_cast<const char*>(rlx_blob_data(blob)), "ab");
  EXPECT_EQ(rlx_blob_retain(blob), blob);
  rlx_blob_release(blob);
  rlx_blob_release(blob);
  EXPECT_STREQ(static_cast<const char*>(rlx_blob_data(nullptr)), "");
}

TEST(capi, host_init_writes_what_it_was_given) {
  struct Longer {
    rlx_host_t host;
    uint64_t tail, canary;
  } longer;
  std::memset(static_cast<void*>(&longer), 0x5a, sizeof longer);
  rlx_host_init(&longer.host, offsetof(Longer, canary));
  EXPECT_EQ(longer.host.struct_size, offsetof(Longer, canary));
  EXPECT_EQ(longer.tail, 0u);
  EXPECT_EQ(longer.canary, 0x5a5a5a5a5a5a5a5aULL);
  for (size_t size : {size_t{0}, size_t{3}, size_t{4097}, SIZE_MAX}) rlx_host_init(&longer.host, size);
  EXPECT_EQ(longer.host.struct_size, offsetof(Longer, canary));
  rlx_host_init(nullptr, sizeof(rlx_host_t));
}

}  // namespace rlx::capi
