// SPDX-License-Identifier: BSD-3-Clause
// Streams whose steps are files, or records of files, that staging servers have: see files.hpp.
#include <services/streams/server/server.hpp>

#include <base/log.hpp>
#include <base/random.hpp>
#include <nssi/memory.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace streams {

namespace {

constexpr std::size_t kFileSliceBytes = 1 << 20;
constexpr unsigned kReaders = 2;  // threads: each read waits for a staging server, or a disk
constexpr std::chrono::seconds kToConnect{60}, kToRead{60}, kLastNews{2}, kToLeave{2};
constexpr nnti::PeerId kNobody{~std::uint64_t{0}};  // a file has no writer among the peers

/// What a step costs here, as its data do not.
std::uint64_t bytes_of(const FileStep &step) {
  constexpr std::uint64_t kOfEach = 256;
  std::uint64_t bytes = kOfEach + kOfEach * step.variables->size();
  for (const auto &attribute : step.attributes) bytes += kOfEach + attribute.value.size();
  return bytes;
}

}  // namespace

Status Server::follow_files() {
  if (options_.files.empty() || !is_first()) return {};
  const auto put = [this](FileChange change) {
    runtime_.post([this, change = std::make_shared<FileChange>(std::move(change))] {
      file_changes_.push_back(std::move(*change));
      if (!std::exchange(takes_file_changes_, true)) runtime_.spawn([this] { take_file_changes(); });
    });
  };
  using Kind = FileChange::Kind;
  Files::Listener listener;
  listener.on_step = [put](FileStep step) {
    const auto name = step.stream;
    put({Kind::kStep, name, std::move(step)});
  };
  listener.on_anew = [put](const std::string &stream) { put({Kind::kAnew, stream}); };
  listener.on_end = [put](const std::string &stream, const std::string &why) { put({Kind::kEnd, stream, {}, why}); };
  listener.on_over = [put] { put({Kind::kOver, {}}); };
  auto files = Files::start({options_.files, options_.files_folder, options_.staging}, std::move(listener),
                            Deadline::in(kToConnect));
  if (!files.ok()) return files.error();
  files_ = *std::move(files);
  file_readers_ = std::make_unique<nessie::service::Worker>(kReaders);
  return {};
}

/// In the order in which they came.
void Server::take_file_changes() {
  while (!file_changes_.empty() && !is_ending_) {
    const auto change = std::move(file_changes_.front());
    file_changes_.pop_front();
    take_file_change(change);
  }
  takes_file_changes_ = false;
}

void Server::take_file_change(const FileChange &change) {
  switch (change.kind) {
    case FileChange::Kind::kStep: return take_file_step(*change.step);
    case FileChange::Kind::kAnew: return begin_file_anew(change.stream);
    case FileChange::Kind::kEnd: return end_file(change.stream, change.why);
    case FileChange::Kind::kOver: are_files_over_ = true;
  }
  files_changed_.notify_all();
}

Server::StreamPtr Server::make_file_stream(const std::string &name) {
  auto stream = make_stream(name, Lasting::kInMemory);
  stream->is_file = true;
  return stream;
}

/// What has the name now is another stream; who reads the former one hears why it has ended.
void Server::begin_file_anew(const std::string &name) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end() || !found->second->is_file) return;
  const auto former = found->second;
  former->account->end(fmt::format("its program has made {} anew: that is another stream of the same name", name));
  former->changed.notify_all();
  replace(former, make_file_stream(name));
}

void Server::take_file_step(const FileStep &step) {
  const auto found = by_name_.find(step.stream);
  auto stream = found == by_name_.end() ? nullptr : found->second;
  if (stream && !stream->is_file && stream->account->is_open())
    return nessie::log::warning("{}: a program writes a stream of that name, so the file is none", step.stream);
  if (!stream || !stream->is_file) {
    const auto former = std::exchange(stream, make_file_stream(step.stream));
    if (former) replace(former, stream);
  }
  auto &account = *stream->account;
  if (!account.is_open()) {
    account.begin_group(1, 0);
    WriterArgs writer;
    writer.writer = stream->file_writer = nessie::random_u64() | 1;
    writer.size = 1;
    (void)account.seat_writer(writer, kNobody);
  }
  const auto number = account.complete();
  const bool has_steps = !stream->file_steps.empty();
  if (!has_steps || stream->file_steps.rbegin()->second.source.header != step.source.header) ++stream->headers;
  stream->file_steps[number] = {step.source, step.variables, stream->headers};
  StepReport report;
  report.stream = stream->shelf.stream();
  report.incarnation = incarnation_;
  report.group = account.group();
  report.step = number;
  report.writers = report.ended = 1;
  report.bytes = bytes_of(step);
  report.attributes = step.attributes;
  for (const auto &variable : *step.variables) report.variables.push_back({variable, {whole(variable.shape)}});
  (void)account.take(report);
  stream->changed.notify_all();
  settle(*stream);
  std::erase_if(stream->file_steps, [&](const auto &each) {
    return each.first < stream->told.from &&
           std::ranges::find(stream->told.kept, each.first) == stream->told.kept.end();
  });
}

