// SPDX-License-Identifier: BSD-3-Clause
// What one server has of one stream: the blocks that its writers have put, by step and variable, as they were put.
// Knows no requests, and waits for nothing.
#pragma once

#include <services/streams/box_index.hpp>
#include <services/streams/server/store.hpp>

#include <algorithm>
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

/// Blocks that have elements, of one variable; those that meet a box are found without a look at the others.
class Blocks {
 public:
  void add(Block block) {
    index_.add(block.box);
    all_.push_back(std::move(block));
  }
  const std::vector<Block> &all() const { return all_; }
  /// Those that have an element in common with `box`; their data stay for as long as these copies.
  std::vector<Block> in(const Box &box) const;
  /// Any of them; null: there is none.
  const Block *find(const Box &box) const;
  const BoxIndex &index() const { return index_; }

 private:
  std::vector<Block> all_;
  BoxIndex index_;
};

struct KeptVariable {
  VariableArgs variable;
  Blocks blocks;
  std::int64_t elements = 0;
};

struct KeptStep {
  std::uint64_t group = 0;  ///< of writers
  std::map<std::string, KeptVariable, std::less<>> variables;
  std::map<std::pair<std::string, std::string>, AttributeArgs> attributes;  ///< by variable and name
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
  bool is_being_logged = false;  ///< its parts: nobody may put there what overlaps them
  Reservation room;              ///< for the step that was begun
  std::shared_ptr<WritersBuffers> buffers = std::make_shared<WritersBuffers>();

  /// Whether boxes of that variable are among the parts.
  bool has_some_of(std::size_t variable) const {
    return std::ranges::any_of(parts, [&](const auto &each) {
      return std::ranges::find(each.second.blocks, variable, &BlockArgs::variable) != each.second.blocks.end();
    });
  }
  void start_anew(std::uint32_t with) {
    attempt = with;
    parts.clear();
  }
};

class Shelf {
 public:
  explicit Shelf(Key stream) : stream_(stream) {}
  Key stream() const { return stream_; }
  /// What its chunks take.
  const std::shared_ptr<Tally> &tally() const { return tally_; }

  Seat *find_seat(Key writer);
  /// The writer's, made if it has none.
  Seat &make_seat(Key writer, std::uint32_t rank, std::uint32_t size, Lasting lasting);
  void remove_seat(Key writer);
  /// Those write now, from step `begin` on: what others have left from there on, and their seats, are gone. False:
  /// others write already, who came later.
  bool begin_group(std::uint64_t group, std::uint64_t begin);
  std::uint64_t group() const { return group_; }
  /// It has ended so many steps.
  void set_ended(Seat &seat, std::uint64_t steps);
  /// There is room for the step that it begins.
  void give_room(Seat &seat, Reservation room);
  /// Whether other writers have begun the step that this one begins, or ended it.
  bool is_awaited(const Seat &seat) const;
  /// Whether all writers have ended the steps before that one.
  bool is_oldest(std::uint64_t step) const { return standing_.empty() || standing_.begin()->first >= step; }

  /// All that the seat's parts bring becomes part of its step. An error (kInvalidArgument, kOutOfRange), which says
  /// what to correct: nothing has changed, but for the parts, which are gone.
  Status end_step(Seat &seat);
  /// Whether it would be.
  Status check_step(const Seat &seat);
  /// What a rank has put in a step, found in the log; of writers of another group, in place of what those before had
  /// put.
  KeptStep &restore(std::uint64_t step, const Seat &seat, std::vector<std::pair<VariableArgs, Block>> blocks,
                    std::vector<AttributeArgs> attributes, std::shared_ptr<Chunk> record);
  const std::map<std::uint64_t, KeptStep> &steps() const { return steps_; }
  KeptStep *find(std::uint64_t step);
  const KeptVariable *find(std::uint64_t step, std::string_view variable) const;
  /// Whether all writers that put here have ended it, and not all of that was reported.
  bool is_due(std::uint64_t step) const;
  /// What is to be reported of it now; it counts as reported then.
  StepReport report(std::uint64_t step, std::uint32_t server);

  /// Steps before `needed` go; of those in `kept`, which are in order, constants stay.
  void drop_before(std::uint64_t needed, const std::vector<std::uint64_t> &kept);

 private:
  /// Of those who have ended as many steps.
  struct Standing {
    std::size_t seats = 0, with_room = 0;
  };
  void stand(const Seat &seat);
  void rise(const Seat &seat);
  Status check_block(const Seat &seat, const BlockArgs &block, const KeptStep *step, BoxIndex &own) const;
  Status check_against(const Seat &seat, const Part &part, const Seat &other) const;
  void keep(KeptStep &step, const VariableArgs &variable, Block block);
  static void keep(KeptStep &step, std::vector<AttributeArgs> attributes);
  const Key stream_;
  std::uint64_t group_ = 0;  ///< of those who write now
  const std::shared_ptr<Tally> tally_ = std::make_shared<Tally>();
  std::map<Key, Seat> seats_;
  std::map<std::uint64_t, Standing> standing_;
  std::map<std::uint64_t, KeptStep> steps_;
};

}  // namespace streams
