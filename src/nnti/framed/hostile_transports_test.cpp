// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/tcp/raw_peer_test.hpp"
#ifdef NNTI_HAVE_OFI
#include "nnti/transports/ofi/raw_peer_test.hpp"
#endif
#ifdef NNTI_HAVE_UCX
#include "nnti/transports/ucx/raw_peer_test.hpp"
#endif

namespace nnti::framed {

std::vector<HostileTransport> hostile_transports() {
  std::vector<HostileTransport> transports;
  transports.push_back(tcp::hostile_transport());
#ifdef NNTI_HAVE_OFI
  transports.push_back(ofi::hostile_transport());
#endif
#ifdef NNTI_HAVE_UCX
  transports.push_back(ucx::hostile_transport());
#endif
  return transports;
}

}  // namespace nnti::framed
