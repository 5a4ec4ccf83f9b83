// SPDX-License-Identifier: BSD-3-Clause
// How a client finds the service that its user names. docs/finding.md is about it.
#pragma once

#include <base/clock.hpp>
#include <base/config.hpp>
#include <services/discovery/contact/locate.hpp>

#include <string_view>
#include <vector>

namespace directory {

/// `what` is a URL (or a list joined by ';'), `file:PATH` (a contact file), `pmix:NAME` (which the job's launcher
/// keeps), `dir:NAME` (in the directory that the setting `directory` names), or `env:VARIABLE`, which holds one or
/// several of these, separated by white space. Waits until the service is there, or the deadline has passed; drives the
/// runtime, or suspends the fiber, meanwhile. Never empty: of a name in a directory, all instances.
/// kInvalidArgument: it is none of these. kNotFound: the variable is not set, or no directory is named. kTimedOut:
/// there is no such file, or no such name. kPeerLost: the file is stale, or the directory is gone. Others as
/// locate() and Directory.
nessie::Result<std::vector<nessie::service::Found>> find(nssi::Runtime &runtime, const nessie::Config &config,
                                                         std::string_view what, nessie::Deadline deadline);

}  // namespace directory
