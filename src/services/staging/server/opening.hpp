// SPDX-License-Identifier: BSD-3-Clause
// What is being opened, so that a shutdown waits for it; and why something is not.
#pragma once

#include <nessie/result.hpp>
#include <service/wait_queue.hpp>

namespace staging {

/// For as long as it lives, one more is counted.
class Opening {
 public:
  Opening(int &count, nessie::service::WaitQueue &ended) : count_(count), ended_(ended) { ++count_; }
  ~Opening() {
    --count_;
    ended_.notify_all();
  }
  Opening(const Opening &) = delete;

 private:
  int &count_;
  nessie::service::WaitQueue &ended_;
};

inline nessie::Error shutting_down() {
  return {nessie::Code::kRefused, "the staging server is shutting down: nessie run was told to end"};
}
inline nessie::Error no_descriptors() { return {nessie::Code::kNoMemory, "a staging server has no descriptors left"}; }
inline nessie::Error token_taken() {
  return {nessie::Code::kExists, "a file with this token is open: a fault of the client"};
}

}  // namespace staging
