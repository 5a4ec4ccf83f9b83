// SPDX-License-Identifier: BSD-3-Clause
#include "inspector.hpp"

#include <nssi/nssi.hpp>
#include <services/discovery/directory/client/find.hpp>

#include <inspect_rpc.hpp>
#include <staging_rpc.hpp>
#include <streams_rpc.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace nessie::cli {

namespace {

constexpr std::chrono::seconds kPatience{10}, kToFind{1};

}  // namespace

Inspector::Inspector(const Config &config, std::unique_ptr<nssi::Runtime> runtime)
    : config_(config), runtime_(std::move(runtime)) {}
Inspector::~Inspector() = default;

Result<std::unique_ptr<Inspector>> Inspector::open(const Config &config) {
  nssi::RuntimeOptions options;
  options.endpoint.config = config;
  options.endpoint.config.set("nssi.trace", "");  // who looks on is no part of what is looked at
  options.endpoint.listen = false;
  auto runtime = nssi::Runtime::open(std::move(options));
  if (!runtime) return runtime.error();
  return std::unique_ptr<Inspector>(new Inspector(config, *std::move(runtime)));
}

Result<std::vector<std::string>> Inspector::find(const std::string &what) {
  const auto found = ::directory::find(*runtime_, config_, what, Deadline::in(kToFind));
  if (!found) return found.error();
  std::vector<std::string> urls;
  const auto add = [&](const std::string &url) {
    if (!url.empty() && std::ranges::find(urls, url) == urls.end()) urls.push_back(url);
  };
  for (const auto &each : *found) {
    add(each.url);
    for (const auto &other : beside(each.url)) add(other);
  }
  return urls;
}

/// Of servers of streams the first one is announced, for all.
std::vector<std::string> Inspector::beside(const std::string &url) {
  const auto deadline = Deadline::in(kToFind);
  const auto peer = runtime_->connect(url, deadline);
  if (!peer) return {};
  nssi::CallOptions options;
  options.deadline = deadline;
  const auto hello = ::streams::STREAMS::CURRENT::Client(*runtime_, *peer).hello({::streams::PROTOCOL}, options);
  runtime_->disconnect(*peer);
  return hello ? std::vector<std::string>(hello->servers.begin(), hello->servers.end()) : std::vector<std::string>();
}

Result<nlohmann::json> Inspector::ask(const std::string &url) {
  namespace FIRST = inspect::NSSI_INSPECT::FIRST;
  const auto deadline = Deadline::in(kPatience);
  const auto peer = runtime_->connect(url, deadline);
  if (!peer) return peer.error();
  nssi::CallOptions options;
  options.deadline = deadline;
  const auto text = FIRST::Client(*runtime_, *peer).STATISTICS(options);
  runtime_->disconnect(*peer);
  if (!text) return text.error();
  auto json = nlohmann::json::parse(*text, nullptr, false);
  if (json.is_discarded() || !json.contains("operations"))
    return Error{Code::kUnsupported,
                 fmt::format("the process at {} answers what this version does not understand", url)};
  return json;
}

Result<staging::FilesResult> Inspector::files(const std::string &url, Deadline deadline) {
  const auto peer = runtime_->connect(url, deadline);
  if (!peer) return peer.error();
  nssi::CallOptions options;
  options.deadline = deadline;
  auto told = staging::STAGING::CURRENT::Client(*runtime_, *peer).files(options);
  runtime_->disconnect(*peer);
  return told;
}

}  // namespace nessie::cli
