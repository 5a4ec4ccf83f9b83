// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/fortran_rpc.hpp"

#include <fmt/format.h>

namespace xdr::idl {
namespace {

using Element = FortranForm::Element;
using Layout = FortranForm::Layout;

const char *fortran_rights(Bulk bulk) { return by_bulk(bulk, "nssi_read", "nssi_write", "nssi_read_write"); }

/// A procedure of the interface, and what its parts are called.
struct Operation {
  const Procedure *procedure = nullptr;
  std::string number;     ///< of the module: a parameter
  std::string interface;  ///< that of its handler
  std::string call, async, result, serve;
  std::string bound_call, bound_async, bound_result, bound_handler;  ///< in the types
  std::vector<FortranForm> arguments;
  std::optional<FortranForm> outcome;
};

/// What is made for one version of a program.
struct Face {
  std::string program, version;  ///< parameters
  std::string client, make_client, server, kind_of, add_to, serve;
  std::vector<Operation> operations;
};

class FortranRpcWriter {
 public:
  FortranRpcWriter(const Interface &interface, const Options &options, const FortranModule &module)
      : interface_(interface),
        options_(options),
        types_(module.types),
        statements_(module.statements),
        names_(module.names),
        module_(module.name) {}

  std::string write() {
    const auto module = names_.claim(options_.stem + "_rpc");
    for (const auto &definition : interface_.definitions)
      if (const auto *program = std::get_if<Program>(&definition)) write(*program);
    if (body_.empty()) return {};
    return fmt::format("\nmodule {}\n", module) +
           "  use, intrinsic :: iso_c_binding, only: c_int8_t, c_int32_t, c_int64_t, c_float, c_double\n"
           "  use nessie_xdr\n  use nssi\n" +
           fmt::format("  use {}\n  implicit none\n  private\n{}\ncontains\n{}end module\n", module_, head_, body_);
  }

 private:
  void write(const Program &program) {
    const auto number = names_.claim(program.name + "_program");
    head_ += "\n";
    write_number(number, program.number);
    for (const auto &version : program.versions) {
      const auto face = face_of(program, version, number);
      write_number(face.version, version.number);
      for (const auto &it : face.operations) write_number(it.number, it.procedure->number);
      write_client(face);
      write_server(face);
    }
  }
  void write_number(const std::string &name, const Value &value) {
    head_ += fortran_line(
        2, fmt::format("integer(c_int32_t), parameter, public :: {} = {}", name, fortran_literal(value.number, 4)));
  }

  // --- names -------------------------------------------------------------------------------------------------------------
  Face face_of(const Program &program, const Version &version, const std::string &number) {
    const auto base = program.name + "_" + version.name;
    const auto name = [&](const std::string &end) { return names_.claim(base + end); };
    Face face{number,
              name("_version"),
              name("_client"),
              names_.claim("make_" + base),
              name("_server"),
              name("_kind_of"),
              name("_add_to"),
              name("_serve"),
              {}};
    FortranNames of_client, of_server;
    for (const auto *kept : {"runtime", "service"}) of_client.claim(kept);
    for (const auto *kept : {"serve", "kind_of", "add_to"}) of_server.claim(kept);
    for (const auto &it : version.procedures) of_client.claim(it.name);
    FortranNames bound;
    for (const auto *kept : {"runtime", "service"}) bound.claim(kept);
    for (const auto &procedure : version.procedures)
      face.operations.push_back(operation_of(procedure, base, bound, of_client, of_server));
    return face;
  }
  Operation operation_of(const Procedure &procedure, const std::string &base, FortranNames &bound,
                         FortranNames &of_client, FortranNames &of_server) {
    const auto name = [&](const std::string &end) { return names_.claim(base + "_" + procedure.name + end); };
    Operation made{&procedure,
                   name(""),
                   name("_handler"),
                   name("_call"),
                   name("_async"),
                   name("_result"),
                   name("_serve"),
                   bound.claim(procedure.name),
                   of_client.claim(procedure.name + "_async"),
                   of_client.claim(procedure.name + "_result"),
                   of_server.claim(procedure.name),
                   {},
                   {}};
    for (const auto &argument : procedure.arguments) made.arguments.push_back(types_.form_of(argument));
    if (procedure.result.kind != Type::Kind::kVoid) made.outcome = types_.form_of(procedure.result);
    return made;
  }

