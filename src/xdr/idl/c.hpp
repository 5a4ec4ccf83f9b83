// SPDX-License-Identifier: BSD-3-Clause
// C types and their XDR functions from an interface, as rpcgen makes them. README.md has the table.
#pragma once

#include "xdr/idl/model.hpp"

#include <optional>
#include <string>

namespace xdr::idl {

struct COptions {
  std::string file;  ///< the interface's, for the first line
  std::string stem;  ///< what comes out is stem.h and stem_xdr.c; and stem_rpc.h and stem_rpc.c
};

/// `interface` has been checked. What C's header could not say; none: what follows may be called.
std::optional<Fault> check_c(const Interface &interface);

std::string make_c_header(const Interface &interface, const COptions &options);
std::string make_c_codec(const Interface &interface, const COptions &options);

/// The client's and the server's side of its programs. Empty: it has none.
std::string make_c_rpc_header(const Interface &interface, const COptions &options);
std::string make_c_rpc(const Interface &interface, const COptions &options);

}  // namespace xdr::idl
