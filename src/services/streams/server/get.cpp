// SPDX-License-Identifier: BSD-3-Clause
// What readers get: boxes, put together of the blocks that writers have put, and pushed into the reader's array.
//
// Design notes. What is contiguous both in a block and in the reader's array is pushed from where it lies. Otherwise a
// slice of the array is put together in a buffer that stays in the processor's cache, and pushed at once: a push costs
// as much as copying some kilobytes, and rows are often shorter.
#include <services/streams/server/server.hpp>

#include <nssi/memory.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace streams {

namespace {

constexpr std::size_t kSliceBytes = 256 << 10;
constexpr std::size_t kPushAlone = 64 << 10;  ///< a run of so many bytes

Error step_is_gone(std::uint64_t step) {
  return {Code::kNotFound, fmt::format("step {} is not there any more, or not that variable of it", step)};
}

std::uint64_t count_in_box(const Blocks &blocks, const Box &box) {
  std::uint64_t elements = 0;
  for (const auto &block : blocks.in(box))
    elements += static_cast<std::uint64_t>(elements_of(*intersection(block.box, box)));
  return elements;
}

/// Behind the last element of `part` among those of `box`.
std::int64_t end_in(const Box &box, Box part) {
  for (std::size_t d = 0; d < part.start.size(); ++d) part.start[d] += part.count[d] - 1;
  return place_in(box, part) + 1;
}

}  // namespace

/// Of a slice, which is a run of `box`, what the sources have: how many elements.
Result<std::int64_t> Server::push_slice(Request &request, std::size_t element_bytes,
                                        const std::vector<Source *> &sources, const Box &box, const Box &slice,
                                        std::span<std::byte> gathered) {
  const auto place = static_cast<std::uint64_t>(place_in(box, slice)) * element_bytes;
  std::vector<Box> parts;
  std::int64_t elements = 0;
  for (const auto *source : sources) {
    auto part = *intersection(source->part, slice);
    copy_part(part, element_bytes, source->held.bytes.data(), source->block.box, gathered.data(), slice);
    elements += elements_of(part);
    parts.push_back(std::move(part));
  }
  if (elements == elements_of(slice)) {
    const auto bytes = static_cast<std::uint64_t>(elements) * element_bytes;
    if (auto status = request.put_data(gathered.first(bytes), place); !status.ok()) return status.error();
    return elements;
  }
  for (const auto &part : parts)  // what lies between is not ours to write
    for (Slices runs(part, element_bytes, run_bytes(slice, part, element_bytes)); !runs.done(); runs.next()) {
      const auto at = static_cast<std::uint64_t>(place_in(slice, runs.slice())) * element_bytes;
      const auto bytes = static_cast<std::uint64_t>(runs.elements()) * element_bytes;
      if (auto status = request.put_data(gathered.subspan(at, bytes), place + at); !status.ok()) return status.error();
    }
  return elements;
}

/// How many elements, of blocks that all meet the box.
Result<std::int64_t> Server::push(Request &request, const VariableArgs &variable, std::vector<Block> blocks,
                                  const Box &box) {
  const auto element = size_of(variable.type);
  std::int64_t elements = 0;
  std::vector<Source> others;
  for (auto &block : blocks) {
    auto part = *intersection(block.box, box);
    const auto bytes = static_cast<std::uint64_t>(elements_of(part)) * element;
    if (bytes < kPushAlone || !is_run_of(block.box, part) || !is_run_of(box, part)) {
      others.push_back({std::move(block), std::move(part)});
      continue;
    }
    const auto first = static_cast<std::uint64_t>(place_in(block.box, part)) * element;
    const auto held = store_->bytes_of(*block.chunk, block.offset + first, bytes);
    if (!held.ok()) return held.error();
    const auto to = static_cast<std::uint64_t>(place_in(box, part)) * element;
    if (auto status = request.put_data(held->bytes, to); !status.ok()) return status.error();
    elements += elements_of(part);
  }
  if (others.empty()) return elements;
  const auto pushed = push_slices(request, variable, others, box);
  return pushed.ok() ? Result<std::int64_t>(elements + *pushed) : pushed;
}

/// Blocks that are in the log are read when the first slice needs them, and go with the last one that does.
Result<std::int64_t> Server::push_slices(Request &request, const VariableArgs &variable, std::vector<Source> &sources,
                                         const Box &box) {
  const auto element = size_of(variable.type);
  const auto whole_bytes = bytes_of(variable, box);
  auto memory = nssi::Memory::borrow(runtime_, std::min<std::uint64_t>(kSliceBytes + element, whole_bytes));
  if (!memory.ok()) return memory.error();
  BoxIndex index;
  for (const auto &source : sources) index.add(source.part);
  std::int64_t elements = 0;
  for (Slices slices(box, element, kSliceBytes); !slices.done(); slices.next()) {
    const auto &slice = slices.slice();
    std::vector<Source *> needed;
    for (const auto number : index.all(slice)) {
      auto &source = *needed.emplace_back(&sources[number]);
      if (source.held.keep) continue;
      auto held = store_->bytes_of(*source.block.chunk, source.block.offset, bytes_of(variable, source.block.box));
      if (!held.ok()) return held.error();
      source.held = *std::move(held);
    }
    const auto pushed = push_slice(request, element, needed, box, slice, memory->bytes());
    if (!pushed.ok()) return pushed;
    elements += *pushed;
    for (auto *source : needed)
      if (end_in(box, source->part) <= end_in(box, slice)) source->held = {};
  }
  return elements;
}

