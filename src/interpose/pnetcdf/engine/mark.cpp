// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/mark.hpp>

#include <interpose/pnetcdf/engine/file.hpp>
#include <interpose/pnetcdf/engine/session.hpp>

#include <utility>

namespace interpose {

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

void mark_fixed_variables(File &file) {
  if (!file.ranks().is_root()) return;
  int varid = 0;
  for (const auto *variable = file.variable(varid); variable != nullptr; variable = file.variable(++varid))
    if (!variable->layout.is_record) file.marks.note_put(varid);
}

void mark_all(File &file) {
  file.marks.complete_all();
  mark(file, file.num_records, true);
}

}  // namespace interpose
