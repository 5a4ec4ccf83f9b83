// SPDX-License-Identifier: BSD-3-Clause
// One peer, over any number of connections ("links") one after the other. README.md has the protocol.
//
// session.cpp: messages, acknowledgements, the end. link.cpp: making, breaking and resuming links; time.
#pragma once

#include "nnti/channel/host.hpp"
#include "nnti/channel/operations.hpp"

namespace nnti::channel {

class Session final : public Connection {
 public:
  /// kOpening: the side that connects has not handed it to the endpoint yet. kClosing: the endpoint has closed it; what
  /// was sent is still on its way. kOver: to be reaped.
  enum class State { kOpening, kOpen, kClosing, kOver };

  /// `url`: where to connect, again and again; empty on the side that accepts.
  Session(Host &transport, const SessionId &id, std::optional<nessie::Url> url);

  Transport &transport() override { return transport_; }
  std::string explain() const override;
  std::size_t max_message_bytes() const override { return max_message_bytes_; }
  bool try_send(MessageKind kind, std::span<const std::byte> message) override;
  void get(const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
           Completion &completion) override;
  void put(const RemoteBuffer &remote, std::uint64_t offset, std::span<const std::byte> local,
           Completion &completion) override;
  void close() override;

  // --- for the transport ---------------------------------------------------------------------------------------------
  /// The side that connects: begins. Fails if the transport refuses at once.
  Status open(Deadline deadline);
  /// Whether the peer has answered. The endpoint gets it from now on: hand_over().
  bool opened() const { return opened_; }
  void hand_over();
  /// Nobody waits for it any more.
  void give_up();
  /// Ends without another word.
  void finish();
  /// What kept it from being opened.
  const std::optional<Error> &failure() const { return failure_; }
  /// The side that accepts: `link` carries this session from now on.
  void resume(Connection &link, const Opening &opening, std::uint64_t acknowledged);
  /// Whether an opening with that number is of a link that the peer has given up since.
  bool is_stale(std::uint32_t attempt) const { return attempt <= attempt_; }

  void on_message(std::span<const std::byte> message);
  /// The link ended. It must not be touched any more.
  void on_link_lost(Loss loss, const Error &error);
  /// Does what could not be done before: sends what waits, goes on connecting. True if something still waits.
  bool attend();
  /// Does what is due at `now`.
  void tick(Time now);
  /// When tick() has something to do.
  Time next_tick() const;

  const SessionId &id() const { return id_; }
  bool we_connect() const { return url_.has_value(); }
  State state() const { return state_; }
  /// Closing, and something that was sent may not have arrived yet.
  bool owes() const { return state_ == State::kClosing && (goodbye_ || window_.size() > 1); }
  Connection *link() const { return link_; }
  /// Has attend() called from progress(), once and as long as it says so.
  void ask_attention() { transport_.attend(*this, attended); }
  bool attended = false;  ///< is in the transport's list
  bool awaited = false;   ///< by who asked for it to be opened: not to be reaped

 private:
  bool link_is_up() const { return link_ != nullptr && !greeting_ && !answer_due_; }
  bool resending() const { return resend_next_ < window_.next(); }
  Connection *link_for_operations() const { return link_is_up() && state_ == State::kOpen ? link_ : nullptr; }
  Error peer_lost(std::string message, int cause = 0) const;

  // session.cpp
  bool send_numbered(std::uint8_t type, std::span<const std::byte> payload);
  bool send_control(Type type, std::span<const std::byte> body = {});
  void sent_acknowledgement();
  void on_control(const Header &header, std::span<const std::byte> body);
  void on_numbered(const Header &header, std::span<const std::byte> payload);
  void accept(std::uint8_t type, std::span<const std::byte> payload);
  void accept_early();
  bool acknowledge(std::uint64_t number);
  void on_bitmap(std::uint64_t acknowledged, std::span<const std::byte> bits);
  void send_again(std::uint64_t number, Time now);
  void send_overdue(Time now);
  void resend_rest();
  void acknowledge_soon();
  void say_goodbye();
  void lose(Error error);
  void violated(std::string_view what);

  // link.cpp
  void attach(Connection &link);
  /// Forgets the link, if there is one, and any attempt to make one.
  Connection *leave_link();
  void become_up(const Limits &limits, std::uint64_t acknowledged);
  void on_opened(const Header &header, std::span<const std::byte> body);
  void on_opening_again(std::span<const std::byte> body);
  void greet(Time now);
  void answer_opening();
  void broke(const Error &error);
  void connect_again(Time now);
  void advance_attempt();
  void attempt_failed(const Error &error);
  void watch_the_clock_while_broken(Time now);
  void watch_the_peer(Time now);
  bool excused(Time now);
  Time next_tick_while_broken() const;

  Host &transport_;
  const SessionId id_;
  const std::optional<nessie::Url> url_;
  State state_ = State::kOpening;
  bool opened_ = false;
  std::optional<Error> failure_;
  bool handed_over_ = false;
  bool closed_ = false;  ///< the endpoint wants to hear no more
  std::size_t max_message_bytes_ = 0;

  // The link.
  Connection *link_ = nullptr;
  bool greeting_ = false;    ///< we connected, and the peer has not answered yet
  bool answer_due_ = false;  ///< they connected, and our answer has not been sent yet; nothing goes before it
  std::uint32_t attempt_ = 0;
  std::unique_ptr<Connecting> connecting_;
  Time attempt_ends_ = kNever, next_attempt_ = kNever, greet_ = kNever;
  Duration back_off_{0}, patience_{0};
  Time gives_up_ = kNever;  ///< while broken
  bool grace_given_ = false;
  std::string why_broken_;
  Time heard_{}, asked_{};
  bool excused_ = false;  ///< the peer's silence, since it was heard last

  // What we send.
  Limits limits_;
  SendWindow window_;
  std::uint64_t resend_next_ = 0;  ///< messages from here on were not sent on this link yet
  RoundTrip round_trip_;
  Time retransmit_ = kNever;

  // What we receive.
  std::uint64_t expected_ = 0;
  EarlyMessages early_;
  std::uint32_t unacknowledged_ = 0, unacknowledged_bytes_ = 0;
  bool acknowledge_ = false;

  Operations operations_;
  bool goodbye_ = false;  ///< a kClose waits to be sent
  Time linger_ = kNever;
};

}  // namespace nnti::channel
