// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/board.hpp>

#include <base/fd.hpp>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>

namespace staging {

using nessie::Code;
using nessie::Error;

namespace {

constexpr std::chrono::milliseconds kLeastPatience{1000}, kMostPatience{24 * 3600 * 1000};
constexpr std::uint32_t kNoPlace = NESSIE_BOARD_PLACES;

template <class T> std::atomic_ref<T> shared(T &word) { return std::atomic_ref<T>(word); }

Error cannot_make(const std::string &path) {
  return {Code::kIo, fmt::format("cannot make {}: {}", path, std::strerror(errno)), nessie::Scope::kProcess, errno};
}

/// Takes all of the room at once: where it is missing later, whoever touches the memory is killed. Null: errno says
/// why.
void *map_zeros(int file, std::size_t size) {
  if (::fchmod(file, 0644) != 0) return nullptr;
  if (const int cause = ::posix_fallocate(file, 0, static_cast<off_t>(size)); cause != 0) return errno = cause, nullptr;
  void *mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return mapped == MAP_FAILED ? nullptr : mapped;
}

void discard(const std::string &path) {
  const int cause = errno;
  ::unlink(path.c_str());
  errno = cause;
}

/// A new file of zeros, mapped. Null: there is none, and errno says why.
template <class T> T *make(const std::string &path) {
  const nessie::Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return nullptr;
  void *mapped = map_zeros(file.get(), sizeof(T));
  if (mapped == nullptr) discard(path);
  return static_cast<T *>(mapped);
}

/// One that is there, mapped. Null: there is none.
template <class T> T *find(const std::string &path) {
  const nessie::Fd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || status.st_size != sizeof(T)) return nullptr;
  void *mapped = ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<T *>(mapped);
}

/// Both files of a board, mapped. Null: they are not there.
struct Files {
  nessie_board *board = nullptr;
  nessie_board_writes *writes = nullptr;

  void unmap() const {
    if (board != nullptr) ::munmap(board, sizeof *board);
    if (writes != nullptr) ::munmap(writes, sizeof *writes);
  }
};

nessie::Result<Files> make_files(const std::string &path) {
  const auto writes_path = path + NESSIE_BOARD_COUNTS_SUFFIX;
  Files made{nullptr, make<nessie_board_writes>(writes_path)};
  if (made.writes == nullptr) return cannot_make(writes_path);
  made.board = make<nessie_board>(path);
  if (made.board != nullptr) return made;
  auto error = cannot_make(path);
  made.unmap();
  discard(writes_path);
  return error;
}

/// Nothing: there is no board.
std::optional<Files> find_files(const std::string &path) {
  const Files found{find<nessie_board>(path), find<nessie_board_writes>(path + NESSIE_BOARD_COUNTS_SUFFIX)};
  if (found.board != nullptr && found.writes != nullptr && found.board->magic == NESSIE_BOARD_MAGIC) return found;
  found.unmap();
  return std::nullopt;
}

/// 0: not known.
std::uint64_t own_network() {
  struct stat status {};
  return ::stat("/proc/self/ns/net", &status) == 0 ? status.st_ino : 0;
}

}  // namespace

nessie::Status Board::prepare(const std::string &path) {
  const auto made = make_files(path);
  if (!made.ok()) return made.error();
  shared(made->board->magic).store(NESSIE_BOARD_MAGIC, std::memory_order_release);
  made->unmap();
  return {};
}

nessie::Result<std::unique_ptr<Board>> Board::create(const std::string &path, const std::string &door,
                                                     std::chrono::milliseconds patience) {
  const auto prepared = find_files(path);
  if (prepared && prepared->board->door[0] == '\0') return put_up(prepared->board, prepared->writes, door, patience);
  if (prepared) prepared->unmap();
  const auto made = make_files(path);
  if (!made.ok()) return made.error();
  return put_up(made->board, made->writes, door, patience);
}

