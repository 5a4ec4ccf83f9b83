// SPDX-License-Identifier: BSD-3-Clause
#include "errors.hpp"

#include <chrono>
#include <cmath>

namespace nessie_python {
namespace {

/// The one table of codes: names, numbers, and what a caller does next.
py::list codes() {
  py::list table;
#define NESSIE_PYTHON_CODE(name, number, result, advice) table.append(py::make_tuple(#name, number, advice));
  NESSIE_CODES(NESSIE_PYTHON_CODE)
#undef NESSIE_PYTHON_CODE
  return table;
}

/// From others, in whatever encoding.
py::object text_of(const std::string &text) {
  auto *made = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

void set_python_error(const Error &error) {
  const auto make = py::module_::import("nessie.errors").attr("make");
  const py::object made = make(static_cast<int>(error.code), text_of(error.message), static_cast<int>(error.scope),
                               error.cause, std::chrono::duration<double>(error.retry_after).count());
  PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(made.ptr())), made.ptr());
}

}  // namespace

Deadline deadline_in(std::optional<double> seconds) {
  constexpr double kForEver = 1e9;
  if (!seconds || *seconds >= kForEver) return Deadline::never();
  if (std::isnan(*seconds)) raise(Code::kInvalidArgument, "a timeout is a number of seconds, or None");
  if (*seconds <= 0) return Deadline::now();
  return Deadline::in(std::chrono::ceil<nessie::Clock::duration>(std::chrono::duration<double>(*seconds)));
}

void bind_errors(py::module_ &module) {
  module.attr("CODES") = codes();
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const Raised &raised) { set_python_error(raised.error()); }
  });
}

}  // namespace nessie_python
