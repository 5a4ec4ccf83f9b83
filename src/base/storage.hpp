// SPDX-License-Identifier: BSD-3-Clause
// What is kept on a disk, and what in memory only.
#pragma once

#include <optional>
#include <string>

namespace nessie {

/// Whether the file system at `path` is in memory (tmpfs, ramfs); of a file that is not there yet, that of its folder.
/// False, if neither is there.
bool is_in_memory(const std::string &path);
/// A folder for what has to outlive processes, if nobody has said another: $TMPDIR, or /var/tmp, whichever is an
/// absolute path, on a disk, and may be written to. Nothing: neither.
std::optional<std::string> folder_on_disk();

}  // namespace nessie
