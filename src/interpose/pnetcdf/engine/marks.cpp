// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/marks.hpp>

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

void Marks::complete_all() {
  for (auto *put : {&settled_, &put_})
    for (const int varid : std::exchange(*put, {})) add(complete_, varid);
}

void Marks::note_marked(std::int64_t records) { records_ = std::max(records_, records); }

}  // namespace interpose
