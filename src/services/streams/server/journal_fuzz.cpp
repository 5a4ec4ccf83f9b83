// SPDX-License-Identifier: BSD-3-Clause
// What a server of streams makes of a log that has any records: it is there, and says what there is, whatever it was.
//
// An input is a list of records: a byte for the kind, two for how many bytes it has, and those. The log's own bytes
// have a target of their own (service/log/log_fuzz.cpp).
#include <base/log.hpp>
#include <base/testing/fuzz.hpp>
#include <services/streams/testing.hpp>
#include <services/streams/testing/folder.hpp>
#include <xdr/codec.hpp>

#include <algorithm>
#include <filesystem>
#include <future>
#include <set>
#include <string>
#include <vector>

using namespace streams;
using nessie::service::Log;
using nessie::service::LogRange;

namespace {

constexpr std::uint64_t kSegmentBytes = 64 << 10;
constexpr std::uint16_t kKinds = 7;  ///< more than there are
constexpr std::size_t kData = 300;   ///< bytes of the data's record of the seeds

std::string path() { return testing::own_folder() + "/log"; }

/// Where the records of the input are then.
std::vector<LogRange> append(Log &log, std::span<const std::byte> input) {
  std::vector<LogRange> all;
  while (input.size() >= 3) {
    const auto size = std::min<std::size_t>(
        std::to_integer<std::size_t>(input[1]) * 256 + std::to_integer<std::size_t>(input[2]), input.size() - 3);
    const std::span<const std::byte> data[] = {input.subspan(3, size)};
    const auto at = log.append(std::to_integer<std::uint16_t>(input[0]) % kKinds, {}, data);
    nessie::fuzz::require(at.ok());
    all.push_back(*at);
    input = input.subspan(3 + size);
  }
  nessie::fuzz::require(log.flush().ok());
  return all;
}

/// A log that somebody has left.
std::vector<LogRange> write_log(std::span<const std::byte> input) {
  static nssi::testing::ServiceThread service(nssi::testing::options_for("inproc", true));
  std::promise<std::vector<LogRange>> done;
  service.runtime->spawn([&] {
    static nessie::Budget budget;
    auto store =
        nessie::service::open_disk_store(*service.runtime, {.directory = path(), .segment_bytes = kSegmentBytes});
    nessie::fuzz::require(store.ok());
    auto log = Log::open(*service.runtime, budget, *std::move(store), {.block_bytes = kSegmentBytes, .most_blocks = 3});
    nessie::fuzz::require(log.ok());
    const auto all = append(**log, input);
    log->reset();
    done.set_value(all);
  });
  return done.get_future().get();
}

void read(STREAMS::CURRENT::Client &client, const Name &stream, const nssi::CallOptions &options) {
  ReaderArgs reader;
  reader.stream = stream;
  reader.reader = 1;
  reader.size = 1;
  const auto opened = client.open_reader(reader, options);
  if (!opened.ok()) return;
  for (NextArgs ask{opened->stream, reader.reader, 0, 0, 0};;) {
    const auto next = client.next(ask, options);
    nessie::fuzz::require(next.ok());
    if (next->state != NextState::kStepIsThere) break;
    nessie::fuzz::require(next->step >= ask.ended);
    for (const auto &each : next->variables)
      (void)client.figures({ask.stream, ask.reader, each.put_in, each.variable.name, whole(each.variable.shape), false},
                           options);
    ask.ended = next->step + 1;
  }
  nessie::fuzz::require(client.close_reader({opened->stream, reader.reader, 0, false, false}, options).ok());
}

void append_to(STREAMS::CURRENT::Client &client, const Name &stream, const nssi::CallOptions &options) {
  WriterArgs writer;
  writer.stream = stream;
  writer.writer = 1;
  writer.size = 1;
  writer.lasting = Lasting::kInLog;
  writer.append = true;
  const auto opened = client.open_writer(writer, options);
  if (!opened.ok()) return;
  WriteArgs step;
  step.stream = opened->stream;
  step.writer = writer.writer;
  step.step = opened->next;
  step.is_last = true;
  nessie::fuzz::require(client.write(step, options).ok());
  nessie::fuzz::require(
      client.close_writer({opened->stream, writer.writer, step.step + 1, false, false}, options).ok());
}

/// Reads all streams, and goes on with them. Their names.
std::set<std::string> use_server(const std::string &at) {
  static const auto runtime = *nssi::Runtime::open(nssi::testing::options_for("inproc", false));
  const auto peer = runtime->connect(at, testing::soon());
  nessie::fuzz::require(peer.ok());
  STREAMS::CURRENT::Client client(*runtime, *peer);
  nssi::CallOptions options;
  options.deadline = testing::soon();
  while (client.hello({PROTOCOL}, options).code() == nessie::Code::kUnavailable) std::this_thread::yield();
  const auto list = client.list(options);
  nessie::fuzz::require(list.ok());
  std::set<std::string> names;
  for (const auto &stream : list->streams) names.insert(stream.name);
  for (const auto &name : names) read(client, name, options), append_to(client, name, options);
  runtime->disconnect(*peer);
  return names;
}

template <class Record> void add(nessie::fuzz::Bytes &input, LogKind kind, const Record &record) {
  const auto bytes = xdr::encode(record);
  for (const auto each : {static_cast<std::size_t>(kind), bytes.size() / 256, bytes.size() % 256})
    input.push_back(static_cast<std::byte>(each));
  input.insert(input.end(), bytes.begin(), bytes.end());
}

/// As a server leaves it that had one stream, of two writers, with a step that is complete and one that is not.
nessie::fuzz::Bytes left() {
  nessie::fuzz::Bytes input{static_cast<std::byte>(LogKind::kData), std::byte{kData / 256}, std::byte{kData % 256}};
  input.resize(input.size() + kData);
  const auto data = write_log(input).front();
  std::filesystem::remove_all(path());
  LoggedStream stream;
  stream.stream = 5;
  stream.name = "s";
  stream.complete = 1;
  stream.groups = std::vector<LoggedGroup>{{1, 0}};
  stream.writers = std::vector<LoggedWriter>{{7, false, 0}, {8, true, 2}};
  stream.attributes = std::vector<AttributeArgs>{{"", "title", ElementType::kChar, {std::byte{75}}}};
  LoggedWrite write;
  write.stream = 5;
  write.group = 1;
  write.writer = 7;
  write.writers = 2;
  write.variables =
      std::vector<VariableArgs>{{"x", ElementType::kInt32, {8}, {}, false}, {"g", ElementType::kInt8, {}, {}, true}};
  write.chunks = std::vector<LoggedChunk>{{{}, std::vector<std::byte>(33)}};
  write.blocks = std::vector<LoggedBlock>{{0, {{0}, {4}}, 0, 0}, {1, {{}, {}}, 0, 32}};
  add(input, LogKind::kStream, stream);
  add(input, LogKind::kWrite, write);
  write.writer = 8;
  write.rank = 1;
  write.chunks = std::vector<LoggedChunk>{{{{data.begin, data.end, kData}}, {}}};
  write.blocks = std::vector<LoggedBlock>{{0, {{4}, {4}}, 0, 0}};
  add(input, LogKind::kWrite, write);
  write.step = 1;
  add(input, LogKind::kWrite, write);
  add(input, LogKind::kSeat, LoggedSeat{5, 1, 0, {7, true, 1}});
  add(input, LogKind::kReaders, LoggedReaders{5, "all", 2, 1, false});
  return input;
}

/// As no server does: two variables of one name, two writes that have the same data, numbers that cannot be.
nessie::fuzz::Bytes false_writes() {
  auto input = left();
  LoggedWrite write;
  write.stream = 5;
  write.group = 1;
  write.writer = 9;
  write.step = 1;
  write.variables =
      std::vector<VariableArgs>{{"x", ElementType::kInt8, {2, 2}, {}, true}, {"x", ElementType::kInt8, {2}, {}, true}};
  write.chunks = std::vector<LoggedChunk>{{{}, std::vector<std::byte>(8)}};
  write.blocks = std::vector<LoggedBlock>{{0, {{0, 0}, {2, 2}}, 0, 0}, {1, {{0}, {2}}, 0, 4}};
  add(input, LogKind::kWrite, write);
  write.step = ~std::uint64_t{0};
  add(input, LogKind::kWrite, write);
  return input;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size > kSegmentBytes / 2) return 0;
  nessie::log::set_descriptor(-1);
  (void)write_log({reinterpret_cast<const std::byte *>(data), size});
  ServerOptions options;
  options.log_path = path();
  std::set<std::string> names;
  {
    const testing::ServerThread server(options, {}, "inproc");
    names = use_server(server.at());
  }
  {
    const testing::ServerThread server(options, {}, "inproc");
    nessie::fuzz::require(use_server(server.at()) == names);
  }
  std::filesystem::remove_all(path());
  return 0;
}

std::vector<nessie::fuzz::Bytes> nessie::fuzz::seeds() { return {left(), false_writes()}; }
