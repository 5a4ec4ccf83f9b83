// SPDX-License-Identifier: BSD-3-Clause
// Transfers. Large parts are pulled from, or pushed to, where they lie. Small ones travel many to a message, packed in a
// buffer of ours.
#include <services/staging/client/impl.hpp>

#include <cstring>
#include <deque>
#include <optional>

namespace staging {

using nessie::Error;
using nnti::RegisteredBuffer;
using nnti::Rights;

namespace {

constexpr std::size_t kLargeBytes = 48 << 10;           // from here on registering costs less than copying
constexpr std::size_t kPackBytes = 256 << 10;
constexpr std::size_t kPiecesInPack = 256;
constexpr std::size_t kMessagesInFlight = 8;            // bounds what a client's requests take of a server's memory
constexpr std::size_t kIdlePacks = 4;

Error too_little_data() { return {nessie::Code::kInvalidArgument, "a piece of a transfer is larger than its data"}; }

}  // namespace

struct Transfer::State {
  /// One message on its way.
  struct Sent {
    int server = 0;
    std::optional<RegisteredBuffer> buffer;              // declared before the call: outlives it
    std::vector<std::byte> pack;
    std::vector<std::span<std::byte>> destinations;      // of a packed read
    nssi::Call call;
  };
  /// What is being packed for one server.
  struct Pack {
    std::vector<std::byte> bytes;
    std::size_t used = 0;
    std::vector<Piece> pieces;
    std::vector<std::span<std::byte>> places;
  };

  State(Client::Impl &client, Op op, FileToken file, std::int64_t num_records)
      : client(client), op(op), file(file), num_records(num_records), packs(client.servers.size()) {}

  void add(const Item &item);
  void add_part(int server, Piece piece, std::span<std::byte> data);
  void add_packed(int server, Piece piece, std::span<std::byte> data);
  void flush(int server);
  void send(Sent sent, std::vector<Piece> pieces, std::span<std::byte> data);
  void finish_oldest();
  void note(const Error &error) { if (failure.ok()) failure = error; }
  Rights rights() const { return op == kOpWrite ? Rights::kRemoteRead : Rights::kRemoteWrite; }

  Client::Impl &client;
  const Op op;
  const FileToken file;
  const std::int64_t num_records;
  std::vector<Pack> packs;
  std::deque<std::unique_ptr<Sent>> sent;
  int nc_error = 0;
  Status failure;
};

void Transfer::State::add(const Item &item) {
  if (client.count() == 1) return add_part(0, item.piece, item.data);
  for (auto &part : Domains(*item.layout, client.count()).split(item.piece)) {
    if (part.offset_bytes + part.size_bytes > item.data.size()) return note(too_little_data());
    add_part(part.server, std::move(part.piece), item.data.subspan(part.offset_bytes, part.size_bytes));
  }
}

void Transfer::State::add_part(int server, Piece piece, std::span<std::byte> data) {
  if (data.empty()) return;
  if (data.size() < kLargeBytes) return add_packed(server, std::move(piece), data);
  Sent large;
  large.server = server;
  std::vector<Piece> pieces;
  pieces.push_back(std::move(piece));
  send(std::move(large), std::move(pieces), data);
}

void Transfer::State::add_packed(int server, Piece piece, std::span<std::byte> data) {
  auto &pack = packs[static_cast<std::size_t>(server)];
  if (pack.used + data.size() > kPackBytes || pack.pieces.size() == kPiecesInPack) flush(server);
  if (pack.bytes.empty()) {
    if (client.idle_packs.empty()) pack.bytes.resize(kPackBytes);
    else pack.bytes = std::move(client.idle_packs.back()), client.idle_packs.pop_back();
  }
  if (op == kOpWrite) std::memcpy(pack.bytes.data() + pack.used, data.data(), data.size());
  else pack.places.push_back(data);
  pack.used += data.size();
  pack.pieces.push_back(std::move(piece));
}

void Transfer::State::flush(int server) {
  auto pack = std::exchange(packs[static_cast<std::size_t>(server)], {});
  if (pack.pieces.empty()) return;
  Sent packed;
  packed.server = server;
  packed.pack = std::move(pack.bytes);
  packed.destinations = std::move(pack.places);
  const std::span<std::byte> data(packed.pack.data(), pack.used);
  send(std::move(packed), std::move(pack.pieces), data);
}

void Transfer::State::send(Sent message, std::vector<Piece> pieces, std::span<std::byte> data) {
  if (sent.size() >= kMessagesInFlight * packs.size()) finish_oldest();
  auto buffer = client.runtime->register_memory(data, rights());
  if (!buffer.ok()) return note(buffer.error());
  auto kept = std::make_unique<Sent>(std::move(message));
  kept->buffer = std::move(*buffer);
  const TransferArgs args{file, num_records, std::move(pieces)};
  kept->call = client.start(kept->server, op, xdr::encode(args), &*kept->buffer);
  sent.push_back(std::move(kept));
}

void Transfer::State::finish_oldest() {
  auto oldest = std::move(sent.front());
  sent.pop_front();
  auto status = client.await(oldest->call, oldest->server);
  std::optional<Result<NcResult>> answer;
  if (status.ok()) answer = xdr::decode<NcResult>(oldest->call.result());
  if (!status.ok()) note(status.error());
  else if (!answer->ok()) note(answer->error());
  else if (nc_error == 0) nc_error = (*answer)->nc_error;
  const std::byte *from = oldest->pack.data();
  for (auto place : oldest->destinations) {
    if (status.ok()) std::memcpy(place.data(), from, place.size());
    from += place.size();
  }
  if (oldest->pack.empty()) return;
  oldest->buffer.reset();
  if (client.idle_packs.size() < kIdlePacks) client.idle_packs.push_back(std::move(oldest->pack));
}

Transfer::Transfer() = default;
Transfer::Transfer(Transfer &&) noexcept = default;
Transfer &Transfer::operator=(Transfer &&) noexcept = default;
Transfer::~Transfer() = default;

Result<int> Transfer::finish() {
  if (!state_) return 0;
  while (!state_->sent.empty()) state_->finish_oldest();
  const auto state = std::move(state_);
  if (!state->failure.ok()) return state->failure.error();
  return state->nc_error;
}

Transfer Client::start_write(FileToken file, std::int64_t num_records, std::span<const Item> items) {
  return start(kOpWrite, file, num_records, items);
}

Transfer Client::start_read(FileToken file, std::int64_t num_records, std::span<const Item> items) {
  return start(kOpRead, file, num_records, items);
}

Transfer Client::start(std::uint32_t op, FileToken file, std::int64_t num_records, std::span<const Item> items) {
  Transfer transfer;
  transfer.state_ = std::make_unique<Transfer::State>(*impl_, static_cast<Op>(op), file, num_records);
  for (const auto &item : items) transfer.state_->add(item);
  for (int server = 0; server < impl_->count(); ++server) transfer.state_->flush(server);
  return transfer;
}

}  // namespace staging
