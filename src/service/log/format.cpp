// SPDX-License-Identifier: BSD-3-Clause
#include <service/log/format.hpp>

#include <base/crc32c.hpp>

#include <algorithm>
#include <array>

namespace nessie::service::log_format {
namespace {

constexpr std::uint32_t kMagic = 0x31474c4e;  // "NLG1"
constexpr std::uint16_t kVersion = 1, kBulk = 1, kErased = 2;
constexpr std::size_t kBlockChecksumAt = kBlockHeaderBytes - 4;

template <class Number> void put(std::byte *to, Number number) {
  for (std::size_t i = 0; i < sizeof(Number); ++i) to[i] = static_cast<std::byte>(number >> (8 * i));
}

template <class Number> Number get(const std::byte *from) {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i)
    number = static_cast<Number>(number | static_cast<Number>(std::to_integer<Number>(from[i]) << (8 * i)));
  return number;
}

std::uint32_t checksum_of(std::span<const std::byte> record, std::uint64_t log_id, Lsn at) {
  std::array<std::byte, 16> place;
  put(place.data(), log_id);
  put(place.data() + 8, at);
  return crc32c(record.subspan(4), crc32c(place));
}

bool makes_sense(const BlockHeader &header, std::uint64_t segment_bytes) {
  const std::size_t least = header.is_bulk ? kLogAlignment : kBlockHeaderBytes + kRecordHeaderBytes;
  return header.used_bytes >= least && header.used_bytes <= kMostBlockBytes &&
         header.lsn % segment_bytes + (header.end() - header.lsn) <= segment_bytes && header.before <= header.lsn &&
         header.synced <= header.before;
}

}  // namespace

void encode(const BlockHeader &header, std::byte *block) {
  put(block, kMagic);
  put(block + 4, kVersion);
  put(block + 6, static_cast<std::uint16_t>((header.is_bulk ? kBulk : 0) | (header.is_erased ? kErased : 0)));
  std::size_t at = 8;
  for (const auto number : {header.log_id, header.lsn, header.used_bytes, header.before, header.synced}) {
    put(block + at, number);
    at += 8;
  }
  put(block + at, std::uint32_t{0});
  put(block + kBlockChecksumAt, crc32c({block, kBlockChecksumAt}));
}

std::optional<BlockHeader> decode_block(std::span<const std::byte> bytes, Lsn at, std::uint64_t segment_bytes) {
  if (bytes.size() < kBlockHeaderBytes) return std::nullopt;
  const auto *from = bytes.data();
  if (get<std::uint32_t>(from) != kMagic || get<std::uint16_t>(from + 4) != kVersion) return std::nullopt;
  if (get<std::uint32_t>(from + kBlockChecksumAt) != crc32c(bytes.first(kBlockChecksumAt))) return std::nullopt;
  BlockHeader header;
  header.is_bulk = (get<std::uint16_t>(from + 6) & kBulk) != 0;
  header.is_erased = (get<std::uint16_t>(from + 6) & kErased) != 0;
  header.log_id = get<std::uint64_t>(from + 8);
  header.lsn = get<std::uint64_t>(from + 16);
  header.used_bytes = get<std::uint64_t>(from + 24);
  header.before = get<std::uint64_t>(from + 32);
  header.synced = get<std::uint64_t>(from + 40);
  if (header.lsn != at || !makes_sense(header, segment_bytes)) return std::nullopt;
  return header;
}

void encode(const RecordHeader &header, std::uint64_t log_id, Lsn at, std::byte *record) {
  put(record + 4, header.data_checksum);
  put(record + 8, header.data_bytes);
  put(record + 16, header.kind);
  put(record + 18, header.head_bytes);
  put(record + 20, std::uint32_t{0});
  put(record, checksum_of({record, kRecordHeaderBytes + header.head_bytes}, log_id, at));
}

std::optional<RecordHeader> decode_record(std::span<const std::byte> bytes, std::uint64_t log_id, Lsn at) {
  if (bytes.size() < kRecordHeaderBytes) return std::nullopt;
  const auto *from = bytes.data();
  RecordHeader header;
  header.data_checksum = get<std::uint32_t>(from + 4);
  header.data_bytes = get<std::uint64_t>(from + 8);
  header.kind = get<std::uint16_t>(from + 16);
  header.head_bytes = get<std::uint16_t>(from + 18);
  const auto with_head = kRecordHeaderBytes + header.head_bytes;
  if (bytes.size() < with_head || header.data_bytes > kMostBlockBytes) return std::nullopt;
  if (get<std::uint32_t>(from) != checksum_of(bytes.first(with_head), log_id, at)) return std::nullopt;
  return header;
}

std::optional<Records::Record> Records::read_next() const {
  const auto begin = done_ == 0 ? kBlockHeaderBytes : done_;
  const auto end = std::min<std::size_t>(bytes_.size(), block_.is_bulk ? kLogAlignment : block_.used_bytes);
  if (begin >= end) return std::nullopt;
  const auto header = decode_record(bytes_.subspan(begin, end - begin), block_.log_id, block_.lsn + begin);
  if (!header) return std::nullopt;
  const auto behind_head = begin + kRecordHeaderBytes + header->head_bytes;
  const auto record_end = block_.is_bulk ? kLogAlignment + header->data_bytes : begin + header->size_bytes();
  if (block_.is_bulk ? record_end != block_.used_bytes : record_end > block_.used_bytes) return std::nullopt;
  return Record{*header,
                {block_.lsn + done_, block_.lsn + record_end},
                begin + kRecordHeaderBytes,
                block_.is_bulk ? kLogAlignment : behind_head,
                true};
}

std::optional<Records::Record> Records::next() {
  if (done_ == block_.used_bytes) return std::nullopt;
  auto record = read_next();
  if (!record) record.emplace().at = {block_.lsn + done_, block_.lsn + block_.used_bytes};
  done_ = record->at.end - block_.lsn;
  return record;
}

std::span<const std::byte> Records::data_of(const Record &record) const {
  if (record.data_begin + record.header.data_bytes > bytes_.size()) return {};
  return bytes_.subspan(record.data_begin, record.header.data_bytes);
}

bool Records::is_data_right(const Record &record) const {
  const auto data = data_of(record);
  return data.size() == record.header.data_bytes && crc32c(data) == record.header.data_checksum;
}

bool is_whole(const BlockHeader &block, std::span<const std::byte> bytes) {
  Records records(block, bytes);
  while (const auto record = records.next())
    if (!record->is_right || !records.is_data_right(*record)) return false;
  return true;
}

}  // namespace nessie::service::log_format
