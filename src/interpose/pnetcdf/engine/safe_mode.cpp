// SPDX-License-Identifier: BSD-3-Clause
// Design notes. Where all ranks have the same arguments, native PnetCDF finds the same wrong in them on every mirror,
// so that nothing needs to be checked here. Where they differ nothing is carried out, and what is wrong with a rank's
// own is found without carrying it out: by calls to the mirror that fail in any case, as late as can be.
#include <interpose/pnetcdf/engine/safe_mode.hpp>

#include <interpose/pnetcdf/engine/arguments.hpp>

#include <algorithm>
#include <cstring>
#include <limits>

namespace interpose {

namespace {

bool is_variable(File &file, int varid) { return file.variable(varid) != nullptr; }
bool is_variable_or_global(File &file, int varid) { return varid == NC_GLOBAL || is_variable(file, varid); }

/// A name by which something is looked up.
int check_known_name(const char *name) {
  if (name == nullptr || *name == '\0') return NC_EBADNAME;
  return std::strlen(name) > NC_MAX_NAME ? NC_EMAXNAME : NC_NOERR;
}

/// A name that something is to have. No attribute is called "/", so that none is renamed.
int check_new_name(const File &file, const char *name) {
  const int error = ncmpi_rename_att(file.id(), NC_GLOBAL, "/", name);
  return error == NC_ENOTATT ? NC_NOERR : error;
}

std::span<const std::byte> bytes_at(const void *address, std::size_t size_bytes) {
  return {static_cast<const std::byte *>(address), address == nullptr ? 0 : size_bytes};
}

// --- dimensions and variables --------------------------------------------------------------------------------------------

MPI_Offset longest_dimension(int format) {
  if (format >= 5) return std::numeric_limits<MPI_Offset>::max();
  return MPI_Offset{format == 2 ? NC_MAX_UINT : NC_MAX_INT} - 3;
}

int check_def_dim(File &file, const char *name, MPI_Offset length) {
  int unlimited = -1;
  if (!file.in_define_mode) return NC_ENOTINDEFINE;
  if (int error = check_new_name(file, name)) return error;
  if (length < 0 || length > longest_dimension(file.format)) return NC_EDIMSIZE;
  ncmpi_inq_unlimdim(file.id(), &unlimited);
  if (length == NC_UNLIMITED && unlimited >= 0) return NC_EUNLIMIT;
  return ncmpi_inq_dimid(file.id(), name, nullptr) == NC_NOERR ? NC_ENAMEINUSE : NC_NOERR;
}

/// Native PnetCDF looks at the dimensions last.
int check_def_var(File &file, const char *name, nc_type type, int ndims, const int *dimids) {
  const std::vector<int> none(static_cast<std::size_t>(std::max(ndims, 1)), -1);
  int varid = -1, dimensions = 0;
  const int error = ncmpi_def_var(file.id(), name, type, ndims == 0 ? 1 : ndims, none.data(), &varid);
  if (error != NC_EBADDIM) return error;
  if (ndims > 0 && dimids == nullptr) return NC_EINVAL;
  ncmpi_inq_ndims(file.id(), &dimensions);
  const auto is_bad = [dimensions](int dimid) { return dimid < 0 || dimid >= dimensions; };
  return std::any_of(dimids, dimids + ndims, is_bad) ? NC_EBADDIM : NC_NOERR;
}

int check_rename_dim(File &file, int dimid, const char *name) {
  int dimensions = 0, other = dimid;
  if (!file.writable) return NC_EPERM;
  if (int error = check_new_name(file, name)) return error;
  ncmpi_inq_ndims(file.id(), &dimensions);
  if (dimid < 0 || dimid >= dimensions) return NC_EBADDIM;
  return ncmpi_inq_dimid(file.id(), name, &other) == NC_NOERR && other != dimid ? NC_ENAMEINUSE : NC_NOERR;
}

int check_rename_var(File &file, int varid, const char *name) {
  if (!file.writable) return NC_EPERM;
  if (varid == NC_GLOBAL) return NC_EGLOBAL;
  if (!is_variable(file, varid)) return NC_ENOTVAR;
  if (int error = check_new_name(file, name)) return error;
  return ncmpi_inq_varid(file.id(), name, nullptr) == NC_NOERR ? NC_ENAMEINUSE : NC_NOERR;
}

}  // namespace

int agree_on_def_dim(File &file, const char *name, MPI_Offset length) {
  if (!file.is_safe()) return NC_NOERR;
  Arguments arguments;
  arguments.add_name(NC_EMULTIDEFINE_DIM_NAME, name).add(NC_EMULTIDEFINE_DIM_SIZE, length);
  return compare(file, arguments, [&] { return check_def_dim(file, name, length); });
}

int agree_on_def_var(File &file, const char *name, nc_type type, int ndims, const int *dimids) {
  if (!file.is_safe()) return NC_NOERR;
  const auto dimensions = static_cast<std::size_t>(std::max(ndims, 0));
  Arguments arguments;
  arguments.add_name(NC_EMULTIDEFINE_VAR_NAME, name)
      .add(NC_EMULTIDEFINE_VAR_TYPE, type)
      .add(NC_EMULTIDEFINE_VAR_NDIMS, ndims)
      .add(NC_EMULTIDEFINE_VAR_DIMIDS, bytes_at(dimids, dimensions * sizeof *dimids));
  return compare(file, arguments, [&] { return check_def_var(file, name, type, ndims, dimids); });
}

int agree_on_rename_dim(File &file, int dimid, const char *name) {
  if (!file.is_safe()) return NC_NOERR;
  Arguments arguments;
  arguments.add_name(NC_EMULTIDEFINE_DIM_NAME, name).add(NC_EMULTIDEFINE_FNC_ARGS, dimid);
  return compare(file, arguments, [&] { return check_rename_dim(file, dimid, name); });
}

int agree_on_rename_var(File &file, int varid, const char *name) {
  if (!file.is_safe()) return NC_NOERR;
  Arguments arguments;
  arguments.add_name(NC_EMULTIDEFINE_VAR_NAME, name).add(NC_EMULTIDEFINE_FNC_ARGS, varid);
  return compare(file, arguments, [&] { return check_rename_var(file, varid, name); });
}

// --- attributes --------------------------------------------------------------------------------------------------------------

namespace {

MPI_Datatype element_of(const AttributeAccess &attribute) {
  if (attribute.element != MPI_DATATYPE_NULL) return attribute.element;
  return attribute.type == NC_CHAR ? MPI_CHAR : MPI_BYTE;  // whichever number it is
}

std::size_t element_bytes(const AttributeAccess &attribute) {
  int size = 0;
  if (attribute.element == MPI_DATATYPE_NULL) return size_of(native_element(attribute.type));
  MPI_Type_size(attribute.element, &size);
  return static_cast<std::size_t>(size);
}

int check_put_att(File &file, const AttributeAccess &attribute) {
  const auto &[varid, name, type, length, values, element] = attribute;
  if (!file.writable) return NC_EPERM;
  if (!is_variable_or_global(file, varid)) return NC_ENOTVAR;
  if (int error = check_new_name(file, name)) return error;
  if (type <= 0 || type > NC_UINT64) return NC_EBADTYPE;
  if (file.format < 5 && type > NC_DOUBLE) return NC_ESTRICTCDF2;
  if ((type == NC_CHAR) != (element_of(attribute) == MPI_CHAR)) return NC_ECHAR;
  if (length > 0 && values == nullptr) return NC_EINVAL;
  return length < 0 || (length > NC_MAX_INT && file.format < 5) ? NC_EINVAL : NC_NOERR;
}

int check_rename_att(File &file, int varid, const char *name, const char *new_name) {
  if (!file.writable) return NC_EPERM;
  if (!is_variable_or_global(file, varid)) return NC_ENOTVAR;
  if (int error = check_known_name(name)) return error;
  return check_new_name(file, new_name);
}

int check_copy_att(File &in, int varid_in, const char *name, File &out, int varid_out) {
  int variables = 0;
  if (!out.writable) return NC_EPERM;
  ncmpi_inq_nvars(in.id(), &variables);  // which may be native
  if (varid_in != NC_GLOBAL && (varid_in < 0 || varid_in >= variables)) return NC_ENOTVAR;
  if (!is_variable_or_global(out, varid_out)) return NC_ENOTVAR;
  return check_known_name(name);
}

int check_del_att(File &file, int varid, const char *name) {
  if (!file.writable) return NC_EPERM;
  if (!file.in_define_mode) return NC_ENOTINDEFINE;
  if (!is_variable_or_global(file, varid)) return NC_ENOTVAR;
  return check_known_name(name);
}

}  // namespace

int agree_on_put_att(File &file, const AttributeAccess &attribute) {
  if (!file.is_safe()) return NC_NOERR;
  const auto length = static_cast<std::size_t>(std::max<MPI_Offset>(attribute.length, 0));
  Arguments arguments;
  arguments.add_name(NC_EMULTIDEFINE_ATTR_NAME, attribute.name)
      .add(NC_EMULTIDEFINE_FNC_ARGS, attribute.varid)
      .add(NC_EMULTIDEFINE_ATTR_TYPE, attribute.type)
      .add(NC_EMULTIDEFINE_ATTR_LEN, attribute.length)
      .add(NC_EMULTIDEFINE_ATTR_VAL, bytes_at(attribute.values, length * element_bytes(attribute)));
  return compare(file, arguments, [&] { return check_put_att(file, attribute); });
}

int agree_on_rename_att(File &file, int varid, const char *name, const char *new_name) {
  if (!file.is_safe()) return NC_NOERR;
  Arguments arguments;
  arguments.add_name(NC_EMULTIDEFINE_ATTR_NAME, name)
      .add_name(NC_EMULTIDEFINE_ATTR_NAME, new_name)
      .add(NC_EMULTIDEFINE_FNC_ARGS, varid);
  return compare(file, arguments, [&] { return check_rename_att(file, varid, name, new_name); });
}

// What is copied may come from another file on each rank, so that there the mirrors may disagree.
int agree_on_copy_att(File &in, int varid_in, const char *name, File &out, int varid_out) {
  if (!out.is_safe()) return NC_NOERR;
  const auto check = [&] { return check_copy_att(in, varid_in, name, out, varid_out); };
  Arguments arguments;
  arguments.add_name(NC_EMULTIDEFINE_ATTR_NAME, name)
      .add(NC_EMULTIDEFINE_FNC_ARGS, varid_in)
      .add(NC_EMULTIDEFINE_FNC_ARGS, varid_out);
  if (int error = compare(out, arguments, check)) return error;
  if (&in == &out) return NC_NOERR;
  if (int error = least(out, check())) return error;
  return least(out, ncmpi_inq_attid(in.id(), varid_in, name, nullptr));
}

int agree_on_del_att(File &file, int varid, const char *name) {
  if (!file.is_safe()) return NC_NOERR;
  Arguments arguments;
  arguments.add_name(NC_EMULTIDEFINE_ATTR_NAME, name).add(NC_EMULTIDEFINE_FNC_ARGS, varid);
  return compare(file, arguments, [&] { return check_del_att(file, varid, name); });
}

// --- fill modes, and the end ---------------------------------------------------------------------------------------------

int agree_on_set_fill(File &file, int fill_mode) {
  if (!file.is_safe()) return NC_NOERR;
  if (!file.writable) return NC_EPERM;
  if (!file.in_define_mode) return NC_ENOTINDEFINE;
  Arguments arguments;
  arguments.add(NC_EMULTIDEFINE_FILL_MODE, fill_mode);
  return compare(file, arguments, [] { return NC_NOERR; });
}

int agree_on_def_var_fill(File &file, int varid, int no_fill, const void *fill_value) {
  if (!file.is_safe()) return NC_NOERR;
  const Variable *variable = file.variable(varid);
  const auto check = [&] {
    if (!file.in_define_mode) return NC_ENOTINDEFINE;
    if (varid == NC_GLOBAL) return NC_EGLOBAL;
    return variable == nullptr ? NC_ENOTVAR : NC_NOERR;
  };
  const auto bytes = static_cast<std::size_t>(variable == nullptr ? 0 : variable->layout.element_bytes);
  Arguments arguments;
  arguments.add(NC_EMULTIDEFINE_FNC_ARGS, varid)
      .add(NC_EMULTIDEFINE_FNC_ARGS, no_fill)
      .add(NC_EMULTIDEFINE_FNC_ARGS, fill_value == nullptr)
      .add(NC_EMULTIDEFINE_VAR_FILL_VALUE, bytes_at(fill_value, bytes));
  return compare(file, arguments, check, Verdict::kOwn);
}

int agree_on_fill_var_rec(File &file, int varid, MPI_Offset record, int error) {
  if (!file.is_safe()) return NC_NOERR;
  const bool only_fill_mode = error == NC_ENOTFILL;  // natively known after all have said what else is wrong
  const int code = only_fill_mode ? error : NC_EMULTIDEFINE_FNC_ARGS;
  Arguments arguments;
  arguments.add(code, varid).add(code, record);
  const int status = compare(
      file, arguments, [&] { return only_fill_mode ? NC_NOERR : error; }, Verdict::kOwn);
  return status != NC_NOERR && only_fill_mode ? error : status;
}

int agree_on_enddef(File &file, const MPI_Offset (&layout)[4]) {
  if (!file.is_safe()) return NC_NOERR;
  const bool is_wrong = std::any_of(std::begin(layout), std::end(layout), [](auto bytes) { return bytes < 0; });
  Arguments arguments;
  for (const auto bytes : layout) arguments.add(NC_EMULTIDEFINE_FNC_ARGS, bytes);
  return compare(file, arguments, [&] { return is_wrong ? NC_EINVAL : NC_NOERR; });
}

}  // namespace interpose
