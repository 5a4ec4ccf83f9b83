// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/registration_cache/code_probe.hpp"

#include "nnti/registration_cache/address_range.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fmt/core.h>
#include <gnu/lib-names.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstring>

namespace nnti::probe {

using nessie::Code;
using nessie::Error;
using nessie::Result;
using nessie::Scope;
using nessie::Status;

namespace {

Error unsupported(std::string message, int cause = 0) {
  return {Code::kUnsupported, std::move(message), Scope::kProcess, cause};
}

void *symbol_of(const char *library, const char *name) {
  void *handle = ::dlopen(library, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  if (handle == nullptr) return nullptr;
  void *symbol = ::dlsym(handle, name);
  ::dlclose(handle);  // it was there before, and stays
  return symbol;
}

/// Code at `address`, with the size that its symbol states.
FunctionCode code_at(void *address) {
  Dl_info info{};
  ElfW(Sym) *symbol = nullptr;
  if (address == nullptr) return {};
  if (::dladdr1(address, &info, reinterpret_cast<void **>(&symbol), RTLD_DL_SYMENT) == 0 || symbol == nullptr)
    return {};
  if (info.dli_saddr != address) return {};
  return {static_cast<std::byte *>(address), symbol->st_size};
}

/// Makes every thread's processor see the new code before this returns, where the kernel can.
void serialize_all_cores() {
  constexpr int kSyncCore = 1 << 5, kRegisterSyncCore = 1 << 6;
  probe::raw_call({SYS_membarrier, {kRegisterSyncCore}, 0});
  probe::raw_call({SYS_membarrier, {kSyncCore}, 0});
}

/// Makes the pages of code writable, for as long as it lives.
class WritableCode {
 public:
  WritableCode(const void *begin, std::size_t size_bytes)
      : pages_(pages_of(reinterpret_cast<std::uintptr_t>(begin), size_bytes)) {
    failed_ = protect(PROT_READ | PROT_WRITE | PROT_EXEC);
  }
  ~WritableCode() {
    __builtin___clear_cache(reinterpret_cast<char *>(pages_.begin), reinterpret_cast<char *>(pages_.end));
    if (failed_ == 0) protect(PROT_READ | PROT_EXEC);
  }
  WritableCode(const WritableCode &) = delete;
  WritableCode &operator=(const WritableCode &) = delete;
  Status status() const {
    if (failed_ == 0) return {};
    return unsupported("this system forbids to make code writable, so the calls that change memory cannot be seen",
                       failed_);
  }

 private:
  int protect(int access) const {
    return ::mprotect(reinterpret_cast<void *>(pages_.begin), pages_.size_bytes(), access) == 0 ? 0 : errno;
  }
  AddressRange pages_;
  int failed_ = 0;
};

std::byte *map_at(std::uintptr_t hint, std::size_t size_bytes) {
  void *memory =
      ::mmap(reinterpret_cast<void *>(hint), size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte *>(memory);
}

/// Maps memory from which a jump reaches `target` and the other way; null if there is none.
std::byte *map_near(std::uintptr_t target, std::size_t size_bytes) {
  constexpr std::uintptr_t kStep = 1 << 20;
  for (std::uintptr_t distance = 0; distance < arch::kReachBytes && distance < target; distance += kStep) {
    auto *memory = map_at(distance == 0 ? 0 : (target & ~(page_bytes() - 1)) - distance, size_bytes);
    if (memory == nullptr) return nullptr;
    const auto at = reinterpret_cast<std::uintptr_t>(memory);
    if ((at > target ? at - target : target - at) < arch::kReachBytes) return memory;
    ::munmap(memory, size_bytes);
  }
  return nullptr;
}

/// The thunks lead into the library or program that holds this code: it must never be unloaded.
void stay_loaded() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void *>(&stay_loaded), &info) != 0 && info.dli_fname != nullptr)
    ::dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

}  // namespace

FunctionCode libc_function(const char *name) { return code_at(symbol_of(LIBC_SO, name)); }

FunctionCode library_function(const char *library, const char *name) { return code_at(symbol_of(library, name)); }

FunctionCode loader_event_function() {
  const auto *debug = static_cast<const r_debug *>(::dlsym(RTLD_DEFAULT, "_r_debug"));
  return debug == nullptr ? FunctionCode{} : code_at(reinterpret_cast<void *>(debug->r_brk));
}

bool Prober::reaches(const FunctionCode &code) const {
  const auto *at = code.begin;
  const auto distance = at > page_ ? at - page_ : page_ - at;
  return at != nullptr && page_ != nullptr && static_cast<std::uintptr_t>(distance) < arch::kReachBytes;
}

Status Prober::open(Handler handler) {
  if (page_ != nullptr) return {};
  if (!arch::kSupported) return unsupported("calls that change memory cannot be seen on this kind of processor");
  const auto libc = libc_function("munmap");
  if (libc.begin == nullptr)
    return unsupported("libc cannot be found (the program is statically linked, or has none of glibc's kind)");
  page_ = map_near(reinterpret_cast<std::uintptr_t>(libc.begin), 2 * page_bytes());
  if (page_ == nullptr) return unsupported("there is no free address space near libc", ENOMEM);
  spare_page_ = page_ + page_bytes();
  ::mprotect(spare_page_, page_bytes(), PROT_NONE);
  const void *entry = arch::entry_function();
  std::memcpy(page_, &entry, sizeof entry);
  used_bytes_ = arch::kThunkBytes;
  arch::set_handler(handler);
  stay_loaded();
  return {};
}

Result<std::vector<Site>> Prober::probe_calls(const FunctionCode &code, long number) {
  std::vector<Site> sites;
  for (;;) {
    const auto spot = arch::find_call(code, number);
    if (spot.at == nullptr) return sites;
    auto site = place(code, spot);
    if (!site.ok()) return site.error();
    sites.push_back(*site);
  }
}

Result<Site> Prober::probe_return(const FunctionCode &code) {
  const auto spot = code.begin == nullptr ? arch::Spot{} : arch::find_return(code);
  if (spot.at != nullptr) return place(code, spot);
  return unsupported("the loader does not tell when libraries are unloaded, or a debugger asks it to");
}

Result<Site> Prober::place(const FunctionCode &code, const arch::Spot &spot) {
  if (used_bytes_ + arch::kThunkBytes > page_bytes()) return unsupported("libc was patched by others too many times");
  auto *thunk = page_ + used_bytes_;
  used_bytes_ += arch::kThunkBytes;
  const auto change = arch::plan_change(code, spot, thunk);
  if (change.site.word == nullptr) return unsupported("libc's code leaves no room for a probe");
  {
    WritableCode writable(thunk, arch::kThunkBytes);
    if (auto status = writable.status(); !status.ok()) return status.error();
    arch::write_thunk(thunk, spot, reinterpret_cast<const void *const *>(page_));
  }
  if (change.landing != nullptr) {
    WritableCode writable(change.landing, change.landing_bytes);
    if (auto status = writable.status(); !status.ok()) return status.error();
    write_code(change.landing, change.landing_code.data(), change.landing_bytes);
  }
  serialize_all_cores();
  if (auto status = restore(change.site); !status.ok()) return status.error();
  return change.site;
}

Status Prober::restore(const Site &site) {
  if (site.now() == site.probed) return {};
  WritableCode writable(site.word, sizeof *site.word);
  if (auto status = writable.status(); !status.ok()) return status;
  if (!exchange_code(site.word, site.original, site.probed))
    return unsupported("something else has patched libc at the same place");
  serialize_all_cores();
  return {};
}

}  // namespace nnti::probe
