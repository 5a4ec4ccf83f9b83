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

bool is_empty(const Box &box) { return elements_of(box) == 0; }

}  // namespace

std::vector<Block> Blocks::in(const Box &box) const {
  std::vector<Block> found;
  for (const auto number : index_.all(box)) found.push_back(all_[number]);
  return found;
}

const Block *Blocks::find(const Box &box) const {
  const auto found = index_.find(box);
  return found ? &all_[found->number] : nullptr;
}

// --- writers ----------------------------------------------------------------------------------------------------------

Seat *Shelf::find_seat(Key writer) {
  const auto found = seats_.find(writer);
  return found == seats_.end() ? nullptr : &found->second;
}

Seat &Shelf::make_seat(Key writer, std::uint32_t rank, std::uint32_t size, Lasting lasting) {
  const auto [at, is_new] = seats_.try_emplace(writer);
  auto &seat = at->second;
  seat.key = writer;
  seat.rank = rank;
  seat.size = size;
  seat.lasting = lasting;
  if (is_new) stand(seat);
  return seat;
}

void Shelf::remove_seat(Key writer) {
  const auto found = seats_.find(writer);
  if (found == seats_.end()) return;
  rise(found->second);
  seats_.erase(found);
}

bool Shelf::begin_group(std::uint64_t group, std::uint64_t begin) {
  if (group < group_) return false;
  if (std::exchange(group_, group) != group) {
    seats_.clear();
    standing_.clear();
  }
  for (auto at = steps_.lower_bound(begin); at != steps_.end();)
    at = at->second.group == group ? std::next(at) : steps_.erase(at);
  return true;
}

void Shelf::stand(const Seat &seat) {
  auto &standing = standing_[seat.ended];
  ++standing.seats;
  standing.with_room += seat.room ? 1 : 0;
}

void Shelf::rise(const Seat &seat) {
  const auto at = standing_.find(seat.ended);
  at->second.with_room -= seat.room ? 1 : 0;
  if (--at->second.seats == 0) standing_.erase(at);
}

void Shelf::set_ended(Seat &seat, std::uint64_t steps) {
  rise(seat);
  seat.ended = steps;
  stand(seat);
}

void Shelf::give_room(Seat &seat, Reservation room) {
  rise(seat);
  seat.room = std::move(room);
  stand(seat);
}

bool Shelf::is_awaited(const Seat &seat) const {
  const auto own = standing_.find(seat.ended);
  return own->second.with_room > (seat.room ? 1u : 0u) || std::next(own) != standing_.end();
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

/// With what other ranks have put, and with what this one has put before.
Status Shelf::check_block(const Seat &seat, const BlockArgs &block, const KeptStep *step, BoxIndex &own) const {
  const auto &variable = seat.variables[block.variable];
  const auto kept = step != nullptr ? step->variables.find(variable.name) : decltype(step->variables.end()){};
  const bool has_others = step != nullptr && kept != step->variables.end();
  if (has_others && !agree(kept->second.variable, variable)) return differs(variable, seat.rank);
  if (is_empty(block.box)) return {};
  if (own.find(block.box))
    return Error{Code::kOutOfRange,
                 fmt::format("{} overlaps another box of rank {}", describe(variable.name, block.box), seat.rank)};
  own.add(block.box);
  const auto *other = has_others ? kept->second.blocks.find(block.box) : nullptr;
  return other != nullptr ? overlaps(variable, block.box, seat.rank, other->rank) : Status();
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
  std::map<std::uint32_t, BoxIndex> own;
  for (const auto &[number, part] : seat.parts)
    for (const auto &block : part.blocks)
      if (auto status = check_block(seat, block, before, own[block.variable]); !status.ok()) return status;
  for (const auto &[key, other] : seats_) {
    if (!other.is_being_logged || key == seat.key || other.ended != seat.ended) continue;
    for (const auto &[number, part] : seat.parts)
      if (auto status = check_against(seat, part, other); !status.ok()) return status;
  }
  return {};
}

void Shelf::keep(KeptStep &step, const VariableArgs &variable, Block block) {
  auto &kept = step.variables[variable.name];
  if (kept.variable != variable) kept.variable = variable;
  kept.elements += elements_of(block.box);
  if (!is_empty(block.box)) kept.blocks.add(std::move(block));
}

/// Many ranks say the same.
void Shelf::keep(KeptStep &step, std::vector<AttributeArgs> attributes) {
  for (auto &attribute : attributes) {
    std::pair<std::string, std::string> name(attribute.variable, attribute.name);
    step.attributes.insert_or_assign(std::move(name), std::move(attribute));
  }
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
    for (auto &block : part.blocks)
      keep(step, seat.variables[block.variable], {std::move(block.box), part.chunk, block.offset, seat.rank});
    keep(step, std::move(part.attributes));
    if (part.chunk) seat.step_bytes += part.chunk->size_bytes();
  }
  step.bytes += seat.step_bytes;
  step.ended.insert(seat.key);
  seat.parts.clear();
  seat.attempt = 0;
  give_room(seat, {});
  set_ended(seat, seat.ended + 1);
  return {};
}

KeptStep &Shelf::restore(std::uint64_t step, const Seat &seat, std::vector<std::pair<VariableArgs, Block>> blocks,
                         std::vector<AttributeArgs> attributes, std::shared_ptr<Chunk> record) {
  auto &kept_step = steps_[step];
  if (kept_step.group != group_) kept_step = {};
  kept_step.group = group_;
  kept_step.writers = seat.size;
  kept_step.records.push_back(std::move(record));
  bool agrees = true;
  for (auto &[variable, block] : blocks) {
    const auto same = kept_step.variables.find(variable.name);
    if (same != kept_step.variables.end() && !agree(same->second.variable, variable)) {
      agrees = false;  // it is not a server that has written this
      continue;
    }
    kept_step.bytes += bytes_of(variable, block.box);
    keep(kept_step, variable, std::move(block));
  }
  keep(kept_step, std::move(attributes));
  if (agrees) kept_step.ended.insert(seat.key);
  return kept_step;
}

bool Shelf::is_due(std::uint64_t step) const {
  const auto found = steps_.find(step);
  if (found == steps_.end() || found->second.reported == found->second.ended.size()) return false;
  return is_oldest(step + 1);
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
  for (const auto &[name, attribute] : step.attributes) report.attributes.push_back(attribute);
  for (const auto &[name, kept] : step.variables) {
    auto &told = report.variables.emplace_back();
    told.variable = kept.variable;
    for (const auto &block : kept.blocks.all()) told.boxes.push_back(block.box);
  }
  step.reported = static_cast<std::uint32_t>(step.ended.size());
  return report;
}

// --- what goes --------------------------------------------------------------------------------------------------------

void Shelf::drop_before(std::uint64_t needed, const std::vector<std::uint64_t> &kept) {
  for (auto at = steps_.begin(); at != steps_.end() && at->first < needed;) {
    if (!std::ranges::binary_search(kept, at->first)) {
      at = steps_.erase(at);
      continue;
    }
    std::erase_if(at->second.variables, [](const auto &each) { return !each.second.variable.is_constant; });
    ++at;
  }
}

}  // namespace streams
