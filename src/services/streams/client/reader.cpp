// SPDX-License-Identifier: BSD-3-Clause
#include <services/streams/client/convert.hpp>
#include <services/streams/client/lent.hpp>
#include <services/streams/client/session.hpp>

#include <base/random.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

namespace nessie::streams {

namespace wire = ::streams;

namespace {

Error bad(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }
Error no_step() { return bad("no step is open: begin_step() comes first"); }

constexpr std::chrono::seconds kOneWait{60};  ///< a step is asked for anew so often

wire::Beginning to_wire(From from) {
  switch (from) {
    case From::kLatest: return wire::Beginning::kFromLatest;
    case From::kNext: return wire::Beginning::kFromNext;
    case From::kNumber: return wire::Beginning::kFromNumber;
    case From::kOldest: break;
  }
  return wire::Beginning::kFromOldest;
}

/// Elements of a box that come from a share of a variable: at most.
bool meets(const wire::ShareArgs &share, const wire::Box &box) { return wire::overlap(share.around, box); }

}  // namespace

/// What a reader is.
class ReaderState {
 public:
  ReaderState(std::shared_ptr<wire::Session> session, std::shared_ptr<wire::Place> place, std::string_view name,
              const ReaderOptions &options)
      : session_(std::move(session)), place_(std::move(place)), name_(name), options_(options) {}
  ~ReaderState();

  Status open(Deadline deadline);
  Result<StepState> begin_step(Deadline deadline);
  Status end_step();
  Status close(Deadline deadline, bool unsubscribes);
  Status get(std::string_view name, const Box &box, void *destination, std::size_t size_bytes, Deadline deadline,
             Order order);
  Result<Figures> figures(std::string_view name, const Box &box, Deadline deadline);

  std::uint64_t put_in(std::string_view variable) const;
  std::uint64_t identity() const { return stream_; }

  std::uint64_t step = 0, missed = 0;
  std::vector<Variable> variables;
  std::vector<Attribute> attributes;
  std::optional<Source> source;
  std::string why_ended;

 private:
  wire::ReaderArgs reader_args(Deadline deadline) const;
  Status introduce(const wire::Place::Peer &peer, Deadline deadline);
  void ask_ahead(const wire::Place::Peer &peer);
  Result<StepState> take(wire::NextResult result);
  StepState end(wire::NextResult result);
  void take_source(wire::StepSource &from);
  Result<const wire::StepVariable *> find(std::string_view name, const wire::Box &box) const;
  Result<bool> prepare(const wire::StepVariable &variable, const wire::Box &box, std::byte *into, Deadline deadline);
  template <class T, class Start, class Take>
  Status ask_shares(const wire::StepVariable &variable, const wire::Box &box, Deadline deadline,
                    const nssi::CallOptions &with, const Start &start, const Take &take);
  Status get_remote(const wire::StepVariable &variable, const wire::Box &box, std::byte *into, Deadline deadline);
  void say_that_it_lives();
  bool may_have_been_let_go();

