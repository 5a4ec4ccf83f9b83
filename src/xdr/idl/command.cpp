// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/command.hpp"

#include "xdr/idl/c.hpp"
#include "xdr/idl/cpp.hpp"
#include "xdr/idl/cpp_names.hpp"
#include "xdr/idl/fortran.hpp"
#include "xdr/idl/parser.hpp"
#include "xdr/idl/python.hpp"

#include <base/file.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>
#include <variant>

namespace xdr::idl {
namespace {

namespace fs = std::filesystem;

int complain(const std::string &text) {
  fmt::print(stderr, "{}\n", text);
  return 1;
}

/// One of the command's files.
struct Source {
  std::string path;
  Interface interface;
  std::string name_space;

  std::string file() const { return fs::path(path).filename().string(); }
  std::string stem() const { return fs::path(path).stem().string(); }
};
struct Output {
  std::string name, text;
};

std::vector<Output> cpp_of(const Source &source) {
  const CppOptions options{source.file(), source.stem(), source.name_space};
  std::vector<Output> outputs{{source.stem() + ".hpp", make_cpp(source.interface, options)}};
  if (auto rpc = make_cpp_rpc(source.interface, options); !rpc.empty())
    outputs.push_back({source.stem() + "_rpc.hpp", std::move(rpc)});
  return outputs;
}
std::vector<Output> c_of(const Source &source) {
  const COptions options{source.file(), source.stem()};
  std::vector<Output> outputs{{source.stem() + ".h", make_c_header(source.interface, options)},
                              {source.stem() + "_xdr.c", make_c_codec(source.interface, options)}};
  if (auto rpc = make_c_rpc(source.interface, options); !rpc.empty()) {
    outputs.push_back({source.stem() + "_rpc.h", make_c_rpc_header(source.interface, options)});
    outputs.push_back({source.stem() + "_rpc.c", std::move(rpc)});
  }
  return outputs;
}

std::vector<Output> fortran_of(const Source &source) {
  return {{source.stem() + ".f90", make_fortran(source.interface, {source.file(), source.stem()})}};
}
std::vector<Output> python_of(const Source &source) {
  return {{python_module_name(source.stem()) + ".py", make_python(source.interface, {source.file()})}};
}

struct Language {
  std::string_view name;
  std::vector<Output> (*make)(const Source &);
};
constexpr std::array<Language, 4> kLanguages = {
    {{"cpp", cpp_of}, {"c", c_of}, {"fortran", fortran_of}, {"python", python_of}}};

bool is_wanted(const Command &command, std::string_view language) {
  return std::ranges::find(command.languages, language) != command.languages.end();
}

int write_all(const std::vector<Output> &outputs, const Command &command) {
  for (const auto &[name, text] : outputs) {
    const auto written = nessie::write_file(fs::path(command.directory) / name, text);
    if (!written.ok()) return complain("error: " + written.error().message);
  }
  return 0;
}

int compile_file(const std::string &file, const Command &command) {
  const auto text = nessie::read_file(file);
  if (!text.ok())
    return complain(fmt::format("{}: error: cannot be read: {}", file, std::strerror(text.error().cause)));
  auto result = read(*text);
  if (const auto *fault = std::get_if<Fault>(&result)) return complain(describe(*fault, file, *text));
  Source source{file, std::get<Interface>(std::move(result)), command.name_space};
  if (source.name_space.empty()) source.name_space = source.stem();
  if (is_wanted(command, "cpp") && !is_cpp_namespace(source.name_space))
    return complain(fmt::format("{}: error: '{}' cannot name a C++ namespace; choose one with --namespace", file,
                                source.name_space));
  if (is_wanted(command, "fortran"))
    if (const auto unfit = check_fortran(source.interface)) return complain(describe(*unfit, file, *text));
  if (is_wanted(command, "python"))
    if (const auto unfit = python_module_fault(python_module_name(source.stem())))
      return complain(fmt::format("{}: error: {}", file, *unfit));
  int worst = 0;
  for (const auto &[name, make] : kLanguages)
    if (is_wanted(command, name)) worst = std::max(worst, write_all(make(source), command));
  return worst;
}

}  // namespace

std::vector<std::string> languages() {
  std::vector<std::string> names;
  for (const auto &language : kLanguages) names.emplace_back(language.name);
  return names;
}

int compile(const Command &command) {
  const auto known = languages();
  for (const auto &language : command.languages)
    if (std::ranges::find(known, language) == known.end())
      return complain(fmt::format("error: '{}' is no language: {}", language, fmt::join(known, ", ")));
  int worst = 0;
  for (const auto &file : command.files) worst = std::max(worst, compile_file(file, command));
  return worst;
}

}  // namespace xdr::idl
