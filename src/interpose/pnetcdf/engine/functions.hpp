// SPDX-License-Identifier: BSD-3-Clause
// What the ncmpi_ functions do on staged files. The generated engine_entries.cpp has the hundreds that only ask the
// mirror or move data; those here do more. Each has the arguments, but for the file in the place of its id, and gives
// the results and codes, of the native function whose name it bears.
#pragma once

#include <interpose/pnetcdf/engine_abi.h>
#include <interpose/pnetcdf/engine/access.hpp>
#include <interpose/pnetcdf/engine/file.hpp>

#include <mpi.h>
#include <pnetcdf.h>

namespace interpose {

struct AttributeAccess;

// lifecycle.cpp
int on_create(MPI_Comm comm, const char *path, int cmode, MPI_Info info, int *ncidp);
int on_open(MPI_Comm comm, const char *path, int omode, MPI_Info info, int *ncidp);
int on_close(File &file);
int on_abort(File &file);
int on_delete(const char *path, MPI_Info info);

// modes.cpp
int on_enddef(File &file);
int on__enddef(File &file, MPI_Offset h_minfree, MPI_Offset v_align, MPI_Offset v_minfree, MPI_Offset r_align);
int on_redef(File &file);
int on_sync(File &file);
int on_flush(File &file);
int on_sync_numrecs(File &file);
int on_begin_indep_data(File &file);
int on_end_indep_data(File &file);

// definitions.cpp
int on_def_dim(File &file, const char *name, MPI_Offset length, int *dimidp);
int on_def_var(File &file, const char *name, nc_type type, int ndims, const int *dimids, int *varidp);
int on_rename_dim(File &file, int dimid, const char *name);
int on_rename_var(File &file, int varid, const char *name);
int on_rename_att(File &file, int varid, const char *name, const char *new_name);
int on_copy_att(File &in, int varid_in, const char *name, int ncid_out, int varid_out);
int on_del_att(File &file, int varid, const char *name);
int on_set_fill(File &file, int fill_mode, int *old_mode);
int on_def_var_fill(File &file, int varid, int no_fill, const void *fill_value);
int on_fill_var_rec(File &file, int varid, MPI_Offset record);
/// After ncmpi_put_att* went to the file's id with result `error`; returns what the program gets.
int attribute_was_put(File &file, const AttributeAccess &attribute, int error);

// inquiries.cpp
int on_inq_dim(File &file, int dimid, char *name, MPI_Offset *length);
int on_inq_dimlen(File &file, int dimid, MPI_Offset *length);
int on_inq_var_fill(File &file, int varid, int *no_fill, void *fill_value);
int on_inq_num_rec_vars(File &file, int *count);
int on_inq_num_fix_vars(File &file, int *count);
int on_inq_header_size(File &file, MPI_Offset *size);
int on_inq_header_extent(File &file, MPI_Offset *extent);
int on_inq_path(File &file, int *length, char *path);
int on_inq_put_size(File &file, MPI_Offset *size);
int on_inq_get_size(File &file, MPI_Offset *size);
int on_inq_striping(File &file, int *unit_bytes, int *count);
int on_inq_file_info(File &file, MPI_Info *info);
int on_get_file_info(File &file, MPI_Info *info);
int on_inq_files_opened(int *num, int *ncids);

// nonblocking.cpp
int on_wait(File &file, int count, int ids[], int statuses[]);
int on_wait_all(File &file, int count, int ids[], int statuses[]);
int on_cancel(File &file, int count, int *ids, int *statuses);
int on_inq_nreqs(File &file, int *count);
int on_buffer_attach(File &file, MPI_Offset size);
int on_buffer_detach(File &file);
int on_inq_buffer_usage(File &file, MPI_Offset *usage);
int on_inq_buffer_size(File &file, MPI_Offset *size);

/// Inside a catch (...): the code that the program gets, because no exception may reach it.
int code_of_exception(const char *function);

/// The functions in the order of functions.h.
extern const nessie_function kEngineFunctions[];

}  // namespace interpose
