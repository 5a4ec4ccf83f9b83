// SPDX-License-Identifier: BSD-3-Clause
// What one server has of one stream: the blocks that its writers have put, by step and variable, as they were put.
// Knows no requests, and waits for nothing.
#pragma once

#include <services/streams/geometry.hpp>
#include <services/streams/server/store.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace streams {

/// A box of a variable, and where its elements are.
struct Block {
  Box box;
  std::shared_ptr<Chunk> chunk;
  std::uint64_t offset = 0;
  std::uint32_t rank = 0;
};

struct KeptVariable {
  VariableArgs variable;
  std::vector<Block> blocks;
  std::int64_t elements = 0;
};

struct KeptStep {
  std::map<std::string, KeptVariable, std::less<>> variables;
  std::vector<AttributeArgs> attributes;
  std::uint64_t bytes = 0;
  std::set<Key> ended;                          ///< writers
  std::uint32_t reported = 0;                   ///< of those, the first server knows
  std::uint32_t writers = 0;                    ///< of the stream, then
  std::vector<std::shared_ptr<Chunk>> records;  ///< in the log, of a stream that is logged
};

/// What one write has brought: of a step that its writer has not ended.
struct Part {
  std::vector<BlockArgs> blocks;
  std::vector<AttributeArgs> attributes;
  std::shared_ptr<Chunk> chunk;
  bool keeps_buffer = false;
};

/// A writer's buffers that are kept where the writer has them, by their numbers.
struct WritersBuffers {
  std::set<std::uint64_t> kept;
  std::vector<std::uint64_t> released;  ///< not kept any more, and the writer has not been told
};

/// A writer whose data come here.
struct Seat {
  Key key = 0;
  std::uint32_t rank = 0, size = 1;
  Lasting lasting = Lasting::kInMemory;
  std::uint64_t ended = 0;  ///< steps, counted from the stream's first
  std::uint32_t attempt = 0;
  std::vector<VariableArgs> variables;
  std::map<std::uint32_t, Part> parts;
  std::uint64_t step_bytes = 0;  ///< that the last step took
  std::uint64_t reserved = 0;    ///< of memory, for the step that was begun
  std::shared_ptr<WritersBuffers> buffers = std::make_shared<WritersBuffers>();

  void start_anew(std::uint32_t with) {
    attempt = with;
    parts.clear();
  }
};

class Shelf {
 public:
  explicit Shelf(Key stream) : stream_(stream) {}
  Key stream() const { return stream_; }

  std::map<Key, Seat> seats;
  Seat *find_seat(Key writer);
  /// The writer's, made if it has none.
  Seat &make_seat(Key writer, std::uint32_t rank, std::uint32_t size, Lasting lasting);

  /// All that the seat's parts bring becomes part of its step. An error (kInvalidArgument, kOutOfRange), which says
  /// what to correct: nothing has changed, but for the parts, which are gone.
  Status end_step(Seat &seat);
  /// Whether it would be.
  Status check_step(const Seat &seat);
  /// A step of which a rank has put a variable already, found in the log.
  void restore(std::uint64_t step, const Seat &seat, std::vector<std::pair<VariableArgs, Block>> blocks,
               std::vector<AttributeArgs> attributes, std::shared_ptr<Chunk> record);
  const std::map<std::uint64_t, KeptStep> &steps() const { return steps_; }
  KeptStep *find(std::uint64_t step);
  const KeptVariable *find(std::uint64_t step, std::string_view variable) const;
  /// Whether all writers that put here have ended it, and not all of that was reported.
  bool is_due(std::uint64_t step) const;
  /// What is to be reported of it now; it counts as reported then.
  StepReport report(std::uint64_t step, std::uint32_t server);

  /// Steps before `needed` go; of those in `kept`, constants stay.
  void drop_before(std::uint64_t needed, const std::vector<std::uint64_t> &kept);
  /// Steps from `complete` on go, and all seats.
  void drop_writers(std::uint64_t complete);
  std::uint64_t memory_bytes() const;

 private:
  Status check_part(const Seat &seat, const Part &part, const KeptStep *step) const;
  const Key stream_;
  std::map<std::uint64_t, KeptStep> steps_;
};

}  // namespace streams
