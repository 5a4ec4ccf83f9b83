// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/client/impl.hpp>

#include <services/staging/handle.hpp>

namespace staging {

namespace {

constexpr std::int32_t kNcWrite = 1;  // NC_WRITE

}  // namespace

Result<int> Client::create(const CreateArgs &args, int descriptor, const std::function<void()> &meanwhile) {
  const std::lock_guard lock(impl_->mutex);
  const int home = impl_->home_of(identity_of(descriptor));
  auto created = [&]() -> Result<int> {
    const OpenArgs same{args.file, args.path, kNcWrite, args.hints, {}, args.processes};
    auto handle = impl_->give(same, descriptor, home);
    if (!handle.ok()) return handle.error();
    auto given = args;
    given.handle = *handle;
    auto asked = impl_->start(home, &Stub::create_async, given);
    if (meanwhile) {
      const Unlocked others_go_on(impl_->mutex);
      meanwhile();
    }
    return code_of(impl_->answer(std::move(asked), home));
  }();
  if (created.ok() && *created == 0)
    impl_->opened[args.file].home = home;
  else
    impl_->release_by_others(args.file, home);
  return created;
}

}  // namespace staging
