// SPDX-License-Identifier: BSD-3-Clause
// Transfers. What is large is pulled from, or pushed to, where it lies. The rest passes through buffers that the
// servers map: small pieces many to a message; writes up to a few megabytes so that they can go on behind the program's
// back.
#include <services/staging/client/impl.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

namespace staging {

using nessie::Clock;
using nessie::Error;
using nnti::RegisteredBuffer;
using nnti::Rights;

namespace {

constexpr std::size_t kSmallBytes = 48 << 10;  // up to here a message of its own costs more than packing
constexpr std::size_t kCopiedBytes = 4 << 20;  // up to here copying pays, because the program need not wait
constexpr std::size_t kPulledBytes = 256 << 10;
constexpr std::size_t kPackBytes = 1 << 20, kSmallPackBytes = 256 << 10;
constexpr std::size_t kListPart = 4;           // of a pack, one in so many bytes is for the list of its pieces
constexpr std::size_t kMessagesInFlight = 32;  // bounds what a client's requests take of a server's memory
constexpr std::size_t kMostComparisons = 1 << 16;
constexpr std::size_t kBytesBesidesPieces = 96;  // of encoded arguments
constexpr std::size_t kAlignment = 8;            // of a list behind the data

std::size_t aligned(std::size_t size_bytes) { return (size_bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Whether a piece's elements follow each other in the variable.
bool is_run(const VariableLayout &layout, const PieceList &one) {
  Piece piece;
  return PieceReader(one).next(piece) && bounds(layout, piece).size() == one.elements();
}

Error wrong_size(std::size_t has, std::int64_t needs) {
  return {nessie::Code::kInvalidArgument,
          fmt::format("a piece of a transfer takes {} bytes, its data are {}", needs, has)};
}

}  // namespace

/// Takes the items of one transfer apart, into messages.
class Client::Impl::Sender {
 public:
  Sender(Impl &client, bool is_write, FileToken file, std::int64_t num_records, const Order &order,
         std::shared_ptr<Outcome> outcome)
      : client_(client),
        is_write_(is_write),
        file_(file),
        num_records_(num_records),
        order_(order),
        outcome_(std::move(outcome)),
        packs_(client.servers.size()),
        sent_(client.servers.size()) {}
  /// Messages to each server.
  const std::vector<std::int64_t> &sent() const { return sent_; }

  void send(std::span<const Item> items) {
    std::size_t size_bytes = 0;
    for (const auto &item : items) size_bytes += item.data.size() + item.pieces.bytes().size();
    pack_bytes_ = size_bytes > kSmallPackBytes / 2 ? kPackBytes : kSmallPackBytes;
    for (const auto &item : items) add(item);
    flush_all();
  }
  /// Tells all servers that this process's part of a collective call is complete.
  void end_call();

 private:
  /// What is being packed for one server.
  struct Pack {
    std::optional<RegisteredBuffer> buffer;
    std::size_t used = 0;
    PieceList pieces;
    std::vector<std::span<std::byte>> places;
  };

  void add(const Item &item);
  void add_list(int server, const VariableLayout &layout, const PieceList &pieces, std::span<std::byte> data);
  void add_packed(int server, const PieceList &pieces, std::span<std::byte> data);
  void add_alone(int server, const VariableLayout &layout, const PieceList &pieces, std::span<std::byte> data);
  void flush(int server);
  void flush_all() {
    for (int server = 0; server < client_.count(); ++server) flush(server);
  }
  void list_pieces(Message &message, std::size_t data_bytes, TransferArgs &args) const;
  void send(std::unique_ptr<Message> message, std::size_t data_bytes);
  std::size_t most_list_bytes() const { return pack_bytes_ / kListPart; }
  std::size_t most_data_bytes() const { return pack_bytes_ - most_list_bytes(); }
  /// Whether writes to a server can go on behind the program's back: the server finds copied data by itself.
  bool goes_behind(int server) const { return is_write_ && client_.mode != Mode::kDirect && client_.at(server).views; }
  bool is_worth_copying(int server, const VariableLayout &layout, const PieceList &pieces,
                        std::size_t size_bytes) const;
  std::optional<RegisteredBuffer> take_buffer(std::size_t size_bytes);
  std::optional<RegisteredBuffer> spare_buffer(std::size_t size_bytes);

  Impl &client_;
  const bool is_write_;
  const FileToken file_;
  const std::int64_t num_records_;
  const Order &order_;
  const std::shared_ptr<Outcome> outcome_;
  std::size_t pack_bytes_ = kSmallPackBytes;
  std::vector<Pack> packs_;
  std::vector<std::int64_t> sent_;
};

void Client::Impl::Sender::add(const Item &item) {
  const auto &layout = *item.layout;
  if (const auto size = item.pieces.elements() * layout.element_bytes;
      static_cast<std::size_t>(size) != item.data.size())
    return outcome_->note(wrong_size(item.data.size(), size));
  if (client_.count() == 1) return add_list(0, layout, item.pieces, item.data);
  const Domains domains(layout, client_.count());
  if (const auto owner = domains.sole_owner()) return add_list(*owner, layout, item.pieces, item.data);
  auto rest = item.data;
  Piece piece;
  for (PieceReader pieces(item.pieces); pieces.next(piece);) {
    for (const auto &part : domains.split(piece))
      add_list(part.server, layout, part.piece, rest.subspan(part.offset_bytes, part.size_bytes));
    rest = rest.subspan(static_cast<std::size_t>(piece.elements() * layout.element_bytes));
  }
}

/// Pieces that one server owns. Few of them are large, and many are small.
void Client::Impl::Sender::add_list(int server, const VariableLayout &layout, const PieceList &pieces,
                                    std::span<std::byte> data) {
  if (data.empty()) return;
  if (pieces.size() == 1)
    return data.size() < kSmallBytes ? add_packed(server, pieces, data) : add_alone(server, layout, pieces, data);
  if (data.size() <= most_data_bytes() && pieces.bytes().size() <= most_list_bytes())
    return add_packed(server, pieces, data);
  Piece piece;
  for (PieceReader reader(pieces); reader.next(piece);) {
    const auto size = static_cast<std::size_t>(piece.elements() * layout.element_bytes);
    add_list(server, layout, piece, data.first(size));
    data = data.subspan(size);
  }
}

void Client::Impl::Sender::add_alone(int server, const VariableLayout &layout, const PieceList &pieces,
                                     std::span<std::byte> data) {
  if (is_write_ && order_.in_order) flush(server);
  auto message = std::make_unique<Message>();
  message->server = server;
  message->pieces = pieces;
  auto buffer = is_worth_copying(server, layout, pieces, data.size()) ? spare_buffer(data.size()) : std::nullopt;
  if (buffer) {
    std::memcpy(buffer->bytes().data(), data.data(), data.size());
    message->buffer = std::move(*buffer);
    message->is_copy = true;
  } else {
    auto registered = client_.runtime->register_memory(data, is_write_ ? Rights::kRemoteRead : Rights::kRemoteWrite);
    if (!registered.ok()) return outcome_->note(registered.error());
    message->buffer = std::move(*registered);
  }
  send(std::move(message), data.size());
}

void Client::Impl::Sender::add_packed(int server, const PieceList &pieces, std::span<std::byte> data) {
  auto &pack = packs_[static_cast<std::size_t>(server)];
  if (pack.used + data.size() > most_data_bytes() ||
      pack.pieces.bytes().size() + pieces.bytes().size() > most_list_bytes())
    flush(server);
  if (!pack.buffer && !(pack.buffer = take_buffer(pack_bytes_))) return;
  if (is_write_)
    std::memcpy(pack.buffer->bytes().data() + pack.used, data.data(), data.size());
  else
    pack.places.push_back(data);
  pack.used += data.size();
  pack.pieces.append(pieces);
}

void Client::Impl::Sender::flush(int server) {
  auto pack = std::exchange(packs_[static_cast<std::size_t>(server)], {});
  if (pack.pieces.empty()) return;
  auto message = std::make_unique<Message>();
  message->server = server;
  message->buffer = std::move(*pack.buffer);
  message->is_copy = true;
  message->pieces = std::move(pack.pieces);
  message->destinations = std::move(pack.places);
  send(std::move(message), pack.used);
}

/// In the request, or, where the list would make it too long to be sent at once, behind the data.
void Client::Impl::Sender::list_pieces(Message &message, std::size_t data_bytes, TransferArgs &args) const {
  const auto &list = message.pieces.bytes();
  if (!message.is_copy || list.size() + kBytesBesidesPieces <= client_.at(message.server).max_inline_args) {
    args.pieces = list;
    return;
  }
  args.listed_at = aligned(data_bytes);
  args.listed_bytes = static_cast<std::uint32_t>(list.size());
  std::memcpy(message.buffer.bytes().data() + args.listed_at, list.data(), list.size());
}

void Client::Impl::Sender::end_call() {
  for (int server = 0; server < client_.count(); ++server) {
    auto message = std::make_unique<Message>();
    message->server = server;
    send(std::move(message), 0);
  }
}

/// Who copies need not wait. Where the servers have no core of their own, what goes right into their pages when they
/// pull it is better not copied twice.
bool Client::Impl::Sender::is_worth_copying(int server, const VariableLayout &layout, const PieceList &pieces,
                                            std::size_t size_bytes) const {
  if (!goes_behind(server) || size_bytes > kCopiedBytes) return false;
  return !client_.is_crowded || size_bytes < kPulledBytes || !is_run(layout, pieces);
}

/// Nothing, if it takes waiting: who waits anyway may as well lend his own memory.
std::optional<RegisteredBuffer> Client::Impl::Sender::spare_buffer(std::size_t size_bytes) {
  auto buffer = client_.copy_buffers->take(size_bytes);
  return buffer.ok() ? std::move(*buffer) : std::nullopt;
}

/// Waits for earlier messages if need be.
std::optional<RegisteredBuffer> Client::Impl::Sender::take_buffer(std::size_t size_bytes) {
  for (;;) {
    auto buffer = client_.copy_buffers->take(size_bytes);
    if (!buffer.ok()) {
      outcome_->note(buffer.error());
      return std::nullopt;
    }
    if (*buffer) return std::move(*buffer);
    if (client_.messages.empty()) flush_all();  // what is used up is being packed
    client_.finish_one();
  }
}

void Client::Impl::Sender::send(std::unique_ptr<Message> message, std::size_t data_bytes) {
  while (client_.messages.size() >= kMessagesInFlight * packs_.size()) client_.finish_one();
  const auto server = static_cast<std::size_t>(message->server);
  const auto sent_ns = goes_behind(message->server) ? Clock::now().time_since_epoch() : std::chrono::nanoseconds(0);
  TransferArgs transfer{file_,
                        num_records_,
                        is_write_ || order_.is_collective ? order_.call : 0,
                        order_.known(message->server),
                        sent_ns.count(),
                        order_.in_order,
                        message->pieces.empty(),
                        {},
                        0,
                        0};
  list_pieces(*message, data_bytes, transfer);
  message->file = file_;
  message->is_write = is_write_;
  message->borrows = !message->is_copy || !goes_behind(message->server) ||
                     xdr::encoded_size(transfer) > client_.at(message->server).max_inline_args;
  message->outcome = outcome_;
  ++outcome_->pending;
  outcome_->borrowed += message->borrows ? 1 : 0;
  ++sent_[server];
  message->is_urgent =
      !is_write_ || message->borrows || client_.messages.size() >= kMessagesInFlight * packs_.size() / 2;
  auto options = kPatient;
  if (message->buffer.valid()) options.data = &message->buffer;
  const auto op = !is_write_ ? &Stub::read_async : message->is_urgent ? &Stub::write_now_async : &Stub::write_async;
  message->answer = (client_.servers[server].stub.*op)(transfer, options);
  client_.messages.push_back(std::move(message));
}

// --- outstanding messages -------------------------------------------------------------------------------------------

void Client::Impl::finish_one() {
  if (messages.empty()) {
    if (!awaited.empty()) changed.wait(mutex);
    return;
  }
  auto oldest = std::move(messages.front());
  messages.pop_front();
  finish(std::move(oldest));
}

void Client::Impl::finish(std::unique_ptr<Message> message) {
  awaited.push_back(message.get());
  auto &outcome = *message->outcome;
  const auto answered = answer(std::move(message->answer), message->server);
  outcome.note_answer(answered);
  const std::byte *from = message->destinations.empty() ? nullptr : message->buffer.bytes().data();
  for (auto place : message->destinations) {
    if (answered.ok()) std::memcpy(place.data(), from, place.size());
    from += place.size();
  }
  --outcome.pending;
  outcome.borrowed -= message->borrows ? 1 : 0;
  if (message->is_copy) copy_buffers->give_back(std::move(message->buffer));
  std::erase(awaited, message.get());
  changed.notify_all();
}

void Client::Impl::finish(const int &left) {
  if (left > 0) hasten();
  while (left > 0) finish_one();
}

/// Has the servers carry out what this process is about to wait for.
void Client::Impl::hasten() {
  for (int server = 0; server < count(); ++server) {
    const auto last = std::find_if(messages.rbegin(), messages.rend(),
                                   [=](const auto &message) { return message->server == server; });
    if (last != messages.rend() && !(*last)->is_urgent) (void)ask(server, &Stub::hasten_async);
  }
}

/// What is behind the program's back must be in the servers' inboxes.
void Client::Impl::finish_unsent() {
  for (const auto &server : servers)
    while ((!messages.empty() || !awaited.empty()) && runtime->has_unsent(server.peer)) finish_one();
}

/// Whether one of the items meets what this process is still writing.
bool Client::Impl::meets_pending_write(FileToken file, std::span<const Item> items) const {
  std::size_t comparisons = 0;
  const auto meets_item = [&](const std::vector<Hull> &written, const Item &item) {
    if ((comparisons += written.size() * item.pieces.hulls().size()) > kMostComparisons) return true;
    for (const auto &hull : item.pieces.hulls())
      if (std::ranges::any_of(written, [&](const Hull &other) { return overlap(other, hull); })) return true;
    return false;
  };
  const auto meets = [&](const Message &message) {
    if (message.file != file || !message.is_write) return false;
    return std::ranges::any_of(items, [&](const Item &item) { return meets_item(message.pieces.hulls(), item); });
  };
  return std::ranges::any_of(messages, [&](const auto &message) { return meets(*message); }) ||
         std::ranges::any_of(awaited, [&](const Message *message) { return meets(*message); });
}

// --- the client's functions -----------------------------------------------------------------------------------------

Result<int> Client::write(FileToken file, std::int64_t num_records, Order &order, std::span<const Item> items) {
  const std::lock_guard lock(impl_->mutex);
  const auto outcome = impl_->outcome_of(file);
  while (!impl_->messages.empty() && impl_->messages.front()->answer.test()) impl_->finish_one();
  if (impl_->meets_pending_write(file, items)) impl_->finish(outcome->pending);
  Impl::Sender sender(*impl_, true, file, num_records, order, outcome);
  sender.send(items);
  if (order.is_collective && impl_->mode == Mode::kDirect) sender.end_call();
  std::ranges::transform(order.sent, sender.sent(), order.sent.begin(), std::plus<>());
  impl_->finish(outcome->borrowed);
  impl_->finish_unsent();
  return outcome->take();
}

/// What became of the writes to a file; forgets files that nobody writes to, and whose writes all went well.
std::shared_ptr<Outcome> Client::Impl::outcome_of(FileToken file) {
  const auto is_over = [](const auto &old) { return old.second->is_fine() && old.second.use_count() == 1; };
  if (!written.contains(file)) std::erase_if(written, is_over);
  auto &outcome = written[file];
  if (!outcome) outcome = std::make_shared<Outcome>();
  return outcome;
}

Result<int> Client::finish_writes(FileToken file) {
  const std::lock_guard lock(impl_->mutex);
  const auto written = impl_->written.find(file);
  if (written == impl_->written.end()) return 0;
  const auto outcome = written->second;
  impl_->finish(outcome->pending);
  impl_->written.erase(file);
  return outcome->take();
}

Result<int> Client::read(FileToken file, std::int64_t num_records, const Order &order, std::span<const Item> items) {
  const std::lock_guard lock(impl_->mutex);
  impl_->finish_writes(file);
  auto outcome = std::make_shared<Outcome>();
  Impl::Sender(*impl_, false, file, num_records, order, outcome).send(items);
  impl_->finish(outcome->pending);
  return outcome->take();
}

}  // namespace staging
