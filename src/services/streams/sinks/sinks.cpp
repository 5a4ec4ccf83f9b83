// SPDX-License-Identifier: BSD-3-Clause
#include "services/streams/sinks/sinks.hpp"

#include "services/streams/sinks/layout.hpp"
#include "services/streams/sinks/pump.hpp"
#include "services/streams/sinks/target.hpp"

#include <base/config.hpp>
#include <base/log.hpp>
#include <base/thread.hpp>

#include <fmt/core.h>

#include <atomic>
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <thread>

namespace nessie::streams::sinks {

namespace {

constexpr std::chrono::milliseconds kBetweenGlances{500};  ///< at which streams there are
constexpr std::chrono::seconds kBetweenTries{2};
constexpr std::chrono::seconds kServersAnswer{5}, kOthersAnswer{60}, kToSayGoodbye{2};
constexpr int kMostFiles = 10'000;

/// "flow.nc", "flow.2.nc"
std::string numbered(const std::string &path, int number) {
  if (number == 1) return path;
  const auto dot = path.rfind('.'), slash = path.rfind('/');
  const bool has_ending = dot != std::string::npos && (slash == std::string::npos || dot > slash + 1);
  const auto end = has_ending ? dot : path.size();
  return fmt::format("{}.{}{}", path.substr(0, end), number, path.substr(end));
}

Result<std::unique_ptr<Sink>> open_file(const std::string &path, const Origin &origin, const SinkContext &context) {
  for (int number = 1; number < kMostFiles; ++number) {
    const auto target = Target::file(numbered(path, number), true);
    if (!target.ok()) return target.error();
    auto sink = target->open(origin, context);
    if (sink.ok() || sink.code() != Code::kInvalidArgument) return sink;
  }
  return Error{Code::kExists, fmt::format("there are too many files {}: move them away", path)};
}

Result<std::unique_ptr<Sink>> open_sink(const Rule &rule, const Origin &origin, const SinkContext &context) {
  if (rule.kind == Rule::Kind::kRecord)
    return open_file(rule.target.ends_with('/') ? rule.target + file_name(origin.stream) + ".nc" : rule.target, origin,
                     context);
  Result<std::unique_ptr<Sink>> sink = Error{};
  for (const bool append : {true, false}) {
    const auto target = Target::place(rule.target, {}, append, 0);
    if (!target.ok()) return target.error();
    sink = target->open(origin, context);
    if (sink.ok() || sink.code() != Code::kInvalidArgument) return sink;
  }
  return sink;
}

}  // namespace

Result<std::vector<Rule>> parse_rules(std::string_view setting) {
  auto rules = ::streams::parse_sink_rules(setting);
  if (!rules.ok()) return rules;
  for (const auto &rule : *rules) {
    if (rule.kind == Rule::Kind::kRecord) continue;
    if (const auto place = Target::place(rule.target, {}, true, 0); !place.ok())
      return Error{Code::kInvalidArgument, fmt::format("streams.sinks: {}: {}", rule.name(), place.error().message)};
  }
  return rules;
}

/// One stream, and one rule for it.
class Task {
 public:
  Task(const Rule &rule, std::string at, std::string stream, const std::atomic<bool> &ends)
      : rule_(rule), at_(std::move(at)), stream_(std::move(stream)), stop_([&ends] { return ends.load(); }) {}
  ~Task() {
    if (thread_.joinable()) thread_.join();
  }
  Task(const Task &) = delete;