  // --- parameters --------------------------------------------------------------------------------------------------------
  static std::string argument(std::size_t index) { return fmt::format("argument{}", index + 1); }
  static std::string names_of(const Operation &it) {
    std::string all;
    for (std::size_t i = 0; i < it.arguments.size(); ++i) all += ", " + argument(i);
    return all;
  }
  static bool has_bulk(const Operation &it) { return it.procedure->bulk != Bulk::kNone; }
  static std::string outcome_of(const Operation &it) { return it.outcome ? ", outcome" : ""; }

  std::string declare_argument(const FortranForm &form, const std::string &name) const {
    const bool is_text = form.element == Element::kString;
    const auto type = is_text ? "character(len=*)" : types_.element_type(form);
    switch (form.layout) {
      case Layout::kScalar: return fmt::format("{}, intent(in) :: {}", type, name);
      case Layout::kVector: return fmt::format("{}, intent(in) :: {}({})", type, name, *form.size);
      case Layout::kArray: return fmt::format("{}, intent(in) :: {}(:)", type, name);
      case Layout::kOptional: return fmt::format("{}, allocatable, intent(in) :: {}", type, name);
      default: return fmt::format("{}, allocatable, intent(in) :: {}(:)", type, name);
    }
  }
  std::string declare_outcome(const FortranForm &form) const {
    const auto type = types_.element_type(form);
    if (form.layout == Layout::kVector) return fmt::format("{}, intent(inout) :: outcome({})", type, *form.size);
    const bool is_scalar = form.layout == Layout::kScalar || form.layout == Layout::kOptional;
    const bool is_plain = form.layout == Layout::kScalar && form.element != Element::kString;
    return fmt::format("{}{}, intent(inout) :: outcome{}", type, is_plain ? "" : ", allocatable",
                       is_scalar ? "" : "(:)");
  }
  std::string declare_arguments(const Operation &it, int indent) const {
    std::string made;
    for (std::size_t i = 0; i < it.arguments.size(); ++i)
      made += fortran_line(indent, declare_argument(it.arguments[i], argument(i)));
    return made;
  }
  /// In a skeleton: from the heap, handlers' stacks being small.
  std::string declare_local(const FortranForm &form, const std::string &name) const {
    const auto type = types_.element_type(form);
    const bool is_scalar = form.layout == Layout::kScalar || form.layout == Layout::kOptional;
    const bool is_number =
        form.layout == Layout::kScalar && form.element != Element::kString && form.element != Element::kDerived;
    return fortran_line(
        4, fmt::format("{}{} :: {}{}", type, is_number ? "" : ", allocatable", name, is_scalar ? "" : "(:)"));
  }
  /// What is to be allocated before it is used.
  static std::string make_local(const FortranForm &form, const std::string &name) {
    if (form.layout == Layout::kVector) return fmt::format("{}({}), ", name, *form.size);
    const bool is_one = form.layout == Layout::kScalar && form.element == Element::kDerived;
    return is_one ? name + ", " : "";
  }

