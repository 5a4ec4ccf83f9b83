// SPDX-License-Identifier: BSD-3-Clause
#include <services/streams/box_index.hpp>
#include <services/streams/client/arena.hpp>
#include <services/streams/client/convert.hpp>
#include <services/streams/client/session.hpp>

#include <base/random.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <unordered_map>
#include <utility>

namespace nessie::streams {

namespace wire = ::streams;
using wire::Arena;
using wire::StepPart;

namespace {

Error bad(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }
Error no_step() { return bad("no step is open: begin_step() comes first"); }

/// From here on a part is full, and sent before its step is ended.
constexpr std::size_t kFullPart = 1 << 20;
/// What a server moves is put piece by piece, so that it moves one while the next is copied: each fits a record of its
/// log.
constexpr std::size_t kPieceBytes = (2 << 20) - 4096;

/// A server that knows nothing of a writer was started anew.
Error lost_if_unknown(Error error) {
  if (error.code != Code::kNotFound) return error;
  return {Code::kPeerLost, std::move(error.message), nessie::Scope::kService};
}

}  // namespace

/// What a writer is.
class WriterState {
 public:
  WriterState(std::shared_ptr<wire::Session> session, std::shared_ptr<wire::Place> place, std::string_view name,
              const WriterOptions &options)
      : session_(std::move(session)), place_(std::move(place)), name_(name), options_(options), arena_(session_) {}

  ~WriterState();
  Status open(Deadline deadline);
  Status define(const Variable &variable);
  Status set_attribute(const Attribute &attribute);
  Result<StepState> begin_step(Deadline deadline);
  Status put(std::string_view name, const Box &box, const void *data, Order order);
  Result<void *> span(std::string_view name, const Box &box);
  Status put_lent(std::string_view name, const Box &box, const void *data);
  Status end_step(Deadline deadline);
  Status close(Deadline deadline);
  std::uint64_t step() const { return step_; }

 private:
  struct Known {
    wire::VariableArgs variable;
    wire::BoxIndex boxes;  ///< that were put in this step
    bool was_put = false;  ///< in it, if only without elements
    void begin_step() {
      boxes.clear();
      was_put = false;
    }
  };
  struct Sending {
    std::size_t part;
    bool is_last;
    nssi::Future<wire::WriteResult> call;
  };
  wire::WriterArgs writer_args() const;
  Status introduce_first(const wire::Place::Peer &peer, Deadline deadline);
  Status introduce(const wire::Place::Peer &peer, Deadline deadline);
  Status tell_loss(Deadline deadline);
  Result<std::uint32_t> find(std::string_view name) const;
  Error is_being_ended() const { return bad(fmt::format("step {} is being ended: call end_step() once more", step_)); }
  Result<std::uint32_t> check_put(std::string_view name, const wire::Box &box);
  void note_put(std::uint32_t variable, const wire::Box &box);
  Status put_small(std::uint32_t variable, const wire::Box &box, const void *data, std::size_t bytes);
  Status put_block(std::uint32_t variable, const wire::Box &box, const std::byte *data, std::size_t bytes, Order order);
  Status send_full();
  /// Whether the server moves what is put, and does not keep it in place.
  bool is_moved() const { return !is_near_ || lasting_ == wire::Lasting::kInLog; }
  Status send(std::size_t part, bool is_last, const wire::Place::Peer &peer, Deadline deadline);
  Status send_rest(const wire::Place::Peer &peer, Deadline deadline);
  Status await_sent(wire::WriteResult &last, Deadline deadline);
  Status said_by_last(const Status &otherwise);
  void give_up_step();
  void enter(const wire::Place::Peer &peer, const wire::WriterResult &opened);
  void begin_anew();
  void send_anew();
  Error lost_steps() { return {Code::kPeerLost, std::exchange(lost_, {}), nessie::Scope::kService}; }

