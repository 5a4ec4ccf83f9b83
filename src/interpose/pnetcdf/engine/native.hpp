// SPDX-License-Identifier: BSD-3-Clause
// Files that are not staged: when, and how native PnetCDF gets them.
#pragma once

#include <interpose/pnetcdf/engine/file.hpp>
#include <interpose/pnetcdf/engine/hints.hpp>
#include <interpose/pnetcdf/engine/native_turn.hpp>

#include <optional>
#include <string>

namespace interpose {

/// Why this process will not stage a file of this cmode (0: any), in a sentence; empty if it will.
std::string why_not_staged(int cmode);

/// Why a file goes native; `is_choice`: it could be staged.
struct Reason {
  std::string why;
  bool is_choice = false;
};

/// Creates or opens natively, in place of `file`, after the servers have written what they hold of it. Says so, once,
/// on root. Collective, with the program's own arguments.
int create_natively(File &file, MPI_Comm comm, int cmode, MPI_Info info, int *ncidp, const Reason &reason);
int open_natively(File &file, MPI_Comm comm, int omode, MPI_Info info, int *ncidp, const Reason &reason);

/// A turn, for a file that is this process's alone.
std::optional<NativeTurn> turn_for(const File &file);

/// How native PnetCDF gets a file that the servers have closed. kMade: one that has left define mode once, with default
/// layout and a plain name (has_plain_name), and that this program has not written to, is made and defined once more;
/// it is opened all the same if somebody else has written to it.
enum class Again { kOpened, kMade };

/// Gives an open file in collective data mode back to native PnetCDF for the rest of its life: the servers write what
/// they hold of it and close it; pending requests are carried out first. Collective. Native PnetCDF's code; on failure
/// the file is of no more use.
int hand_back(File &file, const Reason &reason, Again again = Again::kOpened);

/// The same, of a file whose servers have died: all of it is there; it is new, and yet to leave define mode.
int open_natively_again(File &file, const Reason &reason);
int make_natively_again(File &file, const EndDefLayout &layout, const Reason &reason);

}  // namespace interpose
