// SPDX-License-Identifier: BSD-3-Clause
// Calling MPI so that an error is an error, and not the end of the job.
#pragma once

#include <nessie/result.hpp>

#include <mpi.h>

#include <string_view>

namespace nessie::service::mpi {

/// kUnsupported: MPI is not initialised, or finalised, or this thread may not call it.
Status check_usable();

/// kIo, with MPI's own text, and its code as the cause.
Error mpi_error(std::string_view what, int code);

/// While it lives, errors of calls on `comm` are returned.
class ErrorsReturn {
 public:
  explicit ErrorsReturn(MPI_Comm comm);
  ~ErrorsReturn();
  ErrorsReturn(const ErrorsReturn &) = delete;

 private:
  MPI_Comm comm_;
  MPI_Errhandler before_ = MPI_ERRHANDLER_NULL;
};

}  // namespace nessie::service::mpi
