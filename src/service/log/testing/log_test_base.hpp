// SPDX-License-Identifier: BSD-3-Clause
// What tests of logs share: a runtime whose fibers use them, and records that can be told apart.
#pragma once

#include <gtest/gtest.h>

#include <nssi/testing/testing.hpp>
#include <service/log/log.hpp>

#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

namespace nessie::service::testing {

using Bytes = std::vector<std::byte>;

/// A record as it was appended, or found again.
struct Kept {
  std::uint16_t kind = 0;
  LogRange at = {};
  Bytes head, data;
  bool operator==(const Kept &) const = default;
};

inline Bytes bytes_of(std::string_view text) {
  Bytes bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

class LogTestBase : public ::testing::Test {
 protected:
  /// In a fiber of the thread that drives, until it is done.
  void run(const std::function<void()> &work) {
    std::promise<void> done;
    runtime().spawn([&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }
  /// In a fiber: in so many others at once, until all are done.
  void run_many(std::size_t count, const std::function<void(std::size_t)> &work) {
    nssi::Event done(runtime());
    std::size_t left = count;
    for (std::size_t i = 0; i < count; ++i)
      runtime().spawn([&, i] {
        work(i);
        if (--left == 0) done.set();
      });
    if (count > 0) { EXPECT_TRUE(done.wait(Deadline::in(std::chrono::seconds(60))).ok()); }
  }
  nssi::Runtime &runtime() { return *server_.runtime; }

  std::unique_ptr<Log> open_log(std::unique_ptr<LogStore> store, LogOptions options = {}) {
    auto log = Log::open(runtime(), budget_, std::move(store), std::move(options));
    if (!log.ok()) throw std::runtime_error(log.error().to_string());
    return *std::move(log);
  }
  static Kept append(Log &log, std::uint16_t kind, Bytes head, Bytes data) {
    const std::span<const std::byte> part(data);
    const auto at = log.append(kind, head, {&part, 1});
    EXPECT_TRUE(at.ok()) << at.error().to_string();
    return {kind, at.ok() ? *at : LogRange(), std::move(head), std::move(data)};
  }
  static Kept append_bulk(Log &log, std::uint16_t kind, Bytes head, Bytes data) {
    auto bulk = log.take_bulk();
    if (!bulk.ok()) throw std::runtime_error(bulk.error().to_string());
    if (!data.empty()) std::memcpy(bulk->data(), data.data(), data.size());
    const auto at = log.append(kind, head, *std::move(bulk), data.size());
    EXPECT_TRUE(at.ok()) << at.error().to_string();
    return {kind, at.ok() ? *at : LogRange(), std::move(head), std::move(data)};
  }
  struct Found {
    std::vector<Kept> records;
    std::vector<LogDamage> damage;
  };
  static Log::Visitor noting(Found &found, bool skims = false) {
    return {[&](const LogRecord &record) {
              found.records.push_back({record.kind,
                                       record.at,
                                       {record.head.begin(), record.head.end()},
                                       {record.data.begin(), record.data.end()}});
              return Status();
            },
            [&](const LogDamage &damage) { found.damage.push_back(damage); }, skims};
  }
  static Found replay(Log &log, Lsn from = 0, bool skims = false) {
    Found found;
    const auto status = log.replay(from, noting(found, skims));
    EXPECT_TRUE(status.ok()) << status.error().to_string();
    return found;
  }
  Found look(std::unique_ptr<LogStore> store) {
    Found found;
    const auto status = Log::look(runtime(), std::move(store), noting(found));
    EXPECT_TRUE(status.ok()) << status.error().to_string();
    return found;
  }

  Budget budget_;

 private:
  nssi::testing::ServiceThread server_{nssi::testing::options_for("inproc", true)};
};

}  // namespace nessie::service::testing
