// SPDX-License-Identifier: Apache-2.0
// Graphs as text, like a small program, and back. parse(print(g)) equals g: nodes, types, attributes to the bit,
// symbols and guards; names too, where they are unique and legal.
//
//     graph "mlp" (batch in [1, 512]) {
//       guard batch <= 64
//       x = input f32[batch,16]
//       w = param f32[16,8]
//       c = constant f32[2] {1, 2.5}
//       h = matmul(x, w) -> f32[batch,8]
//       n, n.mean = layer_norm(h, _, beta) eps=1e-06 -> f32[batch,8], f32[batch,1]   ; `_` is an absent input
//       output logits = n
//     }
//
// One statement is one line; `;` starts a comment. The type after `->` is checked against the inferred one and may be
// left out; so may outputs that nobody names. A value without a name of its own is `%` and a number; the first of
// several outputs has the node's name. A leaf or output whose name is not a word has it in quotes: %0 = input "a b"
// f32[2].
#pragma once

#include <string>
#include <string_view>

#include "ir/graph.h"

namespace rlx {

std::string print(const Graph& graph);

// RLX_E_DATA for a syntax error, else the error of the builder. Every message starts "line:column: "; details "line"
// and "column".
// `customs` (may be null): the ops of the host.
Result<Graph> parse(std::string_view text, const OpTable& table = op_table(),
                    const std::shared_ptr<const CustomOps>& customs = nullptr);

// `axis=-1 eps=1e-5 perm=[0,2,1] act=gelu name="a b" shape=[batch,past+seq,64]`: the syntax of attributes, of op
// strings and of options. A number is an integer or an f64. Every other word is a string. A list is a list of numbers
// if all its items are numbers, else a list of strings. Binding converts each value to the kind that the row asks for.
// RLX_E_OPTION with detail "column".
Result<NamedAttrs> parse_attrs(std::string_view text);

}  // namespace rlx
