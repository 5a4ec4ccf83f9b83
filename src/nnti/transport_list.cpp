// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transport.hpp"
#include "nnti/transports/inproc/transport.hpp"
#include "nnti/transports/shm/transport.hpp"
#ifdef NNTI_HAVE_OFI
#include "nnti/transports/ofi/transport.hpp"
#endif
#ifdef NNTI_HAVE_UCX
#include "nnti/transports/ucx/transport.hpp"
#endif

namespace nnti {

std::span<const TransportKind> transport_list() {
  static constexpr TransportKind kKinds[] = {
      {"inproc", inproc::survey, inproc::open},
      {"shm", shm::survey, shm::open},
#ifdef NNTI_HAVE_OFI
      {"ofi", ofi::survey, ofi::open, true},
#endif
#ifdef NNTI_HAVE_UCX
      {"ucx", ucx::survey, ucx::open, true},
#endif
  };
  return kKinds;
}

}  // namespace nnti
