// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/channel/transport.hpp"

#include <fmt/core.h>
#include <base/credential.hpp>

namespace nnti::channel {
namespace {

using namespace std::chrono_literals;

constexpr Duration kOpeningTime = 10s;  // for a new link to say which session it carries
constexpr Duration kAway = 1s;
constexpr Duration kLastLinger = 1s, kLingerTurn = 1ms;  // at the transport's end

class ChannelConnecting final : public Connecting {
 public:
  explicit ChannelConnecting(Session &session) : session_(session) { session_.awaited = true; }
  ~ChannelConnecting() override { session_.give_up(); }

  std::optional<Result<Connection *>> advance() override {
    if (!session_.opened() && !session_.failure()) session_.attend();
    if (session_.failure()) return *session_.failure();
    if (!session_.opened()) return std::nullopt;
    session_.hand_over();
    return &session_;
  }

 private:
  Session &session_;
};

}  // namespace

Result<std::unique_ptr<Transport>> open(const TransportOptions &options, Reliability reliability,
                                        const Opener &open_inner) {
  auto settings = Settings::load(options.config);
  if (!settings.ok()) return settings.error();
  auto channel = std::make_unique<ChannelTransport>(options, reliability, *settings);
  if (auto status = channel->open_inner(options, open_inner); !status.ok()) return status.error();
  return std::unique_ptr<Transport>(std::move(channel));
}

Status ChannelTransport::open_inner(TransportOptions options, const Opener &open) {
  auto inner = open({options.credential, options.config, *this, options.poller, options.listen, options.name,
                     options.time, options.extra_transports, options.sealed, options.is_named});
  if (!inner.ok()) return inner.error();
  inner_ = std::move(*inner);
  const auto promised = lossy_ ? Reliability::kLossy : Reliability::kUntilBroken;
  if (inner_->reliability() == promised) return {};
  return Error{Code::kInternal, fmt::format("the transport {} is listed with another reliability", inner_->name())};
}

ChannelTransport::~ChannelTransport() {
  if (inner_ == nullptr) return;
  closing_down_ = true;
  for (auto &[id, session] : sessions_) session->close();
  linger();
  for (auto &[id, session] : sessions_) session->finish();
  inner_.reset();
}

/// Gives what was sent a moment to arrive.
void ChannelTransport::linger() {
  const auto until = now() + kLastLinger;
  const auto some_owe = [this] {
    return std::ranges::any_of(sessions_, [](const auto &entry) { return entry.second->owes(); });
  };
  while (some_owe() && now() < until)
    if (progress() == 0) time_.sleep(kLingerTurn);
}

Result<std::unique_ptr<Connecting>> ChannelTransport::connect(const nessie::Url &url, Deadline deadline) {
  SessionId id;
  nessie::random_bytes(id);
  auto session = std::make_unique<Session>(*this, id, url);
  if (auto status = session->open(deadline); !status.ok()) return status.error();
  auto &added = *(sessions_[id] = std::move(session));
  return std::unique_ptr<Connecting>(std::make_unique<ChannelConnecting>(added));
}

Result<std::unique_ptr<TransportMemory>> ChannelTransport::register_memory(const MemoryRegion &region) {
  return register_inside<[](Connection &peer) { return static_cast<Session &>(peer).link(); }>(*inner_, region);
}

// --- links ------------------------------------------------------------------------------------------------------------

void ChannelTransport::accepted(Connection &link) {
  if (closing_down_) return link.close();
  link.peer = PeerId{next_link_++};
  links_[link.peer.value] = {&link, nullptr, now()};
  tick_at(after(now(), kOpeningTime));
}

void ChannelTransport::message(Connection &link, MessageKind, std::span<const std::byte> message) {
  const auto found = links_.find(link.peer.value);
  if (found == links_.end()) return;
  if (found->second.session != nullptr) [[likely]]
    return found->second.session->on_message(message);
  on_first_message(link, message);
}

void ChannelTransport::lost(Connection &link, Loss loss, const Error &error) {
  const auto found = links_.find(link.peer.value);
  if (found == links_.end()) return;
  auto *session = found->second.session;
  links_.erase(found);
  if (session != nullptr) session->on_link_lost(loss, error);
}

void ChannelTransport::turn_away(Connection &link) {
  unbind(link);
  link.close();
}

void ChannelTransport::answer(Connection &link, Type type, std::span<const std::byte> body) {
  Buffer message(kHeaderBytes);
  encode_header({static_cast<std::uint8_t>(type), 0, 0}, std::span(message).first<kHeaderBytes>());
  message.insert(message.end(), body.begin(), body.end());
  (void)link.try_send(MessageKind::kUser, message);
}

void ChannelTransport::on_first_message(Connection &link, std::span<const std::byte> message) {
  const auto header = decode_header(message);
  if (!header || header->type != static_cast<std::uint8_t>(Type::kOpen)) {
    if (!lossy_ || !header) turn_away(link);
    return;
  }
  const auto opening = decode_opening(message.subspan(kHeaderBytes));
  if (opening.ok()) return on_opening(link, *opening, header->acknowledged);
  answer(link, Type::kOpened, encode_opened({0, settings_.limits}));  // it tells our version
  turn_away(link);
}

void ChannelTransport::on_opening(Connection &link, const Opening &opening, std::uint64_t acknowledged) {
  auto *session = find(opening.session);
  const bool theirs = session == nullptr || !session->we_connect();
  // A session that is over keeps its place until it is reaped: lists, and callers, may still refer to it.
  const bool unknown = session == nullptr && (opening.resume || sessions_.contains(opening.session));
  if (unknown) answer(link, Type::kUnknown);
  if (!theirs || unknown || (session != nullptr && session->is_stale(opening.attempt))) return turn_away(link);
  if (session != nullptr) return session->resume(link, opening, acknowledged);
  auto &added = sessions_[opening.session] = std::make_unique<Session>(*this, opening.session, std::nullopt);
  added->resume(link, opening, acknowledged);
  if (added->state() == Session::State::kOver) return;
  tick_at(Time::min());  // nothing waits for its opening any more, perhaps: who has no timers reads no clock
  added->hand_over();
  events_.accepted(*added);
}

Session *ChannelTransport::find(const SessionId &id) {
  const auto found = sessions_.find(id);
  return found == sessions_.end() || found->second->state() == Session::State::kOver ? nullptr : found->second.get();
}

// --- progress ---------------------------------------------------------------------------------------------------------

std::size_t ChannelTransport::progress() {
  ++depth_;
  std::size_t events = inner_->progress();
  if (!attended_.empty()) attend_sessions();
  if (next_tick_ != kNever) look_at_the_clock();
  events += std::exchange(happened_, 0);
  if (--depth_ == 0 && any_to_reap_) reap();
  return events;
}

void ChannelTransport::attend_sessions() {
  hurry_ = false;
  for (auto *session : std::exchange(attended_, {})) {
    session->attended = false;
    if (session->state() != Session::State::kOver && session->attend()) session->ask_attention();
  }
}

void ChannelTransport::look_at_the_clock() {
  const auto time = now();
  was_away_ = last_look_ != kNever && time - last_look_ > kAway;
  last_look_ = time;
  if (time < next_tick_) return;
  next_tick_ = kNever;
  drop_silent_links(time);
  for (auto &[id, session] : sessions_) {
    session->tick(time);
    tick_at(session->next_tick());
  }
}

void ChannelTransport::drop_silent_links(Time time) {
  std::vector<Connection *> silent;
  for (const auto &[id, link] : links_) {
    if (link.session != nullptr) continue;
    if (time >= after(link.since, kOpeningTime))
      silent.push_back(link.connection);
    else
      tick_at(after(link.since, kOpeningTime));
  }
  for (auto *link : silent) {  // not close(): that would say that this process wants no more of its peer
    unbind(*link);
    link->abort();
  }
}

void ChannelTransport::reap() {
  any_to_reap_ = false;
  const auto over = [](const Session &session) { return session.state() == Session::State::kOver && !session.awaited; };
  std::erase_if(attended_, [&](const Session *session) { return over(*session); });
  std::erase_if(sessions_, [&](const auto &entry) { return over(*entry.second); });
}

}  // namespace nnti::channel
