// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/datatype.hpp>

#include <interpose/pnetcdf/engine/type_contents.hpp>

#include <numeric>
#include <vector>

namespace interpose {

namespace {

MPI_Datatype c_equivalent(MPI_Datatype type) {
  if (type == MPI_CHARACTER) return MPI_CHAR;
  if (type == MPI_INTEGER1) return MPI_SIGNED_CHAR;
  if (type == MPI_INTEGER2) return MPI_SHORT;
  if (type == MPI_INTEGER || type == MPI_INTEGER4) return MPI_INT;
  if (type == MPI_INTEGER8) return MPI_LONG;
  if (type == MPI_REAL || type == MPI_REAL4) return MPI_FLOAT;
  if (type == MPI_REAL8 || type == MPI_DOUBLE_PRECISION) return MPI_DOUBLE;
  return type;
}

int decode_named(MPI_Datatype type, Datatype &decoded) {
  decoded.element = element_of(c_equivalent(type));
  if (decoded.element == Element::kOther && type != MPI_BYTE) return NC_EUNSPTETYPE;
  decoded.named = true;
  decoded.elements = 1;
  return NC_NOERR;
}

int decode_struct(const TypeContents &contents, Datatype &decoded) {
  for (std::size_t i = 0; i < contents.types.size(); ++i) {
    Datatype member;
    if (int error = decode(contents.types[i], member)) return error;
    if (!member.named || member.elements == 0) continue;
    if (decoded.named && member.element != decoded.element) return NC_EMULTITYPES;
    decoded.named = true;
    decoded.element = member.element;
    decoded.elements += member.elements * contents.integers[1 + i];
  }
  decoded.contiguous = false;
  return NC_NOERR;
}

/// How many elements of the old type the new one has.
std::int64_t blocks_of(const TypeContents &contents, MPI_Datatype type, std::int64_t inner_elements) {
  const auto &numbers = contents.integers;
  switch (contents.combiner) {
    case MPI_COMBINER_CONTIGUOUS: return numbers[0];
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR:
    case MPI_COMBINER_INDEXED_BLOCK: return std::int64_t{numbers[0]} * numbers[1];
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED:
      return std::accumulate(numbers.begin() + 1, numbers.begin() + 1 + numbers[0], std::int64_t{0});
    case MPI_COMBINER_SUBARRAY: {
      const auto sizes = numbers.begin() + 1 + numbers[0];
      return std::accumulate(sizes, sizes + numbers[0], std::int64_t{1}, std::multiplies<>());
    }
    case MPI_COMBINER_DARRAY: {
      int size = 0, inner_size = 0;
      MPI_Type_size(type, &size);
      MPI_Type_size(contents.types[0], &inner_size);
      return inner_size == 0 || inner_elements == 0 ? 0 : size / inner_size;
    }
    default: return 1;
  }
}

bool keeps_contiguity(int combiner) { return combiner == MPI_COMBINER_CONTIGUOUS || combiner == MPI_COMBINER_DUP; }

bool is_known(int combiner) {
  switch (combiner) {
    case MPI_COMBINER_CONTIGUOUS:
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR:
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_SUBARRAY:
    case MPI_COMBINER_DARRAY:
    case MPI_COMBINER_RESIZED: return true;
    default: return false;
  }
}

}  // namespace

int decode(MPI_Datatype type, Datatype &decoded) {
  const TypeContents contents(type);
  if (contents.is_parametrised()) return NC_EUNSPTETYPE;
  if (contents.is_named()) return decode_named(type, decoded);
  if (contents.combiner == MPI_COMBINER_STRUCT) return decode_struct(contents, decoded);
  if (!is_known(contents.combiner)) return NC_NOERR;  // of no elements, so that it mismatches the access
  if (int error = decode(contents.types[0], decoded)) return error;
  decoded.elements *= blocks_of(contents, type, decoded.elements);
  decoded.contiguous = decoded.contiguous && keeps_contiguity(contents.combiner);
  return NC_NOERR;
}

}  // namespace interpose
