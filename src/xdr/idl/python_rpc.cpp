// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/graph.hpp"
#include "xdr/idl/python.hpp"
#include "xdr/idl/python_names.hpp"

#include <fmt/format.h>

#include <string>
#include <variant>
#include <vector>

namespace xdr::idl {
namespace {

using Kind = Type::Kind;

/// What a bulk parameter's buffer must allow the service.
const char *python_rights(Bulk bulk) {
  switch (bulk) {
    case Bulk::kIn: return "_nssi.Rights.REMOTE_READ";
    case Bulk::kOut: return "_nssi.Rights.REMOTE_WRITE";
    default: return "_nssi.Rights.READ_WRITE";
  }
}

/// A tuple of one has a comma.
std::string tuple_of(const std::vector<std::string> &items) {
  return fmt::format("({}{})", fmt::join(items, ", "), items.size() == 1 ? "," : "");
}

/// Stands at the module's level, where no name of a class hides that of a type.
std::string table_name(const Program &program, const Version &version) {
  return fmt::format("_{}_{}", program.name, version.name);
}

class PythonRpcWriter {
 public:
  PythonRpcWriter(const Interface &interface, PythonAliases &aliases)
      : interface_(interface), graph_(interface), aliases_(aliases) {}

  std::string write() {
    for (const auto &definition : interface_.definitions)
      if (const auto *program = std::get_if<Program>(&definition)) write(*program);
    return std::move(out_);
  }

 private:
  void write(const Program &program) {
    for (const auto &version : program.versions) write_table(program, version);
    out_ += fmt::format("\n\nclass {}:\n    \"\"\"program {}\"\"\"\n\n    PROGRAM = {}\n", python_name(program.name),
                        program.name, python_number(program.number.number));
    for (const auto &version : program.versions) write(program, version);
  }
  void write_table(const Program &program, const Version &version) {
    out_ += fmt::format("\n\n{} = _stub.Interface({}, {}, [\n", table_name(program, version),
                        python_number(program.number.number), python_number(version.number.number));
    for (const auto &it : version.procedures) {
      std::vector<std::string> arguments;
      for (const auto &argument : it.arguments) arguments.push_back(python_codec(argument));
      out_ += fmt::format("    _stub.Procedure({}, \"{}\", {}, {}{}{}),\n", python_number(it.number.number),
                          python_procedure(it.name), tuple_of(arguments), python_codec(it.result),
                          it.bulk == Bulk::kNone ? "" : ", ", it.bulk == Bulk::kNone ? "" : python_rights(it.bulk));
    }
    out_ += "])\n";
  }
  void write(const Program &program, const Version &version) {
    out_ += fmt::format("\n    class {}:\n        \"\"\"version {}\"\"\"\n\n        VERSION = {}\n",
                        python_name(version.name), version.name, python_number(version.number.number));
    for (const auto &it : version.procedures)
      out_ += fmt::format("        {} = {}\n", python_procedure(it.name), python_number(it.number.number));
    members_.clear();
    for (const auto &it : version.procedures)
      members_.insert({python_procedure(it.name), python_procedure(it.name) + "_async"});
    write_client(program, version);
    write_server(program, version);
  }

  std::string annotation(const Type &type) { return aliases_.beside(members_, python_annotation(graph_, type)); }

  std::string parameters(const Procedure &it) {
    std::string all;
    for (std::size_t i = 0; i < it.arguments.size(); ++i)
      all += fmt::format(", argument{}: {}", i + 1, annotation(it.arguments[i]));
    return all;
  }

  // --- the calling side --------------------------------------------------------------------------------------------------
  void write_client(const Program &program, const Version &version) {
    out_ += fmt::format(
        "\n        class Client(_stub.Client):\n"
        "            \"\"\"Calls a provider of {}. An operation's name waits for its result; NAME_async does "
        "not.\"\"\"\n\n"
        "            INTERFACE = {}\n",
        version.name, table_name(program, version));
    for (std::size_t i = 0; i < version.procedures.size(); ++i) {
      const auto &it = version.procedures[i];
      const auto result = annotation(it.result);
      write_call(it, i, "", result, "_call", result);
      write_call(it, i, "_async", fmt::format("_nssi.Future[{}]", result), "_start", {});
    }
  }
  /// `said`: the type that the method itself says of what it returns, for type checkers; None: it returns nothing.
  void write_call(const Procedure &it, std::size_t index, const char *suffix, const std::string &result,
                  const char *how, const std::string &said) {
    std::vector<std::string> arguments;
    for (std::size_t i = 0; i < it.arguments.size(); ++i) arguments.push_back(fmt::format("argument{}", i + 1));
    const bool has_bulk = it.bulk != Bulk::kNone;
    out_ += fmt::format(
        "\n            def {}{}(\n                self{}{}, *, timeout: float | None = None, idempotent: bool = "
        "False\n            ) -> {}:\n",
        python_procedure(it.name), suffix, parameters(it), has_bulk ? ", data: _nssi.Buffer" : "", result);
    const auto call = fmt::format("self.{}({}, {}, {}, timeout, idempotent)", how, index, tuple_of(arguments),
                                  has_bulk ? "data" : "None");
    if (said.empty())
      out_ += fmt::format("                return {}\n", call);
    else if (said == "None")
      out_ += fmt::format("                {}\n", call);
    else
      out_ += fmt::format("                _result: {} = {}\n                return _result\n", said, call);
  }

  // --- the serving side --------------------------------------------------------------------------------------------------
  void write_server(const Program &program, const Version &version) {
    out_ += fmt::format(
        "\n        class Server(_stub.Server):\n"
        "            \"\"\"To derive from, to serve {}. What a method returns is the result; bulk data:\n"
        "            request.get_data() and put_data().\"\"\"\n\n            INTERFACE = {}\n",
        version.name, table_name(program, version));
    for (const auto &it : version.procedures)
      out_ +=
          fmt::format("\n            @_abstractmethod\n            def {}(self, request: _nssi.Request{}) -> {}: ...\n",
                      python_procedure(it.name), parameters(it), annotation(it.result));
  }

  const Interface &interface_;
  const TypeGraph graph_;
  PythonAliases &aliases_;
  std::set<std::string> members_;  ///< of the version's classes
  std::string out_;
};

}  // namespace

std::string make_python_rpc(const Interface &interface, PythonAliases &aliases) {
  return PythonRpcWriter(interface, aliases).write();
}

}  // namespace xdr::idl
