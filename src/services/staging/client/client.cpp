// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/client/impl.hpp>

#include <base/credential.hpp>
#include <base/log.hpp>
#include <services/staging/handle.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace staging {

using nessie::Code;
using nessie::Deadline;
using nessie::Error;

namespace {

constexpr std::int32_t kNcWrite = 1;  // NC_WRITE
/// For copied data that have no answer yet: of all processes of a node, and of one at most and at least.
constexpr std::uint64_t kBufferOfNode = 128 << 20, kMostBuffer = 64 << 20, kLeastBuffer = 16 << 20;
constexpr int kSignsInTimeout = 3;  // a server is asked for a sign of life this often within the timeout

constexpr const char *kMailbox = "33344";  // 512 slots, and messages of 4 KiB in place

Error no_sign_of_life(const std::string &url, std::chrono::milliseconds timeout) {
  return {
      Code::kTimedOut,
      fmt::format("the staging server {} gave no sign of life for {} s and was given up; it may be stopped or hang in "
                  "the file system (NESSIE_STAGING_TIMEOUT sets how long to wait)",
                  url, std::chrono::duration<double>(timeout).count()),
      nessie::Scope::kPeer};
}

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

}  // namespace

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

// What the program has written must be carried out, or somebody must know that it was not.
Client::~Client() {
  const std::lock_guard lock(impl_->mutex);
  while (!impl_->messages.empty()) impl_->finish_one();
  for (const auto &[file, outcome] : impl_->written)
    if (auto result = outcome->take(); !result.ok() || *result != 0)
      nessie::log::error("something that this process has written may not be in its file: {}",
                         result.ok() ? fmt::format("PnetCDF's error {}", *result) : result.error().to_string());
}

namespace {

/// Whether so many processes of a node leave none of its cores to the servers; 0: nobody knows how many they are.
bool take_all_cores(int processes) {
  return processes > 0 && processes >= static_cast<int>(std::thread::hardware_concurrency());
}

std::uint64_t default_buffer(int processes) {
  if (processes <= 0 || take_all_cores(processes)) return kLeastBuffer;
  return std::clamp(kBufferOfNode / static_cast<std::uint64_t>(processes), kLeastBuffer, kMostBuffer);
}

}  // namespace

Result<std::unique_ptr<Client>> Client::connect(const nessie::Config &config, const std::string &program,
                                                int processes) {
  auto list = config.get_or("servers", "");
  std::ranges::replace(list, '|', ';');
  const auto urls = nessie::split(list, " \t\n");
  if (urls.empty())
    return Error{Code::kNotFound, "NESSIE_SERVERS names no staging server: start the program with `nessie run`"};
  auto timeout = config.get_duration("staging.timeout", std::chrono::seconds(30));
  if (!timeout.ok()) return timeout.error();
  auto buffer = config.get_size("staging.buffer", default_buffer(processes));
  if (!buffer.ok()) return buffer.error();
  auto runtime = open_runtime(config);
  if (!runtime.ok()) return runtime.error();
  auto impl = std::make_unique<Impl>();
  impl->runtime = std::move(*runtime);
  impl->timeout = *timeout;
  impl->is_crowded = take_all_cores(processes);
  impl->copy_buffers = std::make_unique<CopyBuffers>(*impl->runtime, static_cast<std::size_t>(*buffer));
  for (const auto &url : urls) {
    auto peer = impl->runtime->connect(url, Deadline::in(*timeout));
    if (!peer.ok()) return peer.error();
    impl->servers.push_back({url, *peer, Stub(*impl->runtime, *peer), impl->runtime->max_inline_args(*peer),
                             impl->runtime->can_view(*peer)});
  }
  const std::lock_guard lock(impl->mutex);
  const HelloArgs hello{Op::kVersion, program};
  for (int s = 0; s < impl->count(); ++s) {
    auto answer = impl->ask(s, &Stub::hello_async, hello);
    if (!answer.ok()) return answer.error();
    impl->mode = answer->mode;
  }
  return std::unique_ptr<Client>(new Client(std::move(impl)));
}

