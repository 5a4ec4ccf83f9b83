// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/beside.hpp>
#include <interpose/pnetcdf/engine/completion.hpp>
#include <interpose/pnetcdf/engine/functions.hpp>

namespace interpose {

int on_wait(File &file, int count, int ids[], int statuses[]) {
  return file.is_native() ? write_natively(file, [&] { return ncmpi_wait(file.id(), count, ids, statuses); })
                          : complete(file, count, ids, statuses, false);
}

int on_wait_all(File &file, int count, int ids[], int statuses[]) {
  return file.is_native() ? write_natively(file, [&] { return ncmpi_wait_all(file.id(), count, ids, statuses); })
                          : complete(file, count, ids, statuses, true);
}

int on_cancel(File &file, int count, int *ids, int *statuses) {
  return file.is_native() ? ncmpi_cancel(file.id(), count, ids, statuses) : cancel(file, count, ids, statuses);
}

int on_inq_nreqs(File &file, int *count) {
  if (file.is_native()) return ncmpi_inq_nreqs(file.id(), count);
  if (count != nullptr) *count = file.requests.size();
  return NC_NOERR;
}

int on_buffer_attach(File &file, MPI_Offset size) {
  if (file.is_native()) return ncmpi_buffer_attach(file.id(), size);
  if (size <= 0) return NC_ENULLBUF;
  if (file.attached_buffer) return NC_EPREVATTACHBUF;
  file.attached_buffer.emplace(size);
  return NC_NOERR;
}

int on_buffer_detach(File &file) {
  if (file.is_native()) return ncmpi_buffer_detach(file.id());
  if (!file.attached_buffer) return NC_ENULLABUF;
  if (file.requests.puts.uses_attached_buffer()) return NC_EPENDINGBPUT;
  file.attached_buffer.reset();
  return NC_NOERR;
}

int on_inq_buffer_usage(File &file, MPI_Offset *usage) {
  if (file.is_native()) return ncmpi_inq_buffer_usage(file.id(), usage);
  if (usage == nullptr) return NC_NOERR;
  if (!file.attached_buffer) return NC_ENULLABUF;
  *usage = file.attached_buffer->used();
  return NC_NOERR;
}

int on_inq_buffer_size(File &file, MPI_Offset *size) {
  if (file.is_native()) return ncmpi_inq_buffer_size(file.id(), size);
  if (size == nullptr) return NC_NOERR;
  if (!file.attached_buffer) return NC_ENULLABUF;
  *size = file.attached_buffer->size();
  return NC_NOERR;
}

}  // namespace interpose
