// SPDX-License-Identifier: BSD-3-Clause
// The shared space; who is there; memory that servers reach; and what all of the streams' files need.
#include "streams.hpp"

#include <pybind11/stl.h>

namespace nessie_python {

using namespace py::literals;

void await_servers(const std::string &at, Deadline deadline) {
  const auto may_come = [](const Result<streams::Space> &found) {
    return found.code() == Code::kTimedOut || found.code() == Code::kNotFound || found.code() == Code::kPeerLost;
  };
  (void)take(in_slices(
      deadline, kLongestSlice, [&](Deadline until) { return streams::Space::open(at, until); }, may_come));
}

streams::Type stream_type(int type) {
  const auto made = static_cast<streams::Type>(type);
  if (streams::size_of(made) == 0) raise(Code::kInvalidArgument, "there is no such type of elements");
  return made;
}

streams::Box box_of(streams::Extents start, streams::Extents count) { return {std::move(start), std::move(count)}; }

namespace {

py::bytes raw(const std::vector<std::byte> &bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

}  // namespace

py::list listed(const std::vector<streams::Variable> &variables) {
  py::list made;
  for (const auto &it : variables)
    made.append(py::make_tuple(it.name, static_cast<int>(it.type), py::tuple(py::cast(it.shape)), raw(it.fill),
                               it.is_constant));
  return made;
}

py::list listed(const std::vector<streams::Attribute> &attributes) {
  py::list made;
  for (const auto &it : attributes)
    made.append(py::make_tuple(it.variable, it.name, static_cast<int>(it.type), raw(it.value)));
  return made;
}

namespace {

// --- the shared space -------------------------------------------------------------------------------------------------

using HeldSpace = Held<streams::Space>;

std::unique_ptr<HeldSpace> open_space(const std::string &at, std::optional<double> timeout) {
  const auto deadline = deadline_in(timeout);
  await_servers(at, deadline);
  auto opened = [&] {
    const Released released;
    return streams::Space::open(at, deadline);
  }();
  return std::make_unique<HeldSpace>(take(std::move(opened)), Origin());
}

/// What has timed out may have been put, and is not put again.
void put_in_space(HeldSpace &held, const std::string &name, std::uint64_t version, int type, streams::Extents start,
                  streams::Extents count, const py::object &data, std::optional<double> timeout) {
  const HeldSpace::Use space(held);
  const View view(data);
  const auto of = stream_type(type);
  const auto box = box_of(std::move(start), std::move(count));
  const auto status = [&] {
    const Released released;
    return space->put(name, version, of, box, view.bytes().data(), deadline_in(timeout));
  }();
  check(status);
}

void get_from_space(HeldSpace &held, const std::string &name, std::uint64_t version, int type, streams::Extents start,
                    streams::Extents count, const py::object &destination, std::optional<double> timeout) {
  const HeldSpace::Use space(held);
  const View view(destination, View::kWritable);
  const auto of = stream_type(type);
  const auto box = box_of(std::move(start), std::move(count));
  check(in_slices(
      deadline_in(timeout), kNoLongest,
      [&](Deadline until) {
        return space->get(name, version, of, box, view.bytes().data(), view.bytes().size(), until);
      },
      timed_out));
}

std::uint64_t newest(HeldSpace &held, const std::string &name, std::optional<double> timeout) {
  const HeldSpace::Use space(held);
  return take(in_slices(
      deadline_in(timeout), kLongestSlice, [&](Deadline until) { return space->newest(name, until); }, timed_out));
}

// --- who is there -----------------------------------------------------------------------------------------------------

py::dict reader_of(const streams::ReaderInfo &it) {
  return py::dict("subscription"_a = it.subscription, "is_view"_a = it.reading == streams::Reading::kView,
                  "size"_a = it.size, "connected"_a = it.connected, "ended"_a = it.ended, "lag"_a = it.lag,
                  "missed"_a = it.missed);
}

py::dict stream_of(const streams::StreamInfo &it) {
  py::list readers;
  for (const auto &each : it.readers) readers.append(reader_of(each));
  return py::dict("name"_a = it.name, "state"_a = static_cast<int>(it.state), "why"_a = it.why,
                  "is_file"_a = it.is_file, "writers"_a = it.writers, "connected"_a = it.connected,
                  "is_logged"_a = it.durability == streams::Durability::kLogged, "steps"_a = it.steps,
                  "oldest"_a = it.oldest, "memory_bytes"_a = it.memory_bytes, "log_bytes"_a = it.log_bytes,
                  "variables"_a = listed(it.variables), "attributes"_a = listed(it.attributes), "readers"_a = readers);
}

py::list list_streams(const std::string &at, std::optional<double> timeout) {
  py::list made;
  for (const auto &each : take(in_slices(
           deadline_in(timeout), kLongestSlice, [&](Deadline until) { return streams::list(at, until); }, timed_out)))
    made.append(stream_of(each));
  return made;
}

// --- memory -----------------------------------------------------------------------------------------------------------

class StreamMemory {
 public:
  explicit StreamMemory(std::size_t size_bytes) : it_(take(streams::Memory::allocate(size_bytes))) {}
  ~StreamMemory() {
    if (!origin_.is_here()) leave_behind(it_);
  }
  py::buffer_info info() {
    const auto bytes = it_.bytes();
    return {bytes.data(), 1, py::format_descriptor<std::uint8_t>::format(), static_cast<py::ssize_t>(bytes.size())};
  }

 private:
  Origin origin_;
  streams::Memory it_;
};

}  // namespace

void bind_space(py::module_ &module) {
  py::class_<HeldSpace>(module, "StreamSpace")
      .def(py::init(&open_space), py::arg("at"), py::arg("timeout"))
      .def_property_readonly("is_closed", &HeldSpace::is_closed)
      .def("put", &put_in_space, py::arg("name"), py::arg("version"), py::arg("type"), py::arg("start"),
           py::arg("count"), py::arg("data"), py::arg("timeout"))
      .def("get", &get_from_space, py::arg("name"), py::arg("version"), py::arg("type"), py::arg("start"),
           py::arg("count"), py::arg("destination"), py::arg("timeout"))
      .def("newest", &newest, py::arg("name"), py::arg("timeout"))
      .def("close", &HeldSpace::drop);
  py::class_<StreamMemory>(module, "StreamMemory", py::buffer_protocol())
      .def(py::init<std::size_t>(), py::arg("size_bytes"))
      .def_buffer(&StreamMemory::info);
  module.def("list_streams", &list_streams, py::arg("at"), py::arg("timeout"));
}

}  // namespace nessie_python
