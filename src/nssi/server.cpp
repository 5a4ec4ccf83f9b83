// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/server.hpp>

#include <fmt/format.h>

#include <base/log.hpp>
#include <nssi/engine.hpp>

#include <algorithm>

namespace nssi {

namespace {

constexpr std::chrono::seconds kLongestKeptResult{600};

}  // namespace

Status Server::add(OpCode op, Operation operation) {
  auto [it, added] = operations_.try_emplace(op);
  if (!added) return Error{Code::kExists, fmt::format("operation {} is taken by {}", op, it->second.name)};
  it->second = std::move(operation);
  return {};
}

void Server::on_request(PeerId from, std::uint64_t id, std::span<const std::byte> message) {
  auto request = wire::decode_request(message);
  if (!request.ok()) return (void)refuse(from, id, request.error());
  auto operation = operations_.find(request->op);
  if (operation == operations_.end())
    return (void)refuse(from, id, {Code::kNotFound, fmt::format("the service has no operation {}", request->op)});
  engine_.scheduler().disturb();
  auto &incoming = take();
  incoming.accept(from, *request, operation->second);
  if (operation->second.kind == HandlerKind::kShort && !incoming.has_long_args()) {
    incoming.serve();
    return put_back(incoming);
  }
  incoming.keep_args();
  if (operation->second.arrival && !incoming.has_long_args()) operation->second.arrival(incoming);
  auto work = [this, &incoming] {
    incoming.serve();
    put_back(incoming);
  };
  auto &scheduler = engine_.scheduler();
  switch (operation->second.kind) {
    case HandlerKind::kBulk: return scheduler.spawn_last(work);
    case HandlerKind::kBulkNow: scheduler.spawn_last(work); return scheduler.hasten_last();
    default: return scheduler.spawn(work);
  }
}

IncomingRequest &Server::take() {
  if (free_.empty()) {
    requests_.push_back(std::make_unique<IncomingRequest>(engine_));
    free_.push_back(requests_.back().get());
  }
  auto *request = free_.back();
  free_.pop_back();
  request->place = active_.size();
  active_.push_back(request);
  return *request;
}

void Server::put_back(IncomingRequest &request) {
  active_.back()->place = request.place;
  active_[request.place] = active_.back();
  active_.pop_back();
  request.forget();
  free_.push_back(&request);
}

void Server::on_cancel(PeerId from, std::uint64_t id) {
  auto it = std::find_if(active_.begin(), active_.end(), [&](auto *r) { return r->caller() == from && r->id() == id; });
  if (it != active_.end() && !(*it)->cancel()) return;
  (void)engine_.send_message(from, wire::Prefix{wire::Kind::kCancelled, id});
}

void Server::on_peer_lost(PeerId peer) {
  for (auto *request : active_)
    if (request->caller() == peer) request->lose_caller();
  long_results_.remove_if([&](const LongResult &r) { return r.caller == peer; });
}

Status Server::refuse(PeerId caller, std::uint64_t id, const Error &error) {
  wire::Result message;
  message.prefix.id = id;
  message.failure = wire::to_failure(error);
  return engine_.send_message(caller, message);
}

Status Server::send_long_result(PeerId caller, std::uint64_t id, std::span<const std::byte> result, Deadline deadline) {
  auto fail = [&](const Error &error) -> Status {
    (void)refuse(caller, id, error);
    return error;
  };
  LongResult kept{
      caller, id, Bytes(result.begin(), result.end()), {}, deadline.earlier(Deadline::in(kLongestKeptResult))};
  auto buffer = engine_.endpoint().register_memory(kept.bytes, nnti::Rights::kRemoteRead);
  if (!buffer.ok()) return fail(buffer.error());
  auto remote = buffer->describe_for(caller);
  if (!remote.ok()) return fail(remote.error());
  kept.buffer = *std::move(buffer);
  long_results_.push_back(std::move(kept));
  wire::Result message;
  message.prefix.id = id;
  message.long_result = wire::Buffer{*remote};
  return engine_.send_message(caller, message);
}

void Server::on_result_fetched(PeerId from, std::uint64_t id) {
  long_results_.remove_if([&](const LongResult &r) { return r.caller == from && r.id == id; });
}

void Server::expire() {
  if (!long_results_.empty()) long_results_.remove_if([](const LongResult &r) { return r.until.passed(); });
}

Deadline Server::next_expiry() const {
  auto next = Deadline::never();
  for (const auto &result : long_results_) next = next.earlier(result.until);
  return next;
}

}  // namespace nssi
