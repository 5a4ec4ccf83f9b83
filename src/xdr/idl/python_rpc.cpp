// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/python_rpc.hpp"

#include <fmt/format.h>

#include <string>
#include <variant>
#include <vector>

namespace xdr::idl {
namespace {

using Kind = Type::Kind;

/// What a bulk parameter's buffer must allow the service.
const char *python_rights(Bulk bulk) {
  return by_bulk(bulk, "_nssi.Rights.REMOTE_READ", "_nssi.Rights.REMOTE_WRITE", "_nssi.Rights.READ_WRITE");
}

/// A tuple of one has a comma.
std::string tuple_of(const std::vector<std::string> &items) {
  return fmt::format("({}{})", fmt::join(items, ", "), items.size() == 1 ? "," : "");
}

/// A version, and what it and its parts are called.
struct PythonFace {
  const Version *version = nullptr;
  std::string name;
  std::string table;               ///< at the module's level, where no name of a class hides that of a type
  PythonNames procedures;          ///< of clients that wait, and of servers
  std::vector<std::string> async;  ///< of each procedure: the client's that does not wait
};

class PythonRpcWriter {
 public:
  PythonRpcWriter(const Interface &interface, PythonModule &module, PythonAliases &aliases)
      : interface_(interface), module_(module), aliases_(aliases) {}

  std::string write() {
    for (const auto &definition : interface_.definitions)
      if (const auto *program = std::get_if<Program>(&definition)) write(*program);
    return std::move(out_);
  }

 private:
  void write(const Program &program) {
    const auto faces = faces_of(program);
    for (const auto &face : faces) write_table(program, face);
    out_ += fmt::format("\n\nclass {}:\n    \"\"\"program {}\"\"\"\n\n    PROGRAM = {}\n", module_.name(program.name),
                        program.name, python_number(program.number.number));
    for (const auto &face : faces) write(face);
  }

  // --- names -------------------------------------------------------------------------------------------------------------
  std::vector<PythonFace> faces_of(const Program &program) {
    std::vector<std::string> names;
    for (const auto &version : program.versions) names.push_back(version.name);
    const PythonNames versions(PythonNames::Scope::kProgram, names);
    std::vector<PythonFace> faces;
    for (const auto &version : program.versions) faces.push_back(face_of(program, version, versions.at(version.name)));
    return faces;
  }
  PythonFace face_of(const Program &program, const Version &version, const std::string &name) {
    std::vector<std::string> names;
    for (const auto &it : version.procedures) names.push_back(it.name);
    PythonFace face{&version,
                    name,
                    module_.names.claim(fmt::format("_{}_{}", program.name, version.name)),
                    {PythonNames::Scope::kStubs, names},
                    {}};
    for (const auto &it : version.procedures)
      face.async.push_back(face.procedures.claim(face.procedures.at(it.name) + "_async"));
    return face;
  }

  void write_table(const Program &program, const PythonFace &face) {
    out_ += fmt::format("\n\n{} = _stub.Interface({}, {}, [\n", face.table, python_number(program.number.number),
                        python_number(face.version->number.number));
    for (const auto &it : face.version->procedures) {
      std::vector<std::string> arguments;
      for (const auto &argument : it.arguments) arguments.push_back(python_codec(module_, argument));
      out_ += fmt::format("    _stub.Procedure({}, \"{}\", {}, {}{}{}),\n", python_number(it.number.number),
                          face.procedures.at(it.name), tuple_of(arguments), python_codec(module_, it.result),
                          it.bulk == Bulk::kNone ? "" : ", ", it.bulk == Bulk::kNone ? "" : python_rights(it.bulk));
    }
    out_ += "])\n";
  }
  void write(const PythonFace &face) {
    out_ += fmt::format("\n    class {}:\n        \"\"\"version {}\"\"\"\n\n        VERSION = {}\n", face.name,
                        face.version->name, python_number(face.version->number.number));
    for (const auto &it : face.version->procedures)
      out_ += fmt::format("        {} = {}\n", face.procedures.at(it.name), python_number(it.number.number));
    write_client(face);
    write_server(face);
  }

  std::string annotation(const PythonFace &face, const Type &type) {
    return aliases_.beside(face.procedures.taken(), python_annotation(module_, type));
  }

  std::string parameters(const PythonFace &face, const Procedure &it) {
    std::string all;
    for (std::size_t i = 0; i < it.arguments.size(); ++i)
      all += fmt::format(", argument{}: {}", i + 1, annotation(face, it.arguments[i]));
    return all;
  }

  // --- the calling side --------------------------------------------------------------------------------------------------
  void write_client(const PythonFace &face) {
    out_ += fmt::format(
        "\n        class Client(_stub.Client):\n"
        "            \"\"\"Calls a provider of {}. An operation's name waits for its result; NAME_async does "
        "not.\"\"\"\n\n"
        "            INTERFACE = {}\n",
        face.version->name, face.table);
    for (std::size_t i = 0; i < face.version->procedures.size(); ++i) {
      const auto &it = face.version->procedures[i];
      const auto result = annotation(face, it.result);
      write_call(face, i, face.procedures.at(it.name), result, "_call", result);
      write_call(face, i, face.async[i], fmt::format("_nssi.Future[{}]", result), "_start", {});
    }
  }
  /// `said`: the type that the method itself says of what it returns, for type checkers; None: it returns nothing.
  void write_call(const PythonFace &face, std::size_t index, const std::string &name, const std::string &result,
                  const char *how, const std::string &said) {
    const auto &it = face.version->procedures[index];
    std::vector<std::string> arguments;
    for (std::size_t i = 0; i < it.arguments.size(); ++i) arguments.push_back(fmt::format("argument{}", i + 1));
    const bool has_bulk = it.bulk != Bulk::kNone;
    out_ += fmt::format(
        "\n            def {}(\n                self{}{}, **options: _Unpack[_nssi.CallOptions]\n            ) -> "
        "{}:\n",
        name, parameters(face, it), has_bulk ? ", data: _nssi.Buffer" : "", result);
    const auto call =
        fmt::format("self.{}({}, {}, {}, options)", how, index, tuple_of(arguments), has_bulk ? "data" : "None");
    if (said.empty())
      out_ += fmt::format("                return {}\n", call);
    else if (said == "None")
      out_ += fmt::format("                {}\n", call);
    else
      out_ += fmt::format("                _result: {} = {}\n                return _result\n", said, call);
  }

  // --- the serving side --------------------------------------------------------------------------------------------------
  void write_server(const PythonFace &face) {
    out_ += fmt::format(
        "\n        class Server(_stub.Server):\n"
        "            \"\"\"To derive from, to serve {}. What a method returns is the result; bulk data:\n"
        "            request.get_data() and put_data().\"\"\"\n\n            INTERFACE = {}\n",
        face.version->name, face.table);
    for (const auto &it : face.version->procedures)
      out_ +=
          fmt::format("\n            @_abstractmethod\n            def {}(self, request: _nssi.Request{}) -> {}: ...\n",
                      face.procedures.at(it.name), parameters(face, it), annotation(face, it.result));
  }

  const Interface &interface_;
  PythonModule &module_;
  PythonAliases &aliases_;
  std::string out_;
};

}  // namespace

std::string make_python_rpc(const Interface &interface, PythonModule &module, PythonAliases &aliases) {
  return PythonRpcWriter(interface, module, aliases).write();
}

}  // namespace xdr::idl
