// SPDX-License-Identifier: BSD-3-Clause
// Reads what a mark has said is complete, for who only looks on: as long as it is as it was then.
//
// Design notes. Nothing here may hold a file back. The data go into the answer, so that who is slow to take them holds
// neither the file's gate nor a page; writes that are held back for a quiet moment are waited for, and not hastened.
// What is about to be written is noted before any of it is in a page: so if a region was not written since the mark,
// neither before it is read nor when that is over, then nothing else was in it meanwhile.
#include <services/staging/server/server.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace staging {

using nessie::Code;
using nessie::Deadline;
using nessie::Error;

namespace {

constexpr std::chrono::milliseconds kLongestPatience{600'000}, kLookForWrites{50};
constexpr std::size_t kMostReadsOfOne = 16;

Error too_many(std::size_t reads) {
  return {Code::kBusy, fmt::format("a process that looks on may read {} things at once", reads)};
}

Error is_missing(const std::string &path, const std::string &why) {
  return {Code::kIo, fmt::format("{}: some of it could not be written: {}", path, why)};
}

MarkedReadResult gone() { return {MarkedState::kMarkedGone, 0, 0, {}}; }

}  // namespace

Result<MarkedReadResult> Server::read_marked(Request &request, const MarkedReadArgs &args) {
  if (auto status = await_recovered(); !status.ok()) return status.error();
  auto &reads = marked_reads_[request.caller().value];
  if (reads >= kMostReadsOfOne) return too_many(reads);
  ++reads;
  auto result = read_marked_now(request, args);
  const auto counted = marked_reads_.find(request.caller().value);
  if (counted != marked_reads_.end() && --counted->second == 0) marked_reads_.erase(counted);
  return result;
}

Result<MarkedReadResult> Server::read_marked_now(Request &request, const MarkedReadArgs &args) {
  const auto marked = marks_.find(args.file);
  if (!marked) return not_known();
  const auto patience = std::chrono::milliseconds(args.patience_ms);
  const auto deadline = Deadline::in(std::min<std::chrono::milliseconds>(patience, kLongestPatience));
  if (args.definition == 0 || args.definition > marked->definition || args.records < 0)
    return Error{Code::kInvalidArgument, "no mark of this file is like that"};
  const auto moment = moment_of(args.definition, args.after.call);
  if (auto status = await_marked(request, *marked, args, deadline); !status.ok()) return status.error();
  for (;;) {
    const auto file = handle_on(*marked);
    if (marked->was_overwritten(args.pieces, moment)) return gone();
    if (!file && marked->state.stage == FileStage::kClosed) return in_file(*marked);
    if (file && !file->ended) {
      const FileGate::Shared shared(file->gate);
      if (!file->ended) return read_marked_of(request, *file, *marked, args);
    }
    if (auto status = closing_changed_.wait(deadline); !status.ok()) return status.error();
    if (auto still = request.check(); !still.ok()) return still.error();
  }
}

/// The file's own handle, or another one on it; none: there is none. Also one that is about to be closed.
Server::File Server::handle_on(const MarkedFile &marked) const {
  if (auto own = find(marked.state.file)) return own;
  if (auto own = find_closing(marked.state.file)) return own;
  const auto is_other = [&](const File &file) {
    return file->identity == marked.state.identity && file->defined && !file->variables().empty();
  };
  for (const auto &[token, file] : files_)
    if (is_other(file)) return file;
  const auto closing = std::ranges::find_if(closing_, is_other);
  return closing == closing_.end() ? nullptr : *closing;
}

/// Until all writes of the mark have been carried out. Those of earlier data modes have.
Status Server::await_marked(Request &request, const MarkedFile &marked, const MarkedReadArgs &args, Deadline deadline) {
  for (;;) {
    const auto file = find_to_write(marked.state.file);
    if (!file || marked.definition > args.definition || file->writes.reached(args.after)) return {};
    if (auto status = file->wrote.wait(Deadline::in(kLookForWrites).earlier(deadline));
        status.code() == Code::kCancelled)
      return status;
    if (auto still = request.check(); !still.ok()) return still;
    if (deadline.passed())
      return Error{Code::kTimedOut, fmt::format("{}: what was written has not all arrived yet", file->path)};
  }
}

/// It is there for whoever opens it, if it was not changed by other hands.
Result<MarkedReadResult> Server::in_file(const MarkedFile &marked) {
  if (!marked.state.failed.empty()) return is_missing(marked.state.path, marked.state.failed);
  return MarkedReadResult{MarkedState::kMarkedInFile, 0, marked.state.changed_ns, {}};
}

Result<MarkedReadResult> Server::read_marked_of(Request &request, OpenFile &file, const MarkedFile &marked,
                                                const MarkedReadArgs &args) {
  const auto moment = moment_of(args.definition, args.after.call);
  if (file.lost_anything()) return is_missing(file.path, file.report().message);
  auto checked = check_pieces(args.pieces, kBounceBytes, file.shapes());
  if (!checked.ok()) return checked.error();
  if (checked->records > args.records)
    return Error{Code::kOutOfRange, fmt::format("{} has {} records by that mark", file.path, args.records)};
  const Asked asked{args.pieces, *std::move(checked)};
  if (file.takes_turns) drain_others(file);
  look_behind(file);
  MarkedReadResult result;
  result.data.resize(asked.checked.bytes);
  result.nc_error = gather(request, file, asked, args.records, result.data.data());
  return marked.was_overwritten(args.pieces, moment) ? gone() : std::move(result);
}

}  // namespace staging
