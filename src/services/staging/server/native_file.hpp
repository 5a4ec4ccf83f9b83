// SPDX-License-Identifier: BSD-3-Clause
// A file, open with native PnetCDF on MPI_COMM_SELF, in collective mode. Every function returns PnetCDF's own code.
// Thread: the I/O thread only (the one that initialised MPI).
#pragma once

#include <services/staging/handle.hpp>
#include <services/staging/piece.hpp>

#include <base/fd.hpp>

#include <time.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace staging {

/// Whether what fails with this may be done when it is tried again: a disk is full, a file server away.
bool errno_may_pass(int system_error);

/// What the file system says of a file's contents: two that differ are of different contents.
struct FileStamp {
  timespec modified{}, changed{};
  std::int64_t size_bytes = -1;
  bool operator==(const FileStamp &other) const;
};

class NativeFile {
 public:
  /// Null `file` with the code that says why; or a harmless code (NC_ENULLPAD).
  struct Opened {
    int nc_error = 0;
    std::unique_ptr<NativeFile> file;
  };
  /// `file` is open for reading and, unless `omode` says otherwise, for writing. Its name plays no part: it may have
  /// none that PnetCDF or MPI-IO understand. What it held is gone after create(). It stays the caller's on failure.
  static Opened create(nessie::Fd &&file, int cmode, const std::vector<Hint> &hints);
  static Opened open(nessie::Fd &&file, int omode, const std::vector<Hint> &hints);
  /// Closes what is open, as close() does.
  ~NativeFile();

  bool writable() const { return writable_; }
  /// True from create() to the first end_define().
  bool is_new() const { return new_; }

  /// Ends define mode after replaying the definitions; enters it before if need be. `again`: it has failed, and goes on
  /// where it was, unless is_beyond_repair().
  int end_define(const EndDefArgs &args, bool again = false);
  /// The last call has failed where native PnetCDF (1.12.3) cannot do it once more: it has moved some of the data, or
  /// does not know which variables are new; or a name has changed in memory only.
  bool is_beyond_repair() const { return undone_ == Undone::kLost; }
  /// Of a file that has been opened once more: what the handle before this one knew of fill modes, as the file does not
  /// tell them. They hold again as soon as they matter.
  void lose_fill_modes(std::vector<Definition> modes) { lost_fill_modes_ = std::move(modes); }
  /// Definitions that are legal in data mode, but for the first `done`, which counts on.
  int amend(const std::vector<Definition> &definitions, std::size_t &done);
  int amend(const std::vector<Definition> &definitions);
  /// Those that somebody who has died may have carried out, or some of them.
  int amend_again(const std::vector<Definition> &definitions);
  /// By which name it is found, if `path` no longer leads to it. Empty: it does, or nobody knows.
  std::string renamed_from(const std::string &path) const;
  /// The header's bytes as they are in the file, and what goes with them.
  int describe(HeaderResult &result) const;
  int variables(std::vector<Variable> &variables);
  std::int64_t num_records() const;

  /// Writes boxes, whose data lie one after the other in `data`, in the variable's external type and host byte order.
  /// `data` may be changed meanwhile.
  int write(int varid, const std::vector<Box> &boxes, std::byte *data);
  int write(const Piece &piece, std::byte *data);
  /// A box of a variable, and its data as above.
  struct Block {
    int varid = 0;
    Box box;
    std::byte *data = nullptr;
  };
  /// Writes blocks of several variables in one go. If it fails, some of them may be in the file.
  int write(const std::vector<Block> &blocks);
  /// Reads one piece. `known_records`: records that other servers may have added.
  int read(const Variable &variable, const Piece &piece, std::int64_t known_records, std::byte *data);
  /// Reads boxes, none of more than one record, one after the other.
  int read(const Variable &variable, const std::vector<Box> &boxes, std::int64_t known_records, std::byte *data);
  /// Reads what is in the file at the place of a box, whether or not its records count: for who writes there next.
  int read_present(const Variable &variable, const Box &box, std::byte *data);
  /// The system's reason for the last write that failed, if it can be known: MPI-IO does not pass it on. 0: unknown.
  int write_errno() const { return write_errno_; }
  int fill_record(int varid, std::int64_t record);
  /// Native sync. When it fails, what was written since the last one may be lost, though the next one does not fail.
  int sync();
  /// What is in the file outlives a power failure; also after close().
  int sync_to_disk();
  /// What is read next comes from the disk, as far as it is there.
  void forget_cached();
  /// Writes the header once more that this has made last, with so many records.
  int write_header_again(std::int64_t num_records);
  /// Makes a copy of all that is in the file; it outlives a power failure. NC_NOERR, or the native code.
  int save_to(const std::string &path);
  /// Makes a file what save_to() has saved there. False: nothing was, or it cannot be.
  static bool restore(int file, const std::string &path);

