// SPDX-License-Identifier: BSD-3-Clause
// Node-local storage for pages that memory has no room for. It serves memory: nothing of it outlives the server, and
// nothing is synced. Within fibers of the thread that drives, but for the constructor.
#pragma once

#include <services/staging/server/page_cache.hpp>

#include <base/budget.hpp>
#include <base/fd.hpp>
#include <service/log/log.hpp>
#include <service/wait_queue.hpp>

#include <memory>
#include <string>

namespace staging {

using nessie::service::LogRange;

class Spill {
 public:
  /// In a folder of its own within `folder`. Where that cannot be, there is none, and a warning says so.
  Spill(nssi::Runtime &runtime, nessie::Budget &budget, const std::string &folder);
  /// Removes the folder. Nothing may be on its way there.
  ~Spill();
  Spill(const Spill &) = delete;

  /// False: it is full, or has failed, or is not there.
  bool takes() const { return takes_; }
  /// Suspends the fiber until what the page has of data can be read from there. An error: it takes nothing any more.
  nessie::Result<LogRange> put(const Page &page);
  /// Suspends the fiber until what was put is in the page's memory again. An error: it is damaged, or cannot be read.
  nessie::Status get(const LogRange &at, Page &page);
  void release(const LogRange &at) { log_->release(at); }
  /// What it takes now.
  std::uint64_t held_bytes() const { return log_ ? log_->held_bytes() : 0; }
  /// Suspends the fiber until nothing is on its way.
  void flush();

 private:
  nessie::Status open();

  nssi::Runtime &runtime_;
  nessie::Budget &budget_;
  std::string folder_;
  nessie::Fd lock_;  ///< of the folder: so that `nessie clean` knows it for that of a server that lives
  std::unique_ptr<nessie::service::Log> log_;
  nessie::service::WaitQueue opened_;
  bool takes_ = false, is_opening_ = false;
};

}  // namespace staging
