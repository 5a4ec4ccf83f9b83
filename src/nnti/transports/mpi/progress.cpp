// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/mpi/transport.hpp"

#include <algorithm>
#include <chrono>

namespace nnti::mpi {
namespace {

constexpr std::size_t kReceives = 64;  // frames beyond wait within MPI: credits bound them
constexpr std::size_t kFewReceives = kReceives / 2;
constexpr unsigned kTurnsPerLookFurther = 64;  // idle ones
constexpr unsigned kTurnsPerDoor = 64;
constexpr std::size_t kMaxHalfOpen = 256;

}  // namespace

// --- sending ------------------------------------------------------------------------------------------------------------

bool MpiTransport::post_frame(MpiConnection &connection, Address to, const FrameHeader &header,
                              std::span<const std::byte> body) {
  if (post_bytes(connection, to, std::as_bytes(std::span(&header, 1)), body)) [[likely]]
    return true;
  connection.break_with({Code::kPeerLost, "MPI cannot send to the peer's process", nessie::Scope::kPeer});
  return false;
}

bool MpiTransport::post_bytes(MpiConnection &connection, Address to, std::span<const std::byte> head,
                              std::span<const std::byte> body) {
  if (mpi_ended_.load(std::memory_order_relaxed)) return false;
  if (free_slots_.empty()) free_slots_.push_back(&lent_->slots.emplace_back());
  Slot &slot = *free_slots_.back();
  std::memcpy(slot.bytes.data(), head.data(), head.size());
  if (!body.empty()) std::memcpy(slot.bytes.data() + head.size(), body.data(), body.size());
  slot.token = connection.token();
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Isend(slot.bytes.data(), static_cast<int>(head.size() + body.size()), MPI_BYTE, to.rank, to.port,
                world_.communicator(), &request) != MPI_SUCCESS)
    return false;
  int done = 0;  // as most are, at once: MPI has copied a short frame
  if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done) return true;
  free_slots_.pop_back();
  lent_->requests.add(request, slot);
  connection.on_sending();
  return true;
}

// --- polling: only notes what happened ------------------------------------------------------------------------------------

Status MpiTransport::post_receives() {
  for (std::size_t i = 0; i < kReceives; ++i) {
    auto &receive = receives_.emplace_back();
    const int rc = MPI_Recv_init(receive.bytes.data(), static_cast<int>(receive.bytes.size()), MPI_BYTE, MPI_ANY_SOURCE,
                                 port_, world_.communicator(), &receive.request);
    if (rc != MPI_SUCCESS)
      return Error{Code::kUnsupported, "MPI cannot receive: " + mpi_error_text(rc), nessie::Scope::kProcess, rc};
    free_receives_.push_back(&receive);
  }
  post_free_receives();
  return {};
}

void MpiTransport::post_free_receives() {
  for (auto *receive : free_receives_)
    if (MPI_Start(&receive->request) == MPI_SUCCESS) posted_.push_back(receive);
  free_receives_.clear();
}

std::size_t MpiTransport::poll() {
  if (mpi_ended_.load(std::memory_order_relaxed)) return 0;
  const auto requests = lent_->requests.empty() ? 0 : poll_requests();
  return requests + poll_receives();
}

void MpiTransport::arrive(Receive &receive, int rc, const MPI_Status &status) {
  int size_bytes = 0;
  if (rc == MPI_SUCCESS) MPI_Get_count(&status, MPI_BYTE, &size_bytes);
  receive.rank = status.MPI_SOURCE;
  receive.size_bytes = static_cast<std::size_t>(std::max(size_bytes, 0));
  arrived_.push_back(&receive);
}

/// One frame at a time: a test that fails has MPI look at all its devices, which the frame need not wait for. Nor need
/// it wait for the receives that took former ones to be posted again.
std::size_t MpiTransport::poll_receives() {
  if (posted_.size() <= kFewReceives) post_free_receives();
  if (posted_.empty()) return 0;
  int done = 0;
  MPI_Status status;
  const int rc = MPI_Test(&posted_.front()->request, &done, &status);
  if (done || rc != MPI_SUCCESS) {
    arrive(*posted_.front(), rc, status);
    posted_.pop_front();
    idle_polls_ = 0;
    return 1;
  }
  post_free_receives();
  return ++idle_polls_ % kTurnsPerLookFurther == 0 ? look_further() : 0;
}

