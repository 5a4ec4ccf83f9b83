// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/server.hpp>

#include <services/staging/server/report_json.hpp>

#include <base/file.hpp>
#include <base/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace staging {

using nessie::Code;
using nessie::Error;

namespace {

constexpr std::size_t kMostReported = 4096;  // files of each kind
constexpr std::uint64_t kTouchedAhead = 32 << 20;
constexpr std::size_t kBounces = 4;
constexpr auto kSilence = std::chrono::seconds(1);
constexpr auto kMoment = std::chrono::milliseconds(5);

}  // namespace

Result<std::unique_ptr<nessie::Provider>> Server::start(const nessie::ProviderContext &context, ServerOptions options) {
  auto server = std::unique_ptr<Server>(new Server(context, std::move(options)));
  if (auto status = server->add_to(context.runtime, context.number); !status.ok()) return status.error();
  const auto &path = server->options_.url_path;
  if (!path.empty() && !nessie::write_file(path, context.runtime.url() + "\n"))
    return Error{Code::kIo, "cannot write " + path};
  return std::unique_ptr<nessie::Provider>(std::move(server));
}

Server::Server(const nessie::ProviderContext &context, ServerOptions options)
    : options_(std::move(options)),
      runtime_(context.runtime),
      io_(context.main_thread),
      end_process_(context.end_process),
      drainer_(runtime_, io_, context.budget, options_.memory_bytes, statistics_),
      loader_(runtime_, io_, drainer_, statistics_),
      closing_changed_(runtime_),
      bounces_(runtime_, context.budget,
               {"staging.bounce", kBounceBytes, kBounces, [this](nssi::PeerId client) { return is_stuck(client); }}) {
  if (options_.mode == Mode::kDirect)
    drainer_.drain_at_once();
  else
    drainer_.touch_ahead(kTouchedAhead);
  runtime_.on_peer_connected([this](nssi::PeerId peer) {
    peers_.push_back(peer);
    note_crowd();
  });
  if (!options_.board_path.empty()) open_door();
  if (options_.ledger_path.empty()) return;
  auto ledger = Ledger::create(options_.ledger_path);
  if (ledger.ok())
    ledger_ = std::move(*ledger);
  else
    nessie::log::warning("no ledger, so that nobody can tell what a killed server had not written: {}",
                         ledger.error().message);
}

Server::~Server() = default;

void Server::stop() {
  stopped_ = true;
  door_.reset();
  drainer_.end_touching();
  if (!options_.report_path.empty() && !nessie::write_file(options_.report_path, to_json(report())))
    nessie::log::warning("cannot write the report");
}

Server::File Server::find(FileToken token) const {
  const auto found = files_.find(token);
  return found == files_.end() ? nullptr : found->second;
}

Server::File Server::find_to_write(FileToken token) const {
  if (auto file = find(token)) return file;
  const auto found = std::find_if(closing_.begin(), closing_.end(),
                                  [&](const File &file) { return file->token == token && !file->ended; });
  return found == closing_.end() ? nullptr : *found;
}

Result<HelloResult> Server::hello(Request &request, const HelloArgs &args) {
  if (args.protocol != Op::kVersion)
    return Error{Code::kUnsupported,
                 fmt::format("this staging server speaks version {} of the protocol, the program's library version {}: "
                             "install both from the same release",
                             Op::kVersion, args.protocol)};
  if (!args.application.empty()) ++statistics_.clients;
  if (const auto process = runtime_.process_of(request.caller()); process.ok())
    processes_[request.caller().value] = {*process, args.application};
  return HelloResult{Op::kVersion, options_.index, options_.servers, options_.mode, native_version()};
}

Result<NcResult> Server::note_native(Request &, const NativeNote &args) {
  if (args.is_choice) {
    ++left_native_;
    why_left_ = args.why;
    return NcResult{};
  }
  if (native_.size() < kMostReported)
    native_.push_back(args.path + ": " + args.why);
  else
    ++more_native_;
  if (board_) board_->note_native();
  return NcResult{};
}

Status Server::ping(Request &) { return {}; }

Status Server::hasten(Request &) {
  runtime_.hasten_bulk();
  return {};
}

Result<ReportResult> Server::report(Request &) { return report(); }

