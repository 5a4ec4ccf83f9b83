// SPDX-License-Identifier: BSD-3-Clause
// For tests: files of programs, and what is defined in them.
#pragma once

#include <base/fd.hpp>
#include <services/staging/client/client.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pnetcdf.h>

#include <fstream>
#include <iterator>

namespace staging::testing {

/// A file as a program has it open.
inline nessie::Fd program_file(const std::string &path, int flags = O_RDWR | O_CREAT) {
  return nessie::Fd(::open(path.c_str(), flags | O_CLOEXEC, 0644));
}

inline std::string contents(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Definitions of a dimension, and of a variable.
inline Definition dim(const std::string &name, std::int64_t length) {
  return {DefinitionKind::kDefDim, 0, 0, length, name, {}, {}, {}};
}
inline Definition var(const std::string &name, int type, std::vector<std::int32_t> dims) {
  return {DefinitionKind::kDefVar, 0, type, 0, name, {}, std::move(dims), {}};
}
inline Definition attribute(const std::string &name, const std::string &text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {DefinitionKind::kPutAtt,     NC_GLOBAL, NC_CHAR, static_cast<std::int64_t>(text.size()), name, {}, {},
          {bytes.begin(), bytes.end()}};
}

/// Has a file in data mode: what ending define mode was answered.
inline HeaderResult create_file(Client &client, FileToken token, const std::string &path,
                                std::vector<Definition> definitions, int cmode = NC_CLOBBER | NC_64BIT_DATA,
                                std::uint32_t processes = 1) {
  const auto created = client.create({token, path, cmode, {}, {}, processes}, program_file(path).get());
  EXPECT_TRUE(created.ok() && *created == NC_NOERR) << (created.ok() ? "" : created.error().message);
  EndDefArgs args;
  args.file = token, args.definitions = std::move(definitions);
  const auto ended = client.enddef(args, true);
  EXPECT_TRUE(ended.ok() && ended->nc_error == NC_NOERR);
  return ended.ok() ? *ended : HeaderResult{};
}

}  // namespace staging::testing
