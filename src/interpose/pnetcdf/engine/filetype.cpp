// SPDX-License-Identifier: BSD-3-Clause
// ncmpi_put_vard and ncmpi_get_vard, which say where in the file by an MPI datatype: bytes, counted from the variable's
// first one. They may be any bytes of the file. Elements of variables, as long as that of the variable, are staged;
// what else a filetype meets (parts of elements, padding, what lies behind the last record) is native PnetCDF's.
//
// Design notes. A collective call in which any rank meets such hands the file back to native PnetCDF for good; an
// independent one, which cannot change what the other ranks do, is carried out by this rank alone on the file on disk.
#include <interpose/pnetcdf/engine/access.hpp>
#include <interpose/pnetcdf/engine/beside.hpp>
#include <interpose/pnetcdf/engine/check.hpp>
#include <interpose/pnetcdf/engine/data_map.hpp>
#include <interpose/pnetcdf/engine/datatype.hpp>
#include <interpose/pnetcdf/engine/flatten.hpp>
#include <interpose/pnetcdf/engine/mark.hpp>
#include <interpose/pnetcdf/engine/movement.hpp>
#include <interpose/pnetcdf/engine/native.hpp>
#include <interpose/pnetcdf/engine/opening.hpp>
#include <interpose/pnetcdf/engine/session.hpp>

#include <services/staging/piece.hpp>

#include <algorithm>
#include <climits>
#include <utility>

