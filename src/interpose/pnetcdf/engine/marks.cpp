// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/marks.hpp>

#include <interpose/pnetcdf/engine/file.hpp>
#include <interpose/pnetcdf/engine/session.hpp>

#include <algorithm>
#include <utility>

namespace interpose {

void Marks::note_put(int varid) {
  if (std::ranges::find(put_, varid) == put_.end()) put_.push_back(varid);
}

bool Marks::begin_records(std::int64_t before, std::int64_t records) {
  if (records <= before) return false;
  complete_.insert(complete_.end(), settled_.begin(), settled_.end());
  settled_ = std::exchange(put_, {});
  return before > records_;
}

void Marks::note_marked(std::int64_t records) { records_ = std::max(records_, records); }

namespace {

void mark(File &file, std::int64_t records, bool is_all) {
  staging::Mark mark;
  mark.first_record = file.marks.records();
  mark.records = records;
  mark.is_all = is_all;
  mark.variables = file.marks.take_variables();
  file.marks.note_marked(records);
  Session::get().client()->mark(file.token(), std::move(mark), file.ranks().order());
}

}  // namespace

void mark_put(File &file, int varid, std::int64_t records_before, std::int64_t records) {
  if (!file.ranks().is_root()) return;
  const auto *variable = file.variable(varid);
  if (variable != nullptr && !variable->layout.is_record) file.marks.note_put(varid);
  if (file.marks.begin_records(records_before, records)) mark(file, records_before, false);
}

void mark_all(File &file) { mark(file, file.num_records, true); }

}  // namespace interpose
