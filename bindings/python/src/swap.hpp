// SPDX-License-Identifier: BSD-3-Clause
// Arrays of numbers between memory and XDR's order of bytes, about as fast as memcpy.
#pragma once

#include "errors.hpp"

namespace nessie_python {

void bind_swap(py::module_ &module);

}  // namespace nessie_python
