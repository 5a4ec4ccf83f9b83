// SPDX-License-Identifier: BSD-3-Clause
// The Fortran that is made of golden.x, and the table of codes.
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

std::optional<Bytes> convert(const char *type, const Bytes &bytes) {
  const auto number = static_cast<std::int32_t>(std::ranges::find(kTypes, type) - std::begin(kTypes));
  Bytes made(bytes.size() + 64);
  const auto *in = bytes.empty() ? made.data() : bytes.data();  // Fortran's arrays are somewhere, also empty ones
  const auto size = golden_fortran_convert(number, in, static_cast<std::int64_t>(bytes.size()), made.data(),
                                           static_cast<std::int64_t>(made.size()));
  EXPECT_NE(size, -2) << "what was decoded cannot be encoded";
  if (size < 0) return std::nullopt;
  made.resize(static_cast<std::size_t>(size));
  return made;
}

INSTANTIATE_TEST_SUITE_P(Idl, Golden, testing::Values(golden_suite::Codec{"InFortran", convert}),
                         [](const auto &info) { return info.param.name; });

TEST(Fortran, HasTheTableOfCodes) {
  std::ifstream file(NESSIE_FORTRAN_MODULE);
  const std::string source(std::istreambuf_iterator<char>(file), {});
#define NESSIE_IN_FORTRAN(name, number, result, advice) \
  EXPECT_TRUE(std::regex_search(source, std::regex("nessie_" #name " = " #number "\\b", std::regex::icase))) << #name;
  NESSIE_CODES(NESSIE_IN_FORTRAN)
#undef NESSIE_IN_FORTRAN
}

}  // namespace
