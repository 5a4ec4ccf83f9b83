// SPDX-License-Identifier: BSD-3-Clause
// What somebody has left in a log's directory, whatever became of it. Checksums are put right first, so that what they
// guard is tried, too.
#include <service/log/format.hpp>
#include <service/log/log.hpp>
#include <service/log/testing/memory_store.hpp>

#include <base/crc32c.hpp>
#include <base/testing/fuzz.hpp>
#include <nssi/testing/testing.hpp>

#include <algorithm>
#include <cstring>

using namespace nessie::fuzz;
using namespace nessie::service;
using nessie::service::testing::MemoryDisk;
using nessie::service::testing::MemoryStore;

namespace {

constexpr std::uint64_t kSegmentBytes = 8 << 10;
const LogOptions kOptions{.block_bytes = 8 << 10};

nssi::Runtime &runtime() {
  static const auto runtime = nssi::testing::open_runtime(nssi::testing::options_for("inproc", true));
  return *runtime;
}

void in_fiber(const std::function<void()> &work) {
  runtime().spawn([&] {
    work();
    runtime().stop();
  });
  runtime().run();
}

using Found = std::vector<std::pair<LogRange, std::vector<std::byte>>>;

std::unique_ptr<Log> open(MemoryDisk &disk) {
  static nessie::Budget budget;
  auto log = Log::open(runtime(), budget, std::make_unique<MemoryStore>(runtime(), disk), kOptions);
  require(log.ok());
  return *std::move(log);
}

Found replay(Log &log, bool skims) {
  Found found;
  const auto status =
      log.replay(0, {[&](const LogRecord &record) {
                       require(found.empty() || found.back().first.end <= record.at.begin);
                       require(skims || record.data.size() == record.data_bytes);
                       found.emplace_back(record.at, std::vector(record.data.begin(), record.data.end()));
                       return nessie::Status();
                     },
                     [](const LogDamage &damage) { require(damage.at.begin < damage.at.end); }, skims});
  require(status.ok());
  return found;
}

/// Those of a block's header, and of its first record.
void put_right(std::span<std::byte> bytes, Lsn at) {
  if (bytes.size() < kLogAlignment) return;
  const auto checksum = nessie::crc32c(bytes.first(52));
  std::memcpy(bytes.data() + 52, &checksum, sizeof(checksum));
  log_format::RecordHeader record;
  std::memcpy(&record.data_checksum, bytes.data() + 60, 4);
  std::memcpy(&record.data_bytes, bytes.data() + 64, 8);
  std::memcpy(&record.kind, bytes.data() + 72, 2);
  std::memcpy(&record.head_bytes, bytes.data() + 74, 2);
  std::uint64_t id = 0;
  std::memcpy(&id, bytes.data() + 8, 8);
  if (record.head_bytes < 4000) log_format::encode(record, id, at + 56, bytes.data() + 56);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  MemoryDisk disk(kSegmentBytes);
  if (size > 16 * kSegmentBytes || size == 0) return 0;
  for (std::size_t at = 1; at < size; ++at) disk.at(at - 1) = static_cast<std::byte>(data[at]);
  for (auto &[number, bytes] : disk.segments)
    for (std::size_t at = 0; (data[0] & 1) != 0 && at < bytes.size(); at += kLogAlignment)
      if (bytes[at] == std::byte{'N'}) put_right(std::span(bytes).subspan(at), number * kSegmentBytes + at);
  in_fiber([&] {
    auto log = open(disk);
    auto found = replay(*log, false);
    require(replay(*log, true).size() >= found.size());
    const auto at = log->append(1, {}, {});
    require(at.ok() && log->flush().ok());
    found.emplace_back(*at, std::vector<std::byte>());
    require(replay(*log, false) == found);
    log.reset();
    log = open(disk);
    require(replay(*log, false) == found);
  });
  return 0;
}

std::vector<nessie::fuzz::Bytes> nessie::fuzz::seeds() {
  std::vector<Bytes> all;
  for (const int rounds : {1, 3}) {
    MemoryDisk disk(kSegmentBytes);
    in_fiber([&] {
      for (int round = 0; round < rounds; ++round) {
        auto log = open(disk);
        for (std::size_t i = 0; i < 12; ++i) {
          const std::vector<std::byte> bytes(i * 150, std::byte{7});
          const std::span<const std::byte> part(bytes);
          require(log->append(1, std::span(bytes).first(i), {&part, 1}).ok());
          if (i % 5 == 0)
            require(log->append(2, {}, *log->take_bulk(), i * 300).ok() && log->await_synced(log->end()).ok());
        }
        require(log->flush().ok());
      }
    });
    Bytes bytes(1);
    for (const auto &[number, segment] : disk.segments) bytes.insert(bytes.end(), segment.begin(), segment.end());
    all.push_back(bytes);
    bytes[0] = std::byte{1};
    all.push_back(bytes);
  }
  return all;
}
