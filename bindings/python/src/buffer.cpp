// SPDX-License-Identifier: BSD-3-Clause
#include "buffer.hpp"

namespace nessie_python {

namespace {

constexpr auto kRemoteWrite = static_cast<unsigned>(nnti::Rights::kRemoteWrite);

nnti::Rights rights_of(unsigned rights) {
  if (rights == 0 || rights > static_cast<unsigned>(nnti::Rights::kReadWrite))
    raise(Code::kInvalidArgument, "rights are READ, WRITE, or both");
  return static_cast<nnti::Rights>(rights);
}

}  // namespace

Buffer::Buffer(std::shared_ptr<Host> host, nnti::RegisteredBuffer registered, std::optional<View> view, unsigned rights)
    : host_(std::move(host)),
      registered_(std::move(registered)),
      is_borrowed_(view.has_value()),
      view_(std::move(view)),
      size_bytes_(registered_.bytes().size()),
      rights_(rights) {}

std::unique_ptr<Buffer> Buffer::of_object(std::shared_ptr<Host> host, const py::object &object, unsigned rights) {
  const auto wanted = rights_of(rights);
  std::optional<View> view(std::in_place, object, (rights & kRemoteWrite) != 0 ? View::kWritable : View::kReadOnly);
  nnti::RegisteredBuffer registered;
  {
    const Released released;
    Visit visit(*host);
    registered = take(host->runtime().register_memory(view->bytes(), wanted));
  }
  return std::unique_ptr<Buffer>(new Buffer(std::move(host), std::move(registered), std::move(view), rights));
}

std::unique_ptr<Buffer> Buffer::allocated(std::shared_ptr<Host> host, std::size_t size_bytes, unsigned rights) {
  const auto wanted = rights_of(rights);
  nnti::RegisteredBuffer registered;
  {
    const Released released;
    Visit visit(*host);
    registered = take(host->runtime().allocate(size_bytes, wanted));
  }
  return std::unique_ptr<Buffer>(new Buffer(std::move(host), std::move(registered), std::nullopt, rights));
}

Buffer::~Buffer() {
  if (host_->origin().is_here()) drop();
}

void Buffer::unregister() {
  host_->origin().check_here();
  if (loans_ != 0) raise(Code::kBusy, "a call in progress lends the buffer: wait for it, or drop it, first");
  if (exports_ != 0) raise(Code::kBusy, "arrays or views of the allocated memory are alive: delete them first");
  drop();
  view_.reset();
}

/// What is left of a runtime that was closed needs no driver.
void Buffer::drop() {
  if (!registered_.valid()) return;
  const Released released;
  host_->use_or_outlive([this] {
    auto registered = std::move(registered_);
    if (!host_->is_closed()) host_->runtime().unregister_memory(std::move(registered));
  });
}

// --- the buffer protocol ----------------------------------------------------------------------------------------------

int Buffer::export_to(Py_buffer *view, PyObject *self, int flags) {
  if (is_borrowed_ || !registered_.valid()) {
    PyErr_SetString(PyExc_BufferError, is_borrowed_ ? "the memory is that of the object which was registered: use that"
                                                    : "the buffer is not registered any more");
    return -1;
  }
  auto bytes = registered_.bytes();
  if (PyBuffer_FillInfo(view, self, bytes.data(), static_cast<Py_ssize_t>(bytes.size()), 0, flags) != 0) return -1;
  ++exports_;
  return 0;
}

namespace {

Buffer *buffer_of(PyObject *self) { return py::handle(self).cast<Buffer *>(); }

int get_buffer(PyObject *self, Py_buffer *view, int flags) {
  view->obj = nullptr;
  return buffer_of(self)->export_to(view, self, flags);
}
void release_buffer(PyObject *self, Py_buffer *) { buffer_of(self)->end_export(); }

}  // namespace

void bind_buffer(py::module_ &module) {
  auto setup = py::custom_type_setup([](PyHeapTypeObject *type) {
    type->ht_type.tp_as_buffer = &type->as_buffer;
    type->as_buffer.bf_getbuffer = get_buffer;
    type->as_buffer.bf_releasebuffer = release_buffer;
  });
  py::class_<Buffer>(module, "Buffer", setup)
      .def_property_readonly("is_valid", &Buffer::is_valid)
      .def_property_readonly("nbytes", &Buffer::size_bytes)
      .def_property_readonly("rights", &Buffer::rights)
      .def("unregister", &Buffer::unregister);
}

}  // namespace nessie_python
