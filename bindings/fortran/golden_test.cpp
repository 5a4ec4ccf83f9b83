// SPDX-License-Identifier: BSD-3-Clause
// The Fortran that is made of golden.x, and the table of codes.
#include "xdr/idl/golden_memory.h"
#include "xdr/idl/golden_suite.hpp"

#include <nessie/codes.h>

#include <fstream>
#include <regex>
#include <string>

extern "C" std::int64_t golden_fortran_convert(std::int32_t type, const void *in, std::int64_t in_bytes, void *out,
                                               std::int64_t out_bytes);

namespace {

using golden_suite::Bytes;
using golden_suite::Golden;

/// As golden_convert.f90 numbers them, from 0.
constexpr std::string_view kTypes[] = {"everything", "node",    "holder", "numbers", "aliases", "rest",  "tree",
                                       "item",       "offsets", "choice", "title",   "digest",  "number"};

/// What golden_fortran_convert() returns.
std::int64_t convert(const char *type, const Bytes &bytes, Bytes &made) {
  const auto number = static_cast<std::int32_t>(std::ranges::find(kTypes, type) - std::begin(kTypes));
  made.resize(bytes.size() + 64);
  const auto *in = bytes.empty() ? made.data() : bytes.data();  // Fortran's arrays are somewhere, also empty ones
  return golden_fortran_convert(number, in, static_cast<std::int64_t>(bytes.size()), made.data(),
                                static_cast<std::int64_t>(made.size()));
}

std::optional<Bytes> convert(const char *type, const Bytes &bytes) {
  Bytes made;
  const auto size = convert(type, bytes, made);
  EXPECT_NE(size, -2) << "what was decoded cannot be encoded";
  if (size < 0) return std::nullopt;
  made.resize(static_cast<std::size_t>(size));
  return made;
}

INSTANTIATE_TEST_SUITE_P(Idl, Golden, testing::Values(golden_suite::Codec{"InFortran", convert}),
                         [](const auto &info) { return info.param.name; });

/// Whether the value makes more allocations than so many; when the next one fails, it is refused.
bool allocates_after(long allocations, const char *type, const Bytes &bytes) {
  Bytes made;
  golden_fail_once_after(allocations);
  const auto size = convert(type, bytes, made);
  const bool has_failed = golden_has_failed() != 0;
  golden_fail_after(-1);
  EXPECT_TRUE(!has_failed || size < 0) << type << " after " << allocations;
  return has_failed;
}

/// Has each allocation that the value makes fail; returns how many these are.
unsigned fail_each(const char *type, const Bytes &bytes) {
  long allocations = 0;
  while (allocates_after(allocations, type, bytes)) ++allocations;
  return static_cast<unsigned>(allocations);
}

/// But lists of several: gfortran does not ask whether there is memory when it copies their elements.
TEST(Fortran, WithoutMemory_ValuesAreRefused_AndTheProgramGoesOn) {
  using golden_suite::random_bytes;
  using golden_suite::words;
  unsigned failed = 0;
  for (unsigned seed = 1; seed <= 50; ++seed) {
    failed += fail_each("everything", random_bytes<golden::everything>(seed));
    failed += fail_each("numbers", random_bytes<golden::numbers>(seed));
    if (const auto bytes = random_bytes<golden::rest>(seed); !bytes.empty()) failed += fail_each("rest", bytes);
  }
  EXPECT_GT(failed, 1000u);
  EXPECT_EQ(fail_each("holder", words({1, 7, 0, 0, 0, 0xffffffff, 7, 0, 0, 7, 0})), 3u)
      << "an arm, an array, the bytes";
  EXPECT_EQ(fail_each("choice", words({1, 0})), 2u) << "no list";
  EXPECT_EQ(fail_each("choice", words({1, 1, 7, 0, 0})), 3u) << "a list of one, and its text";
  EXPECT_EQ(fail_each("item", words({1, 0})), 2u) << "a list of one";
}

TEST(Fortran, HasTheTableOfCodes) {
  std::ifstream file(NESSIE_FORTRAN_MODULE);
  const std::string source(std::istreambuf_iterator<char>(file), {});
#define NESSIE_IN_FORTRAN(name, number, result, advice) \
  EXPECT_TRUE(std::regex_search(source, std::regex("nessie_" #name " = " #number "\\b", std::regex::icase))) << #name;
  NESSIE_CODES(NESSIE_IN_FORTRAN)
#undef NESSIE_IN_FORTRAN
}

}  // namespace
