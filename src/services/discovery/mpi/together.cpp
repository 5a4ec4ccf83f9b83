// SPDX-License-Identifier: BSD-3-Clause
#include <services/discovery/mpi/calls.hpp>
#include <services/discovery/mpi/mpi.hpp>
#include <xdr/codec.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <thread>

namespace nessie::service::mpi {
namespace {

constexpr std::chrono::microseconds kFirstGlance{1}, kLongestGlance{1000};
constexpr std::uint64_t kMaxAnswerBytes = std::uint64_t{64} << 20;

struct Attribute {
  std::string name, value;
  template <class A> void xdr(A &a) { a(name, value); }
};

struct Each {
  std::string url, source;
  std::vector<std::array<std::uint32_t, 3>> offers;
  std::vector<Attribute> attributes;
  template <class A> void xdr(A &a) { a(url, source, offers, attributes); }
};

/// What the root tells the others. `code` 0: it has found `all`.
struct Answer {
  std::uint32_t code = 0, scope = 0;
  std::int32_t cause = 0;
  std::string message;
  std::vector<Each> all;
  template <class A> void xdr(A &a) { a(code, scope, cause, message, all); }
};

Each to_wire(const Found &found) {
  Each each{found.url, found.source, {}, {}};
  for (const auto &offer : found.offers)
    each.offers.push_back({offer.interface.program, offer.interface.version, offer.provider});
  for (const auto &[name, value] : found.attributes) each.attributes.push_back({name, value});
  return each;
}

Found from_wire(const Each &each) {
  Found found{each.url, {}, {}, each.source};
  for (const auto &[program, version, provider] : each.offers) found.offers.push_back({{program, version}, provider});
  for (const auto &[name, value] : each.attributes) found.attributes.emplace_back(name, value);
  return found;
}

Answer to_wire(const Result<std::vector<Found>> &outcome) {
  Answer answer;
  if (outcome.ok()) {
    for (const auto &found : *outcome) answer.all.push_back(to_wire(found));
    return answer;
  }
  const auto &error = outcome.error();
  return {
      static_cast<std::uint32_t>(error.code), static_cast<std::uint32_t>(error.scope), error.cause, error.message, {}};
}

Result<std::vector<Found>> from_wire(std::span<const std::byte> bytes) {
  auto answer = xdr::decode<Answer>(bytes);
  if (!answer.ok()) return answer.error();
  if (answer->code != 0)
    return Error{static_cast<Code>(answer->code), answer->message, static_cast<Scope>(answer->scope), answer->cause};
  std::vector<Found> all;
  for (const auto &each : answer->all) all.push_back(from_wire(each));
  return all;
}

Status wait_for(MPI_Request &request, Deadline deadline) {
  for (Clock::duration pause = kFirstGlance;; pause = std::min<Clock::duration>(2 * pause, kLongestGlance)) {
    int done = 0;
    if (const int code = MPI_Test(&request, &done, MPI_STATUS_IGNORE); code != MPI_SUCCESS)
      return mpi_error("finding a service together failed", code);
    if (done != 0) return {};
    if (deadline.passed())
      return Error{Code::kTimedOut,
                   "not all processes have come to find a service together, or it was not found in time"};
    std::this_thread::sleep_for(pause);
  }
}

void keep_for_ever(std::shared_ptr<std::vector<std::byte>> bytes) {
  static std::mutex mutex;
  static auto *all = new std::vector<std::shared_ptr<std::vector<std::byte>>>;
  const std::lock_guard lock(mutex);
  all->push_back(std::move(bytes));
}

/// `bytes` are MPI's until the operation is complete; if that takes longer than we wait, for ever.
Status broadcast(MPI_Comm comm, int root, std::shared_ptr<std::vector<std::byte>> bytes, Deadline deadline) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = MPI_Ibcast(bytes->data(), static_cast<int>(bytes->size()), MPI_BYTE, root, comm, &request);
  if (code != MPI_SUCCESS) return mpi_error("finding a service together failed", code);
  auto status = wait_for(request, deadline);
  if (!status.ok()) keep_for_ever(std::move(bytes));
  return status;
}

Result<std::vector<std::byte>> broadcast_all(MPI_Comm comm, int root, const std::vector<std::byte> &mine,
                                             Deadline deadline) {
  auto head = std::make_shared<std::vector<std::byte>>(xdr::encode(std::uint64_t{mine.size()}));
  if (auto status = broadcast(comm, root, head, deadline); !status.ok()) return status.error();
  const auto size = xdr::decode<std::uint64_t>(*head);
  if (!size.ok() || *size > kMaxAnswerBytes)
    return Error{Code::kTooLarge, "the process that found services found more than the others can be told"};
  auto body = std::make_shared<std::vector<std::byte>>(mine);
  body->resize(*size);
  if (auto status = broadcast(comm, root, body, deadline); !status.ok()) return status.error();
  return *body;
}

}  // namespace

Result<std::vector<Found>> find_together(MPI_Comm comm, int root, const Finder &find, Deadline deadline) {
  if (auto status = check_usable(); !status.ok()) return status.error();
  const ErrorsReturn errors(comm);
  int rank = 0, size = 0;
  if (MPI_Comm_rank(comm, &rank) != MPI_SUCCESS || MPI_Comm_size(comm, &size) != MPI_SUCCESS || root < 0 ||
      root >= size)
    return Error{Code::kInvalidArgument, fmt::format("the communicator has no process {}", root)};
  std::vector<std::byte> mine;
  if (rank == root) mine = xdr::encode(to_wire(find()));
  auto told = broadcast_all(comm, root, mine, deadline);
  return told.ok() ? from_wire(*told) : told.error();
}

}  // namespace nessie::service::mpi
