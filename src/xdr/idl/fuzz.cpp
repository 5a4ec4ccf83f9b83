// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/cpp.hpp"
#include "xdr/idl/parser.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char *>(data), size);
  const auto result = xdr::idl::read(text);
  if (const auto *fault = std::get_if<xdr::idl::Fault>(&result))
    (void)xdr::idl::describe(*fault, "fuzz.x", text);
  else
    (void)xdr::idl::make_cpp(std::get<xdr::idl::Interface>(result), {"fuzz.x", "fuzz", "fuzz"});
  return 0;
}
