// SPDX-License-Identifier: BSD-3-Clause
// A transport in a shared library that is loaded when somebody asks for it by name: what programs shall not be linked
// to.
//
// Design notes. The library has parts of NNTI of its own, and shows nothing but one symbol; what crosses the border are
// virtual functions and types of one and the same version of Nessie.
#pragma once

#include "nnti/transport/transport.hpp"

namespace nnti {

/// What the library shows, under the name kTransportModuleSymbol.
struct TransportModule {
  const char *version;  ///< of Nessie: it must be that of the program
  const TransportKind *kind;
};
inline constexpr const char *kTransportModuleSymbol = "nessie_transport_module";

/// The transport mpi for programs that were not linked to it (nessie_nnti_mpi), whatever their language. The library is
/// what `nnti.mpi.library` names; otherwise libnessie_transport_mpi.so, which lies where this code does, where it was
/// installed, or where libraries are looked for. Once loaded, it stays.
/// survey() and open() say why, if it cannot be had: it is not there, it is of another version of Nessie, or the
/// process runs another MPI than the one it was built with (kUnsupported).
const TransportKind &loaded_mpi_kind();

}  // namespace nnti