  const std::shared_ptr<wire::Session> session_;
  const std::shared_ptr<wire::Place> place_;
  const std::string name_;
  const WriterOptions options_;
  const wire::Key key_ = nessie::random_u64() | 1;
  wire::Lasting lasting_ = wire::Lasting::kInMemory;
  std::uint32_t server_ = 0;
  wire::Key stream_ = 0;
  std::uint64_t group_ = 0, begin_ = 0;
  bool has_lost_ = false;  ///< its server has nothing of its steps any more, and the first one does not know it yet
  std::string lost_;       ///< which those are, until the program is told
  std::uint64_t step_ = 0, first_generation_ = 0, generation_ = 0, incarnation_ = 0;
  bool is_open_ = false, is_closed_ = false, has_room_ = false, is_first_step_ = true;
  bool is_ending_ = false;  ///< end_step() was called: what the step has does not change any more
  bool is_last_sent_ = false;
  bool is_near_ = false;  ///< the server of its data maps what is allocated here
  std::vector<Known> variables_;
  std::unordered_map<std::string, std::uint32_t> by_name_;
  std::size_t first_changed_ = 0;  ///< variables from here on the server has not heard of
  std::vector<wire::AttributeArgs> attributes_, sent_attributes_;
  std::uint32_t attempt_ = 0;
  std::uint64_t last_bytes_ = 0, step_bytes_ = 0;
  std::vector<std::byte> small_;  ///< data that travel in the last request
  std::vector<wire::BlockArgs> small_blocks_;
  Arena arena_;
  std::deque<Sending> sending_;
};

// --- who it is --------------------------------------------------------------------------------------------------------

wire::WriterArgs WriterState::writer_args() const {
  wire::WriterArgs args;
  args.stream = name_;
  args.writer = key_;
  args.server = server_;
  args.rank = static_cast<std::uint32_t>(options_.rank);
  args.size = static_cast<std::uint32_t>(options_.size);
  args.lasting = lasting_;
  args.append = options_.append;
  args.await_readers = static_cast<std::uint32_t>(options_.await_readers);
  args.ended = step_;
  args.group = group_;
  args.begin = begin_;
  return args;
}

/// To the first server, over a connection that it does not know.
Status WriterState::introduce_first(const wire::Place::Peer &peer, Deadline deadline) {
  if (first_generation_ == peer.generation) return {};
  auto args = writer_args();
  args.resumes = stream_ != 0;
  wire::Client client(session_->runtime(), peer.id);
  auto opened = client.open_writer(args, {.deadline = deadline, .idempotent = true});
  if (!opened.ok()) return opened.error();
  if (stream_ == 0) {
    step_ = begin_ = opened->next;
    group_ = opened->group;
    for (const auto &variable : opened->variables) (void)define(wire::from_wire(variable));
  }
  stream_ = opened->stream;
  first_generation_ = peer.generation;
  if (server_ == 0) enter(peer, *opened);
  return {};
}

/// To the server of its data.
Status WriterState::introduce(const wire::Place::Peer &peer, Deadline deadline) {
  if (server_ == 0) return introduce_first(peer, deadline);
  if (generation_ == peer.generation) return {};
  auto args = writer_args();
  args.known = stream_;
  args.resumes = incarnation_ != 0 && incarnation_ != peer.incarnation;
  wire::Client client(session_->runtime(), peer.id);
  auto opened = client.open_writer(args, {.deadline = deadline, .idempotent = true});
  if (opened.code() == Code::kNotFound && std::exchange(args.resumes, false)) {
    has_lost_ = true;
    opened = client.open_writer(args, {.deadline = deadline, .idempotent = true});
  }
  if (!opened.ok()) return opened.error();
  if (has_lost_)
    if (auto status = tell_loss(deadline); !status.ok()) return status;
  enter(peer, *opened);
  return {};
}

/// The first server has to know that steps of which this writer's server had some can never be complete.
Status WriterState::tell_loss(Deadline deadline) {
  auto args = writer_args();
  args.resumes = args.has_lost = true;
  auto told = place_->ask<wire::WriterResult>(
      0, deadline,
      [&](wire::Client &client, const nssi::CallOptions &options) { return client.open_writer(args, options); },
      [](const auto &) { return Status(); });
  if (!told.ok()) return told.error();
  has_lost_ = false;
  if (told->lost < step_)
    lost_ =
        fmt::format("server {} of stream '{}' was started anew, and what it had in memory of steps {} to {} is lost",
                    server_, name_, told->lost, step_ - 1);
  return {};
}

/// The server of its data knows it.
void WriterState::enter(const wire::Place::Peer &peer, const wire::WriterResult &opened) {
  if (incarnation_ != 0 && incarnation_ != peer.incarnation) begin_anew();
  incarnation_ = peer.incarnation;
  generation_ = peer.generation;
  is_near_ = peer.is_near;
  arena_.keep_only(opened.kept);
}

/// A server that was started anew has heard of nothing.
void WriterState::begin_anew() {
  send_anew();
  has_room_ = false;
}

/// All of the open step goes once more.
void WriterState::send_anew() {
  sending_.clear();
  first_changed_ = 0;
  for (auto &part : arena_.parts()) part->is_sent = false;
  is_last_sent_ = false;
}

Status WriterState::open(Deadline deadline) {
  if (auto status = wire::check_name("stream", name_); !status.ok()) return status;
  if (options_.size < 1 || options_.rank < 0 || options_.rank >= options_.size)
    return bad(fmt::format("rank {} is not among {} writers", options_.rank, options_.size));
  auto durability = options_.durability;
  if (!durability) {
    const auto said = session_->setting("streams.durability").value_or("memory");
    if (said != "memory" && said != "logged") return bad("the setting streams.durability is memory or logged");
    durability = said == "logged" ? Durability::kLogged : Durability::kMemory;
  }
  lasting_ = wire::to_wire(*durability);
  const auto server = place_->server_for(static_cast<std::uint32_t>(options_.rank),
                                         static_cast<std::uint32_t>(options_.size), deadline);
  if (!server.ok()) return server.error();
  server_ = *server;
  const auto nothing = [](wire::Client &, const nssi::CallOptions &) { return Status(); };
  auto status =
      place_->ask<void>(0, deadline, nothing, [&](const auto &peer) { return introduce_first(peer, deadline); });
  if (!status.ok() || server_ == 0) return status;
  return place_->ask<void>(server_, deadline, nothing, [&](const auto &peer) { return introduce(peer, deadline); });
}

/// Without close() it is as if the process had died; the servers hear of it if they are there.
WriterState::~WriterState() {
  if (stream_ == 0 || is_closed_) return;
  const auto peer = place_->connect(0, Deadline::now());
  if (!peer.ok() || peer->generation != first_generation_) return;
  wire::Client client(session_->runtime(), peer->id);
  (void)client.close_writer({stream_, key_, step_, false, true},
                            {.deadline = Deadline::in(std::chrono::seconds(1)), .idempotent = true});
}

// --- what there is ----------------------------------------------------------------------------------------------------

Result<std::uint32_t> WriterState::find(std::string_view name) const {
  if (const auto found = by_name_.find(std::string(name)); found != by_name_.end()) return found->second;
  return Error{Code::kNotFound, fmt::format("no variable '{}' was defined here: define() comes first", name)};
}

Status WriterState::define(const Variable &variable) {
  auto args = wire::to_wire(variable);
  if (auto status = wire::check(args); !status.ok()) return status;
  const auto found = by_name_.find(variable.name);
  if (found == by_name_.end()) {
    by_name_.emplace(variable.name, static_cast<std::uint32_t>(variables_.size()));
    variables_.push_back({std::move(args), {}});
    return {};
  }
  auto &known = variables_[found->second];
  if (known.variable == args) return {};
  if (known.variable.type != args.type || known.variable.shape.size() != args.shape.size())
    return bad(fmt::format("variable '{}' has been defined with another type, or number of dimensions", variable.name));
  if (known.was_put)
    return bad(fmt::format("variable '{}' was put in this step already: it can be described anew in the next one",
                           variable.name));
  known.variable = std::move(args);
  first_changed_ = std::min<std::size_t>(first_changed_, found->second);
  return {};
}

Status WriterState::set_attribute(const Attribute &attribute) {
  if (is_ending_) return is_being_ended();
  auto args = wire::to_wire(attribute);
  if (auto status = wire::check(args); !status.ok()) return status;
  if (!attribute.variable.empty())
    if (auto known = find(attribute.variable); !known.ok()) return known.error();
  attributes_.push_back(std::move(args));
  return {};
}

// --- steps ------------------------------------------------------------------------------------------------------------

Result<StepState> WriterState::begin_step(Deadline deadline) {
  if (is_closed_) return bad("the writer is closed");
  if (is_open_) return bad(fmt::format("step {} is open: end_step() comes first", step_));
  wire::RoomArgs args{stream_, key_, step_, last_bytes_, 0};
  const auto ask = [&](std::uint32_t server, const auto &introduce_to) {
    return place_->ask<wire::RoomResult>(
        server, deadline,
        [&](wire::Client &client, nssi::CallOptions options) {
          args.stream = stream_;
          args.patience_ms = wire::patience_until(deadline);
          options.deadline = Deadline::in(std::chrono::milliseconds(args.patience_ms) + std::chrono::seconds(2));
          return client.await_room(args, options);
        },
        introduce_to);
  };
  const auto to_first = [&](const auto &peer) { return introduce_first(peer, deadline); };
  const auto to_server = [&](const auto &peer) { return introduce(peer, deadline); };
  if (is_first_step_ && server_ != 0 && options_.await_readers > 0) {
    const auto readers = ask(0, to_first);
    if (!readers.ok()) return lost_if_unknown(readers.error());
    if (readers->state == wire::RoomState::kNoReaders) return StepState::kNotYet;
  }
  if (!has_room_) {
    const auto room = ask(server_, to_server);
    if (!room.ok()) return lost_if_unknown(room.error());
    if (room->state == wire::RoomState::kNoReaders) return StepState::kNotYet;
    arena_.release(room->released);
  }
  if (!lost_.empty()) return lost_steps();
  has_room_ = is_first_step_ = false;
  is_open_ = true;
  step_bytes_ = 0;
  return StepState::kOk;
}

Result<std::uint32_t> WriterState::check_put(std::string_view name, const wire::Box &box) {
  if (!is_open_) return no_step();
  if (is_ending_) return is_being_ended();
  auto variable = find(name);
  if (!variable.ok()) return variable;
  const auto &known = variables_[*variable];
  if (auto status = wire::check_inside(known.variable, box); !status.ok()) return status.error();
  const auto other = wire::elements_of(box) > 0 ? known.boxes.find(box) : std::nullopt;
  if (!other) return variable;
  return Error{Code::kOutOfRange, fmt::format("{} overlaps {}, which was put in this step", wire::describe(name, box),
                                              wire::describe(name, other->box))};
}

void WriterState::note_put(std::uint32_t variable, const wire::Box &box) {
  variables_[variable].was_put = true;
  if (wire::elements_of(box) > 0) variables_[variable].boxes.add(box);
  step_bytes_ += wire::bytes_of(variables_[variable].variable, box);
}

Status WriterState::put_small(std::uint32_t variable, const wire::Box &box, const void *data, std::size_t bytes) {
  small_blocks_.push_back({variable, box, small_.size()});
  const auto *from = static_cast<const std::byte *>(data);
  small_.insert(small_.end(), from, from + bytes);
  note_put(variable, box);
  return {};
}

Status WriterState::put(std::string_view name, const Box &given, const void *data, Order order) {
  const auto box = wire::to_wire(given);
  const auto variable = check_put(name, box);
  if (!variable.ok()) return variable.error();
  const auto &known = variables_[*variable].variable;
  const auto bytes = static_cast<std::size_t>(wire::bytes_of(known, box));
  if (data == nullptr && bytes > 0) return bad("the data are a null pointer");
  const bool is_turned = order == Order::kFortran && box.count.size() > 1;
  if (!is_turned && small_.size() + bytes <= wire::MOST_INLINE) return put_small(*variable, box, data, bytes);
  const auto *from = static_cast<const std::byte *>(data);
  if (is_turned || !is_moved() || bytes <= kPieceBytes) {
    if (auto status = put_block(*variable, box, from, bytes, order); !status.ok()) return status;
    note_put(*variable, box);
    return {};
  }
  for (wire::Slices pieces(box, wire::size_of(known.type), kPieceBytes); !pieces.done(); pieces.next()) {
    const auto piece_bytes = static_cast<std::size_t>(pieces.elements()) * wire::size_of(known.type);
    if (auto status = put_block(*variable, pieces.slice(), from, piece_bytes, order); !status.ok()) {
      ++attempt_;
      give_up_step();
      return Error{status.code(), fmt::format("{}; what was put in this step is dropped: put all of it again",
                                              status.error().message)};
    }
    from += piece_bytes;
  }
  note_put(*variable, box);
  return {};
}

/// Copies one block into a part.
Status WriterState::put_block(std::uint32_t variable, const wire::Box &box, const std::byte *data, std::size_t bytes,
                              Order order) {
  const auto &known = variables_[variable].variable;
  auto room = arena_.make_room(bytes, known.is_constant);
  if (!room.ok()) return room.error();
  if (order == Order::kFortran && box.count.size() > 1)
    wire::transpose(box.count, wire::size_of(known.type), data, room->memory, false);
  else if (bytes > 0)
    std::memcpy(room->memory, data, bytes);
  room->part->args.blocks.push_back({variable, box, room->offset});
  return room->part->used < kFullPart ? Status() : send_full();
}

/// What is full goes while the program goes on. Where nothing has to be moved, the newest part waits for the step's
/// end: most steps are one request then.
Status WriterState::send_full() {
  const auto peer = place_->connect(server_, Deadline::now());
  if (!peer.ok() || peer->generation != generation_) return {};  // all goes when the step is ended
  const auto &parts = arena_.parts();
  for (std::size_t at = 0; at + (is_moved() ? 0 : 1) < parts.size(); ++at)
    if (const auto &part = *parts[at]; !part.is_sent && !part.has_span && part.used >= kFullPart)
      if (auto status = send(at, false, *peer, Deadline::in(std::chrono::minutes(10))); !status.ok()) return status;
  return {};
}

Result<void *> WriterState::span(std::string_view name, const Box &given) {
  const auto box = wire::to_wire(given);
  const auto variable = check_put(name, box);
  if (!variable.ok()) return variable.error();
  const auto &known = variables_[*variable].variable;
  const auto bytes = static_cast<std::size_t>(wire::bytes_of(known, box));
  auto room = arena_.make_room(bytes, known.is_constant);
  if (!room.ok()) return room.error();
  room->part->has_span = true;
  room->part->args.blocks.push_back({*variable, box, room->offset});
  note_put(*variable, box);
  return bytes == 0 ? nullptr : static_cast<void *>(room->memory);
}

Status WriterState::put_lent(std::string_view name, const Box &given, const void *data) {
  const auto box = wire::to_wire(given);
  const auto variable = check_put(name, box);
  if (!variable.ok()) return variable.error();
  const auto bytes = static_cast<std::size_t>(wire::bytes_of(variables_[*variable].variable, box));
  if (bytes <= wire::MOST_INLINE) return put(name, given, data, Order::kC);
  if (data == nullptr) return bad("the data are a null pointer");
  if (is_near_) return put(name, given, data, Order::kC);  // a copy here is cheaper than one by the server
  auto part = arena_.lend({static_cast<const std::byte *>(data), bytes});
  if (!part.ok()) return part.error();
  (*part)->args.blocks.push_back({*variable, box, 0});
  note_put(*variable, box);
  if (const auto peer = place_->connect(server_, Deadline::now()); peer.ok() && peer->generation == generation_)
    return send(arena_.parts().size() - 1, false, *peer, Deadline::in(std::chrono::minutes(10)));
  return {};
}

// --- sending ----------------------------------------------------------------------------------------------------------

/// Parts are numbered by their places; behind them is what is small. The step's last request may be of either.
Status WriterState::send(std::size_t part, bool is_last, const wire::Place::Peer &peer, Deadline deadline) {
  wire::WriteArgs small;
  const bool is_small = part == arena_.parts().size();
  auto &args = is_small ? small : arena_.parts()[part]->args;
  args.stream = stream_;
  args.writer = key_;
  args.step = step_;
  args.part = static_cast<std::uint32_t>(part);
  args.is_last = is_last;
  args.attempt = attempt_;
  args.first = static_cast<std::uint32_t>(std::min(first_changed_, variables_.size()));
  args.variables.clear();
  for (auto i = args.first; i < variables_.size(); ++i) args.variables.push_back(variables_[i].variable);
  first_changed_ = variables_.size();
  nssi::CallOptions options;
  options.deadline = deadline;
  options.idempotent = true;
  if (is_last) {
    args.attributes = attributes_;
    is_last_sent_ = true;
  }
  if (is_small) {
    args.blocks = small_blocks_;
    args.data.assign(small_.begin(), small_.end());
  } else {
    auto &it = *arena_.parts()[part];
    it.is_sent = true;
    options.data = it.buffer.valid() ? &it.buffer : nullptr;
    if (!it.lent.empty()) options.parts = it.lent;
    if (it.lent.empty()) options.parts = {{nullptr, 0, it.used}};
  }
  wire::Client client(session_->runtime(), peer.id);
  sending_.push_back({part, is_last, client.write_async(args, options)});
  return {};
}

Status WriterState::send_rest(const wire::Place::Peer &peer, Deadline deadline) {
  const auto &parts = arena_.parts();
  const bool has_small = !small_blocks_.empty() || parts.empty() || parts.back()->is_sent;
  const auto last = has_small ? parts.size() : parts.size() - 1;
  for (std::size_t part = 0; part < last; ++part)
    if (!parts[part]->is_sent)
      if (auto status = send(part, false, peer, deadline); !status.ok()) return status;
  return send(last, true, peer, deadline);
}

/// The error that says most.
Status WriterState::await_sent(wire::WriteResult &last, Deadline deadline) {
  Status worst;
  for (; !sending_.empty(); sending_.pop_front()) {
    auto &[part, is_last, call] = sending_.front();
    auto result = call.wait(deadline);
    if (result.ok()) {
      if (part < arena_.parts().size()) arena_.parts()[part]->is_kept = result->keeps_buffer;
      if (is_last) last = *result;
      arena_.release(result->released);
    } else if (worst.ok() || wire::may_come_back(worst.code())) {
      worst = result.error();
    }
    if (result.code() == Code::kTimedOut && !call.is_over()) return said_by_last(worst);
  }
  return worst;
}

/// A part did not come to its end; the server may have said why.
Status WriterState::said_by_last(const Status &otherwise) {
  auto &[part, is_last, call] = sending_.back();
  if (!is_last || !call.is_over()) return otherwise;
  const auto said = call.wait(Deadline::now());
  sending_.pop_back();
  return said.code() == Code::kBusy ? Status(said.error()) : otherwise;
}

/// It can be put again.
void WriterState::give_up_step() {
  sending_.clear();
  arena_.drop_step();
  small_.clear();
  small_blocks_.clear();
  for (auto &known : variables_) known.begin_step();
  step_bytes_ = 0;
  is_ending_ = is_last_sent_ = false;
}

Status WriterState::end_step(Deadline deadline) {
  if (!is_open_) return no_step();
  is_ending_ = true;
  wire::WriteResult last;
  const auto carry_out = [&](wire::Client &, const nssi::CallOptions &) -> Status {
    const auto peer = place_->connect(server_, Deadline::now());
    if (!peer.ok()) return peer.error();
    if (!is_last_sent_)
      if (auto status = send_rest(*peer, deadline); !status.ok()) return status;
    auto status = await_sent(last, deadline);
    if (status.ok()) return status;
    // What was on its way may not have come: all is sent once more, and known where it has.
    if (wire::may_come_back(status.code()) || status.code() == Code::kNotFound || status.code() == Code::kBusy ||
        sending_.empty())
      send_anew();
    if (status.code() == Code::kNotFound) return Error{Code::kPeerLost, status.error().message};
    return status;
  };
  const auto status =
      place_->ask<void>(server_, deadline, carry_out, [&](const auto &peer) { return introduce(peer, deadline); });
  if (status.code() == Code::kTimedOut || status.code() == Code::kBusy || wire::may_come_back(status.code()))
    return status;
  if (!status.ok()) {
    ++attempt_;
    give_up_step();
    return lost_if_unknown(status.error());
  }
  arena_.end_step();
  arena_.release(last.released);
  small_.clear();
  small_blocks_.clear();
  attributes_.clear();
  for (auto &known : variables_) known.begin_step();
  has_room_ = last.has_room;
  last_bytes_ = step_bytes_;
  attempt_ = 0;
  is_open_ = is_ending_ = is_last_sent_ = false;
  ++step_;
  return {};
}

Status WriterState::close(Deadline deadline) {
  if (is_closed_) return {};
  if (is_open_) give_up_step();
  is_open_ = false;
  wire::CloseArgs args{stream_, key_, step_, false, false};
  const auto say = [&](wire::Client &client, const nssi::CallOptions &options) {
    return client.close_writer(args, options);
  };
  if (server_ != 0)
    if (auto status = place_->ask<void>(server_, deadline, say, [&](const auto &p) { return introduce(p, deadline); });
        !status.ok())
      return lost_if_unknown(status.error());
  auto status = place_->ask<void>(0, deadline, say, [&](const auto &peer) { return introduce_first(peer, deadline); });
  is_closed_ = status.ok();
  if (status.ok() && !lost_.empty()) return lost_steps();
  return status.ok() ? status : lost_if_unknown(status.error());
}

// --- the interface ----------------------------------------------------------------------------------------------------

Writer::Writer(std::unique_ptr<WriterState> state) : state_(std::move(state)) {}
Writer::Writer(Writer &&) noexcept = default;
Writer &Writer::operator=(Writer &&) noexcept = default;
Writer::~Writer() = default;

Result<Writer> Writer::open(std::string_view name, const WriterOptions &options, Deadline deadline) {
  auto session = wire::Session::get();
  if (!session.ok()) return session.error();
  auto place = wire::find_place(*session, options.at, {}, deadline);
  if (!place.ok()) return place.error();
  auto state = std::make_unique<WriterState>(*session, *place, name, options);
  if (auto status = state->open(deadline); !status.ok()) return status.error();
  return Writer(std::move(state));
}

Status Writer::define(const Variable &variable) { return state_->define(variable); }
Status Writer::set_attribute(const Attribute &attribute) { return state_->set_attribute(attribute); }
Result<StepState> Writer::begin_step(Deadline deadline) { return state_->begin_step(deadline); }
std::uint64_t Writer::step() const { return state_->step(); }
Status Writer::put(std::string_view variable, const Box &box, const void *data, Order order) {
  return state_->put(variable, box, data, order);
}
Result<void *> Writer::span(std::string_view variable, const Box &box) { return state_->span(variable, box); }
Status Writer::put_lent(std::string_view variable, const Box &box, const void *data) {
  return state_->put_lent(variable, box, data);
}
Status Writer::end_step(Deadline deadline) { return state_->end_step(deadline); }
Status Writer::close(Deadline deadline) { return state_->close(deadline); }

}  // namespace nessie::streams
