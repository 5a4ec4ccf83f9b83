// SPDX-License-Identifier: BSD-3-Clause
// Which elements of which variables the bytes of a file are.
#pragma once

#include <interpose/pnetcdf/engine/file.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace interpose {

class DataMap {
 public:
  /// Of a file in data mode. It holds as long as the file stays in it.
  explicit DataMap(File &file);

  /// An element, and how many of its variable lie in the file one behind the other from there on.
  struct Place {
    const Variable *variable = nullptr;
    std::int64_t element = 0, elements = 0;
  };
  /// What begins at `offset` in the file; nothing, if that is no element.
  std::optional<Place> at(std::int64_t offset) const;

  /// Where a variable's data begin, and from one record to the next.
  std::int64_t begin_of(int varid) const;
  std::int64_t record_bytes() const { return record_bytes_; }

 private:
  struct Span {
    std::int64_t begin, bytes;  ///< of one record, for a record variable
    const Variable *variable;
  };
  const Span *find(const std::vector<Span> &spans, std::int64_t offset) const;

  std::vector<Span> fixed_, records_;  ///< by their beginning
  std::int64_t record_bytes_ = 0;
};

}  // namespace interpose