int Client::servers() const { return impl_->count(); }
Mode Client::mode() const { return impl_->mode; }
bool Client::is_crowded() const { return impl_->is_crowded; }
const std::string &Client::server_url(int index) const { return impl_->servers[static_cast<std::size_t>(index)].url; }

// Spreads files over the servers. All handles on one file have the same home: by its inode, as nodes number devices
// each in its own way.
int Client::Impl::home_of(const FileIdentity &identity) const {
  return static_cast<int>((identity.inode * 0x9E3779B97F4A7C15u >> 32) % servers.size());
}

Status Client::Impl::await(nssi::Call &call, int server, Deadline deadline) {
  for (;;) {
    auto status = [&] {
      const Unlocked others_go_on(mutex);
      return call.wait(Deadline::in(timeout / kSignsInTimeout).earlier(deadline));
    }();
    if (status.ok() || status.code() != Code::kTimedOut || deadline.passed()) return status;
    if (alive(server)) continue;
    give_up(server);
    return no_sign_of_life(at(server).url, timeout);
  }
}

bool Client::Impl::alive(int server) {
  if (at(server).lost) return false;
  nssi::CallOptions options;
  options.deadline = Deadline::in(timeout * (kSignsInTimeout - 1) / kSignsInTimeout);
  auto ping = servers[static_cast<std::size_t>(server)].stub.ping_async(options);
  const Unlocked others_go_on(mutex);
  return ping.settle(*options.deadline).code() != Code::kTimedOut;
}

void Client::Impl::give_up(int server) {
  auto &given_up = servers[static_cast<std::size_t>(server)];
  if (!given_up.lost) runtime->disconnect(given_up.peer);
  given_up.lost = true;
}

Result<int> Client::Impl::first_error(Answers &answers) {
  int nc_error = 0;
  Status failure;
  for (auto &[server, asked] : answers) {
    auto result = answer(std::move(asked), server);
    if (!result.ok() && failure.ok()) failure = result.error();
    if (result.ok() && nc_error == 0) nc_error = result->nc_error;
  }
  if (!failure.ok()) return failure.error();
  return nc_error;
}

/// What a server needs to come to a file that this process has open.
Result<FileHandle> Client::Impl::hand_over(int server, int descriptor) {
  auto handle = describe_handle(descriptor);
  const auto key = nessie::random_u64() | 1;
  const auto given = runtime->give_descriptor(at(server).peer, key, descriptor);
  if (given.ok()) handle.descriptor = key;
  if (given.ok() || given.code() == Code::kUnsupported) return handle;
  return given.error();
}

/// Has the other servers hold a file, until they attach it.
Result<int> Client::Impl::hold_by_others(OpenArgs args, int descriptor, int home) {
  Answers answers;
  Status given;
  for (int server = 0; server < count() && given.ok(); ++server) {
    if (server == home) continue;
    auto handle = hand_over(server, descriptor);
    if (!handle.ok()) {
      given = handle.error();
      continue;
    }
    args.handle = *handle;
    answers.emplace_back(server, start(server, &Stub::hold_async, args));
  }
  auto held = first_error(answers);
  return given.ok() ? held : given.error();
}

void Client::Impl::release_by_others(FileToken token, int home) {
  std::vector<std::pair<int, nssi::Future<void>>> answers;
  for (int server = 0; server < count(); ++server)
    if (server != home) answers.emplace_back(server, start(server, &Stub::release_async, token));
  for (auto &[server, asked] : answers) (void)answer(std::move(asked), server);
}

/// Gives a file to all servers: the others hold it; what `home` needs.
Result<FileHandle> Client::Impl::give(const OpenArgs &args, int descriptor, int home) {
  if (auto held = hold_by_others(args, descriptor, home); !held.ok()) return held.error();
  return hand_over(home, descriptor);
}

Result<int> Client::Impl::attach_others(FileToken token, int home) {
  opened[token].attached = true;
  return ask_all(&Stub::attach_async, token, home);
}

