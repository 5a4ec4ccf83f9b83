// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace xdr::idl {

struct FortranOptions {
  std::string file;  ///< the interface's, for the first line
  std::string stem;  ///< the modules are stem_xdr and stem_rpc
};

}  // namespace xdr::idl
