// SPDX-License-Identifier: Apache-2.0
// The measured graphs, as bytes of ONNX.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

struct Feed {  // an input of a run
  std::string input;
  std::vector<int64_t> dims, values;
};

struct Model {
  std::string path;  // a file; "": the bytes
  std::vector<uint8_t> bytes;
  std::string options;  // of rlx_compile
  int64_t nodes = 0;
  std::vector<Feed> feeds;  // for the run whose results are compared
};

// Hard to compile, each in one way.
Model chain(int64_t nodes);                // sin of sin of ... of an input
Model softmaxes(int count, int symbols);   // every input has two of the symbols
Model params(int count);                   // an input, and each param added to it
Model levels(int count, bool on_a_param);  // y = sin(y) + cos(y): 2^count paths
Model decoder(int layers);                 // as PyTorch exports it, with open batch and sequence
// Cheap to run, so that the overhead of a run shows. One input "x".
Model one_add(int64_t elements);                 // y = x + x
Model matmuls(int count, int64_t size);          // y = x @ w @ w ...
Model matmul_loop(int64_t trips, int64_t size);  // the same as a loop

}  // namespace bench
