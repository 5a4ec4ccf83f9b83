// SPDX-License-Identifier: BSD-3-Clause
#include "base/file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace nessie {
namespace {

struct Close {
  void operator()(std::FILE *file) const { std::fclose(file); }
};

Error file_error(Code code, const char *what, const std::string &path) {
  const int cause = errno;
  return {code, fmt::format("cannot {} {}: {}", what, path, std::strerror(cause)), Scope::kProcess, cause};
}

}  // namespace

Result<std::string> read_file(const std::string &path) {
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rbe"));
  if (!file) return file_error(Code::kNotFound, "read", path);
  std::string text;
  std::array<char, 16384> block;
  while (const auto size = std::fread(block.data(), 1, block.size(), file.get())) text.append(block.data(), size);
  if (std::ferror(file.get()) != 0) return file_error(Code::kNotFound, "read", path);
  return text;
}

Status write_file(const std::string &path, std::string_view text) {
  const auto part = fmt::format("{}.{}.part", path, ::getpid());
  std::FILE *file = std::fopen(part.c_str(), "wbe");
  bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr) written = std::fclose(file) == 0 && written;
  if (written && std::rename(part.c_str(), path.c_str()) == 0) return {};
  auto error = file_error(Code::kIo, "write", path);
  ::unlink(part.c_str());
  return error;
}

}  // namespace nessie
