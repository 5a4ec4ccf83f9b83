// SPDX-License-Identifier: BSD-3-Clause
// The server's side of the board (board.h). Progress thread.
#pragma once

#include <services/staging/board.h>
#include <staging.hpp>

#include <nessie/result.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace staging {

class Board {
 public:
  /// A file's place, given back when dropped.
  class Entry {
   public:
    Entry() = default;
    Entry(Board *board, std::uint32_t place, bool is_kept) : board_(board), place_(place), is_kept_(is_kept) {}
    Entry(Entry &&other) noexcept
        : board_(std::exchange(other.board_, nullptr)), place_(other.place_), is_kept_(other.is_kept_) {}
    Entry &operator=(Entry &&other) noexcept {
      std::swap(board_, other.board_);
      std::swap(place_, other.place_);
      std::swap(is_kept_, other.is_kept_);
      return *this;
    }
    bool is_kept() const { return is_kept_; }
    ~Entry() {
      if (board_ != nullptr) board_->leave(place_, is_kept_);
    }

   private:
    Board *board_ = nullptr;
    std::uint32_t place_ = 0;
    bool is_kept_ = false;
  };

  /// New files at `path` and beside it, which everybody may read who may enter their folder; those that prepare() made,
  /// or a server that has ended in order has left, if they are there. kIo, with the cause: there are none.
  static nessie::Result<std::unique_ptr<Board>> create(const std::string &path, const std::string &door,
                                                       std::chrono::milliseconds patience);
  /// That of a server which has died, for the one that takes its place; a new one, if it has none. What the dead one
  /// had stays on it until forget_predecessor(). Errors as create().
  static nessie::Result<std::unique_ptr<Board>> take_over(const std::string &path, const std::string &door,
                                                          std::chrono::milliseconds patience);
  /// Makes the board of a server that is yet to start, for programs that look for it before that. Errors as create().
  static nessie::Status prepare(const std::string &path);
  ~Board();
  Board(const Board &) = delete;

  /// From now on whoever opens this file asks at the door first. One that is kept outlives the server.
  Entry enter(const FileIdentity &identity, bool is_kept = false);
  /// Whether the dead one had files that outlive it.
  bool had_kept_files() const { return std::ranges::any_of(predecessors_, &Entry::is_kept); }
  /// What is kept of a dead server's files has been entered: nobody need wait for others any more.
  void forget_predecessor();
  /// Something of this file is another than before: what was read of it is to be read again.
  void note_write(const FileIdentity &identity);
  /// Somebody writes to some file natively from now on: what was read of any is to be read again.
  void note_native();
  /// A file is not whole, and nobody works on it any more: `nessie run` has to know if it cannot ask this server.
  void note_failed();
  /// Whether some program of the run may have written to this file past the staging servers, or may do so.
  bool was_written_past(const FileIdentity &identity) const;
  void note_beside(const FileIdentity &identity);
  /// Tells those who wait that the server works.
  void show_life();

 private:
  Board(nessie_board *board, nessie_board_writes *writes) : board_(board), writes_(writes) {}
  static std::unique_ptr<Board> put_up(nessie_board *board, nessie_board_writes *writes, const std::string &door,
                                       std::chrono::milliseconds patience);
  void take_over_places();
  void leave(std::uint32_t place, bool is_kept);

  nessie_board *const board_;
  nessie_board_writes *const writes_;
  std::vector<Entry> predecessors_;  ///< of a server that has died
};

}  // namespace staging
