// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/fuzz.hpp>
#include <services/staging/protocol.hpp>
#include <xdr/codec.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>

using namespace staging;

namespace {

using Input = std::span<const std::byte>;

/// Whatever is accepted as a message must be one: its encoding is the input.
template <class Message> void decode(Input input) {
  auto message = xdr::decode<Message>(input);
  if (!message.ok()) return;
  if (!std::ranges::equal(xdr::encode(*message), input)) std::abort();
}

constexpr std::array kDecoders = {
    decode<HelloArgs>,    decode<HelloResult>,  decode<NcResult>,       decode<CreateArgs>,
    decode<OpenArgs>,     decode<HeaderResult>, decode<EndDefArgs>,     decode<AmendArgs>,
    decode<TransferArgs>, decode<FileArgs>,     decode<AttachArgs>,     decode<PathArgs>,
    decode<NativeNote>,   decode<ReportResult>, decode<FillRecordArgs>, decode<Nothing>};

/// A message behind a byte that says which one it is meant to be.
template <class Message> std::vector<std::byte> seed(std::size_t decoder, const Message &message) {
  std::vector<std::byte> bytes{static_cast<std::byte>(decoder)};
  const auto encoded = xdr::encode(message);
  bytes.insert(bytes.end(), encoded.begin(), encoded.end());
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size == 0) return 0;
  kDecoders[data[0] % kDecoders.size()](std::as_bytes(std::span(data + 1, size - 1)));
  return 0;
}

std::vector<std::vector<std::byte>> nssi::fuzz::seeds() {
  Definition definition;
  definition.name = "temperature";
  definition.dims = {0, 1};
  definition.value = std::vector<std::byte>(5);
  EndDefArgs end;
  end.definitions = {definition, definition};
  TransferArgs transfer;
  transfer.pieces = {Piece{1, {0, 2}, {3, 4}, {}}, Piece{2, {0}, {8}, {2}}};
  ReportResult report;
  report.failures.emplace_back().missing = {"temperature[0:63]"};
  return {seed(0, HelloArgs{}), seed(3, CreateArgs{1, "/data/a.nc", 0, 022, {{"romio_ds_write", "disable"}}}),
          seed(6, end), seed(8, transfer), seed(13, report)};
}
