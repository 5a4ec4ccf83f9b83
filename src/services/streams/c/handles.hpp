// SPDX-License-Identifier: BSD-3-Clause
// What the files of nessie/streams.h share: what its handles are, and what its structures and numbers are in C++.
// Errors are noted where those of nssi/runtime.h are.
#pragma once

#include <nessie/streams.h>
#include <nessie/streams.hpp>

#include <nssi/c/runtime.hpp>

#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace nessie::streams::c {

using nssi::c_runtime::deadline_of;
using nssi::c_runtime::guarded;
using nssi::c_runtime::Handle;
using nssi::c_runtime::Handles;
using nssi::c_runtime::invalid;
using nssi::c_runtime::is_open;

/// A variable that a writer has defined, and as C sees it.
struct Defined {
  Variable variable;
  nessie_stream_variable view;
};

inline std::string text_of(const char *text) { return text != nullptr ? text : ""; }

/// kInvalidArgument: it is none of the types.
Result<Type> type_of(std::int32_t type);
/// kInvalidArgument: too many dimensions, or null where there are some.
Result<Extents> extents_of(std::int32_t ndims, const std::int64_t *extents);
Result<Box> box_of(std::int32_t ndims, const std::int64_t *start, const std::int64_t *count);
/// kInvalidArgument: the data of a box that has elements are nowhere.
Status check_data(const Box &box, const void *data);
Result<Variable> variable_of(const nessie_stream_variable &from);
Result<Attribute> attribute_of(const nessie_stream_attribute &from);

/// They point into what they are made of.
nessie_stream_variable view_of(const Variable &variable);
nessie_stream_attribute view_of(const Attribute &attribute);
template <class View, class T> std::vector<View> views_of(const std::vector<T> &all) {
  std::vector<View> views;
  views.reserve(all.size());
  for (const auto &each : all) views.push_back(view_of(each));
  return views;
}

}  // namespace nessie::streams::c

struct nessie_stream : nssi::c_runtime::Handle<0x4E535301> {
  std::optional<nessie::streams::Writer> writer;
  std::optional<nessie::streams::Reader> reader;
  std::map<std::string, nessie::streams::c::Defined, std::less<>> defined;  ///< a writer's
  std::vector<nessie_stream_variable> variables;                            ///< a reader's, of the open step
  std::vector<nessie_stream_attribute> attributes;

  void reset() {
    attributes.clear();
    variables.clear();
    defined.clear();
    reader.reset();
    writer.reset();
  }
};

struct nessie_space : nssi::c_runtime::Handle<0x4E535302> {
  std::optional<nessie::streams::Space> space;
};

namespace nessie::streams::c {

/// Calls `use` with what is behind the handle.
template <class Use> int with_stream(nessie_stream *stream, Use use) {
  return guarded([&]() -> Status {
    if (!is_open(stream)) return invalid("the stream is null or closed");
    return use();
  });
}
template <class Use> int with_writer(nessie_stream *stream, Use use) {
  return with_stream(stream, [&]() -> Status {
    if (!stream->writer) return invalid("the stream is open for reading");
    return use(*stream->writer);
  });
}
template <class Use> int with_reader(nessie_stream *stream, Use use) {
  return with_stream(stream, [&]() -> Status {
    if (!stream->reader) return invalid("the stream is open for writing");
    return use(*stream->reader);
  });
}

/// Closes the handle once `leave` has returned ok.
template <class Leave> Status leave_and_close(nessie_stream *stream, Leave leave) {
  if (Status status = leave(); !status.ok()) return status;
  if (!Handles<nessie_stream>::close(stream)) return invalid("the stream is being closed");
  stream->reset();
  Handles<nessie_stream>::give_back(stream);
  return {};
}

}  // namespace nessie::streams::c
