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
  drains_.resize(static_cast<std::size_t>(servers.count()));
  for (int index = 0; index < servers.count(); ++index) {
    if (!servers.running(index)) continue;
    drains_[static_cast<std::size_t>(index)] = std::make_unique<ServerDrain>(
        around_.config, servers.urls()[static_cast<std::size_t>(index)], around_.credential);
  }
  watch();
  collect(record);
  await_end();
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
  const auto busy = [](const auto &drain) { return drain && !drain->finished(); };
  while (true) {
    const auto drain = std::ranges::find_if(drains_, busy);
    if (drain == drains_.end()) break;
    for (std::size_t i = 0; i < drains_.size(); ++i) {
      if (drains_[i] && drains_[i]->hung()) around_.servers.kill(static_cast<int>(i));
      if (drains_[i] && is_lost(static_cast<int>(i))) drains_[i]->abandon();
    }
    if (around_.has_given_up())
      around_.servers.kill_all();
    else if (!has_named_ && around_.naming.passed())
      name_pending();
    show_progress();
    (void)(*drain)->finishes_within(kGlance);
    around_.turn(milliseconds(0));
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
  return is_left_alone && drains_[static_cast<std::size_t>(index)]->silence() > kPatienceWithSilence;
}

void RunDrain::show_progress() {
  std::uint64_t pending = 0;
  for (const auto &drain : drains_) {
    const auto report = drain ? drain->last_report() : std::nullopt;
    if (report) pending += report->bytes_pending;
  }
  most_pending_ = std::max(most_pending_, pending);
  if (pending == 0) return;
  around_.line.show(fmt::format("draining: {} of {} to go", format_size(pending), format_size(most_pending_)));
}

void RunDrain::collect(RunRecord &record) {
  auto &servers = around_.servers;
  record.gave_up = around_.has_given_up();
  for (std::size_t i = 0; i < drains_.size(); ++i) {
    if (!drains_[i]) continue;
    const auto outcome = drains_[i]->outcome();
    if (auto report = drains_[i]->last_report()) record.reports.push_back(std::move(*report));
    if (outcome) continue;
    const int index = static_cast<int>(i);
    servers.kill(index);
    if (drains_[i]->is_abandoned()) servers.note_lost(index);
    note_broken(index,
                drains_[i]->is_abandoned() ? servers.how_it_ended(index) : "did not finish: " + outcome.error().message,
                record);
  }
}

void RunDrain::note_broken(int index, const std::string &how, RunRecord &record) const {
  const auto remains = read_remains(around_.folder, around_.board_folder, index);
  if (around_.has_given_up() && remains.lost) return add_losses(remains.lost, record);
  add_broken(fmt::format("staging server {} {}", index, how), remains, record);
}

void RunDrain::await_end() {
  const auto deadline = Deadline::in(kServerExitTimeout);
  while (around_.servers.any_running() && !deadline.passed()) around_.turn(milliseconds(5));
  around_.servers.kill_all();
}

}  // namespace nessie::cli
