// SPDX-License-Identifier: BSD-3-Clause
// An open file as the program sees it: staged, or handed back to native PnetCDF.
#pragma once

#include <base/fd.hpp>
#include <interpose/pnetcdf/engine/communicator.hpp>
#include <interpose/pnetcdf/engine/marks.hpp>
#include <interpose/pnetcdf/engine/mirror.hpp>
#include <interpose/pnetcdf/engine/policy.hpp>
#include <interpose/pnetcdf/engine/read_ahead.hpp>
#include <interpose/pnetcdf/engine/requests.hpp>
#include <interpose/pnetcdf/engine/variable.hpp>
#include <services/staging/client/client.hpp>

#include <pnetcdf.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace interpose {

/// How the program opened the file; what it takes to open it again natively.
struct OpenedAs {
  std::string path;                  ///< as the program gave it
  std::vector<std::string> names;    ///< what it may mean (absolute_names)
  int mode = 0;                      ///< root's cmode or omode
  std::vector<staging::Hint> hints;  ///< the program's, and PNETCDF_HINTS
};

/// The arguments of ncmpi__enddef.
struct EndDefLayout {
  bool given = false;
  MPI_Offset h_minfree = 0, v_align = 0, v_minfree = 0, r_align = 0;
};

class File {
 public:
  /// A staged file.
  File(std::unique_ptr<Communicator> ranks, OpenedAs opened_as, staging::FileToken token);
  /// A native file, of the ranks of `ranks`.
  File(int native_id, const Communicator &ranks, const staging::FileIdentity &identity)
      : identity(identity), native_id_(native_id), is_alone_(ranks.size() == 1) {}

  bool is_native() const { return native_id_ >= 0; }
  /// Whether we compare its ranks' arguments: what is native, native PnetCDF compares itself.
  bool is_safe() const { return safe && !is_native(); }
  /// The id by which native PnetCDF knows the file, or its mirror.
  int id() const { return is_native() ? native_id_ : mirror.id(); }
  /// From now on native PnetCDF has the file, by a name that `named` may keep. The mirror has been dropped.
  void become_native(int native_id, nessie::Fd named);
  /// In a child of fork(): the file is its parent's, who alone may use it, until the child has a handle of its own.
  bool is_inherited() const { return is_inherited_; }
  void begin_in_child() { is_inherited_ = !is_native(); }
  /// The child has one: `token`, at the servers.
  void begin_anew(staging::FileToken token);
  /// Whether it is this process's alone.
  bool is_alone() const { return is_alone_; }

  Communicator &ranks() { return *ranks_; }
  const OpenedAs &opened_as() const { return opened_as_; }
  staging::FileToken token() const { return token_; }

  /// The variable, or nullptr if there is no such id.
  const Variable *variable(int varid);
  /// Counted here: native PnetCDF does not know it of files that it opened.
  int count_record_variables();
  bool has_record_variables() { return count_record_variables() > 0; }
  /// The values that a variable takes where nothing was written, in host order (at most 8 bytes).
  std::vector<std::byte> fill_value(int varid) const;

  /// A variable's fill mode. It is not in the header, so that mirrors lose it.
  bool no_fill(int varid) const;
  void keep_fill_modes();
  /// Whether any variable is to be filled.
  bool fills() const {
    return fill_mode == NC_FILL || std::find(no_fill_.begin(), no_fill_.end(), false) != no_fill_.end();
  }
  void set_fill_modes(bool no_fill);
  void set_fill_mode(int varid, bool no_fill);

  /// Notes, on root, what the mirror accepted, to be replayed by the home server: of a new file at once, a few hundred
  /// at a time, otherwise when define mode ends.
  void log(staging::Definition definition);
  std::vector<staging::Definition> take_log();

  /// The file has at least so many records, as all ranks know; natively, root writes their number to the header now.
  void raise_records(std::int64_t records);
  /// Root has written the number of records, or the header, natively.
  void count_records_written();
  void count_header_written();

  /// The error of an earlier write that no call has returned yet; told once.
  int take_error() { return std::exchange(untold_error_, NC_NOERR); }

  /// Turns an error of the transport into a code of PnetCDF's, and says it, once for each file.
  int lost(const nessie::Error &error, std::string_view doing, int code);
  /// The server's answer; `code`, if there is none.
  int code_of(const nessie::Result<int> &answer, std::string_view doing, int code) {
    return answer ? *answer : lost(answer.error(), doing, code);
  }

  /// Bytes of all variables, as they are defined, with the records that there are.
  std::int64_t data_bytes();

  Spent spent;  ///< on creating, defining and closing it

  // State, as native PnetCDF keeps it.
  Mirror mirror;
  bool writable = true;
  bool in_define_mode = true;
  bool is_new = false;       ///< created, and never left define mode
  bool was_created = false;  ///< rather than opened
  bool independent = false;
  bool safe = false;         ///< PNETCDF_SAFE_MODE
  bool may_be_left = false;  ///< to native PnetCDF, by the first collective read or write (leaving.hpp)
  /// All that was written is in the file: if the servers have died, native PnetCDF may have it (fallback.hpp). The same
  /// on all ranks, like whether that is yet to be looked at.
  bool is_settled = false, awaits_look = false;
  void note_settled() { is_settled = awaits_look = true; }
  void note_unsettled() { is_settled = awaits_look = false; }
  std::optional<std::uint64_t> writes_when_made;  ///< to the file, of all programs, when it left define mode (Boards)
  int fill_mode = NC_NOFILL;
  int format = 0;  ///< 1, 2 or 5
  std::int64_t num_records = 0;
  std::int64_t put_bytes = 0, get_bytes = 0;
  std::vector<staging::Hint> hints_in_use;  ///< as ncmpi_inq_file_info gave them on the home server
  staging::FileIdentity identity;           ///< as root sees it; a native one's, as this process does
  ReadAhead read_ahead;
  Marks marks;
  bool has_put_fixed = false;  ///< this process, a fixed variable, independently, since the others heard of it
  Requests requests;
  std::optional<AttachedBuffer> attached_buffer;

 private:
  void begin();

  int native_id_ = -1;
  bool is_alone_ = false;
  bool is_inherited_ = false;
  nessie::Fd named_;
  std::unique_ptr<Communicator> ranks_;
  OpenedAs opened_as_;
  staging::FileToken token_ = 0;
  std::deque<Variable> variables_;
  std::vector<bool> no_fill_;
  std::vector<staging::Definition> log_;
  bool said_lost_ = false;
  int untold_error_ = NC_NOERR;  ///< of a write that the program believes done
};

}  // namespace interpose
