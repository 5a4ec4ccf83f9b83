// SPDX-License-Identifier: BSD-3-Clause
#include <service/log/written_mark.hpp>

#include <base/fd.hpp>
#include <base/host.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

namespace nessie::service {

/// The position stands there twice. One that differs was being raised, or is damaged: the lower one counts.
struct WrittenMark::Page {
  char boot_id[48];
  std::uint64_t first, second;

  /// 0: it is of an earlier start of the machine.
  Lsn left() const {
    char now[sizeof boot_id];
    name_boot(now);
    return std::memcmp(boot_id, now, sizeof now) == 0 ? std::min(first, second) : 0;
  }
  static void name_boot(char (&name)[48]) {
    std::ranges::fill(name, '\0');
    nessie::boot_id().copy(name, sizeof name - 1);
  }
};

Result<WrittenMark> WrittenMark::open(const std::string &path) {
  const Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  void *memory = MAP_FAILED;
  if (file && ::ftruncate(file.get(), sizeof(Page)) == 0)
    memory = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED)
    return Error{Code::kIo,
                 fmt::format("cannot make {}: {}; see to that, or name another directory", path, std::strerror(errno)),
                 Scope::kService, errno};
  auto *page = static_cast<Page *>(memory);
  const auto left = page->left();
  page->first = page->second = left;
  Page::name_boot(page->boot_id);
  return WrittenMark(page, left);
}

WrittenMark WrittenMark::look(const std::string &path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  Page page{};
  const bool is_whole = file && ::pread(file.get(), &page, sizeof page, 0) == ssize_t{sizeof page};
  return WrittenMark(nullptr, is_whole ? page.left() : 0);
}

WrittenMark::~WrittenMark() {
  if (page_ != nullptr) ::munmap(page_, sizeof(Page));
}

void WrittenMark::raise(Lsn end) {
  std::atomic_ref(page_->first).store(end, std::memory_order_relaxed);
  std::atomic_ref(page_->second).store(end, std::memory_order_relaxed);
}

}  // namespace nessie::service