nessie::Result<std::unique_ptr<Board>> Board::take_over(const std::string &path, const std::string &door,
                                                        std::chrono::milliseconds patience) {
  const auto left = find_files(path);
  if (!left) return create(path, door, patience);
  auto board = put_up(left->board, left->writes, door, patience);
  board->take_over_places();
  return board;
}

std::unique_ptr<Board> Board::put_up(nessie_board *board, nessie_board_writes *writes, const std::string &door,
                                     std::chrono::milliseconds patience) {
  board->network = own_network();
  board->patience_ms = static_cast<std::uint64_t>(std::clamp(patience, kLeastPatience, kMostPatience).count());
  std::ranges::fill(board->door, '\0');
  door.copy(board->door, sizeof board->door - 1);
  shared(board->magic).store(NESSIE_BOARD_MAGIC, std::memory_order_release);
  return std::unique_ptr<Board>(new Board(board, writes));
}

/// The dead one may have been killed between any two of its stores. What somebody has read from it is to be read again.
void Board::take_over_places() {
  const auto kept = board_->kept;
  std::uint32_t files = 0;
  const auto add = [&](std::uint32_t place) { predecessors_.emplace_back(this, place, files++ < kept); };
  for (std::uint32_t place = 0; place < kNoPlace; ++place)
    if (board_->places[place].inode != 0) add(place);
  for (std::uint32_t left = board_->overflow; left > 0; --left) add(kNoPlace);
  shared(board_->kept).store(std::min(files, kept));
  shared(board_->files).store(files);
  for (auto &count : writes_->counts) shared(count).fetch_add(1);
}

void Board::forget_predecessor() {
  predecessors_.clear();
  auto used = board_->used;
  while (used > 0 && board_->places[used - 1].inode == 0) --used;
  shared(board_->used).store(used);
}

Board::~Board() {
  forget_predecessor();
  std::ranges::fill(board_->door, '\0');  // the next server at this path may have it
  ::munmap(board_, sizeof *board_);
  ::munmap(writes_, sizeof *writes_);
}

Board::Entry Board::enter(const FileIdentity &identity, bool is_kept) {
  std::uint32_t place = 0;
  while (place < kNoPlace && board_->places[place].inode != 0) ++place;
  if (place == kNoPlace) {
    shared(board_->overflow).fetch_add(1);
  } else {
    shared(board_->places[place].device).store(identity.device);
    shared(board_->places[place].inode).store(identity.inode, std::memory_order_release);
    if (place >= board_->used) shared(board_->used).store(place + 1);
  }
  if (is_kept) shared(board_->kept).fetch_add(1);
  shared(board_->files).fetch_add(1);
  return {this, place, is_kept};
}

void Board::note_write(const FileIdentity &identity) {
  shared(writes_->counts[nessie_board_count_of(identity.device, identity.inode)]).fetch_add(1);
}

void Board::note_native() { shared(board_->natives).fetch_add(1); }

void Board::note_failed() { shared(board_->failed).fetch_add(1); }

bool Board::was_written_past(const FileIdentity &identity) const {
  const auto word = nessie_board_word_of(identity.device, identity.inode);
  const auto bit = nessie_board_bit_of(identity.device, identity.inode);
  return ((shared(writes_->opened[word]).load() | shared(writes_->beside[word]).load()) & bit) != 0;
}

void Board::note_beside(const FileIdentity &identity) {
  shared(writes_->beside[nessie_board_word_of(identity.device, identity.inode)])
      .fetch_or(nessie_board_bit_of(identity.device, identity.inode));
}

void Board::show_life() { shared(board_->alive).fetch_add(1); }

void Board::leave(std::uint32_t place, bool is_kept) {
  if (place == kNoPlace)
    shared(board_->overflow).fetch_sub(1);
  else
    shared(board_->places[place].inode).store(0);
  if (is_kept) shared(board_->kept).fetch_sub(1);
  shared(board_->files).fetch_sub(1);
}

}  // namespace staging
