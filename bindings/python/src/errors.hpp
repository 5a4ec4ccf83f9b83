// SPDX-License-Identifier: BSD-3-Clause
// Results of ours as exceptions of Python's: nessie.Error and the classes of its codes.
#pragma once

#include <nessie/result.hpp>
#include <nssi/nssi.hpp>

#include <pybind11/pybind11.h>

#include <exception>
#include <optional>
#include <utility>

namespace nessie_python {

namespace py = pybind11;
using nessie::Code;
using nessie::Deadline;
using nessie::Error;
using nessie::Result;
using nessie::Status;

/// Thrown in C++, it arrives in Python as the exception of the error's code.
class Raised : public std::exception {
 public:
  explicit Raised(Error error) : error_(std::move(error)) {}
  const Error &error() const { return error_; }
  const char *what() const noexcept override { return error_.message.c_str(); }

 private:
  Error error_;
};

[[noreturn]] inline void raise(Code code, std::string message) { throw Raised({code, std::move(message)}); }
inline void check(const Status &status) {
  if (!status.ok()) throw Raised(status.error());
}
template <class T> T take(Result<T> result) {
  if (!result.ok()) throw Raised(result.error());
  return std::move(*result);
}

/// Seconds from now, as Python gives them; none: never. InvalidArgument: not a number.
Deadline deadline_in(std::optional<double> seconds);

/// More bytes are copied without the GIL.
inline constexpr std::size_t kQuickBytes = std::size_t{64} << 10;

/// Lets other threads of Python run. Where the interpreter is ending, taking the GIL back ends the thread instead, by
/// an unwinding that must get past here.
class Released {
 public:
  Released() : state_(PyEval_SaveThread()) {}
  ~Released() noexcept(false) { PyEval_RestoreThread(state_); }
  Released(const Released &) = delete;

 private:
  PyThreadState *state_;
};

/// If a signal came: runs its handlers, and throws what they raise.
inline void check_signals() {
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

void bind_errors(py::module_ &module);

}  // namespace nessie_python
