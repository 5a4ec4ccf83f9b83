// SPDX-License-Identifier: BSD-3-Clause
// The owner's side of get and put: checks, then posts its side of the transfer.
#include "nnti/transports/mpi/transfers.hpp"
#include "nnti/transports/mpi/world.hpp"

#include <algorithm>

namespace nnti::mpi {
namespace {

constexpr std::size_t kMaxServed = 4 * kMaxTransfers;  // the asker may know of an end before us

}  // namespace

void Transfers::serve(const Frame &frame) {
  const auto &request = frame.header;
  const Memory *memory = host_.memory_of(request.key);
  const auto needed = request.type == FrameType::kGet ? Rights::kRemoteRead : Rights::kRemoteWrite;
  if (const Code code = framed::check(memory, needed, request.offset, request.length); code != Code::kOk)
    return tell_done(request.operation, code);
  if (request.length <= kMaxMessageBytes) return answer_inline(request, *memory, frame.body);
  if (served_.size() >= kMaxServed || served_.contains(request.operation))
    return bad_peer("the peer asks for more at once than is allowed");
  request.type == FrameType::kGet ? serve_get(request, *memory) : serve_put(request, *memory);
}

void Transfers::answer_inline(const FrameHeader &request, const Memory &memory, std::span<const std::byte> body) {
  const auto range = memory.range(request.offset, request.length);
  if (request.type == FrameType::kGet) {
    FrameHeader done{.type = FrameType::kDone, .operation = request.operation};
    return host_.send_or_keep(done, range);
  }
  if (!range.empty()) std::memcpy(range.data(), body.data(), range.size());
  tell_done(request.operation, Code::kOk);
}

void Transfers::serve_get(const FrameHeader &request, const Memory &memory) {
  auto &flow = host_.new_flow(Flow::Direction::kOut, static_cast<int>(request.result),
                              memory.range(request.offset, request.length), request.operation, false);
  served_[request.operation] = {&flow, &memory, true, false};
  continue_served(request.operation);
}

void Transfers::serve_put(const FrameHeader &request, const Memory &memory) {
  const int tag = host_.world().take_tag();
  if (tag == 0) return tell_done(request.operation, Code::kBusy);
  auto &flow =
      host_.new_flow(Flow::Direction::kIn, tag, memory.range(request.offset, request.length), request.operation, false);
  served_[request.operation] = {&flow, &memory, false, false};
  FrameHeader clear{.type = kClear, .result = static_cast<std::uint32_t>(tag), .operation = request.operation};
  host_.send_or_keep(clear, {});
}

void Transfers::continue_served(std::uint64_t operation) {
  const auto found = served_.find(operation);
  if (found == served_.end()) return;
  auto &[flow, memory, get, told] = found->second;
  const bool all_begun = flow->begun() == flow->total();
  if (!told && (get ? all_begun : flow->whole())) {
    told = true;
    tell_done(operation, Code::kOk, flow->begun());
  }
  if (!flow->over()) return;
  flow->released = true;
  served_.erase(found);
}

void Transfers::on_stopped(const FrameHeader &header) {
  const auto found = served_.find(header.operation);
  if (found == served_.end()) return;  // it has all arrived
  if (found->second.get || !found->second.flow->conclude(header.length))
    return bad_peer("the peer says that it sent what it did not send");
  found->second.flow->stop();
  host_.touch(*found->second.flow);
}

void Transfers::leave_memory(const Memory &memory) {
  for (auto &[operation, served] : served_) {
    if (served.memory != &memory) continue;
    served.flow->stop();
    if (!std::exchange(served.told, true)) tell_done(operation, Code::kRefused, served.flow->begun());
    host_.touch(*served.flow);
  }
}

bool Transfers::uses(const Memory &memory) const {
  return std::ranges::any_of(
      served_, [&](const auto &entry) { return entry.second.memory == &memory && entry.second.flow->uses_memory(); });
}

void Transfers::tell_done(std::uint64_t operation, Code code, std::uint64_t chunks) {
  FrameHeader header{
      .type = FrameType::kDone, .result = static_cast<std::uint32_t>(code), .operation = operation, .length = chunks};
  host_.send_or_keep(header, {});
}

}  // namespace nnti::mpi