nssi::Outcome<GetResult> Server::get(Request &request, const GetArgs &args) {
  const auto stream = find(args.stream);
  if (stream && stream->is_file) {
    const auto from = find_in_file(*stream, args);
    return from ? get_of_file(request, *from, args) : step_is_gone(args.step);
  }
  const auto *kept = stream ? stream->shelf.find(args.step, args.variable) : nullptr;
  if (kept == nullptr) return step_is_gone(args.step);
  if (auto status = check_inside(kept->variable, args.box); !status.ok()) return status.error();
  if (args.only_counts) return GetResult{count_in_box(kept->blocks, args.box)};
  if (request.data_bytes() < bytes_of(kept->variable, args.box))
    return Error{Code::kOutOfRange, "the caller's buffer is too small for the box"};
  const auto variable = kept->variable;
  auto pushed = push(request, variable, kept->blocks.in(args.box), args.box);  // the step may go meanwhile
  if (!pushed.ok()) return pushed.error();
  return GetResult{static_cast<std::uint64_t>(*pushed)};
}

// --- figures ----------------------------------------------------------------------------------------------------------

namespace {

template <class T>
void count_in(FiguresResult &figures, const std::byte *bytes, std::int64_t elements,
              const std::vector<std::byte> &fill) {
  const auto *values = reinterpret_cast<const T *>(bytes);
  const bool has_fill = fill.size() == sizeof(T);
  T filler{};
  if (has_fill) std::memcpy(&filler, fill.data(), sizeof filler);
  for (std::int64_t i = 0; i < elements; ++i) {
    const auto value = static_cast<double>(values[i]);
    if (std::isnan(value) || (has_fill && values[i] == filler)) continue;
    figures.minimum = std::min(figures.minimum, value);
    figures.maximum = std::max(figures.maximum, value);
    figures.sum += value;
    ++figures.counted;
  }
}

void count(FiguresResult &figures, const VariableArgs &variable, const std::byte *bytes, std::int64_t elements) {
  const auto as = [&]<class T>(T) { count_in<T>(figures, bytes, elements, variable.fill); };
  switch (variable.type) {
    case ElementType::kInt8: return as(std::int8_t{});
    case ElementType::kInt16: return as(std::int16_t{});
    case ElementType::kInt32: return as(std::int32_t{});
    case ElementType::kInt64: return as(std::int64_t{});
    case ElementType::kUint8: return as(std::uint8_t{});
    case ElementType::kUint16: return as(std::uint16_t{});
    case ElementType::kUint32: return as(std::uint32_t{});
    case ElementType::kUint64: return as(std::uint64_t{});
    case ElementType::kFloat: return as(float{});
    case ElementType::kDouble: return as(double{});
    case ElementType::kChar: return;
  }
}

}  // namespace

namespace {

FiguresResult no_figures() {
  return {0, 0, std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), 0};
}

}  // namespace

nssi::Outcome<FiguresResult> Server::figures_of_file(Request &request, const FileVariable &from, const GetArgs &args) {
  if (auto status = check_inside(from.variable, args.box); !status.ok()) return status.error();
  auto figures = no_figures();
  auto status = read_file(request, from, args.box, [&](const Box &slice, std::span<std::byte> bytes) {
    figures.elements += static_cast<std::uint64_t>(elements_of(slice));
    count(figures, from.variable, bytes.data(), elements_of(slice));
    return Status();
  });
  if (!status.ok()) return status.error();
  return figures;
}

nssi::Outcome<FiguresResult> Server::figures(Request &request, const GetArgs &args) {
  const auto stream = find(args.stream);
  if (stream && stream->is_file) {
    const auto from = find_in_file(*stream, args);
    return from ? figures_of_file(request, *from, args) : step_is_gone(args.step);
  }
  const auto *kept = stream ? stream->shelf.find(args.step, args.variable) : nullptr;
  if (kept == nullptr) return step_is_gone(args.step);
  if (auto status = check_inside(kept->variable, args.box); !status.ok()) return status.error();
  const auto variable = kept->variable;
  auto figures = no_figures();
  const auto element = size_of(variable.type);
  std::vector<std::byte> gathered;
  for (const auto &block : kept->blocks.in(args.box)) {
    const auto part = *intersection(block.box, args.box);
    const auto held = store_->bytes_of(*block.chunk, block.offset, bytes_of(variable, block.box));
    if (!held.ok()) return held.error();
    figures.elements += static_cast<std::uint64_t>(elements_of(part));
    for (Slices slices(part, element, kSliceBytes); !slices.done(); slices.next()) {
      gathered.resize(static_cast<std::size_t>(slices.elements()) * element);
      copy_part(slices.slice(), element, held->bytes.data(), block.box, gathered.data(), slices.slice());
      count(figures, variable, gathered.data(), slices.elements());
    }
  }
  return figures;
}

}  // namespace streams
