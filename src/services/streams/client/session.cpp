// SPDX-License-Identifier: BSD-3-Clause
#include <services/streams/client/session.hpp>

#include <services/streams/places.hpp>

#include <base/host.hpp>
#include <nssi/discovery.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

namespace streams {

namespace {

constexpr std::size_t kMostIdleBytes = std::size_t{4} << 30;  // what servers hold bounds it
constexpr std::chrono::milliseconds kAttempt{2000};
constexpr std::chrono::milliseconds kOfSeveral{500};  ///< places, each is waited for

/// Whether what has that URL is on this node; no connection is needed to know it.
bool shares_memory(std::string_view url) {
  const auto &domain = nessie::memory_domain();
  return !domain.empty() && url.find(fmt::format("shm://{}/", domain)) != url.npos;
}

}  // namespace

// --- the session ------------------------------------------------------------------------------------------------------

Result<std::shared_ptr<Session>> Session::get() {
  static std::mutex mutex;
  static std::weak_ptr<Session> the_one;
  std::lock_guard lock(mutex);
  if (auto session = the_one.lock(); session && session->birth_.was_here()) return session;
  nssi::RuntimeOptions options;
  options.endpoint.listen = false;
  auto runtime = nssi::Runtime::open(std::move(options));
  if (!runtime.ok()) return runtime.error();
  std::shared_ptr<Session> session(new Session(*std::move(runtime)));
  the_one = session;
  return session;
}

Session::Session(std::unique_ptr<nssi::Runtime> runtime)
    : runtime_(std::move(runtime)), buffers_(*runtime_, kMostIdleBytes) {}

Session::~Session() {
  if (!birth_.was_here()) {
    nessie::leave(std::shared_ptr<void>(std::move(runtime_)));
    if (beater_.joinable()) beater_.detach();
    if (driver_.joinable()) driver_.detach();
    return;
  }
  {
    std::lock_guard lock(beats_mutex_);
    is_ending_ = true;
    beats_changed_.notify_all();
  }
  if (beater_.joinable()) beater_.join();
  if (driver_.joinable()) {
    runtime_->stop();
    driver_.join();
  }
}

std::shared_ptr<Place> Session::place(const std::string &at) {
  std::lock_guard lock(mutex_);
  if (auto known = places_[at].lock()) return known;
  return nullptr;
}

void Session::note_place(const std::string &at, const std::shared_ptr<Place> &place) {
  std::lock_guard lock(mutex_);
  places_[at] = place;
}

Result<nnti::RegisteredBuffer> Session::take_buffer(std::size_t size_bytes) {
  std::lock_guard lock(mutex_);
  auto taken = buffers_.take(size_bytes);
  if (!taken.ok()) return taken.error();
  if (*taken) return **std::move(taken);
  return runtime_->allocate(size_bytes, nnti::Rights::kReadWrite);
}

void Session::give_back(nnti::RegisteredBuffer buffer) {
  std::lock_guard lock(mutex_);
  buffers_.give_back(std::move(buffer));
}

const nnti::RegisteredBuffer *Session::find_allocated(std::span<const std::byte> memory, std::uint64_t &offset) {
  std::lock_guard lock(mutex_);
  const auto found = allocated_.upper_bound(memory.data());
  if (found == allocated_.end()) return nullptr;
  const auto all = found->second->bytes();
  if (memory.data() < all.data() || memory.data() + memory.size() > all.data() + all.size()) return nullptr;
  offset = static_cast<std::uint64_t>(memory.data() - all.data());
  return found->second;
}

void Session::note_allocated(const nnti::RegisteredBuffer &buffer) {
  std::lock_guard lock(mutex_);
  allocated_[buffer.bytes().data() + buffer.bytes().size()] = &buffer;
}

void Session::forget_allocated(const nnti::RegisteredBuffer &buffer) {
  std::lock_guard lock(mutex_);
  allocated_.erase(buffer.bytes().data() + buffer.bytes().size());
}

// --- beside the program -----------------------------------------------------------------------------------------------

void Session::add_beat(const void *owner, Beat work, std::chrono::milliseconds period) {
  std::lock_guard lock(beats_mutex_);
  beats_.push_back({owner, std::move(work), period, Clock::now() + period});
  if (!beater_.joinable()) beater_ = std::thread([this] { beat(); });
  beats_changed_.notify_all();
}

void Session::remove_beat(const void *owner) {
  std::lock_guard lock(beats_mutex_);
  std::erase_if(beats_, [&](const Beating &each) { return each.owner == owner; });
}

void Session::beat() {
  std::unique_lock lock(beats_mutex_);
  while (!is_ending_) {
    auto next = Clock::time_point::max();
    for (auto &each : beats_) {
      if (each.next <= Clock::now()) {
        each.work();
        each.next = Clock::now() + each.period;
      }
      next = std::min(next, each.next);
    }
    if (beats_.empty())
      beats_changed_.wait(lock);
    else
      beats_changed_.wait_until(lock, next);
  }
}

void Session::drive_beside() {
  std::lock_guard lock(beats_mutex_);
  if (!driver_.joinable()) driver_ = std::thread([this] { runtime_->run(); });
}

// --- places -----------------------------------------------------------------------------------------------------------

Result<std::uint32_t> Place::servers(Deadline deadline) {
  if (auto first = connect(0, deadline); !first.ok()) return first.error();
  std::lock_guard lock(mutex_);
  return static_cast<std::uint32_t>(count_);
}

Result<std::uint32_t> Place::server_for(std::uint32_t rank, std::uint32_t size, Deadline deadline) {
  const auto near = nearest(deadline);
  if (!near.ok()) return near.error();
  return (*near)[std::uint64_t{rank} * near->size() / size];
}

Result<std::vector<std::uint32_t>> Place::nearest(Deadline deadline) {
  const auto count = servers(deadline);
  if (!count.ok()) return count.error();
  std::vector<std::uint32_t> near, all(*count);
  std::iota(all.begin(), all.end(), 0u);
  if (*count == 1) return all;
  std::lock_guard lock(mutex_);
  for (const auto server : all)
    if (shares_memory(servers_[server].url)) near.push_back(server);
  return near.empty() ? all : near;
}

std::optional<Place::Peer> Place::connected(std::uint32_t server) {
  std::lock_guard lock(mutex_);
  return server < servers_.size() ? servers_[server].peer : std::nullopt;
}

Result<Place::Peer> Place::connect(std::uint32_t server, Deadline deadline) {
  for (;;) {
    if (auto peer = connected(server)) return *peer;
    if (server != 0 && !connected(0))
      if (auto first = connect(0, deadline); !first.ok()) return first;
    auto peer = greet(server, deadline);
    if (peer.ok() || deadline.passed()) return peer;
    const auto code = peer.code();
    if (!may_come_back(code) && code != Code::kTimedOut && code != Code::kBusy) return peer;
    if (auto status =
            nessie::service::pause(session_->runtime(), Deadline::in(std::chrono::milliseconds(50)).earlier(deadline));
        !status.ok())
      return status.error();
  }
}

/// One attempt, or what becomes of another thread's.
Result<Place::Peer> Place::greet(std::uint32_t server, Deadline deadline) {
  std::unique_lock lock(mutex_);
  if (server >= count_) return Error{Code::kNotFound, fmt::format("at {} there is no server {}", at_, server)};
  if (servers_[server].is_being_greeted) {
    const auto is_over = [&] { return !servers_[server].is_being_greeted; };
    if (deadline.is_never())
      greeted_.wait(lock, is_over);
    else
      greeted_.wait_until(lock, deadline.when(), is_over);
    if (servers_[server].peer) return *servers_[server].peer;
    return Error{Code::kTimedOut, fmt::format("the server at {} has not answered yet", at_), nessie::Scope::kPeer};
  }
  if (servers_[server].peer) return *servers_[server].peer;
  servers_[server].is_being_greeted = true;
  lock.unlock();
  const auto limit = Deadline::in(kAttempt).earlier(deadline);
  auto peer = server == 0 ? greet_first(limit) : greet_other(server, limit);
  lock.lock();
  servers_[server].is_being_greeted = false;
  greeted_.notify_all();
  return peer;
}

/// It tells where the others are.
Result<Place::Peer> Place::greet_first(Deadline deadline) {
  auto &runtime = session_->runtime();
  auto id = nssi::connect_to(runtime, at_, deadline);
  if (!id.ok()) return id.error();
  const nssi::CallOptions options{.deadline = deadline, .idempotent = true};
  auto hello = Client(runtime, *id).hello({PROTOCOL}, options);
  if (hello.ok() && hello->index != 0) {  // a contact of another one of them
    const std::string first = hello->servers.front();
    runtime.disconnect(*id);
    id = runtime.connect(first, deadline);
    if (!id.ok()) return id.error();
    hello = Client(runtime, *id).hello({PROTOCOL}, options);
  }
  if (hello.ok() && std::ranges::find(hello->servers, std::string()) != hello->servers.end())
    hello = Error{Code::kBusy, fmt::format("not all servers at {} have joined the first one yet", at_)};
  if (hello.ok()) return note(0, *id, *hello);
  runtime.disconnect(*id);
  return hello.error();
}

Result<Place::Peer> Place::greet_other(std::uint32_t server, Deadline deadline) {
  auto &runtime = session_->runtime();
  std::unique_lock lock(mutex_);
  const auto url = servers_[server].url;
  lock.unlock();
  const auto id = runtime.connect(url, deadline);
  if (!id.ok()) {
    look_up(deadline);  // it may be elsewhere by now
    return id.error();
  }
  const auto hello = Client(runtime, *id).hello({PROTOCOL}, {.deadline = deadline, .idempotent = true});
  if (hello.ok()) return note(server, *id, *hello);
  runtime.disconnect(*id);
  look_up(deadline);
  return hello.error();
}

Place::Peer Place::note(std::uint32_t server, nssi::PeerId id, const HelloResult &hello) {
  auto &runtime = session_->runtime();
  if (!runtime.can_give_descriptors(id)) session_->drive_beside();
  std::lock_guard lock(mutex_);
  if (server == 0) {
    count_ = hello.servers.size();
    servers_.resize(std::max(servers_.size(), count_));
    for (std::size_t i = 0; i < count_; ++i) servers_[i].url = hello.servers[i];
  }
  const Peer peer{id, ++generations_, hello.incarnation, runtime.can_view(id)};
  servers_[server].peer = peer;
  return peer;
}

/// Where the first server says that the others are.
void Place::look_up(Deadline deadline) {
  const auto first = connected(0);
  if (!first) return;
  const auto hello =
      Client(session_->runtime(), first->id).hello({PROTOCOL}, {.deadline = deadline, .idempotent = true});
  if (!hello.ok()) return lose(0, first->generation);
  std::lock_guard lock(mutex_);
  for (std::size_t i = 1; i < std::min(servers_.size(), hello->servers.size()); ++i)
    if (!hello->servers[i].empty()) servers_[i].url = hello->servers[i];
}

void Place::lose(std::uint32_t server, std::uint64_t generation) {
  std::lock_guard lock(mutex_);
  if (server >= servers_.size() || !servers_[server].peer || servers_[server].peer->generation != generation) return;
  session_->runtime().disconnect(servers_[server].peer->id);
  servers_[server].peer.reset();
}

// --- finding ----------------------------------------------------------------------------------------------------------

std::vector<std::string> places_of(const Session &session, std::string_view at) {
  if (!at.empty()) return {std::string(at)};
  if (const auto said = session.setting("streams.at"); said && !said->empty()) return {*said};
  std::vector<std::string> found;
  std::error_code error;
  for (const auto &entry : std::filesystem::directory_iterator(contact_folder(), error))
    if (entry.path().extension() == ".contact") found.push_back("file:" + entry.path().string());
  std::ranges::sort(found);
  return found;
}

std::shared_ptr<Place> place_at(const std::shared_ptr<Session> &session, const std::string &at) {
  if (auto known = session->place(at)) return known;
  auto made = std::make_shared<Place>(session, at);
  session->note_place(at, made);
  return made;
}

namespace {

/// A place where somebody was.
struct There {
  std::string at;
  std::shared_ptr<Place> place;
};

bool has_stream(Place &place, std::string_view name, Deadline deadline) {
  const auto listed = place.ask<ListResult>(
      0, deadline, [](Client &client, const nssi::CallOptions &options) { return client.list(options); },
      [](const auto &) { return Status(); });
  return listed.ok() && std::ranges::any_of(listed->streams, [&](const auto &each) { return each.name == name; });
}

/// Those of several that may be meant.
std::vector<There> narrow(const std::vector<There> &there, std::string_view to_read, Deadline deadline) {
  std::vector<There> meant;
  std::ranges::copy_if(there, std::back_inserter(meant), [&](const There &each) {
    return to_read.empty() ? !is_of_run(each.at) : has_stream(*each.place, to_read, deadline);
  });
  return meant.empty() && to_read.empty() ? there : meant;
}

Error several(const std::vector<There> &there, std::string_view to_read) {
  std::vector<std::string> places;
  for (const auto &each : there) places.push_back(each.at);
  return {Code::kInvalidArgument,
          fmt::format("{} at several places: say which one is meant (--at, NESSIE_STREAMS_AT): {}",
                      to_read.empty() ? std::string("there are servers of streams")
                                      : fmt::format("there are streams '{}'", to_read),
                      fmt::join(places, ", "))};
}

}  // namespace

Result<std::shared_ptr<Place>> find_place(const std::shared_ptr<Session> &session, std::string_view at,
                                          std::string_view to_read, Deadline deadline) {
  for (;;) {
    std::vector<There> there;
    Error last{
        Code::kNotFound,
        fmt::format("there are no servers of streams in {}: start them with nessie-streams, or say where they are "
                    "(NESSIE_STREAMS_AT)",
                    contact_folder())};
    const auto places = places_of(*session, at);
    // Of several files, some may be stale.
    const auto patience = places.size() == 1 ? deadline : Deadline::in(kOfSeveral).earlier(deadline);
    for (const auto &each : places) {
      auto place = place_at(session, each);
      if (auto count = place->servers(patience); count.ok())
        there.push_back({each, std::move(place)});
      else
        last = count.error();
    }
    if (there.size() > 1) {
      there = narrow(there, to_read, Deadline::in(kOfSeveral).earlier(deadline));
      if (there.size() > 1) return several(there, to_read);
      last = {Code::kTimedOut, fmt::format("there is no stream '{}' yet at any of {} places", to_read, places.size())};
    }
    if (there.size() == 1) return there.front().place;
    if (deadline.passed()) return last;
    if (!places.empty() && last.code != Code::kPeerLost && last.code != Code::kTimedOut) return last;
    if (auto status =
            nessie::service::pause(session->runtime(), Deadline::in(std::chrono::milliseconds(20)).earlier(deadline));
        !status.ok())
      return status.error();
  }
}

std::uint32_t patience_until(Deadline deadline) {
  constexpr std::chrono::milliseconds kForTheAnswer{500}, kLongest{600'000};
  if (deadline.passed()) return 0;
  if (deadline.is_never()) return static_cast<std::uint32_t>(kLongest.count());
  const auto left = std::max(deadline.when() - Clock::now(), Clock::duration(0));
  const auto patience = left - std::min<Clock::duration>(left / 4, kForTheAnswer);
  return static_cast<std::uint32_t>(
      std::min(std::chrono::floor<std::chrono::milliseconds>(patience), kLongest).count());
}

}  // namespace streams
