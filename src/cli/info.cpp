// SPDX-License-Identifier: BSD-3-Clause
#include "info.hpp"

#include "commands.hpp"
#include "limits.hpp"
#include "partner.hpp"
#include "speech.hpp"

#include <base/url.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace nessie::cli {

namespace {

constexpr const char *kWithinOneProcess = "inproc";

/// A line on a terminal that says what is being done, and goes when it is done.
class Progress {
 public:
  explicit Progress(const std::string &what) : shown_(isatty(STDERR_FILENO) == 1) {
    if (shown_) fmt::print(stderr, "\r\033[Knessie info: {} ...", what);
  }
  ~Progress() {
    if (shown_) fmt::print(stderr, "\r\033[K");
  }
  Progress(const Progress &) = delete;

 private:
  bool shown_;
};

Probe probe_one(const ProbeOptions &options, const std::string &url) {
  const auto transport = url.substr(0, url.find("://"));
  const Progress progress((options.measure ? "testing " : "trying ") + transport);
  return probe(options, url, {transport});
}

std::vector<std::string> urls_of(const std::string &list) {
  std::vector<std::string> urls;
  if (const auto parsed = Url::parse_list(list); parsed.ok())
    for (const auto &url : *parsed) urls.push_back(url.to_string());
  return urls;
}

/// Over the whole list, as every client of Nessie does.
Result<Probe> choose(ProbeOptions options, const std::string &url, bool measure) {
  options.measure = measure;
  const Progress progress("connecting");
  auto chosen = probe(options, url);
  if (!chosen.reached()) return Error{Code::kPeerLost, chosen.explanation, Scope::kPeer};
  return chosen;
}

/// Whom only this process can reach.
Probe probe_within_process(const ProbeOptions &options) {
  auto partner = PartnerThread::start(options.config, options.credential, kWithinOneProcess);
  if (partner.ok()) return probe_one(options, (*partner)->url());
  Probe failed;
  failed.url = fmt::format("{}://", kWithinOneProcess);
  failed.explanation = partner.error().message;
  return failed;
}

/// Every transport, against a process of this machine or, where only that will do, a thread of this process.
void test_this_machine(const ProbeOptions &options, PartnerProcess &partner, InfoReport &report) {
  const auto url = partner.url();
  if (!url.ok()) {
    report.chosen = Result<Probe>(url.error());
    return;
  }
  for (const auto &one : urls_of(*url))
    report.probes.push_back(one.starts_with(kWithinOneProcess) ? probe_within_process(options)
                                                               : probe_one(options, one));
  report.chosen = choose(options, *url, false);
  if (!report.chosen->ok()) return;
  for (const auto &one : report.probes)  // it was measured already
    if (one.transport == (*report.chosen)->transport) (*report.chosen)->test = one.test;
}

Status test_peer(const InfoOptions &options, ProbeOptions probing, InfoReport &report) {
  auto credential = Credential::of(probing.config);
  if (!credential.ok()) return credential.error();
  probing.credential = *credential;
  report.peer = options.url;
  probing.measure = options.test && options.all;
  for (const auto &one : urls_of(options.url)) report.probes.push_back(probe_one(probing, one));
  report.chosen = choose(probing, options.url, options.test && !options.all);
  if (!report.chosen->ok()) return {};
  for (auto &one : report.probes)
    if (one.transport == (*report.chosen)->transport && options.all) (*report.chosen)->test = one.test;
  return {};
}

int fail(const Error &error) { return say_failure("info", error.message); }

bool every_test_passed(const InfoReport &report) {
  const auto failed = [](const Probe &probe) { return probe.test && !probe.test->ok(); };
  if (report.chosen && (!report.chosen->ok() || failed(**report.chosen))) return false;
  return std::ranges::none_of(report.probes, failed);
}

}  // namespace

int info(const InfoOptions &options) {
  if (options.settings) return list_settings(options.json);
  auto config = Config::load();
  if (!config.ok()) return fail(config.error());
  auto thresholds = nnti::Endpoint::thresholds(*config);
  if (!thresholds.ok()) return fail(thresholds.error());
  InfoReport report;
  report.thresholds = std::move(*thresholds);
  report.cross_memory_attach = try_cross_memory_attach();
  ProbeOptions probing{*config, Credential::generate(), options.test, options.url.empty()};
  std::optional<Result<PartnerProcess>> partner;  // first of all: nothing is open yet that a fork would share
  if (options.url.empty() && options.test) partner.emplace(PartnerProcess::start(*config, probing.credential));
  if (partner && !partner->ok()) return fail(partner->error());
  {
    const Progress progress("looking for transports");
    report.transports = nnti::Endpoint::survey(*config);
  }
  report.limits = limits_of_this_process();
  if (partner) test_this_machine(probing, **partner, report);
  if (!options.url.empty())
    if (auto status = test_peer(options, probing, report); !status.ok()) return fail(status.error());
  options.json ? print_json(report) : print_text(report);
  return every_test_passed(report) ? 0 : 1;
}

}  // namespace nessie::cli
