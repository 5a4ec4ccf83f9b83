// SPDX-License-Identifier: BSD-3-Clause
// How a server comes to a file that the program has opened. The program opens it, with its own rights, in its own mount
// name space, by whatever name; a server of the same node is given the descriptor. A server of another node opens the
// name itself: as the same user, never as root, and only if that is the same file.
#pragma once

#include <staging.hpp>

#include <base/fd.hpp>
#include <nessie/result.hpp>

namespace staging {

/// Zeros if there is none.
FileIdentity identity_of(int descriptor);
FileIdentity identity_of(const std::string &path);
/// When the file was made, by its file system's clock; 0: that does not tell. With it an inode that is used again is
/// known for another file.
std::int64_t born_ns(int descriptor);

/// What tells a server which file this is; the key of the descriptor is the caller's to add.
FileHandle describe_handle(int descriptor);

/// For a descriptor that was given. kInvalidArgument: it is no regular file, or not open for what the program asks.
nessie::Status check_given(int descriptor, bool writable);

/// For a descriptor that is given back to a program, which may do through it what it may through its handle. kRefused:
/// it could do more.
nessie::Status check_lent(int descriptor, bool writable);

/// For a program on another node. kRefused: this server runs as root, or as another user than the program. kNotFound:
/// the name cannot be opened here, or leads to another file; the cause is errno, if there was one.
nessie::Result<nessie::Fd> open_by_name(const std::string &path, const FileHandle &handle, bool writable);

}  // namespace staging
