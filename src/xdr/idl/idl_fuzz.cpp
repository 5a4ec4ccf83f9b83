// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/c.hpp"
#include "xdr/idl/cpp.hpp"
#include "xdr/idl/fortran.hpp"
#include "xdr/idl/parser.hpp"
#include "xdr/idl/python.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char *>(data), size);
  const auto result = xdr::idl::read(text);
  if (const auto *fault = std::get_if<xdr::idl::Fault>(&result)) {
    (void)xdr::idl::describe(*fault, "fuzz.x", text);
    return 0;
  }
  const auto &interface = std::get<xdr::idl::Interface>(result);
  if (!xdr::idl::check_cpp(interface)) {
    (void)xdr::idl::make_cpp(interface, {"fuzz.x", "fuzz", "fuzz"});
    (void)xdr::idl::make_cpp_rpc(interface, {"fuzz.x", "fuzz", "fuzz"});
  }
  if (!xdr::idl::check_c(interface)) {
    (void)xdr::idl::make_c_header(interface, {"fuzz.x", "fuzz"});
    (void)xdr::idl::make_c_codec(interface, {"fuzz.x", "fuzz"});
    (void)xdr::idl::make_c_rpc_header(interface, {"fuzz.x", "fuzz"});
    (void)xdr::idl::make_c_rpc(interface, {"fuzz.x", "fuzz"});
  }
  if (!xdr::idl::check_fortran(interface)) (void)xdr::idl::make_fortran(interface, {"fuzz.x", "fuzz"});
  (void)xdr::idl::make_python(interface, {"fuzz.x"});
  return 0;
}
