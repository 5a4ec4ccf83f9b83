// SPDX-License-Identifier: BSD-3-Clause
// The messages of a write or a read. What is large is pulled from, or pushed to, where it lies. The rest passes through
// buffers that the servers map: small pieces many to a message; writes up to a few megabytes so that they can go on
// behind the program's back.
#pragma once

#include <services/staging/client/impl.hpp>

namespace staging {

/// Takes the items of one transfer apart, into messages.
class Client::Impl::Sender {
 public:
  Sender(Impl &client, bool is_write, FileToken file, std::int64_t num_records, const Order &order,
         std::shared_ptr<Outcome> outcome)
      : client_(client),
        is_write_(is_write),
        file_(file),
        num_records_(num_records),
        order_(order),
        outcome_(std::move(outcome)),
        packs_(client.servers.size()),
        sent_(client.servers.size()) {}
  /// Messages to each server.
  const std::vector<std::int64_t> &sent() const { return sent_; }

  void send(std::span<const Item> items) {
    std::size_t size_bytes = 0;
    for (const auto &item : items) size_bytes += item.data.size() + item.pieces.bytes().size();
    pack_bytes_ = size_bytes > kSmallPackBytes / 2 ? kPackBytes : kSmallPackBytes;
    for (const auto &item : items) add(item);
    flush_all();
  }
  /// Tells all servers that this process's part of a collective call is complete.
  void end_call();

 private:
  static constexpr std::size_t kPackBytes = 1 << 20, kSmallPackBytes = 256 << 10;
  static constexpr std::size_t kListPart = 4;  ///< of a pack, one in so many bytes is for the list of its pieces
  /// What is being packed for one server.
  struct Pack {
    std::optional<nnti::RegisteredBuffer> buffer;
    std::size_t used = 0;
    std::uint32_t checksum = 0;  ///< of a write's data
    PieceList pieces;
    std::vector<std::span<std::byte>> places;
  };

  void add(const Item &item);
  void add_list(int server, const VariableLayout &layout, const PieceList &pieces, std::span<std::byte> data);
  void add_packed(int server, const PieceList &pieces, std::span<std::byte> data);
  void add_alone(int server, const VariableLayout &layout, const PieceList &pieces, std::span<std::byte> data);
  void flush(int server);
  void flush_all() {
    for (int server = 0; server < client_.count(); ++server) flush(server);
  }
  void list_pieces(Message &message, std::size_t data_bytes, TransferArgs &args) const;
  void send(std::unique_ptr<Message> message, std::size_t data_bytes);
  std::size_t most_list_bytes() const { return pack_bytes_ / kListPart; }
  std::size_t most_data_bytes() const { return pack_bytes_ - most_list_bytes(); }
  /// Whether writes to a server can go on behind the program's back: the server finds copied data by itself.
  bool goes_behind(int server) const { return is_write_ && client_.mode != Mode::kDirect && client_.at(server).views; }
  bool is_worth_copying(int server, const VariableLayout &layout, const PieceList &pieces,
                        std::size_t size_bytes) const;
  std::optional<nnti::RegisteredBuffer> take_buffer(std::size_t size_bytes);
  std::optional<nnti::RegisteredBuffer> spare_buffer(std::size_t size_bytes);

  Impl &client_;
  const bool is_write_;
  const FileToken file_;
  const std::int64_t num_records_;
  const Order &order_;
  const std::shared_ptr<Outcome> outcome_;
  std::size_t pack_bytes_ = kSmallPackBytes;
  std::vector<Pack> packs_;
  std::vector<std::int64_t> sent_;
};

}  // namespace staging
