// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/client/file_reader.hpp>

#include <services/staging/handle.hpp>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

namespace staging {

using nessie::Code;
using nessie::Error;
using nessie::Result;
using nessie::Status;

namespace {

constexpr std::size_t kFirstHeaderBytes = 64 << 10, kMostHeaderBytes = std::size_t{1} << 30;
constexpr std::int64_t kNsPerSecond = 1'000'000'000;

Error was_changed(const std::string &path) {
  return {Code::kNotFound, path + " was changed, or another file has its name, since its program closed it"};
}

}  // namespace

Result<FileReader> FileReader::open(const std::string &path, const FileIdentity &identity, std::int64_t changed_ns) {
  nessie::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file && errno != ENOENT) return Error{Code::kIo, fmt::format("{}: {}", path, std::strerror(errno))};
  if (!file || identity_of(file.get()).inode != identity.inode) return was_changed(path);
  FileReader reader(std::move(file), path, changed_ns);
  if (auto status = reader.read_header(); !status.ok()) return status.error();
  if (auto status = reader.check_unchanged(); !status.ok()) return status.error();
  return reader;
}

Status FileReader::read_header() {
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0 || !S_ISREG(status.st_mode)) return was_changed(path_);
  const auto whole = std::min(static_cast<std::size_t>(status.st_size), kMostHeaderBytes);
  for (auto size = std::min(kFirstHeaderBytes, whole);; size = std::min(4 * size, whole)) {
    std::vector<std::byte> bytes(size);
    if (auto read = read_bytes(0, bytes); !read.ok()) return read;
    auto header = parse_classic_header(bytes);
    if (header.ok()) return header_ = *std::move(header), Status();
    if (header.code() != Code::kOutOfRange || size == whole) return header.error();
  }
}

Status FileReader::check_unchanged() const {
  if (changed_ns_ == 0) return {};
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) return Error{Code::kIo, fmt::format("{}: {}", path_, std::strerror(errno))};
  const auto changed = status.st_ctim.tv_sec * kNsPerSecond + status.st_ctim.tv_nsec;
  return changed == changed_ns_ ? Status() : was_changed(path_);
}

/// Zeros where there is nothing.
Status FileReader::read_bytes(std::uint64_t offset, std::span<std::byte> data) const {
  while (!data.empty()) {
    const auto read = ::pread(file_.get(), data.data(), data.size(), static_cast<off_t>(offset));
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return Error{Code::kIo, fmt::format("{}: {}", path_, std::strerror(errno))};
    if (read == 0) return std::ranges::fill(data, std::byte{0}), Status();
    offset += static_cast<std::uint64_t>(read);
    data = data.subspan(static_cast<std::size_t>(read));
  }
  return {};
}

Status FileReader::read(const Piece &piece, std::span<std::byte> data) const {
  const bool is_there = piece.varid >= 0 && static_cast<std::size_t>(piece.varid) < header_.variables.size();
  const auto *variable = is_there ? &header_.variables[static_cast<std::size_t>(piece.varid)] : nullptr;
  const auto elements = variable != nullptr && piece.stride.empty() ? checked_elements(*variable, piece) : std::nullopt;
  if (!elements || static_cast<std::size_t>(*elements * variable->element_bytes) != data.size())
    return Error{Code::kInvalidArgument, path_ + " has nothing at the place that is asked for"};
  const auto element_bytes = static_cast<std::uint64_t>(variable->element_bytes);
  const auto extent = std::max<std::int64_t>(variable->extent_elements(), 1);
  auto left = data;
  for (RunCursor runs(*variable, piece); !runs.done();) {
    const auto run = runs.run();
    const auto record = variable->is_record ? run.begin / extent : 0;
    const auto end = variable->is_record ? std::min(run.end, (record + 1) * extent) : run.end;
    const auto at = variable->begin + static_cast<std::uint64_t>(record) * header_.record_bytes +
                    static_cast<std::uint64_t>(run.begin - record * extent) * element_bytes;
    const auto size = static_cast<std::size_t>(end - run.begin) * element_bytes;
    if (auto status = read_bytes(at, left.first(size)); !status.ok()) return status;
    left = left.subspan(size);
    runs.consume(end - run.begin);
  }
  swap_elements(data, variable->element_bytes);
  return check_unchanged();
}

}  // namespace staging
