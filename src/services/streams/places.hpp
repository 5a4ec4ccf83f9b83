// SPDX-License-Identifier: BSD-3-Clause
// Where servers of streams announce themselves to other programs of their user on their node.
#pragma once

#include <string>

namespace streams {

/// A folder of contact files: $XDG_RUNTIME_DIR/nessie/streams, or /tmp/nessie-UID/streams where there is none.
std::string contact_folder();

}  // namespace streams