  // --- the calling side --------------------------------------------------------------------------------------------------
  void write_client(const Face &face) {
    head_ +=
        "\n  ! Calls a provider of the interface. An operation's name waits for its result; NAME_async does not, and\n"
        "  ! NAME_result gives it, and frees the call, unless it is nessie_timed_out and the call goes on.\n";
    head_ += fortran_line(2, fmt::format("type, public :: {}", face.client)) +
             "    type(nssi_runtime) :: runtime\n    type(nssi_service) :: service\n  contains\n";
    for (const auto &it : face.operations)
      head_ += fortran_line(4, fmt::format("procedure :: {} => {}", it.bound_call, it.call)) +
               fortran_line(4, fmt::format("procedure :: {} => {}", it.bound_async, it.async)) +
               fortran_line(4, fmt::format("procedure :: {} => {}", it.bound_result, it.result));
    head_ += fmt::format("  end type\n  interface {}\n    module procedure :: {}\n  end interface\n", face.client,
                         face.make_client);
    write_make_client(face);
    for (const auto &it : face.operations) {
      write_async(face, it);
      write_result(face, it);
      write_call(face, it);
    }
  }
  void write_make_client(const Face &face) {
    body_ += "\n";
    body_ +=
        fortran_line(2, fmt::format("recursive function {}(runtime, peer, provider) result(made)", face.make_client)) +
        "    type(nssi_runtime), intent(in) :: runtime\n    integer(c_int64_t), intent(in) :: peer\n"
        "    integer(c_int32_t), intent(in), optional :: provider\n" +
        fortran_line(4, fmt::format("type({}) :: made", face.client)) + "    made%runtime = runtime\n" +
        fortran_line(4, fmt::format("made%service = nssi_service(peer, {}, {}, 0)", face.program, face.version)) +
        "    if (present(provider)) made%service%provider = provider\n  end function\n";
  }
  static std::string options() {
    return "    integer(c_int32_t), intent(in), optional :: timeout_ms\n"
           "    logical, intent(in), optional :: idempotent, one_way, fail_when_busy\n    type(nessie_status) :: "
           "status\n";
  }
  std::string begin_call(const Face &face, const Operation &it, const std::string &name,
                         const std::string &more) const {
    std::string made = "\n";
    return made +
           fortran_line(
               2, fmt::format("recursive function {}(self{}{}{}, timeout_ms, idempotent, one_way, fail_when_busy) "
                              "result(status)",
                              name, names_of(it), has_bulk(it) ? ", buffer" : "", more)) +
           fortran_line(4, fmt::format("class({}), intent(in) :: self", face.client)) + declare_arguments(it, 4) +
           (has_bulk(it) ? "    type(nssi_buffer), intent(in) :: buffer\n" : "");
  }
  void write_async(const Face &face, const Operation &it) {
    body_ += begin_call(face, it, it.async, ", pending") + "    type(nssi_call), intent(inout) :: pending\n" +
             options() +
             "    integer(c_int8_t), allocatable, target :: bytes(:)\n    type(xdr_sizer) :: sizer\n"
             "    type(xdr_writer) :: writer\n";
    if (has_bulk(it))
      body_ += fortran_line(4, fmt::format("status = nssi_lends(buffer, {})", fortran_rights(it.procedure->bulk))) +
               "    if (.not. status%ok()) return\n";
    std::uint64_t fixed_bytes = 0;
    std::string sizes, puts;
    for (std::size_t i = 0; i < it.arguments.size(); ++i) {
      sizes += statements_.size_argument(it.arguments[i], argument(i), fixed_bytes);
      puts += statements_.put_argument(it.arguments[i], argument(i));
    }
    if (fixed_bytes != 0) body_ += fmt::format("    sizer%size_bytes = {}\n", fortran_count(fixed_bytes));
    body_ += sizes + "    status = xdr_prepare(sizer, bytes, writer)\n    if (.not. status%ok()) return\n" + puts +
             fortran_line(4, fmt::format("status = self%runtime%start(self%service, {}, bytes, pending, {}"
                                         "timeout_ms=timeout_ms, idempotent=idempotent, one_way=one_way, "
                                         "fail_when_busy=fail_when_busy)",
                                         it.number, has_bulk(it) ? "buffer=buffer, " : "")) +
             "  end function\n";
  }
  void write_result(const Face &face, const Operation &it) {
    body_ += "\n";
    body_ += fortran_line(2, fmt::format("recursive function {}(self, pending{}, timeout_ms) result(status)", it.result,
                                         outcome_of(it))) +
             fortran_line(4, fmt::format("class({}), intent(in) :: self", face.client)) +
             "    type(nssi_call), intent(inout) :: pending\n" +
             (it.outcome ? fortran_line(4, declare_outcome(*it.outcome)) : "") +
             "    integer(c_int32_t), intent(in), optional :: timeout_ms\n    type(nessie_status) :: status\n"
             "    type(xdr_reader) :: reader\n    integer(c_int8_t), pointer, contiguous :: bytes(:)\n"
             "    associate (unused => self)\n    end associate\n"
             "    status = pending%take(bytes, timeout_ms)\n    if (.not. status%ok()) return\n"
             "    if (pending%is_one_way()) then\n      call pending%free()\n      return\n    end if\n"
             "    reader = xdr_reader_of(bytes)\n" +
             (it.outcome ? statements_.get(*it.outcome, "outcome") : "") +
             "    status = xdr_finish(reader)\n    call pending%free()\n  end function\n";
  }
  void write_call(const Face &face, const Operation &it) {
    body_ +=
        begin_call(face, it, it.call, outcome_of(it)) +
        (it.outcome ? fortran_line(4, declare_outcome(*it.outcome)) : "") + options() +
        "    type(nssi_call) :: pending\n" +
        fortran_line(4, fmt::format("status = self%{}({}{}pending, timeout_ms, idempotent, one_way, fail_when_busy)",
                                    it.bound_async, it.arguments.empty() ? "" : names_of(it).substr(2) + ", ",
                                    has_bulk(it) ? "buffer, " : "")) +
        fortran_line(4, fmt::format("if (status%ok()) status = self%{}(pending{})", it.bound_result, outcome_of(it))) +
        "  end function\n";
  }

