// SPDX-License-Identifier: BSD-3-Clause
// A file that the server holds for a program: the native file, its variables with their pages, and what became of the
// bytes. Progress thread only; `native` is handed to the I/O thread.
#pragma once

#include <service/interval_set.hpp>
#include <services/staging/server/board.hpp>
#include <services/staging/server/course.hpp>
#include <services/staging/server/file_gate.hpp>
#include <services/staging/server/journal.hpp>
#include <services/staging/server/ledger.hpp>
#include <services/staging/server/line.hpp>
#include <services/staging/server/march.hpp>
#include <services/staging/server/marks.hpp>
#include <services/staging/server/native_file.hpp>
#include <services/staging/server/page_cache.hpp>
#include <services/staging/server/pieces_check.hpp>
#include <services/staging/server/read_back.hpp>
#include <services/staging/server/write_count.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace staging {

/// What was counted, and what has failed, of a whole server or for one of the jobs that use it.
struct Account {
  ReportResult counted;
  std::uint64_t more_failed = 0;  ///< files that have no place there
};

/// A variable and the fate of its bytes.
struct FileVariable {
  std::unique_ptr<CachedVariable> cached;
  std::uint64_t acknowledged = 0, in_file = 0;
  std::uint64_t arrived = 0;  ///< bytes that clients lend, not yet in pages
  Interval arrived_bounds;
  IntervalSet missing;  ///< elements whose drain failed; where they are very scattered, also what is between
  Ledger::Slot slot = 0;
};

/// Writes that go to the file together, in direct mode.
struct Together {
  explicit Together(nssi::Runtime &runtime) : joined(runtime), ended(runtime) {}
  std::uint32_t ready = 0;  ///< processes that have sent all of their part of the collective call
  bool is_over = false;
  int nc_error = 0;
  WaitQueue joined, ended;
};

class OpenFile : public std::enable_shared_from_this<OpenFile> {
 public:
  OpenFile(nssi::Runtime &runtime, FileToken token, std::string path, nssi::PeerId owner, Ledger *ledger)
      : token(token),
        path(std::move(path)),
        owner(owner),
        gate(runtime),
        line(std::make_shared<Line>(runtime)),
        wrote(runtime),
        ledger_(ledger) {}
  ~OpenFile();

  /// Takes the variables as the native file has them; those that were there before keep their accounts.
  void set_variables(PageCache &cache, std::vector<Variable> variables);
  /// Whether pages stay, for readers, when they have been drained, or read.
  void keep_clean(bool keeps);
  /// What readers' pages have holds no more.
  void forget_clean();
  FileVariable *find(std::int32_t varid);
  std::vector<FileVariable> &variables() { return variables_; }
  /// Finds the shape of a variable, for check_pieces().
  auto shapes() {
    return [this](std::int32_t varid) -> const Variable * {
      const auto *variable = find(varid);
      return variable == nullptr ? nullptr : &variable->cached->variable;
    };
  }

  /// Pieces have been sent, and can be read here; later they are in pages.
  void arrived(FileVariable &variable, const Part &part);
  /// Bytes are in pages; of those that had arrived, or of others.
  void acknowledge(FileVariable &variable, std::uint64_t bytes, bool had_arrived);
  /// What is in the file of these elements is not what was put there.
  void lost(FileVariable &variable, Interval elements);
  /// Bytes that were in the file are in pages again.
  static void take_back(FileVariable &variable, std::uint64_t bytes) {
    variable.in_file -= std::min(variable.in_file, bytes);
  }
  std::uint64_t arrived_bytes() const;
  bool has_arrived() const { return arrived_bytes() > 0; }
  /// What is dirty in a page is in the file, or is not; note_ledger() follows when the page is gone.
  void reached_file(FileVariable &variable, const Page &page);
  void failed(FileVariable &variable, const Page &page, const PageOutcome &outcome, bool is_told);
  /// An error of a drain or close: kept for the report, and, unless that `is_told` of it, for the next call on this
  /// file.
  void remember(int nc_error, int system_error = 0, bool is_told = false);
  /// The next call on this file is told of a drain that has not failed for good.
  void tell(int nc_error) { untold_error_ = nc_error; }
  /// What is kept of it cannot be read: some of it may be missing.
  void note_damage(const std::string &what);
  /// The error that no call has been told of yet; told once.
  int take_error();
  void note_ledger(FileVariable &variable);

