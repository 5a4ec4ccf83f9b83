// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/cpp_names.hpp"
#include "xdr/idl/languages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace xdr::idl {
namespace {

using Kind = Type::Kind;

/// What a bulk parameter's buffer must allow the service.
const char *cpp_rights(Bulk bulk) {
  return by_bulk(bulk, "::nnti::Rights::kRemoteRead", "::nnti::Rights::kRemoteWrite", "::nnti::Rights::kReadWrite");
}

class RpcWriter {
 public:
  RpcWriter(const Interface &interface, const Options &options) : interface_(interface), options_(options) {}

  std::string write() {
    for (const auto &definition : interface_.definitions)
      if (const auto *program = std::get_if<Program>(&definition))
        for (const auto &version : program->versions) write(*program, version);
    if (out_.empty()) return {};
    return fmt::format(
        "// Made by `nessie idl` from {}; changes will be lost.\n#pragma once\n\n#include \"{}.hpp\"\n\n"
        "#include <nssi/stub.hpp>\n{}",
        options_.file, options_.stem, out_);
  }

 private:
  std::string type_of(const Type &type) const { return cpp_type(type, options_.name_space); }
  /// As a parameter: numbers by value.
  std::string parameter(const Type &type, std::size_t index) const {
    const bool is_large = type.kind == Kind::kNamed || type.kind == Kind::kString;
    return fmt::format("{}{} {}argument{}", is_large ? "const " : "", type_of(type), is_large ? "&" : "", index + 1);
  }
  std::string parameters(const Procedure &it) const {
    std::string all;
    for (std::size_t i = 0; i < it.arguments.size(); ++i) all += parameter(it.arguments[i], i) + ", ";
    return all;
  }
  /// ", argument1, argument2".
  static std::string names(const Procedure &it) {
    std::string all;
    for (std::size_t i = 0; i < it.arguments.size(); ++i) all += fmt::format(", argument{}", i + 1);
    return all;
  }

  void write(const Program &program, const Version &version) {
    space_ = fmt::format("{}::{}::{}", options_.name_space, cpp_name(program.name), cpp_name(version.name));
    out_ += fmt::format(
        "\nnamespace {} {{\n\n"
        "inline constexpr ::nssi::Interface kInterface{{kProgram, kVersion}};\n",
        space_);
    const CppScope scope(version);
    write_client(version, scope);
    write_server(version, scope);
    out_ += fmt::format("\n}}  // namespace {}\n", space_);
  }

  // --- the calling side --------------------------------------------------------------------------------------------------
  void write_client(const Version &version, const CppScope &scope) {
    out_ +=
        "\n/// Calls a provider of the interface. An operation's name waits for its result; NAME_async does not.\n"
        "class Client : public ::nssi::stub::Client {\n public:\n"
        "  Client(::nssi::Runtime &runtime, ::nssi::PeerId peer, std::uint32_t provider = 0)\n"
        "      : ::nssi::stub::Client(runtime, {peer, kInterface, provider}) {}\n";
    for (const auto &procedure : version.procedures) write_call(procedure, scope[procedure.name]);
    out_ += "};\n";
  }
  void write_call(const Procedure &it, const std::string &name) {
    const auto result = type_of(it.result);
    const bool has_bulk = it.bulk != Bulk::kNone;
    const auto all = parameters(it) + (has_bulk ? "const ::nnti::RegisteredBuffer &data, " : "") +
                     "const ::nssi::CallOptions &options = {}";
    const auto op = fmt::format("::{}::{}", space_, name);
    const auto start = has_bulk ? fmt::format("::nssi::stub::Client::start_bulk<{}>({}, {}, data, options{})", result,
                                              op, cpp_rights(it.bulk), names(it))
                                : fmt::format("::nssi::stub::Client::start<{}>({}, options{})", result, op, names(it));
    out_ += fmt::format("  ::nssi::Future<{}> {}_async({}) {{\n    return {};\n  }}\n", result, name, all, start);
    out_ += fmt::format("  ::nssi::Outcome<{}> {}({}) {{\n    return {}_async({}{}options).wait();\n  }}\n", result,
                        name, all, name, passed_on(it), has_bulk ? "data, " : "");
  }
  static std::string passed_on(const Procedure &it) {
    const auto all = names(it);
    return all.empty() ? "" : all.substr(2) + ", ";
  }

