// SPDX-License-Identifier: BSD-3-Clause
#include "streams.hpp"

#include <pybind11/stl.h>

namespace nessie_python {

namespace {

using HeldReader = Held<streams::Reader>;

std::unique_ptr<HeldReader> open_reader(const std::string &name, int rank, int size, std::string at, bool is_view,
                                        int from, std::uint64_t first, std::string subscription, std::uint64_t group,
                                        std::optional<double> timeout) {
  const auto deadline = deadline_in(timeout);
  streams::ReaderOptions options;
  options.rank = rank;
  options.size = size;
  options.at = std::move(at);
  options.reading = is_view ? streams::Reading::kView : streams::Reading::kEvery;
  options.from = static_cast<streams::From>(from);
  options.first = first;
  options.subscription = std::move(subscription);
  options.group = group;
  await_servers(options.at, deadline);
  auto opened = in_slices(
      deadline, kLongestSlice, [&](Deadline until) { return streams::Reader::open(name, options, until); }, timed_out);
  return std::make_unique<HeldReader>(take(std::move(opened)), Origin());
}

int begin_reading(HeldReader &held, std::optional<double> timeout) {
  const HeldReader::Use reader(held);
  const auto not_yet = [](const Result<streams::StepState> &began) {
    return began.ok() && *began == streams::StepState::kNotYet;
  };
  return static_cast<int>(take(in_slices(
      deadline_in(timeout), kLongestSlice, [&](Deadline until) { return reader->begin_step(until); }, not_yet)));
}

void get(HeldReader &held, const std::string &variable, streams::Extents start, streams::Extents count,
         const py::object &destination, bool is_fortran, std::optional<double> timeout) {
  const HeldReader::Use reader(held);
  const View view(destination, View::kWritable);
  const auto box = box_of(std::move(start), std::move(count));
  check(in_slices(
      deadline_in(timeout), kNoLongest,
      [&](Deadline until) {
        return reader->get(variable, box, view.bytes().data(), view.bytes().size(), until, order_of(is_fortran));
      },
      timed_out));
}

py::tuple figures(HeldReader &held, const std::string &variable, streams::Extents start, streams::Extents count,
                  std::optional<double> timeout) {
  const HeldReader::Use reader(held);
  const auto box = box_of(std::move(start), std::move(count));
  const auto it = take(in_slices(
      deadline_in(timeout), kNoLongest, [&](Deadline until) { return reader->figures(variable, box, until); },
      timed_out));
  return py::make_tuple(it.minimum, it.maximum, it.mean, it.elements);
}

/// leave(reader, deadline): close() or unsubscribe().
template <auto kLeave> void leave(HeldReader &held, std::optional<double> timeout) {
  {
    const HeldReader::Use reader(held);
    check(in_slices(
        deadline_in(timeout), kLongestSlice, [&](Deadline until) { return ((*reader).*kLeave)(until); }, timed_out));
  }
  held.drop();
}

}  // namespace

void bind_stream_reader(py::module_ &module) {
  py::class_<HeldReader>(module, "StreamReader")
      .def(py::init(&open_reader), py::arg("name"), py::arg("rank"), py::arg("size"), py::arg("at"), py::arg("is_view"),
           py::arg("from_"), py::arg("first"), py::arg("subscription"), py::arg("group"), py::arg("timeout"))
      .def_property_readonly("is_closed", &HeldReader::is_closed)
      .def_property_readonly("step", [](HeldReader &held) { return HeldReader::Use(held)->step(); })
      .def_property_readonly("missed", [](HeldReader &held) { return HeldReader::Use(held)->missed(); })
      .def_property_readonly("variables", [](HeldReader &held) { return listed(HeldReader::Use(held)->variables()); })
      .def_property_readonly("attributes", [](HeldReader &held) { return listed(HeldReader::Use(held)->attributes()); })
      .def("begin_step", &begin_reading, py::arg("timeout"))
      .def("get", &get, py::arg("variable"), py::arg("start"), py::arg("count"), py::arg("destination"),
           py::arg("is_fortran"), py::arg("timeout"))
      .def("figures", &figures, py::arg("variable"), py::arg("start"), py::arg("count"), py::arg("timeout"))
      .def("end_step", [](HeldReader &held) { check(HeldReader::Use(held)->end_step()); })
      .def("close", &leave<&streams::Reader::close>, py::arg("timeout"))
      .def("unsubscribe", &leave<&streams::Reader::unsubscribe>, py::arg("timeout"))
      .def("drop", &HeldReader::drop);
}

}  // namespace nessie_python
