// SPDX-License-Identifier: BSD-3-Clause
#include "disk.hpp"

#include "page_aligned.hpp"

#include <base/clock.hpp>
#include <base/fd.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

namespace bench {
namespace {

using nessie::Code;
using nessie::Error;
using nessie::Result;

constexpr std::size_t kBlockBytes = 2 << 20;

/// A file that goes with us.
class DirectFile {
 public:
  explicit DirectFile(const std::string &folder)
      : path_(folder + "/bandwidth"),
        file_(::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_DIRECT | O_CLOEXEC, 0600)) {}
  ~DirectFile() { ::unlink(path_.c_str()); }
  DirectFile(const DirectFile &) = delete;

  Result<double> write(std::uint64_t size_bytes) {
    if (!file_) return failed("cannot write past the cache: ");
    const auto begun = nessie::Clock::now();
    for (std::uint64_t at = 0; at < size_bytes; at += kBlockBytes)
      if (::pwrite(file_.get(), block_.data(), kBlockBytes, static_cast<off_t>(at)) != kBlock)
        return failed("cannot write to ");
    if (::fdatasync(file_.get()) != 0) return failed("cannot sync ");
    return seconds_since(begun);
  }
  Result<double> read(std::uint64_t size_bytes) {
    const auto begun = nessie::Clock::now();
    for (std::uint64_t at = 0; at < size_bytes; at += kBlockBytes)
      if (::pread(file_.get(), block_.data(), kBlockBytes, static_cast<off_t>(at)) != kBlock)
        return failed("cannot read ");
    return seconds_since(begun);
  }

 private:
  static constexpr auto kBlock = static_cast<ssize_t>(kBlockBytes);
  static double seconds_since(nessie::Clock::time_point begun) {
    return std::chrono::duration<double>(nessie::Clock::now() - begun).count();
  }
  Error failed(const char *what) const { return {Code::kIo, what + path_, {}, errno}; }

  std::string path_;
  nessie::Fd file_;
  PageAligned<std::byte> block_ = PageAligned<std::byte>(kBlockBytes);
};

}  // namespace

Result<double> write_to_disk(const std::string &folder, std::uint64_t size_bytes) {
  return DirectFile(folder).write(size_bytes);
}

Result<double> read_from_disk(const std::string &folder, std::uint64_t size_bytes) {
  DirectFile file(folder);
  if (auto written = file.write(size_bytes); !written) return written;
  return file.read(size_bytes);
}

}  // namespace bench
