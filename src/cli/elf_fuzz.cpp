// SPDX-License-Identifier: BSD-3-Clause
// Files of programs and libraries, whatever became of them.
#include "elf.hpp"
#include "testing/elf_sample.hpp"

#include <base/fd.hpp>
#include <base/testing/fuzz.hpp>

#include <sys/mman.h>
#include <unistd.h>

using namespace nessie::fuzz;
using namespace nessie::cli;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  static const nessie::Fd file(::memfd_create("program", MFD_CLOEXEC));
  require(::ftruncate(file.get(), 0) == 0);
  require(::pwrite(file.get(), data, size, 0) == static_cast<ssize_t>(size));
  const auto elf = read_elf(file.get());
  require(elf.ok() || elf.code() == nessie::Code::kUnsupported || elf.code() == nessie::Code::kBadMessage);
  return 0;
}

std::vector<nessie::fuzz::Bytes> nessie::fuzz::seeds() {
  ElfSample none;
  none.interpreter.clear();
  ElfSample old;
  old.hash = ElfSample::Hash::kSysv;
  std::vector<Bytes> seeds;
  for (const auto &sample : {ElfSample(), none, old}) {
    const auto text = sample.bytes();
    const auto *begin = reinterpret_cast<const std::byte *>(text.data());
    seeds.emplace_back(begin, begin + text.size());
  }
  return seeds;
}
