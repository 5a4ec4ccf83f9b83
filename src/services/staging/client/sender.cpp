// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/client/sender.hpp>

#include <services/staging/domains.hpp>

#include <base/crc32c.hpp>

#include <fmt/format.h>

#include <cstring>
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
constexpr std::size_t kMessagesInFlight = 32;     // bounds what a client's requests take of a server's memory
constexpr std::size_t kBytesBesidesPieces = 120;  // of encoded arguments
constexpr std::size_t kAlignment = 8;             // of a list behind the data

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
    message->args.checksum = client_.copy(buffer->bytes().data(), data);
    message->buffer = std::move(*buffer);
    message->is_copy = true;
  } else {
    auto registered = client_.runtime->register_memory(data, is_write_ ? Rights::kRemoteRead : Rights::kRemoteWrite);
    if (!registered.ok()) return outcome_->note(registered.error());
    if (is_write_ && client_.checks) message->args.checksum = nessie::crc32c(data);
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
    pack.checksum = client_.copy(pack.buffer->bytes().data() + pack.used, data, pack.checksum);
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
  message->args.checksum = pack.checksum;
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
                        0,
                        ++client_.servers[server].last_number,
                        0,
                        is_write_ && client_.checks,
                        message->args.checksum};
  auto &unanswered = client_.servers[server].unanswered;
  unanswered.insert(unanswered.end(), transfer.number);
  transfer.answered = *unanswered.begin() - 1;
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
  message->args = std::move(transfer);
  client_.send(*message);
  client_.messages.push_back(std::move(message));
}

}  // namespace staging
