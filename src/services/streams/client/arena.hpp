// SPDX-License-Identifier: BSD-3-Clause
// The parts of a step that a writer puts: buffers that are filled, sent, and, where a server keeps them where they are,
// not used again before it has released them.
#pragma once

#include <services/streams/client/session.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace streams {

/// A part of a step: what one write brings.
struct StepPart {
  WriteArgs args;
  nnti::RegisteredBuffer buffer;      ///< not valid: the data are in `args`, or there are none
  std::vector<nssi::Part> lent = {};  ///< instead: where a program's own data are
  std::size_t used = 0;               ///< of the buffer
  bool is_lent = false;
  bool has_span = false;  ///< the program computes into it until the step is ended
  bool is_sent = false;
  bool is_kept = false;  ///< the server has it in place, until it releases it
};

class Arena {
 public:
  explicit Arena(std::shared_ptr<Session> session) : session_(std::move(session)) {}
  ~Arena();

  /// Memory for a block's data, within a part; constants have parts of their own, which stay for long. kNoMemory.
  struct Place {
    StepPart *part;
    std::uint64_t offset;
    std::byte *memory;
  };
  Result<Place> make_room(std::size_t size_bytes, bool is_constant);
  /// The program's own memory, as a part of its own. Errors as nssi::Runtime::register_memory.
  Result<StepPart *> lend(std::span<const std::byte> data);

  std::vector<std::unique_ptr<StepPart>> &parts() { return parts_; }
  /// The step was ended: what a server keeps stays until it is released, and the rest can be used again.
  void end_step();
  /// Nothing of the step counts.
  void drop_step();
  void release(const std::vector<std::uint64_t> &numbers);
  /// What the servers keep still.
  void keep_only(const std::vector<std::uint64_t> &numbers);

 private:
  Result<StepPart *> new_part(std::size_t size_bytes);
  void recycle(StepPart &part);
  const std::shared_ptr<Session> session_;
  std::vector<std::unique_ptr<StepPart>> parts_;  ///< of the open step, in their order
  StepPart *open_ = nullptr, *open_constants_ = nullptr;
  std::map<std::uint64_t, nnti::RegisteredBuffer> kept_;
  std::uint64_t last_number_ = 0;
  std::size_t last_step_bytes_ = 0;
};

}  // namespace streams
