// SPDX-License-Identifier: BSD-3-Clause
#include <nessie/result.hpp>

#include <fmt/core.h>

const char *nessie_code_name(int code) {
  switch (code) {
#define NESSIE_CODE_ENTRY(name, number, result, next) \
  case number: return #name;
    NESSIE_CODES(NESSIE_CODE_ENTRY)
#undef NESSIE_CODE_ENTRY
    default: return "UNKNOWN";
  }
}

const char *nessie_code_advice(int code) {
  switch (code) {
#define NESSIE_CODE_ENTRY(name, number, result, next) \
  case number: return next;
    NESSIE_CODES(NESSIE_CODE_ENTRY)
#undef NESSIE_CODE_ENTRY
    default: return "a code of a later version; see its message";
  }
}

namespace nessie {

std::string Error::to_string() const {
  auto text = fmt::format("{}: {}", nessie_code_name(static_cast<int>(code)), message);
  if (cause != 0) text += fmt::format(" (cause {})", cause);
  return text;
}

}  // namespace nessie
