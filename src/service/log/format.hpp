// SPDX-License-Identifier: BSD-3-Clause
// The bytes of a log, version 1. All numbers are little-endian; README.md has them as a table.
//
// A log is a stream of positions, cut into segments of equal size. It is written in blocks, which begin at multiples of
// 4096, are padded with zeros to the next, and lie within one segment. A block is a header and, from byte 56 on,
// records, one after the other, each padded with zeros to a multiple of 8:
//
//   block   0  u32  magic "NLG1"
//           4  u16  version, 1
//           6  u16  flags; 1: bulk, 2: erased
//           8  u64  the log's number: random, the same for as long as somebody goes on with it
//          16  u64  lsn: where the block begins
//          24  u64  used: bytes from its beginning to the end of its last record
//          32  u64  before: where the block before this one ended, its padding included
//          40  u64  synced: all before this position was synced when the block was made
//          48  u32  zero
//          52  u32  CRC32C of bytes 0 to 51
//   record  0  u32  CRC32C of the log's number, of the position of this byte (u64 both), of bytes 4 to 23, of the head
//           4  u32  CRC32C of the data
//           8  u64  how many bytes of data
//          16  u16  kind, the service's
//          18  u16  how many bytes of head
//          20  u32  zero
//          24       the head, then the data
//
// A bulk block has one record, at byte 56, whose head has at most 2048 bytes and whose data begin at byte 4096.
//
// Design notes. Whoever opens a log goes on in the first segment that nobody has written to. Before that he erases the
// blocks behind the end that he found: he writes their headers anew, flagged as erased, and syncs. So what was cut off
// once stays cut off, whatever is released later. An erased block still says what was synced when it was made. Apart
// from that, no position is written twice: a block that was torn cannot be completed by what was there before, as each
// of its records knows its position. A segment whose file is used again holds blocks and records of other positions;
// they do not count.
#pragma once

#include <service/log/store.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace nessie::service::log_format {

inline constexpr std::size_t kBlockHeaderBytes = 56;
inline constexpr std::size_t kRecordHeaderBytes = 24;
inline constexpr std::size_t kMostHeadBytes = 65535;
/// Of a block, padded. A header that says more is none.
inline constexpr std::size_t kMostBlockBytes = std::size_t{4} << 20;

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

struct BlockHeader {
  bool is_bulk = false, is_erased = false;
  std::uint64_t log_id = 0;
  Lsn lsn = 0;
  std::uint64_t used_bytes = 0;
  Lsn before = 0, synced = 0;

  Lsn end() const { return lsn + round_up(used_bytes, kLogAlignment); }
  /// What its records have, each its part of it, without a gap.
  LogRange records() const { return {lsn, lsn + used_bytes}; }
};

void encode(const BlockHeader &header, std::byte *block);
/// Nothing: no block begins there.
std::optional<BlockHeader> decode_block(std::span<const std::byte> bytes, Lsn at, std::uint64_t segment_bytes);

struct RecordHeader {
  std::uint16_t kind = 0, head_bytes = 0;
  std::uint64_t data_bytes = 0;
  std::uint32_t data_checksum = 0;

  /// With its padding, where it is not bulk.
  std::uint64_t size_bytes() const { return round_up(kRecordHeaderBytes + head_bytes + data_bytes, 8); }
};

/// `at`: the position of `record`, behind whose first bytes the head is already.
void encode(const RecordHeader &header, std::uint64_t log_id, Lsn at, std::byte *record);
/// Nothing: it is not what was written. `bytes` hold the head, too.
std::optional<RecordHeader> decode_record(std::span<const std::byte> bytes, std::uint64_t log_id, Lsn at);

/// The records of a block, of which at least the first 4096 bytes are there; of one that is not bulk, all.
class Records {
 public:
  Records(const BlockHeader &block, std::span<const std::byte> bytes) : block_(block), bytes_(bytes) {}

  struct Record {
    RecordHeader header;
    LogRange at;
    std::size_t head_begin = 0, data_begin = 0;  ///< in the block
    bool is_right = false;  ///< the header and the head are; otherwise `at` is the rest of the block
  };
  /// Nothing: there are no more.
  std::optional<Record> next();
  std::span<const std::byte> head_of(const Record &record) const {
    return bytes_.subspan(record.head_begin, record.header.head_bytes);
  }
  /// Empty if they are not there.
  std::span<const std::byte> data_of(const Record &record) const;
  bool is_data_right(const Record &record) const;

 private:
  std::optional<Record> read_next() const;
  const BlockHeader block_;
  const std::span<const std::byte> bytes_;
  std::size_t done_ = 0;
};

/// Whether all of a block is as it was written.
bool is_whole(const BlockHeader &block, std::span<const std::byte> bytes);

}  // namespace nessie::service::log_format
