// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/channel/operations.hpp"

namespace nnti::channel {

namespace {
constexpr auto kRetryDelay = std::chrono::milliseconds(1);
/// One that has failed so often, and for so long, is itself to blame. Short of that it may have been bad luck.
constexpr unsigned kManyAttempts = 16;
}  // namespace

void Operations::start(const Request &request, Connection *link) {
  if (unused_.empty()) {
    unused_.emplace_front(*this);
    unused_.front().place = unused_.begin();
  }
  auto operation = unused_.begin();
  operation->request = request;
  operation->failing_since = kNever;
  operation->attempts = 0;
  if (link != nullptr) return begin(unused_, *link);
  stranded_.splice(stranded_.end(), unused_, operation);
}

void Operations::begin(List &from, Connection &link) {
  auto operation = from.begin();
  under_way_.splice(under_way_.end(), from, operation);
  ++operation->attempts;
  const auto &request = operation->request;
  if (request.is_get)
    link.get(request.remote, request.offset, {request.local, request.size_bytes}, *operation);
  else
    link.put(request.remote, request.offset, {request.local, request.size_bytes}, *operation);
}

/// Whether another attempt may succeed.
bool Operations::may_go_better(const Operation &operation, const Status &status) const {
  const auto code = status.code();
  const bool fault = code == Code::kPeerLost || code == Code::kCancelled || (code == Code::kIo && lossy_);
  if (end_ || !fault) return false;
  return operation.attempts < kManyAttempts || time_.now() < after(operation.failing_since, patience_);
}

void Operations::ended(Operation &operation, Status status) {
  if (may_go_better(operation, status)) {
    const auto now = time_.now();
    if (operation.failing_since == kNever) operation.failing_since = now;
    if (status.code() != Code::kIo) return stranded_.splice(stranded_.end(), under_way_, operation.place);
    if (waiting_.empty()) retry_ = now + kRetryDelay;
    return waiting_.splice(waiting_.end(), under_way_, operation.place);
  }
  auto *completion = operation.request.completion;
  unused_.splice(unused_.begin(), under_way_, operation.place);
  if (end_ && !status.ok()) return completion->on_complete(*end_);
  if (status.code() == Code::kCancelled)
    status = Error{Code::kPeerLost, "the connection broke again and again", nessie::Scope::kPeer};
  completion->on_complete(std::move(status));
}

void Operations::end(const Error &error) {
  end_ = error;
  waiting_.splice(waiting_.end(), stranded_);
  while (!waiting_.empty()) {
    auto *completion = waiting_.front().request.completion;
    unused_.splice(unused_.begin(), waiting_, waiting_.begin());
    completion->on_complete(error);
  }
}

}  // namespace nnti::channel
