// SPDX-License-Identifier: BSD-3-Clause
#include <service/log/format.hpp>
#include <service/log/reader.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace nessie::service {
namespace {

/// Of one read.
constexpr std::size_t kPieceBytes = std::size_t{4} << 20;
/// In front of it, what is left of the piece before: a block that lies in both is then in one piece.
constexpr std::size_t kFrontBytes = log_format::kMostBlockBytes;

}  // namespace

struct LogReader::Window {
  Pages memory = allocate_pages(kFrontBytes + kPieceBytes);
  Lsn begin = 0;
  std::size_t kept = 0, read = 0;  ///< bytes in front, and behind them

  Lsn end() const { return begin + kept + read; }
  std::span<const std::byte> from(Lsn at) const {
    return {memory.get() + kFrontBytes - kept + (at - begin), static_cast<std::size_t>(end() - at)};
  }
  Status fill(LogStore &store, Lsn at, std::size_t size_bytes);
  void keep(std::span<const std::byte> front) {
    kept = front.size();
    begin -= kept;
    if (kept > 0) std::memcpy(memory.get() + kFrontBytes - kept, front.data(), kept);
  }
};

namespace {

bool is_fault(const Error &error) { return error.code == Code::kIo && error.cause == EIO; }

/// Page by page: those that cannot be read are zeros.
Result<std::size_t> read_around_faults(LogStore &store, Lsn at, std::span<std::byte> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const auto page = into.subspan(done, std::min(kLogAlignment, into.size() - done));
    auto got = store.read(at + done, page);
    if (!got.ok() && !is_fault(got.error())) return got;
    if (!got.ok()) std::ranges::fill(page, std::byte{0});
    done += got.ok() ? *got : page.size();
    if (got.ok() && *got < page.size()) break;
  }
  return done;
}

}  // namespace

Status LogReader::Window::fill(LogStore &store, Lsn at, std::size_t size_bytes) {
  begin = at;
  kept = read = 0;
  const std::span into(memory.get() + kFrontBytes, size_bytes);
  auto got = store.read(at, into);
  if (!got.ok() && is_fault(got.error())) got = read_around_faults(store, at, into);
  if (!got.ok()) return got.error();
  read = *got / kLogAlignment * kLogAlignment;
  return {};
}

/// A read that is under way; whoever reads may be gone when it ends.
struct LogReader::Ahead {
  Ahead(nssi::Runtime &runtime, std::shared_ptr<Window> its_window, Lsn position)
      : window(std::move(its_window)), at(position), ended(runtime) {}
  const std::shared_ptr<Window> window;
  const Lsn at;
  Status status;
  nssi::Event ended;
};

LogReader::LogReader(nssi::Runtime &runtime, std::shared_ptr<LogStore> store, Way way)
    : runtime_(runtime), store_(std::move(store)), way_(way) {}

LogReader::~LogReader() {
  if (ahead_) (void)ahead_->ended.wait();
}

std::size_t LogReader::memory_bytes() { return 2 * (kFrontBytes + kPieceBytes); }

Result<std::span<const std::byte>> LogReader::view(Lsn at, std::size_t size_bytes) {
  if (!window_ || at < window_->begin || at > window_->end())
    if (auto status = go_to(at, size_bytes); !status.ok()) return status.error();
  while (window_->end() < at + size_bytes) {
    const auto before = window_->end();
    if (auto status = go_on(at); !status.ok()) return status.error();
    if (window_->end() == before) break;
  }
  return window_->from(at);
}

Status LogReader::go_to(Lsn at, std::size_t size_bytes) {
  if (const auto ahead = std::exchange(ahead_, nullptr); ahead && ahead->ended.wait().ok()) spare_ = ahead->window;
  if (!window_) window_ = std::make_shared<Window>();
  if (!spare_) spare_ = std::make_shared<Window>();
  if (!window_->memory || !spare_->memory)
    return Error{Code::kNoMemory, "there is no memory to read a log with: give the process more, or fewer pools"};
  piece_bytes_ = way_ == Way::kAhead ? kPieceBytes : log_format::round_up(size_bytes, kLogAlignment);
  if (auto status = window_->fill(*store_, at, piece_bytes_); !status.ok()) return status;
  start_ahead();
  return {};
}

/// A window that holds what lies from `at` to the end of this one, and more.
Status LogReader::go_on(Lsn at) {
  auto next = next_window(window_->end());
  if (!next.ok()) return next.error();
  (*next)->keep(window_->from(at));
  spare_ = std::exchange(window_, *next);
  start_ahead();
  return {};
}

Result<std::shared_ptr<LogReader::Window>> LogReader::next_window(Lsn at) {
  if (const auto ahead = std::exchange(ahead_, nullptr); ahead) {
    if (auto waited = ahead->ended.wait(); !waited.ok()) return waited.error();
    if (!ahead->status.ok()) return ahead->status.error();
    return ahead->window;
  }
  auto window = std::exchange(spare_, nullptr);
  piece_bytes_ = std::min(2 * piece_bytes_, kPieceBytes);
  auto status = window->fill(*store_, at, piece_bytes_);
  if (status.ok()) return window;
  spare_ = std::move(window);
  return status.error();
}

void LogReader::start_ahead() {
  if (way_ != Way::kAhead || window_->read < kPieceBytes) return;
  ahead_ = std::make_shared<Ahead>(runtime_, std::exchange(spare_, nullptr), window_->end());
  runtime_.spawn([ahead = ahead_, store = store_] {
    ahead->status = ahead->window->fill(*store, ahead->at, kPieceBytes);
    ahead->ended.set();
  });
}

}  // namespace nessie::service
