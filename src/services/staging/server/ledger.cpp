// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/ledger.hpp>

#include <base/config.hpp>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>

namespace staging {

using nessie::Code;
using nessie::Error;

namespace {

constexpr std::array<char, 8> kMagic = {'N', 'E', 'S', 'S', 'L', 'D', 'G', '1'};
constexpr std::size_t kMaxPath = 1024, kMaxName = 256, kMaxDims = 16, kRecordsInStep = 64;
constexpr std::size_t kMostRecords = 1 << 15;
constexpr std::int64_t kMostElements = std::int64_t{1} << 61;  // more is nonsense, and might overflow

struct Head {
  std::array<char, 8> magic;
  std::uint64_t record_bytes;
};

template <std::size_t N> void copy_text(const std::string &text, std::array<char, N> &out) {
  const auto size = std::min(text.size(), N - 1);
  std::memcpy(out.data(), text.data(), size);
  out[size] = 0;
}

template <std::size_t N> std::string read_text(const std::array<char, N> &text) {
  return {text.data(), ::strnlen(text.data(), N)};
}

}  // namespace

struct Ledger::Record {
  std::uint64_t used, is_moving;
  std::array<char, kMaxPath> path;  ///< a longer one is cut
  std::array<char, kMaxName> name;
  std::int64_t element_bytes, is_record, dims;
  std::array<std::int64_t, kMaxDims> shape;
  std::uint64_t acknowledged, in_file, dirty;
  std::int64_t dirty_begin, dirty_end;
};

nessie::Result<std::unique_ptr<Ledger>> Ledger::create(const std::string &path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0)
    return Error{Code::kIo, fmt::format("cannot create the ledger {}: {}", path, std::strerror(errno)), {}, errno};
  std::unique_ptr<Ledger> ledger(new Ledger(fd, path));
  // A server that has mapped the file would be killed by its next store, if it were cut off under it.
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return Error{Code::kExists,
                 fmt::format("another staging server runs and keeps its ledger in {}: give each a folder "
                             "of its own (staging.run_dir)",
                             path)};
  if (::ftruncate(fd, 0) != 0)
    return Error{Code::kIo, fmt::format("cannot empty the ledger {}: {}", path, std::strerror(errno)), {}, errno};
  const auto most = sizeof(Head) + kMostRecords * sizeof(Record);
  void *mapped = ::mmap(nullptr, most, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED)
    return Error{Code::kIo, fmt::format("cannot map the ledger {}: {}", path, std::strerror(errno)), {}, errno};
  ledger->mapped_ = static_cast<std::byte *>(mapped);
  if (!ledger->grow()) return Error{Code::kIo, fmt::format("no room for the ledger {}", path), {}, ENOSPC};
  const Head head{kMagic, sizeof(Record)};
  std::memcpy(ledger->mapped_, &head, sizeof head);
  return ledger;
}

Ledger::~Ledger() {
  if (mapped_ != nullptr) ::munmap(mapped_, sizeof(Head) + kMostRecords * sizeof(Record));
  ::close(fd_);
}

// The file's blocks are taken before they are written: on a full disk a store into a hole would kill the process.
bool Ledger::grow() {
  if (is_full_ || records_ + kRecordsInStep > kMostRecords) return false;
  const auto size = sizeof(Head) + (records_ + kRecordsInStep) * sizeof(Record);
  is_full_ = ::posix_fallocate(fd_, 0, static_cast<off_t>(size)) != 0;
  if (is_full_) return false;
  for (auto slot = records_ + kRecordsInStep; slot > records_; --slot) idle_.push_back(slot);
  records_ += kRecordsInStep;
  return true;
}

Ledger::Record &Ledger::record(Slot slot) {
  return *reinterpret_cast<Record *>(mapped_ + sizeof(Head) + (slot - 1) * sizeof(Record));
}

Ledger::Slot Ledger::add(const std::string &path, const Variable &variable) {
  if (idle_.empty() && !grow()) return 0;
  const auto slot = idle_.back();
  idle_.pop_back();
  auto &r = record(slot);
  r = Record{};
  copy_text(path, r.path);
  copy_text(variable.name, r.name);
  r.element_bytes = variable.element_bytes;
  r.is_record = variable.is_record ? 1 : 0;
  r.dims = static_cast<std::int64_t>(std::min(variable.dims(), kMaxDims));
  std::copy_n(variable.shape.begin(), r.dims, r.shape.begin());
  r.used = 1;
  return slot;
}

