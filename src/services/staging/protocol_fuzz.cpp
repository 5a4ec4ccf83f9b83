// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/piece_list.hpp>
#include <xdr/testing/decoders.hpp>

using namespace nessie::fuzz;
using namespace staging;

namespace {

constexpr std::array<Decoder, 22> kDecoders = {
    decode<HelloArgs>,      decode<HelloResult>,     decode<NcResult>,   decode<CreateArgs>,   decode<OpenArgs>,
    decode<HeaderResult>,   decode<EndDefArgs>,      decode<AmendArgs>,  decode<TransferArgs>, decode<FileArgs>,
    decode<FileToken>,      decode<SettleArgs>,      decode<NativeNote>, decode<ReportResult>, decode<FillRecordArgs>,
    decode<LendResult>,     decode<MarkArgs>,        decode<WatchArgs>,  decode<WatchResult>,  decode<HeaderOf>,
    decode<MarkedReadArgs>, decode<MarkedReadResult>};

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
  const Mark mark{1, 2, 3, 4, true, {5}, {{6, 7}}};
  WatchResult watched;
  watched.files = {{7, "/data/a.nc", {1, 2}, FileStage::kOpen, true, 9, false, 3, {}, 4, {mark}}};
  return {seed(16, MarkArgs{9, mark}),
          seed(18, watched),
          seed(20, MarkedReadArgs{7, 1, {2, 3}, 4, 5, transfer.pieces}),
          seed(0, HelloArgs{}),
          seed(3, CreateArgs{1, "/data/a.nc", 0, {{"romio_ds_write", "disable"}}}),
          seed(6, end),
          seed(8, transfer),
          seed(13, report),
          seed(15, LendResult{7})};
}