  // --- the serving side --------------------------------------------------------------------------------------------------
  void write_server(const Version &version, const CppScope &scope) {
    out_ +=
        "\n/// Derive from it to serve the interface. Each operation runs on a user-level thread unless the interface, "
        "or "
        "kind_of(),\n"
        "/// says otherwise; what it returns is the result. Bulk data: request.get_data() and put_data().\n"
        "class Server {\n public:\n  virtual ~Server() = default;\n";
    write_kind_of(version, scope);
    for (const auto &it : version.procedures)
      out_ += fmt::format("  virtual ::nssi::Outcome<{}> {}(::nssi::Request &request{}) = 0;\n", type_of(it.result),
                          scope[it.name], behind_comma(parameters(it)));
    if (std::ranges::any_of(version.procedures, &Procedure::tells_arrival))
      out_ +=
          "  /// A request has arrived, and waits for its turn; where the interface says `arrival`. In place, in order "
          "of "
          "arrival.\n"
          "  virtual void note_arrival(::nssi::Request &request) = 0;\n";
    out_ +=
        "  /// Offers them all. This must outlive the runtime. `pool`: whose threads run those that are user-level "
        "threads;\n"
        "  /// empty: the one that drives. kExists: the provider is taken. kNotFound: there is no such pool.\n"
        "  ::nssi::Status add_to(::nssi::Runtime &runtime, std::uint32_t provider = 0, const std::string &pool = {}) "
        "{\n"
        "    ::nssi::stub::Offering offering{runtime, kInterface, provider, pool, {}};\n";
    for (const auto &procedure : version.procedures) write_operation(procedure, scope[procedure.name]);
    out_ += "    return offering.status;\n  }\n};\n";
  }
  void write_kind_of(const Version &version, const CppScope &scope) {
    static constexpr std::pair<HandlerKind, const char *> kNames[] = {
        {HandlerKind::kShort, "kShort"}, {HandlerKind::kBulk, "kBulk"}, {HandlerKind::kBulkNow, "kBulkNow"}};
    out_ += "  virtual ::nssi::HandlerKind kind_of(::nssi::OpCode op) const {\n    switch (op) {\n";
    for (const auto &[kind, name] : kNames) {
      if (std::ranges::count(version.procedures, kind, &Procedure::kind) == 0) continue;
      for (const auto &it : version.procedures)
        if (it.kind == kind) out_ += fmt::format("      case ::{}::{}:\n", space_, scope[it.name]);
      out_ += fmt::format("        return ::nssi::HandlerKind::{};\n", name);
    }
    out_ += "      default:\n        return ::nssi::HandlerKind::kFiber;\n    }\n  }\n";
  }
  static std::string behind_comma(std::string list) {
    if (!list.empty()) list.resize(list.size() - 2);
    return list.empty() ? list : ", " + list;
  }
  void write_operation(const Procedure &it, const std::string &name) {
    auto types = type_of(it.result);
    for (const auto &argument : it.arguments) types += ", " + type_of(argument);
    out_ += fmt::format(
        "    offering.add(::{0}::{1}, \"{2}\", kind_of(::{0}::{1}),\n"
        "                 ::nssi::stub::handler<{3}>([this](::nssi::Request &request{4}) {{\n"
        "                   return this->{1}(request{5});\n                 }}){6});\n",
        space_, name, it.name, types, behind_comma(parameters(it)), names(it),
        it.tells_arrival ? ", [this](::nssi::Request &request) { note_arrival(request); }" : "");
  }

  const Interface &interface_;
  std::string space_;  ///< of the version that is written
  const Options &options_;
  std::string out_;
};

}  // namespace

std::string make_cpp_rpc(const Interface &interface, const Options &options) {
  return RpcWriter(interface, options).write();
}

}  // namespace xdr::idl
