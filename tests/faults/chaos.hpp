// SPDX-License-Identifier: BSD-3-Clause
// What the two roles of chaos_peer share: the operations, the journals that chaos_test.py reads, and the watchdog.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <nssi/nssi.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace chaos {

using nessie::Deadline;
using nssi::Bytes;
using nssi::Code;
using std::chrono::milliseconds;

inline constexpr nssi::Interface kInterface{0x20000002, 1};

enum Op : nssi::OpCode {
  kEcho = 1,     ///< replies `result_bytes` of the call's pattern
  kShort,        ///< the same, without a fiber
  kPull,         ///< pulls the data, and says whether they are right
  kPush,         ///< pushes the call's pattern
  kPooledEcho,   ///< as kEcho, in a pool
  kPooledPull,   ///< as kPull, in a pool
  kPooledPush,   ///< as kPush, in a pool
  kNap,          ///< suspends its fiber for a while
  kPooledBlock,  ///< blocks a pool's thread for a while
  kFail,         ///< replies an error
  kBulkPull,     ///< as kPull, when it is quiet
  kLast = kBulkPull,
  kMissing = 99  ///< nobody offers it
};

/// Arguments: this, and `padding_bytes` of the call's pattern.
struct Head {
  std::uint64_t number = 0;  ///< of the call, unlike that of any other
  std::uint64_t result_bytes = 0, padding_bytes = 0;
};

inline std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/// What call `number` sends and gets, wherever it has no better content.
inline void fill_pattern(std::uint64_t number, std::span<std::byte> bytes) {
  const auto first = mixed(number);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(first + i * 131 + (i >> 8));
}
inline bool is_pattern(std::uint64_t number, std::span<const std::byte> bytes) {
  const auto first = mixed(number);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] != static_cast<std::byte>(first + i * 131 + (i >> 8))) return false;
  return true;
}

/// One line of a journal. What it means is said by `kind`: of a server 'x' executed; of a client 'i' intent, 'o'
/// outcome, 'b' the callback did not come once, 'T' the data buffer was written to after the call was over, 't' after
/// it was unregistered, too, 'h' something hung; of both 'e' the end.
struct Record {
  std::uint64_t number = 0;
  char kind = 0;
  std::uint8_t op = 0, flags = 0, server = 0;
  std::int32_t code = 0;
  std::uint32_t is_right = 0;  ///< with 'o': the result is what it should be; with an error: it says "not carried out"
  std::int32_t late_ms = 0;    ///< with 'o': after the deadline
  std::int64_t at_us = 0;      ///< of the monotonic clock
};
static_assert(sizeof(Record) == 32);

enum Flag : std::uint8_t { kIdempotent = 1, kOneWay = 2, kNotWaiting = 4, kHasData = 8, kDropped = 16 };

inline std::int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(nessie::Clock::now().time_since_epoch()).count();
}

/// A file to which each record is appended in one piece, so that it is there whatever becomes of the process.
class Journal {
 public:
  explicit Journal(const std::string &path)
      : fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {
    if (fd_ < 0) throw std::runtime_error("cannot open " + path);
  }
  ~Journal() { ::close(fd_); }
  Journal(const Journal &) = delete;
  void append(Record record) {
    record.at_us = now_us();
    if (::write(fd_, &record, sizeof record) != sizeof record) throw std::runtime_error("cannot write the journal");
  }

 private:
  int fd_;
};

/// Runs beside the others, and ends the process, with the stacks of its threads on stderr, when one of them does not
/// come back from a call in time. SIGUSR1 shows the stacks, too. The time in which the process was stopped does not
/// count.
class Watchdog {
 public:
  /// `on_hang` is told before the end.
  explicit Watchdog(std::function<void()> on_hang);
  ~Watchdog();
  /// By when a thread must be back; in microseconds, 0: it is.
  using Due = std::atomic<std::int64_t>;
  /// Of another thread.
  Due &watch() {
    const std::lock_guard lock(mutex_);
    return *dues_.emplace_back(std::make_unique<Due>(0));
  }

 private:
  void run();
  std::function<void()> on_hang_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Due>> dues_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

/// How long after its deadline a call may end, on a machine with more to do than it has processors for. NSSI's own
/// part of it is 0.2 s (src/nssi/README.md).
inline constexpr milliseconds kGrace{10000};

int serve(const std::string &transport, const std::string &journal, const std::string &url_file);
int call(const std::string &transport, const std::string &journal, std::uint32_t id,
         const std::vector<std::string> &url_files);

/// SIGTERM has come to a client.
extern std::atomic<bool> is_told_to_end;

}  // namespace chaos
