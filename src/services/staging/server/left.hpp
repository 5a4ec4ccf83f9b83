// SPDX-License-Identifier: BSD-3-Clause
// What a server has left in its journal that was killed. A library without PnetCDF: also for those who only look.
#pragma once

#include <base/fd.hpp>
#include <service/log/log.hpp>

#include <staging.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace staging {

using nessie::service::Lsn;

/// The kinds of a journal's records, and what each holds.
enum class Logged : std::uint16_t {
  kFile = 1,    ///< LoggedFile
  kDefinition,  ///< LoggedDefinition
  kDefined,     ///< LoggedDefined
  kWrite,       ///< LoggedWrite, and the data of its pieces
  kFill,        ///< FileToken: a record of it was filled, and all that was noted of it before is in it
  kClose,       ///< LoggedClose
  kGone,        ///< FileToken: all of it is in the file
  kClient,      ///< LoggedClient
  kPart,        ///< LoggedPart, and some of the head of a record that is too long for one
  kMoved,       ///< FileToken: what was noted of it before is not needed here, as another journal has it
  kStillGone,   ///< FileToken: kGone has been said of it before, and may have been released
};

/// Three numbers of XDR's, each an unsigned hyper.
struct LoggedPart {
  std::uint64_t whole = 0;  ///< which record it is of
  std::uint64_t at = 0;     ///< how much of its head comes before
  std::uint64_t kind = 0;   ///< the record's, in its last part; 0: there are more
};
inline constexpr std::size_t kPartHeadBytes = 24;

/// A definition, and what came of it: a native code.
struct CarriedOut {
  LoggedDefinition definition;
  int nc_error = 0;
};

/// A file that a server has left.
struct LeftFile {
  LoggedFile file;
  Lsn since = 0;                               ///< of its first record
  Lsn in_file = 0;                             ///< what was written before this is in it
  std::vector<CarriedOut> definitions;         ///< also those that failed
  int defined_as = 0;                          ///< what came of the last of them: a native code
  std::optional<LoggedDefinition> unfinished;  ///< begun, and perhaps carried out
  std::uint64_t bytes = 0;                     ///< that were written
};

/// What a server has left.
struct Left {
  std::map<FileToken, LeftFile> files;
  std::map<std::uint64_t, LoggedClient> clients;
  std::set<FileToken> gone;
  std::vector<nessie::service::LogDamage> damage;  ///< what cannot be read any more
};

/// Notes of a file what its definitions say of fill modes: each replaces what it overrides.
void note_fill_modes(LoggedFile &file, const std::vector<Definition> &definitions);

/// Gathers in `left`, which is borrowed, what a log is told to have. kUnsupported, kBadMessage: it is no journal.
nessie::service::Log::Visitor gathering(Left &left);

/// Of the journal in `folder`, in which nothing is changed; a server may have it open, which goes on meanwhile: then
/// some of it may seem damaged. In a fiber. Errors as open_disk_store() and Log::look().
nessie::Result<Left> look_at_journal(nssi::Runtime &runtime, const std::string &folder);

/// Of a file that is not found under its name: what there is to do. `cause`: of opening it; 0: it is another file.
nessie::Error why_not_found(int cause);
/// The file by another name in its folder, opened for `access`. Empty: it has none there.
nessie::Fd find_in_folder(const LoggedFile &file, int access);

}  // namespace staging
