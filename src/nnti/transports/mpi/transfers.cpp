// SPDX-License-Identifier: BSD-3-Clause
// What we ask of the peer, and the end of everything; serve.cpp has the owner's side.
#include "nnti/transports/mpi/transfers.hpp"

#include "nnti/transport/registration_check.hpp"
#include "nnti/transports/mpi/world.hpp"

#include <algorithm>

namespace nnti::mpi {
namespace {

std::uint64_t chunks_of(std::size_t size_bytes) { return (size_bytes + kChunkBytes - 1) / kChunkBytes; }

}  // namespace

template <class F> void Transfers::for_each_flow(F function) {
  for (auto &[operation, asked] : asked_)
    if (asked.flow != nullptr) function(*asked.flow);
  for (auto &[operation, served] : served_) function(*served.flow);
}

Transfers::~Transfers() {
  for_each_flow([&](Flow &flow) {
    flow.abandon();
    flow.released = true;
    host_.touch(flow);
  });
}

void Transfers::start(bool get, const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
                      Completion &completion) {
  if (remote.slot != 0) return completion.on_complete(unknown_key());  // not made by this transport
  const auto needed = get ? Rights::kRemoteRead : Rights::kRemoteWrite;
  if (auto allowed = check_access(remote.size_bytes, remote.rights, offset, local.size(), needed); !allowed.ok())
    return completion.on_complete(allowed);
  const auto operation = next_operation_++;
  auto &asked = asked_[operation];
  asked = {&completion, local, get, {}, nullptr, {}};
  asked.header.type = get ? FrameType::kGet : FrameType::kPut;
  asked.header.operation = operation;
  asked.header.key = remote.key;
  asked.header.offset = offset;
  asked.header.length = local.size();
  if (!asked.large()) return host_.send_or_keep(asked.header, get ? std::span<const std::byte>() : asked.local);
  waiting_.push_back(operation);
  if (!begin_waiting()) host_.wants_pump();
}

bool Transfers::begin_waiting() {
  while (!waiting_.empty() && large_ < kMaxTransfers) {
    const auto operation = waiting_.front();
    if (!begin_large(operation, asked_[operation])) return false;
    waiting_.pop_front();
    ++large_;
  }
  return waiting_.empty() || large_ == kMaxTransfers;  // the end of one begins the next
}

bool Transfers::begin_large(std::uint64_t operation, Asked &asked) {
  if (asked.get) {
    const int tag = host_.world().take_tag();
    if (tag == 0) return false;
    asked.header.result = static_cast<std::uint32_t>(tag);
    asked.flow = &host_.new_flow(Flow::Direction::kIn, tag, asked.local, operation, true);
  }
  host_.send_or_keep(asked.header, {});
  return true;
}

void Transfers::on_clear(const FrameHeader &header) {
  const auto found = asked_.find(header.operation);
  if (found == asked_.end() || found->second.get || !found->second.large() || found->second.flow != nullptr)
    return bad_peer("the peer is clear for a transfer that nobody asked for");
  found->second.flow = &host_.new_flow(Flow::Direction::kOut, static_cast<int>(header.result), found->second.local,
                                       header.operation, true);
}

/// An answer that only a faulty peer gives.
bool Transfers::contradicts(const Asked &asked, const Frame &frame, Code code) const {
  if (asked.done) return true;
  if (code != Code::kOk) return false;
  if (!asked.large()) return asked.get && frame.body.size() != asked.local.size();
  const auto chunks = chunks_of(asked.local.size());
  return asked.get ? frame.header.length != chunks : asked.flow == nullptr || asked.flow->begun() != chunks;
}

void Transfers::on_done(const Frame &frame) {
  const auto operation = frame.header.operation;
  const auto found = asked_.find(operation);
  if (found == asked_.end()) return;
  auto &asked = found->second;
  const Code code = received_code(frame.header.result);
  if (contradicts(asked, frame, code)) return bad_peer("the peer's answer contradicts what was asked");
  asked.done = code;
  if (asked.get && asked.flow != nullptr && !asked.flow->conclude(frame.header.length))
    return bad_peer("the peer's answer contradicts what it sent");
  if (!asked.get && asked.flow != nullptr && code != Code::kOk) {
    asked.flow->stop();
    tell_stopped(operation, asked.flow->begun());
  }
  if (asked.get && asked.flow == nullptr && code == Code::kOk && !frame.body.empty())
    std::memcpy(asked.local.data(), frame.body.data(), frame.body.size());
  if (asked.flow != nullptr) host_.touch(*asked.flow);
  try_finish(operation);
}

void Transfers::try_finish(std::uint64_t operation) {
  const auto found = asked_.find(operation);
  if (found == asked_.end() || !found->second.done) return;
  auto &asked = found->second;
  const Code code = *asked.done;
  if (asked.flow != nullptr && (code == Code::kOk ? !asked.flow->whole() : asked.flow->uses_memory())) return;
  if (asked.flow != nullptr) asked.flow->released = true;
  auto *completion = asked.completion;
  if (asked.large() && large_ > 0) --large_;
  asked_.erase(found);
  begin_waiting();
  if (completion != nullptr) completion->on_complete(code == Code::kOk ? Status() : refused_by_peer(code));
}

std::vector<Completion *> Transfers::take_completions() {
  std::vector<std::uint64_t> order;
  for (const auto &[operation, asked] : asked_)
    if (asked.completion != nullptr) order.push_back(operation);
  std::ranges::sort(order);
  std::vector<Completion *> completions;
  for (const auto operation : order) completions.push_back(std::exchange(asked_[operation].completion, nullptr));
  waiting_.clear();
  return completions;
}

bool Transfers::uses_lent_memory() const {
  return std::ranges::any_of(
      asked_, [](const auto &entry) { return entry.second.flow != nullptr && entry.second.flow->uses_memory(); });
}

bool Transfers::uses_memory() const {
  return uses_lent_memory() ||
         std::ranges::any_of(served_, [](const auto &entry) { return entry.second.flow->uses_memory(); });
}

// --- both sides -----------------------------------------------------------------------------------------------------------

void Transfers::on_flow(Flow &flow) {
  if (flow.error() != MPI_SUCCESS)
    return host_.break_with({Code::kPeerLost, "MPI could not move the data: " + mpi_error_text(flow.error()),
                             nessie::Scope::kPeer, flow.error()});
  flow.asked_here ? try_finish(flow.operation) : continue_served(flow.operation);
}

void Transfers::say_farewell() {
  for (auto &[operation, asked] : asked_) {
    if (asked.flow == nullptr) continue;
    asked.flow->stop();
    if (!asked.get && !asked.done) tell_stopped(operation, asked.flow->begun());
  }
  for (auto &[operation, served] : served_) {
    served.flow->stop();
    if (served.get && !std::exchange(served.told, true)) tell_done(operation, Code::kCancelled, served.flow->begun());
  }
}

void Transfers::conclude_all() {
  for_each_flow([&](Flow &flow) {
    if (flow.direction() == Flow::Direction::kIn && !flow.concluded() && !flow.whole() && !flow.conclude(0))
      flow.abandon();
    host_.touch(flow);
  });
}

void Transfers::abandon_all() {
  for_each_flow([&](Flow &flow) {
    flow.abandon();
    host_.touch(flow);
  });
}

void Transfers::tell_stopped(std::uint64_t operation, std::uint64_t chunks) {
  FrameHeader header{.type = kStopped, .operation = operation, .length = chunks};
  host_.send_or_keep(header, {});
}

void Transfers::bad_peer(const char *why) { host_.break_with({Code::kBadMessage, why, nessie::Scope::kPeer}); }

}  // namespace nnti::mpi
