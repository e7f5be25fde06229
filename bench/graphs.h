// SPDX-License-Identifier: Apache-2.0
// The graphs whose compilation is measured, as bytes of ONNX: each is hard in one way.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

struct Feed {  // what a run may be given
  std::string input;
  std::vector<int64_t> dims, values;
};

struct Model {
  std::string path;  // a file; "": the bytes
  std::vector<uint8_t> bytes;
  std::string options;  // of rlx_compile
  int64_t nodes = 0;
  std::vector<Feed> feeds;  // for one run, where results are compared
};

Model chain(int64_t nodes);                // sin of sin of ... of an input
Model softmaxes(int count, int symbols);   // every input has two of the open sizes
Model params(int count);                   // an input, and each param added to it
Model levels(int count, bool on_a_param);  // y = sin(y) + cos(y): 2^count paths
Model decoder(int layers);                 // as an exporter of PyTorch writes it, sizes of batch and sequence open

}  // namespace bench
