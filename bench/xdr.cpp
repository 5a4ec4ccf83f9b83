// SPDX-License-Identifier: BSD-3-Clause
// xdr: arrays of a struct of 16 bytes, of doubles and of ints, encoded and decoded by one thread. memcpy of as many
// bytes shows what memory allows; libtirpc what codecs did so far.
#include "comparison.hpp"
#include "machine.hpp"
#include "page_aligned.hpp"
#include "timing.hpp"
#include "xdr_libtirpc.h"

#include <xdr/codec.hpp>

#include <cstring>

namespace bench {
namespace {

using nessie::Status;

struct Sample {
  std::uint32_t id = 0;
  float weight = 0;
  double value = 0;
  template <class A> void xdr(A &a) { a(id, weight, value); }
};
static_assert(sizeof(Sample) == 16);

constexpr std::uint64_t kSizes[] = {4 << 10, 64 << 10, 1 << 20, 16 << 20};
constexpr std::size_t kCountBytes = 4;

/// What was written to memory is used, for all that the compiler knows.
void use_memory() { asm volatile("" ::: "memory"); }

class Arrays final : public Comparison {
 public:
  Arrays(const Options &options, Report &report) : Comparison(options, report, {"bandwidth_MBps", "MB/s"}) {}

 private:
  Status measure() override;
  void add_ratios() override;
  template <class T> void code(tirpc_kind kind, const std::string &what, std::uint64_t size);
  void decode_new(std::uint64_t size);
  void copy(std::uint64_t size);
  template <class Call> void time(const char *system, const std::string &mode, std::uint64_t size, Call &&call);

  bool failed_ = false;
};

/// `call` returns whether it succeeded.
template <class Call> void Arrays::time(const char *system, const std::string &mode, std::uint64_t size, Call &&call) {
  const int calls = std::max(1, transfers_per_batch(size) / 4);
  const auto us = typical_us(calls, [&](bool) {
    failed_ = !call() || failed_;
    use_memory();
  });
  add(series(system, "memory", mode, size), megabytes_per_s(us, size));
}

template <class T> void Arrays::code(tirpc_kind kind, const std::string &what, std::uint64_t size) {
  PageAligned<T> values(size / sizeof(T));
  PageAligned<std::byte> message(size + kCountBytes);
  const auto count = static_cast<unsigned>(values.size());
  time("nessie", "encode-" + what, size, [&] { return xdr::encode_to(values, message) == message.size(); });
  time("libtirpc", "encode-" + what, size,
       [&] { return tirpc_encode(kind, values.data(), count, message.data(), message.size()); });
  time("nessie", "decode-" + what, size, [&] { return xdr::decode_into(message, values).ok(); });
  time("libtirpc", "decode-" + what, size,
       [&] { return tirpc_decode(kind, message.data(), message.size(), values.data(), count); });
}

/// Into memory that was allocated for it.
void Arrays::decode_new(std::uint64_t size) {
  const auto message = xdr::encode(std::vector<Sample>(size / sizeof(Sample)));
  time("nessie", "decode-structs-new", size, [&] { return xdr::decode<std::vector<Sample>>(message).ok(); });
  time("libtirpc", "decode-structs-new", size,
       [&] { return tirpc_decode_new(TIRPC_STRUCTS, message.data(), message.size()); });
  time("memcpy", "copy-new", size, [&] { return !std::vector(message.begin() + kCountBytes, message.end()).empty(); });
}

void Arrays::copy(std::uint64_t size) {
  PageAligned<std::byte> from(size), to(size);
  time("memcpy", "copy", size, [&] { return std::memcpy(to.data(), from.data(), size) != nullptr; });
}

Status Arrays::measure() {
  for (auto size : kSizes) {
    copy(size);
    code<Sample>(TIRPC_STRUCTS, "structs", size);
    code<double>(TIRPC_DOUBLES, "doubles", size);
    code<std::int32_t>(TIRPC_INTS, "ints", size);
    decode_new(size);
  }
  if (failed_) return nessie::Error{nessie::Code::kInternal, "an array was not encoded or decoded"};
  return {};
}

void Arrays::add_ratios() {
  const auto compare_all = [this](const std::string &mode, const char *copied) {
    for (auto size : kSizes) {
      const auto mine = series("nessie", "memory", mode, size);
      compare(mine, series("memcpy", "memory", copied, size));
      compare(mine, series("libtirpc", "memory", mode, size));
    }
  };
  for (const char *what : {"structs", "doubles", "ints"})
    for (const char *way : {"encode-", "decode-"}) compare_all(std::string(way) + what, "copy");
  compare_all("decode-structs-new", "copy-new");
}

}  // namespace

Status xdr_arrays(const Options &options, Report &report) {
  Pin pin(0);
  return Arrays(options, report).run(options.repetitions(9, 3), "arrays");
}

}  // namespace bench
