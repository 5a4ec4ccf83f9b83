// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/observe/tracer.hpp>

#include <base/credential.hpp>
#include <base/file.hpp>
#include <base/host.hpp>
#include <base/log.hpp>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

namespace nssi {

using nessie::Code;
using nessie::Deadline;
using nessie::Error;
using nessie::Result;

namespace {

constexpr std::size_t kFlushBytes = 64 << 10;
constexpr std::chrono::milliseconds kLongestHeld{50};
constexpr std::uint64_t kRowsOfRuntime = 1 << 20, kRowsOfKind = 1 << 19;

/// Written as microseconds. Without a floating-point number in between, which would cost most of the time.
struct Microseconds {
  std::int64_t whole;
  int thousandths;
};
Microseconds microseconds(Clock::duration time) {
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
  return {ns / 1000, static_cast<int>(ns % 1000)};
}
Microseconds microseconds(Clock::time_point time) { return microseconds(time.time_since_epoch()); }

/// For between quotation marks in JSON.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) result += c;
  }
  return result;
}

/// What has to be added to the monotonic clock to get the time of day.
double time_of_day_us() {
  const auto day = std::chrono::system_clock::now().time_since_epoch();
  const auto now = Clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(day - now).count();
}

Error cannot_write(const std::string &path) {
  return {Code::kIo,
          fmt::format("nssi.trace: {} cannot be written: {}; name a folder that can", path, std::strerror(errno)),
          nessie::Scope::kOperation, errno};
}

}  // namespace

Result<std::unique_ptr<Tracer>> Tracer::open(const std::string &folder, std::uint64_t every) {
  static std::atomic<std::uint64_t> runtimes{0};
  if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) return cannot_write(folder);
  const auto path = fmt::format("{}/{}-{}.trace.json", folder, nessie::host_name(), ::getpid());
  int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_CREAT | O_EXCL, 0666);
  const bool is_new = fd >= 0;
  if (!is_new && errno == EEXIST) fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0) return cannot_write(path);
  std::unique_ptr<Tracer> tracer(new Tracer(fd, every, kRowsOfRuntime * runtimes.fetch_add(1)));
  if (is_new) tracer->write_head();
  return tracer;
}

Tracer::Tracer(int fd, std::uint64_t every, std::uint64_t first_row)
    : fd_(fd),
      pid_(::getpid()),
      every_(every),
      first_row_(first_row),
      ids_(nessie::random_u64() & ~std::uint64_t{0xFFFFFFFF}) {}

Tracer::~Tracer() {
  flush();
  ::close(fd_);
}

void Tracer::write_head() {
  const auto host = escaped(nessie::host_name());
  const auto program = escaped(nessie::first_line_of("/proc/self/comm"));
  const auto boot = escaped(nessie::boot_id());
  buffer_ = "[\n";
  buffer_ += fmt::format(R"({{"name":"process_name","ph":"M","pid":{0},"args":{{"name":"{1} {0} on {2}"}}}},)", pid_,
                         program, host);
  buffer_ += '\n';
  buffer_ +=
      fmt::format(R"({{"name":"nessie_clock","ph":"M","pid":{},"args":{{"host":"{}","boot":"{}",)", pid_, host, boot);
  buffer_ += fmt::format(R"("time_of_day_us":{:.3f}}}}},)", time_of_day_us());
  buffer_ += '\n';
  flush();
}

std::uint64_t Tracer::row(RowKind kind, std::size_t number) {
  const bool is_calls = kind == RowKind::kCalls;
  const auto row = first_row_ + (is_calls ? 0 : kRowsOfKind) + number % kRowsOfKind + 1;
  if (named_rows_.insert(row).second) {
    buffer_ += fmt::format(R"({{"name":"thread_name","ph":"M","pid":{},"tid":{},"args":{{"name":"{} {}"}}}},)", pid_,
                           row, is_calls ? "calls" : "requests", number);
    added();
  }
  return row;
}

void Tracer::write(std::uint64_t row, const TraceContext &here, const Span &span) {
  const auto from = microseconds(span.from), time = microseconds(span.to - span.from);
  fmt::format_to(std::back_inserter(buffer_),
                 R"({{"name":"{}","cat":"{}","ph":"X","pid":{},"tid":{},"ts":{}.{:03},"dur":{}.{:03},)"
                 R"("args":{{"trace":"{:016x}","span":"{:016x}","parent":"{:016x}")",
                 escaped(span.name), span.category, pid_, row, from.whole, from.thousandths, time.whole,
                 time.thousandths, here.trace, here.span, span.parent.span);
  if (span.bytes >= 0) fmt::format_to(std::back_inserter(buffer_), R"(,"bytes":{})", span.bytes);
  if (!span.error.empty()) fmt::format_to(std::back_inserter(buffer_), R"(,"error":"{}")", span.error);
  buffer_ += "}},";
  added();
}

void Tracer::begin_arrow(std::string_view name, std::uint64_t id, std::uint64_t row, Clock::time_point at) {
  write_arrow(name, R"("s")", id, row, at);
}
void Tracer::end_arrow(std::string_view name, std::uint64_t id, std::uint64_t row, Clock::time_point at) {
  write_arrow(name, R"("f","bp":"e")", id, row, at);
}
void Tracer::write_arrow(std::string_view name, std::string_view end, std::uint64_t id, std::uint64_t row,
                         Clock::time_point at) {
  const auto time = microseconds(at);
  fmt::format_to(std::back_inserter(buffer_),
                 R"({{"name":"{}","cat":"flow","ph":{},"id":"{:016x}","pid":{},"tid":{},"ts":{}.{:03}}},)", name, end,
                 id, pid_, row, time.whole, time.thousandths);
  added();
}

void Tracer::added() {
  buffer_ += '\n';
  if (oldest_ == Clock::time_point{}) oldest_ = coarse_now();
  if (buffer_.size() >= kFlushBytes) flush();
}

Deadline Tracer::next_flush() const {
  return buffer_.empty() ? Deadline::never() : Deadline::at(oldest_ + kLongestHeld);
}

/// Whole events, in one write: other runtimes of this process append to the same file.
void Tracer::flush() {
  oldest_ = {};
  if (buffer_.empty()) return;
  const auto wrote = is_broken_ ? static_cast<ssize_t>(buffer_.size()) : ::write(fd_, buffer_.data(), buffer_.size());
  if (wrote != static_cast<ssize_t>(buffer_.size())) {
    is_broken_ = true;
    nessie::log::warning("the trace ends here, because its file cannot be written any more: {}", std::strerror(errno));
  }
  buffer_.clear();
}

}  // namespace nssi
