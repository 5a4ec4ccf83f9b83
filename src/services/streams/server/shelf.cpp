// SPDX-License-Identifier: BSD-3-Clause
#include <services/streams/server/shelf.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace streams {

namespace {

Error differs(const VariableArgs &ours, std::uint32_t rank) {
  return {Code::kInvalidArgument,
          fmt::format("rank {} describes variable '{}' otherwise than other ranks did in this step: type, shape, fill "
                      "value and whether it is constant have to be the same",
                      rank, ours.name)};
}

Error overlaps(const VariableArgs &variable, const Box &box, std::uint32_t rank, std::uint32_t other) {
  return {Code::kInvalidArgument, fmt::format("{} of rank {} overlaps what rank {} has put in this step",
                                              describe(variable.name, box), rank, other)};
}

const Block *find_overlap(const std::vector<Block> &blocks, const Box &box) {
  const auto found = std::ranges::find_if(blocks, [&](const Block &block) { return overlap(block.box, box); });
  return found == blocks.end() ? nullptr : &*found;
}

bool is_empty(const Box &box) { return elements_of(box) == 0; }

}  // namespace

Seat *Shelf::find_seat(Key writer) {
  const auto found = seats.find(writer);
  return found == seats.end() ? nullptr : &found->second;
}

Seat &Shelf::make_seat(Key writer, std::uint32_t rank, std::uint32_t size, Lasting lasting) {
  auto &seat = seats[writer];
  seat.key = writer;
  seat.rank = rank;
  seat.size = size;
  seat.lasting = lasting;
  return seat;
}

bool Shelf::begin_group(std::uint64_t group, std::uint64_t begin) {
  if (group < group_) return false;
  if (std::exchange(group_, group) != group) seats.clear();
  for (auto at = steps_.lower_bound(begin); at != steps_.end();)
    at = at->second.group == group ? std::next(at) : steps_.erase(at);
  return true;
}

KeptStep *Shelf::find(std::uint64_t step) {
  const auto found = steps_.find(step);
  return found == steps_.end() ? nullptr : &found->second;
}

const KeptVariable *Shelf::find(std::uint64_t step, std::string_view variable) const {
  const auto found = steps_.find(step);
  if (found == steps_.end()) return nullptr;
  const auto kept = found->second.variables.find(variable);
  return kept == found->second.variables.end() ? nullptr : &kept->second;
}

// --- steps ------------------------------------------------------------------------------------------------------------

/// With what other ranks have put.
Status Shelf::check_part(const Seat &seat, const Part &part, const KeptStep *step) const {
  if (step == nullptr) return {};
  for (const auto &block : part.blocks) {
    const auto &variable = seat.variables[block.variable];
    const auto kept = step->variables.find(variable.name);
    if (kept == step->variables.end()) continue;
    if (!agree(kept->second.variable, variable)) return differs(variable, seat.rank);
    if (is_empty(block.box)) continue;
    if (const auto *other = find_overlap(kept->second.blocks, block.box))
      return overlaps(variable, block.box, seat.rank, other->rank);
  }
  return {};
}

/// What another rank is about to put in the same step.
Status Shelf::check_against(const Seat &seat, const Part &part, const Seat &other) const {
  for (const auto &[number, theirs] : other.parts)
    for (const auto &block : part.blocks)
      for (const auto &their : theirs.blocks) {
        const auto &variable = seat.variables[block.variable], &same = other.variables[their.variable];
        if (variable.name != same.name) continue;
        if (!agree(variable, same)) return differs(variable, seat.rank);
        if (overlap(block.box, their.box)) return overlaps(variable, block.box, seat.rank, other.rank);
      }
  return {};
}

Status Shelf::check_step(const Seat &seat) {
  const auto *before = find(seat.ended);
  for (const auto &[number, part] : seat.parts) {
    if (auto status = check_part(seat, part, before); !status.ok()) return status;
    for (const auto &[key, other] : seats) {
      if (!other.is_being_logged || key == seat.key || other.ended != seat.ended) continue;
      if (auto status = check_against(seat, part, other); !status.ok()) return status;
    }
  }
  return {};
}

