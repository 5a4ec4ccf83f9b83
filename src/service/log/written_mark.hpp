// SPDX-License-Identifier: BSD-3-Clause
// How far a log was written, in a page that outlives the process which writes it, though no power failure: so that what
// is missing before that is known to be missing, whether it was synced or not.
#pragma once

#include <service/log/store.hpp>

#include <string>
#include <utility>

namespace nessie::service {

class WrittenMark {
 public:
  /// In the file `path`, which is made if it is not there. kIo: it cannot be.
  static Result<WrittenMark> open(const std::string &path);
  /// Only to look: the file stays as it is, and is not raised.
  static WrittenMark look(const std::string &path);
  WrittenMark(WrittenMark &&other) noexcept : page_(std::exchange(other.page_, nullptr)), left_(other.left_) {}
  WrittenMark &operator=(WrittenMark &&) = delete;
  ~WrittenMark();

  /// What somebody has left: all before it was written since the machine was started; 0: nothing is known.
  Lsn left() const { return left_; }
  void raise(Lsn end);

 private:
  struct Page;
  WrittenMark(Page *page, Lsn left) : page_(page), left_(left) {}
  Page *page_;
  Lsn left_;
};

}  // namespace nessie::service
