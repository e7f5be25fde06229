// SPDX-License-Identifier: Apache-2.0
// Graphs whose guards no sizes meet: semantics.md G4.
#include <gtest/gtest.h>

#include "generate.h"
#include "ir/text.h"
#include "properties.h"

namespace rlx::test {

// In the first text the last guard leaves no size for m, in the second that of the loop leaves none for n: which shows
// only where the reader knows the other guards before it.
TEST(contradictions, let_a_text_be_refused) {
  auto env = env_of_tests();
  ASSERT_TRUE(env.ok()) << env.status().message();
  for (const char* text : {R"(graph (m) {
         x = input f64[m,2]
         %1 = select_and_scatter(x, x) fn=max window=[2,1] dilation=[3,3]
         %2 = stft(x) frame=m hop=2 onesided=false
         output a = %1
         output b = %2
       })",
                           R"(graph (n) {
         x = input f32[n]
         y, z = scan(x, x) n_carry=2 n_xs=0 length=2 body=graph {
           a = input f32[n]
           b = input f32[n]
           s = slice(b) starts=[-2] ends=[2147483647]
           t = slice(s) starts=[2147483647] ends=[min(2,n) - 2] steps=[-1]
           output t
           output a
         }
         output z
       })"}) {
    auto graph = parse(text);
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    EXPECT_FALSE(parse(print(*graph)).ok()) << "it shows nothing";
    Tally tally;
    EXPECT_EQ(check_graph(with_contents(1, *graph), *env, tally), "");
  }
}

}  // namespace rlx::test
