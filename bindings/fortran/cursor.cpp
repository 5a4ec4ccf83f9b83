// SPDX-License-Identifier: BSD-3-Clause
// What nessie_xdr.F90 is made on: a place in bytes that are read or written, and numbers to and from it. The rules, and
// their sentences, are those of <xdr/codec.hpp>. Layouts of the structs: the derived types in nessie_xdr.F90.
#include <nessie/copy.hpp>
#include <xdr/swap.hpp>
#include <xdr/traits.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace {

constexpr std::int32_t kMaxDepth = 64;
constexpr std::uint64_t kMostElements = 0xffffffff;

/// By the numbers xdr_bad_enum, … in nessie_xdr.F90, from 1.
constexpr const char *kFaults[] = {
    "an enum has a value without a name",     "a union has no such arm",
    "a union holds another arm than it says", "there is not memory enough for the value",
    "bytes follow the end of the value",      "a list that must have an element has none",
};

struct Sizer {
  std::int64_t size_bytes;
  const char *fault;
};

struct Writer {
  std::byte *at, *end;
};

struct Reader {
  const std::byte *begin, *at, *end;
  const char *fault;
  std::int64_t fault_offset;
  std::int32_t depth;
};

std::size_t left(const Reader &reader) { return static_cast<std::size_t>(reader.end - reader.at); }

void fail(Reader &reader, const char *fault) {
  if (reader.fault != nullptr) return;
  reader.fault = fault;
  reader.fault_offset = reader.at - reader.begin;
  reader.at = reader.end;
}
void fail(Sizer &sizer, const char *fault) {
  if (sizer.fault == nullptr) sizer.fault = fault;
}

/// Null: they do not fit, and nothing is written from here on. What was sized fits; unless somebody changed it since.
std::byte *claim(Writer &writer, std::size_t size) {
  if (static_cast<std::size_t>(writer.end - writer.at) < size) {
    writer.at = writer.end = nullptr;
    return nullptr;
  }
  writer.at += size;
  return writer.at - size;
}
/// Null: the message ends before.
const std::byte *take(Reader &reader, std::size_t size, const char *fault) {
  if (left(reader) < size) {
    fail(reader, fault);
    return nullptr;
  }
  reader.at += size;
  return reader.at - size;
}

template <class T> void put(Writer &writer, T value) {
  const auto word = xdr::detail::to_wire(value);
  if (auto *to = claim(writer, sizeof word); to != nullptr) std::memcpy(to, &word, sizeof word);
}
template <class T> T get(Reader &reader) {
  typename xdr::detail::WordOf<T>::type word;
  const auto *from = take(reader, sizeof word, "the message ends within a number");
  if (from == nullptr) return T{};
  std::memcpy(&word, from, sizeof word);
  return xdr::detail::from_wire<T>(word);
}

/// Of numbers of `bytes` each.
const xdr::SwapPattern &pattern_of(std::int32_t bytes) {
  return bytes == 4 ? xdr::kWordsPattern : xdr::kDoubleWordsPattern;
}
void put_swapped(Writer &writer, const void *from, std::size_t size, const xdr::SwapPattern &pattern) {
  if (auto *to = claim(writer, size); to != nullptr) xdr::swap_copy(to, from, size, pattern);
}
void get_swapped(Reader &reader, void *to, std::size_t size, const xdr::SwapPattern &pattern) {
  const auto *from = take(reader, size, "the message ends within a number");
  if (from != nullptr)
    xdr::swap_copy(to, from, size, pattern);
  else
    std::memset(to, 0, size);
}

/// The bytes behind them are zero, and taken.
bool take_padding(Reader &reader, std::size_t size) {
  const auto padding = xdr::detail::padding(size);
  const auto *from = take(reader, padding, "the message ends within bytes");
  if (from == nullptr) return false;
  if (std::all_of(from, from + padding, [](std::byte each) { return each == std::byte{0}; })) return true;
  fail(reader, "padding is not zero");
  return false;
}

}  // namespace

