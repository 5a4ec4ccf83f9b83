// SPDX-License-Identifier: BSD-3-Clause
// The header of a file in netCDF's classic formats (CDF-1, CDF-2, CDF-5), for who has no PnetCDF: what there is, and
// where it lies. NetCDF Classic Format Specification (OGC 10-092r3), and PnetCDF's of CDF-5.
#pragma once

#include <services/staging/piece.hpp>

#include <nessie/result.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace staging {

struct ClassicAttribute {
  std::string name;
  int type = 0;                  ///< nc_type
  std::vector<std::byte> value;  ///< elements in host byte order
  bool operator==(const ClassicAttribute &) const = default;
};

struct ClassicDimension {
  std::string name;
  std::int64_t length = 0;  ///< 0: of records
  bool operator==(const ClassicDimension &) const = default;
};

struct ClassicVariable : VariableLayout {
  std::string name;
  int type = 0;
  std::vector<std::string> dimensions;  ///< their names
  std::vector<ClassicAttribute> attributes;
  std::uint64_t begin = 0;  ///< where it, or its first record, begins in the file
};

struct ClassicHeader {
  int format = 1;                  ///< CDF-1, 2 or 5
  std::vector<std::byte> bytes;    ///< the header itself
  std::int64_t num_records = 0;    ///< that are complete; a file that is being written may have more
  std::uint64_t record_bytes = 0;  ///< from one record of all record variables to the next
  std::vector<ClassicDimension> dimensions;
  std::vector<ClassicAttribute> attributes;
  std::vector<ClassicVariable> variables;  ///< in the order of their ids
  /// Null: there is none of that name.
  const ClassicVariable *find(const std::string &name) const;
};

/// `bytes` are the header, and perhaps what follows it. kOutOfRange: the header goes on behind them. kBadMessage: they
/// are no such header.
nessie::Result<ClassicHeader> parse_classic_header(std::span<const std::byte> bytes);

/// The bytes of one element of an external type; 0: it is none.
int classic_type_bytes(int type);
/// Turns elements around, from the file's byte order to the host's, or back.
void swap_elements(std::span<std::byte> data, int element_bytes);

}  // namespace staging
