// SPDX-License-Identifier: BSD-3-Clause
// Opening, steps, and closing.
#include <services/streams/c/handles.hpp>

using namespace nessie::streams;
using namespace nessie::streams::c;
using nessie::Deadline;
using nessie::Result;
using nessie::Status;

namespace {

bool is_between(std::int32_t value, std::int32_t least, std::int32_t most) { return value >= least && value <= most; }

Result<WriterOptions> writer_options(std::int32_t rank, std::int32_t size, const nessie_stream_options &from) {
  if (!is_between(from.durability, 0, NESSIE_STREAM_LOGGED)) return invalid("there is no such durability");
  WriterOptions options;
  options.rank = rank;
  options.size = size;
  options.at = text_of(from.at);
  if (from.durability != 0)
    options.durability = from.durability == NESSIE_STREAM_LOGGED ? Durability::kLogged : Durability::kMemory;
  options.append = from.append != 0;
  options.await_readers = from.await_readers;
  return options;
}

Result<ReaderOptions> reader_options(std::int32_t rank, std::int32_t size, const nessie_stream_options &from) {
  if (!is_between(from.reading, NESSIE_STREAM_EVERY, NESSIE_STREAM_VIEW)) return invalid("there is no such reading");
  if (!is_between(from.from, NESSIE_STREAM_FROM_OLDEST, NESSIE_STREAM_FROM_NUMBER))
    return invalid("there is no such beginning");
  ReaderOptions options;
  options.rank = rank;
  options.size = size;
  options.at = text_of(from.at);
  options.reading = from.reading == NESSIE_STREAM_VIEW ? Reading::kView : Reading::kEvery;
  options.from = static_cast<From>(from.from);
  options.first = from.first;
  options.subscription = text_of(from.subscription);
  options.group = from.group;
  return options;
}

/// Opens a writer, or a reader, into its place in a new handle.
template <class Options, class Rank>
Status open_into(std::optional<Rank> &place, const char *name, const Result<Options> &options, Deadline deadline) {
  if (!options.ok()) return options.error();
  auto opened = Rank::open(name, *options, deadline);
  if (!opened.ok()) return opened.error();
  place.emplace(*std::move(opened));
  return {};
}

/// What the reader's step has, as C sees it.
void look_at_step(nessie_stream &stream, Reader &reader) {
  stream.variables = views_of<nessie_stream_variable>(reader.variables());
  stream.attributes = views_of<nessie_stream_attribute>(reader.attributes());
}

Result<StepState> begin_step(nessie_stream &stream, Deadline deadline) {
  if (stream.writer) return stream.writer->begin_step(deadline);
  stream.variables.clear();
  stream.attributes.clear();
  auto began = stream.reader->begin_step(deadline);
  if (began.ok() && *began == StepState::kOk) look_at_step(stream, *stream.reader);
  return began;
}

}  // namespace

int nessie_stream_open(const char *name, int32_t mode, int32_t rank, int32_t size, const nessie_stream_options *options,
                       int32_t timeout_ms, nessie_stream **stream) {
  return guarded([&]() -> Status {
    if (name == nullptr || stream == nullptr) return invalid("name or stream is null");
    if (!is_between(mode, NESSIE_STREAM_WRITE, NESSIE_STREAM_READ)) return invalid("there is no such mode");
    const auto deadline = deadline_of(timeout_ms);
    if (!deadline.ok()) return deadline.error();
    const auto &wanted = options != nullptr ? *options : nessie_stream_options{};
    auto one = Handles<nessie_stream>::take();
    const auto status = mode == NESSIE_STREAM_WRITE
                            ? open_into(one->writer, name, writer_options(rank, size, wanted), *deadline)
                            : open_into(one->reader, name, reader_options(rank, size, wanted), *deadline);
    if (status.ok()) *stream = Handles<nessie_stream>::open(std::move(one));
    return status;
  });
}

int nessie_stream_close(nessie_stream *stream, int32_t timeout_ms) {
  return with_stream(stream, [&]() -> Status {
    const auto deadline = deadline_of(timeout_ms);
    if (!deadline.ok()) return deadline.error();
    return leave_and_close(
        stream, [&] { return stream->writer ? stream->writer->close(*deadline) : stream->reader->close(*deadline); });
  });
}

int nessie_stream_unsubscribe(nessie_stream *stream, int32_t timeout_ms) {
  return with_reader(stream, [&](Reader &reader) -> Status {
    const auto deadline = deadline_of(timeout_ms);
    if (!deadline.ok()) return deadline.error();
    return leave_and_close(stream, [&] { return reader.unsubscribe(*deadline); });
  });
}

int nessie_stream_drop(nessie_stream *stream) {
  return with_stream(stream, [&] { return leave_and_close(stream, [] { return Status(); }); });
}

int nessie_stream_begin_step(nessie_stream *stream, int32_t timeout_ms, int32_t *state) {
  return with_stream(stream, [&]() -> Status {
    if (state == nullptr) return invalid("state is null");
    const auto deadline = deadline_of(timeout_ms);
    if (!deadline.ok()) return deadline.error();
    const auto began = begin_step(*stream, *deadline);
    if (!began.ok()) return began.error();
    *state = static_cast<int32_t>(*began);
    return {};
  });
}

int nessie_stream_end_step(nessie_stream *stream, int32_t timeout_ms) {
  return with_stream(stream, [&]() -> Status {
    const auto deadline = deadline_of(timeout_ms);
    if (!deadline.ok()) return deadline.error();
    return stream->writer ? stream->writer->end_step(*deadline) : stream->reader->end_step();
  });
}

uint64_t nessie_stream_step(const nessie_stream *stream) {
  if (!is_open(stream)) return 0;
  return stream->writer ? stream->writer->step() : stream->reader->step();
}

uint64_t nessie_stream_missed(const nessie_stream *stream) {
  return is_open(stream) && stream->reader ? stream->reader->missed() : 0;
}
