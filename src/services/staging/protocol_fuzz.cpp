// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/piece_list.hpp>
#include <xdr/testing/decoders.hpp>

using namespace nessie::fuzz;
using namespace staging;

namespace {

constexpr std::array<Decoder, 16> kDecoders = {
    decode<HelloArgs>,    decode<HelloResult>,  decode<NcResult>,       decode<CreateArgs>,
    decode<OpenArgs>,     decode<HeaderResult>, decode<EndDefArgs>,     decode<AmendArgs>,
    decode<TransferArgs>, decode<FileArgs>,     decode<FileToken>,      decode<SettleArgs>,
    decode<NativeNote>,   decode<ReportResult>, decode<FillRecordArgs>, decode<LendResult>};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  decode_one_of(kDecoders, std::as_bytes(std::span(data, size)));
  return 0;
}

std::vector<nessie::fuzz::Bytes> nessie::fuzz::seeds() {
  Definition definition;
  definition.name = "temperature";
  definition.dims = {0, 1};
  definition.value = std::vector<std::byte>(5);
  EndDefArgs end;
  end.definitions = {definition, definition};
  TransferArgs transfer;
  transfer.pieces = PieceList{Piece{1, {0, 2}, {3, 4}, {}}, Piece{2, {0}, {8}, {2}}}.bytes();
  ReportResult report;
  report.failures.emplace_back().missing = {"temperature[0:63]"};
  return {seed(0, HelloArgs{}), seed(3, CreateArgs{1, "/data/a.nc", 0, {{"romio_ds_write", "disable"}}}),
          seed(6, end),         seed(8, transfer),
          seed(13, report),     seed(15, LendResult{7})};
}
