// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/languages.hpp"
#include "xdr/idl/parser.hpp"

#include <base/testing/fuzz.hpp>

std::vector<nessie::fuzz::Bytes> nessie::fuzz::seeds() {
  static constexpr std::string_view kText =
      "const A = 1; enum e { X = 1, Y = A }; typedef string s<A>; struct n { s a; n *b; opaque c[3]; };\n"
      "union u switch (e d) { case X: n f<>; case Y: void; default: int g; };\n"
      "#ifdef RPC_HDR\n%x\n#endif\nprogram P { version V { u C(n, bulk in) = 1; } = 1; } = 1;\n";
  const auto bytes = std::as_bytes(std::span(kText));
  return {Bytes(bytes.begin(), bytes.end())};
}

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
