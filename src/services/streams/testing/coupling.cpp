// SPDX-License-Identifier: BSD-3-Clause
#include <services/streams/testing/coupling.hpp>

#include <services/streams/testing/arrays.hpp>

#include <base/crc32c.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <span>
#include <vector>

namespace streams::testing {

using api::Box;
using api::Extents;
using api::Order;
using api::Reader;
using api::StepState;
using api::Variable;
using api::Writer;
using nessie::Code;
using nessie::Error;
using nessie::Result;
using nessie::Status;

namespace {

constexpr std::uint64_t kSteps = 8;
constexpr std::uint64_t kMostExtents[] = {900, 40, 14, 7};  ///< of arrays of one to four dimensions
constexpr int kBoxesOfScattered = 3;

/// What a program writes.
struct Output {
  Coupling coupling;
  Program program;
  bool is_core() const { return program == Program::kCore; }
  int ranks() const { return is_core() ? coupling.core : coupling.edge; }
  std::string stream() const {
    return fmt::format("{}x{}.{}", coupling.core, coupling.edge, is_core() ? "core" : "edge");
  }
  /// A step's among those of all programs of all couplings.
  std::uint64_t number(std::uint64_t step) const {
    const auto one = static_cast<std::uint64_t>((coupling.core * 9 + coupling.edge) * 2 + (is_core() ? 0 : 1));
    return one * kSteps + step;
  }
  std::vector<Variable> arrays(std::uint64_t step) const {
    std::minstd_rand random(static_cast<unsigned>(number(step)) + 1);
    std::vector<Variable> arrays;
    for (std::size_t dimensions = 1; dimensions <= std::size(kMostExtents); ++dimensions) {
      auto &array = arrays.emplace_back();
      array.name = fmt::format("x{}", dimensions);
      for (std::size_t d = 0; d < dimensions; ++d)
        array.shape.push_back(static_cast<std::int64_t>(1 + random() % kMostExtents[dimensions - 1]));
    }
    return arrays;
  }
};

// --- who has which elements, and how they lie -------------------------------------------------------------------------

enum class Cut { kRows, kColumns, kBlocks, kScattered };

Cut cut_of_writers(std::uint64_t step) { return static_cast<Cut>(step % 4); }
Cut cut_of_readers(std::uint64_t step) { return static_cast<Cut>((step + 1 + step / 4) % 4); }
Order order_of_writer(std::uint64_t step, int rank) {
  return (step + static_cast<std::uint64_t>(rank)) % 2 == 0 ? Order::kC : Order::kFortran;
}
Order order_of_reader(std::uint64_t step, int rank) { return order_of_writer(step / 2, rank); }

Box slab(const Extents &shape, std::size_t dimension, int rank, int ranks) {
  auto box = api::whole(shape);
  const auto first = shape[dimension] * rank / ranks, behind = shape[dimension] * (rank + 1) / ranks;
  box.start[dimension] = first;
  box.count[dimension] = behind - first;
  return box;
}

/// Halves the largest until there are so many; some have no elements where those are too few.
std::vector<Box> blocks(const Extents &shape, int count) {
  std::vector<Box> boxes{api::whole(shape)};
  while (boxes.size() < static_cast<std::size_t>(count)) {
    auto &largest = *std::ranges::max_element(boxes, {}, elements_of);
    const auto longest = std::ranges::max_element(largest.count) - largest.count.begin();
    const auto d = static_cast<std::size_t>(longest);
    auto rest = largest;
    largest.count[d] /= 2;
    rest.start[d] += largest.count[d];
    rest.count[d] -= largest.count[d];
    boxes.push_back(std::move(rest));
  }
  return boxes;
}

std::vector<Box> boxes_of(const Extents &shape, Cut cut, int rank, int ranks) {
  if (cut == Cut::kRows) return {slab(shape, 0, rank, ranks)};
  if (cut == Cut::kColumns) return {slab(shape, shape.size() - 1, rank, ranks)};
  const auto all = blocks(shape, cut == Cut::kBlocks ? ranks : kBoxesOfScattered * ranks);
  std::vector<Box> boxes;
  for (auto i = static_cast<std::size_t>(rank); i < all.size(); i += static_cast<std::size_t>(ranks))
    boxes.push_back(all[i]);
  return boxes;
}

std::size_t place_in_fortran(const Box &box, const Extents &at) {
  std::int64_t place = 0;
  for (auto d = at.size(); d-- > 0;) place = place * box.count[d] + (at[d] - box.start[d]);
  return static_cast<std::size_t>(place);
}

std::vector<double> elements(std::uint64_t number, const Box &box, Order order) {
  std::vector<double> elements(static_cast<std::size_t>(elements_of(box)));
  for_each_element(box, [&](const auto &at, std::size_t place) {
    elements[order == Order::kC ? place : place_in_fortran(box, at)] = value_at(number, at);
  });
  return elements;
}

// --- a rank -----------------------------------------------------------------------------------------------------------

Error wrong(std::string what) { return {Code::kInternal, std::move(what)}; }

Status put(Writer &writer, const Variable &array, const Box &box, const std::vector<double> &elements, Order order) {
  const bool lends = order == Order::kC && box.start.front() % 2 == 0;
  return lends ? writer.put_lent(array.name, box, elements.data())
               : writer.put(array.name, box, elements.data(), order);
}

Status write_step(Writer &writer, const Output &output, int rank) {
  const auto step = writer.step();
  const auto order = order_of_writer(step, rank);
  const auto arrays = output.arrays(step);
  for (const auto &array : arrays)
    if (auto defined = writer.define(array); !defined.ok()) return defined;
  const auto begun = writer.begin_step(soon());
  if (!begun.ok()) return begun.error();
  if (*begun != StepState::kOk) return wrong(fmt::format("step {} cannot begin", step));
  std::vector<std::vector<double>> lent;
  for (const auto &array : arrays)
    for (const auto &box : boxes_of(array.shape, cut_of_writers(step), rank, output.ranks())) {
      lent.push_back(elements(output.number(step), box, order));
      if (auto status = put(writer, array, box, lent.back(), order); !status.ok()) return status;
    }
  return writer.end_step(soon());
}

class Checked {
 public:
  Checked(Reader &reader, const Output &output, int rank, int ranks)
      : reader_(reader), output_(output), rank_(rank), ranks_(ranks) {}
  Status read_step(std::uint64_t step) {
    const auto begun = reader_.begin_step(soon());
    if (!begun.ok()) return begun.error();
    if (*begun != StepState::kOk || reader_.step() != step || reader_.missed() != 0)
      return wrong(fmt::format("step {} of {} is {}", step, output_.stream(), reader_.step()));
    for (const auto &array : output_.arrays(step)) {
      const auto *found = reader_.find(array.name);
      if (found == nullptr || *found != array)
        return wrong(fmt::format("{} of step {} of {} is another one", array.name, step, output_.stream()));
      for (const auto &box : boxes_of(array.shape, cut_of_readers(step), rank_, ranks_))
        if (auto status = read(array, box); !status.ok()) return status;
    }
    return reader_.end_step();
  }
  Status read_end() {
    const auto begun = reader_.begin_step(soon());
    if (!begun.ok()) return begun.error();
    if (*begun != StepState::kEnd) return wrong(output_.stream() + " does not end");
    return {};
  }
  std::uint32_t checksum() const { return checksum_; }