  const std::shared_ptr<wire::Session> session_;
  const std::shared_ptr<wire::Place> place_;
  const std::string name_;
  const ReaderOptions options_;
  const wire::Key key_ = nessie::random_u64() | 1;
  wire::Key stream_ = 0;
  std::uint64_t generation_ = 0, ended_ = 0;
  std::uint32_t timeout_ms_ = 0;
  std::uint32_t headers_ = 0;  ///< the number of the file's header that is here
  std::shared_ptr<const std::vector<std::byte>> header_;
  bool is_open_ = false, is_closed_ = false, is_over_ = false;
  std::atomic<bool> was_let_go_{false};
  std::atomic<Clock::rep> last_said_{0};  ///< when the servers heard last that it lives
  std::optional<nssi::Future<wire::NextResult>> ahead_;
  wire::NextResult now_;
};

// --- who it is --------------------------------------------------------------------------------------------------------

ReaderState::~ReaderState() {
  session_->remove_beat(this);
  if (stream_ != 0 && !is_closed_) (void)close(Deadline::in(std::chrono::seconds(1)), false);
}

wire::ReaderArgs ReaderState::reader_args(Deadline deadline) const {
  wire::ReaderArgs args;
  args.stream = name_;
  args.reader = key_;
  args.subscription = options_.subscription;
  args.group = options_.group;
  args.rank = static_cast<std::uint32_t>(options_.rank);
  args.size = static_cast<std::uint32_t>(options_.size);
  args.reading = options_.reading == Reading::kView ? wire::ReadingKind::kNewestStep : wire::ReadingKind::kEveryStep;
  args.from = to_wire(options_.from);
  args.first = options_.first;
  args.patience_ms = wire::patience_until(deadline);
  if (stream_ != 0) {
    args.known = stream_;
    args.first = ended_;
    args.from = wire::Beginning::kFromNumber;
  }
  return args;
}

Status ReaderState::introduce(const wire::Place::Peer &peer, Deadline deadline) {
  if (generation_ == peer.generation) return {};
  wire::Client client(session_->runtime(), peer.id);
  auto opened = client.open_reader(reader_args(deadline), {.deadline = deadline, .idempotent = true});
  if (opened.code() == Code::kNotFound && stream_ != 0) {  // called again, begins with whatever is there then
    stream_ = 0;
    ended_ = 0;
    return Error{Code::kUnsupported, opened.error().message, nessie::Scope::kService};
  }
  if (!opened.ok()) return opened.error();
  headers_ = stream_ == opened->stream ? headers_ : 0;
  stream_ = opened->stream;
  timeout_ms_ = opened->reader_timeout_ms;
  generation_ = peer.generation;
  last_said_ = Clock::now().time_since_epoch().count();
  ahead_.reset();
  return {};
}

Status ReaderState::open(Deadline deadline) {
  if (auto status = wire::check_name("stream", name_); !status.ok()) return status;
  if (options_.size < 1 || options_.rank < 0 || options_.rank >= options_.size)
    return bad(fmt::format("rank {} is not among {} readers", options_.rank, options_.size));
  const auto nothing = [](wire::Client &, const nssi::CallOptions &) { return Status(); };
  auto status = place_->ask<void>(0, deadline, nothing, [&](const auto &peer) { return introduce(peer, deadline); });
  if (!status.ok()) return status;
  if (options_.reading == Reading::kView) return {};
  if (const auto peer = place_->connect(0, Deadline::now()); peer.ok()) ask_ahead(*peer);
  session_->add_beat(
      this, [this] { say_that_it_lives(); }, std::chrono::milliseconds(std::max(timeout_ms_ / 4, 1u)));
  return {};
}

/// A server cannot tell a process that computes from one that was stopped.
void ReaderState::say_that_it_lives() {
  const auto peer = place_->connect(0, Deadline::now());
  if (!peer.ok()) return;
  nssi::CallOptions options;
  options.deadline = Deadline::in(std::chrono::seconds(1));
  options.idempotent = true;
  wire::Client client(session_->runtime(), peer->id);
  if (client.alive(stream_, key_, options).code() == Code::kNotFound) was_let_go_ = true;
  last_said_ = Clock::now().time_since_epoch().count();
}

/// What it was told before it was stopped for so long that the servers went on without it does not hold any more.
bool ReaderState::may_have_been_let_go() {
  const auto now = Clock::now();
  const Clock::time_point last{Clock::duration(last_said_.load())};
  return was_let_go_.exchange(false) || now - last >= std::chrono::milliseconds(timeout_ms_);
}

// --- steps ------------------------------------------------------------------------------------------------------------

/// The next step is asked for when the last one is ended, so that it is here when it is wanted.
void ReaderState::ask_ahead(const wire::Place::Peer &peer) {
  wire::NextArgs args{stream_, key_, ended_, headers_,
                      static_cast<std::uint32_t>(std::chrono::milliseconds(kOneWait).count())};
  nssi::CallOptions options;
  options.deadline = Deadline::in(kOneWait + std::chrono::seconds(5));
  options.idempotent = true;
  wire::Client client(session_->runtime(), peer.id);
  ahead_ = client.next_async(args, options);
}

Result<StepState> ReaderState::begin_step(Deadline deadline) {
  if (is_closed_) return bad("the reader is closed");
  if (is_open_) return bad(fmt::format("step {} is open: end_step() comes first", step));
  if (is_over_) return StepState::kEnd;
  // What a view was told some time ago may not be the newest any more.
  if (options_.reading == Reading::kEvery && may_have_been_let_go()) ahead_.reset();
  if (options_.reading == Reading::kView && ahead_ && ahead_->test()) ahead_.reset();
  // Others may write the stream since its end was said.
  bool may_be_old = ahead_ && ahead_->test();
  for (bool has_polled = false, is_asked_now = false;;) {
    is_asked_now = !ahead_;
    if (!ahead_ || generation_ == 0) {
      const auto peer = place_->connect(0, deadline);
      if (!peer.ok()) return peer.code() == Code::kTimedOut ? Result<StepState>(StepState::kNotYet) : peer.error();
      if (auto status = introduce(*peer, deadline.passed() ? Deadline::in(std::chrono::seconds(1)) : deadline);
          !status.ok()) {
        if (status.code() == Code::kUnsupported)
          return Error{Code::kPeerLost, status.error().message, nessie::Scope::kService};
        if (stream_ == 0 && status.code() == Code::kTimedOut) return StepState::kNotYet;
        if (!wire::may_come_back(status.code())) return status.error();
        place_->lose(0, peer->generation);
        if (deadline.passed()) return status.error();
        continue;
      }
      ask_ahead(*peer);
    }
    // Without patience it may be on its way still: what was asked for only now is given a moment.
    constexpr std::chrono::milliseconds kMoment{20};
    auto result =
        ahead_->wait(deadline.passed() && !has_polled ? Deadline::in(is_asked_now ? kMoment : kMoment / 20) : deadline);
    has_polled = true;
    if (result.code() == Code::kTimedOut && !ahead_->is_over()) return StepState::kNotYet;
    ahead_.reset();
    if (!result.ok()) {
      const bool is_lost = wire::may_come_back(result.code()) || result.code() == Code::kTimedOut;
      if (!is_lost && result.code() != Code::kNotFound) return result.error();
      if (is_lost) place_->lose(0, generation_);
      generation_ = 0;
      if (deadline.passed()) return result.error();
      (void)nessie::service::pause(session_->runtime(), Deadline::in(std::chrono::milliseconds(20)).earlier(deadline));
      continue;
    }
    if (result->state == wire::NextState::kNoStepYet) {
      if (deadline.passed()) return StepState::kNotYet;
      continue;
    }
    if (result->state == wire::NextState::kStreamEnded && std::exchange(may_be_old, false)) continue;
    return take(*std::move(result));
  }
}

Result<StepState> ReaderState::take(wire::NextResult result) {
  switch (result.state) {
    case wire::NextState::kStreamEnded: return end(std::move(result));
    case wire::NextState::kWritersLost: return Error{Code::kPeerLost, std::string(result.why), nessie::Scope::kPeer};
    case wire::NextState::kStepsLost: return Error{Code::kNotFound, std::string(result.why)};
    default: break;
  }
  now_ = std::move(result);
  step = now_.step;
  missed = now_.missed;
  ended_ = std::max(ended_, step);
  is_open_ = true;
  variables.clear();
  for (const auto &each : now_.variables) variables.push_back(wire::from_wire(each.variable));
  if (now_.has_attributes) {
    attributes.clear();
    for (const auto &each : now_.attributes) attributes.push_back(wire::from_wire(each));
  }
  take_source(now_.source);
  return StepState::kOk;
}

StepState ReaderState::end(wire::NextResult result) {
  is_over_ = true;
  why_ended = std::move(result.why);
  return StepState::kEnd;
}

void ReaderState::take_source(wire::StepSource &from) {
  source.reset();
  if (from.kind == wire::SourceKind::kOfWriters) return;
  if (!from.header.empty()) header_ = std::make_shared<const std::vector<std::byte>>(std::move(from.header));
  headers_ = from.headers;
  source = Source{static_cast<Source::Kind>(from.kind), from.record, header_};
}

Status ReaderState::end_step() {
  if (!is_open_) return no_step();
  is_open_ = false;
  ended_ = step + 1;
  if (options_.reading == Reading::kView) return {};
  if (const auto peer = place_->connect(0, Deadline::now()); peer.ok() && peer->generation == generation_)
    ask_ahead(*peer);
  return {};
}

Status ReaderState::close(Deadline deadline, bool unsubscribes) {
  if (is_closed_) return {};
  session_->remove_beat(this);
  if (ahead_) ahead_->cancel();
  ahead_.reset();
  wire::CloseArgs args{stream_, key_, ended_, unsubscribes, false};
  auto status = place_->ask<void>(
      0, deadline,
      [&](wire::Client &client, const nssi::CallOptions &options) { return client.close_reader(args, options); },
      [&](const auto &peer) { return unsubscribes ? introduce(peer, deadline) : Status(); });
  if (status.code() == Code::kNotFound && !unsubscribes) status = {};
  is_closed_ = status.ok();
  is_open_ = false;
  return status;
}

std::uint64_t ReaderState::put_in(std::string_view variable) const {
  for (const auto &each : now_.variables)
    if (each.variable.name == variable) return each.put_in;
  return 0;
}

// --- data -------------------------------------------------------------------------------------------------------------

Result<const wire::StepVariable *> ReaderState::find(std::string_view name, const wire::Box &box) const {
  if (!is_open_) return no_step();
  const auto found = std::ranges::find_if(now_.variables, [&](const auto &each) { return each.variable.name == name; });
  if (found == now_.variables.end())
    return Error{Code::kNotFound, fmt::format("step {} has no variable '{}'", step, name)};
  if (auto status = wire::check_inside(found->variable, box); !status.ok()) return status.error();
  return &*found;
}

/// Calls `start(client, options)` for every server that may have some of the box, all at once, and `take(result)` with
/// each answer; all again, when a server was lost and is back before the deadline.
template <class T, class Start, class Take>
Status ReaderState::ask_shares(const wire::StepVariable &variable, const wire::Box &box, Deadline deadline,
                               const nssi::CallOptions &with, const Start &start, const Take &take) {
  auto options = with;
  options.deadline = deadline;
  options.idempotent = true;
  for (;;) {
    std::vector<std::pair<std::uint32_t, wire::Place::Peer>> peers;
    std::vector<nssi::Future<T>> calls;
    Status status;
    for (const auto &share : variable.shares) {
      if (!meets(share, box)) continue;
      const auto peer = place_->connect(share.server, deadline);
      if (!peer.ok()) return peer.error();
      wire::Client client(session_->runtime(), peer->id);
      peers.emplace_back(share.server, *peer);
      calls.push_back(start(client, options));
    }
    std::vector<T> results;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      auto result = calls[i].wait();
      if (result.ok()) {
        results.push_back(*std::move(result));
        continue;
      }
      if (wire::may_come_back(result.code())) place_->lose(peers[i].first, peers[i].second.generation);
      if (status.ok() || wire::may_come_back(status.code())) status = result.error();
    }
    if (status.ok())
      for (const auto &result : results) take(result);
    if (status.ok() || !wire::may_come_back(status.code()) || deadline.passed()) return status;
    if (auto paused =
            nessie::service::pause(session_->runtime(), Deadline::in(std::chrono::milliseconds(20)).earlier(deadline));
        !paused.ok())
      return paused;
  }
}

