// SPDX-License-Identifier: BSD-3-Clause
// What readers see, and get.
#include <services/streams/c/handles.hpp>

#include <algorithm>

using namespace nessie::streams;
using namespace nessie::streams::c;
using nessie::Code;
using nessie::Deadline;
using nessie::Error;
using nessie::Status;

namespace {

/// The one among `all` for which `is_it` holds.
template <class View, class IsIt>
Status find_in(const std::vector<View> &all, const std::string &what, const View **found, IsIt is_it) {
  const auto place = std::ranges::find_if(all, is_it);
  if (place == all.end()) return Error{Code::kNotFound, "the step has no " + what};
  *found = &*place;
  return {};
}

/// Calls `use` with the reader, the box and the deadline.
template <class Use>
int with_box_of_reader(nessie_stream *stream, const char *variable, std::int32_t ndims, const std::int64_t *start,
                       const std::int64_t *count, std::int32_t timeout_ms, Use use) {
  return with_reader(stream, [&](Reader &reader) -> Status {
    if (variable == nullptr) return invalid("variable is null");
    const auto box = box_of(ndims, start, count);
    if (!box.ok()) return box.error();
    const auto deadline = deadline_of(timeout_ms);
    if (!deadline.ok()) return deadline.error();
    return use(reader, *box, *deadline);
  });
}

Status find_defined(const nessie_stream &stream, const char *name, const nessie_stream_variable **variable) {
  const auto place = stream.defined.find(std::string_view(name));
  if (place == stream.defined.end()) return Error{Code::kNotFound, "no variable " + std::string(name) + " was defined"};
  *variable = &place->second.view;
  return {};
}

}  // namespace

int nessie_stream_variables(nessie_stream *stream, const nessie_stream_variable **variables, uint64_t *count) {
  return with_reader(stream, [&](Reader &) -> Status {
    if (variables == nullptr || count == nullptr) return invalid("variables or count is null");
    *variables = stream->variables.data();
    *count = stream->variables.size();
    return {};
  });
}

int nessie_stream_attributes(nessie_stream *stream, const nessie_stream_attribute **attributes, uint64_t *count) {
  return with_reader(stream, [&](Reader &) -> Status {
    if (attributes == nullptr || count == nullptr) return invalid("attributes or count is null");
    *attributes = stream->attributes.data();
    *count = stream->attributes.size();
    return {};
  });
}

int nessie_stream_find(nessie_stream *stream, const char *name, const nessie_stream_variable **variable) {
  return with_stream(stream, [&]() -> Status {
    if (name == nullptr || variable == nullptr) return invalid("name or variable is null");
    if (stream->writer) return find_defined(*stream, name, variable);
    return find_in(stream->variables, "variable " + std::string(name), variable,
                   [&](const auto &each) { return std::strcmp(each.name, name) == 0; });
  });
}

int nessie_stream_find_attribute(nessie_stream *stream, const char *variable, const char *name,
                                 const nessie_stream_attribute **attribute) {
  return with_reader(stream, [&](Reader &) -> Status {
    if (name == nullptr || attribute == nullptr) return invalid("name or attribute is null");
    const auto of = text_of(variable);
    return find_in(stream->attributes, "attribute " + std::string(name) + (of.empty() ? "" : " of " + of), attribute,
                   [&](const auto &each) { return of == each.variable && std::strcmp(each.name, name) == 0; });
  });
}

int nessie_stream_get(nessie_stream *stream, const char *variable, int32_t ndims, const int64_t *start,
                      const int64_t *count, void *destination, uint64_t size_bytes, int32_t timeout_ms) {
  return with_box_of_reader(stream, variable, ndims, start, count, timeout_ms,
                            [&](Reader &reader, const Box &box, Deadline deadline) -> Status {
                              if (destination == nullptr && size_bytes != 0) return invalid("destination is null");
                              return reader.get(variable, box, destination, size_bytes, deadline);
                            });
}

int nessie_stream_figures(nessie_stream *stream, const char *variable, int32_t ndims, const int64_t *start,
                          const int64_t *count, int32_t timeout_ms, nessie_stream_figures_result *figures) {
  return with_box_of_reader(stream, variable, ndims, start, count, timeout_ms,
                            [&](Reader &reader, const Box &box, Deadline deadline) -> Status {
                              if (figures == nullptr) return invalid("figures is null");
                              const auto found = reader.figures(variable, box, deadline);
                              if (!found.ok()) return found.error();
                              *figures = {found->minimum, found->maximum, found->mean, found->elements};
                              return {};
                            });
}
