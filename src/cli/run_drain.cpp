// SPDX-License-Identifier: BSD-3-Clause
#include "run_drain.hpp"

#include "losses.hpp"

#include <nnti/transport/transport.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace nessie::cli {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kGlance = milliseconds(10);
constexpr auto kServerExitTimeout = seconds(10);
constexpr auto kPatienceWithSilence = seconds(2);

}  // namespace

RunDrain::RunDrain(Surroundings surroundings) : around_(std::move(surroundings)) {}

void RunDrain::finish(RunRecord &record) {
  auto &servers = around_.servers;
  note_absent(record);
  nnti::prepare_environment();  // each drain has threads, which reach the servers
  asked_.resize(static_cast<std::size_t>(servers.count()));
  for (std::size_t place = 0; place < asked_.size(); ++place)
    if (servers.running(static_cast<int>(place))) ask(place);
  watch();
  collect(record);
  await_end();
}

void RunDrain::ask(std::size_t place) {
  const auto &servers = around_.servers;
  const int index = static_cast<int>(place);
  auto &asked = asked_[place];
  if (asked.drain) asked.drain->abandon();
  asked.deaths = servers.deaths(index).size();
  asked.has_died = servers.is_away(index);
  asked.patience = Deadline::never();
  asked.drain = std::make_unique<ServerDrain>(around_.config, servers.urls()[place], around_.credential);
}

/// Also of a server that died before it had finished, or ended, and may be started again: when it is there, it is asked
/// again.
bool RunDrain::is_busy(std::size_t place) {
  const auto &servers = around_.servers;
  const int index = static_cast<int>(place);
  auto &asked = asked_[place];
  if (!asked.drain) return false;
  asked.has_died |= servers.is_away(index) || servers.deaths(index).size() > asked.deaths;
  if (!asked.drain->finished()) return true;
  if (asked.drain->is_abandoned() || !servers.running(index)) return false;
  const bool has_answered = asked.drain->outcome().ok();
  if (has_answered && !has_died_since(place)) return false;
  if (!has_answered && !asked.has_died) return has_patience(asked);
  if (!servers.is_away(index)) ask(place);
  return true;
}

/// Of a server that has answered. The one that is there may be another one.
bool RunDrain::has_died_since(std::size_t place) const {
  const auto &servers = around_.servers;
  const int index = static_cast<int>(place);
  return servers.is_away(index) || servers.deaths(index).size() > asked_[place].drain->last_report()->restarts;
}

/// A connection breaks before it is known that the server has died.
bool RunDrain::has_patience(Asked &asked) {
  if (asked.patience.is_never()) asked.patience = Deadline::in(kPatienceWithSilence);
  return !asked.patience.passed();
}

void RunDrain::note_absent(RunRecord &record) {
  auto &servers = around_.servers;
  for (int index = 0; index < servers.count(); ++index) {
    if (servers.urls()[static_cast<std::size_t>(index)].empty())
      servers.note_absent(index);
    else if (!servers.running(index))
      note_broken(index, servers.how_it_ended(index), record);
  }
}

void RunDrain::watch() {
  while (true) {
    std::vector<ServerDrain *> busy;
    for (std::size_t place = 0; place < asked_.size(); ++place)
      if (is_busy(place)) busy.push_back(asked_[place].drain.get());
    if (busy.empty()) break;
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      const auto &drain = asked_[i].drain;
      if (drain && drain->hung()) around_.servers.kill(static_cast<int>(i));
      if (drain && is_lost(static_cast<int>(i))) drain->abandon();
    }
    if (around_.has_given_up())
      around_.servers.kill_all();
    else if (!has_named_ && around_.naming.passed())
      name_pending();
    show_progress();
    const bool waits_for_server = busy.front()->finished();
    if (!waits_for_server) (void)busy.front()->finishes_within(kGlance);
    around_.turn(waits_for_server ? kGlance : milliseconds(0));
  }
  around_.line.hide();
}

/// Who has told this process to end may kill it soon, as batch systems do, and then nothing more is said.
void RunDrain::name_pending() {
  has_named_ = true;
  RunRecord pending;
  for (int index = 0; index < around_.servers.count(); ++index) add_losses(read_losses(around_.folder, index), pending);
  if (pending.lost.empty()) return;
  around_.line.hide();
  say("the program's data are still on their way to the files; if this process is killed now, this is lost:");
  write_to_stderr(describe_trouble(pending));
}

/// Nobody would tell that its node is gone, and it is silent itself, though it answers many times a second.
bool RunDrain::is_lost(int index) const {
  const bool is_left_alone = around_.servers.is_left_alone(index) || around_.is_left_alone();
  return is_left_alone && asked_[static_cast<std::size_t>(index)].drain->silence() > kPatienceWithSilence;
}

void RunDrain::show_progress() {
  std::uint64_t pending = 0;
  std::string stuck;
  for (const auto &asked : asked_) {
    const auto &drain = asked.drain;
    const auto report = drain ? drain->last_report() : std::nullopt;
    if (!report) continue;
    pending += report->bytes_pending;
    for (const auto &file : report->stuck)
      stuck += fmt::format("; {}: {}, trying again ({:.0f} s left)", file.path, file.message, file.left_s);
  }
  most_pending_ = std::max(most_pending_, pending);
  if (pending == 0) return;
  around_.line.show(fmt::format("draining: {} of {} to go{}", format_size(pending), format_size(most_pending_), stuck));
}

void RunDrain::collect(RunRecord &record) {
  auto &servers = around_.servers;
  record.gave_up = around_.has_given_up();
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    const auto &drain = asked_[i].drain;
    if (!drain) continue;
    const auto outcome = drain->outcome();
    if (auto report = drain->last_report()) record.reports.push_back(std::move(*report));
    if (outcome) continue;
    const int index = static_cast<int>(i);
    servers.kill(index);
    if (drain->is_abandoned()) servers.note_lost(index);
    note_broken(index,
                drain->is_abandoned() ? servers.how_it_ended(index) : "did not finish: " + outcome.error().message,
                record);
  }
}

void RunDrain::note_broken(int index, const std::string &how, RunRecord &record) const {
  const auto remains = read_remains(around_.folder, around_.board_folder, index);
  if (around_.has_given_up() && remains.lost) return add_losses(remains.lost, record);
  add_broken(fmt::format("staging server {} {}", index, how), remains, record);
}

/// One that dies meanwhile, with what it had finished already, and is started again, is asked once more.
void RunDrain::await_end() {
  const auto deadline = Deadline::in(kServerExitTimeout);
  while (around_.servers.any_running() && !deadline.passed()) {
    for (std::size_t place = 0; place < asked_.size(); ++place) (void)is_busy(place);
    around_.turn(milliseconds(5));
  }
  around_.servers.kill_all();
}

}  // namespace nessie::cli
