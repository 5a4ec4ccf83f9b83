// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/wire/payload.hpp>

#include <fmt/format.h>

namespace nssi {

Status Payload::try_write(std::span<std::byte> at, const char *what) const {
  const auto failed = [what](const char *why) {
    return Error{Code::kInternal, fmt::format("the {} could not be encoded: {}", what, why), nessie::Scope::kService};
  };
  try {
    write(at);
  } catch (const std::exception &e) { return failed(e.what()); } catch (...) {
    return failed("an exception of unknown type");
  }
  return {};
}

}  // namespace nssi
