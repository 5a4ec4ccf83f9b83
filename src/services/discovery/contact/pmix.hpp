// SPDX-License-Identifier: BSD-3-Clause
// What the launcher of a job keeps for the processes that it started: PMIx_Publish, PMIx_Lookup and PMIx_Unpublish of
// the PMIx standard, version 4. The library is loaded at the first call.
//
// Design notes. PMIx's calls block until the launcher answers, so each runs on a thread of its own, which is left
// behind at the deadline. A process is a member of the job from its first call until it exits: a launcher takes one
// that leaves and comes back, or that ends without a word, for one that crashed.
#pragma once

#include <services/discovery/contact/waiting.hpp>

#include <string>

namespace nessie::service::pmix {

// Any thread. kUnsupported: no launcher with PMIx started this process, or it was forked by a member of the job; the
// launcher keeps nothing, or the library is not there.
// kTimedOut: the launcher has not answered; what was begun goes on. kPeerLost: it is gone. kNoMemory: there are no more
// threads. kIo, with PMIx's code.

/// For all whom the launcher started, in this job and others. Returns when it can be looked up. kExists: the launcher
/// says so, which Open MPI's does not.
Status publish(const std::string &key, const std::string &value, Deadline deadline, const Pause &pause);
/// kNotFound: nobody has published it by now. kBadMessage: it is no text.
Result<std::string> look_up(const std::string &key, Deadline deadline, const Pause &pause);
/// What this process has published.
Status withdraw(const std::string &key, Deadline deadline, const Pause &pause);

}  // namespace nessie::service::pmix
