// SPDX-License-Identifier: BSD-3-Clause
// Reads a file of netCDF's classic formats that nobody writes any more, and makes sure of that.
#pragma once

#include <services/staging/client/classic_header.hpp>

#include <base/fd.hpp>

#include <span>
#include <string>

namespace staging {

class FileReader {
 public:
  /// The file of that identity, at `path`, as it was changed last at `changed_ns`; 0: that is not known. kNotFound:
  /// there is another one, or none; it was changed since. kBadMessage: it is no such file. Otherwise kIo.
  static nessie::Result<FileReader> open(const std::string &path, const FileIdentity &identity,
                                         std::int64_t changed_ns);

  const ClassicHeader &header() const { return header_; }
  std::int64_t changed_ns() const { return changed_ns_; }
  /// Reads a piece of the variable of its id, without strides, to `data`, in C order, in host byte order; what lies
  /// behind the file's end is zeros. kNotFound: the file was changed meanwhile, and `data` is not to be used.
  /// kInvalidArgument: there is no such piece. kIo.
  nessie::Status read(const Piece &piece, std::span<std::byte> data) const;

 private:
  FileReader(nessie::Fd file, std::string path, std::int64_t changed_ns)
      : file_(std::move(file)), path_(std::move(path)), changed_ns_(changed_ns) {}
  nessie::Status read_header();
  nessie::Status check_unchanged() const;
  nessie::Status read_bytes(std::uint64_t offset, std::span<std::byte> data) const;

  nessie::Fd file_;
  std::string path_;
  std::int64_t changed_ns_ = 0;
  ClassicHeader header_;
};

}  // namespace staging