namespace interpose {

namespace {

// --- natively ----------------------------------------------------------------------------------------------------------------

int call_natively(int ncid, const FiletypeAccess &access) {
  const auto &[address, count, type] = access.memory;
  if (access.is_collective())
    return access.is_read() ? ncmpi_get_vard_all(ncid, access.varid, access.filetype, address, count, type)
                            : ncmpi_put_vard_all(ncid, access.varid, access.filetype, address, count, type);
  return access.is_read() ? ncmpi_get_vard(ncid, access.varid, access.filetype, address, count, type)
                          : ncmpi_put_vard(ncid, access.varid, access.filetype, address, count, type);
}

std::int64_t records_of(int ncid) {
  int unlimited = -1;
  MPI_Offset records = 0;
  ncmpi_inq_unlimdim(ncid, &unlimited);
  if (unlimited >= 0) ncmpi_inq_dimlen(ncid, unlimited, &records);
  return records;
}

/// Opens the file for this process, in independent mode.
int open_alone(File &file, NativeHandle &handle) {
  const int mode = file.writable ? NC_WRITE : NC_NOWRITE;
  (void)borrow(file, mode, handle);
  NativeTurn turn;
  (void)turn.lend_reserve();
  const auto name = name_to_open(file, mode, handle);
  if (name.empty()) return NC_EFILE;
  const int opened = ncmpi_open(MPI_COMM_SELF, name.c_str(), mode, MPI_INFO_NULL, &handle.id);
  return handle.id < 0 ? opened : ncmpi_begin_indep_data(handle.id);
}

int close_alone(int ncid) {
  const NativeTurn turn;
  return ncmpi_close(ncid);
}

/// Counts for `file` what a call on its handle `ncid` moves.
template <class Call> int count_natively(File &file, int ncid, const Call &call) {
  MPI_Offset put[2] = {}, get[2] = {};
  ncmpi_inq_put_size(ncid, &put[0]);
  ncmpi_inq_get_size(ncid, &get[0]);
  const int status = call();
  ncmpi_inq_put_size(ncid, &put[1]);
  ncmpi_inq_get_size(ncid, &get[1]);
  file.put_bytes += put[1] - put[0];
  file.get_bytes += get[1] - get[0];
  return status;
}

int call_alone(File &file, const FiletypeAccess &access) {
  file.has_put_fixed = file.has_put_fixed || !access.is_read();
  auto synced = Session::get().client()->sync(file.token(), file.num_records);
  if (!synced) return file.lost(synced.error(), "an independent access by filetype", NC_EFILE);
  if (*synced != NC_NOERR) return *synced;
  NativeHandle handle;
  int status = open_alone(file, handle);
  if (handle.id < 0) return status;
  if (status == NC_NOERR) status = count_natively(file, handle.id, [&] { return call_natively(handle.id, access); });
  file.num_records = std::max(file.num_records, records_of(handle.id));
  const int closed = close_alone(handle.id);
  return status != NC_NOERR ? status : closed;
}

template <class Call> int beside(const File &file, const FiletypeAccess &access, const Call &call) {
  return access.is_read() ? read_natively(file, call) : write_natively(file, call);
}

// --- staged --------------------------------------------------------------------------------------------------------------------

/// An access as it can be staged.
struct Plan {
  bool staged = true;             ///< whether it can be
  int status = NC_NOERR;          ///< other than NC_ERANGE: nothing is moved
  Request whole;                  ///< how the data lie in the program's memory; without pieces
  std::vector<Request> parts;     ///< their places, of one variable each, and their slices of whole.external
  std::int64_t last_record = 0;   ///< how many records the file must have for all that it meets
  std::int64_t records_then = 0;  ///< how many it has after a put
};

/// Natively, a put has the file grow by all that its filetype spans, also where it fails.
std::int64_t records_after(const DataMap &map, MPI_Datatype filetype) {
  MPI_Count lower = 0, extent = 0;
  if (map.record_bytes() <= 0) return 0;
  MPI_Type_get_true_extent_x(filetype, &lower, &extent);
  return (lower + extent + map.record_bytes() - 1) / map.record_bytes();
}

std::int64_t size_of(MPI_Datatype type) {
  MPI_Count size = 0;
  if (type != MPI_DATATYPE_NULL) MPI_Type_size_x(type, &size);
  return size;
}

/// The filetype, and how many elements it has as native PnetCDF counts them.
int check_filetype(const Variable &variable, MPI_Datatype filetype, std::int64_t &elements) {
  if (size_of(filetype) > INT_MAX) return NC_EINTOVERFLOW;
  Datatype decoded;
  if (int error = decode(filetype, decoded)) return error;
  elements = decoded.elements;
  const bool matches = decoded.named && decoded.element == native_element(variable.type);
  return matches ? NC_NOERR : NC_ETYPE_MISMATCH;
}

int check_memory(const Variable &variable, const Memory &memory) {
  if (memory.type == MPI_DATATYPE_NULL) return NC_NOERR;
  Datatype decoded;
  if (int error = decode(memory.type, decoded)) return error;
  if ((variable.type == NC_CHAR) != (decoded.element == Element::kText)) return NC_ECHAR;
  const auto elements = decoded.elements * memory.count;
  return elements != static_cast<int>(elements) ? NC_EINTOVERFLOW : NC_NOERR;
}

/// Appends elements to the last part, if they are of its variable, or to a new one.
void append_elements(Plan &plan, const DataMap::Place &place, std::int64_t elements) {
  if (plan.parts.empty() || plan.parts.back().variable != place.variable)
    plan.parts.emplace_back().variable = place.variable;
  Request &part = plan.parts.back();
  const auto &layout = place.variable->layout;
  for (auto &box : boxes_of(layout, {place.element, place.element + elements}))
    part.region.add(layout, {layout.varid, std::move(box.start), std::move(box.count), {}});
  if (layout.is_record)
    plan.last_record = std::max(plan.last_record, (place.element + elements - 1) / layout.extent_elements() + 1);
}

/// False: some of it cannot be staged.
bool place_run(Plan &plan, const DataMap &map, const Variable &variable, ByteRun run) {
  const std::int64_t element_bytes = variable.layout.element_bytes;
  while (run.size > 0) {
    const auto place = map.at(run.begin);
    if (!place || place->variable->layout.element_bytes != element_bytes) return false;
    const auto elements = std::min(place->elements, run.size / element_bytes);
    if (elements == 0) return false;
    append_elements(plan, *place, elements);
    run = {run.begin + elements * element_bytes, run.size - elements * element_bytes};
  }
  return true;
}

bool place_all(Plan &plan, const DataMap &map, const Variable &variable, MPI_Datatype filetype) {
  const auto runs = flatten(filetype);
  const auto begin = map.begin_of(variable.layout.varid);
  return runs && std::ranges::all_of(*runs, [&](const ByteRun &run) {
           return place_run(plan, map, variable, {begin + run.begin, run.size});
         });
}

/// Gives each part its slice of the data.
void slice(Plan &plan) {
  auto rest = plan.whole.external;
  for (Request &part : plan.parts) {
    const auto size = static_cast<std::size_t>(part.region.elements() * part.variable->layout.element_bytes);
    part.external = rest.first(size);
    rest = rest.subspan(size);
  }
}

/// Takes the program's memory, or its converted copy, as the data.
int prepare_memory(File &file, const FiletypeAccess &access, Request &whole, std::int64_t elements) {
  if (int error = whole.layout.decode(access.memory, *whole.variable, file.format, elements)) return error;
  const auto size_bytes = static_cast<std::size_t>(elements * whole.variable->layout.element_bytes);
  if (whole.layout.is_external()) {
    whole.external = {whole.layout.address(), size_bytes};
    return NC_NOERR;
  }
  whole.own = Buffer(size_bytes);
  whole.external = whole.own.span();
  if (access.is_read()) return NC_NOERR;
  return whole.layout.pack(whole.external, *whole.variable, file.fill_value(access.varid));
}

bool is_error(int status) { return status != NC_NOERR && status != NC_ERANGE; }

/// What native PnetCDF finds wrong, in its order, and where the data are and go.
void prepare(File &file, const FiletypeAccess &access, const DataMap &map, Plan &plan) {
  const Variable &variable = *file.variable(access.varid);
  std::int64_t elements = 0;
  plan.status = check_filetype(variable, access.filetype, elements);
  if (plan.status != NC_NOERR || (access.memory.count == 0 && access.memory.type != MPI_DATATYPE_NULL)) return;
  plan.status = check_memory(variable, access.memory);
  if (plan.status != NC_NOERR) return;
  plan.whole.variable = &variable;
  plan.status = prepare_memory(file, access, plan.whole, elements);
  if (is_error(plan.status)) return;
  const bool is_counted = elements * variable.layout.element_bytes == size_of(access.filetype);
  plan.staged = is_counted && place_all(plan, map, variable, access.filetype);
  if (plan.staged) slice(plan);
}

Plan plan_for(File &file, const FiletypeAccess &access) {
  Plan plan;
  if (size_of(access.filetype) == 0) return plan;
  const DataMap map(file);
  if (file.variable(access.varid)->layout.is_record && !access.is_read())
    plan.records_then = records_after(map, access.filetype);
  prepare(file, access, map, plan);
  const auto records = std::max(file.num_records, plan.records_then);
  if (plan.last_record > records) plan.staged = false;
  if (is_error(plan.status)) plan.parts.clear();
  return plan;
}

int put(File &file, Plan &plan) {
  file.num_records = std::max(file.num_records, plan.records_then);
  const int error = write(file, plan.parts);
  return plan.status != NC_NOERR ? plan.status : error;
}

int get(File &file, Plan &plan) {
  if (plan.parts.empty()) return plan.status;
  if (int error = read(file, plan.parts)) return error;
  return deliver(plan.whole);
}

// --- together ------------------------------------------------------------------------------------------------------------------

/// Whether all ranks can stage their accesses. Waits for nothing that they have written.
bool is_staged_everywhere(File &file, bool here) { return file.ranks().max_now(here ? 0 : 1) == 0; }

/// This rank's part of a put of all. Another rank's may be of any variables.
int put_together(File &file, int varid, Plan &plan) {
  auto &ranks = file.ranks();
  ranks.wait_until_read();
  const auto records = file.num_records;
  const int status = put(file, plan);
  ranks.note_written(Communicator::kAnyVariable, std::exchange(file.num_records, records));
  ranks.await_notes();
  file.raise_records(ranks.records());
  mark_put(file, Communicator::kAnyVariable, records, file.num_records);
  const auto mark_fixed = [&](const Variable &variable) {
    if (!variable.layout.is_record) mark_put(file, variable.layout.varid, file.num_records, file.num_records);
  };
  if (const auto *variable = file.variable(varid)) mark_fixed(*variable);
  for (const Request &part : plan.parts) mark_fixed(*part.variable);
  return status;
}

int get_together(File &file, Plan &plan) {
  const int status = get(file, plan);
  file.ranks().note_read(Communicator::kAnyVariable);
  return status;
}

int transfer_together(File &file, const FiletypeAccess &access, int error) {
  if (!access.is_read()) file.note_unsettled();
  file.ranks().await_notes();
  file.raise_records(file.ranks().records());
  Plan plan;
  if (error == NC_NOERR)
    plan = plan_for(file, access);
  else
    plan.status = error;
  if (is_staged_everywhere(file, plan.staged))
    return access.is_read() ? get_together(file, plan) : put_together(file, access.varid, plan);
  if (int status =
          hand_back(file, {"it is accessed by an MPI filetype that is not of whole elements of its variables"}))
    return status;
  return beside(file, access, [&] { return call_natively(file.id(), access); });
}

int transfer_alone(File &file, const FiletypeAccess &access) {
  if (access.memory.type != MPI_DATATYPE_NULL && access.memory.count == 0) return NC_NOERR;
  Plan plan = plan_for(file, access);
  if (!plan.staged) return beside(file, access, [&] { return call_alone(file, access); });
  if (is_error(plan.status)) return plan.status;  // natively the file does not grow
  return access.is_read() ? get(file, plan) : put(file, plan);
}

}  // namespace

int transfer(File &file, const FiletypeAccess &access) {
  int error = check_call(file, access.direction, access.mode, access.varid, MPI_DATATYPE_NULL);
  if (is_over(file, access.is_collective(), error)) return error;
  if (error != NC_NOERR && (!access.is_collective() || file.ranks().size() == 1)) return error;
  return access.is_collective() ? transfer_together(file, access, error) : transfer_alone(file, access);
}

}  // namespace interpose
