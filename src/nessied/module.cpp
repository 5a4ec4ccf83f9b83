// SPDX-License-Identifier: BSD-3-Clause
#include "module.hpp"

#include <base/config.hpp>
#include <nessie/module.hpp>
#include <nssi/c/runtime.hpp>
#include <nssi/nssi.hpp>

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>

using nessie::Code;
using nessie::Error;
using nessie::Result;

/// What C is given of a provider.
struct nessie_provider {
  nessie_provider(const nessie::ProviderContext &its_context, const char *its_type)
      : context(its_context), type(its_type), runtime(its_context.runtime) {}
  const nessie::ProviderContext &context;
  const std::string type;
  nssi::c_runtime::Lent runtime;
  std::string sentence;  ///< of nessie_provider_fail()
  std::mutex mutex;
  std::map<std::string, std::string> said;  ///< settings that were asked for
};

const nessie::ProviderContext &nessie::context_of(nessie_provider *provider) { return provider->context; }

nssi_rt_runtime *nessie_provider_runtime(nessie_provider *provider) { return provider->runtime.get(); }
uint32_t nessie_provider_number(const nessie_provider *provider) { return provider->context.number; }
const char *nessie_provider_name(const nessie_provider *provider) { return provider->context.name.c_str(); }
const char *nessie_provider_pool(const nessie_provider *provider) { return provider->context.pool.c_str(); }

const char *nessie_provider_setting(nessie_provider *provider, const char *key) {
  if (key == nullptr) return nullptr;
  auto value = provider->context.config.get(provider->type + "." + key);
  if (!value) return nullptr;
  const std::lock_guard lock(provider->mutex);
  return provider->said.insert_or_assign(key, *std::move(value)).first->second.c_str();
}

const char *nessie_provider_uses(const nessie_provider *provider, const char *role, uint32_t *number) {
  if (role == nullptr) return nullptr;
  const auto &uses = provider->context.uses;
  const auto found = uses.find(role);
  if (found == uses.end()) return nullptr;
  if (number != nullptr) *number = found->second.number;
  return found->second.where.c_str();
}

void nessie_provider_fail(nessie_provider *provider, const char *sentence) {
  provider->sentence = sentence != nullptr ? sentence : "";
}
void nessie_provider_end_process(nessie_provider *provider) { provider->context.end_process(); }

namespace nessied {

namespace {

/// A provider of a module.
class ModuleProvider final : public nessie::Provider {
 public:
  ModuleProvider(const nessie_module &module, const nessie::ProviderContext &context)
      : module_(module), self_(std::make_unique<nessie_provider>(context, module.type)) {}
  ~ModuleProvider() override {
    if (is_started_ && module_.destroy != nullptr) module_.destroy(state_);
  }

  nessie::Status start() {
    const int code = module_.start(self_.get(), &state_);
    is_started_ = code == NESSIE_OK;
    if (is_started_) return {};
    const bool is_known = code > 0 && std::strcmp(nessie_code_name(code), "UNKNOWN") != 0;
    return Error{
        is_known ? static_cast<Code>(code) : Code::kInternal,
        self_->sentence.empty() ? fmt::format("it does not say why ({})", nessie_code_name(code)) : self_->sentence};
  }
  std::string describe() const override {
    const char *text = module_.describe != nullptr ? module_.describe(state_) : nullptr;
    return text != nullptr ? text : "";
  }
  void peer_lost(nssi::PeerId peer) override {
    if (module_.peer_lost != nullptr) module_.peer_lost(state_, peer.value);
  }
  void quiesce() override {
    if (module_.quiesce != nullptr) module_.quiesce(state_);
  }
  void stop() override {
    if (module_.stop != nullptr) module_.stop(state_);
    self_->runtime.end();
  }

 private:
  const nessie_module &module_;
  std::unique_ptr<nessie_provider> self_;
  void *state_ = nullptr;
  bool is_started_ = false;
};

Result<std::unique_ptr<nessie::Provider>> start(const nessie_module &module, const nessie::ProviderContext &context) {
  auto provider = std::make_unique<ModuleProvider>(module, context);
  if (auto status = provider->start(); !status.ok()) return status.error();
  return std::unique_ptr<nessie::Provider>(std::move(provider));
}

nessie::Status check(const nessie_module *module, const std::string &path) {
  if (module == nullptr) return Error{Code::kInvalidArgument, fmt::format("{}: its entry point returns nothing", path)};
  if (module->abi != NESSIE_MODULE_ABI || module->version == nullptr ||
      std::strcmp(module->version, NESSIE_MODULE_VERSION) != 0)
    return Error{Code::kUnsupported,
                 fmt::format("{} was built with Nessie {} (module interface {}), and this is {} ({}): build it anew",
                             path, module->version != nullptr ? module->version : "?", module->abi,
                             NESSIE_MODULE_VERSION, NESSIE_MODULE_ABI)};
  if (module->type == nullptr || *module->type == '\0' || module->start == nullptr)
    return Error{Code::kInvalidArgument, fmt::format("{}: its entry has no type, or no start()", path)};
  return {};
}

/// The loader looks for a name without a slash in the folders of libraries only.
std::string hint(const std::string &path) {
  const bool is_here = path.find('/') == std::string::npos && ::access(path.c_str(), F_OK) == 0;
  return is_here ? fmt::format("; the one of this folder is ./{}", path) : std::string();
}

}  // namespace

Result<nessie::ProviderType> load_module(const std::string &path) {
  void *library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return Error{Code::kNotFound, fmt::format("cannot load the module: {}{}", ::dlerror(), hint(path))};
  const auto entry = reinterpret_cast<decltype(&nessie_module_entry)>(::dlsym(library, "nessie_module_entry"));
  if (entry == nullptr)
    return Error{Code::kUnsupported,
                 fmt::format("{} is no module of Nessie: it has no function nessie_module_entry()", path)};
  const auto *module = entry();
  if (auto status = check(module, path); !status.ok()) return status.error();
  return nessie::ProviderType{
      .name = module->type,
      .uses = nessie::split(module->uses != nullptr ? module->uses : "", " ,"),
      .start = [module](const nessie::ProviderContext &context) { return start(*module, context); },
      .takes_pool = true};
}

}  // namespace nessied
