// SPDX-License-Identifier: BSD-3-Clause
// Design notes. Natively, a collective write is over on no rank before every rank has at least begun it, and file
// systems order the rest. Here each rank's part goes to the servers by itself, so a fast rank could overwrite data that
// a slow rank is still about to write, or to read, by an earlier call. Each collective write therefore starts a
// non-blocking reduction, each collective read a non-blocking barrier, which cost next to nothing; whoever needs the
// earlier writes, or reads, to be done waits for those. The reduction carries the number of records. It is the same for
// all variables, so that a rank whose arguments are wrong, and which cannot know what the others write, still takes part
// in the right one.
#include <interpose/pnetcdf/engine/communicator.hpp>

#include <interpose/pnetcdf/engine/patience.hpp>

#include <algorithm>
#include <climits>

namespace interpose {

namespace {

constexpr std::size_t kMostPending = 64;   // writes, and reads, that nobody waited for

bool contains(const std::vector<int> &variables, int varid) {
  const auto is_meant = [varid](int other) { return other == varid || other == Communicator::kAnyVariable; };
  return std::any_of(variables.begin(), variables.end(), is_meant);
}

MPI_Comm copy_of_world() {
  static MPI_Comm copy = [] {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    return comm;
  }();
  return copy;
}

bool can_call_mpi() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  return finalized == 0;
}

}  // namespace

Communicator::Communicator(MPI_Comm comm) : comm_(comm) {
  MPI_Comm_rank(comm, &rank_);
  MPI_Comm_size(comm, &size_);
  if (size_ == 1) {
    comm_ = MPI_COMM_SELF;
  } else if (comm == MPI_COMM_WORLD) {
    comm_ = copy_of_world();
  } else {
    MPI_Comm_dup(comm, &comm_);
    owned_ = true;
  }
}

Communicator::~Communicator() {
  if (!can_call_mpi()) return;
  wait_until_written();
  wait_until_read();
  if (owned_) MPI_Comm_free(&comm_);
}

void Communicator::reduce_max(std::int64_t *values, std::size_t count) {
  if (size_ == 1) return;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(MPI_IN_PLACE, values, static_cast<int>(count), MPI_INT64_T, MPI_MAX, comm_, &request);
  wait_patiently(request);
}

std::int64_t Communicator::max(std::int64_t mine) {
  reduce_max(&mine, 1);
  return mine;
}

void Communicator::broadcast(std::int64_t *values, std::size_t count) {
  if (size_ == 1) return;
  broadcast(values, static_cast<int>(count), MPI_INT64_T);
}

void Communicator::broadcast(void *data, int count, MPI_Datatype type) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibcast(data, count, type, 0, comm_, &request);
  wait_patiently(request);
}

// Most of what is sent, and its size, go in one message.
void Communicator::broadcast(std::vector<std::byte> &bytes) {
  if (size_ == 1) return;
  struct {
    std::int64_t size;
    std::array<std::byte, 4096 - sizeof(std::int64_t)> bytes;
  } first{};
  first.size = static_cast<std::int64_t>(bytes.size());
  std::copy_n(bytes.begin(), std::min(bytes.size(), first.bytes.size()), first.bytes.begin());
  broadcast(&first, sizeof first, MPI_BYTE);
  bytes.resize(static_cast<std::size_t>(first.size));
  auto done = std::min(bytes.size(), first.bytes.size());
  std::copy_n(first.bytes.begin(), done, bytes.begin());
  while (done < bytes.size()) {
    const auto part = static_cast<int>(std::min<std::size_t>(bytes.size() - done, INT_MAX));
    broadcast(bytes.data() + done, part, MPI_BYTE);
    done += static_cast<std::size_t>(part);
  }
}

void Communicator::note_written(int varid, std::int64_t records) {
  if (written_.size() >= kMostPending) wait_until_written();
  records_ = std::max(records_, records);
  if (size_ == 1) return;
  Written &written = written_.emplace_back(Written{records, MPI_REQUEST_NULL});
  MPI_Iallreduce(MPI_IN_PLACE, &written.records, 1, MPI_INT64_T, MPI_MAX, comm_, &written.request);
  variables_.push_back(varid);
}

void Communicator::wait_until_written() {
  for (Written &written : written_) {
    wait_patiently(written.request);
    records_ = std::max(records_, written.records);
  }
  written_.clear();
  variables_.clear();
}

void Communicator::wait_until_written(int varid) {
  if (contains(variables_, varid)) wait_until_written();
}

void Communicator::note_read(int varid) {
  if (size_ == 1) return;
  if (reads_.size() >= kMostPending) wait_until_read();
  MPI_Ibarrier(comm_, &reads_.emplace_back(MPI_REQUEST_NULL));
  variables_read_.push_back(varid);
}

void Communicator::wait_until_read() {
  wait_patiently(reads_);
  reads_.clear();
  variables_read_.clear();
}

void Communicator::wait_until_read(int varid) {
  if (contains(variables_read_, varid)) wait_until_read();
}

}  // namespace interpose