Result<int> Client::Impl::detach_others(FileToken token, std::int64_t num_records, int home) {
  opened[token].attached = false;
  return ask_all(&Stub::detach_async, FileArgs{token, num_records, Closing::kDurable, {}}, home);
}

Result<int> Client::create(const CreateArgs &args, int descriptor, const std::function<void()> &meanwhile) {
  const std::lock_guard lock(impl_->mutex);
  const int home = impl_->home_of(identity_of(descriptor));
  auto created = [&]() -> Result<int> {
    const OpenArgs same{args.file, args.path, kNcWrite, args.hints, {}, args.processes};
    auto handle = impl_->give(same, descriptor, home);
    if (!handle.ok()) return handle.error();
    auto given = args;
    given.handle = *handle;
    auto asked = impl_->start(home, &Stub::create_async, given);
    if (meanwhile) {
      const Unlocked others_go_on(impl_->mutex);
      meanwhile();
    }
    return code_of(impl_->answer(std::move(asked), home));
  }();
  if (created.ok() && *created == 0)
    impl_->opened[args.file].home = home;
  else
    impl_->release_by_others(args.file, home);
  return created;
}

Result<HeaderResult> Client::open(const OpenArgs &args, int descriptor) {
  const std::lock_guard lock(impl_->mutex);
  const int home = impl_->home_of(identity_of(descriptor));
  auto result = [&]() -> Result<HeaderResult> {
    auto handle = impl_->give(args, descriptor, home);
    if (!handle.ok()) return handle.error();
    auto given = args;
    given.handle = *handle;
    return impl_->ask(home, &Stub::open_async, given);
  }();
  if (!result.ok() || result->header.empty()) {
    impl_->release_by_others(args.file, home);
    return result;
  }
  impl_->opened[args.file].home = home;
  auto attached = impl_->attach_others(args.file, home);
  if (attached.ok() && *attached == 0) return result;
  (void)impl_->close(args.file, -1, Closing::kDurable, Order(servers()));
  if (!attached.ok()) return attached.error();
  result->nc_error = *attached;
  return result;
}

// One message after the other, so that the server gets them in their order.
Result<int> Client::Impl::finish_defining(FileToken token) {
  const int home = opened[token].home;
  if (auto sent = std::exchange(opened[token].defining, std::nullopt)) {
    auto told = code_of(this->answer(std::move(*sent), home));
    auto &before = opened[token].defined;
    if (before.ok() && *before == 0) before = std::move(told);
  }
  return std::exchange(opened[token].defined, 0);
}

bool Client::define(const AmendArgs &args) {
  const std::lock_guard lock(impl_->mutex);
  auto &file = impl_->opened[args.file];
  if (file.defining && !file.defining->test()) return false;
  file.defined = impl_->finish_defining(args.file);
  if (file.defined.ok() && *file.defined == 0) file.defining = impl_->start(file.home, &Stub::amend_async, args);
  return true;
}

Result<HeaderResult> Client::enddef(const EndDefArgs &args, bool first) {
  const std::lock_guard lock(impl_->mutex);
  impl_->finish_writes(args.file);
  const int home = impl_->opened[args.file].home;
  if (auto defined = impl_->finish_defining(args.file); !defined.ok() || *defined != 0)
    return defined.ok() ? Result<HeaderResult>(HeaderResult{*defined, {}, 0, 0, {}}) : defined.error();
  if (!first && impl_->opened[args.file].attached) {
    auto detached = impl_->detach_others(args.file, args.num_records, home);
    if (!detached.ok()) return detached.error();
    impl_->outcome_of(args.file)->note_answer(NcResult{*detached});  // of a write: the definitions stay
  }
  auto result = impl_->ask(home, &Stub::enddef_async, args);
  if (!result.ok() || result->nc_error != 0) return result;
  auto attached = impl_->attach_others(args.file, home);
  if (!attached.ok()) return attached.error();
  result->nc_error = *attached;
  return result;
}