/// Elements that nobody has put get the fill value first. False: there is nothing to be got.
Result<bool> ReaderState::prepare(const wire::StepVariable &variable, const wire::Box &box, std::byte *into,
                                  Deadline deadline) {
  std::uint64_t there = 0;
  for (const auto &share : variable.shares) there += share.elements;
  if (there == static_cast<std::uint64_t>(wire::elements_of(variable.variable.shape))) return true;
  if (!variable.variable.fill.empty()) {
    wire::fill_with(into, wire::elements_of(box), variable.variable.fill);
    return there > 0;
  }
  wire::GetArgs args{stream_, key_, variable.put_in, variable.variable.name, box, true};
  std::uint64_t covered = 0;
  auto status = ask_shares<wire::GetResult>(
      variable, box, deadline, {}, [&](auto &client, const auto &options) { return client.get_async(args, options); },
      [&](const auto &result) { covered += result.elements; });
  if (!status.ok()) return status.error();
  if (covered == static_cast<std::uint64_t>(wire::elements_of(box))) return true;
  return Error{Code::kNotFound,
               fmt::format("of the {} elements of {} in step {}, {} were put, and it has no fill value",
                           wire::elements_of(box), wire::describe(variable.variable.name, box), step, covered)};
}

Status ReaderState::get_remote(const wire::StepVariable &variable, const wire::Box &box, std::byte *into,
                               Deadline deadline) {
  const auto bytes = static_cast<std::size_t>(wire::bytes_of(variable.variable, box));
  nssi::CallOptions options;
  const auto lent = wire::Lent::make(*session_, {into, bytes}, nnti::Rights::kRemoteWrite);
  if (!lent.ok()) return lent.error();
  lent->add_to(options);
  wire::GetArgs args{stream_, key_, variable.put_in, variable.variable.name, box, false};
  return ask_shares<wire::GetResult>(
      variable, box, deadline, options, [&](auto &client, const auto &with) { return client.get_async(args, with); },
      [](const auto &) {});
}

