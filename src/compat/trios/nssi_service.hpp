// SPDX-License-Identifier: BSD-3-Clause
// What both sides say of a service; what the two ways to run stubs share: where requests arrive, and in threads of the
// program's.
#pragma once

#include <compat/trios/nssi_paper.hpp>

#include <Trios_nssi_server.h>

#include <functional>

namespace nssi::trios {

using Process = int (*)(nssi_svc_rpc_request *request);

/// The service at `host`. Its request address has a segment, which programs compare, but no memory.
nssi_service service_of(nssi_rpc_transport transport, const NNTI_peer_t &host);

/// Who calls, as stubs see it.
NNTI_peer_t caller_of(const paper::Incoming &request);
/// Calls the stub of the request's operation, in any thread. Returns what it returns.
int call_stub(const paper::Incoming &request);
/// Gives a request to the program, and does for its thread what only a request's user-level thread may do, until the
/// stub has returned; returns what that did. On that user-level thread.
int hand_over(nssi_service *service, Process process, const paper::Incoming &request);
/// Does `move`, on the user-level thread of the request; any thread.
int on_its_thread(unsigned long request, const std::function<int()> &move);

}  // namespace nssi::trios
