// SPDX-License-Identifier: BSD-3-Clause
// What native PnetCDF does in safe mode before it carries a definition out: the mirror, which is one process's, cannot.
// NC_NOERR: the mirror may be asked, and tells all ranks the same. Otherwise the code that this rank's caller gets.
#pragma once

#include <interpose/pnetcdf/engine/file.hpp>

namespace interpose {

/// The arguments of ncmpi_put_att*.
struct AttributeAccess {
  int varid;
  const char *name;
  nc_type type;
  MPI_Offset length;
  const void *values;
  MPI_Datatype element;  ///< of `values`; MPI_DATATYPE_NULL: as it is in the file
};

int agree_on_def_dim(File &file, const char *name, MPI_Offset length);
int agree_on_def_var(File &file, const char *name, nc_type type, int ndims, const int *dimids);
int agree_on_rename_dim(File &file, int dimid, const char *name);
int agree_on_rename_var(File &file, int varid, const char *name);
int agree_on_rename_att(File &file, int varid, const char *name, const char *new_name);
int agree_on_put_att(File &file, const AttributeAccess &attribute);
int agree_on_copy_att(File &in, int varid_in, const char *name, File &out, int varid_out);
int agree_on_del_att(File &file, int varid, const char *name);
int agree_on_set_fill(File &file, int fill_mode);
int agree_on_def_var_fill(File &file, int varid, int no_fill, const void *fill_value);
int agree_on_enddef(File &file, const MPI_Offset (&layout)[4]);
/// `error`: what native PnetCDF says of the file and the variable.
int agree_on_fill_var_rec(File &file, int varid, MPI_Offset record, int error);

}  // namespace interpose
