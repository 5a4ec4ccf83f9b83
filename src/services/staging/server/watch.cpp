// SPDX-License-Identifier: BSD-3-Clause
// Who looks on at the files of programs, and waits for news.
#include <services/staging/server/server.hpp>

#include <fmt/format.h>
#include <pnetcdf.h>

#include <algorithm>

namespace staging {

using nessie::Code;
using nessie::Deadline;
using nessie::Error;

namespace {

constexpr std::chrono::milliseconds kLongestWatch{600'000}, kLastNews{1000};
constexpr std::size_t kMostWatches = 256, kMostWatchesOfOne = 4;

}  // namespace

/// A watch's place, for as long as it waits.
class Server::Watching {
 public:
  Watching(Server &server, nssi::PeerId caller)
      : server_(server), at_(server.watches_.insert(server.watches_.end(), {caller, nullptr})) {
    renew();
  }
  ~Watching() {
    server_.watches_.erase(at_);
    server_.watch_ended_.notify_all();
  }
  Watching(const Watching &) = delete;
  nssi::Event &event() { return *at_->event; }
  void renew() { at_->event = std::make_unique<nssi::Event>(server_.runtime_); }

 private:
  Server &server_;
  std::list<Watch>::iterator at_;
};

Result<WatchResult> Server::watch(Request &request, const WatchArgs &args) {
  if (auto status = await_recovered(); !status.ok()) return status.error();
  if (auto status = check_room_for_watch(request.caller()); !status.ok()) return status.error();
  watchers_.insert(request.caller().value);
  Watching watching(*this, request.caller());
  const auto patience = std::min<std::chrono::milliseconds>(std::chrono::milliseconds(args.patience_ms), kLongestWatch);
  const auto deadline = Deadline::in(patience);
  while (!marks_.has_changed(args) && !deadline.passed()) {
    if (request.wait(watching.event(), deadline).ok()) watching.renew();
    if (auto still = request.check(); !still.ok()) return still.error();
  }
  auto news = marks_.since(args);
  if (news.is_ending) watchers_.erase(request.caller().value);
  return news;
}

Status Server::check_room_for_watch(nssi::PeerId caller) const {
  const auto its = std::ranges::count(watches_, caller, &Watch::caller);
  if (static_cast<std::size_t>(its) >= kMostWatchesOfOne)
    return Error{Code::kBusy, fmt::format("a process may wait for changes of files {} times at once", its)};
  if (watches_.size() < kMostWatches) return {};
  return Error{Code::kBusy, fmt::format("{} others wait for changes of files already", watches_.size())};
}

void Server::tell_watches() {
  for (auto &watch : watches_) watch.event->set();
}

/// Who watches hears what became of the files, before the server is gone; who has just heard of something may be about
/// to ask again.
void Server::end_watches() {
  marks_.end();
  const auto deadline = Deadline::in(kLastNews);
  while ((!watches_.empty() || !watchers_.empty()) && !deadline.passed())
    if (watch_ended_.wait(deadline).code() == Code::kCancelled) return;
}

Result<HeaderOf> Server::header(Request &, const FileToken &token) {
  if (auto status = await_recovered(); !status.ok()) return status.error();
  const auto marked = marks_.find(token);
  if (!marked) return not_known();
  for (auto file = handle_on(*marked); file; file = handle_on(*marked)) {
    const FileGate::Shared shared(file->gate);
    if (file->ended) {
      if (closing_changed_.wait(Deadline::in(kLastNews)).code() == Code::kCancelled) break;
      continue;
    }
    HeaderResult found;
    const int error = on_io([&] { return file->native->describe(found); });
    return HeaderOf{true, error, std::move(found.header)};
  }
  return HeaderOf{};
}

Error Server::not_known() {
  return {Code::kNotFound,
          "this staging server knows nothing of that file: it was closed long ago, or the server was started since"};
}

}  // namespace staging
