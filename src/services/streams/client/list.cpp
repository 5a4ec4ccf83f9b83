// SPDX-License-Identifier: BSD-3-Clause
// What there is, types and boxes, and memory that servers map.
#include <services/streams/client/convert.hpp>
#include <services/streams/client/session.hpp>

#include <algorithm>
#include <iterator>
#include <map>
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

constexpr std::chrono::seconds kOfOthers{1};  ///< each server but the first is waited for

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
  for (const auto &variable : report.variables) info.variables.push_back(wire::from_wire(variable));
  for (const auto &attribute : report.attributes) info.attributes.push_back(wire::from_wire(attribute));
  for (const auto &reader : report.readers) info.readers.push_back(from_wire(reader));
  return info;
}

nssi::Outcome<wire::ListResult> ask_server(wire::Place &place, std::uint32_t server, Deadline deadline) {
  return place.ask<wire::ListResult>(
      server, deadline, [](wire::Client &client, const nssi::CallOptions &options) { return client.list(options); },
      [](const auto &) { return Status(); });
}

/// What a server has of each of the streams.
void add_held(std::uint32_t server, const wire::ListResult &listed, std::map<wire::Key, StreamInfo> &streams) {
  for (const auto &held : listed.held) {
    const auto found = streams.find(held.stream);
    if (found == streams.end()) continue;
    auto &info = found->second;
    info.memory_bytes += held.memory_bytes;
    info.log_bytes += held.log_bytes;
    info.servers.push_back({static_cast<int>(server), held.memory_bytes, held.log_bytes});
  }
}

/// The streams of one place, in the first server's order.
Result<std::vector<StreamInfo>> list_place(wire::Place &place, Deadline deadline) {
  const auto first = ask_server(place, 0, deadline);
  if (!first.ok()) return first.error();
  const auto servers = place.servers(deadline);
  if (!servers.ok()) return servers.error();
  std::map<wire::Key, StreamInfo> streams;
  for (const auto &report : first->streams) streams[report.stream] = from_wire(report);
  add_held(0, *first, streams);
  for (std::uint32_t server = 1; server < *servers; ++server)
    if (const auto listed = ask_server(place, server, Deadline::in(kOfOthers).earlier(deadline)); listed.ok())
      add_held(server, *listed, streams);
  std::vector<StreamInfo> all;
  for (const auto &report : first->streams) all.push_back(std::move(streams.at(report.stream)));
  return all;
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
    auto listed = list_place(*place, until);
    if (!listed.ok()) {
      last = listed.error();
      continue;
    }
    is_any_there = true;
    for (auto &stream : *listed) stream.at = each;
    std::ranges::move(*listed, std::back_inserter(all));
  }
  if (!is_any_there) return last;
  return all;
}

}  // namespace nessie::streams
