// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/command.hpp"

#include "xdr/idl/cpp_names.hpp"
#include "xdr/idl/languages.hpp"
#include "xdr/idl/parser.hpp"
#include "xdr/idl/python_names.hpp"

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

struct Output {
  std::string name, text;
};
using Outputs = std::vector<Output>;

Outputs cpp_of(const Interface &interface, const Options &options) {
  Outputs outputs{{options.stem + ".hpp", make_cpp(interface, options)}};
  if (auto rpc = make_cpp_rpc(interface, options); !rpc.empty())
    outputs.push_back({options.stem + "_rpc.hpp", std::move(rpc)});
  return outputs;
}
Outputs c_of(const Interface &interface, const Options &options) {
  Outputs outputs{{options.stem + ".h", make_c_header(interface, options)},
                  {options.stem + "_xdr.c", make_c_codec(interface, options)}};
  if (auto rpc = make_c_rpc(interface, options); !rpc.empty()) {
    outputs.push_back({options.stem + "_rpc.h", make_c_rpc_header(interface, options)});
    outputs.push_back({options.stem + "_rpc.c", std::move(rpc)});
  }
  return outputs;
}
Outputs fortran_of(const Interface &interface, const Options &options) {
  return {{options.stem + ".f90", make_fortran(interface, options)}};
}
Outputs python_of(const Interface &interface, const Options &options) {
  return {{python_module_name(options.stem) + ".py", make_python(interface, options)}};
}
std::optional<Fault> accept(const Interface &) { return std::nullopt; }

struct Language {
  std::string_view name;
  std::optional<Fault> (*check)(const Interface &interface);
  Outputs (*make)(const Interface &interface, const Options &options);
};
constexpr std::array<Language, 4> kLanguages = {{{"cpp", check_cpp, cpp_of},
                                                 {"c", check_c, c_of},
                                                 {"fortran", check_fortran, fortran_of},
                                                 {"python", accept, python_of}}};

bool is_wanted(const Command &command, std::string_view language) {
  return std::ranges::find(command.languages, language) != command.languages.end();
}

/// That a file's name names nothing in a language that is wanted; "": it does in all.
std::string unfit_name(const Options &options, const Command &command) {
  if (is_wanted(command, "cpp") && !is_cpp_namespace(options.name_space))
    return fmt::format("'{}' cannot name a C++ namespace; choose one with --namespace", options.name_space);
  if (is_wanted(command, "python")) return python_module_fault(python_module_name(options.stem)).value_or("");
  return {};
}

/// Which file of a run each output is made of.
using Origins = std::map<std::string, std::string>;

/// All, unless another file's would be lost.
int write_all(const Outputs &outputs, const std::string &file, const Command &command, Origins &origins) {
  for (const auto &[name, text] : outputs)
    if (const auto known = origins.find(name); known != origins.end() && known->second != file)
      return complain(fmt::format("{}: error: {} is made of {} already; compile them into different folders", file,
                                  name, known->second));
  for (const auto &[name, text] : outputs) {
    origins[name] = file;
    const auto path = fs::path(command.directory) / name;
    if (const auto old = nessie::read_file(path); old.ok() && *old == text) continue;  // nothing is compiled anew
    const auto written = nessie::write_file(path, text);
    if (!written.ok()) return complain("error: " + written.error().message);
  }
  return 0;
}

int compile_file(const std::string &file, const Command &command, Origins &origins) {
  const auto text = nessie::read_file(file);
  if (!text.ok())
    return complain(fmt::format("{}: error: cannot be read: {}", file, std::strerror(text.error().cause)));
  const auto result = read(*text);
  if (const auto *fault = std::get_if<Fault>(&result)) return complain(describe(*fault, file, *text));
  const auto &interface = std::get<Interface>(result);
  Options options{fs::path(file).filename().string(), fs::path(file).stem().string(), command.name_space};
  if (options.name_space.empty()) options.name_space = options.stem;
  if (const auto why = unfit_name(options, command); !why.empty())
    return complain(fmt::format("{}: error: {}", file, why));
  Outputs outputs;
  for (const auto &language : kLanguages) {
    if (!is_wanted(command, language.name)) continue;
    if (const auto fault = language.check(interface)) return complain(describe(*fault, file, *text));
    std::ranges::move(language.make(interface, options), std::back_inserter(outputs));
  }
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
