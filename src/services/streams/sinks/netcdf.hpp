// SPDX-License-Identifier: BSD-3-Clause
// Files of netCDF-C, in the format CDF-5: on a disk, and in memory. The library is loaded when the first one is made or
// opened. Any thread: its calls take turns, since netCDF-C knows nothing of threads; one file by one thread at a time.
#pragma once

#include <base/fd.hpp>
#include <nessie/streams.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace nessie::streams::sinks {

struct NetcdfDimension {
  std::string name;
  std::int64_t length = 0;
  bool is_unlimited = false;
};

struct NetcdfVariable {
  std::string name;
  Type type = Type::kDouble;
  std::vector<int> dimensions;
};

inline constexpr int kGlobal = -1;  ///< where a variable's number is asked for: the file itself

/// A file that is open. Moves; dropped, it is closed, and what was not synced may be lost with the process only. Errors
/// of all: kIo, with errno as the cause; kNoMemory; kTooLarge: the format has no room for it; kInvalidArgument: a name
/// or value that cannot be one; kUnsupported: netCDF-C is not there, or too old.
class NetcdfFile {
 public:
  /// Makes it, and replaces what was there. `format`: 1, 2 or 5, for CDF-1, CDF-2 and CDF-5.
  static Result<NetcdfFile> create(const std::string &path, int format = 5);
  /// kBadMessage: it is no netCDF file. kNotFound.
  static Result<NetcdfFile> open(const std::string &path, bool to_write);
  /// Reads from `image`, which is borrowed until it is closed. kBadMessage.
  static Result<NetcdfFile> open_image(std::span<const std::byte> image);
  NetcdfFile(NetcdfFile &&other) noexcept;
  NetcdfFile &operator=(NetcdfFile &&other) noexcept;
  ~NetcdfFile();

  /// Definitions, after create() or define_again(), before end_definitions(). They return the number of what they have
  /// defined; a length of 0 is the unlimited dimension.
  Result<int> define_dimension(const std::string &name, std::int64_t length);
  Result<int> define_variable(const std::string &name, Type type, const std::vector<int> &dimensions);
  Status define_fill(int variable, std::span<const std::byte> value);
  /// Also between end_definitions() and define_again(), where it takes the place of one of the same size.
  Status put_attribute(int variable, const std::string &name, Type type, std::span<const std::byte> value);
  /// Leaves so much room behind the header. What nobody writes is not filled.
  Status end_definitions(std::size_t reserve_bytes);
  Status define_again();

  /// Elements in C order, with the unlimited dimension, if the variable has it, as the first one of the box. What was
  /// put goes to the disk while more comes, so that a sync has little to wait for.
  Status put(int variable, const Box &box, const void *data);
  Status get(int variable, const Box &box, void *data);
  /// Gives the kernel what there is. It syncs nothing.
  Status sync();
  Status close();

  Result<std::vector<NetcdfDimension>> dimensions();
  Result<std::vector<NetcdfVariable>> variables();
  /// `variable` of each is empty.
  Result<std::vector<Attribute>> attributes(int variable);

 private:
  explicit NetcdfFile(int id) : id_(id) {}
  int id_ = -1;
  Fd disk_;                    ///< the same file; none: nothing is written
  std::size_t unwritten_ = 0;  ///< that the disk was not told to write yet
};

/// What an element has of which nobody has said what to fill it with.
std::vector<std::byte> usual_fill(Type type);

}  // namespace nessie::streams::sinks
