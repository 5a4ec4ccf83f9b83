// SPDX-License-Identifier: BSD-3-Clause
// Puts and gets, from the program's arguments to requests that can be moved.
#include <interpose/pnetcdf/engine/access.hpp>
#include <interpose/pnetcdf/engine/arguments.hpp>
#include <interpose/pnetcdf/engine/check.hpp>
#include <interpose/pnetcdf/engine/completion.hpp>
#include <interpose/pnetcdf/engine/fallback.hpp>
#include <interpose/pnetcdf/engine/file.hpp>
#include <interpose/pnetcdf/engine/leaving.hpp>
#include <interpose/pnetcdf/engine/mark.hpp>
#include <interpose/pnetcdf/engine/movement.hpp>
#include <interpose/pnetcdf/engine/regions.hpp>

#include <algorithm>

namespace interpose {

namespace {

/// Native PnetCDF copies small buffers when they are posted, so that programs get away with changing them early.
constexpr std::size_t kCopiedBytes = 8192;

/// Gives a write's request its external data: in the program's memory where it can stay there.
int prepare_write(File &file, const Access &access, Request &request, std::size_t size_bytes) {
  const bool may_borrow = access.is_blocking() || size_bytes > kCopiedBytes;
  if (access.mode == Mode::kBuffered) {
    request.attached_slot = file.attached_buffer->take(static_cast<std::int64_t>(size_bytes), request.external);
    if (request.attached_slot < 0) return NC_EINSUFFBUF;
  } else if (request.layout.is_external() && may_borrow) {
    request.external = {request.layout.address(), size_bytes};
    return NC_NOERR;
  } else {
    request.own = Buffer(size_bytes);
    request.external = request.own.span();
  }
  const int error = request.layout.pack(request.external, *request.variable, file.fill_value(access.varid));
  if (error != NC_NOERR && error != NC_ERANGE && request.attached_slot >= 0) {
    file.attached_buffer->release(request.attached_slot);
    file.attached_buffer->reclaim();
  }
  return error;
}

void prepare_read(const Access &access, Request &request, std::size_t size_bytes) {
  if (request.layout.is_external()) {
    request.external = {request.layout.address(), size_bytes};
    return;
  }
  request.own = Buffer(size_bytes);
  request.external = request.own.span();
  if (!access.is_blocking()) request.layout.keep_datatype();
}

int map_memory(const Access &access, Request &request) {
  if (access.shape != Shape::kVarM || access.imap == nullptr) return NC_NOERR;
  const auto dims = static_cast<std::size_t>(request.variable->dimensions());
  const std::vector<std::int64_t> count(access.count, access.count + dims);
  return request.layout.map({access.imap, dims}, count);
}

/// Makes the request of a checked access. NC_ERANGE: made, but not all values fitted. An access of nothing makes a
/// request without data.
int prepare(File &file, const Access &access, Request &request) {
  request.variable = file.variable(access.varid);
  request.region = region_of(file, access);
  const auto elements = request.region.elements();
  if (int error = request.layout.decode(access.memory, *request.variable, file.format, elements)) return error;
  if (elements == 0) return NC_NOERR;
  if (int error = map_memory(access, request)) return error;
  const auto size_bytes =
      static_cast<std::size_t>(elements) * static_cast<std::size_t>(request.variable->layout.element_bytes);
  if (!access.is_read()) return prepare_write(file, access, request, size_bytes);
  prepare_read(access, request, size_bytes);
  return NC_NOERR;
}

/// Queues a checked access. `id` is NC_REQ_NULL if there is nothing to move.
int enqueue(File &file, const Access &access, int &id) {
  id = NC_REQ_NULL;
  Request request;
  const int status = prepare(file, access, request);
  if ((status != NC_NOERR && status != NC_ERANGE) || request.external.empty()) return status;
  id = (access.is_read() ? file.requests.gets : file.requests.puts).add(std::move(request));
  return status;
}

// --- nonblocking -----------------------------------------------------------------------------------------------------------

bool is_empty_flexible(const Access &access) {
  return access.is_flexible() && access.memory.type != MPI_DATATYPE_NULL && access.memory.count == 0;
}

int post(File &file, const Access &access) {
  int ignored = NC_REQ_NULL;
  int &id = access.request != nullptr ? *access.request : ignored;
  id = NC_REQ_NULL;
  if (int error = check(file, access)) return error;
  if (access.shape == Shape::kVarN) {
    if (access.num == 0) return NC_NOERR;
    if (access.mode == Mode::kBuffered && !file.attached_buffer) return NC_ENULLABUF;
  }
  if (is_empty_flexible(access)) return NC_NOERR;
  if (access.shape == Shape::kVarN)
    if (int error = check_list(file, access)) return error;
  return enqueue(file, access, id);
}

// --- blocking --------------------------------------------------------------------------------------------------------------

int get(File &file, const Access &access) {
  if (access.is_collective()) file.ranks().await_notes();
  Request request;
  if (int error = prepare(file, access, request)) return error;
  if (int error = read(file, {&request, 1})) return error;
  return request.external.empty() ? NC_NOERR : deliver(request);
}

/// `records`: how many the file has afterwards, as far as this rank knows.
int put(File &file, const Access &access, std::int64_t &records) {
  if (access.is_collective()) {
    file.ranks().await_notes(access.varid);
    file.ranks().wait_until_read(access.varid);
  }
  Request request;
  const int status = prepare(file, access, request);
  if (status != NC_NOERR && status != NC_ERANGE) return status;
  if (request.external.empty() && !access.is_collective()) return status;
  records = std::max(records, request.region.last_record);
  const int error = write(file, {&request, 1});
  return status != NC_NOERR ? status : error;
}

/// After every collective put, also one that failed here: the others do so too.
void agree_on_records(File &file, const Access &access, std::int64_t records, bool failed) {
  file.ranks().note_written(access.varid, records);
  const Variable *variable = file.variable(access.varid);
  if (failed || (variable != nullptr && variable->layout.is_record)) file.ranks().await_notes();
  const auto before = file.num_records;
  file.raise_records(file.ranks().records());
  mark_put(file, access.varid, before, file.num_records);
}

int transfer_list(File &file, const Access &access) {
  int error = check(file, access);
  if (error == NC_NOERR && access.num != 0) error = check_list(file, access);
  if (is_over(file, access.is_collective(), error)) return error;
  if (!access.is_collective() && (error != NC_NOERR || access.num == 0)) return error;
  int id = NC_REQ_NULL;
  if (error == NC_NOERR && access.num != 0) {
    error = enqueue(file, access, id);
    if (error != NC_NOERR && !access.is_collective()) return error;
  }
  const int status = complete_own(file, {id}, access.is_collective());
  return error != NC_NOERR ? error : status;
}

}  // namespace

int transfer(File &file, const Access &access) {
  if (!access.is_blocking()) return post(file, access);
  if (access.is_collective() && file.awaits_look && !file.in_define_mode)
    if (const int left = look_for_servers(file); left != NC_NOERR) return left;
  if (access.is_collective() && !access.is_read()) file.note_unsettled();
  if (access.shape == Shape::kVarN) return transfer_list(file, access);
  int error = check(file, access);
  if (is_over(file, access.is_collective(), error)) return error;
  if (error != NC_NOERR && (!access.is_collective() || file.ranks().size() == 1)) return error;
  if (!access.is_collective() && is_empty_flexible(access)) return NC_NOERR;
  if (access.is_collective() && file.may_be_left)
    if (const int left = consider_leaving(file, access, error); left != NC_NOERR) return left;
  if (access.is_read()) {
    const int status = error != NC_NOERR ? error : get(file, access);
    if (access.is_collective()) file.ranks().note_read(access.varid);
    return status;
  }
  std::int64_t records = file.num_records;
  const int status = error != NC_NOERR ? error : put(file, access, records);
  if (access.is_collective())
    agree_on_records(file, access, records, error != NC_NOERR);
  else
    file.num_records = std::max(file.num_records, records);
  return status;
}

// --- several at once ---------------------------------------------------------------------------------------------------------

namespace {

Access one_of(const MultiAccess &multi, int i) {
  const auto nth = [i](MPI_Offset *const *list) { return list == nullptr ? nullptr : list[i]; };
  Access access(multi.direction, multi.shape, Mode::kNonblocking, multi.varids[i]);
  access.start = nth(multi.starts);
  access.count = nth(multi.counts);
  access.stride = nth(multi.strides);
  access.imap = nth(multi.imaps);
  access.memory.address = multi.bufs[i];
  access.memory.count = multi.bufcounts == nullptr ? kTyped : multi.bufcounts[i];
  access.memory.type = multi.bufcounts == nullptr ? multi.element_type : multi.buftypes[i];
  return access;
}

int check(File &file, const MultiAccess &multi) {
  for (int i = 0; i < multi.num; ++i) {
    if (int error = check_call(file, multi.direction, multi.mode, multi.varids[i], multi.element_type)) return error;
    if (int error = interpose::check(file, one_of(multi, i))) return error;
  }
  return NC_NOERR;
}

}  // namespace

int transfer(File &file, const MultiAccess &multi) {
  const bool collective = multi.mode == Mode::kCollective;
  if (!collective && multi.num == 0) return NC_NOERR;
  int error = check(file, multi);
  if (is_over(file, collective, error) || (error != NC_NOERR && !collective)) return error;
  std::vector<int> ids;
  for (int i = 0; error == NC_NOERR && i < multi.num; ++i) {
    int id = NC_REQ_NULL;
    error = enqueue(file, one_of(multi, i), id);
    if (error == NC_NOERR) ids.push_back(id);
  }
  const int status = complete_own(file, std::move(ids), collective);
  return error != NC_NOERR ? error : status;
}

}  // namespace interpose