  /// kNoMemory.
  Status start() {
    is_running_ = true;
    thread_ = nessie::start_thread([this] {
      run();
      is_running_ = false;
    });
    if (thread_.joinable()) return {};
    is_running_ = false;
    return Error{Code::kNoMemory, "the system has no threads left"};
  }
  /// When it does not run: whether there may be another stream of that name, to be started for.
  bool is_needed(const StreamInfo &now) {
    if (is_running_) return false;
    if (now.state != StreamInfo::State::kEnded || done_ == 0) return true;
    ReaderOptions view;
    view.at = at_;
    view.reading = Reading::kView;
    const auto reader = Reader::open(stream_, view, Deadline::in(kServersAnswer));
    return reader.ok() && reader->identity() != done_;
  }
  /// After it has run.
  void join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run() {
    const auto handed = hand_on();
    if (handed.ok() || handed.code() == Code::kCancelled || stop_()) return;
    if (handed.error().message != told_) log::error("{}, stream {}: {}", rule_.name(), stream_, handed.error().message);
    told_ = handed.error().message;
    for (const auto again = Deadline::in(kBetweenTries); !again.passed() && !stop_();)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }

  Status hand_on() {
    ReaderOptions wanted;
    wanted.at = at_;
    wanted.subscription = rule_.subscription();
    auto reader = open_reader(stream_, wanted, kOthersAnswer, stop_);
    if (!reader.ok()) return reader.error();
    const auto say = [this](std::string_view text) { log::warning("{}, stream {}: {}", rule_.name(), stream_, text); };
    auto sink = open_sink(rule_, {stream_, reader->identity()}, {kOthersAnswer, stop_, say});
    if (!sink.ok()) return sink.error();
    PumpOptions options;
    options.patience = kOthersAnswer;
    options.stop = stop_;
    options.say = say;
    Progress progress;
    const auto identity = reader->identity();
    auto pumped = pump(*reader, **sink, options, progress);
    if (pumped.ok() && progress.has_ended) done_ = identity;
    const auto left = reader->close(Deadline::in(kToSayGoodbye));
    return pumped.ok() && !stop_() ? left : pumped;
  }

  const Rule rule_;
  const std::string at_, stream_;
  const Stop stop_;
  std::thread thread_;
  std::atomic<bool> is_running_ = false;
  std::atomic<std::uint64_t> done_ = 0;  ///< identity of the stream that has ended, and is handed on
  std::string told_;
};

struct Sinks::State {
  std::vector<Rule> rules;
  std::string at;
  std::atomic<bool> ends = false;
  std::mutex mutex, ending;
  std::condition_variable asked_to_end;
  std::map<std::pair<std::size_t, std::string>, std::unique_ptr<Task>> tasks;  ///< by rule and stream
  std::thread thread;

  void watch() {
    for (std::unique_lock lock(mutex); !ends;
         asked_to_end.wait_for(lock, kBetweenGlances, [this] { return ends.load(); })) {
      lock.unlock();
      if (const auto streams = list(at, Deadline::in(kServersAnswer)); streams.ok())
        for (const auto &stream : *streams) see(stream);
      lock.lock();
    }
  }
  void see(const StreamInfo &stream) {
    for (std::size_t index = 0; index < rules.size() && !ends; ++index) {
      if (stream.is_file || !rules[index].matches(stream.name)) continue;
      auto &task = tasks[{index, stream.name}];
      if (task == nullptr) task = std::make_unique<Task>(rules[index], at, stream.name, ends);
      if (!task->is_needed(stream)) continue;
      task->join();
      if (auto started = task->start(); !started.ok()) log::error("{}", started.error().message);
    }
  }
};

Sinks::Sinks(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Sinks>> Sinks::start(std::vector<Rule> rules, std::string at) {
  auto state = std::make_unique<State>();
  state->rules = std::move(rules), state->at = std::move(at);
  state->thread = nessie::start_thread([it = state.get()] { it->watch(); });
  if (!state->thread.joinable()) return Error{Code::kNoMemory, "the system has no threads left"};
  return std::unique_ptr<Sinks>(new Sinks(std::move(state)));
}

Sinks::~Sinks() { end(); }

void Sinks::end() {
  const std::lock_guard only_one(state_->ending);
  {
    const std::lock_guard lock(state_->mutex);
    state_->ends = true;
  }
  state_->asked_to_end.notify_all();
  if (state_->thread.joinable()) state_->thread.join();
  state_->tasks.clear();
}

}  // namespace nessie::streams::sinks