/// A frame that takes its time, of a peer that makes no progress, must not hold up those of others.
std::size_t MpiTransport::look_further() {
  looked_at_.clear();
  for (const auto *receive : posted_) looked_at_.push_back(receive->request);
  if (looked_at_.empty()) return 0;
  indices_.resize(looked_at_.size());
  statuses_.resize(looked_at_.size());
  int count = 0;
  const int rc =
      MPI_Testsome(static_cast<int>(looked_at_.size()), looked_at_.data(), &count, indices_.data(), statuses_.data());
  if (count == MPI_UNDEFINED || count <= 0) return 0;
  std::vector<Receive *> done;
  for (int i = 0; i < count; ++i) {
    auto *receive = posted_[static_cast<std::size_t>(indices_[static_cast<std::size_t>(i)])];
    const auto &status = statuses_[static_cast<std::size_t>(i)];
    arrive(*receive, rc == MPI_ERR_IN_STATUS ? status.MPI_ERROR : MPI_SUCCESS, status);
    done.push_back(receive);
  }
  std::erase_if(posted_, [&](const Receive *receive) { return std::ranges::find(done, receive) != done.end(); });
  return done.size();
}

std::size_t MpiTransport::poll_requests() {
  finished_.clear();
  lent_->requests.poll(finished_);
  std::size_t chunks = 0;
  for (const auto &finished : finished_) {
    if (finished.work->kind == Work::Kind::kChunk) {
      auto &chunk = static_cast<Chunk &>(*finished.work);
      chunk.flow->on_chunk(chunk, finished);
      touch(*chunk.flow);
      ++chunks;
      continue;
    }
    auto &slot = static_cast<Slot &>(*finished.work);
    if (auto *connection = find_peer(slot.token)) {
      connection->on_sent();
      if (finished.error != MPI_SUCCESS)
        connection->break_with({Code::kPeerLost, "MPI lost the peer: " + mpi_error_text(finished.error),
                                nessie::Scope::kPeer, finished.error});
    }
    free_slots_.push_back(&slot);
  }
  return chunks;
}

bool MpiTransport::poll_until(const std::function<bool()> &state, Deadline deadline) {
  while (!state()) {
    if (mpi_ended_ || deadline.passed()) return false;
    poll();
    for (auto *flow : touched_) flow->go_on();
  }
  return true;
}

// --- progress ---------------------------------------------------------------------------------------------------------------

std::size_t MpiTransport::progress() {
  if (mpi_ended_.load(std::memory_order_relaxed)) end_with_mpi();
  ++depth_;
  auto events = receive_frames();
  if (++turns_ % kTurnsPerDoor == 0) world_.look_after_door();
  if (knocked_.load(std::memory_order_acquire)) events += answer_knocks();
  if (!touched_.empty()) {
    continue_flows();
    ++events;
  }
  if (!to_pump_.empty()) pump_connections();
  if (!to_attend_.empty()) events += settle_connections();
  if (--depth_ == 0) {
    if (sweep_) sweep_flows();
    if (any_to_reap_) reap();
  }
  return events;
}

/// One frame, whose handling need not wait for MPI to look for more; all there are if they come one upon the other.
std::size_t MpiTransport::receive_frames() {
  poll();
  auto frames = dispatch();
  for (std::size_t i = 1; frames_flow_ && frames == i && i < kReceives && poll() > 0; ++i) frames += dispatch();
  frames_flow_ = frames > 0;
  return frames;
}

std::size_t MpiTransport::dispatch() {
  std::size_t frames = 0;
  while (!arrived_.empty()) {
    Receive &receive = *arrived_.front();
    arrived_.pop_front();
    if (auto frame = decode_frame({receive.bytes.data(), receive.size_bytes})) {
      auto *connection = find_peer(frame->header.token);
      if (connection != nullptr && connection->rank() == receive.rank && !connection->closed())
        connection->on_frame(*frame);
    }
    free_receives_.push_back(&receive);
    ++frames;
  }
  return frames;
}

bool MpiTransport::on_knock(const Hello &hello, int rank) {
  if (!listening_) return false;
  std::lock_guard lock(knocks_mutex_);
  knocks_.push_back({hello, rank});
  knocked_.store(true, std::memory_order_release);
  return true;
}

