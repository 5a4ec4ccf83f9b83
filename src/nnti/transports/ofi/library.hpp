// SPDX-License-Identifier: BSD-3-Clause
// libfabric, loaded when the first process asks for a network, not when it starts: the libraries that libfabric brings
// along (psm's among them) measure clocks and install signal handlers as they are loaded, a fifth of a second in every
// process of a program that never leaves its node. All other calls of libfabric go through the objects it hands out.
#pragma once

#include <nessie/result.hpp>

#include <rdma/fabric.h>

namespace nnti::ofi {

struct Library {
  decltype(&::fi_getinfo) getinfo = nullptr;
  decltype(&::fi_freeinfo) freeinfo = nullptr;
  decltype(&::fi_dupinfo) dupinfo = nullptr;
  decltype(&::fi_fabric) fabric = nullptr;
  decltype(&::fi_strerror) strerror = nullptr;
};

/// Loads libfabric, once, for the rest of the process's life. kUnsupported, with the loader's reason, if there is none.
nessie::Result<const Library *> load_library();

/// What load_library() loaded. Only after it succeeded.
const Library &library();

/// From now on library() is `functions`: a test's, in front of libfabric's. Before anything else uses libfabric.
void substitute_library(const Library &functions);

}  // namespace nnti::ofi
