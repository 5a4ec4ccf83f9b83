// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/ofi/connection.hpp"

#include <fmt/core.h>

#include <cstring>
#include <utility>

namespace nnti::ofi {

std::string OfiConnection::explain() const {
  return fmt::format(
      "over the network with libfabric's provider {}; bulk data is written and read directly between the "
      "two processes' buffers by the side that owns the registered one",
      network_.fabric().provider());
}

std::vector<std::byte> OfiConnection::hello() const {
  return encode_hello({token_, network_.fabric().provider(), network_.fabric().name()});
}

Status OfiConnection::learn(std::span<const std::byte> blob) {
  const auto hello = decode_hello(blob);
  if (!hello.ok()) return hello.error();
  const auto provider = network_.fabric().provider();
  if (hello->provider != provider)
    return Error{Code::kUnsupported,
                 fmt::format("the peer uses libfabric's provider {}, this process {}; set nnti.ofi.provider",
                             hello->provider, provider)};
  auto address = network_.fabric().add_peer(hello->name);
  if (!address.ok()) return address.error();
  name_ = hello->name;
  address_ = *address;
  their_token_ = hello->token;
  network_.post_receives();
  return {};
}

// --- frames -----------------------------------------------------------------------------------------------------------

bool OfiConnection::send_frame(const framed::FrameHeader &header, std::span<const std::byte> body) {
  if (!reaches_peer() || !network_.post_frame(*this, header, body)) return false;
  ++sends_in_flight_;
  return true;
}

void OfiConnection::on_frame(const framed::Frame &frame) {
  heard_ = true;
  Connection::on_frame(frame);
}

void OfiConnection::watch_frames() {
  if (std::exchange(heard_, false) || !expects_frames() || breaking()) {
    quiet_ = 0;
    next_probe_ = 1;
    return;
  }
  if (++quiet_ < next_probe_) return;
  next_probe_ *= 2;
  framed::FrameHeader header{.type = framed::FrameType::kProbe};
  post(header, {});
}

// --- long gets and puts -----------------------------------------------------------------------------------------------

/// Lets the peer reach our side of this one transfer, until it is complete.
void OfiConnection::start_long(framed::FrameHeader header, const RemoteBuffer &, std::span<std::byte> local,
                               Completion &completion) {
  const bool get = header.type == framed::FrameType::kGet;
  auto key = network_.fabric().register_memory(local, get ? FI_REMOTE_WRITE : FI_REMOTE_READ);
  if (!key.ok()) return completion.on_complete(key.error());
  const Exposed exposed{network_.fabric().base_address(local), fi_mr_key(key->mr.get())};
  header.operation = transfers_.begin_moved(local, completion);
  exposed_.emplace(header.operation, std::move(*key));
  send_or_keep(header, std::as_bytes(std::span(&exposed, 1)));
}

void OfiConnection::serve_long(const framed::Frame &frame, framed::Memory &memory) {
  Exposed exposed;
  if (frame.body.size() != sizeof exposed) return break_protocol("the peer asks for what cannot be done");
  std::memcpy(&exposed, frame.body.data(), sizeof exposed);
  if (!network_.serve(*this, frame.header, exposed, static_cast<Memory &>(memory)))
    break_protocol("the peer asks for more at once than is allowed");
}

void OfiConnection::end_served(std::uint64_t operation, Code result) {
  --served;
  // An answer that the link's failure spoiled would be taken for the last word; without, it is asked for again.
  if (state_ == State::kOpen && !breaking()) answer_done(operation, result);
}

// --- the end --------------------------------------------------------------------------------------------------------

void OfiConnection::leave_fabric(Fabric::Removal removal) {
  const auto address = std::exchange(address_, FI_ADDR_UNSPEC);
  if (address == FI_ADDR_UNSPEC) return;
  if (network_.fabric().is_last_user(name_)) network_.end_reads(address, name_);
  network_.fabric().remove_peer(name_, removal);
}

void OfiConnection::leave(bool at_once) {
  leave_fabric(at_once ? Fabric::Removal::kNow : Fabric::Removal::kLater);
  home_.work();  // what the provider has to say after a peer was removed
  exposed_.clear();
}

void OfiConnection::abort() {
  Connection::abort();
  network_.end_served(*this);
}

}  // namespace nnti::ofi
