// SPDX-License-Identifier: BSD-3-Clause
// Sentences that the preloaded library sends when something of a program cannot be staged: that LD_PRELOAD was replaced
// for it, say. They come as datagrams to an abstract socket, which processes of any user and mount name space reach.
#pragma once

#include <nessie/result.hpp>

#include <string>
#include <vector>

namespace nessie::cli {

class Notes {
 public:
  /// kIo: there is no such socket; the run goes on without.
  static Result<Notes> open();
  Notes(Notes &&other) noexcept;
  Notes &operator=(Notes &&) = delete;
  ~Notes();

  /// For NESSIE_NOTES: the socket's name, without the zero in front.
  const std::string &address() const { return address_; }
  /// Can be read from when something has come.
  int fd() const { return fd_; }
  /// Takes in what has come, but no endless stream; does not wait.
  void take();
  /// Each sentence once, in the order of coming; a bounded number of them.
  const std::vector<std::string> &sentences() const { return sentences_; }

 private:
  Notes(int fd, std::string address) : fd_(fd), address_(std::move(address)) {}
  int fd_;
  std::string address_;
  std::vector<std::string> sentences_;
};

}  // namespace nessie::cli
