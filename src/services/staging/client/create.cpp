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
  const OpenArgs as_opened{args.file, args.path,      kNcWrite | OPENED_NEW, args.hints,
                           {},        args.processes, args.durability};
  impl_->note_opening(as_opened, descriptor, home);
  auto created = [&]() -> Result<int> {
    if (auto held = impl_->hold_by_others(as_opened, descriptor, home); !held.ok()) return held.error();
    auto asked = impl_->start_with(descriptor, home, &Stub::create_async, args);
    if (meanwhile) {
      const Unlocked others_go_on(impl_->mutex);
      meanwhile();
    }
    return code_of(impl_->answer(std::move(asked), home));
  }();
  if (!created.ok() || *created != 0) impl_->forget_opening(args.file, home);
  return created;
}

}  // namespace staging
