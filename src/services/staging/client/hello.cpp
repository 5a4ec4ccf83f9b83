// SPDX-License-Identifier: BSD-3-Clause
// Connecting: each process says hello to every server, once.
#include <services/launch/client/client.hpp>
#include <services/staging/client/impl.hpp>

#include <base/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace staging {

using nessie::Code;
using nessie::Deadline;
using nessie::Error;

namespace {

/// For copied data that have no answer yet: of all processes of a node, and of one at most and at least.
constexpr std::uint64_t kBufferOfNode = 128 << 20, kMostBuffer = 64 << 20, kLeastBuffer = 16 << 20;
constexpr std::chrono::milliseconds kPatienceWithRestart{1000}, kGlance{10};
constexpr const char *kMailbox = "33344";  // 512 slots, and messages of 4 KiB in place

Result<std::unique_ptr<nssi::Runtime>> open_runtime(const nessie::Config &config) {
  nssi::RuntimeOptions options;
  options.endpoint.listen = false;
  options.endpoint.config = config;
  // The requests of a checkpoint wait in the mailbox, from where they are carried out even if this process is killed:
  // more of them than a small mailbox holds.
  if (!config.get("nnti.mailbox")) options.endpoint.config.set("nnti.mailbox", kMailbox);
  options.endpoint.config.set("nssi.reconnect",
                              "0");  // a lost server is asked nothing more: its ledger says what it did
  return nssi::Runtime::open(std::move(options));
}

/// Whether so many processes of a node leave none of its cores to the servers; 0: nobody knows how many they are.
bool take_all_cores(int processes) {
  return processes > 0 && processes >= static_cast<int>(std::thread::hardware_concurrency());
}

std::uint64_t default_buffer(int processes) {
  if (processes <= 0 || take_all_cores(processes)) return kLeastBuffer;
  return std::clamp(kBufferOfNode / static_cast<std::uint64_t>(processes), kLeastBuffer, kMostBuffer);
}

/// A server that has died may be about to be started again.
Result<nssi::PeerId> connect_to(nssi::Runtime &runtime, const std::string &url, Deadline deadline,
                                const std::stop_token &stop) {
  const auto patience = Deadline::in(kPatienceWithRestart).earlier(deadline);
  for (;;) {
    auto peer = runtime.connect(url, deadline, stop);
    if (peer.ok() || peer.code() != Code::kPeerLost || patience.passed() || stop.stop_requested()) return peer;
    std::this_thread::sleep_for(kGlance);
  }
}

/// Each element has one owner among the servers only if all clients have the same list of them.
Status check_place(const HelloResult &server, int index, int servers) {
  if (static_cast<int>(server.index) == index && static_cast<int>(server.servers) == servers) return {};
  return Error{
      Code::kInvalidArgument,
      fmt::format("NESSIE_SERVERS has {} servers, of which the one at place {} says that it is server {} of {}: "
                  "name all servers of a run, in their order",
                  servers, index, server.index, server.servers)};
}

}  // namespace

Result<std::unique_ptr<Client>> Client::connect(const nessie::Config &config, const std::string &program, int processes,
                                                const std::stop_token &stop) {
  auto timeout = config.get_duration("staging.timeout", std::chrono::seconds(30));
  if (!timeout.ok()) return timeout.error();
  auto buffer = config.get_size("staging.buffer", default_buffer(processes));
  if (!buffer.ok()) return buffer.error();
  auto checks = config.get_bool("staging.checksums", true);
  if (!checks.ok()) return checks.error();
  auto start = launch::start_timeout(config);
  if (!start.ok()) return start.error();
  auto runtime = open_runtime(config);
  if (!runtime.ok()) return runtime.error();
  const auto urls = launch::servers_in(config.get_or("servers", ""), **runtime, Deadline::in(*start + *timeout));
  if (!urls.ok()) return urls.error();
  auto impl = std::make_unique<Impl>();
  impl->runtime = std::move(*runtime);
  impl->timeout = *timeout;
  impl->checks = *checks;
  impl->program = program;
  impl->job = config.get_or("staging.job", "");
  impl->is_crowded = take_all_cores(processes);
  impl->copy_buffers =
      std::make_unique<nessie::service::CopyBuffers>(*impl->runtime, static_cast<std::size_t>(*buffer));
  for (const auto &url : *urls) {
    auto peer = connect_to(*impl->runtime, url, Deadline::in(*timeout), stop);
    if (!peer.ok()) return peer.error();
    impl->servers.push_back({url, *peer, Stub(*impl->runtime, *peer), impl->runtime->max_inline_args(*peer),
                             impl->runtime->can_view(*peer), impl->runtime->can_give_descriptors(*peer)});
  }
  impl->stopped.emplace(stop, [everything = impl.get()] { everything->give_all_up(); });
  const std::lock_guard lock(impl->mutex);
  const auto hello = impl->hello();
  for (int s = 0; s < impl->count(); ++s) {
    auto answer = impl->ask(s, &Stub::hello_async, hello);
    if (!answer.ok()) return answer.error();
    if (auto status = check_place(*answer, s, impl->count()); !program.empty() && !status.ok()) return status.error();
    impl->mode = answer->mode;
    impl->at(s).returns = answer->returns && !program.empty();
    impl->keeps = impl->keeps || answer->keeps;
  }
  if (impl->keeps && !program.empty()) impl->expect_return();
  for (int s = 0; s < impl->count() && !impl->job.empty(); ++s)
    if (auto belongs = impl->ask(s, &Stub::belong_async, impl->job); !belongs.ok()) return belongs.error();
  return std::unique_ptr<Client>(new Client(std::move(impl)));
}

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

// What the program has written must be carried out, or somebody must know that it was not.
Client::~Client() {
  const std::lock_guard lock(impl_->mutex);
  while (!impl_->messages.empty()) impl_->finish_one();
  for (const auto &[file, outcome] : impl_->written)
    if (auto result = outcome->take(); !result.ok() || *result != 0)
      nessie::log::error("something that this process has written may not be in its file: {}",
                         result.ok() ? fmt::format("PnetCDF's error {}", *result) : result.error().to_string());
  impl_->end_watch();
}

int Client::servers() const { return impl_->count(); }
Mode Client::mode() const { return impl_->mode; }
void Client::flush_trace() { impl_->runtime->flush_trace(); }
bool Client::is_crowded() const { return impl_->is_crowded; }
const std::string &Client::server_url(int index) const { return impl_->at(index).url; }

}  // namespace staging