extern "C" {

// --- sizes ---------------------------------------------------------------------------------------------------------------

void nessie_fortran_size_fail(Sizer *sizer, std::int32_t fault) { fail(*sizer, kFaults[fault - 1]); }

/// A count of elements that have `element_bytes` each; 0: they are added one by one.
void nessie_fortran_size_count(Sizer *sizer, std::int64_t count, std::int64_t most, std::int64_t element_bytes) {
  sizer->size_bytes += 4 + count * element_bytes;
  if (count > most || static_cast<std::uint64_t>(count) > kMostElements)
    fail(*sizer, "a string or an array is longer than its bound");
}

// --- writing -------------------------------------------------------------------------------------------------------------

void nessie_fortran_put_int(Writer *writer, const std::int32_t *value) { put(*writer, *value); }
void nessie_fortran_put_hyper(Writer *writer, const std::int64_t *value) { put(*writer, *value); }
void nessie_fortran_put_float(Writer *writer, const float *value) { put(*writer, *value); }
void nessie_fortran_put_double(Writer *writer, const double *value) { put(*writer, *value); }
void nessie_fortran_put_numbers(Writer *writer, const void *numbers, std::int64_t count, std::int32_t bytes) {
  put_swapped(*writer, numbers, static_cast<std::size_t>(count * bytes), pattern_of(bytes));
}
/// Structs of numbers, `slots` of 8 bytes each; bit i of `wide`: slot i is one number.
void nessie_fortran_put_structs(Writer *writer, const void *structs, std::int64_t count, std::int32_t slots,
                                std::int32_t wide) {
  const xdr::SwapPattern pattern(static_cast<std::size_t>(slots), static_cast<std::uint32_t>(wide));
  put_swapped(*writer, structs, static_cast<std::size_t>(count * slots) * xdr::SwapPattern::kSlotBytes, pattern);
}
/// And zeros to the next multiple of 4.
void nessie_fortran_put_bytes(Writer *writer, const void *bytes, std::int64_t count) {
  const auto size = static_cast<std::size_t>(count), padding = xdr::detail::padding(size);
  auto *to = claim(*writer, size + padding);
  if (to == nullptr) return;
  nessie::copy_bytes(to, bytes, size);
  std::memset(to + size, 0, padding);
}

// --- reading -------------------------------------------------------------------------------------------------------------

void nessie_fortran_get_fail(Reader *reader, std::int32_t fault) { fail(*reader, kFaults[fault - 1]); }
void nessie_fortran_get_int(Reader *reader, std::int32_t *value) { *value = get<std::int32_t>(*reader); }
void nessie_fortran_get_hyper(Reader *reader, std::int64_t *value) { *value = get<std::int64_t>(*reader); }
void nessie_fortran_get_float(Reader *reader, float *value) { *value = get<float>(*reader); }
void nessie_fortran_get_double(Reader *reader, double *value) { *value = get<double>(*reader); }
/// 0 or 1.
std::int32_t nessie_fortran_get_flag(Reader *reader) {
  const auto word = get<std::uint32_t>(*reader);
  if (word > 1) fail(*reader, "a flag is neither 0 nor 1");
  return word == 1 ? 1 : 0;
}
/// A count whose elements, of `least_bytes` at least, fit into the rest of the message; 0 after a fault.
std::int64_t nessie_fortran_get_count(Reader *reader, std::int64_t most, std::int64_t least_bytes) {
  const auto count = static_cast<std::int64_t>(get<std::uint32_t>(*reader));
  if (count > static_cast<std::int64_t>(left(*reader)) / least_bytes)
    fail(*reader, "a count is larger than the rest of the message");
  else if (count > most)
    fail(*reader, "a string or an array is longer than its bound");
  return reader->fault == nullptr ? count : 0;
}
void nessie_fortran_get_numbers(Reader *reader, void *numbers, std::int64_t count, std::int32_t bytes) {
  get_swapped(*reader, numbers, static_cast<std::size_t>(count * bytes), pattern_of(bytes));
}
void nessie_fortran_get_structs(Reader *reader, void *structs, std::int64_t count, std::int32_t slots,
                                std::int32_t wide) {
  const xdr::SwapPattern pattern(static_cast<std::size_t>(slots), static_cast<std::uint32_t>(wide));
  get_swapped(*reader, structs, static_cast<std::size_t>(count * slots) * xdr::SwapPattern::kSlotBytes, pattern);
}
void nessie_fortran_get_bytes(Reader *reader, void *bytes, std::int64_t count) {
  const auto size = static_cast<std::size_t>(count);
  const auto *from = take(*reader, size, "the message ends within bytes");
  if (from != nullptr && take_padding(*reader, size)) nessie::copy_bytes(bytes, from, size);
}
/// A struct or a union begins. 0: it may not.
std::int32_t nessie_fortran_enter(Reader *reader) {
  if (reader->depth == kMaxDepth) fail(*reader, "structs are nested too deep");
  if (reader->fault != nullptr) return 0;
  ++reader->depth;
  return 1;
}

// --- what went wrong -----------------------------------------------------------------------------------------------------

std::int64_t nessie_fortran_text_size(const char *text) {
  return text == nullptr ? 0 : static_cast<std::int64_t>(std::string_view(text).size());
}
void nessie_fortran_text(const char *text, char *to, std::int64_t size) {
  if (size > 0) std::memcpy(to, text, static_cast<std::size_t>(size));
}

}  // extern "C"