/// Its program has closed it, and ended; or it cannot be followed any more, and why.
void Server::end_file(const std::string &name, const std::string &why) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end() || !found->second->is_file) return;
  auto &stream = *found->second;
  if (why.empty())
    stream.account->close_writer(stream.file_writer, stream.account->complete());
  else
    stream.account->interrupt(why);
  stream.changed.notify_all();
  settle(stream);
}

/// Staging servers that are gone may have ended: when that was heard, what they had closed is read from the files.
void Server::await_files_over() {
  for (const auto deadline = Deadline::in(kLastNews); !are_files_over_ && !deadline.passed();)
    if (files_changed_.wait(deadline).code() == Code::kCancelled) return;
}

/// Until all files have ended, and those who read every step of them have had them all, or were given long enough; and
/// all who read have heard of the end, and left.
void Server::await_file_readers() {
  if (!files_) return;
  const auto wait_while = [&](const auto &is_so, Deadline deadline) {
    while (is_so() && !deadline.passed() && files_changed_.wait(deadline).code() != Code::kCancelled) continue;
  };
  const auto is_behind = [](const Account &account, const Account::Group &group) {
    return group.holds() && group.connected > 0 && group.ended() < account.complete();
  };
  const auto is_there = [](const Account &, const Account::Group &group) { return group.connected > 0; };
  const auto has_any = [&](const auto &is_such) {
    return std::ranges::any_of(in_order_, [&](const StreamPtr &stream) {
      const auto &groups = stream->account->groups();
      return stream->is_file &&
             std::ranges::any_of(groups, [&](const auto &g) { return is_such(*stream->account, g); });
    });
  };
  const auto at_most = [&](std::chrono::milliseconds time) { return Deadline::in(std::min(options_.linger, time)); };
  wait_while([&] { return !are_files_over_; }, at_most(kLastNews));
  wait_while([&] { return has_any(is_behind); }, Deadline::in(options_.linger));
  wait_while([&] { return has_any(is_there); }, at_most(kToLeave));
}

/// With the header, if the reader has not that one.
StepSource Server::source_of(const Stream &stream, std::uint64_t step, std::uint32_t known_headers) {
  const auto found = stream.file_steps.find(step);
  if (found == stream.file_steps.end()) return {};
  const auto &[source, variables, headers] = found->second;
  StepSource told{source.kind, source.record, headers, {}};
  if (headers != known_headers) told.header = source.header->bytes;
  return told;
}

/// Of a stream that is a file. Nothing: there is no such step, or not that variable of it.
std::optional<Server::FileVariable> Server::find_in_file(const Stream &stream, const GetArgs &args) {
  const auto step = stream.file_steps.find(args.step);
  if (step == stream.file_steps.end()) return std::nullopt;
  const auto variable = std::ranges::find(*step->second.variables, args.variable, &VariableArgs::name);
  if (variable == step->second.variables->end()) return std::nullopt;
  return FileVariable{step->second.source, *variable};
}

/// Calls `take(slice, its bytes)` with one part of the box after the other.
Status Server::read_file(Request &request, const FileVariable &from, const Box &box,
                         const std::function<Status(const Box &slice, std::span<std::byte> bytes)> &take) {
  const auto element = size_of(from.variable.type);
  const auto all = static_cast<std::uint64_t>(elements_of(box)) * element;
  if (all == 0) return {};
  auto memory = nssi::Memory::borrow(runtime_, std::min<std::uint64_t>(kFileSliceBytes + element, all));
  if (!memory.ok()) return memory.error();
  for (Slices slices(box, element, kFileSliceBytes); !slices.done(); slices.next()) {
    const auto bytes = memory->bytes().first(static_cast<std::size_t>(slices.elements()) * element);
    const auto read = [&] {
      return files_->read(from.source, from.variable.name, slices.slice(), bytes, Deadline::in(kToRead));
    };
    auto status = file_readers_->carry_out(runtime_, read);
    if (status.code() == Code::kPeerLost) {
      await_files_over();
      status = file_readers_->carry_out(runtime_, read);
    }
    if (status.code() == Code::kPeerLost) return Error{Code::kNotFound, status.error().message};  // not this server
    if (!status.ok()) return status;
    if (auto taken = take(slices.slice(), bytes); !taken.ok()) return taken;
    if (auto still = request.check(); !still.ok()) return still;
  }
  return {};
}

nssi::Outcome<GetResult> Server::get_of_file(Request &request, const FileVariable &from, const GetArgs &args) {
  if (auto status = check_inside(from.variable, args.box); !status.ok()) return status.error();
  const GetResult all{static_cast<std::uint64_t>(elements_of(args.box))};
  if (args.only_counts) return all;
  const auto element = size_of(from.variable.type);
  if (request.data_bytes() < all.elements * element)
    return Error{Code::kOutOfRange, "the caller's buffer is too small for the box"};
  auto status = read_file(request, from, args.box, [&](const Box &slice, std::span<std::byte> bytes) {
    return request.put_data(bytes, static_cast<std::uint64_t>(place_in(args.box, slice)) * element);
  });
  if (!status.ok()) return status.error();
  return all;
}

}  // namespace streams