  // --- the serving side --------------------------------------------------------------------------------------------------
  void write_server(const Face &face) {
    head_ +=
        "\n  ! Extend it to serve the interface. Each operation runs on a user-level thread of its own, unless "
        "kind_of()\n"
        "  ! says otherwise, and may be at work several times at once: make it `recursive`. Bulk data:\n"
        "  ! request%get_data() and put_data(). What it returns is the result: the outcome, or an error.\n";
    head_ += fortran_line(2, fmt::format("type, abstract, extends(nssi_handler), public :: {}", face.server)) +
             "  contains\n";
    for (const auto &it : face.operations)
      head_ += fortran_line(4, fmt::format("procedure({}), deferred :: {}", it.interface, it.bound_handler));
    head_ += fortran_line(4, fmt::format("procedure :: kind_of => {}", face.kind_of)) +
             fortran_line(4, fmt::format("procedure :: add_to => {}", face.add_to)) +
             fortran_line(4, fmt::format("procedure :: serve => {}", face.serve)) +
             "  end type\n  abstract interface\n";
    for (const auto &it : face.operations) write_interface(face, it);
    head_ += "  end interface\n";
    write_kind_of(face);
    write_add_to(face);
    write_serve(face);
    for (const auto &it : face.operations) write_serve(face, it);
  }
  void write_interface(const Face &face, const Operation &it) {
    head_ += fortran_line(4, fmt::format("function {}(self, request{}{}) result(status)", it.interface, names_of(it),
                                         outcome_of(it))) +
             "      import\n" + fortran_line(6, fmt::format("class({}), intent(inout) :: self", face.server)) +
             "      type(nssi_request), intent(inout) :: request\n" + declare_arguments(it, 6) +
             (it.outcome ? fortran_line(6, declare_outcome(*it.outcome)) : "") +
             "      type(nessie_status) :: status\n    end function\n";
  }
  void write_kind_of(const Face &face) {
    static constexpr const char *kNames[] = {"nssi_fiber", "nssi_short", "nssi_bulk", "nssi_bulk_now"};
    body_ += "\n  ! What the interface says, or another one for an operation that the server knows.\n";
    body_ += fortran_line(2, fmt::format("recursive function {}(self, op) result(kind)", face.kind_of)) +
             fortran_line(4, fmt::format("class({}), intent(in) :: self", face.server)) +
             "    integer(c_int32_t), intent(in) :: op\n    integer(c_int32_t) :: kind\n"
             "    associate (unused => self)\n    end associate\n    select case (op)\n";
    for (const auto &it : face.operations)
      if (it.procedure->kind != HandlerKind::kFiber)
        body_ += fortran_line(4, fmt::format("case ({})", it.number)) +
                 fortran_line(6, fmt::format("kind = {}", kNames[static_cast<int>(it.procedure->kind)]));
    body_ += "    case default\n      kind = nssi_fiber\n    end select\n  end function\n";
  }
  void write_add_to(const Face &face) {
    body_ +=
        "\n  ! Offers all operations, before runtime%run(). The server must outlive the runtime, and is a `target`.\n"
        "  ! nessie_exists: the provider is taken.\n";
    body_ +=
        fortran_line(2, fmt::format("recursive function {}(self, runtime, provider) result(status)", face.add_to)) +
        fortran_line(4, fmt::format("class({}), intent(in), target :: self", face.server)) +
        "    type(nssi_runtime), intent(inout) :: runtime\n"
        "    integer(c_int32_t), intent(in), optional :: provider\n    type(nessie_status) :: status\n"
        "    integer(c_int32_t) :: number\n    number = 0\n    if (present(provider)) number = provider\n";
    for (const auto &it : face.operations)
      body_ += fortran_line(4, fmt::format("if (status%ok()) status = runtime%add_operation({}, {}, number, {}, '{}', "
                                           "self%kind_of({}), self, .true.)",
                                           face.program, face.version, it.number, it.procedure->name, it.number));
    body_ += "  end function\n";
  }
  void write_serve(const Face &face) {
    body_ += "\n";
    body_ += fortran_line(2, fmt::format("recursive subroutine {}(self, request)", face.serve)) +
             fortran_line(4, fmt::format("class({}), intent(inout) :: self", face.server)) +
             "    type(nssi_request), intent(inout) :: request\n    type(nessie_status) :: status\n"
             "    select case (request%op())\n";
    for (const auto &it : face.operations)
      body_ += fortran_line(4, fmt::format("case ({})", it.number)) +
               fortran_line(6, fmt::format("status = {}(self, request)", it.serve));
    body_ +=
        "    case default\n      status = nessie_error(nessie_not_found, 'the server has no such operation')\n"
        "    end select\n    if (.not. status%ok()) status = request%reply_error(status)\n  end subroutine\n";
  }
  /// Errors of the reply itself are left alone: the caller is gone, which is no fault of a handler.
  void write_serve(const Face &face, const Operation &it) {
    std::string makes, gets, frees, outcome;
    auto locals = std::string(
        "    type(nessie_status) :: status\n    type(xdr_reader) :: reader\n    type(xdr_sizer) :: sizer\n"
        "    type(xdr_writer) :: writer\n    integer(c_int8_t), pointer, contiguous :: buffer(:)\n"
        "    integer(c_int8_t), allocatable, target :: bytes(:)\n");
    for (std::size_t i = 0; i < it.arguments.size(); ++i) {
      locals += declare_local(it.arguments[i], argument(i));
      makes += make_local(it.arguments[i], argument(i));
      gets += statements_.get(it.arguments[i], argument(i));
      frees += statements_.free(it.arguments[i], argument(i));
    }
    std::uint64_t fixed_bytes = 0;
    if (it.outcome) {
      locals += declare_local(*it.outcome, "outcome");
      makes += make_local(*it.outcome, "outcome");
      const auto sizes = statements_.size(*it.outcome, "outcome", fixed_bytes);
      if (fixed_bytes != 0) outcome += fmt::format("    sizer%size_bytes = {}\n", fortran_count(fixed_bytes));
      outcome +=
          sizes + "    status = xdr_prepare(sizer, bytes, writer)\n    if (status%ok()) then\n" + "  " +
          statements_.put(*it.outcome, "outcome") +
          "    else\n      status%code = nessie_internal\n      status%scope = nessie_scope_service\n    end if\n" +
          statements_.free(*it.outcome, "outcome") + "    if (.not. status%ok()) return\n";
    } else {
      outcome = "    status = xdr_prepare(sizer, bytes, writer)\n";
    }
    if (!makes.empty()) {
      locals += "    integer :: failed\n";
      makes = fortran_line(4, fmt::format("allocate ({}stat=failed)", makes)) +
              "    if (failed /= 0) then\n"
              "      status = nessie_error(nessie_no_memory, 'the server has not memory enough for the call')\n"
              "      return\n    end if\n";
    }
    if ((frees + outcome).find("do i = ") != std::string::npos) locals += "    integer(c_int64_t) :: i\n";
    body_ += "\n";
    body_ += fortran_line(2, fmt::format("recursive function {}(self, request) result(status)", it.serve)) +
             fortran_line(4, fmt::format("class({}), intent(inout) :: self", face.server)) +
             "    type(nssi_request), intent(inout) :: request\n" + locals +
             "    status = request%args(buffer)\n    if (.not. status%ok()) return\n"
             "    reader = xdr_reader_of(buffer)\n" +
             makes + gets + "    status = xdr_finish(reader)\n" +
             fortran_line(4, fmt::format("if (status%ok()) status = self%{}(request{}{})", it.bound_handler,
                                         names_of(it), outcome_of(it))) +
             frees + "    if (.not. status%ok()) return\n" + outcome +
             "    status = request%reply(bytes)\n    status = nessie_status()\n  end function\n";
  }

  const Interface &interface_;
  const Options &options_;
  const FortranTypes &types_;
  FortranStatements &statements_;
  FortranNames &names_;
  const std::string module_;
  std::string head_, body_;
};

}  // namespace

std::string make_fortran_rpc(const Interface &interface, const Options &options, const FortranModule &module) {
  return FortranRpcWriter(interface, options, module).write();
}

}  // namespace xdr::idl
