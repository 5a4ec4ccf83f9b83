// SPDX-License-Identifier: BSD-3-Clause
// What writers put. A write that comes once more, as its answer was lost, changes nothing.
#include <services/streams/server/server.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

namespace streams {

namespace {

Error refused(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }

std::uint64_t bytes_brought(const Request &request, const WriteArgs &args) {
  return args.data.empty() ? request.data_bytes() : args.data.size();
}

/// So long it is waited for something, that the answer comes by the caller's deadline.
Deadline before(Deadline deadline) {
  constexpr nessie::Clock::duration kForTheAnswer = std::chrono::milliseconds(500);
  if (deadline.is_never()) return deadline;
  const auto left = std::max(deadline.when() - nessie::Clock::now(), nessie::Clock::duration(0));
  return Deadline::in(left - std::min(left / 4, kForTheAnswer));
}

/// A buffer of a writer that is kept where the writer has it. It may be used again when nobody reads it any more, also
/// none of those to whom it is being pushed.
class KeptBuffer {
 public:
  KeptBuffer(const nnti::PeerView &view, const std::shared_ptr<WritersBuffers> &all, std::uint64_t number)
      : view_(view), all_(all), number_(number) {
    all->kept.insert(number);
  }
  ~KeptBuffer() {
    const auto all = all_.lock();
    if (all && all->kept.erase(number_) > 0) all->released.push_back(number_);
  }
  KeptBuffer(const KeptBuffer &) = delete;
  const nnti::PeerView &view() const { return view_; }