void Ledger::remove(Slot slot) {
  if (slot == 0) return;
  record(slot).used = 0;
  idle_.push_back(slot);
  is_full_ = false;
}

void Ledger::update(Slot slot, const State &state) {
  if (slot == 0) return;
  auto &r = record(slot);
  r.acknowledged = state.acknowledged;
  r.in_file = state.in_file;
  r.dirty = state.dirty;
  r.dirty_begin = state.dirty_bounds.begin;
  r.dirty_end = state.dirty_bounds.end;
}

Ledger::Moving::Moving(Ledger *ledger, const std::string &path) : ledger_(ledger) {
  if (ledger_ == nullptr) return;
  slot_ = ledger_->add(path, {});
  if (slot_ != 0) ledger_->record(slot_).is_moving = 1;
}

Ledger::Moving::~Moving() {
  if (ledger_ != nullptr) ledger_->remove(slot_);
}

namespace {

/// The variable of a record, if its numbers make sense.
std::optional<Variable> variable_of(std::int64_t dims, std::int64_t is_record,
                                    const std::array<std::int64_t, kMaxDims> &shape) {
  Variable variable;
  std::int64_t elements = 1;
  if (dims < 0 || dims > static_cast<std::int64_t>(kMaxDims)) return std::nullopt;
  variable.is_record = is_record != 0 && dims > 0;
  for (std::int64_t d = 0; d < dims; ++d) {
    const auto size = shape[static_cast<std::size_t>(d)];
    const bool free = d == 0 && variable.is_record;
    if (!free && (size <= 0 || __builtin_mul_overflow(elements, size, &elements) || elements > kMostElements))
      return std::nullopt;
    variable.shape.push_back(size);
  }
  return variable;
}

std::vector<std::string> ranges(const std::string &name, const std::optional<Variable> &variable, Interval dirty) {
  const bool sane = variable && dirty.begin >= 0 && dirty.end > dirty.begin && dirty.end <= kMostElements &&
                    (variable->is_record || dirty.end <= variable->extent_elements());
  if (!sane) return {name};
  std::vector<std::string> texts;
  for (const auto &box : boxes_of(*variable, dirty)) texts.push_back(describe(name, box));
  return texts;
}

nessie::Result<std::vector<std::byte>> read_whole(const std::string &path) {
  struct stat status {};
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return Error{Code::kNotFound, fmt::format("cannot read the ledger {}: {}", path, std::strerror(errno)), {}, errno};
  std::vector<std::byte> bytes(
      ::fstat(fd, &status) == 0 && status.st_size > 0 ? static_cast<std::size_t>(status.st_size) : 0);
  const auto got = ::pread(fd, bytes.data(), bytes.size(), 0);
  ::close(fd);
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

}  // namespace

nessie::Result<std::vector<FileReport>> read_ledger(const std::string &path) {
  auto bytes = read_whole(path);
  if (!bytes.ok()) return bytes.error();
  Head head{};
  if (bytes->size() >= sizeof head) std::memcpy(&head, bytes->data(), sizeof head);
  if (std::ranges::all_of(*bytes, [](std::byte byte) { return byte == std::byte{0}; }))
    return std::vector<FileReport>();  // its server died as it made it, and had promised nothing
  if (head.magic != kMagic || head.record_bytes != sizeof(Ledger::Record))
    return Error{Code::kBadMessage, fmt::format("{} is not a ledger of this version of nessied", path)};
  std::map<std::string, FileReport> files;
  for (auto at = sizeof head; at + sizeof(Ledger::Record) <= bytes->size(); at += sizeof(Ledger::Record)) {
    Ledger::Record r;
    std::memcpy(&r, bytes->data() + at, sizeof r);
    if (r.used != 1 || (r.dirty == 0 && r.is_moving == 0)) continue;
    auto &file = files[read_text(r.path)];
    file.path = read_text(r.path);
    if (r.is_moving != 0) {
      file.message =
          "the staging server died while the definitions of this file changed, which moves its data: any of it may be "
          "damaged";
      continue;
    }
    if (file.message.empty()) file.message = "the staging server died before these data were in the file";
    file.bytes_acknowledged += r.acknowledged;
    file.bytes_in_file += r.in_file;
    const auto texts =
        ranges(read_text(r.name), variable_of(r.dims, r.is_record, r.shape), {r.dirty_begin, r.dirty_end});
    file.missing.insert(file.missing.end(), texts.begin(), texts.end());
  }
  std::vector<FileReport> reports;
  for (auto &[name, report] : files) reports.push_back(std::move(report));
  return reports;
}

}  // namespace staging
