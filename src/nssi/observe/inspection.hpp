// SPDX-License-Identifier: BSD-3-Clause
// Lets others ask a runtime what it has counted: the interface of inspect.x.
#pragma once

#include <nssi/nssi.hpp>

#include <memory>

namespace nssi {

/// Offers it. What is returned must outlive the runtime. kExists: the program offers something by that number itself.
Result<std::shared_ptr<void>> offer_inspection(Runtime &runtime);
bool is_inspection(const Interface &interface);

}  // namespace nssi
