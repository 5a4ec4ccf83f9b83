// SPDX-License-Identifier: BSD-3-Clause
// What there is, types and boxes, and memory that servers map.
#include <services/streams/client/convert.hpp>
#include <services/streams/client/session.hpp>

#include <utility>

namespace nessie::streams {

namespace wire = ::streams;

std::size_t size_of(Type type) { return wire::size_of(wire::to_wire(type)); }
const char *name_of(Type type) { return wire::name_of(wire::to_wire(type)); }
Box whole(const Extents &shape) { return {Extents(shape.size(), 0), shape}; }

// --- memory -----------------------------------------------------------------------------------------------------------

struct Memory::State {
  State(std::shared_ptr<wire::Session> its_session, nnti::RegisteredBuffer its_buffer)
      : session(std::move(its_session)), buffer(std::move(its_buffer)) {
    session->note_allocated(buffer);
  }
  ~State() {
    session->forget_allocated(buffer);
    session->runtime().unregister_memory(std::move(buffer));
  }
  State(const State &) = delete;
  const std::shared_ptr<wire::Session> session;
  nnti::RegisteredBuffer buffer;
};

Memory::Memory(std::unique_ptr<State> state) : state_(std::move(state)) {}
Memory::Memory(Memory &&) noexcept = default;
Memory &Memory::operator=(Memory &&) noexcept = default;
Memory::~Memory() = default;
std::span<std::byte> Memory::bytes() const { return state_->buffer.bytes(); }

Result<Memory> Memory::allocate(std::size_t size_bytes) {
  auto session = wire::Session::get();
  if (!session.ok()) return session.error();
  auto buffer = (*session)->runtime().allocate(size_bytes, nnti::Rights::kReadWrite);
  if (!buffer.ok()) return buffer.error();
  return Memory(std::make_unique<State>(*session, *std::move(buffer)));
}

// --- what there is ----------------------------------------------------------------------------------------------------

namespace {

ReaderInfo from_wire(const wire::ReaderState &reader) {
  ReaderInfo info;
  info.subscription = reader.subscription;
  info.reading = reader.reading == wire::ReadingKind::kNewestStep ? Reading::kView : Reading::kEvery;
  info.size = static_cast<int>(reader.size);
  info.connected = static_cast<int>(reader.connected);
  info.ended = reader.ended;
  info.lag = reader.lag;
  info.missed = reader.missed;
  return info;
}

StreamInfo from_wire(const wire::StreamReport &report) {
  StreamInfo info;
  info.name = report.name;
  info.state = static_cast<StreamInfo::State>(report.state);
  info.why = report.why;
  info.is_file = report.is_file;
  info.writers = static_cast<int>(report.writers);
  info.connected = static_cast<int>(report.connected);
  info.durability = report.lasting == wire::Lasting::kInLog ? Durability::kLogged : Durability::kMemory;
  info.steps = report.steps;
  info.oldest = report.oldest;
  info.memory_bytes = report.memory_bytes;
  info.log_bytes = report.log_bytes;
  for (const auto &variable : report.variables) info.variables.push_back(wire::from_wire(variable));
  for (const auto &attribute : report.attributes) info.attributes.push_back(wire::from_wire(attribute));
  for (const auto &reader : report.readers) info.readers.push_back(from_wire(reader));
  return info;
}

}  // namespace

Result<std::vector<StreamInfo>> list(std::string_view at, Deadline deadline) {
  auto session = wire::Session::get();
  if (!session.ok()) return session.error();
  std::vector<StreamInfo> all;
  auto places = wire::places_of(**session, at);
  Error last{Code::kNotFound, "there are no servers of streams: start them with nessie-streams, or say where they are"};
  bool is_any_there = false;
  for (const auto &each : places) {
    auto place = wire::place_at(*session, each);
    const auto until = places.size() == 1 ? deadline : Deadline::in(std::chrono::seconds(1)).earlier(deadline);
    auto listed = place->ask<wire::ListResult>(
        0, until, [](wire::Client &client, const nssi::CallOptions &options) { return client.list(options); },
        [](const auto &) { return Status(); });
    if (!listed.ok()) {
      last = listed.error();
      continue;
    }
    is_any_there = true;
    for (const auto &report : listed->streams) all.push_back(from_wire(report));
  }
  if (!is_any_there) return last;
  return all;
}

}  // namespace nessie::streams
