// SPDX-License-Identifier: Apache-2.0
// The names that other libraries give an op: one op for each, and none that is an op's own.
#include <gtest/gtest.h>

#include <map>

#include "ir/op.h"

namespace rlx {

TEST(aliases, each_means_one_op) {
  std::map<std::string, std::string_view> seen;
  for (const OpInfo& row : op_table().rows())
    for (std::string_view rest = row.aliases; !rest.empty();) {
      std::string alias(rest.substr(0, rest.find('|')));
      rest.remove_prefix(std::min(alias.size() + 1, rest.size()));
      EXPECT_FALSE(alias.empty()) << row.name;
      EXPECT_EQ(op_table().find(alias), nullptr) << alias << " is an op";
      EXPECT_TRUE(seen.emplace(alias, row.name).second) << alias << " of " << row.name << " and " << seen[alias];
      EXPECT_EQ(op_table().suggestion(alias), " (did you mean '" + std::string(row.name) + "'?)") << alias;
    }
  EXPECT_GT(seen.size(), 100u);
}

TEST(aliases, case_and_underscores_do_not_matter) {
  EXPECT_EQ(op_table().suggestion("LayerNorm"), " (did you mean 'layer_norm'?)");
  EXPECT_EQ(op_table().suggestion("LayerNormalization"), " (did you mean 'layer_norm'?)");
  EXPECT_EQ(op_table().suggestion("Atan"), " (did you mean 'atan'?)") << "not 'tan'";
  EXPECT_EQ(op_table().suggestion("constant"), "") << "no call makes a leaf";
}

TEST(aliases, digits_are_a_part_of_the_word) {
  EXPECT_EQ(op_table().suggestion("relu_6"), op_table().suggestion("relu6"));
  EXPECT_EQ(op_table().suggestion("exp_000"), "");
  EXPECT_EQ(op_table().suggestion("exp_999"), "");
}

}  // namespace rlx