ReportResult Server::report() const {
  ReportResult r;
  r.bytes_pulled = statistics_.bytes_pulled, r.bytes_pushed = statistics_.bytes_pushed;
  r.bytes_drained = statistics_.bytes_drained, r.bytes_pending = drainer_.pending_bytes();
  r.bytes_read = statistics_.bytes_read;
  r.writes = statistics_.writes, r.reads = statistics_.reads;
  r.files = statistics_.files, r.clients = statistics_.clients;
  r.memory_high_bytes = drainer_.memory_high_bytes();
  r.busy_pull_s = statistics_.busy_pull_s, r.busy_drain_s = statistics_.busy_drain_s;
  r.first_write_s = statistics_.first_write_s, r.last_pull_s = statistics_.last_pull_s,
  r.last_drain_s = statistics_.last_drain_s;
  r.drained.assign(closed_.begin(), closed_.end());
  r.failures = failed_;
  for (const auto &[token, file] : files_)
    if (file->lost_anything()) r.failures.push_back(file->report());
  for (const auto &file : closing_)
    if (file->lost_anything()) r.failures.push_back(file->report());
  r.native = native_;
  r.left_native = left_native_, r.why_left = why_left_;
  if (more_native_ > 0) r.native.push_back(fmt::format("{} more files, says server {}", more_native_, options_.index));
  return r;
}

void Server::note_closed(const File &file) {
  if (file->wrote_anything()) closed_.push_back(file->report());
  if (closed_.size() > kMostReported) closed_.pop_front();
  if (file->lost_anything()) note_failed(file->report());
}

/// What there is no room for is in one last report.
void Server::note_failed(FileReport report) {
  if (failed_.size() < kMostReported) return failed_.push_back(std::move(report));
  if (more_failed_++ == 0) failed_.emplace_back();
  auto &others = failed_.back();
  others.path = fmt::format("{} more files of server {}", more_failed_, options_.index);
  others.nc_error = report.nc_error, others.message = report.message;
  others.bytes_acknowledged += report.bytes_acknowledged, others.bytes_in_file += report.bytes_in_file;
}

void Server::note_crowd() { drainer_.give_way(peers_.size() >= std::thread::hardware_concurrency()); }

// A program that dies, or exits without closing, leaves its files as native PnetCDF would have left them: with all that
// was written.
void Server::peer_lost(nssi::PeerId peer) {
  std::erase(peers_, peer);
  note_crowd();
  processes_.erase(peer.value);
  std::erase_if(held_, [&](const auto &held) { return held.second.owner == peer; });
  std::vector<File> orphans;
  for (const auto &[token, file] : files_)
    if (file->owner == peer) orphans.push_back(file);
  for (const auto &file : orphans) {
    files_.erase(file->token);
    closing_.push_back(file);
    runtime_.spawn([this, file] {
      await_silence();
      finish_orphan(file);
    });
  }
}

namespace {

/// Whether a process of this node was stopped (Ctrl-Z, a debugger, a batch system), and may go on later.
bool is_stopped(pid_t process) {
  const auto stat = nessie::read_file(fmt::format("/proc/{}/stat", process));
  const auto &text = stat.ok() ? *stat : std::string();
  const auto name_end = text.rfind(')');  // the name may hold anything
  return name_end != std::string::npos && name_end + 2 < text.size() &&
         (text[name_end + 2] == 'T' || text[name_end + 2] == 't');
}

}  // namespace

bool Server::is_stopped(nssi::PeerId peer) const {
  const auto found = processes_.find(peer.value);
  return found != processes_.end() && staging::is_stopped(found->second.pid);
}

/// Of the program whose file it is. Who is stopped is silent, and not gone.
bool Server::any_is_stopped(const OpenFile &file) const {
  const auto owner = processes_.find(file.owner.value);
  return owner != processes_.end() && std::ranges::any_of(processes_, [&](const auto &process) {
           return process.second.program == owner->second.program && staging::is_stopped(process.second.pid);
         });
}

/// A program's processes die together, but not at the same instant: what the others have sent is taken first.
void Server::await_silence() {
  const auto deadline = nessie::Deadline::in(kSilence);
  while (!peers_.empty() && !finishing_ && !deadline.passed())
    runtime_.sleep_until(nessie::Deadline::in(kMoment).earlier(deadline));
}

Result<ReportResult> Server::shutdown(Request &) {
  finish_everything();
  end_process_();
  return report();
}

void Server::quiesce() { finish_everything(); }

void Server::finish_everything() {
  finishing_ = true;
  look_at_inboxes();
  while (!files_.empty() || !closing_.empty() || opening_ > 0) {
    for (const auto &file : closing_) drainer_.hasten(*file);
    if (files_.empty()) {
      (void)closing_changed_.wait();
      continue;
    }
    closing_.push_back(files_.extract(files_.begin()).mapped());
    finish_orphan(closing_.back());
  }
}

}  // namespace staging
