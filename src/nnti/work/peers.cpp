// SPDX-License-Identifier: BSD-3-Clause
// The peers of a context: greeting, losing, and what they say.
#include "nnti/work/context_impl.hpp"

#include <base/log.hpp>

#include <algorithm>

namespace nnti {

namespace {

constexpr std::size_t kMaxOutbox = 65536;
constexpr std::size_t kMaxUrl = 8192;

bool lists(std::string_view urls, std::string_view url) {
  if (url.empty()) return false;
  for (std::size_t begin = 0; begin <= urls.size();) {
    const std::size_t end = std::min(urls.find(';', begin), urls.size());
    if (urls.substr(begin, end - begin) == url) return true;
    begin = end + 1;
  }
  return urls == url;
}

}  // namespace

Context::Impl::Peer *Context::Impl::find_peer(PeerId id) {
  auto found = peers.find(id.value);
  return found == peers.end() ? nullptr : &found->second;
}

std::shared_ptr<const PeerInfo> Context::Impl::info_of(PeerId id) {
  const Peer *peer = find_peer(id);
  return peer ? peer->info : nullptr;
}

std::optional<PeerId> Context::Impl::connection_to(ProcessId process) const {
  auto found = by_process.find(process.value);
  if (found == by_process.end()) return std::nullopt;
  return found->second;
}

// --- saying -----------------------------------------------------------------------------------------------------------

Status Context::Impl::say(PeerId to, wire::Kind kind, wire::Control control, std::span<const std::byte> payload) {
  control.kind = kind;
  scratch.resize(sizeof control + payload.size());
  std::memcpy(scratch.data(), &control, sizeof control);
  if (!payload.empty()) std::memcpy(scratch.data() + sizeof control, payload.data(), payload.size());
  return endpoint->send(to, scratch);
}

/// The whole message as payload.
Status Context::Impl::say_segments(PeerId to, wire::Kind kind, wire::Control control, const Registration &message) {
  if (message.segments.size() == 1) return say(to, kind, control, message.segments[0]);
  control.kind = kind;
  scratch.resize(sizeof control);
  std::memcpy(scratch.data(), &control, sizeof control);
  for (const auto &segment : message.segments) scratch.insert(scratch.end(), segment.begin(), segment.end());
  return endpoint->send(to, scratch);
}

/// For answers, which nobody would repeat: kept here while the endpoint's queue is full.
void Context::Impl::say_surely(PeerId to, wire::Kind kind, wire::Control control, std::span<const std::byte> payload) {
  if (outbox.empty()) {
    auto status = say(to, kind, control, payload);
    if (status.code() != Code::kBusy) return;
  }
  if (outbox.size() >= kMaxOutbox) return reject(to, "it takes no answers");
  control.kind = kind;
  std::vector<std::byte> message(sizeof control);
  std::memcpy(message.data(), &control, sizeof control);
  message.insert(message.end(), payload.begin(), payload.end());
  outbox.emplace_back(to, std::move(message));
}

void Context::Impl::flush_outbox() {
  while (!outbox.empty()) {
    auto &[to, message] = outbox.front();
    if (endpoint->send(to, message).code() == Code::kBusy) return;
    outbox.pop_front();
  }
}

// --- coming and going -------------------------------------------------------------------------------------------------

Status Context::Impl::greet(PeerId id) {
  auto &peer = peers[id.value];
  if (peer.greeted) return {};
  peer.greeted = true;
  return say(id, wire::Kind::kHello, {.operation = peer.is_self ? self_secret : 0, .buffer = me.value},
             std::as_bytes(std::span(url)));
}

void Context::Impl::on_hello(PeerId from, const wire::Control &control, std::span<const std::byte> text) {
  auto &peer = peers[from.value];
  peer.is_self = control.buffer == me.value;
  const bool is_forged = peer.is_self && control.operation != self_secret;
  if (peer.info || control.buffer == 0 || is_forged || text.size() > kMaxUrl)
    return reject(from, "its greeting makes no sense");
  peer.info = std::make_shared<PeerInfo>(
      PeerInfo{{control.buffer}, std::string(reinterpret_cast<const char *>(text.data()), text.size())});
  by_process.try_emplace(control.buffer, from);
  dirty = true;
  if (!greet(from).ok()) reject(from, "it takes no answer");
}

/// Ends the connection to a peer that broke the rules.
void Context::Impl::reject(PeerId id, const char *why) {
  nessie::log::warning("NNTI: closed the connection to a peer: {}", why);
  endpoint->disconnect(id);
  lost.emplace_back(id, Code::kPeerLost);
}

void Context::Impl::on_peer_lost(PeerId peer, const Error &error) {
  nessie::log::debug("NNTI: lost a peer: {}", error.message);
  lost.emplace_back(peer, Code::kPeerLost);
}

void Context::Impl::forget_peer(PeerId id, Code code) {
  fail_operations_with(id, code);
  std::erase_if(outbox, [id](const auto &entry) { return entry.first == id; });
  std::erase_if(descriptions, [id](const auto &entry) { return entry.first.peer == id.value; });
  std::erase_if(asked, [id](const auto &entry) { return entry.first.peer == id.value; });
  forget_connection(id);
  for (auto &[buffer_id, buffer] : buffers) {
    if (!buffer.inbox) continue;
    buffer.inbox->forget(id);
    pump(buffer);
  }
  take_scratch_back(id);
  dirty = true;
}

/// The process may be connected a second time: it connected to us while we connected to it.
void Context::Impl::forget_connection(PeerId id) {
  auto node = peers.extract(id.value);
  if (node.empty() || !node.mapped().info) return;
  const auto process = node.mapped().info->process;
  if (connection_to(process) != id) return;
  by_process.erase(process.value);
  for (const auto &[other, peer] : peers)
    if (peer.info && peer.info->process == process) by_process.emplace(process.value, PeerId{other});
}

std::shared_ptr<const PeerInfo> Context::Impl::connected_at(std::string_view target) {
  for (const auto &[id, peer] : peers)
    if (peer.info && lists(peer.info->url, target)) return peer.info;
  return nullptr;
}

Result<std::shared_ptr<const PeerInfo>> Context::Impl::connect(Call &call, std::string_view target, Deadline deadline) {
  if (auto known = connected_at(target)) return known;
  if (auto parsed = nessie::Url::parse_list(target); !parsed.ok()) return parsed.error();
  if (deadline.when() == Deadline::now().when())
    return Error{Code::kTimedOut, "the peer is not connected yet; give the call time to connect", nessie::Scope::kPeer};
  const bool is_self = lists(url, target);
  auto connected = endpoint->connect(target, deadline);
  if (!connected.ok() && is_self && connected.code() == Code::kPeerLost)
    return Error{Code::kUnsupported, "over this transport a process cannot connect to itself; have inproc or shm, too"};
  if (!connected.ok()) return connected.error();
  peers[connected->value].is_self = is_self;
  if (auto status = greet(*connected); !status.ok()) return status.error();
  return await_hello(call, *connected, deadline);
}

Result<std::shared_ptr<const PeerInfo>> Context::Impl::await_hello(Call &call, PeerId id, Deadline deadline) {
  auto status = wait_until(call, deadline, [&] {
    const Peer *peer = find_peer(id);
    return peer == nullptr || peer->info;
  });
  if (status.ok()) {
    if (auto info = info_of(id)) return info;
    return Error{Code::kPeerLost, "the peer closed the connection at once", nessie::Scope::kPeer};
  }
  if (!closed) {
    endpoint->disconnect(id);
    forget_peer(id, Code::kCancelled);
  }
  if (status.code() != Code::kTimedOut) return status.error();
  return Error{Code::kTimedOut, "the peer accepted the connection but does not answer; is it inside a call that waits?",
               nessie::Scope::kPeer};
}

Status Context::Impl::disconnect(ProcessId process) {
  if (!connection_to(process)) return Error{Code::kNotFound, "the peer is not connected", nessie::Scope::kPeer};
  while (auto id = connection_to(process)) {
    endpoint->disconnect(*id);
    settle();  // what the endpoint has ended knows its peer yet
    forget_peer(*id, Code::kCancelled);
  }
  return {};
}

// --- hearing ----------------------------------------------------------------------------------------------------------

void Context::Impl::on_message(PeerId from, std::span<const std::byte> message) {
  const auto control = wire::parse(message);
  if (!control) return reject(from, "it sends what cannot be decoded");
  const auto payload = message.subspan(sizeof(wire::Control));
  if (control->kind == wire::Kind::kHello) return on_hello(from, *control, payload);
  const Peer *peer = find_peer(from);
  if (peer == nullptr || !peer->info) return reject(from, "it did not greet");
  on_control(from, *control, payload);
}

void Context::Impl::on_control(PeerId from, const wire::Control &control, std::span<const std::byte> payload) {
  switch (control.kind) {
    case wire::Kind::kSend:
    case wire::Kind::kSendLarge: return on_send(from, control, payload);
    case wire::Kind::kResend: return on_resend(from, control, payload);
    case wire::Kind::kWithdraw: return on_withdraw(from, control);
    case wire::Kind::kClear: return on_clear(from, control);
    case wire::Kind::kSent: return on_sent(from, control);
    case wire::Kind::kDescribe: return on_describe(from, control);
    case wire::Kind::kDescribed: return on_described(from, control, payload);
    case wire::Kind::kForget: return on_forget(from, control);
    case wire::Kind::kAccessed: return on_accessed(from, control);
    case wire::Kind::kWriteTo: return on_write_to(from, control, payload);
    case wire::Kind::kWritten: return on_written(from, control);
    case wire::Kind::kHello: return;
  }
}

}  // namespace nnti
