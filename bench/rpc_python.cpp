// SPDX-License-Identifier: BSD-3-Clause
// rpc-python: what calls cost from Python, beside the same calls from C++ to the same service: a no-op, and bulk data
// that the service moves from and to a numpy array. python_client.py is the client.
#include "comparison.hpp"
#include "page_aligned.hpp"
#include "python.hpp"
#include "rpc_team.hpp"
#include "timing.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace bench {
namespace {

using nessie::Code;
using nessie::Error;
using nessie::Status;

constexpr auto kLimit = std::chrono::seconds(120);
const std::string kCpp = "c++", kPython = "python";

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

class Languages final : public Comparison {
 public:
  Languages(const Options &options, Report &report)
      : Comparison(options, report, {"round_trip_us", "us"}), kinds_(kinds_for(options)) {}

 private:
  Status measure() override;
  void add_ratios() override {
    for (const auto &kind : kinds_)
      compare(ours(kPython + kind.suffix, kind.size_bytes), ours(kCpp + kind.suffix, kind.size_bytes));
  }
  Status from_cpp(RpcClient &client, Lane &lane) const;
  Status from_python(const std::string &url, Lane &lane) const;

  std::vector<Kind> kinds_;
};

Status Languages::from_cpp(RpcClient &client, Lane &lane) const {
  PageAligned<std::byte> memory(kinds_.back().size_bytes, std::byte{1});
  const auto buffer = client.lend(memory);
  if (!buffer) return buffer.error();
  for (const auto &kind : kinds_) {
    const auto bulk = kind.procedure == "TAKE_BULK" ? Bench::TAKE_BULK : Bench::GIVE_BULK;
    lane.leave(kCpp + kind.suffix, kind.size_bytes, typical_us(kind.calls(), [&](bool) {
                 kind.size_bytes == 0 ? client.call(Bench::NOTHING) : client.call(bulk, *buffer, kind.size_bytes);
               }));
  }
  return client.status();
}

/// By a process that this one starts on its own core, and waits for.
Status Languages::from_python(const std::string &url, Lane &lane) const {
  auto question = nlohmann::json{{"url", url}, {"transport", options_.transport}, {"settings", options_.settings}};
  question["settings"]["nnti.spin_us"] = kRpcPolling.spin_us;
  for (const auto &kind : kinds_)
    question["calls"].push_back(
        {{"procedure", kind.procedure}, {"size_bytes", kind.size_bytes}, {"calls", kind.calls()}});
  const auto run = ask_python("nessie-bench-python", question.dump(), kLimit);
  if (!run) return run.error();
  const auto answers = nlohmann::json::parse(run->output, nullptr, false);
  if (!answers.is_array() || answers.size() != kinds_.size())
    return Error{Code::kBadMessage, fmt::format("the client in Python has printed '{}'", run->output)};
  for (std::size_t i = 0; i < kinds_.size(); ++i)
    lane.leave(kPython + kinds_[i].suffix, kinds_[i].size_bytes, answers[i].get<double>());
  return {};
}

Status Languages::measure() {
  return add(run_rpc_team(options_, {.memory_bytes = kinds_.back().size_bytes}, [&](RpcClient &client, Lane &lane) {
    auto status = from_cpp(client, lane);
    return status.ok() ? from_python(client.url_of_service(), lane) : status;
  }));
}

}  // namespace

Status rpc_python(const Options &options, Report &report) {
  if (auto status = check_forked(options.transport); !status.ok()) return status;
  return Languages(options, report).run_on_fit_cores(options.repetitions(9, 3), "calls from Python");
}

}  // namespace bench
