// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transport/module.hpp"
#include "nnti/transport/transport.hpp"
#include "nnti/transports/faulty/transport.hpp"
#include "nnti/transports/inproc/transport.hpp"
#include "nnti/transports/shm/transport.hpp"
#include "nnti/transports/tcp/transport.hpp"
#ifdef NNTI_HAVE_OFI
#include "nnti/transports/ofi/transport.hpp"
#endif
#ifdef NNTI_HAVE_UCX
#include "nnti/transports/ucx/transport.hpp"
#endif

#include <algorithm>

namespace nnti {

void prepare_environment() {
#ifdef NNTI_HAVE_OFI
  ofi::prepare_environment();
#endif
}

std::span<const TransportKind> transport_list() {
  static constexpr TransportKind kKinds[] = {
      {"inproc", inproc::survey, inproc::open},
      {"shm", shm::survey, shm::open},
#ifdef NNTI_HAVE_OFI
      {"ofi", ofi::survey, ofi::open, Reliability::kUntilBroken, true},
#endif
#ifdef NNTI_HAVE_UCX
      {"ucx", ucx::survey, ucx::open, Reliability::kUntilBroken, true},
#endif
      {"tcp", tcp::survey, tcp::open, Reliability::kUntilBroken, true},
  };
  return kKinds;
}

std::vector<TransportKind> known_kinds(std::span<const TransportKind *const> extra) {
  std::vector<TransportKind> kinds(transport_list().begin(), transport_list().end());
  for (const auto *kind : extra) kinds.push_back(*kind);
#ifdef NNTI_LOADS_MPI
  if (std::ranges::count(kinds, loaded_mpi_kind().name, &TransportKind::name) == 0) kinds.push_back(loaded_mpi_kind());
#endif
  return kinds;
}

std::optional<TransportKind> find_transport_kind(std::string_view name, std::span<const TransportKind> kinds) {
  const auto found = std::ranges::find(kinds, faulty::name_of_inner(name).value_or(name), &TransportKind::name);
  if (found == kinds.end()) return std::nullopt;
  if (!faulty::name_of_inner(name)) return *found;
  return TransportKind{name, found->survey, faulty::open, Reliability::kLossy, found->crosses_hosts, found->at_once};
}

}  // namespace nnti
