// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/type_contents.hpp>

#include <cstddef>

namespace interpose {

TypeContents::TypeContents(MPI_Datatype type) {
  int integer_count = 0, address_count = 0, type_count = 0;
  MPI_Type_get_envelope(type, &integer_count, &address_count, &type_count, &combiner);
  if (is_named() || is_parametrised()) return;
  integers.resize(static_cast<std::size_t>(integer_count));
  addresses.resize(static_cast<std::size_t>(address_count));
  types.resize(static_cast<std::size_t>(type_count));
  MPI_Type_get_contents(type, integer_count, address_count, type_count, integers.data(), addresses.data(),
                        types.data());
}

TypeContents::~TypeContents() {
  for (MPI_Datatype &type : types) {
    int unused = 0, inner = MPI_COMBINER_NAMED;
    MPI_Type_get_envelope(type, &unused, &unused, &unused, &inner);
    if (inner != MPI_COMBINER_NAMED) MPI_Type_free(&type);
  }
}

}  // namespace interpose
