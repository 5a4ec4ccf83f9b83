// SPDX-License-Identifier: BSD-3-Clause
// What who looks on may know of files: which there are, what is complete of them, and what was written over since.
// Without waiting, so that tests can drive it. Progress thread.
//
// Design notes. All that changes has a number, the newest the largest; who watches says up to which he has seen. Of a
// file's state only the last change is kept. Marks are kept as long as there are no more than kMostMarks of them, of
// all files together, and as long as their file is open, or one of the kMostClosed that were closed last.
#pragma once

#include <services/staging/piece_list.hpp>
#include <services/staging/server/pieces_check.hpp>
#include <services/staging/server/written_records.hpp>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace staging {

/// A file, and what was written to it. Outlives its handle.
struct MarkedFile {
  struct OfVariable {
    bool is_record = false;
    std::int64_t extent = 1;  ///< elements of it, or of a record
    WrittenRecords written;   ///< of a fixed variable: as one record
  };

  WatchedFile state;  ///< as who watches is told it
  std::int64_t born_ns = 0;
  std::uint64_t owner = 0;       ///< the peer that has it open, or had
  std::uint32_t definition = 0;  ///< which time it is that it is in data mode
  std::vector<OfVariable> variables;
  std::int64_t records_marked = 0;  ///< at its home: that marks have said to be complete
  bool is_detached = false;         ///< it has no handle, and will have one again
  bool is_unknown = false;          ///< what was written to it before is not known, or all of it was written over
  std::uint64_t changed = 0;        ///< the number of its last change
  std::deque<std::uint64_t> marks;  ///< the numbers of those that are kept

  /// Whether any of the pieces, or what stands for pieces and is none, was written after that moment.
  bool was_overwritten(std::span<const std::byte> pieces, Moment when) const;
};

class Marks {
 public:
  static constexpr std::size_t kMostMarks = 65536, kMostClosed = 256, kMostNative = 4096;
  static constexpr std::size_t kMostAtOnce = 512;  ///< changes, in one answer

  /// `changed` is called after each change.
  explicit Marks(std::function<void()> changed);

  /// A file is open; again perhaps, on a server that is not its home. `owner`: the peer that has it open.
  std::shared_ptr<MarkedFile> open(FileToken token, const std::string &path, const FileIdentity &identity,
                                   std::int64_t born_ns, std::uint64_t owner);
  std::shared_ptr<MarkedFile> find(FileToken token) const;
  /// It is in data mode, with these variables.
  void begin_data_mode(MarkedFile &file, bool is_home, std::vector<MarkedFile::OfVariable> variables);
  void note_header(MarkedFile &file);
  /// Something is about to be written to it. What several handles write to one file is not in order.
  void note_written(MarkedFile &file, std::span<const Part> parts, std::uint64_t call);
  /// The record is filled by its home server.
  void note_filled(MarkedFile &file, std::int32_t varid, std::int64_t record);
  /// A file was created, through the handle of that token: nothing of what there was, if it is an old one, is there.
  void note_created(const FileIdentity &identity, FileToken token);
  /// The peer is gone: what it had open it does not open again.
  void note_left(std::uint64_t owner);
  /// On a server that is not its home, while the header changes there: it is opened again, or closed.
  void note_detached(MarkedFile &file) { file.is_detached = true; }
  /// From its home's client. What comes out of order is dropped.
  void mark(MarkedFile &file, Mark mark);
  void note_closing(MarkedFile &file);
  /// `changed_ns`: of the file, as it was left; also by the last handle, if there were several.
  void note_closed(MarkedFile &file, const std::string &failed, std::int64_t changed_ns);
  void note_native(const NativeNote &note);
  /// No more will come.
  void end();

  bool has_changed(const WatchArgs &seen) const;
  WatchResult since(const WatchArgs &seen) const;
  std::size_t marks() const { return marks_; }

 private:
  /// What has changed: one of a file's marks, its state, or what went native.
  struct Change {
    std::shared_ptr<MarkedFile> file;
    std::optional<Mark> mark;
    std::optional<NativeNote> native;
  };
  using Changes = std::map<std::uint64_t, Change>;
  void note_changed(MarkedFile &file);
  std::uint64_t add(Change change);
  void forget_marks(MarkedFile &file);
  void bound_marks();
  void bound_closed();
  std::uint64_t first_unseen(const WatchArgs &seen) const;
  /// Other handles on the same file, also those that are closed.
  template <class Work> void for_twins(const MarkedFile &file, Work work) const;

  const std::function<void()> changed_;
  const std::uint64_t incarnation_;
  std::map<FileToken, std::shared_ptr<MarkedFile>> files_;
  std::multimap<std::uint64_t, MarkedFile *> by_inode_;
  std::deque<FileToken> closed_;  ///< the oldest first
  Changes changes_;
  std::deque<std::uint64_t> oldest_marks_, native_;
  std::uint64_t last_ = 0;
  std::int64_t last_created_ns_ = 0;
  std::size_t marks_ = 0;
  bool is_ending_ = false;
};

}  // namespace staging
