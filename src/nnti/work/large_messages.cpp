// SPDX-License-Identifier: BSD-3-Clause
// Messages that are too large to be pushed: their bytes go straight from the sender's memory into the element, once the
// receiver has one. Smaller ones are read by the receiver; of larger ones the sender writes a part at the same time.
//
// Design notes. What one side may do to the other's memory ends with what was agreed on: the receiver registers the
// memory that is to be written for one range, and unregisters it when that is said to be written, before anybody is
// told of the message. At the receiver one operation (kFetch) stands for the whole message, with a part for each get
// and one for the range that the peer writes; at the sender, the send itself, with a part for each put.
#include "nnti/work/context_impl.hpp"

namespace nnti {

namespace {

using Operation = Context::Impl::Operation;

/// Pieces that are smaller on average are copied together: a transfer of each would take longer.
constexpr std::uint64_t kWorthATransfer = 4096;

bool is_finely_cut(std::span<const Bytes> segments, std::uint64_t size_bytes) {
  return segments.size() > 1 && size_bytes / segments.size() < kWorthATransfer;
}

std::uint64_t total_of(std::span<const RemoteBuffer> pieces) {
  std::uint64_t total = 0;
  for (const auto &piece : pieces) total += piece.size_bytes;
  return total;
}

/// What is sent: the buffer's segments, or their copy.
std::span<const Bytes> source_of(const Operation &operation, const Context::Impl::Registration &message, Bytes &copy) {
  if (operation.gathered.empty()) return message.segments;
  copy = Bytes(const_cast<std::byte *>(operation.gathered.data()), operation.gathered.size());
  return {&copy, 1};
}

}  // namespace

/// Registers the first pieces of the range for the operation's peer, for as long as `exposed` lists them.
Result<std::vector<RemoteBuffer>> Context::Impl::expose(Operation &operation, std::span<const Bytes> segments,
                                                        std::uint64_t offset, std::uint64_t length, Rights rights) {
  std::vector<RemoteBuffer> pieces;
  Status status;
  for_each_piece(segments, offset, length, [&](Bytes bytes) {
    if (!status.ok() || pieces.size() == wire::kMaxPieces) return;
    auto memory = endpoint->register_memory(bytes, rights);
    auto remote = memory.ok() ? memory->describe_for(operation.peer) : memory.error();
    if (!remote.ok()) {
      status = remote.error();
      return;
    }
    operation.exposed.push_back(std::move(*memory));
    pieces.push_back(*remote);
  });
  if (!status.ok()) return status.error();
  return pieces;
}

// --- the sender -------------------------------------------------------------------------------------------------------

/// Tells the receiver of the message, which says when it has room, and when it has it.
Status Context::Impl::send_large(Operation &operation, const Registration &message, const Rendezvous &how) {
  operation.large = true;
  if (is_finely_cut(message.segments, operation.length))
    for (const auto &segment : message.segments)
      operation.gathered.insert(operation.gathered.end(), segment.begin(), segment.end());
  Bytes copy;
  const auto source = source_of(operation, message, copy);
  auto pieces = expose(operation, source, 0, readable_part(how, operation.length), Rights::kRemoteRead);
  if (!pieces.ok()) return pieces.error();
  operation.written = total_of(*pieces);
  return say(
      operation.peer, wire::Kind::kSendLarge,
      {.operation = operation.id, .buffer = operation.remote, .offset = operation.written, .length = operation.length},
      std::as_bytes(std::span(*pieces)));
}

/// The receiver has room, and wants the next range to be written.
void Context::Impl::on_write_to(PeerId from, const wire::Control &control, std::span<const std::byte> payload) {
  Operation *operation = operations.find(control.operation);
  const bool expected = operation && operation->peer == from && operation->large && !operation->writing &&
                        control.offset == operation->written &&
                        inside(control.offset, control.length, operation->length);
  const auto pieces = wire::pieces_of(payload, control.length);
  if (!expected || !pieces) return reject(from, "it asks for what it was not offered to be written");
  operation->writing = true;
  operation->transfer = control.buffer;
  operation->range = control.length;
  operation->parts = 1;
  Bytes copy;
  const auto source = source_of(*operation, *find_buffer(operation->local), copy);
  post_pieces(*operation, true, {source, control.offset, control.length, 0}, *pieces);
  operation->part_ended(Code::kOk);
}

/// The range is written, or cannot be. How the send ends is the receiver's to say.
void Context::Impl::range_written(Operation &operation, Code code) {
  operation.writing = false;
  operation.code = Code::kOk;
  operation.written += operation.range;
  say_surely(operation.peer, wire::Kind::kWritten,
             {.buffer = operation.transfer, .result = static_cast<std::uint64_t>(code)});
}

// --- the receiver -----------------------------------------------------------------------------------------------------

/// Brings the entering message in. What the peer does is asked for first: it works while we read.
void Context::Impl::fetch(Registration &target) {
  const Arrival &arrival = *target.inbox->entering();
  Operation &operation = new_operation(Operation::Kind::kFetch, arrival.from, target);
  operation.local_offset = target.entering_at();
  operation.length = arrival.length;
  operation.written = arrival.readable;
  operation.parts = 1;
  if (auto status = let_write(operation, target); status.ok())
    post_pieces(operation, false, {target.segments, operation.local_offset, arrival.readable, 0}, arrival.source);
  else
    operation.code = status.code();
  operation.part_ended(Code::kOk);
}

/// Lets the peer write the next range of the message, if there is more to be written.
Status Context::Impl::let_write(Operation &operation, Registration &target) {
  const auto left = operation.length - operation.written;
  if (left == 0) return {};
  auto pieces =
      expose(operation, target.segments, operation.local_offset + operation.written, left, Rights::kRemoteWrite);
  if (!pieces.ok()) return pieces.error();
  operation.writing = true;
  operation.range = total_of(*pieces);
  ++operation.parts;
  say_surely(operation.peer, wire::Kind::kWriteTo,
             {.operation = target.inbox->entering()->operation,
              .buffer = operation.id,
              .offset = operation.written,
              .length = operation.range},
             std::as_bytes(std::span(*pieces)));
  return {};
}

void Context::Impl::on_written(PeerId from, const wire::Control &control) {
  Operation *operation = operations.find(control.buffer);
  const bool expected =
      operation && operation->kind == Operation::Kind::kFetch && operation->peer == from && operation->writing;
  if (!expected) return reject(from, "it says that it has written what it was not asked for");
  operation->writing = false;
  operation->exposed.clear();
  operation->written += operation->range;
  Code code = received_code(control.result);
  if (code == Code::kOk) code = let_write(*operation, *find_buffer(operation->local)).code();
  operation->part_ended(code);
}

/// The entering message is in its element, or could not be brought there.
void Context::Impl::fetched(Registration &target, Code code) {
  if (code == Code::kOk) {
    delivered(target);
    return pump(target);
  }
  const PeerId from = target.inbox->entering()->from;
  const std::uint64_t operation = target.inbox->entering()->operation;
  target.inbox->gave_up();
  answer_send(from, operation, code);
  pump(target);
}

}  // namespace nnti