Status ReaderState::get(std::string_view name, const Box &given, void *destination, std::size_t size_bytes,
                        Deadline deadline, Order order) {
  const auto box = wire::to_wire(given);
  const auto found = find(name, box);
  if (!found.ok()) return found.error();
  const auto &variable = **found;
  const auto element = wire::size_of(variable.variable.type);
  const auto bytes = wire::bytes_of(variable.variable, box);
  if (size_bytes < bytes)
    return Error{Code::kOutOfRange, fmt::format("{} has {} bytes, and the memory for it {}", wire::describe(name, box),
                                                bytes, size_bytes)};
  if (bytes == 0) return {};
  std::vector<std::byte> turned;
  const bool is_turned = order == Order::kFortran && box.count.size() > 1;
  if (is_turned) turned.resize(bytes);
  auto *into = is_turned ? turned.data() : static_cast<std::byte *>(destination);
  const auto is_wanted = prepare(variable, box, into, deadline);
  if (!is_wanted.ok()) return is_wanted.error();
  if (variable.is_inline) {
    for (const auto &block : variable.blocks)
      if (const auto part = wire::intersection(block.box, box);
          part && block.data.size() == wire::bytes_of(variable.variable, block.box))
        wire::copy_part(*part, element, block.data.data(), block.box, into, box);
  } else if (*is_wanted) {
    if (auto status = get_remote(variable, box, into, deadline); !status.ok()) return status;
  }
  if (is_turned) wire::transpose(box.count, element, into, static_cast<std::byte *>(destination), true);
  return {};
}

