// SPDX-License-Identifier: BSD-3-Clause
// Deadlines, which are public (nessie/clock.hpp), under the name of this floor.
#pragma once

#include <nessie/clock.hpp>
