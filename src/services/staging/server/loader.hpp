// SPDX-License-Identifier: BSD-3-Clause
// Reads pages from the files into the cache, for readers: several that want the same page wait for one native read.
// Progress thread, but for what runs in the I/O queue.
#pragma once

#include <services/staging/server/drainer.hpp>

#include <atomic>
#include <memory>

namespace staging {

class Loader {
 public:
  /// A page on its way from the file. What it has stays as long as somebody has this.
  class Load : public Loading {
   public:
    Load(nssi::Runtime &runtime, Drainer &drainer) : drainer_(drainer), ended_(runtime) {}
    ~Load();
    Load(const Load &) = delete;
    /// Suspends the fiber until it is there. NC_NOERR, or the native code: then it has nothing.
    int wait();

   private:
    friend class Loader;
    Drainer &drainer_;
    WaitQueue ended_;
    std::unique_ptr<Page> own_;  ///< until it is in the cache
    Interval present_;
    std::uint64_t bytes_ = 0;
    bool is_ahead_ = false, is_over_ = false;
    std::atomic<bool> has_begun_ = false, is_dropped_ = false;
    int nc_error_ = 0;
  };

  Loader(nssi::Runtime &runtime, Worker &io, Drainer &drainer, ReportResult &statistics)
      : runtime_(runtime), io_(io), drainer_(drainer), statistics_(statistics) {}

  /// Has the page at `index` read, in a while if it is done `ahead` of a question. Null: there is no memory for it, or
  /// it lies behind the last record, or some of it is here and not in the file.
  std::shared_ptr<Load> load(OpenFile &file, CachedVariable &variable, std::int64_t index, bool ahead);
  /// Pages that are read ahead and have not arrived.
  std::size_t ahead() const { return ahead_; }

 private:
  void start(OpenFile &file, const Variable &shape, const std::shared_ptr<Load> &load);
  void finish(Load &load);

  nssi::Runtime &runtime_;
  Worker &io_;
  Drainer &drainer_;
  ReportResult &statistics_;
  std::size_t ahead_ = 0;
};

}  // namespace staging