  void raise_num_records(std::int64_t records) {
    num_records = std::max(num_records, records);
    native->allow_records(num_records);
  }
  /// What the header is to say at least; 0: nothing that it has not said before. If it says less then, another file has
  /// taken the place of the one that this handle knows.
  std::int64_t records_to_tell() const { return num_records > records_in_file ? num_records : 0; }
  bool wrote_anything() const;
  bool lost_anything() const { return first_error_ != 0; }
  std::uint64_t dirty_bytes() const;
  /// Whether a program of the run writes to the file, or may do so, and this server hears nothing of it.
  bool may_be_written_past() const { return board == nullptr || was_written_past(); }
  /// One has said so.
  bool was_written_past() const { return is_written_past || (board != nullptr && board->was_written_past(identity)); }
  /// This server, as far as is known. Who is about to write says so first, and then waits for the drain.
  bool has_one_writer() const { return has_one_server && !may_be_written_past(); }
  FileReport report() const;
  /// Whether it outlives this server.
  bool is_kept() const { return durability != Durability::kMemory; }
  /// Whether what was written since it was on the disk last is in its journal, and in no other one.
  bool can_be_put_again() const {
    return journal != nullptr && journal->is_whole() && durability != Durability::kInFile && !takes_turns &&
           !was_written_past();
  }

  const FileToken token;
  const std::string path;
  nssi::PeerId owner;            ///< who opened it: rank 0 of the program; {}: has not come back yet
  std::shared_ptr<Account> job;  ///< its owner's; null: it belongs to none
  std::unique_ptr<NativeFile> native;
  std::shared_ptr<MarkedFile> marked;   ///< for who looks on; null: it is only read
  std::shared_ptr<ReadBack> read_back;  ///< of all handles on the same file; null: nobody wants that
  FileIdentity identity;
  Durability durability = Durability::kMemory;
  std::uint64_t definitions = 0;      ///< the number of the last that was carried out
  int defined_as = 0;                 ///< what came of that: a native code
  std::vector<CarriedOut> made = {};  ///< of one that is kept, and is new: its definitions so far
  LoggedFile logged;                  ///< of one that is kept: how it was opened
  Journal *journal = nullptr;         ///< of one that is kept
  bool is_to_be_put_again = false;    ///< a sync has failed, and what is in its journal may not be on the disk
  bool is_direct = false;             ///< who writes waits until it is in the file, and hears what came of it
  std::uint64_t failed_pages = 0;  ///< direct: pages that could not be written, also those that left before their turn
  int failed_page_error = 0;       ///< the native code of the last of them
  bool was_given = false;          ///< to this server, its home, which has not opened it by its name
  Board::Entry on_board;           ///< as long as something of it may not be in the file
  double opened_s = 0;
  std::optional<timespec> closed_at;  ///< by the file system's clock, if the program did not wait for the drain
  bool in_define_mode = false;        ///< natively: it is new, or ending define mode has failed
  bool defined = false;               ///< enddef was called, or the file existed: it can have data
  std::int64_t num_records = 0;      ///< the most that a client has told, or that a write has reached which is complete
  std::int64_t records_in_file = 0;  ///< what the header has said at least, as long as this was the file
  std::uint32_t processes = 1;       ///< that have it open together
  std::shared_ptr<Together> together;  ///< those that wait for others now
  std::map<std::uint64_t, std::uint32_t>
      arrived_in;  ///< direct: processes that have sent their part of a collective call
  FileGate gate;
  std::shared_ptr<Line> line;  ///< of all handles on the same file
  bool takes_turns = false;    ///< there is another handle
  bool created_over = false;   ///< through another handle: what this one knows of records is over
  WriteCount writes;
  WaitQueue wrote;        ///< told when a write has been carried out
  int writing = 0;        ///< writes that are being carried out
  bool ended = false;     ///< no more writes are taken
  bool hastened = false;  ///< closed, and somebody else waits for it
  March march;            ///< of those who read
  bool keeps_clean = false;
  bool is_written_past = false;  ///< natively, by a process that says so
  const Board *board = nullptr;  ///< on which programs note that they write past this server
  bool has_one_server = false;
  Course course;                   ///< of its drain
  std::uint64_t changes_seen = 0;  ///< of those that others make, as `native` counts them

 private:
  Ledger *ledger_;
  std::vector<FileVariable> variables_;
  int first_error_ = 0, system_error_ = 0, untold_error_ = 0;
  std::string damage_;
};

}  // namespace staging
