// SPDX-License-Identifier: BSD-3-Clause
// What writers put.
#include <services/streams/c/handles.hpp>

using namespace nessie::streams;
using namespace nessie::streams::c;
using nessie::Status;

namespace {

/// Calls `use` with the writer and the box.
template <class Use>
int with_box_of_writer(nessie_stream *stream, const char *variable, std::int32_t ndims, const std::int64_t *start,
                       const std::int64_t *count, Use use) {
  return with_writer(stream, [&](Writer &writer) -> Status {
    if (variable == nullptr) return invalid("variable is null");
    const auto box = box_of(ndims, start, count);
    if (!box.ok()) return box.error();
    return use(writer, *box);
  });
}

void remember(nessie_stream &stream, Variable variable) {
  auto &defined = stream.defined[variable.name];
  defined.variable = std::move(variable);
  defined.view = view_of(defined.variable);
}

}  // namespace

int nessie_stream_define(nessie_stream *stream, const nessie_stream_variable *variable) {
  return with_writer(stream, [&](Writer &writer) -> Status {
    if (variable == nullptr) return invalid("variable is null");
    auto made = variable_of(*variable);
    if (!made.ok()) return made.error();
    if (Status status = writer.define(*made); !status.ok()) return status;
    remember(*stream, *std::move(made));
    return {};
  });
}

int nessie_stream_set_attribute(nessie_stream *stream, const nessie_stream_attribute *attribute) {
  return with_writer(stream, [&](Writer &writer) -> Status {
    if (attribute == nullptr) return invalid("attribute is null");
    const auto made = attribute_of(*attribute);
    return made.ok() ? writer.set_attribute(*made) : Status(made.error());
  });
}

int nessie_stream_put(nessie_stream *stream, const char *variable, int32_t ndims, const int64_t *start,
                      const int64_t *count, const void *data) {
  return with_box_of_writer(stream, variable, ndims, start, count, [&](Writer &writer, const Box &box) -> Status {
    const auto status = check_data(box, data);
    return status.ok() ? writer.put(variable, box, data) : status;
  });
}

int nessie_stream_span(nessie_stream *stream, const char *variable, int32_t ndims, const int64_t *start,
                       const int64_t *count, void **memory) {
  return with_box_of_writer(stream, variable, ndims, start, count, [&](Writer &writer, const Box &box) -> Status {
    if (memory == nullptr) return invalid("memory is null");
    const auto made = writer.span(variable, box);
    if (!made.ok()) return made.error();
    *memory = *made;
    return {};
  });
}

int nessie_stream_put_lent(nessie_stream *stream, const char *variable, int32_t ndims, const int64_t *start,
                           const int64_t *count, const void *data) {
  return with_box_of_writer(stream, variable, ndims, start, count, [&](Writer &writer, const Box &box) -> Status {
    const auto status = check_data(box, data);
    return status.ok() ? writer.put_lent(variable, box, data) : status;
  });
}
