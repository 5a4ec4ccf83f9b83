// SPDX-License-Identifier: BSD-3-Clause
// Design notes. Natively, a collective write is over on no rank before every rank has at least begun it, and file
// systems order the rest. Here each rank's part goes to the servers by itself, behind the program's back, so a fast
// rank could overwrite data that a slow rank is still about to write, or to read, by an earlier call. Each collective
// write therefore starts a non-blocking reduction, each collective read a non-blocking barrier, which cost next to
// nothing. The reduction of a write carries the number of records, and how many messages each server is sent for it.
// Who comes after earlier writes waits for their reductions only, and tells the server how many writes to carry out
// first; who must not overtake reads waits for their barriers. Notes are the same for all variables, so that a rank
// whose arguments are wrong, and which cannot know what the others write, still takes part in the right one.
#include <interpose/pnetcdf/engine/communicator.hpp>

#include <interpose/pnetcdf/engine/finalize.hpp>
#include <interpose/pnetcdf/engine/patience.hpp>

#include <algorithm>
#include <atomic>
#include <climits>
#include <functional>

namespace interpose {

namespace {

constexpr int kFewRanks = 16, kTag = 1;
constexpr std::size_t kMostPending = 64;  // writes, and reads, that nobody waited for

bool contains(const std::vector<int> &variables, int varid) {
  const auto is_meant = [varid](int other) { return other == varid || other == Communicator::kAnyVariable; };
  return std::any_of(variables.begin(), variables.end(), is_meant);
}

/// Whether several threads of any process of the world may call MPI at once: then each file needs a communicator that
/// no other uses. Each process may have another level.
bool has_concurrent_threads() {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  MPI_Allreduce(MPI_IN_PLACE, &level, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return level == MPI_THREAD_MULTIPLE;
}

std::atomic<int> users_of_copy{0};

/// The same for all files; MPI_COMM_NULL if each needs its own: among threads, and once MPI is being finalized.
MPI_Comm copy_of_world() {
  static MPI_Comm copy = [] {
    MPI_Comm comm = MPI_COMM_NULL;
    if (has_concurrent_threads()) return comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    at_finalize([] {
      if (users_of_copy == 0) MPI_Comm_free(&copy);  // otherwise what is open still uses it
    });
    return comm;
  }();
  return copy;
}

/// A note's first number is the most that any rank says, the others are sums.
void combine(void *in, void *inout, int *count, MPI_Datatype *type) {
  int size_bytes = 0;
  MPI_Type_size(*type, &size_bytes);
  const auto numbers = static_cast<std::size_t>(size_bytes) / sizeof(std::int64_t);
  auto *from = static_cast<std::int64_t *>(in), *to = static_cast<std::int64_t *>(inout);
  for (int i = 0; i < *count; ++i, from += numbers, to += numbers) {
    to[0] = std::max(to[0], from[0]);
    std::transform(from + 1, from + numbers, to + 1, to + 1, std::plus<>());
  }
}

MPI_Op note_operation() {
  static const MPI_Op operation = [] {
    MPI_Op op = MPI_OP_NULL;
    MPI_Op_create(combine, 1, &op);
    return op;
  }();
  return operation;
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
  if (size_ == 1)
    comm_ = MPI_COMM_SELF;
  else if (comm != MPI_COMM_WORLD || (comm_ = copy_of_world()) == MPI_COMM_NULL)
    owned_ = MPI_Comm_dup(comm, &comm_) == MPI_SUCCESS;
  else
    shares_copy_ = ++users_of_copy > 0;
}

Communicator::~Communicator() {
  if (!was_made_here() || !can_call_mpi()) return;
  await_notes();
  wait_until_read();
  if (note_type_ != MPI_DATATYPE_NULL) MPI_Type_free(&note_type_);
  if (owned_) MPI_Comm_free(&comm_);
  if (shares_copy_) --users_of_copy;
}

void Communicator::reduce_max(std::int64_t *values, std::size_t count) {
  if (finish_own_writes_) finish_own_writes_();
  if (size_ == 1) return;
  auto request = start_max(values, count);
  wait_patiently(request);
}

MPI_Request Communicator::start_max(std::int64_t *values, std::size_t count) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (size_ > 1) MPI_Iallreduce(MPI_IN_PLACE, values, static_cast<int>(count), MPI_INT64_T, MPI_MAX, comm_, &request);
  return request;
}

std::int64_t Communicator::max(std::int64_t mine) {
  reduce_max(&mine, 1);
  return mine;
}

std::int64_t Communicator::max_now(std::int64_t mine) {
  auto request = start_max(&mine, 1);
  if (request != MPI_REQUEST_NULL) wait_patiently(request);
  return mine;
}

int Communicator::from_root(const std::function<int()> &ask) {
  std::array<std::int64_t, 1> answer{};
  if (is_root()) answer[0] = ask();
  broadcast(answer);
  return static_cast<int>(answer[0]);
}

void Communicator::broadcast(std::int64_t *values, std::size_t count) {
  if (size_ == 1) return;
  broadcast(values, static_cast<int>(count), MPI_INT64_T);
}

// Where ranks share processors, each rank that has to pass a message on costs the time until it is scheduled: root
// tells a few ranks itself.
void Communicator::broadcast(void *data, int count, MPI_Datatype type) {
  if (size_ <= kFewRanks) return tell(data, count, type);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibcast(data, count, type, 0, comm_, &request);
  wait_patiently(request);
}

void Communicator::tell(void *data, int count, MPI_Datatype type) {
  std::vector<MPI_Request> requests;
  if (!is_root()) MPI_Irecv(data, count, type, 0, kTag, comm_, &requests.emplace_back());
  for (int rank = 1; is_root() && rank < size_; ++rank)
    MPI_Isend(data, count, type, rank, kTag, comm_, &requests.emplace_back());
  wait_patiently(requests);
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

void Communicator::begin(int servers, std::function<void()> finish_own_writes) {
  finish_own_writes_ = std::move(finish_own_writes);
  order_ = staging::Order(servers);
  if (size_ == 1) return;
  MPI_Type_contiguous(1 + servers, MPI_INT64_T, &note_type_);
  MPI_Type_commit(&note_type_);
}

void Communicator::note_written(int varid, std::int64_t records) {
  if (notes_.size() >= kMostPending) await_notes();
  Note &note = notes_.emplace_back(Note{{records}, MPI_REQUEST_NULL});
  const auto sent = order_.end_call();
  note.values.insert(note.values.end(), sent.begin(), sent.end());
  if (!contains(variables_, varid)) variables_.push_back(varid);
  if (size_ == 1) return await_notes();
  MPI_Iallreduce(MPI_IN_PLACE, note.values.data(), 1, note_type_, note_operation(), comm_, &note.request);
}

void Communicator::take_in(const Note &note) {
  records_ = std::max(records_, note.values.front());
  order_.know(std::span(note.values).subspan(1));
}

void Communicator::await_notes() {
  for (Note &note : notes_) {
    wait_patiently(note.request);
    take_in(note);
  }
  notes_.clear();
  variables_.clear();
}

void Communicator::await_notes(int varid) {
  if (contains(variables_, varid)) await_notes();
}

void Communicator::restart_order() { order_ = staging::Order(static_cast<int>(order_.sent.size())); }

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
