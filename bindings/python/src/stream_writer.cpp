// SPDX-License-Identifier: BSD-3-Clause
#include "streams.hpp"

#include <pybind11/stl.h>

#include <cstring>

namespace nessie_python {

namespace {

using HeldWriter = Held<streams::Writer>;

/// Memory of a step's, which stays mapped as long as somebody sees it.
class StreamSpan {
 public:
  StreamSpan(std::shared_ptr<HeldWriter::Inside> writer, void *begin, std::size_t size_bytes)
      : writer_(std::move(writer)), begin_(begin), size_bytes_(size_bytes) {}
  py::buffer_info info() {
    return {begin_, 1, py::format_descriptor<std::uint8_t>::format(), static_cast<py::ssize_t>(size_bytes_)};
  }

 private:
  std::shared_ptr<HeldWriter::Inside> writer_;
  void *begin_;
  std::size_t size_bytes_;
};

std::unique_ptr<HeldWriter> open_writer(const std::string &name, int rank, int size, std::string at, int durability,
                                        bool append, int await_readers, std::optional<double> timeout) {
  const auto deadline = deadline_in(timeout);
  streams::WriterOptions options;
  options.rank = rank;
  options.size = size;
  options.at = std::move(at);
  if (durability > 0)
    options.durability = durability == 2 ? streams::Durability::kLogged : streams::Durability::kMemory;
  options.append = append;
  options.await_readers = await_readers;
  await_servers(options.at, deadline);
  auto opened = [&] {
    const Released released;
    return streams::Writer::open(name, options, deadline);
  }();
  return std::make_unique<HeldWriter>(take(std::move(opened)), Origin());
}

void define(HeldWriter &held, std::string name, int type, streams::Extents shape, const std::string &fill,
            bool is_constant) {
  const HeldWriter::Use writer(held);
  streams::Variable variable{std::move(name), stream_type(type), std::move(shape), {}, is_constant};
  const auto *bytes = reinterpret_cast<const std::byte *>(fill.data());
  variable.fill.assign(bytes, bytes + fill.size());
  check(writer->define(variable));
}

void set_attribute(HeldWriter &held, std::string variable, std::string name, int type, const std::string &value) {
  const HeldWriter::Use writer(held);
  streams::Attribute attribute{std::move(variable), std::move(name), stream_type(type), {}};
  const auto *bytes = reinterpret_cast<const std::byte *>(value.data());
  attribute.value.assign(bytes, bytes + value.size());
  check(writer->set_attribute(attribute));
}

int begin_writing(HeldWriter &held, std::optional<double> timeout) {
  const HeldWriter::Use writer(held);
  const auto goes_on = [](const Result<streams::StepState> &began) {
    return began.ok() ? *began == streams::StepState::kNotYet : began.code() == Code::kBusy;
  };
  return static_cast<int>(take(in_slices(
      deadline_in(timeout), kLongestSlice, [&](Deadline until) { return writer->begin_step(until); }, goes_on)));
}

void end_writing(HeldWriter &held, std::optional<double> timeout) {
  const HeldWriter::Use writer(held);
  check(in_slices(
      deadline_in(timeout), kLongestSlice, [&](Deadline until) { return writer->end_step(until); }, timed_out));
  writer.inside()->lent.clear();
}

void close_writer(HeldWriter &held, std::optional<double> timeout) {
  {
    const HeldWriter::Use writer(held);
    check(in_slices(
        deadline_in(timeout), kLongestSlice, [&](Deadline until) { return writer->close(until); }, timed_out));
  }
  held.drop();
}

/// Python has seen to it that the data are those of the box.
void put(HeldWriter &held, const std::string &variable, streams::Extents start, streams::Extents count,
         const py::object &data, bool is_fortran) {
  const HeldWriter::Use writer(held);
  const View view(data);
  const auto box = box_of(std::move(start), std::move(count));
  std::optional<Released> released;
  if (view.bytes().size() > kQuickBytes) released.emplace();
  const auto status = writer->put(variable, box, view.bytes().data(), order_of(is_fortran));
  released.reset();
  check(status);
}

void put_lent(HeldWriter &held, const std::string &variable, streams::Extents start, streams::Extents count,
              const py::object &data) {
  const HeldWriter::Use writer(held);
  View view(data);
  check(writer->put_lent(variable, box_of(std::move(start), std::move(count)), view.bytes().data()));
  writer.inside()->lent.push_back(std::move(view));
}

std::unique_ptr<StreamSpan> span_of(HeldWriter &held, const std::string &variable, streams::Extents start,
                                    streams::Extents count, std::size_t size_bytes) {
  const HeldWriter::Use writer(held);
  auto *memory = take(writer->span(variable, box_of(std::move(start), std::move(count))));
  return std::make_unique<StreamSpan>(writer.inside(), memory, size_bytes);
}

}  // namespace

void bind_stream_writer(py::module_ &module) {
  py::class_<StreamSpan>(module, "StreamSpan", py::buffer_protocol()).def_buffer(&StreamSpan::info);
  py::class_<HeldWriter>(module, "StreamWriter")
      .def(py::init(&open_writer), py::arg("name"), py::arg("rank"), py::arg("size"), py::arg("at"),
           py::arg("durability"), py::arg("append"), py::arg("await_readers"), py::arg("timeout"))
      .def_property_readonly("is_closed", &HeldWriter::is_closed)
      .def_property_readonly("step", [](HeldWriter &held) { return HeldWriter::Use(held)->step(); })
      .def("define", &define, py::arg("name"), py::arg("type"), py::arg("shape"), py::arg("fill"),
           py::arg("is_constant"))
      .def("set_attribute", &set_attribute, py::arg("variable"), py::arg("name"), py::arg("type"), py::arg("value"))
      .def("begin_step", &begin_writing, py::arg("timeout"))
      .def("put", &put, py::arg("variable"), py::arg("start"), py::arg("count"), py::arg("data"), py::arg("is_fortran"))
      .def("put_lent", &put_lent, py::arg("variable"), py::arg("start"), py::arg("count"), py::arg("data"))
      .def("span", &span_of, py::arg("variable"), py::arg("start"), py::arg("count"), py::arg("size_bytes"))
      .def("end_step", &end_writing, py::arg("timeout"))
      .def("close", &close_writer, py::arg("timeout"))
      .def("drop", &HeldWriter::drop);
}

}  // namespace nessie_python
