// SPDX-License-Identifier: BSD-3-Clause
// The memory of an object that has the buffer protocol, as one piece, for a while.
#pragma once

#include "errors.hpp"

#include <cstddef>
#include <span>
#include <utility>

namespace nessie_python {

/// Made and dropped with the GIL; its bytes can be used without.
class View {
 public:
  enum Access { kReadOnly, kWritable };

  View() = default;
  /// InvalidArgument: the object has no such memory, or not in one piece, or it must not be written.
  explicit View(const py::object &object, Access access = kReadOnly) {
    const int flags = PyBUF_STRIDES | PyBUF_ANY_CONTIGUOUS | (access == kWritable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object.ptr(), &view_, flags) == 0) return;
    const py::error_already_set why;
    raise(Code::kInvalidArgument, std::string("this needs a buffer in one piece") +
                                      (access == kWritable ? " that may be written" : "") +
                                      " (numpy.ascontiguousarray makes one): " + why.what());
  }
  View(View &&other) noexcept : view_(std::exchange(other.view_, Py_buffer{})) {}
  View &operator=(View &&) = delete;
  ~View() {
    if (view_.obj != nullptr) PyBuffer_Release(&view_);
  }

  std::span<std::byte> bytes() const {
    return {static_cast<std::byte *>(view_.buf), static_cast<std::size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
};

}  // namespace nessie_python
