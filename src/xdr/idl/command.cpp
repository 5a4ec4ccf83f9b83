// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/command.hpp"

#include "xdr/idl/cpp.hpp"
#include "xdr/idl/cpp_names.hpp"
#include "xdr/idl/parser.hpp"

#include <base/file.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <variant>

namespace xdr::idl {
namespace {

namespace fs = std::filesystem;

int complain(const std::string &text) {
  fmt::print(stderr, "{}\n", text);
  return 1;
}

int compile_file(const std::string &file, const Command &command) {
  const auto source = nessie::read_file(file);
  if (!source.ok())
    return complain(fmt::format("{}: error: cannot be read: {}", file, std::strerror(source.error().cause)));
  const auto result = read(*source);
  if (const auto *fault = std::get_if<Fault>(&result)) return complain(describe(*fault, file, *source));
  const auto stem = fs::path(file).stem().string();
  const auto name_space = command.name_space.empty() ? stem : command.name_space;
  if (!is_cpp_namespace(name_space))
    return complain(
        fmt::format("{}: error: '{}' cannot name a C++ namespace; choose one with --namespace", file, name_space));
  const CppOptions options{fs::path(file).filename().string(), stem, name_space};
  const auto &interface = std::get<Interface>(result);
  for (const auto &[ending, text] :
       {std::pair(".hpp", make_cpp(interface, options)), std::pair("_rpc.hpp", make_cpp_rpc(interface, options))}) {
    if (text.empty()) continue;
    const auto written = nessie::write_file(fs::path(command.directory) / (stem + ending), text);
    if (!written.ok()) return complain("error: " + written.error().message);
  }
  return 0;
}

}  // namespace

int compile(const Command &command) {
  int worst = 0;
  for (const auto &file : command.files) worst = std::max(worst, compile_file(file, command));
  return worst;
}

}  // namespace xdr::idl
