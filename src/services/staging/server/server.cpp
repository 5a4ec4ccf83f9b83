// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/server.hpp>

#include <base/file.hpp>
#include <base/log.hpp>

#include <fmt/format.h>

#include <unistd.h>
#include <algorithm>
#include <charconv>
#include <ctime>
#include <sstream>
#include <thread>

namespace staging {

using nessie::Code;
using nessie::Error;

namespace {

constexpr std::uint64_t kTouchedAhead = 32 << 20;  // by all servers together: each gets its share of the data
constexpr std::size_t kBounces = 4;
constexpr auto kSlow = std::chrono::seconds(1);
constexpr auto kSilence = std::chrono::seconds(1);
constexpr auto kMoment = std::chrono::milliseconds(5);

/// None where none can be written. kExists: another server runs that keeps its own there.
Result<std::unique_ptr<Ledger>> open_ledger(const std::string &path) {
  if (path.empty()) return std::unique_ptr<Ledger>();
  auto ledger = Ledger::create(path);
  if (ledger.ok() || ledger.code() == nessie::Code::kExists) return ledger;
  nessie::log::warning("no ledger, so that nobody can tell what a killed server had not written: {}",
                       ledger.error().message);
  return std::unique_ptr<Ledger>();
}

}  // namespace

Result<std::unique_ptr<nessie::Provider>> Server::start(const nessie::ProviderContext &context, ServerOptions options) {
  auto ledger = open_ledger(options.ledger_path);
  if (!ledger.ok()) return ledger.error();
  auto server = std::unique_ptr<Server>(new Server(context, std::move(options)));
  server->ledger_ = *std::move(ledger);
  if (auto status = server->add_to(context.runtime, context.number); !status.ok()) return status.error();
  if (server->options_.is_successor || (server->may_be_kept() && Journal::is_in(server->options_.log_path))) {
    server->is_recovering_ = server->is_reopening_ = true;
    context.runtime.spawn([server = server.get()] { server->recover(); });
  }
  const auto &path = server->options_.url_path;
  if (path.empty()) return std::unique_ptr<nessie::Provider>(std::move(server));
  if (auto status = nessie::write_file(path, context.runtime.url() + "\n"); !status.ok()) return status.error();
  return std::unique_ptr<nessie::Provider>(std::move(server));
}

Server::Server(const nessie::ProviderContext &context, ServerOptions options)
    : options_(std::move(options)),
      runtime_(context.runtime),
      budget_(context.budget),
      io_(context.main_thread),
      end_process_(context.end_process),
      opening_logged_(runtime_),
      opening_replicated_(runtime_),
      drainer_(runtime_, io_, context.budget, options_.memory_bytes, statistics_, options_.drain),
      loader_(runtime_, io_, drainer_, statistics_),
      replicas_(runtime_, context.budget, options_.memory_bytes),
      servers_(options_.servers_at),
      recovered_(runtime_),
      moved_(runtime_),
      closing_changed_(runtime_),
      marks_([this] { tell_watches(); }),
      watch_ended_(runtime_),
      moves_(runtime_, {kSlow, options_.client_timeout, [this](nssi::PeerId client) { give_up(client); },
                        [this](nssi::PeerId client) { return !finishing_ && is_stopped(client); }}),
      bounces_(runtime_, context.budget, {"staging.bounce", kBounceBytes, kBounces, [this](nssi::PeerId client) {
                                            return moves_.is_slow(client);
                                          }}) {
  statistics_.restarts = options_.restarts;
  if (options_.restarts > 0) statistics_.restarted_at = static_cast<std::uint64_t>(std::time(nullptr));
  if (options_.mode == Mode::kDirect)
    drainer_.drain_at_once();
  else
    drainer_.touch_ahead(kTouchedAhead / std::max<std::uint32_t>(options_.servers, 1));
  runtime_.on_peer_connected([this](nssi::PeerId peer) {
    peers_.push_back(peer);
    note_crowd();
  });
  if (!options_.board_path.empty()) open_door();
}

Server::~Server() = default;

void Server::stop() {
  door_.reset();
  drainer_.end_touching();
  if (logged_ && logged_->is_empty() && logged_->is_whole()) Journal::remove(std::move(logged_));
  logged_.reset();
  remove_undo();
  replicated_.journal.reset();
  former_.clear();
  if (options_.on_end) options_.on_end(report());
}

Server::File Server::find(FileToken token) const {
  const auto found = files_.find(token);
  return found == files_.end() ? nullptr : found->second;
}

Server::File Server::find_to_write(FileToken token) const {
  if (auto file = find(token)) return file;
  auto file = find_closing(token);
  return file && !file->ended ? file : nullptr;
}

Server::File Server::find_closing(FileToken token) const {
  const auto found = std::ranges::find(closing_, token, [](const File &file) { return file->token; });
  return found == closing_.end() ? nullptr : *found;
}

void Server::give_up(nssi::PeerId client) {
  nessie::log::warning("a process of the program moved no data for {} ms and is given up",
                       options_.client_timeout.count());
  peer_lost(client);
}

/// Who only looks on, or is gone, takes no core, and sends nothing that is waited for.
void Server::forget_crowd(nssi::PeerId peer) {
  std::erase(peers_, peer);
  note_crowd();
}

void Server::note_crowd() { drainer_.give_way(peers_.size() >= std::thread::hardware_concurrency()); }

// A program that dies, or exits without closing, leaves its files as native PnetCDF would have left them: with all that
// was written.
void Server::peer_lost(nssi::PeerId peer) {
  forget_crowd(peer);
  processes_.erase(peer.value);
  marked_reads_.erase(peer.value);
  watchers_.erase(peer.value);
  watch_ended_.notify_all();
  forget_client(peer);
  if (replicated_.journal && peer == replicated_.peer) {
    replicated_.is_lost = true;
    renew_replicated();
  }
  accounts_.erase(peer.value);
  marks_.note_left(peer.value);
  std::erase_if(held_, [&](const auto &held) {
    if (held.second.owner != peer) return false;
    end_detached(held.first);
    return true;
  });
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

/// When a process of this node was started, in ticks since the node was; 0: there is none.
std::uint64_t Server::started_of(pid_t process) {
  constexpr int kFieldsBetween = 20;  // behind the name, before the 22nd: proc(5)
  const auto stat = nessie::read_file(fmt::format("/proc/{}/stat", process));
  if (!stat.ok()) return 0;
  std::istringstream fields(stat->substr(std::min(stat->size(), stat->rfind(')') + 1)));
  std::string field;
  for (int i = 0; i < kFieldsBetween && fields >> field; ++i) continue;
  std::uint64_t started = 0;
  std::from_chars(field.data(), field.data() + field.size(), started);
  return started;
}

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

}  // namespace staging