Result<int> Client::amend(const AmendArgs &args) {
  const std::lock_guard lock(impl_->mutex);
  return code_of(impl_->ask(impl_->opened[args.file].home, &Stub::amend_async, args));
}

// A record may have several owners: each drains what it has before the home server fills it all.
Result<int> Client::fill_record(const FillRecordArgs &args) {
  const std::lock_guard lock(impl_->mutex);
  impl_->finish_writes(args.file);
  const int home = impl_->opened[args.file].home;
  auto drained = impl_->ask_all(&Stub::sync_async, FileArgs{args.file, -1, {}, {}}, home);
  if (!drained.ok() || *drained != 0) return drained;
  return code_of(impl_->ask(home, &Stub::fill_record_async, args));
}

Result<int> Client::sync(FileToken file, std::int64_t num_records) {
  const std::lock_guard lock(impl_->mutex);
  impl_->finish_writes(file);
  const auto opened = impl_->opened.find(file);
  const FileArgs args{file, num_records, {}, {}};
  if (opened == impl_->opened.end() || opened->second.attached) return impl_->ask_all(&Stub::sync_async, args);
  return code_of(impl_->ask(opened->second.home, &Stub::sync_async, args));
}

Result<int> Client::close(FileToken file, std::int64_t num_records, Closing how, const Order &order) {
  const std::lock_guard lock(impl_->mutex);
  return impl_->close(file, num_records, how, order);
}

Result<int> Client::Impl::close(FileToken file, std::int64_t num_records, Closing how, const Order &order) {
  (void)finish_defining(file);  // enddef has told
  const auto closing = std::move(opened[file]);
  opened.erase(file);
  Answers answers;
  for (int server = 0; server < count(); ++server) {
    if (!closing.attached && server != closing.home) continue;
    const FileArgs args{file, num_records, how, order.known(server)};
    answers.emplace_back(server, start(server, &Stub::close_async, args));
  }
  release_by_others(file, closing.home);
  return first_error(answers);
}

Result<int> Client::abort(FileToken file) {
  const std::lock_guard lock(impl_->mutex);
  impl_->finish_writes(file);
  (void)impl_->finish_defining(file);
  const int home = impl_->opened[file].home;
  if (impl_->opened[file].attached)
    if (auto detached = impl_->detach_others(file, -1, home); !detached.ok()) return detached;
  impl_->opened.erase(file);
  impl_->release_by_others(file, home);
  return code_of(impl_->ask(home, &Stub::abort_async, FileArgs{file, -1, {}, {}}));
}

Result<nessie::Fd> Client::lend(FileToken file, const FileIdentity &identity) {
  const std::lock_guard lock(impl_->mutex);
  const int home = impl_->home_of(identity);
  auto lent = impl_->ask(home, &Stub::lend_async, file);
  if (!lent.ok()) return lent.error();
  auto descriptor = impl_->runtime->take_descriptor(impl_->at(home).peer, lent->descriptor);
  if (!descriptor.ok()) return descriptor.error();
  return nessie::Fd(*descriptor);
}

Status Client::settle(const SettleArgs &args) {
  const std::lock_guard lock(impl_->mutex);
  auto settled = impl_->ask_all(&Stub::settle_async, args);
  return settled.ok() ? Status() : settled.error();
}

Status Client::note_native(const std::string &path, const std::string &why, bool is_choice) {
  const std::lock_guard lock(impl_->mutex);
  auto result = impl_->ask(0, &Stub::note_native_async, NativeNote{path, why, is_choice});
  return result.ok() ? Status() : result.error();
}

Result<ReportResult> Client::report(int server) {
  const std::lock_guard lock(impl_->mutex);
  return impl_->ask(server, &Stub::report_async);
}

Result<ReportResult> Client::shutdown(int server, Deadline deadline) {
  const std::lock_guard lock(impl_->mutex);
  return impl_->answer(impl_->start(server, &Stub::shutdown_async), server, deadline);
}

}  // namespace staging
