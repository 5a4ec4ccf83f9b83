// SPDX-License-Identifier: BSD-3-Clause
// What two servers of streams make of requests with any arguments, in any order, from a client that means no good. Each
// is answered, or ends with its deadline; and whatever came, others are served.
//
// An input is a list of requests: a byte for the operation, and with kOther for the second server; two for how many
// bytes of arguments there are, and those. Eight bytes of kLast in them stand for the stream that was opened last,
// whose number is the server's choice; kName for a name that no input before has used, as servers serve many inputs.
#include <base/log.hpp>
#include <base/testing/fuzz.hpp>
#include <services/streams/testing.hpp>
#include <services/streams/testing/folder.hpp>
#include <xdr/codec.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

using namespace streams;
using std::chrono::milliseconds;

namespace {

using Client = STREAMS::CURRENT::Client;

constexpr unsigned kOperations = 20, kOther = 0x80;
constexpr nssi::OpCode kOpenWriter = 3, kOpenReader = 7;
constexpr std::byte kLast{0xA5};
constexpr std::uint64_t kLastKey = 0xA5A5A5A5A5A5A5A5;
constexpr std::string_view kName = "########";
constexpr std::size_t kInputsOfServers = 50;
constexpr auto kMoment = milliseconds(5);  ///< then another request comes while this one waits
constexpr auto kDeadline = milliseconds(50);

template <class T> T must(nessie::Result<T> result) {
  nessie::fuzz::require(result.ok());
  return *std::move(result);
}

ServerOptions options_for(std::uint32_t index, const std::string &first) {
  ServerOptions options;
  options.index = index;
  options.servers = 2;
  options.first = first;
  options.memory_bytes = 64 << 10;
  options.keep_bytes = 4 << 10;
  options.log_path = testing::own_folder() + "/" + std::to_string(index);
  options.reader_timeout = milliseconds(50);
  return options;
}

/// The servers, and who calls them.
class Target {
 public:
  Target() {
    while (Client(*runtime_, peers_[1]).hello({PROTOCOL}, patient()).code() == nessie::Code::kUnavailable)
      std::this_thread::yield();
  }
  ~Target() {
    for (const auto peer : peers_) runtime_->disconnect(peer);
  }
  Target(const Target &) = delete;
  void run(std::span<const std::byte> input) {
    name_ = fmt::format("{:08}", inputs_++);
    last_ = {};
    while (input.size() >= 3) {
      const auto size = std::min<std::size_t>(
          std::to_integer<std::size_t>(input[1]) * 256 + std::to_integer<std::size_t>(input[2]), input.size() - 3);
      call(std::to_integer<unsigned>(input[0]),
           {input.begin() + 3, input.begin() + 3 + static_cast<std::ptrdiff_t>(size)});
      input = input.subspan(3 + size);
    }
    for (auto &call : calls_) (void)call.wait();
    calls_.clear();
    for (const auto peer : peers_) nessie::fuzz::require(Client(*runtime_, peer).list(patient()).ok());
  }

 private:
  static nssi::CallOptions patient() {
    nssi::CallOptions options;
    options.deadline = testing::soon();
    return options;
  }
  nnti::PeerId connect(const testing::ServerThread &server) {
    return must(runtime_->connect(server.at(), testing::soon()));
  }
  void call(unsigned how, std::vector<std::byte> args) {
    for (auto at = args.begin(); args.end() - at >= 8; ++at) {
      if (std::all_of(at, at + 8, [](std::byte each) { return each == kLast; })) std::ranges::copy(last_, at);
      if (std::memcmp(&*at, kName.data(), kName.size()) == 0) std::memcpy(&*at, name_.data(), kName.size());
    }
    const nssi::OpCode op = 1 + how % kOther % kOperations;
    nssi::CallOptions with;
    with.deadline = nessie::Deadline::in(kDeadline);
    with.data = &data_;
    auto &call =
        calls_.emplace_back(runtime_->call({peers_[how / kOther], STREAMS::CURRENT::kInterface, 0}, op, args, with));
    const bool opens = op == kOpenWriter || op == kOpenReader;
    if (!call.wait(nessie::Deadline::in(opens ? kDeadline : kMoment)).ok() || !opens) return;
    if (const auto result = call.view(); result.size() >= 8) std::copy_n(result.begin(), 8, last_.begin());
  }