 private:
  const nnti::PeerView view_;
  const std::weak_ptr<WritersBuffers> all_;
  const std::uint64_t number_;
};

}  // namespace

/// A client is another process: it is not believed what it says.
Status Server::check_write(const Request &request, const WriteArgs &args, const Seat &seat) const {
  const auto bytes = bytes_brought(request, args);
  for (const auto &attribute : args.attributes)
    if (auto status = check(attribute); !status.ok()) return status;
  for (const auto &block : args.blocks) {
    if (block.variable >= seat.variables.size()) return refused("a block is of a variable that was not described");
    const auto &variable = seat.variables[block.variable];
    if (auto status = check_inside(variable, block.box); !status.ok()) return status;
    const auto size = bytes_of(variable, block.box);
    if (block.offset > bytes || size > bytes - block.offset)
      return refused(fmt::format("the data of {} are not in the buffer", streams::describe(variable.name, block.box)));
  }
  return {};
}

Status Server::take_definitions(Seat &seat, const WriteArgs &args) const {
  constexpr std::size_t kMostVariables = 65536;
  if (args.variables.empty()) return {};
  if (args.first > seat.variables.size() || args.first + args.variables.size() > kMostVariables)
    return refused("a writer describes at most 65536 variables, one after the other");
  for (std::size_t i = 0; i < args.variables.size(); ++i) {
    const auto &variable = args.variables[i];
    if (auto status = check(variable); !status.ok()) return status;
    const auto at = args.first + i;
    if (at < seat.variables.size() && seat.variables[at] != variable && seat.has_some_of(at))
      return refused(fmt::format("variable '{}' becomes another one in a step in which some of it was put already",
                                 variable.name));
  }
  seat.variables.resize(std::max(seat.variables.size(), args.first + args.variables.size()));
  std::ranges::copy(args.variables, seat.variables.begin() + args.first);
  return {};
}

/// The data, where they are or pulled, once there is room for them.
Result<std::shared_ptr<Chunk>> Server::bring(Request &request, const WriteArgs &args, Stream &stream, Seat &seat,
                                             bool &keeps) {
  const auto size = bytes_brought(request, args);
  if (size == 0) return std::shared_ptr<Chunk>();
  if (!args.data.empty()) {
    auto copy = std::make_shared<const std::vector<std::byte>>(args.data);
    const std::span<const std::byte> bytes(*copy);
    return store_->keep({bytes, std::move(copy)}, stream.shelf.tally());
  }
  const auto asked = nessie::Clock::now();
  // The oldest step that is not complete gets room in any case: nothing before it could go otherwise.
  const auto writer = seat.key;
  const auto may_go_on = [&] {
    return stream.shelf.find_seat(writer) == nullptr || store_->has_room(size) ||
           (!store_->can_spill() && stream.shelf.is_oldest(args.step));
  };
  if (auto status = store_->await_room(request, size, request.deadline(), may_go_on); !status.ok())
    return status.error();
  const auto began = nessie::Clock::now();
  if (const auto *view = request.view_data(); view != nullptr && args.buffer != 0) {
    store_->note_times(began - asked, {});
    keeps = true;
    const auto *still = stream.shelf.find_seat(writer);
    if (still == nullptr) return Error{Code::kNotFound, "the writer has gone"};
    const auto held = std::make_shared<const KeptBuffer>(*view, still->buffers, args.buffer);
    return store_->keep({held->view().bytes().first(size), held, [held] { held->view().release_pages(); }},
                        stream.shelf.tally());
  }
  auto pulled = director_.pull(request, 0, size, {}, request.deadline());
  if (!pulled.ok()) return pulled.error();
  store_->note_times(began - asked, nessie::Clock::now() - began);
  auto held = std::make_shared<const nssi::Pulled>(*std::move(pulled));
  const std::span<const std::byte> bytes = held->bytes();
  return store_->keep({bytes, std::move(held)}, stream.shelf.tally());
}

nssi::Outcome<WriteResult> Server::write(Request &request, const WriteArgs &args) {
  const auto stream = find(args.stream);
  auto *seat = stream ? stream->shelf.find_seat(args.writer) : nullptr;
  if (seat == nullptr) return Error{Code::kNotFound, "the server does not know this writer: it was started anew"};
  if (!stream->fault.empty()) return refused(stream->fault);
  if (args.step < seat->ended) {  // it was carried out, perhaps by the server before this one
    if (auto status = take_definitions(*seat, args); !status.ok()) return status.error();
    return WriteResult{seat->buffers->kept.contains(args.buffer), false, take_released(*seat)};
  }
  if (args.step > seat->ended || args.attempt < seat->attempt)
    return refused("this step, or attempt, is not the writer's");
  if (args.attempt > seat->attempt) seat->start_anew(args.attempt);
  bool keeps = false;
  if (const auto had = seat->parts.find(args.part); had != seat->parts.end()) {
    keeps = had->second.keeps_buffer;
  } else {
    if (auto status = take_definitions(*seat, args); !status.ok()) return status.error();
    if (auto status = check_write(request, args, *seat); !status.ok()) return status.error();
    auto chunk = bring(request, args, *stream, *seat, keeps);
    if (!chunk.ok()) return chunk.error();
    seat = stream->shelf.find_seat(args.writer);
    if (seat == nullptr || seat->ended != args.step || seat->attempt != args.attempt)
      return refused("the step was given up meanwhile");
    // What it has described may be other variables by now.
    if (auto status = check_write(request, args, *seat); !status.ok()) return status.error();
    if (*chunk && seat->lasting == Lasting::kInLog && (*chunk)->size_bytes() > MOST_INLINE) {
      const auto logged = await_log(request, [&] { return store_->write_to_log(**chunk); });
      if (!logged.ok()) return logged.error();
      seat = stream->shelf.find_seat(args.writer);
      if (seat == nullptr || seat->ended != args.step || seat->attempt != args.attempt)
        return refused("the step was given up meanwhile");
    }
    Part part{args.blocks, args.attributes, *std::move(chunk), keeps};
    seat->parts.emplace(args.part, std::move(part));
    stream->part_came.notify_all();
  }
  if (!args.is_last) return WriteResult{keeps, false, {}};
  while (seat != nullptr && seat->ended == args.step && seat->attempt == args.attempt &&
         seat->parts.size() <= args.part) {
    if (auto status = request.check(); !status.ok()) return status.error();
    if (auto status = stream->part_came.wait(before(request.deadline())); !status.ok())
      return store_->log_trouble().empty() ? status.error() : log_is_full();
    seat = stream->shelf.find_seat(args.writer);
  }
  auto result = end_step(request, stream, args);
  if (!result.ok()) return result.error();
  result->keeps_buffer = keeps;
  return *result;
}

Error Server::log_is_full() const {
  const auto trouble = store_->log_trouble();
  return {Code::kBusy, fmt::format("the server cannot put a step into its log, and nothing of it is ended: {}",
                                   trouble.empty() ? "the log is full: raise streams.log_bytes, or have readers end "
                                                     "their steps"
                                                   : trouble)};
}

/// `work`, again and again while the log has no room.
Status Server::await_log(Request &request, const std::function<Status()> &work) {
  const auto deadline = before(request.deadline());
  for (;;) {
    auto status = work();
    if (status.ok() || !is_full(status)) return status;
    if (auto asked = request.check(); !asked.ok()) return asked;
    if (deadline.passed() || is_ending_) return log_is_full();
    runtime_.sleep_until(Deadline::in(std::chrono::milliseconds(100)).earlier(deadline));
  }
}

/// All of the step is here.
Result<WriteResult> Server::end_step(Request &request, const StreamPtr &stream, const WriteArgs &args) {
  const auto writer = args.writer;
  auto *seat = stream->shelf.find_seat(writer);
  if (seat == nullptr || seat->ended < args.step || (seat->ended == args.step && seat->attempt != args.attempt))
    return refused("the step was given up meanwhile");
  if (seat->ended == args.step) {
    std::shared_ptr<Chunk> record;
    if (seat->lasting == Lasting::kInLog) {
      auto logged = log_step(request, stream, writer);
      if (!logged.ok()) return logged.error();
      record = *std::move(logged);
      seat = stream->shelf.find_seat(writer);
      if (seat == nullptr || seat->ended != args.step) return WriteResult{};  // the same was asked for twice
    }
    if (auto status = stream->shelf.end_step(*seat); !status.ok()) return status.error();
    if (record) stream->shelf.find(args.step)->records.push_back(std::move(record));
    store_->notify();
    if (is_due(*stream, args.step)) report(stream, args.step);
  }
  WriteResult result;
  if (!stream->fault.empty()) return refused(stream->fault);
  const bool has_readers = !stream->account || stream->account->has_readers_awaited();
  result.has_room = has_readers && reserve(*stream, *seat, seat->step_bytes);
  result.released = take_released(*seat);
  return result;
}

/// What a rank has put in its step, in the log and synced.
Result<std::shared_ptr<Chunk>> Server::log_step(Request &request, const StreamPtr &stream, Key writer) {
  auto &seat = *stream->shelf.find_seat(writer);
  if (!journal_)
    return Error{Code::kUnsupported, "this server has no log, which a stream that is logged needs: set streams.log"};
  if (auto status = stream->shelf.check_step(seat); !status.ok()) {
    seat.parts.clear();
    return status.error();
  }
  auto logged = describe_step(*stream, seat);
  if (!logged.ok()) return logged.error();
  seat.is_being_logged = true;
  std::shared_ptr<Chunk> record;
  auto status = await_log(request, [&]() -> Status {
    if (!record) {
      const auto at = journal_->note(*logged);
      if (!at.ok()) return at.error();
      record = store_->find_logged(0, {{*at, 0}}, stream->shelf.tally());
    }
    return journal_->sync(record->logged().back().at.end);
  });
  if (auto *still = stream->shelf.find_seat(writer)) still->is_being_logged = false;
  if (!status.ok()) return status.error();
  return record;
}

Result<LoggedWrite> Server::describe_step(const Stream &stream, const Seat &seat) const {
  LoggedWrite logged;
  logged.stream = stream.shelf.stream();
  logged.group = stream.shelf.group();
  logged.writer = seat.key;
  logged.rank = seat.rank;
  logged.writers = seat.size;
  logged.step = seat.ended;
  std::map<std::uint32_t, std::uint32_t> places;  // of the seat's variables among those that are logged
  for (const auto &[number, part] : seat.parts) {
    const auto chunk = static_cast<std::uint32_t>(logged.chunks.size());
    auto &kept = logged.chunks.emplace_back();
    if (part.chunk) {
      for (const auto &piece : part.chunk->logged()) kept.parts.push_back({piece.at.begin, piece.at.end, piece.bytes});
      if (kept.parts.empty()) {
        const auto held = store_->bytes_of(*part.chunk, 0, part.chunk->size_bytes());
        if (!held.ok()) return held.error();
        kept.data.assign(held->bytes.begin(), held->bytes.end());
      }
    }
    for (const auto &block : part.blocks) {
      const auto [place, is_new] = places.emplace(block.variable, logged.variables.size());
      if (is_new) logged.variables.push_back(seat.variables[block.variable]);
      logged.blocks.push_back({place->second, block.box, chunk, block.offset});
    }
    std::ranges::copy(part.attributes, std::back_inserter(logged.attributes));
  }
  return logged;
}

}  // namespace streams
