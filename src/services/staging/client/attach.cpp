// SPDX-License-Identifier: BSD-3-Clause
// A file on the servers that are not its home: they hold the descriptor until they attach the file.
#include <services/staging/client/impl.hpp>

#include <base/credential.hpp>
#include <services/staging/handle.hpp>

namespace staging {

using nessie::Code;

/// What a server needs to come to a file that this process has open.
Result<FileHandle> Client::Impl::hand_over(int server, int descriptor) {
  auto handle = describe_handle(descriptor);
  const auto key = nessie::random_u64() | 1;
  const auto given = runtime->give_descriptor(at(server).peer, key, descriptor);
  if (given.ok()) handle.descriptor = key;
  if (given.ok() || given.code() == Code::kUnsupported) return handle;
  return given.error();
}

/// Has the other servers hold a file, until they attach it.
Result<int> Client::Impl::hold_by_others(OpenArgs args, int descriptor, int home) {
  Answers answers;
  for (int server = 0; server < count(); ++server)
    if (server != home) answers.emplace_back(server, start_with(descriptor, server, &Stub::hold_async, args));
  return first_error(answers);
}

void Client::Impl::note_opening(const OpenArgs &args, int descriptor, int home) {
  auto &file = opened[args.file];
  file.home = home;
  const bool is_kept = args.durability == Durability::kInherited ? keeps : args.durability != Durability::kMemory;
  if (!is_kept) return;  // a descriptor for each file is much
  expect_return();
  file.args = args;
  file.file = nessie::duplicate(descriptor);
}

void Client::Impl::forget_opening(FileToken token, int home) {
  release_by_others(token, home);
  opened.erase(token);
}

void Client::Impl::release_by_others(FileToken token, int home) {
  std::vector<std::pair<int, Asked<void>>> answers;
  for (int server = 0; server < count(); ++server)
    if (server != home) answers.emplace_back(server, start(server, &Stub::release_async, token));
  for (auto &[server, asked] : answers) (void)answer(std::move(asked), server);
}

Result<int> Client::Impl::attach_others(FileToken token, int home) {
  opened[token].attached = true;
  return ask_all(&Stub::attach_async, token, home);
}

}  // namespace staging
