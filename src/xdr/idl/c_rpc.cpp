// SPDX-License-Identifier: BSD-3-Clause
// Stubs and skeletons in C, on <nssi/stub.h>. Names are rpcgen's (add_1: a procedure in small letters, and its version)
// behind the program's, so that the programs of a file, and of a process, do not get in each other's way. The header's
// macros are undefined again where they could be names in here.
#include "xdr/idl/c_names.hpp"
#include "xdr/idl/languages.hpp"

#include <fmt/format.h>

#include <set>

namespace xdr::idl {
namespace {

using Kind = Type::Kind;

std::string in_small_letters(std::string name) {
  for (auto &c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return name;
}

struct CProcedure {
  const Procedure *it;
  std::string member;  ///< "add_1"
  std::string name;    ///< "fields_add_1"
};
struct CService {
  const Program *program;
  const Version *version;
  std::string name;  ///< "fields_1"
  std::vector<CProcedure> procedures;
};

/// Names that differ in the file by the size of letters only get as many '_' as they need.
class Names {
 public:
  std::string take(std::string name) {
    while (!taken_.insert(name).second) name += '_';
    return name;
  }

 private:
  std::set<std::string> taken_;
};

std::vector<CService> services_of(const Interface &interface) {
  std::vector<CService> all;
  Names names;
  for (const auto &definition : interface.definitions) {
    const auto *program = std::get_if<Program>(&definition);
    if (program == nullptr) continue;
    for (const auto &version : program->versions) {
      const auto prefix = in_small_letters(program->name) + "_", number = literal(version.number.number);
      CService service{program, &version, names.take(prefix + number), {}};
      for (const auto &it : version.procedures) {
        auto name = names.take(fmt::format("{}{}_{}", prefix, in_small_letters(it.name), number));
        service.procedures.push_back({&it, name.substr(prefix.size()), name});
      }
      all.push_back(std::move(service));
    }
  }
  return all;
}

/// How values of a type are passed: numbers and enums by value, strings as C's, arrays as C's, all else by pointers.
enum class Passing { kValue, kString, kArray, kPointer };

class Writer {
 public:
  Writer(const Interface &interface, const Options &options)
      : interface_(interface), graph_(interface), options_(options), services_(services_of(interface)) {
    for (const auto &definition : interface.definitions) types_.insert(c_name(type_name_of(definition)));
  }

 protected:
  /// A parameter's name: it would hide a type of the file from the parameters behind it.
  std::string own(std::string name) const {
    while (types_.contains(name)) name += '_';
    return name;
  }
  Passing passing(const Type &type) const {
    if (type.kind == Kind::kString) return Passing::kString;
    if (type.kind != Kind::kNamed) return Passing::kValue;
    if (is_c_array(graph_, graph_.at(type.name))) return Passing::kArray;
    const auto &behind = graph_.behind(type);
    const bool is_enum = behind.kind == Kind::kNamed && std::holds_alternative<Enum>(graph_.at(behind.name));
    return is_enum || c_number(behind) != nullptr ? Passing::kValue : Passing::kPointer;
  }
  static std::string type_of(const Type &type) { return type.kind == Kind::kString ? "char *" : c_type(type); }
  /// "int x", "char *x": what holds one.
  static std::string holder(const Type &type, const std::string &name) {
    return fmt::format("{}{}{}", type_of(type), type.kind == Kind::kString ? "" : " ", name);
  }
  std::string parameter(const Type &type, const std::string &name) const {
    switch (passing(type)) {
      case Passing::kString: return fmt::format("const char *{}", name);
      case Passing::kPointer: return fmt::format("const {} *{}", c_type(type), name);
      default: return holder(type, name);
    }
  }
  /// Where a parameter's value is.
  std::string address(const Type &type, const std::string &name) const {
    const auto how = passing(type);
    return how == Passing::kValue || how == Passing::kString ? "&" + name : name;
  }
  /// ", int *result"; nothing for void.
  std::string result_parameter(const Type &type) const {
    if (type.kind == Kind::kVoid) return {};
    if (type.kind == Kind::kString) return ", char **" + own("result");
    return fmt::format(", {} {}{}", c_type(type), passing(type) == Passing::kArray ? "" : "*", own("result"));
  }
  /// "result"; of void "NULL".
  std::string result_name(const Type &type) const { return type.kind == Kind::kVoid ? "NULL" : own("result"); }
  std::string argument(std::size_t index) const { return own(fmt::format("argument{}", index + 1)); }
  /// ", int argument1, const point *argument2".
  std::string parameters(const Procedure &it) const {
    std::string all;
    for (std::size_t i = 0; i < it.arguments.size(); ++i) all += ", " + parameter(it.arguments[i], argument(i));
    return all;
  }

  // --- the functions, as they are declared and defined ---------------------------------------------------------------
  std::string client_parameters(const Procedure &it) const {
    return fmt::format("const nssi_rt_client *{}{}{}, const nssi_rt_call_options *{}", own("client"), parameters(it),
                       it.bulk != Bulk::kNone ? ", nssi_rt_buffer *" + own("data") : "", own("options"));
  }
  std::string call_head(const CProcedure &p) const {
    return fmt::format("int {}({}{})", p.name, client_parameters(*p.it), result_parameter(p.it->result));
  }
  std::string async_head(const CProcedure &p) const {
    return fmt::format("int {}_async({}, nssi_rt_call **{})", p.name, client_parameters(*p.it), own("call"));
  }
  std::string wait_head(const CProcedure &p) const {
    return fmt::format("int {}_wait(nssi_rt_call *{}, int32_t {}{})", p.name, own("call"), own("timeout_ms"),
                       result_parameter(p.it->result));
  }
  std::string reply_head(const CProcedure &p) const {
    const bool is_void = p.it->result.kind == Kind::kVoid;
    return fmt::format("int {}_reply(nssi_rt_request *{}{})", p.name, own("request"),
                       is_void ? "" : ", " + parameter(p.it->result, own("result")));
  }
  static std::string add_head(const CService &service) {
    return fmt::format("int {0}_add_to(nssi_rt_runtime *runtime, uint32_t provider, const {0}_service *service)",
                       service.name);
  }

  const Interface &interface_;
  const TypeGraph graph_;
  const Options &options_;
  const std::vector<CService> services_;
  std::set<std::string> types_;
  std::string out_;
};

constexpr const char *kManual = R"(
/* To call: NAME waits for the result; NAME_async does not: NAME_wait() does, also after nssi_rt_test(),
 * nssi_rt_wait_any() or nssi_rt_wait_all(), and nssi_rt_free_call() frees the call. The deadline is in `options`; null:
 * the defaults. `result` is untouched unless NESSIE_OK is returned. What it points to then is its caller's, to be freed
 * by xdr_free(), or by free() if it is a string. Errors as nssi_rt_wait(), and NESSIE_INVALID_ARGUMENT: an argument
 * breaks a rule of the interface, or `data` lacks a right; nothing was sent.
 *
 * To serve: fill a service, and add it to a runtime before nssi_rt_run(); it must live until nssi_rt_close(). An
 * operation whose function is null is not offered. A function gets decoded arguments, which are freed when it returns,
 * and a zeroed `result`. It returns NESSIE_OK: what it made of `result` is sent, and then freed by free(). Or it returns
 * another nessie_code: the caller gets that; with all that is known of it, if nssi_rt_get_data() or another function
 * with `request` gave it. NAME_reply() and nssi_rt_reply_error() answer before it returns, with what need not be on the
 * heap, or with a sentence of its own. */
)";

class RpcHeaderWriter : public Writer {
 public:
  using Writer::Writer;

