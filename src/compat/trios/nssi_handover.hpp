// SPDX-License-Identifier: BSD-3-Clause
// Stubs in threads of the program's.
#pragma once

#include <compat/trios/nssi_paper.hpp>

#include <Trios_nssi_server.h>

#include <functional>
#include <memory>

namespace nssi::trios {

using Process = int (*)(nssi_svc_rpc_request *request);

/// Gives a request to the program, as it is `described`, and does for its thread what only a request's user-level
/// thread may do, until the stub has returned; returns what that did. On that user-level thread.
int hand_over(std::unique_ptr<nssi_svc_rpc_request> described, Process process, const paper::Incoming &request);
/// Runs `stub` for a request that the program was given, and frees it. Any thread.
int run_handed(nssi_svc_rpc_request *request, int (*stub)(const paper::Incoming &request));
/// Does `move`, on the user-level thread of the request, for the thread that runs its stub; others do it where they
/// are, and are refused.
int on_its_thread(unsigned long request, const std::function<int()> &move);

}  // namespace nssi::trios
