// SPDX-License-Identifier: BSD-3-Clause
#include <services/discovery/mpi/calls.hpp>

#include <fmt/format.h>

#include <array>

namespace nessie::service::mpi {

Status check_usable() {
  int is_initialised = 0, is_finalised = 0, level = MPI_THREAD_SINGLE, is_main = 0;
  MPI_Initialized(&is_initialised);
  if (is_initialised != 0) MPI_Finalized(&is_finalised);
  if (is_initialised == 0 || is_finalised != 0)
    return Error{Code::kUnsupported, "MPI is not initialised, or is finalised already: call MPI_Init first"};
  MPI_Query_thread(&level);
  MPI_Is_thread_main(&is_main);
  if (level >= MPI_THREAD_SERIALIZED || is_main != 0) return {};
  return Error{Code::kUnsupported, "this thread may not call MPI: initialise it with MPI_THREAD_MULTIPLE"};
}

Error mpi_error(std::string_view what, int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int size = 0;
  MPI_Error_string(code, text.data(), &size);
  return {Code::kIo, fmt::format("{}: {}", what, text.data()), Scope::kOperation, code};
}

ErrorsReturn::ErrorsReturn(MPI_Comm comm) : comm_(comm) {
  MPI_Comm_get_errhandler(comm_, &before_);
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
}

ErrorsReturn::~ErrorsReturn() {
  MPI_Comm_set_errhandler(comm_, before_);
  MPI_Errhandler_free(&before_);
}

}  // namespace nessie::service::mpi