  /// Closes. The number of records in the header becomes at least `num_records`: every server that holds the file knows
  /// only the records that it wrote itself, and the last one to close must not leave a smaller number than another did.
  int close(std::int64_t num_records);
  int abort();
  /// Closes a file whose definition never ended, and leaves it as a program that is killed leaves it: empty.
  int close_and_empty();

  /// The time at which the file was changed last becomes `when`, if it is later, and if the server may set it.
  void date_back(const timespec &when);
  bool is_closed() const { return ncid_ < 0; }
  /// The file, after close(), which is then done with.
  nessie::Fd release() { return std::move(fd_); }
  /// The header may count so many records: all that was to be put into them is here. The progress thread.
  void allow_records(std::int64_t num_records) { allowed_records_ = std::max(allowed_records_.load(), num_records); }
  /// Makes the number of records in the header at least `num_records`, for whoever opens the file meanwhile.
  int publish_records(std::int64_t num_records) { return ncid_ < 0 ? 0 : raise_num_records(num_records); }
  /// What it was made of; as long as the file is open. The progress thread.
  int descriptor() const { return fd_.get(); }
  FileIdentity identity() const { return identity_of(fd_.get()); }
  std::int64_t born_ns() const { return staging::born_ns(fd_.get()); }
  /// How often somebody else has been seen to have changed the file. Any thread; the file is open.
  std::uint64_t changes_by_others();
  /// As this has left the file.
  FileStamp stamp();

 private:
  class Changing;
  /// Of what was to end define mode, or to change the header.
  enum class Undone { kAll, kEnd, kRest, kLost };
  int begin_define(const EndDefArgs &args);
  int leave_define(const EndDefArgs &args);
  int make_up_for(const EndDefArgs &args);
  int fill_new_variables();
  int fill_variable(const Variable &variable);
  std::int64_t bytes_put() const;
  void note_header();
  int find_fill_modes();
  NativeFile(int ncid, nessie::Fd file, std::vector<Hint> withheld, bool writable, bool is_new)
      : ncid_(ncid),
        fd_(std::move(file)),
        withheld_(std::move(withheld)),
        writable_(writable),
        new_(is_new),
        stamp_(stamp_now()) {}
  FileStamp stamp_now() const;
  void look_at_stamp();
  int reopen_to_read();
  int extend_to(std::int64_t num_records);
  int raise_num_records(std::int64_t num_records);
  std::int64_t records_in_header() const;
  void correct_num_records(std::int64_t before);
  int see_records(std::int64_t num_records);
  int note_errno(int nc_error);
  template <class Put> int put(Put put);
  template <class Transfer> int each_record(const Piece &piece, std::byte *data, Transfer transfer);
  bool strides_over_records(const Piece &piece) const;
  std::int64_t first_missing(const Variable &variable) const;

  int ncid_ = -1;
  int write_errno_ = 0;
  nessie::Fd fd_;                     ///< the file, whatever becomes of its name
  const std::vector<Hint> withheld_;  ///< hints of the program that native PnetCDF does not get
  std::atomic<std::int64_t> allowed_records_{0};
  bool writable_ = false, new_ = false, has_records_ = false;
  bool defining_ = false;  ///< in define mode; always so when new
  Undone undone_ = Undone::kAll;
  int first_new_ = 0;   ///< of the variables that were defined last
  std::string header_;  ///< as this has made it; empty: it has not
  std::vector<Definition> lost_fill_modes_;
  std::mutex stamp_mutex_;
  FileStamp stamp_;
  int changing_ = 0;  ///< the I/O thread is about to
  std::uint64_t changes_by_others_ = 0;
};

/// What happens to the file as long as one of these exists is this process's doing.
class NativeFile::Changing {
 public:
  explicit Changing(NativeFile &file) : file_(file) {
    const std::lock_guard lock(file_.stamp_mutex_);
    if (file_.changing_++ == 0) file_.look_at_stamp();
  }
  ~Changing() {
    const std::lock_guard lock(file_.stamp_mutex_);
    if (--file_.changing_ == 0) file_.stamp_ = file_.stamp_now();
  }
  Changing(const Changing &) = delete;

 private:
  NativeFile &file_;
};

/// The width of an external type.
int bytes_of(int nc_type);
/// "No space left on device (Unknown error occurs in writing file)".
std::string native_message(int nc_error, int system_error);
/// "1.12.3".
std::string native_version();

}  // namespace staging
