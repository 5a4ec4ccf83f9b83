// SPDX-License-Identifier: BSD-3-Clause
// Which rendezvous is faster is measured, once for each transport of a process: with messages as all others, that go to
// a scratch buffer of the peer's context and are forgotten there.
//
// Design notes. It is done in the background, after the first message that it might concern: who never sends one pays
// nothing. Both ways are tried in turn, at two sizes, and the best times count, so that what else goes on meanwhile
// matters little. The peer's scratch buffer (kScratch) belongs to one peer at a time, others are told kBusy and measure
// later; a message of no bytes gives it back.
#include "nnti/work/context_impl.hpp"

#include <algorithm>

namespace nnti {

using Operation = Context::Impl::Operation;

namespace {

using namespace std::chrono_literals;

constexpr auto kBudget = 4ms, kPatience = 20ms;  // where it is the peer, or the processor, that lets us wait
constexpr double kTooSlow_us = 500;              // for the smaller size: a round would take many milliseconds
/// Some warm up; a round of four samples each follows.
constexpr std::size_t kWarmUp = 4, kRound = 4, kRounds = 4, kLeastRounds = 2;

double microseconds_since(nessie::Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(nessie::Clock::now() - begin).count();
}

}  // namespace

struct Context::Impl::Measuring {
  PeerId peer;
  std::string transport;
  std::vector<std::byte> memory;
  std::array<BufferId, 2> messages;  ///< of both sizes
  std::size_t step = 0;
  double quickest_us = kTooSlow_us + 1;  ///< of those that warm up
  nessie::Clock::time_point begun, sent;
  RendezvousTimes times;

  bool large() const { return step >= kWarmUp && (step - kWarmUp) % kRound >= 2; }
  bool shared() const { return step % 2 == 1; }
  void take_sample() {
    const double us = microseconds_since(sent);
    auto &best = (shared() ? times.shared : times.read)[large()];
    if (step < kWarmUp)
      quickest_us = std::min(quickest_us, us);
    else
      best = best == 0 ? us : std::min(best, us);
    ++step;
  }
  /// A network on which one round alone would take too long is not waited for.
  bool over() const {
    if (step == kWarmUp && quickest_us > kTooSlow_us) return true;
    const auto passed = nessie::Clock::now() - begun;
    return whole_rounds() == kRounds || (passed > kBudget && conclusive()) || passed > kPatience;
  }
  bool conclusive() const { return whole_rounds() >= kLeastRounds; }
  std::size_t whole_rounds() const { return step < kWarmUp ? 0 : (step - kWarmUp) / kRound; }
};

Rendezvous Context::Impl::rendezvous_in_force(PeerId peer) const {
  using Origin = Rendezvous::Origin;
  const auto percent = rendezvous.read_percent;
  if (rendezvous.write_from) return {*rendezvous.write_from, percent, Origin::kConfigured};
  if (auto found = measured_rendezvous::find(endpoint->transport_of(peer))) return {*found, percent, Origin::kMeasured};
  return {Rendezvous::kNever, percent, Origin::kDefault};
}

// --- the side that measures -------------------------------------------------------------------------------------------

void Context::Impl::begin_measuring(PeerId peer) {
  if (measuring || rendezvous.write_from || !info_of(peer)) return;
  const auto transport = endpoint->transport_of(peer);
  if (transport.empty() || !measured_rendezvous::begin(transport)) return;
  measuring = std::make_shared<Measuring>();
  measuring->peer = peer;
  measuring->transport = transport;
  measuring->memory.resize(kScratchBytes);
  for (std::size_t i = 0; i < 2; ++i) {
    auto made = add_buffer({Bytes(measuring->memory).first(RendezvousTimes::kSizes[i])}, RendezvousTimes::kSizes[i], 1,
                           Purpose::kSendSource, {}, std::nullopt);
    if (!made.ok()) return end_measuring(std::nullopt);
    measuring->messages[i] = made->local();
  }
  measuring->begun = nessie::Clock::now();
  send_sample();
}

void Context::Impl::send_sample() {
  Registration &message = *find_buffer(measuring->messages[measuring->large()].value);
  Operation &operation = new_operation(Operation::Kind::kSend, measuring->peer, message);
  operation.length = message.handle.size_bytes();
  operation.remote = kScratch;
  operation.sample = true;
  measuring->sent = nessie::Clock::now();
  const Rendezvous how{measuring->shared() ? 0 : Rendezvous::kNever, rendezvous.read_percent};
  if (send_large(operation, message, how).ok()) return;
  drop(operation);
  end_measuring(std::nullopt);
}

/// A sample has arrived, or could not be sent.
void Context::Impl::on_sample(Code code) {
  if (!measuring) return;
  if (code != Code::kOk) return end_measuring(std::nullopt);
  measuring->take_sample();
  if (!measuring->over()) return send_sample();
  say_surely(measuring->peer, wire::Kind::kSend, {.buffer = kScratch});
  end_measuring(measuring->conclusive() ? std::optional(faster_shared_from(measuring->times)) : std::nullopt);
}

void Context::Impl::end_measuring(std::optional<std::uint64_t> write_from) {
  if (!measuring) return;
  measured_rendezvous::end(measuring->transport, write_from);
  for (const auto id : measuring->messages) buffers.erase(id.value);
  measuring.reset();
  dirty = true;
}

Result<Rendezvous> Context::Impl::measure_rendezvous(Call &call, ProcessId process, Deadline deadline) {
  const auto peer = connection_to(process);
  if (!peer) return Error{Code::kPeerLost, "the peer is not connected", nessie::Scope::kPeer};
  if (rendezvous_in_force(*peer).origin == Rendezvous::Origin::kDefault) begin_measuring(*peer);
  if (auto status = wait_until(call, deadline, [&] { return !measuring; }); !status.ok()) return status.error();
  if (!info_of(*peer)) return Error{Code::kPeerLost, "the peer is not connected any more", nessie::Scope::kPeer};
  return rendezvous_in_force(*peer);
}

// --- the side that is measured against --------------------------------------------------------------------------------

/// Whether the peer may have the scratch buffer, which is made for it.
Code Context::Impl::lend_scratch(PeerId peer) {
  if (scratch_user && *scratch_user != peer) return Code::kBusy;
  Registration *made = find_buffer(kScratch);
  if (made && !made->inbox->open()) return Code::kBusy;
  scratch_user = peer;
  if (made) return Code::kOk;
  scratch_memory.resize(kScratchBytes);
  Registration buffer;
  buffer.handle = {me, kScratch, Purpose::kReceiveDestination, kScratchBytes, 1, {}, {}};
  buffer.segments = {Bytes(scratch_memory)};
  buffer.inbox.emplace(1);
  buffers.emplace(kScratch, std::move(buffer));
  return Code::kOk;
}

void Context::Impl::forget_sample(Registration &scratch) {
  const Arrival arrival = *scratch.inbox->entering();
  scratch.inbox->release(scratch.inbox->entered());
  answer_send(arrival.from, arrival.operation, Code::kOk);
}

/// The peer has done with the scratch buffer, or is gone. A message that is still on its way there keeps it.
void Context::Impl::take_scratch_back(PeerId peer) {
  if (scratch_user != peer) return;
  scratch_user.reset();
  if (find_buffer(kScratch)->in_progress > 0) return;
  buffers.erase(kScratch);
  scratch_memory = {};
}

}  // namespace nnti
