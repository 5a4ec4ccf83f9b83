// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/marks.hpp>

#include <interpose/pnetcdf/engine/file.hpp>
#include <interpose/pnetcdf/engine/session.hpp>

#include <algorithm>
#include <utility>

namespace interpose {

namespace {

void add(std::vector<int> &all, int varid) {
  if (std::ranges::find(all, varid) == all.end()) all.push_back(varid);
}

}  // namespace

void Marks::note_put(int varid) { add(put_, varid); }

void Marks::note_record_put(int varid) { add(record_puts_, varid); }

bool Marks::begin_records(std::int64_t before, std::int64_t records, std::size_t record_variables) {
  if (records <= before) return false;
  const bool have_all_been_put = std::exchange(record_puts_, {}).size() >= record_variables;
  if (!have_all_been_put) return false;
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
  const auto record_variables = static_cast<std::size_t>(file.count_record_variables());
  if (file.marks.begin_records(records_before, records, record_variables)) mark(file, records_before, false);
  if (variable != nullptr && variable->layout.is_record) file.marks.note_record_put(varid);
}

void mark_all(File &file) { mark(file, file.num_records, true); }

}  // namespace interpose