  std::string write() {
    if (services_.empty()) return {};
    const auto guard = fmt::format("NESSIE_{}_RPC_H", c_macro(options_.stem));
    out_ = fmt::format(
        "/* Made by `nessie idl` from {0}; changes will be lost. */\n#ifndef {1}\n#define {1}\n\n#include "
        "\"{2}.h\"\n{3}\n"
        "#include <nssi/stub.h>\n\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n{4}",
        options_.file, guard, options_.stem, CNumberNames(interface_).undefined(), kManual);
    for (const auto &service : services_) write(service);
    out_ += fmt::format("\n#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {} */\n", guard);
    return std::move(out_);
  }

 private:
  void write(const CService &service) {
    out_ += fmt::format("\n/* --- {}, version {}: {} --- */\n\n", service.program->name,
                        literal(service.version->number.number), service.version->name);
    for (const auto &each : service.procedures)
      out_ += fmt::format("#define {}_op {}u\n", each.name, literal(each.it->number.number));
    out_ += "\n";
    for (const auto &each : service.procedures)
      out_ += fmt::format("{};\n{};\n{};\n", call_head(each), async_head(each), wait_head(each));
    write_service(service);
    for (const auto &each : service.procedures) out_ += reply_head(each) + ";\n";
  }
  void write_service(const CService &service) {
    out_ += fmt::format(
        "\ntypedef struct {}_service {{\n"
        "  void *context; /* given to each function */\n"
        "  int32_t (*kind_of)(void *context, uint32_t op); /* an enum nssi_rt_kind, of a NAME_op; null: what "
        "the interface says */\n",
        service.name);
    for (const auto &each : service.procedures)
      out_ += fmt::format("  int (*{})(void *{}, nssi_rt_request *{}{}{});\n", each.member, own("context"),
                          own("request"), parameters(*each.it), result_parameter(each.it->result));
    out_ += fmt::format("}} {}_service;\n\n{};\n\n", service.name, add_head(service));
  }
};

class SourceWriter : public Writer {
 public:
  using Writer::Writer;

