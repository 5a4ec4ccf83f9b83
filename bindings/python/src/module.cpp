// SPDX-License-Identifier: BSD-3-Clause
// nessie._core: the C++ runtime, for nessie.nssi, which is its public face.
#include "buffer.hpp"
#include "call.hpp"
#include "desk.hpp"
#include "host.hpp"
#include "mailbox.hpp"
#include "streams.hpp"
#include "swap.hpp"
#include "workers.hpp"

#include <pybind11/stl.h>

namespace nessie_python {
namespace {

std::shared_ptr<Host> open(std::vector<std::string> transports, bool listen, std::optional<std::string> credential,
                           std::map<std::string, std::string> settings, std::size_t max_handlers) {
  return Host::open({std::move(transports), listen, std::move(credential), std::move(settings), max_handlers});
}

void add_operation(Host &host, std::uint32_t program, std::uint32_t version, std::uint32_t provider, nssi::OpCode op,
                   std::string name, int kind, py::object handler, py::object serve) {
  if (kind < 0 || kind > static_cast<int>(nssi::HandlerKind::kBulkNow))
    raise(Code::kInvalidArgument, "there is no such kind of handler");
  host.add_operation({{program, version}, provider, op, std::move(name), static_cast<nssi::HandlerKind>(kind), {}},
                     std::move(handler), std::move(serve));
}

void bind_runtime(py::module_ &module) {
  py::class_<Host, std::shared_ptr<Host>>(module, "Runtime")
      .def(py::init(&open), py::arg("transports"), py::arg("listen"), py::arg("credential"), py::arg("settings"),
           py::arg("max_handlers"))
      .def_property_readonly("url", &Host::url)
      .def_property_readonly("is_closed", &Host::is_closed)
      .def_property_readonly("is_here", [](const Host &host) { return host.origin().is_here(); })
      .def("check_here", [](const Host &host) { host.origin().check_here(); })
      .def_property_readonly("workers", &Host::workers)
      .def("connect", &Host::connect, py::arg("url"), py::arg("timeout"))
      .def("connect_to", &Host::connect_to, py::arg("what"), py::arg("timeout"))
      .def("find", &Host::find, py::arg("what"), py::arg("timeout"))
      .def("announce", &Host::announce, py::arg("where"), py::arg("kind"), py::arg("attributes"), py::arg("timeout"))
      .def("disconnect", &Host::disconnect, py::arg("peer"))
      .def("register", &Buffer::of_object, py::arg("object"), py::arg("rights"))
      .def("allocate", &Buffer::allocated, py::arg("size_bytes"), py::arg("rights"))
      .def("add_operation", &add_operation, py::arg("program"), py::arg("version"), py::arg("provider"), py::arg("op"),
           py::arg("name"), py::arg("kind"), py::arg("handler"), py::arg("serve"))
      .def("run", &Host::run)
      .def("pump", &Host::pump)
      .def("stop", &Host::stop)
      .def("stop_when_done", &Host::stop_when_done, py::arg("timeout"))
      .def("close", &Host::close);
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  bind_errors(module);
  bind_swap(module);
  bind_desk(module);
  bind_workers(module);
  bind_mailbox(module);
  bind_buffer(module);
  bind_runtime(module);
  bind_call(module);
  bind_stream_writer(module);
  bind_stream_reader(module);
  bind_space(module);
}

}  // namespace nessie_python
