// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/mpi/flow.hpp"

#include <algorithm>

namespace nnti::mpi {

Flow::Flow(RequestSet &requests, MPI_Comm communicator, Direction direction, int rank, int tag,
           std::span<std::byte> memory)
    : requests_(requests),
      communicator_(communicator),
      direction_(direction),
      rank_(rank),
      tag_(tag),
      memory_(memory),
      total_((memory.size() + kChunkBytes - 1) / kChunkBytes) {
  for (auto &chunk : chunks_) chunk.flow = this;
}

void Flow::go_on() {
  while (!stopped_ && error_ == MPI_SUCCESS && begun_ < total_) {
    Chunk &chunk = chunks_[begun_ % kWindow];
    if (chunk.in_use) return;
    const auto offset = begun_ * kChunkBytes;
    chunk.drains = false;
    if (!begin(chunk, memory_.subspan(offset, std::min<std::uint64_t>(kChunkBytes, memory_.size() - offset)))) return;
    ++begun_;
  }
  if (stopped_ && !abandoned_ && in_flight_ == 0 && missing()) drain();
}

bool Flow::begin(Chunk &chunk, std::span<std::byte> bytes) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int count = static_cast<int>(bytes.size());
  error_ = direction_ == Direction::kIn
               ? MPI_Irecv(bytes.data(), count, MPI_BYTE, rank_, tag_, communicator_, &request)
               : MPI_Isend(bytes.data(), count, MPI_BYTE, rank_, tag_, communicator_, &request);
  if (error_ != MPI_SUCCESS) return false;
  chunk.in_use = true;
  chunk.size_bytes = bytes.size();
  ++in_flight_;
  requests_.add(request, chunk);
  return true;
}

void Flow::drain() {
  drain_.resize(std::min<std::uint64_t>(kChunkBytes, memory_.size()));
  chunks_[0].drains = true;
  begin(chunks_[0], drain_);
}

/// The latest first: a chunk that arrives meanwhile must meet the receive that was posted for it.
void Flow::stop() {
  if (std::exchange(stopped_, true) || direction_ == Direction::kOut) return;
  for (std::uint64_t i = 0; i < kWindow; ++i)
    if (auto &chunk = chunks_[(begun_ + kWindow - 1 - i) % kWindow]; chunk.in_use && !chunk.drains)
      requests_.cancel(chunk);
}

bool Flow::conclude(std::uint64_t chunks) {
  if (chunks > total_ || chunks < finished_ || conclusion_) return false;
  conclusion_ = chunks;
  if (chunks < total_) stop();
  return true;
}

void Flow::abandon() {
  stop();
  abandoned_ = direction_ == Direction::kIn && !conclusion_ && !whole();
}

void Flow::give_up() {
  abandon();
  if (direction_ == Direction::kOut || whole()) return;
  abandoned_ = true;
  for (auto &chunk : chunks_)
    if (chunk.in_use && chunk.drains) requests_.cancel(chunk);
}

void Flow::on_chunk(Chunk &chunk, const RequestSet::Finished &finished) {
  chunk.in_use = false;
  --in_flight_;
  if (finished.cancelled) return;
  if (finished.error != MPI_SUCCESS) {
    error_ = finished.error;
    return;
  }
  const bool short_chunk = direction_ == Direction::kIn && !chunk.drains &&
                           static_cast<std::uint64_t>(finished.size_bytes) != chunk.size_bytes;
  if (short_chunk) error_ = MPI_ERR_OTHER;
  ++(chunk.drains ? drained_ : finished_);
}

bool Flow::uses_memory() const {
  return std::ranges::any_of(chunks_, [](const Chunk &chunk) { return chunk.in_use && !chunk.drains; });
}

bool Flow::over() const {
  if (in_flight_ > 0) return false;
  if (whole() || abandoned_ || error_ != MPI_SUCCESS) return true;
  if (direction_ == Direction::kOut) return stopped_;
  return conclusion_ && !missing();
}

}  // namespace nnti::mpi
