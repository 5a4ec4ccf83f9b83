// SPDX-License-Identifier: BSD-3-Clause
#include "services/streams/sinks/image.hpp"

#include "services/streams/sinks/disk.hpp"
#include "services/streams/sinks/slabs.hpp"

#include <base/crc32c.hpp>

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace nessie::streams::sinks {

namespace {

constexpr std::size_t kAlignment = 4;     ///< of variables in a classic file
constexpr std::size_t kNumRecordsAt = 4;  ///< in the header of CDF-5: eight bytes, the most significant first

std::uint64_t rounded_up(std::uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::uint64_t bytes_of_shape(const FileVariable &variable) {
  return elements_of(whole(variable.variable.shape)) * size_of(variable.variable.type);
}

}  // namespace

// --- where everything lies --------------------------------------------------------------------------------------------

/// NetCDF-C knows how to write a header, but not into memory of ours: it writes one into a file that has no name.
Status ImageMaker::describe(Layout layout) {
  if (!contents_.empty() && layout == layout_) return {};
  contents_.clear();
  const Fd unnamed(::memfd_create("step", MFD_CLOEXEC));
  if (!unnamed) return cannot("make", "a step's image");
  const auto path = fmt::format("/proc/self/fd/{}", unnamed.get());
  auto netcdf = NetcdfFile::create(path);
  if (!netcdf.ok()) return netcdf.error();
  auto file = StepFile::define(*std::move(netcdf), layout, 0);
  if (!file.ok()) return file.error();
  if (auto given = file->sync(); !given.ok()) return given;
  auto form = read_header(unnamed, path);
  if (!form.ok()) return form.error();
  form_ = *std::move(form);
  layout_ = std::move(layout);
  return find_contents();
}

Status ImageMaker::find_contents() {
  std::vector<Content> all;
  const auto add = [&](const std::string &name, Kind kind, std::size_t variable) -> Status {
    auto content = place_of(name, kind, variable);
    if (content.ok()) all.push_back(*content);
    return content.ok() ? Status() : Status(content.error());
  };
  if (auto added = add(layout_.step_name, Kind::kNumber, 0); !added.ok()) return added;
  for (std::size_t i = 0; i < layout_.variables.size(); ++i) {
    const auto &variable = layout_.variables[i];
    if (auto added = add(variable.name, Kind::kElements, i); !added.ok()) return added;
    if (variable.shape_name.empty()) continue;
    if (auto added = add(variable.shape_name, Kind::kShape, i); !added.ok()) return added;
  }
  std::ranges::sort(all, {}, &Content::begin);
  size_bytes_ = rounded_up(all.back().begin + bytes_of(all.back()));
  contents_ = std::move(all);
  return {};
}

Result<ImageMaker::Content> ImageMaker::place_of(const std::string &name, Kind kind, std::size_t variable) const {
  const auto *found = form_.find(name);
  if (found == nullptr) return Error{Code::kBadMessage, fmt::format("the step's image has no variable '{}'", name)};
  return Content{found->begin, kind, variable};
}

std::uint64_t ImageMaker::bytes_of(const Content &content) const {
  if (content.kind == Kind::kNumber) return sizeof(std::int64_t);
  const auto &variable = layout_.variables[content.variable];
  return content.kind == Kind::kElements ? bytes_of_shape(variable)
                                         : variable.variable.shape.size() * sizeof(std::int64_t);
}

// --- what is there ----------------------------------------------------------------------------------------------------

Result<Image> ImageMaker::make(Step &step) {
  if (auto described = describe(layout_of(origin_, step)); !described.ok()) return described.error();
  try {
    memory_.resize(std::max<std::uint64_t>(memory_.size(), size_bytes_));
  } catch (const std::bad_alloc &) {
    return Error{Code::kNoMemory, fmt::format("a step of {} bytes has no room in memory", size_bytes_)};
  }
  std::ranges::copy(form_.bytes, memory_.begin());
  std::fill_n(memory_.begin() + kNumRecordsAt, sizeof(std::int64_t), std::byte{0});
  memory_[kNumRecordsAt + sizeof(std::int64_t) - 1] = std::byte{1};
  at_ = 0, checksum_ = 0;
  turn_and_take(form_.bytes.size(), 1);
  for (const auto &content : contents_) {
    fill_up(content.begin);
    if (auto appended = append(content, step); !appended.ok()) return appended.error();
  }
  fill_up(size_bytes_);
  return Image{std::span(memory_).first(at_), checksum_};
}

Status ImageMaker::append(const Content &content, Step &step) {
  const auto number = static_cast<std::int64_t>(step.number());
  if (content.kind == Kind::kNumber) return append_integers({&number, 1}), Status();
  const auto &variable = layout_.variables[content.variable];
  if (content.kind == Kind::kElements) return append_elements(variable, step);
  append_integers(find(step, variable.variable.name)->shape);
  return {};
}

Status ImageMaker::append_elements(const FileVariable &variable, Step &step) {
  const auto &now = *find(step, variable.variable.name);
  if (now.shape != variable.variable.shape) return append_fill(variable), Status();  // it has no elements
  const auto element = size_of(now.type);
  return for_each_slab(whole(now.shape), now.type, kCachedBytes, [&](const Box &box) {
    const auto bytes = elements_of(box) * element;
    auto got = step.get(now, box, behind(bytes));
    if (got.ok()) turn_and_take(bytes, element);
    return got;
  });
}

void ImageMaker::append_fill(const FileVariable &variable) {
  const auto &said = variable.variable.fill;
  const auto value = said.empty() ? usual_fill(variable.variable.type) : said;
  const auto room = behind(bytes_of_shape(variable));
  fill_slab(room, value);
  turn_and_take(room.size(), value.size());
}

void ImageMaker::append_integers(std::span<const std::int64_t> values) {
  std::memcpy(behind(values.size_bytes()).data(), values.data(), values.size_bytes());
  turn_and_take(values.size_bytes(), sizeof(std::int64_t));
}

/// What was put behind the image becomes part of it.
void ImageMaker::turn_and_take(std::size_t bytes, std::size_t element_bytes) {
  const auto taken = behind(bytes);
  staging::swap_elements(taken, static_cast<int>(element_bytes));
  checksum_ = crc32c(taken, checksum_);
  at_ += bytes;
}

void ImageMaker::fill_up(std::uint64_t to) {
  if (at_ >= to) return;
  std::ranges::fill(behind(to - at_), std::byte{0});
  turn_and_take(to - at_, 1);
}

// --- reading ----------------------------------------------------------------------------------------------------------

Result<StepFile> open_image(std::span<const std::byte> image) {
  auto memory = NetcdfFile::open_image(image);
  if (!memory.ok()) return memory.error();
  auto file = StepFile::open(*std::move(memory));
  if (file.ok() && file->numbers().size() != 1)
    return Error{Code::kBadMessage, "the image was not written by Nessie from a stream: it has not one step"};
  return file;
}

}  // namespace nessie::streams::sinks
