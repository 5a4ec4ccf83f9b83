// SPDX-License-Identifier: BSD-3-Clause
// The operations that every service of Trios' has besides the program's. They are an interface of their own: no number
// of the program's is taken for one of theirs.
#pragma once

#include <nssi/c/api.hpp>

namespace nssi::trios::paper {

inline constexpr Interface kStandard{0x4E535354, 1};
inline constexpr OpCode kFetchAddOp = 1, kResetTraceOp = 2;

/// Of the paper's interface.
inline nssi_rpc_transport transport_id(int transport) { return static_cast<nssi_rpc_transport>(transport); }
/// The paper's code as Trios' number.
int to_trios(int code);
/// Calls the service of `peer`. `timeout_ms` less than 0: that of all calls. Returns Trios' code; `result` is written
/// with NSSI_OK only.
int call_standard(int transport, std::uint64_t peer, OpCode op, const Bytes &args, long timeout_ms, Bytes &result);

/// Nothing happens if the runtime has them.
void add_fetch_add(int transport, Runtime &runtime);
void add_reset_trace(Runtime &runtime);

}  // namespace nssi::trios::paper