std::size_t MpiTransport::answer_knocks() {
  std::vector<Knock> knocks;
  {
    std::lock_guard lock(knocks_mutex_);
    knocks.swap(knocks_);
    knocked_.store(false, std::memory_order_relaxed);
  }
  for (const auto &[hello, rank] : knocks) {
    auto &connection = new_connection({rank, hello.reply_port});
    half_open_.push_back(connection.token());
    connection.answer(hello);
  }
  for (; half_open_.size() > kMaxHalfOpen; half_open_.pop_front())
    if (auto *oldest = find_peer(half_open_.front()); oldest && oldest->state() == MpiConnection::State::kAnswering)
      oldest->give_up();
  return knocks.size();
}

// --- flows --------------------------------------------------------------------------------------------------------------------

Flow &MpiTransport::new_flow(Flow::Direction direction, int rank, int tag, std::span<std::byte> memory) {
  return lent_->flows.emplace_back(lent_->requests, world_.communicator(), direction, rank, tag, memory);
}

void MpiTransport::touch(Flow &flow) {
  sweep_ = true;
  if (!std::exchange(flow.touched, true)) touched_.push_back(&flow);
}

void MpiTransport::continue_flows() {
  for (auto *flow : std::exchange(touched_, {})) {
    flow->touched = false;
    if (!mpi_ended_) flow->go_on();
    if (auto *connection = find_peer(flow->token)) connection->transfers().on_flow(*flow);
  }
}

void MpiTransport::sweep_flows() {
  sweep_ = !touched_.empty();
  std::erase_if(lent_->flows, [this](const Flow &flow) {
    if (!flow.released || !flow.over() || flow.touched) return false;
    if (flow.direction() == Flow::Direction::kIn && flow.tag_is_free()) world_.give_back_tag(flow.tag());
    return true;
  });
}

// --- connections ------------------------------------------------------------------------------------------------------------

void MpiTransport::pump_later(MpiConnection &connection) {
  if (!std::exchange(connection.waits_for_pump, true)) to_pump_.push_back(connection.token());
}

void MpiTransport::attend(MpiConnection &connection) {
  if (!std::exchange(connection.is_attended, true)) to_attend_.push_back(connection.token());
}

void MpiTransport::pump_connections() {
  for (const auto token : std::exchange(to_pump_, {})) {
    auto *connection = find_peer(token);
    if (connection == nullptr) continue;
    connection->waits_for_pump = false;
    if (!connection->pump()) pump_later(*connection);
  }
}

/// Returns the number of connections that have ended.
std::size_t MpiTransport::settle_connections() {
  std::size_t ended = 0;
  for (const auto token : std::exchange(to_attend_, {})) {
    auto *connection = find_peer(token);
    if (connection == nullptr) continue;
    connection->is_attended = false;
    connection->settle();
    if (connection->closed())
      ++ended;
    else if (!connection->timer().is_never())
      attend(*connection);
  }
  any_to_reap_ = any_to_reap_ || ended > 0;
  return ended;
}

void MpiTransport::reap() {
  any_to_reap_ = false;
  last_found_ = nullptr;
  std::erase_if(connections_, [](const auto &entry) { return entry.second->closed() && !entry.second->held; });
}

/// MPI_Finalize() was called: everybody is lost.
void MpiTransport::end_with_mpi() {
  for (auto &[token, connection] : connections_)
    connection->break_with({Code::kPeerLost, "MPI has been finalised in this process", nessie::Scope::kProcess});
}

bool MpiTransport::arm() {
  armed_ = !ready();
  return armed_;
}

bool MpiTransport::ready() {
  if (armed_ && !mpi_ended_) {
    world_.look_after_door();
    look_further();
  }
  return !arrived_.empty() || !touched_.empty() || knocked_.load(std::memory_order_relaxed) || poll() > 0 ||
         !arrived_.empty();
}

Deadline MpiTransport::timer() const {
  auto first = Deadline::never();
  for (const auto token : to_attend_)
    if (const auto found = connections_.find(token); found != connections_.end())
      first = first.earlier(found->second->timer());
  return first;
}

}  // namespace nnti::mpi
