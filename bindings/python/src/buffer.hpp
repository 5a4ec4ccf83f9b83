// SPDX-License-Identifier: BSD-3-Clause
// Memory that services read and write: an object of Python's, borrowed and kept alive, or memory of Nessie's own, which
// Python sees by the buffer protocol.
#pragma once

#include "host.hpp"
#include "view.hpp"

#include <memory>
#include <optional>

namespace nessie_python {

class Buffer {
 public:
  static std::unique_ptr<Buffer> of_object(std::shared_ptr<Host> host, const py::object &object, unsigned rights);
  static std::unique_ptr<Buffer> allocated(std::shared_ptr<Host> host, std::size_t size_bytes, unsigned rights);
  /// With the GIL.
  ~Buffer();

  /// Null: it is not registered any more.
  const nnti::RegisteredBuffer *registered() const { return registered_.valid() ? &registered_ : nullptr; }
  bool is_valid() const { return registered_.valid(); }
  std::size_t size_bytes() const { return size_bytes_; }
  unsigned rights() const { return rights_; }
  /// Peers reach it no more. Busy: a call has it, or somebody sees allocated memory.
  void unregister();

  /// Calls in progress that lend it.
  void lend() { ++loans_; }
  void give_back() { --loans_; }

  int export_to(Py_buffer *view, PyObject *self, int flags);
  void end_export() { --exports_; }

 private:
  Buffer(std::shared_ptr<Host> host, nnti::RegisteredBuffer registered, std::optional<View> view, unsigned rights);
  void drop();

  std::shared_ptr<Host> host_;
  nnti::RegisteredBuffer registered_;
  const bool is_borrowed_;
  std::optional<View> view_;  ///< of what is borrowed
  std::size_t size_bytes_;
  unsigned rights_;
  int loans_ = 0, exports_ = 0;
};

void bind_buffer(py::module_ &module);

}  // namespace nessie_python
