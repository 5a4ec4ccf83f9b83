// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/data_map.hpp>

#include <algorithm>

namespace interpose {

DataMap::DataMap(File &file) {
  int count = 0;
  ncmpi_inq_nvars(file.mirror.id(), &count);
  for (int varid = 0; varid < count; ++varid) {
    const Variable *variable = file.variable(varid);
    MPI_Offset begin = 0;
    ncmpi_inq_varoffset(file.mirror.id(), varid, &begin);
    const auto &layout = variable->layout;
    (layout.is_record ? records_ : fixed_)
        .push_back({begin, layout.extent_elements() * layout.element_bytes, variable});
  }
  MPI_Offset bytes = 0;
  ncmpi_inq_recsize(file.mirror.id(), &bytes);
  record_bytes_ = bytes;
  std::ranges::sort(fixed_, {}, &Span::begin);
  std::ranges::sort(records_, {}, &Span::begin);
}

const DataMap::Span *DataMap::find(const std::vector<Span> &spans, std::int64_t offset) const {
  auto next = std::ranges::upper_bound(spans, offset, {}, &Span::begin);
  while (next != spans.begin()) {
    const Span &span = *--next;
    if (offset < span.begin + span.bytes) return &span;
    if (span.bytes > 0) break;  // a variable without elements may begin where another one does
  }
  return nullptr;
}

std::optional<DataMap::Place> DataMap::at(std::int64_t offset) const {
  std::int64_t record = 0;
  const bool in_records = !records_.empty() && record_bytes_ > 0 && offset >= records_.front().begin;
  if (in_records) {
    record = (offset - records_.front().begin) / record_bytes_;
    offset -= record * record_bytes_;
  }
  const Span *span = find(in_records ? records_ : fixed_, offset);
  if (span == nullptr) return std::nullopt;
  const auto &layout = span->variable->layout;
  const auto within = offset - span->begin;
  if (within % layout.element_bytes != 0) return std::nullopt;
  return Place{span->variable, record * layout.extent_elements() + within / layout.element_bytes,
               (span->bytes - within) / layout.element_bytes};
}

std::int64_t DataMap::begin_of(int varid) const {
  for (const auto *spans : {&fixed_, &records_})
    for (const Span &span : *spans)
      if (span.variable->layout.varid == varid) return span.begin;
  return 0;
}

}  // namespace interpose
