// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/spill.hpp>

#include <base/log.hpp>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace staging {

using nessie::Result;
using nessie::Status;
using nessie::service::Log;

namespace {

constexpr std::uint16_t kPageRecord = 1;
constexpr std::uint64_t kSpillSegmentBytes = 16 << 20;  // what is given back at a time

}  // namespace

Spill::Spill(nssi::Runtime &runtime, nessie::Budget &budget, const std::string &folder)
    : runtime_(runtime), budget_(budget), opened_(runtime) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::string made = folder + "/nessie-spill-XXXXXX";
  if (::mkdtemp(made.data()) == nullptr) {
    nessie::log::warning("nothing is spilled, and writers wait when memory is full: cannot make a folder in {}: {}",
                         folder, std::strerror(errno));
    return;
  }
  folder_ = std::move(made);
  lock_ = nessie::Fd(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock_) (void)::flock(lock_.get(), LOCK_EX | LOCK_NB);
  takes_ = true;
}

Spill::~Spill() {
  log_.reset();
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

Status Spill::open() {
  while (is_opening_)
    if (auto status = opened_.wait(); !status.ok()) return status;
  if (log_) return {};
  is_opening_ = true;
  auto store = nessie::service::open_disk_store(runtime_, {.directory = folder_, .segment_bytes = kSpillSegmentBytes});
  auto log = store.ok() ? Log::open(runtime_, budget_, *std::move(store), {.name = "staging.spill"})
                        : Result<std::unique_ptr<Log>>(store.error());
  is_opening_ = false;
  opened_.notify_all();
  if (!log.ok()) return log.error();
  log_ = *std::move(log);
  return {};
}

Result<LogRange> Spill::put(const Page &page) {
  const std::int64_t head[] = {page.owner().variable.varid, page.first(), page.dirty_elements()};
  const std::span<const std::byte> image = page.image();
  auto status = open();
  auto at = status.ok() ? log_->append(kPageRecord, std::as_bytes(std::span(head)), {&image, 1})
                        : Result<LogRange>(status.error());
  if (at.ok())
    if (status = log_->await_written(at->end); status.ok()) return at;
  const auto &error = at.ok() ? status.error() : at.error();
  if (std::exchange(takes_, false) && error.code != nessie::Code::kCancelled)
    nessie::log::warning("no more is spilled, and writers wait when memory is full: {}", error.message);
  return error;
}

Status Spill::get(const LogRange &at, Page &page) { return log_->read(at, page.image()); }

void Spill::flush() {
  takes_ = false;
  if (log_) (void)log_->flush();
}

}  // namespace staging
