// SPDX-License-Identifier: BSD-3-Clause
// What streams there are.
#include <services/streams/c/handles.hpp>

using namespace nessie::streams;
using namespace nessie::streams::c;
using nessie::Status;

namespace nessie::streams::c {
namespace {

nessie_stream_reader_info view_of(const ReaderInfo &it) {
  return {.subscription = it.subscription.c_str(),
          .reading = it.reading == Reading::kView ? NESSIE_STREAM_VIEW : NESSIE_STREAM_EVERY,
          .size = it.size,
          .connected = it.connected,
          .ended = it.ended,
          .lag = it.lag,
          .missed = it.missed};
}

/// Calls `use` with it as C sees it.
template <class Use> void show(const StreamInfo &it, Use use) {
  const auto variables = views_of<nessie_stream_variable>(it.variables);
  const auto attributes = views_of<nessie_stream_attribute>(it.attributes);
  std::vector<nessie_stream_reader_info> readers;
  for (const auto &each : it.readers) readers.push_back(view_of(each));
  use(nessie_stream_info{
      .name = it.name.c_str(),
      .status = static_cast<std::int32_t>(it.state),
      .why = it.why.c_str(),
      .is_file = it.is_file ? 1 : 0,
      .writers = it.writers,
      .connected = it.connected,
      .durability = it.durability == Durability::kLogged ? NESSIE_STREAM_LOGGED : NESSIE_STREAM_MEMORY,
      .steps = it.steps,
      .oldest = it.oldest,
      .memory_bytes = it.memory_bytes,
      .log_bytes = it.log_bytes,
      .variables = variables.data(),
      .variable_count = variables.size(),
      .attributes = attributes.data(),
      .attribute_count = attributes.size(),
      .readers = readers.data(),
      .reader_count = readers.size()});
}

}  // namespace
}  // namespace nessie::streams::c

int nessie_stream_list(const char *at, int32_t timeout_ms, void (*use)(const nessie_stream_info *info, void *context),
                       void *context) {
  return guarded([&]() -> Status {
    if (use == nullptr) return invalid("use is null");
    const auto deadline = deadline_of(timeout_ms);
    if (!deadline.ok()) return deadline.error();
    const auto found = list(text_of(at), *deadline);
    if (!found.ok()) return found.error();
    for (const auto &each : *found) show(each, [&](const nessie_stream_info &info) { use(&info, context); });
    return {};
  });
}
