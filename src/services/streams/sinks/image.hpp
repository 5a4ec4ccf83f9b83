// SPDX-License-Identifier: BSD-3-Clause
// Steps as files in memory, in the format CDF-5, for who reads them with nc_open_mem: docs/streams-formats.md.
#pragma once

#include "services/streams/sinks/form.hpp"
#include "services/streams/sinks/step_file.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace nessie::streams::sinks {

/// A file with one step. Its memory is its maker's.
struct Image {
  std::span<const std::byte> bytes;
  std::uint32_t checksum = 0;  ///< CRC32C
};

/// Makes images of one stream's steps, one after the other, in the same memory. NetCDF-C makes the header, and only
/// anew when a step is described otherwise than the one before; what the arrays have is got to where it belongs, and
/// turned around and summed up while it is in the processor's cache.
class ImageMaker {
 public:
  explicit ImageMaker(Origin origin) : origin_(std::move(origin)) {}
  /// It lives until the next call. kNoMemory: the step has no room in memory. Others: as NetcdfFile's, and as
  /// Step::get() says.
  Result<Image> make(Step &step);

 private:
  enum class Kind { kNumber, kElements, kShape };
  /// What the file has at one place: of a variable of the layout.
  struct Content {
    std::uint64_t begin = 0;
    Kind kind = Kind::kNumber;
    std::size_t variable = 0;
  };
  Status describe(Layout layout);
  Status find_contents();
  Result<Content> place_of(const std::string &name, Kind kind, std::size_t variable) const;
  std::uint64_t bytes_of(const Content &content) const;
  Status append(const Content &content, Step &step);
  Status append_elements(const FileVariable &variable, Step &step);
  void append_fill(const FileVariable &variable);
  void append_integers(std::span<const std::int64_t> values);
  void turn_and_take(std::size_t bytes, std::size_t element_bytes);
  void fill_up(std::uint64_t to);
  std::span<std::byte> behind(std::size_t bytes) { return std::span(memory_).subspan(at_, bytes); }

  const Origin origin_;
  Layout layout_;
  Form form_;
  std::vector<Content> contents_;  ///< in the order of their places
  std::uint64_t size_bytes_ = 0;
  std::vector<std::byte> memory_;
  std::size_t at_ = 0;  ///< what is before it is whole, and in the checksum
  std::uint32_t checksum_ = 0;
};

/// An image that came from somewhere. kBadMessage: it has not just one step. `image` is borrowed.
Result<StepFile> open_image(std::span<const std::byte> image);

}  // namespace nessie::streams::sinks
