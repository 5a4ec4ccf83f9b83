// SPDX-License-Identifier: BSD-3-Clause
// rpc-python: what calls cost from Python, beside the same calls from C++ to the same service: a no-op, and bulk data
// that the service moves from and to a numpy array. python_client.py is the client.
#include "child.hpp"
#include "page_aligned.hpp"
#include "repeat.hpp"
#include "rpc_team.hpp"
#include "timing.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>

namespace bench {
namespace {

using nessie::Code;
using nessie::Error;
using nessie::Status;

constexpr auto kLimit = std::chrono::seconds(120);
constexpr const char *kCpp = "c++", *kPython = "python";

/// A call that both make, and how many of them in a batch.
struct Kind {
  std::string procedure;  ///< of rpc.x
  std::string suffix;     ///< of the mode
  std::uint64_t size_bytes;
  int calls() const { return size_bytes == 0 ? kRoundTrips : std::min(transfers_per_batch(size_bytes), kRoundTrips); }
};

std::vector<Kind> kinds_for(const Options &options) {
  std::vector<Kind> kinds{{"NOTHING", "", 0}};
  const auto sizes =
      options.once ? std::vector<std::uint64_t>{1 << 20} : std::vector<std::uint64_t>{64 << 10, 1 << 20, 16 << 20};
  for (auto size : sizes) {
    kinds.push_back({"TAKE_BULK", "-pulled", size});
    kinds.push_back({"GIVE_BULK", "-pushed", size});
  }
  return kinds;
}

/// Where the package is if it was built or installed together with this program.
std::string python_path(const std::filesystem::path &client) {
  const auto *others = std::getenv("PYTHONPATH");
  return fmt::format("PYTHONPATH={}:{}:{}", (client / "../../lib/python").string(),
                     (client / "../../../" NESSIE_LIBDIR "/python").string(), others != nullptr ? others : "");
}

class Languages {
 public:
  Languages(const Options &options, Report &report) : options_(options), report_(report), kinds_(kinds_for(options)) {}
  Status measure(int repetition);
  void add_ratios();

 private:
  Status lead(RpcClient &client, Lane &lane, const std::string &url) const;
  Status from_cpp(RpcClient &client, double *values) const;
  Status from_python(const std::string &url, double *values) const;
  Series series(const char *language, const Kind &kind) const {
    return {"nessie", options_.transport, language + kind.suffix, kind.size_bytes, 1, "round_trip_us", "us"};
  }

  const Options &options_;
  Report &report_;
  std::vector<Kind> kinds_;
};

Status Languages::from_cpp(RpcClient &client, double *values) const {
  PageAligned<std::byte> memory(kinds_.back().size_bytes, std::byte{1});
  const auto buffer = client.lend(memory);
  if (!buffer) return buffer.error();
  for (const auto &kind : kinds_) {
    const auto bulk = kind.procedure == "TAKE_BULK" ? Bench::TAKE_BULK : Bench::GIVE_BULK;
    *values++ = typical_us(kind.calls(), [&](bool) {
      kind.size_bytes == 0 ? client.call(Bench::NOTHING) : client.call(bulk, *buffer, kind.size_bytes);
    });
  }
  return client.status();
}

/// By a process that this one starts on its own core, and waits for.
Status Languages::from_python(const std::string &url, double *values) const {
  const std::filesystem::path client = sibling("nessie-bench-python");
  auto question = nlohmann::json{{"url", url}, {"transport", options_.transport}, {"settings", options_.settings}};
  question["settings"]["nnti.spin_us"] = kRpcPolling.spin_us;
  for (const auto &kind : kinds_)
    question["calls"].push_back(
        {{"procedure", kind.procedure}, {"size_bytes", kind.size_bytes}, {"calls", kind.calls()}});
  // numpy asks the kernel for huge pages otherwise, and the array in C++ has none.
  const auto run = run_program({NESSIE_PYTHON, client.string(), question.dump()}, kLimit,
                               {python_path(client), "NUMPY_MADVISE_HUGEPAGE=0"});
  if (!run) return run.error();
  const auto answers = nlohmann::json::parse(run->output, nullptr, false);
  if (!answers.is_array() || answers.size() != kinds_.size())
    return Error{Code::kBadMessage, fmt::format("the client in Python has printed '{}'", run->output)};
  for (const auto &answer : answers) *values++ = answer.get<double>();
  return {};
}

Status Languages::lead(RpcClient &client, Lane &lane, const std::string &url) const {
  auto status = from_cpp(client, lane.values.data());
  if (status.ok()) status = from_python(url, lane.values.data() + kinds_.size());
  return status;
}

Status Languages::measure(int repetition) {
  RpcTeam team;
  team.memory_bytes = kinds_.back().size_bytes;
  auto board = board_for(team);
  auto status = run_rpc_team(options_, team, *board, [&](RpcClient &client, Lane &lane) {
    return lead(client, lane, board->address_of(team.clients));
  });
  if (!status.ok()) return status;
  const auto *value = board->lane(0).values.data();
  for (const char *language : {kCpp, kPython})
    for (const auto &kind : kinds_) report_.add(series(language, kind), repetition, *value++);
  return {};
}

void Languages::add_ratios() {
  for (const auto &kind : kinds_) report_.add_ratio(series(kPython, kind), series(kCpp, kind));
}

}  // namespace

Status rpc_python(const Options &options, Report &report) {
  if (auto status = check_forked(options.transport); !status.ok()) return status;
  Languages languages(options, report);
  return compare_on_fit_cores(options.repetitions(9, 3), report, "calls from Python", languages);
}

}  // namespace bench
