// SPDX-License-Identifier: BSD-3-Clause
#include "swap.hpp"

#include "view.hpp"

#include <xdr/swap.hpp>

namespace nessie_python {
namespace {

/// InvalidArgument: they are not of one size, or no whole number of numbers.
void swap_copy(const py::object &to, std::size_t to_offset, const py::object &from, std::size_t from_offset,
               std::size_t size_bytes, std::size_t number_bytes) {
  const View target(to, View::kWritable), source(from);
  const auto fits = [&](const View &view, std::size_t offset) {
    return offset <= view.bytes().size() && size_bytes <= view.bytes().size() - offset;
  };
  if (!fits(target, to_offset) || !fits(source, from_offset) || (number_bytes != 4 && number_bytes != 8) ||
      size_bytes % number_bytes != 0)
    raise(Code::kInvalidArgument, "these bytes are not there, or are no whole number of numbers of 4 or 8 bytes");
  const auto &pattern = number_bytes == 8 ? xdr::kDoubleWordsPattern : xdr::kWordsPattern;
  std::optional<Released> released;
  if (size_bytes > kQuickBytes) released.emplace();
  xdr::swap_copy(target.bytes().data() + to_offset, source.bytes().data() + from_offset, size_bytes, pattern);
}

}  // namespace

void bind_swap(py::module_ &module) {
  module.def("swap_copy", &swap_copy, py::arg("to"), py::arg("to_offset"), py::arg("source"), py::arg("from_offset"),
             py::arg("size_bytes"), py::arg("number_bytes"));
}

}  // namespace nessie_python
