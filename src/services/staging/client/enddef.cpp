// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/client/impl.hpp>

namespace staging {

Result<HeaderResult> Client::enddef(const EndDefArgs &args, bool first) {
  const std::lock_guard lock(impl_->mutex);
  impl_->finish_writes(args.file);
  const int home = impl_->opened[args.file].home;
  if (auto defined = impl_->finish_defining(args.file); !defined.ok() || *defined != 0)
    return defined.ok() ? Result<HeaderResult>(HeaderResult{*defined, {}, 0, 0, {}}) : defined.error();
  if (!first && impl_->opened[args.file].attached) {
    auto detached = impl_->detach_others(args.file, args.num_records, home);
    if (!detached.ok()) return detached.error();
    impl_->outcome_of(args.file)->note_answer(NcResult{*detached});  // of a write: the definitions stay
  }
  auto numbered = args;
  numbered.number = ++impl_->opened[args.file].definitions;
  auto result = impl_->ask(home, &Stub::enddef_async, numbered);
  if (!result.ok() || result->nc_error != 0) return result;
  ++impl_->opened[args.file].data_modes;
  auto attached = impl_->attach_others(args.file, home);
  if (!attached.ok()) return attached.error();
  result->nc_error = *attached;
  return result;
}

}  // namespace staging