 private:
  Status read(const Variable &array, const Box &box) {
    const auto step = reader_.step();
    const auto order = order_of_reader(step, rank_);
    const auto expected = elements(output_.number(step), box, order);
    std::vector<double> got(expected.size(), -1);
    auto status = reader_.get(array.name, box, got.data(), got.size() * sizeof(double), soon(), order);
    if (!status.ok()) return status;
    if (const auto [is, should] = std::ranges::mismatch(got, expected); is != got.end())
      return wrong(fmt::format("element {} of a box of {} of step {} of {} is {}, and not {}", is - got.begin(),
                               array.name, step, output_.stream(), *is, *should));
    checksum_ = nessie::crc32c(std::as_bytes(std::span(got)), checksum_);
    return {};
  }
  Reader &reader_;
  const Output &output_;
  const int rank_, ranks_;
  std::uint32_t checksum_ = 0;
};

}  // namespace

Result<std::uint32_t> couple(const Coupling &coupling, Program program, int rank, const std::string &at) {
  const bool is_core = program == Program::kCore;
  const Output mine{coupling, program}, others{coupling, is_core ? Program::kEdge : Program::kCore};
  const int ranks = mine.ranks();
  auto writer = Writer::open(mine.stream(), {.rank = rank, .size = ranks, .at = at, .await_readers = 1}, soon());
  if (!writer.ok()) return writer.error();
  auto reader = Reader::open(others.stream(), {.rank = rank, .size = ranks, .at = at, .group = 7}, soon());
  if (!reader.ok()) return reader.error();
  Checked checked(*reader, others, rank, ranks);
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    if (auto status = write_step(*writer, mine, rank); !status.ok()) return status.error();
    if (auto status = checked.read_step(step); !status.ok()) return status.error();
  }
  if (auto status = writer->close(soon()); !status.ok()) return status.error();
  if (auto status = checked.read_end(); !status.ok()) return status.error();
  if (auto status = reader->close(soon()); !status.ok()) return status.error();
  return checked.checksum();
}

}  // namespace streams::testing