  const std::unique_ptr<nssi::Runtime> runtime_ =
      must(nssi::Runtime::open(nssi::testing::options_for("inproc", false)));
  testing::ServerThread first_{options_for(0, {}), {}, "inproc"};
  testing::ServerThread second_{options_for(1, first_.at()), {}, "inproc"};
  const std::array<nnti::PeerId, 2> peers_{connect(first_), connect(second_)};
  nnti::RegisteredBuffer data_ = must(runtime_->allocate(4096, nnti::Rights::kReadWrite));
  std::vector<nssi::Call> calls_;
  std::string name_;
  std::size_t inputs_ = 0;
  std::array<std::byte, 8> last_{};
};

// --- requests as they should be ---------------------------------------------------------------------------------------

constexpr Key kReader = 9;

struct Alive {
  Key stream = kLastKey, reader = kReader;
  template <class A> void xdr(A &a) { a(stream, reader); }
};

void add(nessie::fuzz::Bytes &input, unsigned op, const auto &args, unsigned server = 0) {
  const auto bytes = xdr::encode(args);
  for (const auto each :
       {server * kOther + op - 1, static_cast<unsigned>(bytes.size() / 256), static_cast<unsigned>(bytes.size() % 256)})
    input.push_back(static_cast<std::byte>(each));
  input.insert(input.end(), bytes.begin(), bytes.end());
}

WriterArgs writer(Key key, std::uint32_t rank, std::uint32_t size) {
  WriterArgs args;
  args.stream = std::string(kName);
  args.writer = key;
  args.rank = rank;
  args.size = size;
  args.server = rank;
  args.group = 1;
  return args;
}

/// Two of the four rows of an array.
WriteArgs write(Key key, std::uint64_t step, std::uint32_t part, std::int64_t row) {
  WriteArgs args;
  args.stream = kLastKey;
  args.writer = key;
  args.step = step;
  args.part = part;
  if (part == 0) args.variables = std::vector<VariableArgs>{{"x", ElementType::kDouble, {4, 2}, {}, step == 1}};
  args.attributes = std::vector<AttributeArgs>{{"x", "units", ElementType::kChar, {std::byte{75}}}};
  args.first = part == 0 ? 0 : 1;
  args.blocks = std::vector<BlockArgs>{{0, {{row, 0}, {2, 2}}, 0}};
  return args;
}
WriteArgs last(WriteArgs args) {
  args.is_last = true;
  args.data = std::vector<std::byte>(32);
  return args;
}

ReaderArgs reader(ReadingKind reading, const std::string &subscription) {
  ReaderArgs args;
  args.stream = std::string(kName);
  args.reader = kReader;
  args.size = 1;
  args.reading = reading;
  args.subscription = subscription;
  return args;
}

void add_reading(nessie::fuzz::Bytes &input, std::uint64_t step) {
  add(input, 8, NextArgs{kLastKey, kReader, step, 0, 1});
  const GetArgs get{kLastKey, kReader, step, "x", {{1, 0}, {2, 2}}, false};
  for (const unsigned server : {0u, 1u}) add(input, 9, get, server), add(input, 10, get, server);
}

/// Two steps of one writer, in parts, and who reads them, and goes.
nessie::fuzz::Bytes steps(Lasting lasting) {
  nessie::fuzz::Bytes input;
  auto opens = writer(1, 0, 1);
  opens.lasting = lasting;
  add(input, 3, opens);
  add(input, 7, reader(ReadingKind::kEveryStep, "all"));
  add(input, 12, Alive{});
  for (const std::uint64_t step : {0, 1}) {
    add(input, 4, RoomArgs{kLastKey, 1, step, 64, 1});
    auto first = write(1, step, 0, 0);
    first.buffer = 1 + step;
    add(input, 5, first);
    add(input, 5, last(write(1, step, 1, 2)));
    add_reading(input, step);
  }
  add(input, 11, CloseArgs{kLastKey, kReader, 2, true, false});
  add(input, 6, CloseArgs{kLastKey, 1, 2, false, false});
  opens.append = true;
  opens.writer = 2;
  add(input, 3, opens);
  add(input, 5, last(write(2, 2, 0, 0)));
  opens.resumes = true;
  opens.ended = 3;
  add(input, 3, opens);
  add(input, 6, CloseArgs{kLastKey, 2, 3, false, true});
  return input;
}

/// A step of two writers, each at a server of its own.
nessie::fuzz::Bytes step_at_both() {
  nessie::fuzz::Bytes input;
  auto second = writer(2, 1, 2);
  add(input, 3, writer(1, 0, 2));
  add(input, 3, second);
  second.known = kLastKey;
  add(input, 3, second, 1);
  add(input, 7, reader(ReadingKind::kNewestStep, ""));
  add(input, 5, last(write(1, 0, 0, 0)));
  add(input, 5, last(write(2, 0, 0, 2)), 1);
  add_reading(input, 0);
  add(input, 6, CloseArgs{kLastKey, 2, 1, false, false}, 1);
  second.resumes = second.has_lost = true;
  second.known = 0;
  add(input, 3, second);
  return input;
}

nessie::fuzz::Bytes space() {
  nessie::fuzz::Bytes input;
  SpacePutArgs put;
  put.name = std::string(kName);
  put.type = ElementType::kInt32;
  put.box = {{0, 1}, {2, 2}};
  put.put = 7;
  put.data = std::vector<std::byte>(16);
  put.patience_ms = 1;
  for (const unsigned server : {0u, 1u}) {
    put.box.start[1] += 2 * server;
    add(input, 13, put, server);
    for (const std::uint64_t wanted : {0, 4})
      add(input, 14, SpaceGetArgs{std::string(kName), 0, ElementType::kInt32, {{0, 1}, {2, 4}}, wanted, 1}, server);
    add(input, 15, Name(std::string(kName)), server);
    add(input, 19, SpaceNote{std::string(kName), 1, ElementType::kInt32, {{0, 1}, {2, 2}}, 8, 1, 5}, server);
    add(input, 20, SpaceKeptArgs{std::string(kName), 1}, server);
  }
  return input;
}

/// What one says to the other.
nessie::fuzz::Bytes servers() {
  nessie::fuzz::Bytes input;
  add(input, 3, writer(1, 0, 2));
  add(input, 1, HelloArgs{PROTOCOL}, 1);
  add(input, 2, JoinArgs{PROTOCOL, 1, 2, "inproc://x", 9});
  StepReport report;
  report.stream = kLastKey;
  report.server = 1;
  report.incarnation = 9;
  report.group = report.writers = report.ended = 1;
  report.bytes = 64;
  report.variables =
      std::vector<ReportedVariable>{{{"x", ElementType::kDouble, {4, 2}, {}, false}, {{{0, 0}, {4, 2}}}}};
  add(input, 16, report);
  KeptArgs kept;
  kept.stream = kLastKey;
  kept.needed = kept.complete = 1;
  kept.kept = std::vector<std::uint64_t>{0};
  kept.group = 2;
  add(input, 17, kept, 1);
  kept.is_gone = true;
  add(input, 17, kept, 1);
  return input;
}

// --- requests as no client makes them ---------------------------------------------------------------------------------

/// A variable becomes another one when some of it is there.
nessie::fuzz::Bytes other_variables() {
  nessie::fuzz::Bytes input;
  add(input, 3, writer(1, 0, 1));
  auto first = write(1, 0, 0, 0);
  first.data = std::vector<std::byte>(32);
  add(input, 5, first);
  auto second = last(write(1, 0, 1, 2));
  second.blocks.clear();
  second.first = 0;
  second.variables = std::vector<VariableArgs>{{"x", ElementType::kInt64, {4, 9, 5}, {}, false}};
  add(input, 5, second);
  add(input, 7, reader(ReadingKind::kEveryStep, ""));
  add_reading(input, 0);
  add(input, 9, GetArgs{kLastKey, kReader, 0, "x", {{0, 0, 0}, {4, 9, 5}}, true});
  return input;
}

/// Steps and bytes that cannot be counted, and closed ones that go with a server.
nessie::fuzz::Bytes large_numbers() {
  nessie::fuzz::Bytes input;
  add(input, 3, writer(1, 0, 1));
  add(input, 4, RoomArgs{kLastKey, 1, 0, ~std::uint64_t{0}, 1});
  add(input, 7, reader(ReadingKind::kEveryStep, "all"));
  add(input, 8, NextArgs{kLastKey, kReader, ~std::uint64_t{0} - 1, 0, ~0u});
  auto other = writer(1, 0, 1);
  other.server = 1;
  other.resumes = true;
  add(input, 3, other);
  other.server = 1;
  add(input, 6, CloseArgs{kLastKey, 1, ~std::uint64_t{0} - 1, false, false});
  add(input, 2, JoinArgs{PROTOCOL, 1, 2, "inproc://x", 9});
  add(input, 2, JoinArgs{PROTOCOL, 1, 2, "inproc://x", 10});
  return input;
}

/// A server that contradicts itself.
nessie::fuzz::Bytes false_reports() {
  nessie::fuzz::Bytes input;
  add(input, 3, writer(1, 0, 1));
  StepReport report;
  report.stream = kLastKey;
  report.server = 1;
  report.group = report.writers = report.ended = 1;
  const ReportedVariable plane{{"x", ElementType::kDouble, {4, 2}, {}, true}, {{{0, 0}, {2, 2}}}},
      line{{"x", ElementType::kDouble, {4}, {}, true}, {{{0}, {1}}, {{2}, {1}}}};
  for (const bool twice : {true, false}) {
    report.variables = std::vector<ReportedVariable>{plane};
    if (twice) report.variables.push_back(line);
    add(input, 16, report);
  }
  report.variables = std::vector<ReportedVariable>{line};  // of a step that is complete
  add(input, 16, report);
  report.step = 1;
  report.ended = ~0u;
  add(input, 16, report);
  return input;
}

/// Gets of another type, and other dimensions, than what is put; one that waits for ever.
nessie::fuzz::Bytes other_arrays() {
  nessie::fuzz::Bytes input;
  const Box plane{{0, 1}, {2, 2}}, line{{1}, {2}};
  SpacePutArgs put{std::string(kName), 3, ElementType::kInt8, line, 7, std::vector<std::byte>(2), 1};
  for (const unsigned server : {0u, 1u}) {
    add(input, 14, SpaceGetArgs{std::string(kName), 3, ElementType::kInt32, plane, 0, ~0u}, server);
    add(input, 13, put, server);
    put.box.start[0] += 2;
    for (const auto &box : {plane, line})
      add(input, 14, SpaceGetArgs{std::string(kName), 3, ElementType::kInt64, box, 1, 1}, server);
  }
  return input;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  nessie::log::set_descriptor(-1);
  const auto &folder = testing::own_folder();  // goes after the servers
  static std::unique_ptr<Target> target;
  static std::size_t inputs = 0;
  if (inputs++ % kInputsOfServers == 0) {
    target.reset();
    for (const auto *log : {"/0", "/1"}) std::filesystem::remove_all(folder + log);
    target = std::make_unique<Target>();
  }
  target->run({reinterpret_cast<const std::byte *>(data), size});
  return 0;
}

std::vector<nessie::fuzz::Bytes> nessie::fuzz::seeds() {
  return {steps(Lasting::kInMemory), steps(Lasting::kInLog), step_at_both(),  space(),       servers(),
          other_variables(),         large_numbers(),        false_reports(), other_arrays()};
}