  std::string write() {
    if (services_.empty()) return {};
    for (const auto &service : services_) write(service);
    return fmt::format(
        "/* Made by `nessie idl` from {}; changes will be lost. */\n#include \"{}_rpc.h\"\n\n#include "
        "<xdr/xdr.h>\n{}{}",
        options_.file, options_.stem, coders_, out_);
  }

 private:
  void write(const CService &service) {
    for (const auto &each : service.procedures) {
      write_arguments(each);
      write_call_of(service, each);
      write_procedure(service, each);
      write_client(each);
      write_reply(each);
    }
    write_add(service);
  }

  /// "nessie_coder_of_point", which is made where it is missing.
  std::string coder(const Type &type) {
    const auto name = type.kind == Kind::kString ? std::string("string") : c_type(type);
    if (coded_.insert(name).second)
      coders_ += fmt::format("\nstatic bool_t nessie_coder_of_{}(XDR *xdrs, void *value)\n{{\n  return {};\n}}\n", name,
                             coding(type));
    return "nessie_coder_of_" + name;
  }
  static std::string coding(const Type &type) {
    if (type.kind == Kind::kString) return "nessie_xdr_string(xdrs, value, 0xffffffffu)";
    if (const auto *number = c_number(type)) return fmt::format("{}(xdrs, value)", number->coder);
    return fmt::format("xdr_{}(xdrs, value)", c_name(type.name));
  }

  // --- what a procedure is made of -------------------------------------------------------------------------------------
  void write_arguments(const CProcedure &p) {
    if (p.it->arguments.empty()) return;
    out_ += fmt::format("\nstruct nessie_arguments_{} {{\n", p.name);
    std::string rows;
    for (std::size_t i = 0; i < p.it->arguments.size(); ++i) {
      const auto &type = p.it->arguments[i];
      out_ += fmt::format("  {};\n", holder(type, argument(i)));
      rows += fmt::format("  {{{}, offsetof(struct nessie_arguments_{}, {})}}{}\n", coder(type), p.name, argument(i),
                          i + 1 < p.it->arguments.size() ? "," : "");
    }
    out_ += fmt::format("}};\nstatic const struct nssi_stub_argument nessie_layout_{}[] = {{\n{}}};\n", p.name, rows);
  }
  /// The skeleton's: from the struct of arguments to the user's function.
  void write_call_of(const CService &service, const CProcedure &p) {
    out_ += fmt::format(
        "\nstatic int nessie_call_{}(const void *service_, nssi_rt_request *request_, void *arguments_, void "
        "*result_)\n{{\n"
        "  const {}_service *to_ = service_;\n",
        p.name, service.name);
    out_ += p.it->arguments.empty() ? std::string("  (void)arguments_;\n")
                                    : fmt::format("  struct nessie_arguments_{} *of_ = arguments_;\n", p.name);
    const bool is_void = p.it->result.kind == Kind::kVoid;
    if (is_void) out_ += "  (void)result_;\n";
    std::string arguments;
    for (std::size_t i = 0; i < p.it->arguments.size(); ++i)
      arguments += fmt::format(", {}of_->{}", passing(p.it->arguments[i]) == Passing::kPointer ? "&" : "", argument(i));
    out_ += fmt::format("  return to_->{}(to_->context, request_{}{});\n}}\n", p.member, arguments,
                        is_void ? "" : ", result_");
  }
  static const char *c_rights(Bulk bulk) {
    if (bulk == Bulk::kNone) return "0";
    return by_bulk(bulk, "NSSI_RT_READ", "NSSI_RT_WRITE", "NSSI_RT_READ_WRITE");
  }
  void write_procedure(const CService &service, const CProcedure &p) {
    const auto &it = *p.it;
    const bool has_arguments = !it.arguments.empty(), is_void = it.result.kind == Kind::kVoid;
    out_ += fmt::format(
        "\nstatic const struct nssi_stub_procedure nessie_procedure_{} = {{\n"
        "  {}u, {}u, {}u, \"{}\", {}, {}u,\n",
        p.name, literal(service.program->number.number), literal(service.version->number.number),
        literal(it.number.number), it.name, c_rights(it.bulk), it.arguments.size());
    out_ += has_arguments ? fmt::format("  nessie_layout_{0}, sizeof(struct nessie_arguments_{0}),\n", p.name)
                          : std::string("  NULL, 0,\n");
    out_ += is_void ? std::string("  NULL, 0,\n")
                    : fmt::format("  {}, sizeof({}),\n", coder(it.result), type_of(it.result));
    out_ += fmt::format("  nessie_call_{0}\n}};\n", p.name);
    out_ += fmt::format(
        "static void nessie_serve_{0}(void *service_, nssi_rt_request *request_)\n{{\n"
        "  nssi_stub_serve(request_, &nessie_procedure_{0}, service_);\n}}\n",
        p.name);
  }

