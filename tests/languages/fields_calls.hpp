// SPDX-License-Identifier: BSD-3-Clause
// What a client in C++ can do with a service of fields.x, whatever language that is in.
#pragma once

#include <nssi/nssi.hpp>

namespace fields_peer {

/// Calls everything; prints what is not as it should be, and returns how often.
int check_all(nssi::Runtime &runtime, nssi::PeerId peer);

}  // namespace fields_peer
