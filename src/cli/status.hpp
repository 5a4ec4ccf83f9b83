// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace nessie::cli {

/// Prints what each server of this session (NESSIE_SERVERS, NESSIE_CREDENTIAL) reports. Non-zero if one does not
/// answer.
int status(bool json);

}  // namespace nessie::cli
