// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/open_file.hpp>

#include <fmt/format.h>
#include <pnetcdf.h>

#include <algorithm>

namespace staging {

namespace {

constexpr std::size_t kMostRanges = 64;  // in a report, for each variable
constexpr std::size_t kMostRangesOfFile = 1024;
constexpr std::size_t kMostMissingRuns = 4096;  // of a variable, told apart

std::uint64_t bytes(const FileVariable &variable, std::int64_t elements) {
  return static_cast<std::uint64_t>(elements) * static_cast<std::uint64_t>(variable.cached->variable.element_bytes);
}

void append_missing(const FileVariable &variable, std::vector<std::string> &texts) {
  const auto &shape = variable.cached->variable;
  std::vector<Box> boxes;
  for (auto [begin, end] : variable.missing.runs()) append_boxes(shape, {begin, end}, boxes);
  for (std::size_t i = 0; i < std::min(boxes.size(), kMostRanges); ++i) texts.push_back(describe(shape.name, boxes[i]));
  if (boxes.size() > kMostRanges)
    texts.push_back(fmt::format("{}: {} more ranges", shape.name, boxes.size() - kMostRanges));
}

}  // namespace

OpenFile::~OpenFile() {
  for (auto &variable : variables_)
    if (ledger_ != nullptr) ledger_->remove(variable.slot);
}

void OpenFile::set_variables(PageCache &cache, std::vector<Variable> variables) {
  variables_.resize(variables.size());
  for (std::size_t i = 0; i < variables.size(); ++i) {
    variables_[i].cached = cache.adopt(std::move(variables[i]));
    variables_[i].cached->file = this;
    variables_[i].cached->keeps_clean = keeps_clean;
  }
}

void OpenFile::keep_clean(bool keeps) {
  keeps_clean = keeps;
  for (auto &variable : variables_) variable.cached->keeps_clean = keeps;
}

void OpenFile::forget_clean() {
  for (auto &variable : variables_) variable.cached->cache->forget(*variable.cached);
}

FileVariable *OpenFile::find(std::int32_t varid) {
  return varid >= 0 && static_cast<std::size_t>(varid) < variables_.size()
             ? &variables_[static_cast<std::size_t>(varid)]
             : nullptr;
}

void OpenFile::arrived(FileVariable &variable, const Part &part) {
  variable.arrived_bounds = variable.arrived == 0 ? part.bounds : hull(variable.arrived_bounds, part.bounds);
  variable.arrived += part.bytes;
  note_ledger(variable);
}

void OpenFile::acknowledge(FileVariable &variable, std::uint64_t bytes, bool had_arrived) {
  if (had_arrived) variable.arrived -= std::min(variable.arrived, bytes);
  variable.acknowledged += bytes;
  note_ledger(variable);
}

std::uint64_t OpenFile::arrived_bytes() const {
  std::uint64_t sum = 0;
  for (const auto &variable : variables_) sum += variable.arrived;
  return sum;
}

// Bytes that are overwritten while they are in memory count once more when they are acknowledged, but reach the file
// once.
void OpenFile::reached_file(FileVariable &variable, const Page &page) {
  variable.in_file += bytes(variable, page.dirty_elements());
  if (variable.missing.empty()) return;
  for (auto run = page.dirty_run(page.first()); run.size() > 0; run = page.dirty_run(run.end))
    variable.missing.subtract(run);
}

void OpenFile::failed(FileVariable &variable, const Page &page, const PageOutcome &outcome, bool is_told) {
  for (auto run = page.dirty_run(page.first()); run.size() > 0; run = page.dirty_run(run.end)) {
    if (variable.missing.runs().size() >= kMostMissingRuns) run.end = page.dirty_bounds().end;
    variable.missing.add(run);
  }
  remember(outcome.nc_error, outcome.system_error, is_told);
}

void OpenFile::lost(FileVariable &variable, Interval elements) {
  take_back(variable, bytes(variable, elements.size()));
  variable.missing.add(elements);
  note_damage(describe(variable.cached->variable, elements) + " is not on the disk as it was written");
  note_ledger(variable);
}

void OpenFile::remember(int nc_error, int system_error, bool is_told) {
  if (nc_error == 0) return;
  if (first_error_ == 0) first_error_ = nc_error, system_error_ = system_error;
  if (!is_told) untold_error_ = nc_error;
}

void OpenFile::note_damage(const std::string &what) {
  remember(NC_EREAD);
  damage_ = what;
}

int OpenFile::take_error() { return std::exchange(untold_error_, 0); }

void OpenFile::note_ledger(FileVariable &variable) {
  if (ledger_ == nullptr) return;
  if (variable.slot == 0) variable.slot = ledger_->add(path, variable.cached->variable);
  auto lost = variable.cached->dirty_bounds();
  if (variable.arrived > 0) lost = hull(lost, variable.arrived_bounds);
  if (!variable.missing.empty()) {
    const auto &runs = variable.missing.runs();
    lost = hull(lost, {runs.begin()->first, runs.rbegin()->second});
  }
  const auto in_memory = variable.cached->dirty_bytes + variable.arrived + bytes(variable, variable.missing.size());
  ledger_->update(variable.slot, {variable.acknowledged + variable.arrived, variable.in_file, in_memory, lost});
}

bool OpenFile::wrote_anything() const {
  return std::any_of(variables_.begin(), variables_.end(), [](const auto &v) { return v.acknowledged > 0; });
}

std::uint64_t OpenFile::dirty_bytes() const {
  std::uint64_t sum = 0;
  for (const auto &variable : variables_) sum += variable.cached->dirty_bytes;
  return sum;
}

FileReport OpenFile::report() const {
  FileReport report;
  report.path = path;
  report.nc_error = first_error_;
  if (first_error_ != 0) report.message = native_message(first_error_, system_error_);
  if (!damage_.empty()) report.message = "some of what was acknowledged may be missing: " + damage_;
  for (const auto &variable : variables_) {
    report.bytes_acknowledged += variable.acknowledged;
    report.bytes_in_file += variable.in_file;
    append_missing(variable, report.missing);
  }
  if (report.missing.size() > kMostRangesOfFile) {
    const auto more = report.missing.size() - kMostRangesOfFile;
    report.missing.resize(kMostRangesOfFile);
    report.missing.push_back(fmt::format("{} more ranges", more));
  }
  return report;
}

}  // namespace staging
