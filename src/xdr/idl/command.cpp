// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/command.hpp"

#include "xdr/idl/cpp.hpp"
#include "xdr/idl/parser.hpp"

#include <fmt/core.h>
#include <fmt/os.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <variant>

namespace xdr::idl {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> contents_of(const std::string &file) {
  std::ifstream in(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in.good() && !in.eof()) return std::nullopt;
  return in.is_open() ? std::optional(std::move(text)) : std::nullopt;
}

/// All of it or nothing, under its name.
bool write_whole(const fs::path &path, const std::string &text) {
  const auto temporary = path.string() + fmt::format(".{}", ::getpid());
  std::error_code error;
  {
    std::ofstream out(temporary, std::ios::binary);
    out << text;
    out.close();
    if (out.good()) fs::rename(temporary, path, error);
    if (out.good() && !error) return true;
  }
  fs::remove(temporary, error);
  return false;
}

int complain(const std::string &text) {
  fmt::print(stderr, "{}\n", text);
  return 1;
}

int compile_file(const std::string &file, const Command &command) {
  const auto source = contents_of(file);
  if (!source) return complain(fmt::format("{}: error: cannot be read", file));
  const auto result = read(*source);
  if (const auto *fault = std::get_if<Fault>(&result)) return complain(describe(*fault, file, *source));
  const auto stem = fs::path(file).stem().string();
  const auto name_space = command.name_space.empty() ? stem : command.name_space;
  if (!is_cpp_namespace(name_space))
    return complain(
        fmt::format("{}: error: '{}' cannot name a C++ namespace; choose one with --namespace", file, name_space));
  const auto path = fs::path(command.directory) / (stem + ".hpp");
  const auto text = make_cpp(std::get<Interface>(result), {fs::path(file).filename().string(), name_space});
  if (!write_whole(path, text)) return complain(fmt::format("{}: error: cannot be written", path.string()));
  return 0;
}

}  // namespace

int compile(const Command &command) {
  int worst = 0;
  for (const auto &file : command.files) worst = std::max(worst, compile_file(file, command));
  return worst;
}

}  // namespace xdr::idl
