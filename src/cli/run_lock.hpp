// SPDX-License-Identifier: BSD-3-Clause
// Tells the folder of a living `nessie run` from one that was left behind: who lives holds a lock on a file in it. The
// kernel lets go of it when the last process that shares it is gone: `nessie run` and its janitor, in whatever PID name
// space.
#pragma once

#include <base/fd.hpp>

#include <string>
#include <string_view>
#include <system_error>

namespace nessie::cli {

/// How the folders are called, as mkdtemp() takes it.
inline constexpr char kRunFolderPattern[] = "nessie-XXXXXX";

/// Locks a folder that was just made, until what is returned is closed, here and in children by fork. Invalid: it
/// cannot be locked, or somebody has removed it; nobody takes a folder with something in it, and without a lock, for
/// one that was left behind.
Fd lock_run_folder(const std::string &folder);

/// The lock of a run's folder whose run is gone; nobody else gets it while it is held. Invalid: the run lives, or the
/// folder is none of a run of this user's.
Fd lock_abandoned_run_folder(const std::string &folder);

/// Whether the folder of a run of this user's has nothing in it yet, not even a lock.
bool is_bare_run_folder(const std::string &folder);

/// With all that is in it, the lock last: whoever is killed meanwhile leaves a folder that is known for what it is.
std::error_code remove_run_folder(const std::string &folder);

/// As CommSplitter calls the folders for shared memory of programs that share a job, of no run; behind it stands the
/// job.
inline constexpr char kSplitFolderPrefix[] = "nessie-split-";
/// As a staging server calls the folder of what it has spilled (src/services/staging/server/spill.cpp).
inline constexpr char kSpillFolderPrefix[] = "nessie-spill-";
/// The lock on a folder of this user's that its processes hold themselves. Invalid: some do, in whatever PID name
/// space, or it is none.
Fd lock_folder(const std::string &folder);
/// The same, if it is called so.
Fd lock_abandoned_folder(const std::string &folder, std::string_view prefix);

/// Whether a run may have made a folder of that name.
bool is_run_folder_name(const std::string &name);

}  // namespace nessie::cli