  // --- the user's functions ----------------------------------------------------------------------------------------------
  /// The array of where the arguments are; its name, or NULL.
  std::string gather(const Procedure &it) {
    if (it.arguments.empty()) return "NULL";
    std::string all;
    for (std::size_t i = 0; i < it.arguments.size(); ++i)
      all += fmt::format("{}{}", i == 0 ? "" : ", ", address(it.arguments[i], argument(i)));
    out_ += fmt::format("  const void *const {}[] = {{{}}};\n", own("arguments"), all);
    return own("arguments");
  }
  void write_client(const CProcedure &p) {
    const auto client = own("client"), options = own("options"), call = own("call");
    const auto data = p.it->bulk != Bulk::kNone ? own("data") : "NULL";
    out_ += fmt::format("\n{}\n{{\n", call_head(p));
    out_ += fmt::format("  return nssi_stub_call({}, &nessie_procedure_{}, {}, {}, {}, {});\n}}\n", client, p.name,
                        gather(*p.it), data, options, result_name(p.it->result));
    out_ += fmt::format("\n{}\n{{\n", async_head(p));
    out_ += fmt::format("  return nssi_stub_start({}, &nessie_procedure_{}, {}, {}, {}, {});\n}}\n", client, p.name,
                        gather(*p.it), data, options, call);
    out_ += fmt::format("\n{}\n{{\n  return nssi_stub_wait({}, &nessie_procedure_{}, {}, {});\n}}\n", wait_head(p),
                        call, p.name, own("timeout_ms"), result_name(p.it->result));
  }
  void write_reply(const CProcedure &p) {
    const auto &type = p.it->result;
    out_ += fmt::format("\n{}\n{{\n  return nssi_stub_reply({}, &nessie_procedure_{}, {});\n}}\n", reply_head(p),
                        own("request"), p.name, type.kind == Kind::kVoid ? "NULL" : address(type, own("result")));
  }
  static const char *kind_name(HandlerKind kind) {
    static constexpr const char *kNames[] = {"NSSI_RT_FIBER", "NSSI_RT_SHORT", "NSSI_RT_BULK", "NSSI_RT_BULK_NOW"};
    return kNames[static_cast<int>(kind)];
  }
  void write_add(const CService &service) {
    out_ += fmt::format(
        "\nstatic int nessie_offer_{0}(nssi_rt_runtime *runtime, uint32_t provider, const {0}_service *service,\n"
        "    const struct nssi_stub_procedure *procedure, nssi_rt_handler handler, int32_t usual)\n{{\n"
        "  const int32_t kind = service->kind_of ? service->kind_of(service->context, procedure->op) : usual;\n"
        "  return nssi_stub_offer(runtime, provider, procedure, handler, service, kind);\n}}\n",
        service.name);
    out_ += fmt::format("\n{}\n{{\n  int code = nssi_stub_check(service);\n", add_head(service));
    for (const auto &each : service.procedures)
      out_ += fmt::format(
          "  if (code == NESSIE_OK && service->{1})\n"
          "    code = nessie_offer_{0}(runtime, provider, service, &nessie_procedure_{2}, nessie_serve_{2}, {3});\n",
          service.name, each.member, each.name, kind_name(each.it->kind));
    out_ += "  return code;\n}\n";
  }

  std::set<std::string> coded_;
  std::string coders_;
};

}  // namespace

std::string make_c_rpc_header(const Interface &interface, const Options &options) {
  return RpcHeaderWriter(interface, options).write();
}
std::string make_c_rpc(const Interface &interface, const Options &options) {
  return SourceWriter(interface, options).write();
}

}  // namespace xdr::idl
