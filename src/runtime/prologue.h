// SPDX-License-Identifier: Apache-2.0
// Prologue: runs the graphs that compute resident values, on the device that reads them. A graph is compiled when it is
// first needed, and kept: repeated layers share one, and so do later changes of a param. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "compile/compile.h"
#include "runtime/env.h"

namespace rlx {

class Program;

class Prologue {
 public:
  Prologue(std::shared_ptr<Env> env, std::shared_ptr<const CompiledGraph> source)
      : env_(std::move(env)), compiled_graph_(std::move(source)) {}

  // Runs a graph of the prologue on these inputs. Returns its outputs, in memory of the device.
  Result<std::vector<Tensor>> run(const std::shared_ptr<const Graph>& graph, Device& device,
                                  std::span<const Tensor> in);

 private:
  Result<std::shared_ptr<Program>> program_of(const std::shared_ptr<const Graph>& graph, Device& device);

  std::shared_ptr<Env> env_;
  std::shared_ptr<const CompiledGraph> compiled_graph_;
  std::mutex mutex_;  // guards programs_
  std::map<std::pair<const Graph*, Device*>, std::shared_ptr<Program>> programs_;
};

}  // namespace rlx
