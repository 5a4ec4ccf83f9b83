// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/wire/payload.hpp>

#include <base/thrown.hpp>

#include <fmt/format.h>

namespace nssi {

Status Payload::have_encoded(std::span<std::byte> at, const char *what) const {
  const auto thrown = nessie::thrown_by([&] { (*encode_)(at); });
  if (!thrown) return {};
  return Error{Code::kInternal, fmt::format("the {} could not be encoded: {}", what, *thrown), nessie::Scope::kService};
}

}  // namespace nssi