Status Shelf::end_step(Seat &seat) {
  if (auto status = check_step(seat); !status.ok()) {
    seat.parts.clear();
    return status;
  }
  auto &step = steps_[seat.ended];
  step.group = group_;
  step.writers = seat.size;
  seat.step_bytes = 0;
  for (auto &[number, part] : seat.parts) {
    for (auto &block : part.blocks) {
      const auto &variable = seat.variables[block.variable];
      auto &kept = step.variables[variable.name];
      kept.variable = variable;
      kept.elements += elements_of(block.box);
      if (!is_empty(block.box)) kept.blocks.push_back({std::move(block.box), part.chunk, block.offset, seat.rank});
    }
    std::ranges::move(part.attributes, std::back_inserter(step.attributes));
    if (part.chunk) seat.step_bytes += part.chunk->size_bytes();
  }
  step.bytes += seat.step_bytes;
  step.ended.insert(seat.key);
  seat.parts.clear();
  seat.attempt = 0;
  ++seat.ended;
  return {};
}

KeptStep &Shelf::restore(std::uint64_t step, const Seat &seat, std::vector<std::pair<VariableArgs, Block>> blocks,
                         std::vector<AttributeArgs> attributes, std::shared_ptr<Chunk> record) {
  auto &kept_step = steps_[step];
  if (kept_step.group != group_) kept_step = {};
  kept_step.group = group_;
  kept_step.writers = seat.size;
  kept_step.records.push_back(std::move(record));
  for (auto &[variable, block] : blocks) {
    auto &kept = kept_step.variables[variable.name];
    kept.variable = variable;
    kept.elements += elements_of(block.box);
    kept_step.bytes += bytes_of(variable, block.box);
    if (!is_empty(block.box)) kept.blocks.push_back(std::move(block));
  }
  std::ranges::move(attributes, std::back_inserter(kept_step.attributes));
  kept_step.ended.insert(seat.key);
  return kept_step;
}

bool Shelf::is_due(std::uint64_t step) const {
  const auto found = steps_.find(step);
  if (found == steps_.end() || found->second.reported == found->second.ended.size()) return false;
  return std::ranges::all_of(seats, [&](const auto &each) { return each.second.ended > step; });
}

StepReport Shelf::report(std::uint64_t number, std::uint32_t server) {
  auto &step = steps_.at(number);
  StepReport report;
  report.stream = stream_;
  report.server = server;
  report.step = number;
  report.group = step.group;
  report.writers = step.writers;
  report.ended = static_cast<std::uint32_t>(step.ended.size());
  report.bytes = step.bytes;
  report.attributes = step.attributes;
  for (const auto &[name, kept] : step.variables) {
    auto &told = report.variables.emplace_back();
    told.variable = kept.variable;
    for (const auto &block : kept.blocks) told.boxes.push_back(block.box);
  }
  step.reported = static_cast<std::uint32_t>(step.ended.size());
  return report;
}

// --- what goes --------------------------------------------------------------------------------------------------------

void Shelf::drop_before(std::uint64_t needed, const std::vector<std::uint64_t> &kept) {
  for (auto at = steps_.begin(); at != steps_.end() && at->first < needed;) {
    if (std::ranges::find(kept, at->first) == kept.end()) {
      at = steps_.erase(at);
      continue;
    }
    std::erase_if(at->second.variables, [](const auto &each) { return !each.second.variable.is_constant; });
    ++at;
  }
}

std::uint64_t Shelf::memory_bytes() const {
  std::set<const Chunk *> counted;
  std::uint64_t bytes = 0;
  for (const auto &[number, step] : steps_)
    for (const auto &[name, kept] : step.variables)
      for (const auto &block : kept.blocks)
        if (block.chunk->is_in_memory() && counted.insert(block.chunk.get()).second) bytes += block.chunk->size_bytes();
  return bytes;
}

}  // namespace streams
