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
#include <iterator>
#include <map>
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

/// Why one of the languages that are wanted cannot have it; "" if all can.
std::string unfitness(const Source &source, const std::string &text, const Command &command) {
  if (is_wanted(command, "cpp")) {
    if (!is_cpp_namespace(source.name_space))
      return fmt::format("{}: error: '{}' cannot name a C++ namespace; choose one with --namespace", source.path,
                         source.name_space);
    if (const auto fault = check_cpp(source.interface)) return describe(*fault, source.path, text);
  }
  if (is_wanted(command, "c"))
    if (const auto fault = check_c(source.interface)) return describe(*fault, source.path, text);
  if (is_wanted(command, "fortran"))
    if (const auto fault = check_fortran(source.interface)) return describe(*fault, source.path, text);
  if (is_wanted(command, "python"))
    if (const auto fault = python_module_fault(python_module_name(source.stem())))
      return fmt::format("{}: error: {}", source.path, *fault);
  return {};
}

/// Which file of a run each output is made of.
using Origins = std::map<std::string, std::string>;

/// All, unless another file's would be lost.
int write_all(const std::vector<Output> &outputs, const std::string &file, const Command &command, Origins &origins) {
  for (const auto &[name, text] : outputs)
    if (const auto known = origins.find(name); known != origins.end() && known->second != file)
      return complain(fmt::format("{}: error: {} is made of {} already; compile them into different folders", file,
                                  name, known->second));
  for (const auto &[name, text] : outputs) {
    origins[name] = file;
    const auto written = nessie::write_file(fs::path(command.directory) / name, text);
    if (!written.ok()) return complain("error: " + written.error().message);
  }
  return 0;
}

int compile_file(const std::string &file, const Command &command, Origins &origins) {
  const auto text = nessie::read_file(file);
  if (!text.ok())
    return complain(fmt::format("{}: error: cannot be read: {}", file, std::strerror(text.error().cause)));
  auto result = read(*text);
  if (const auto *fault = std::get_if<Fault>(&result)) return complain(describe(*fault, file, *text));
  Source source{file, std::get<Interface>(std::move(result)), command.name_space};
  if (source.name_space.empty()) source.name_space = source.stem();
  if (const auto why = unfitness(source, *text, command); !why.empty()) return complain(why);
  std::vector<Output> outputs;
  for (const auto &[name, make] : kLanguages)
    if (is_wanted(command, name)) std::ranges::move(make(source), std::back_inserter(outputs));
  return write_all(outputs, file, command, origins);
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
  Origins origins;
  for (const auto &file : command.files) worst = std::max(worst, compile_file(file, command, origins));
  return worst;
}

}  // namespace xdr::idl
