// SPDX-License-Identifier: BSD-3-Clause
// What a server that was killed leaves behind, whatever became of it.
#include <services/staging/server/ledger.hpp>

#include <base/fd.hpp>
#include <base/testing/fuzz.hpp>

#include <sys/mman.h>
#include <unistd.h>
#include <string>

using namespace nessie::fuzz;
using namespace staging;

namespace {

/// A file without a name, and one that it can be opened by.
const nessie::Fd &file() {
  static const nessie::Fd file(::memfd_create("ledger", MFD_CLOEXEC));
  return file;
}
std::string path() { return "/proc/self/fd/" + std::to_string(file().get()); }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  require(::ftruncate(file().get(), 0) == 0);
  require(::pwrite(file().get(), data, size, 0) == static_cast<ssize_t>(size));
  const auto files = read_ledger(path());
  require(files.ok() || files.code() == nessie::Code::kBadMessage);
  return 0;
}

std::vector<nessie::fuzz::Bytes> nessie::fuzz::seeds() {
  std::vector<std::byte> bytes(6000);  // the first of its records
  {
    auto ledger = Ledger::create(path());
    require(ledger.ok());
    Variable variable;
    variable.name = "temperature";
    variable.shape = {64, 64, 64};
    (*ledger)->update((*ledger)->add("/scratch/out.nc", variable), {2 << 20, 1 << 20, 1 << 20, {32 << 12, 64 << 12}});
    variable.is_record = true;
    (*ledger)->update((*ledger)->add("/scratch/out.nc", variable), {16, 0, 16, {5, 7}});
  }
  require(::pread(file().get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  return {bytes};
}
