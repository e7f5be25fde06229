// SPDX-License-Identifier: Apache-2.0
#include "tests/onnx/suite.h"

#include <fnmatch.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace rlx::test {
namespace {

constexpr rlim_t kBytes = rlim_t{4} << 30;
constexpr int kSkipped = 77;  // what CTest takes for a test that did not run

struct Expectation {
  std::string pattern, reason;
  bool is_used = false;
};

std::string run_apart(const Case& each, unsigned seconds) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  std::fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    alarm(seconds);
    rlimit memory{kBytes, kBytes};
    setrlimit(RLIMIT_AS, &memory);
    std::string why = each.run();
    std::replace(why.begin(), why.end(), '\n', ' ');
    bool written = write(ends[1], why.data(), why.size()) == static_cast<ssize_t>(why.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string why;
  char part[4096];
  for (ssize_t n; (n = read(ends[0], part, sizeof part)) > 0;) why.append(part, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return "crash: more than " + std::to_string(seconds) + " s";
  if (WIFSIGNALED(status)) return "crash: signal " + std::to_string(WTERMSIG(status));
  return status == 0 ? why : "crash: exit " + std::to_string(WEXITSTATUS(status));
}

// What is counted as one reason: of a refusal its first kind of node, without the names of one file.
std::string reason_of(const std::string& why) {
  if (auto at = why.find("in all: ["); at != std::string::npos) return why.substr(at + 9, why.find(';', at) - at - 9);
  std::string reason = why.substr(0, 100);
  if (reason.starts_with("wrong: ")) reason = "wrong";
  bool in_quotes = false;
  std::string kept;
  for (char c : reason) {
    if (c == '\'') in_quotes = !in_quotes;
    if (!in_quotes && !std::isdigit(static_cast<unsigned char>(c))) kept += c;
  }
  return kept;
}

std::vector<Expectation> read_list(const Options& options) {
  std::vector<Expectation> list;
  std::ifstream file(options.list);
  for (std::string line; std::getline(file, line);) {
    size_t split = line.find(": ");
    if (line.empty() || line[0] == '#' || split == std::string::npos) continue;
    if (std::string pattern = line.substr(0, split); fnmatch((options.suite + "/*").c_str(), pattern.c_str(), 0) == 0)
      list.push_back({pattern, line.substr(split + 2)});
    else if (pattern.starts_with("*/"))
      list.push_back({pattern, line.substr(split + 2)});
  }
  return list;
}

Expectation* find(std::vector<Expectation>& list, const std::string& name) {
  auto fits = [&](const Expectation& each) { return fnmatch(each.pattern.c_str(), name.c_str(), 0) == 0; };
  auto found = std::find_if(list.begin(), list.end(), fits);
  return found == list.end() ? nullptr : &*found;
}

void print_counts(const std::map<std::string, int>& reasons) {
  std::vector<std::pair<int, std::string>> order;
  for (const auto& [reason, count] : reasons) order.emplace_back(-count, reason);
  std::sort(order.begin(), order.end());
  for (const auto& [count, reason] : order) std::printf("%5d  %s\n", -count, reason.c_str());
}

}  // namespace

Options parse_options(int argc, char** argv, Options options) {
  std::map<std::string, std::string*> texts{
      {"--suite", &options.suite}, {"--list", &options.list}, {"--only", &options.only}};
  for (int i = 1; i < argc; i++) {
    std::string word = argv[i];
    if (word == "--verbose")
      options.verbose = true;
    else if (word == "--device" && i + 1 < argc)
      options.devices.emplace_back(argv[++i]);
    else if (texts.contains(word) && i + 1 < argc)
      *texts[word] = argv[++i];
    else
      options.folders.push_back(word);
  }
  if (options.devices.empty()) options.devices = {"cpu"};
  return options;
}

int run_cases(const Options& options, Cases cases) {
  std::vector<Expectation> list = read_list(options);
  std::erase_if(cases, [&](const auto& pair) { return fnmatch(options.only.c_str(), pair.first.c_str(), 0) != 0; });
  std::map<std::string, int> reasons;
  size_t passed = 0, listed = 0, faults = 0, others = 0;
  for (const auto& [name, each] : cases) {
    std::string why = run_apart(each, options.seconds);
    std::string note = each.note.empty() ? "" : "  (" + each.note + ")";
    if (why.empty()) passed++;
    if (why.empty() && options.verbose) std::printf("ok   %s%s\n", name.c_str(), note.c_str());
    if (!why.empty() && !each.is_ours) {
      others++;
      std::printf("both %s: %s%s\n", name.c_str(), why.c_str(), note.c_str());
      continue;
    }
    Expectation* known = find(list, options.suite + "/" + name);
    if (known) known->is_used = true;
    if (!why.empty()) reasons[known ? "listed: " + known->reason : reason_of(why)]++;
    if (!why.empty() && known) listed++;
    if (why.empty() != !known) faults++;
    if (why.empty() && known) std::printf("PASSES, but stands in the list: %s\n", name.c_str());
    if (!why.empty() && (!known || options.verbose))
      std::printf("FAIL %s: %s%s\n", name.c_str(), why.c_str(), note.c_str());
  }
  for (const Expectation& each : list)
    if (!each.is_used && options.only == "*" && each.pattern.starts_with(options.suite))
      std::printf("the list names what is not there: %s\n", each.pattern.c_str()), faults++;
  print_counts(reasons);
  std::printf("%s: %zu cases, %zu passed, %zu fail as listed, %zu faults", options.suite.c_str(), cases.size(), passed,
              listed, faults);
  std::printf(others ? ", %zu fail elsewhere too\n" : "\n", others);
  return faults ? 1 : 0;
}

std::string taken(rlx_status_t* status) {
  char text[2000];
  if (rlx_status_take(status, text, sizeof text) == RLX_OK) return {};
  return text[0] ? text : "a status without a message";
}

std::string copied(rlx_env_t* env, const Tensor& tensor, rlx_tensor_t** out) {
  return taken(rlx_tensor_copy_from(env, static_cast<rlx_dtype_t>(tensor.dtype()), tensor.dims().data(),
                                    tensor.dims().size(), tensor.data(), static_cast<size_t>(tensor.bytes()), out));
}

std::string same_type(rlx_tensor_t* got, const Tensor& want, Tensor& out) {
  std::vector<int64_t> dims(rlx_tensor_shape(got, nullptr, 0));
  rlx_tensor_shape(got, dims.data(), dims.size());
  auto shape = [](std::span<const int64_t> dims) {
    std::string text;
    for (int64_t dim : dims) text += (text.empty() ? "" : ",") + std::to_string(dim);
    return "[" + text + "]";
  };
  auto dtype = static_cast<DType>(rlx_tensor_dtype(got));
  if (dtype != want.dtype())
    return "the dtype is " + std::string(name(dtype)) + ", not " + std::string(name(want.dtype()));
  if (!std::ranges::equal(dims, want.dims())) return "the shape is " + shape(dims) + ", not " + shape(want.dims());
  out = *Tensor::create(dtype, dims);
  if (out.bytes()) std::memcpy(out.data(), rlx_tensor_data(got), static_cast<size_t>(out.bytes()));
  return {};
}

int nothing_to_run(const char* why, const char* required_by) {
  std::printf("no cases here: %s\n", why);
  return std::getenv(required_by) ? 1 : kSkipped;
}

}  // namespace rlx::test
