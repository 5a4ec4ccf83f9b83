// SPDX-License-Identifier: BSD-3-Clause
// A connection of the transport below whose messages and data are sealed.
#pragma once

#include "nnti/sealing/host.hpp"

namespace nnti::sealing {

class SealedConnection final : public Connection, private TransferHost {
 public:
  /// kOpening: the peer's opening has not come yet. kEnded: to be reaped.
  enum class State { kOpening, kOpen, kEnded };

  SealedConnection(Host &transport, Connection &inner, bool we_connected);

  Transport &transport() override { return transport_; }
  std::string explain() const override;
  std::size_t max_message_bytes() const override { return inner_.max_message_bytes() - kRecordOverhead; }
  bool try_send(MessageKind kind, std::span<const std::byte> message) override;
  void get(const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
           Completion &completion) override;
  void put(const RemoteBuffer &remote, std::uint64_t offset, std::span<const std::byte> local,
           Completion &completion) override;
  /// As they are: what the kernel carries between two processes of a node needs no seal.
  Status give_descriptor(std::uint64_t key, int descriptor) override { return inner_.give_descriptor(key, descriptor); }
  Result<int> take_descriptor(std::uint64_t key) override { return inner_.take_descriptor(key); }
  bool can_give_descriptors() const override { return inner_.can_give_descriptors(); }
  Result<pid_t> process() const override { return inner_.process(); }
  void close() override { end(false); }
  void abort() override { end(true); }

  // --- for the transport ---------------------------------------------------------------------------------------------
  Connection &below() { return inner_; }
  State state() const { return state_; }
  /// Sends what waits for credits. Returns the number of messages sent.
  std::size_t pump();
  /// A message of the transport below.
  void on_message(MessageKind kind, std::span<const std::byte> message);
  /// The transport below has lost the peer, and completed everything pending with it.
  void on_lost(Loss loss, const Error &error);

 private:
  struct Keys {
    Keys(const nessie::Credential &credential, bool we_connected, const KeySource &source);
    Cipher records_out, records_in, puts_out, puts_in, gets_out, gets_in;
  };
  struct Waiting {
    MessageKind kind;
    std::vector<std::byte> bytes;
  };

  Connection &inner() override { return inner_; }
  void tell(MessageKind kind, std::span<const std::byte> message) override;
  std::optional<MemoryRegion> find_memory(std::uint64_t key, std::uint32_t slot) override;
  Cipher &put_out() override { return keys_->puts_out; }
  Cipher &put_in() override { return keys_->puts_in; }
  Cipher &get_out() override { return keys_->gets_out; }
  Cipher &get_in() override { return keys_->gets_in; }

  void on_opening(std::span<const std::byte> message);
  void on_record(std::span<const std::byte> record);
  bool on_own(MessageKind kind, std::span<const std::byte> message);
  bool send_record(MessageKind kind, std::span<const std::byte> message);
  void end(bool at_once);
  /// Tells whoever waits for the connection, or has it.
  void report(State before, Loss loss, const Error &error);
  /// Ends the connection over something that cannot be.
  void give_up(Loss loss, const Error &error);

  Host &transport_;
  Connection &inner_;
  const bool we_connected_, in_order_;
  State state_ = State::kOpening;
  Opening ours_;
  std::optional<KeyAgreement> agreement_{std::in_place};  ///< until the keys are there
  bool opening_sent_ = false;
  std::optional<Keys> keys_;
  std::uint64_t next_out_ = 1, next_in_ = 1;  ///< numbers of records
  std::vector<std::byte> record_;             ///< scratch
  std::deque<Waiting> waiting_;
  Initiator initiator_{*this};
  Owner owner_{*this};
};

}  // namespace nnti::sealing
