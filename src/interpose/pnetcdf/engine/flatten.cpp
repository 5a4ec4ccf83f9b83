// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/flatten.hpp>

#include <interpose/pnetcdf/engine/type_contents.hpp>

#include <algorithm>
#include <span>

namespace interpose {

namespace {

using Runs = std::vector<ByteRun>;

/// A type, and how far from one to the next.
struct Flat {
  Runs runs;
  std::int64_t extent = 0;
  bool known = true;
  /// Many of them are one run.
  bool is_solid() const { return runs.size() == 1 && runs.front().size == extent; }
};

void push(Runs &runs, ByteRun run) {
  if (!runs.empty() && runs.back().begin + runs.back().size == run.begin)
    runs.back().size += run.size;
  else
    runs.push_back(run);
}

/// `count` of them, one after the other.
void append(Runs &runs, const Flat &inner, std::int64_t displacement, std::int64_t count) {
  if (count <= 0 || inner.runs.empty()) return;
  if (inner.is_solid()) return push(runs, {displacement + inner.runs.front().begin, count * inner.extent});
  for (std::int64_t i = 0; i < count; ++i)
    for (const ByteRun &run : inner.runs) push(runs, {displacement + i * inner.extent + run.begin, run.size});
}

// --- arrays ----------------------------------------------------------------------------------------------------------------

/// A dimension of an array, and what is selected of it.
struct Axis {
  std::int64_t size = 1;
  std::vector<ByteRun> selected;  ///< in elements
};

/// `position`: of what the outer axes have selected.
void append_array(Runs &runs, const Flat &inner, std::span<const Axis> axes, std::int64_t position) {
  if (axes.empty()) return append(runs, inner, position * inner.extent, 1);
  const Axis &axis = axes.front();
  for (const auto &[begin, size] : axis.selected) {
    const auto first = position * axis.size + begin;
    if (axes.size() == 1) {
      append(runs, inner, first * inner.extent, size);
      continue;
    }
    for (std::int64_t i = 0; i < size; ++i) append_array(runs, inner, axes.subspan(1), first + i);
  }
}

/// `axes` are in the order of the constructor's arguments.
void append_array(Runs &runs, const Flat &inner, std::vector<Axis> axes, int order) {
  if (order == MPI_ORDER_FORTRAN) std::ranges::reverse(axes);
  append_array(runs, inner, std::span<const Axis>(axes), 0);
}

void append_subarray(Runs &runs, const Flat &inner, const std::vector<int> &arguments) {
  const auto dimensions = static_cast<std::size_t>(arguments[0]);
  const auto *sizes = arguments.data() + 1, *subsizes = sizes + dimensions, *starts = subsizes + dimensions;
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < dimensions; ++i) axes.push_back({sizes[i], {{starts[i], subsizes[i]}}});
  append_array(runs, inner, std::move(axes), starts[dimensions]);
}

/// What process `coordinate` of `processes` has of a dimension.
Axis distribute(int size, int distribution, int argument, int processes, int coordinate) {
  if (distribution == MPI_DISTRIBUTE_NONE) return {size, {{0, size}}};
  const bool is_default = argument == MPI_DISTRIBUTE_DFLT_DARG, is_cyclic = distribution == MPI_DISTRIBUTE_CYCLIC;
  const std::int64_t block = is_default ? (is_cyclic ? 1 : (size + processes - 1) / processes) : argument;
  Axis axis{size, {}};
  for (std::int64_t begin = coordinate * block; begin < size; begin += block * processes) {
    axis.selected.push_back({begin, std::min(block, size - begin)});
    if (!is_cyclic) break;
  }
  return axis;
}

void append_darray(Runs &runs, const Flat &inner, const std::vector<int> &arguments) {
  const auto dimensions = static_cast<std::size_t>(arguments[2]);
  const auto *sizes = arguments.data() + 3, *distributions = sizes + dimensions, *of_them = distributions + dimensions,
             *processes = of_them + dimensions;
  std::vector<Axis> axes(dimensions);
  int rank = arguments[1];
  for (auto i = dimensions; i-- > 0;) {  // processes are in C order, whatever the array's
    axes[i] = distribute(sizes[i], distributions[i], of_them[i], processes[i], rank % processes[i]);
    rank /= processes[i];
  }
  append_array(runs, inner, std::move(axes), processes[dimensions]);
}

// --- all ---------------------------------------------------------------------------------------------------------------------

Flat flat(MPI_Datatype type);

void append_struct(Flat &made, const TypeContents &contents) {
  for (std::size_t i = 0; i < contents.types.size(); ++i) {
    const Flat inner = flat(contents.types[i]);
    made.known = made.known && inner.known;
    append(made.runs, inner, contents.addresses[i], contents.integers[1 + i]);
  }
}

void append_blocks(Flat &made, const TypeContents &contents, const Flat &inner) {
  const auto *numbers = contents.integers.data();
  const auto count = numbers[0];
  for (int i = 0; i < count; ++i) switch (contents.combiner) {
      case MPI_COMBINER_VECTOR: append(made.runs, inner, inner.extent * i * numbers[2], numbers[1]); break;
      case MPI_COMBINER_HVECTOR: append(made.runs, inner, i * contents.addresses[0], numbers[1]); break;
      case MPI_COMBINER_INDEXED: append(made.runs, inner, inner.extent * numbers[1 + count + i], numbers[1 + i]); break;
      case MPI_COMBINER_HINDEXED: append(made.runs, inner, contents.addresses[i], numbers[1 + i]); break;
      case MPI_COMBINER_INDEXED_BLOCK: append(made.runs, inner, inner.extent * numbers[2 + i], numbers[1]); break;
      default: append(made.runs, inner, contents.addresses[i], numbers[1]);  // HINDEXED_BLOCK
    }
}

void append_derived(Flat &made, const TypeContents &contents) {
  const Flat inner = flat(contents.types[0]);
  made.known = inner.known;
  switch (contents.combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED: return append(made.runs, inner, 0, 1);
    case MPI_COMBINER_CONTIGUOUS: return append(made.runs, inner, 0, contents.integers[0]);
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR:
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK: return append_blocks(made, contents, inner);
    case MPI_COMBINER_SUBARRAY: return append_subarray(made.runs, inner, contents.integers);
    case MPI_COMBINER_DARRAY: return append_darray(made.runs, inner, contents.integers);
    default: made.known = false;
  }
}

Flat flat(MPI_Datatype type) {
  const TypeContents contents(type);
  Flat made;
  MPI_Aint lower = 0, extent = 0;
  MPI_Type_get_extent(type, &lower, &extent);
  made.extent = extent;
  if (contents.is_named() || contents.is_parametrised()) {
    int size = 0;
    MPI_Type_size(type, &size);
    if (size > 0) made.runs.push_back({0, size});
  } else if (contents.combiner == MPI_COMBINER_STRUCT) {
    append_struct(made, contents);
  } else {
    append_derived(made, contents);
  }
  return made;
}

/// Whether MPI says the same of the type, as far as it says anything.
bool is_plausible(MPI_Datatype type, const Runs &runs) {
  MPI_Count size = 0, lower = 0, extent = 0;
  MPI_Type_size_x(type, &size);
  MPI_Type_get_true_extent_x(type, &lower, &extent);
  std::int64_t total = 0;
  for (const ByteRun &run : runs) total += run.size;
  if (runs.empty() || total != size) return total == size;
  const auto first = std::ranges::min(runs, {}, &ByteRun::begin);
  const auto last = std::ranges::max(runs, {}, [](const ByteRun &run) { return run.begin + run.size; });
  return first.begin == lower && last.begin + last.size == lower + extent;
}

}  // namespace

std::optional<std::vector<ByteRun>> flatten(MPI_Datatype type) {
  Flat made = flat(type);
  if (!made.known || !is_plausible(type, made.runs)) return std::nullopt;
  return std::move(made.runs);
}

}  // namespace interpose
