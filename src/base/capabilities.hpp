// SPDX-License-Identifier: BSD-3-Clause
// What a process of root's may do besides what its user may.
#pragma once

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <initializer_list>

namespace nessie {

/// Gives up, for good, all of the calling thread's capabilities but these; programs that it starts do not get them
/// back. To be called before there are other threads, which keep theirs. False: it still has some, errno says why.
inline bool keep_only_capabilities(std::initializer_list<unsigned> kept) {
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{}, allowed{};
  for (const unsigned capability : kept) allowed[CAP_TO_INDEX(capability)].permitted |= CAP_TO_MASK(capability);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::syscall(SYS_capget, &head, sets.data()) != 0) return false;
  bool has_others = false;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    has_others |= (sets[i].permitted & ~allowed[i].permitted) != 0;
    sets[i].permitted &= allowed[i].permitted;
    sets[i].effective &= allowed[i].permitted;
    sets[i].inheritable = 0;
  }
  return !has_others || ::syscall(SYS_capset, &head, sets.data()) == 0;
}

}  // namespace nessie
