// SPDX-License-Identifier: BSD-3-Clause
// Whole files.
#pragma once

#include <nessie/result.hpp>

#include <string>
#include <string_view>

namespace nessie {

/// kNotFound: it cannot be opened or read; the cause is errno.
Result<std::string> read_file(const std::string &path);

/// As read_file(), of a file that somebody wrote by hand. kTooLarge: it cannot be meant, as /dev/zero cannot.
Result<std::string> read_settings_file(const std::string &path);

/// Without the line's end; empty if there is none.
std::string first_line_of(const std::string &path);

/// The file appears whole or not at all, and replaces what was there: whoever waits for it may read it at once. kIo: it
/// cannot be written; what was there stays. The cause is errno.
Status write_file(const std::string &path, std::string_view text);

/// The same, with mode 0600 whatever the umask, through a new file with a name that nobody can guess.
Status write_private_file(const std::string &path, std::string_view text);

/// The same, if there is no such file yet: kExists. Of several who try, one writes it.
Status write_first_private_file(const std::string &path, std::string_view text);

/// A file that only this user, or root, can have written: regular, no symbolic link, of one of the two, writable for
/// nobody else. Never waits, as opening a FIFO would. kNotFound: it is not there. kRefused: it is not such a file.
/// kTooLarge: it has more than `limit_bytes`. kIo. Each message names the file; the cause is errno, if there was one.
Result<std::string> read_trusted_file(const std::string &path, std::size_t limit_bytes);

/// As read_trusted_file(), of a file that nobody else can read, either.
Result<std::string> read_private_file(const std::string &path, std::size_t limit_bytes);

}  // namespace nessie
