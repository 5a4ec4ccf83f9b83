// SPDX-License-Identifier: BSD-3-Clause
// Definitions: the mirror accepts or refuses them; what it accepts is noted for the home server.
#include <interpose/pnetcdf/engine/beside.hpp>
#include <interpose/pnetcdf/engine/file_table.hpp>
#include <interpose/pnetcdf/engine/functions.hpp>
#include <interpose/pnetcdf/engine/safe_mode.hpp>
#include <interpose/pnetcdf/engine/session.hpp>

#include <utility>

namespace interpose {

namespace {

using staging::Definition;
using staging::DefinitionKind;

/// Notes a definition that the mirror accepted; in data mode, where native PnetCDF writes it to the file at once, root
/// has it carried out. Only root, as natively, learns of a failure in that.
int note(File &file, Definition definition) {
  if (file.in_define_mode) {
    file.log(std::move(definition));
    return NC_NOERR;
  }
  file.count_header_written();
  if (!file.ranks().is_root()) return NC_NOERR;
  staging::AmendArgs args;
  args.file = file.token();
  args.definitions.push_back(std::move(definition));
  return file.code_of(Session::get().client()->amend(args), "changing the header", NC_EWRITE);
}

Definition make(DefinitionKind kind, int id, const char *name) {
  Definition definition;
  definition.kind = kind;
  definition.varid = id;
  if (name != nullptr) definition.name = name;
  return definition;
}

/// The attribute as the mirror stored it: conversions, and what takes the place of values out of range, are native.
Definition stored_attribute(const File &file, int varid, const char *name) {
  Definition definition = make(DefinitionKind::kPutAtt, varid, name);
  MPI_Offset length = 0;
  nc_type type = NC_NAT;
  ncmpi_inq_att(file.id(), varid, name, &type, &length);
  definition.type = type;
  definition.length = length;
  const auto size = static_cast<std::size_t>(length) * size_of(native_element(type));
  definition.value.resize(size);
  if (size > 0) ncmpi_get_att(file.id(), varid, name, definition.value.data());
  return definition;
}

}  // namespace

int on_def_dim(File &file, const char *name, MPI_Offset length, int *dimidp) {
  if (int error = agree_on_def_dim(file, name, length)) return error;
  const int error = ncmpi_def_dim(file.id(), name, length, dimidp);
  if (error != NC_NOERR || file.is_native()) return error;
  Definition definition = make(DefinitionKind::kDefDim, -1, name);
  definition.length = length;
  return note(file, std::move(definition));
}

int on_def_var(File &file, const char *name, nc_type type, int ndims, const int *dimids, int *varidp) {
  if (int error = agree_on_def_var(file, name, type, ndims, dimids)) return error;
  const int error = ncmpi_def_var(file.id(), name, type, ndims, dimids, varidp);
  if (error != NC_NOERR || file.is_native()) return error;
  Definition definition = make(DefinitionKind::kDefVar, -1, name);
  definition.type = type;
  if (ndims > 0) definition.dims.assign(dimids, dimids + ndims);
  return note(file, std::move(definition));
}

int on_rename_dim(File &file, int dimid, const char *name) {
  if (int error = agree_on_rename_dim(file, dimid, name)) return error;
  const int error = ncmpi_rename_dim(file.id(), dimid, name);
  if (error != NC_NOERR || file.is_native()) return error;
  Definition definition = make(DefinitionKind::kRenameDim, dimid, nullptr);
  definition.new_name = name;
  return note(file, std::move(definition));
}

int on_rename_var(File &file, int varid, const char *name) {
  if (int error = agree_on_rename_var(file, varid, name)) return error;
  const int error = ncmpi_rename_var(file.id(), varid, name);
  if (error != NC_NOERR || file.is_native()) return error;
  Definition definition = make(DefinitionKind::kRenameVar, varid, nullptr);
  definition.new_name = name;
  return note(file, std::move(definition));
}

int on_rename_att(File &file, int varid, const char *name, const char *new_name) {
  if (int error = agree_on_rename_att(file, varid, name, new_name)) return error;
  const int error = ncmpi_rename_att(file.id(), varid, name, new_name);
  if (error != NC_NOERR || file.is_native()) return error;
  Definition definition = make(DefinitionKind::kRenameAtt, varid, name);
  definition.new_name = new_name;
  return note(file, std::move(definition));
}

namespace {

/// An attribute that the mirror stored as it was given.
Definition text_attribute(const AttributeAccess &attribute) {
  Definition definition = make(DefinitionKind::kPutAtt, attribute.varid, attribute.name);
  const auto *text = static_cast<const std::byte *>(attribute.values);
  definition.type = NC_CHAR;
  definition.length = attribute.length;
  definition.value.assign(text, text + attribute.length);
  return definition;
}

/// Notes an attribute, with what the mirror made of it: `error`.
template <class Describe> int note_attribute(File &file, int error, Describe describe) {
  if (file.is_native() || (error != NC_NOERR && error != NC_ERANGE)) return error;
  if (file.in_define_mode && !file.ranks().is_root()) return error;
  const int noted = note(file, describe());
  return error != NC_NOERR ? error : noted;
}

}  // namespace

int attribute_was_put(File &file, const AttributeAccess &attribute, int error) {
  return note_attribute(file, error, [&] {
    return attribute.element == MPI_CHAR ? text_attribute(attribute)
                                         : stored_attribute(file, attribute.varid, attribute.name);
  });
}

int on_copy_att(File &in, int varid_in, const char *name, int ncid_out, int varid_out) {
  File *out = files().find(ncid_out);
  if (out == nullptr) return NC_EBADID;
  if (int error = agree_on_copy_att(in, varid_in, name, *out, varid_out)) return error;
  const int error = ncmpi_copy_att(in.id(), varid_in, name, out->id(), varid_out);
  return note_attribute(*out, error, [&] { return stored_attribute(*out, varid_out, name); });
}

int on_del_att(File &file, int varid, const char *name) {
  if (int error = agree_on_del_att(file, varid, name)) return error;
  const int error = ncmpi_del_att(file.id(), varid, name);
  if (error != NC_NOERR || file.is_native()) return error;
  return note(file, make(DefinitionKind::kDelAtt, varid, name));
}

// --- fill modes --------------------------------------------------------------------------------------------------------------

int on_set_fill(File &file, int fill_mode, int *old_mode) {
  if (int error = agree_on_set_fill(file, fill_mode)) return error;
  const int error = ncmpi_set_fill(file.id(), fill_mode, old_mode);
  if (error != NC_NOERR || file.is_native()) return error;
  file.fill_mode = fill_mode;
  file.set_fill_modes(fill_mode == NC_NOFILL);
  Definition definition = make(DefinitionKind::kSetFill, -1, nullptr);
  definition.type = fill_mode;
  return note(file, std::move(definition));
}

int on_def_var_fill(File &file, int varid, int no_fill, const void *fill_value) {
  if (int error = agree_on_def_var_fill(file, varid, no_fill, fill_value)) return error;
  const int error = ncmpi_def_var_fill(file.id(), varid, no_fill, fill_value);
  if (error != NC_NOERR || file.is_native()) return error;
  file.set_fill_mode(varid, no_fill != 0);
  Definition definition = make(DefinitionKind::kDefVarFill, varid, nullptr);
  definition.type = no_fill;
  if (fill_value != nullptr) {
    const auto *bytes = static_cast<const std::byte *>(fill_value);
    definition.length = 1;
    definition.value.assign(bytes, bytes + file.variable(varid)->layout.element_bytes);
  }
  return note(file, std::move(definition));
}

namespace {

/// Native PnetCDF's checks; where those would let it write out of bounds, the code that it means to give.
int check_fill_record(File &file, int varid) {
  if (!file.writable) return NC_EPERM;
  if (file.in_define_mode) return NC_EINDEFINE;
  if (varid == NC_GLOBAL) return NC_EGLOBAL;
  const Variable *variable = file.variable(varid);
  if (variable == nullptr) return NC_ENOTVAR;
  if (!variable->layout.is_record) return NC_ENOTRECVAR;
  if (file.safe && file.independent) return NC_EINDEP;
  const bool has_value = ncmpi_inq_attid(file.id(), varid, "_FillValue", nullptr) == NC_NOERR;
  return file.no_fill(varid) && !has_value ? NC_ENOTFILL : NC_NOERR;
}

}  // namespace

int on_fill_var_rec(File &file, int varid, MPI_Offset record) {
  if (file.is_native()) return write_natively(file, [&] { return ncmpi_fill_var_rec(file.id(), varid, record); });
  const int error = check_fill_record(file, varid);
  if (int differs = agree_on_fill_var_rec(file, varid, record, error)) return differs;
  if (error != NC_NOERR) return error;
  file.note_unsettled();
  const auto records = file.ranks().max(record + 1);
  file.ranks().await_notes();
  const int status = file.ranks().from_root([&] {
    return file.code_of(Session::get().client()->fill_record({file.token(), varid, record}), "filling a record",
                        NC_EWRITE);
  });
  if (status == NC_NOERR) file.raise_records(records);
  return status;
}

}  // namespace interpose