Result<Figures> ReaderState::figures(std::string_view name, const Box &given, Deadline deadline) {
  const auto box = wire::to_wire(given);
  const auto found = find(name, box);
  if (!found.ok()) return found.error();
  const auto &variable = **found;
  if (variable.variable.type == wire::ElementType::kChar)
    return Error{Code::kUnsupported, fmt::format("'{}' is text, and has no minimum", name)};
  wire::GetArgs args{stream_, key_, variable.put_in, variable.variable.name, box, false};
  Figures figures{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), 0, 0};
  double sum = 0;
  auto status = ask_shares<wire::FiguresResult>(
      variable, box, deadline, {},
      [&](auto &client, const auto &options) { return client.figures_async(args, options); },
      [&](const auto &each) {
        figures.minimum = std::min(figures.minimum, each.minimum);
        figures.maximum = std::max(figures.maximum, each.maximum);
        figures.elements += each.counted;
        sum += each.sum;
      });
  if (!status.ok()) return status.error();
  if (figures.elements == 0) return Figures{};
  figures.mean = sum / static_cast<double>(figures.elements);
  return figures;
}

// --- the interface ----------------------------------------------------------------------------------------------------

Reader::Reader(std::unique_ptr<ReaderState> state) : state_(std::move(state)) {}
Reader::Reader(Reader &&) noexcept = default;
Reader &Reader::operator=(Reader &&) noexcept = default;
Reader::~Reader() = default;

Result<Reader> Reader::open(std::string_view name, const ReaderOptions &options, Deadline deadline) {
  auto session = wire::Session::get();
  if (!session.ok()) return session.error();
  auto place = wire::find_place(*session, options.at, name, deadline);
  if (!place.ok()) return place.error();
  auto state = std::make_unique<ReaderState>(*session, *place, name, options);
  if (auto status = state->open(deadline); !status.ok()) return status.error();
  return Reader(std::move(state));
}

Result<StepState> Reader::begin_step(Deadline deadline) { return state_->begin_step(deadline); }
std::uint64_t Reader::step() const { return state_->step; }
std::uint64_t Reader::missed() const { return state_->missed; }
std::uint64_t Reader::put_in(std::string_view variable) const { return state_->put_in(variable); }
std::uint64_t Reader::identity() const { return state_->identity(); }
const std::vector<Variable> &Reader::variables() const { return state_->variables; }
const std::vector<Attribute> &Reader::attributes() const { return state_->attributes; }
const Source *Reader::source() const { return state_->source ? &*state_->source : nullptr; }
const std::string &Reader::why_ended() const { return state_->why_ended; }
const Variable *Reader::find(std::string_view variable) const {
  const auto found = std::ranges::find(state_->variables, variable, &Variable::name);
  return found == state_->variables.end() ? nullptr : &*found;
}
Status Reader::get(std::string_view variable, const Box &box, void *destination, std::size_t size_bytes,
                   Deadline deadline, Order order) {
  return state_->get(variable, box, destination, size_bytes, deadline, order);
}
Result<Figures> Reader::figures(std::string_view variable, const Box &box, Deadline deadline) {
  return state_->figures(variable, box, deadline);
}
Status Reader::end_step() { return state_->end_step(); }
Status Reader::close(Deadline deadline) { return state_->close(deadline, false); }
Status Reader::unsubscribe(Deadline deadline) { return state_->close(deadline, true); }

}  // namespace nessie::streams
