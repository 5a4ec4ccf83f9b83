// SPDX-License-Identifier: BSD-3-Clause
// A provider: one instance of a service in a process that several may share. nessied hosts those that it was built
// with, and those of modules (nessie/module.h), in whatever composition its user asks for: docs/hosting.md.
//
// The anatomy is that of Mochi's providers (Margo, Bedrock): a provider has a type, a name of its own in the process,
// and a number, by which callers tell instances of one interface apart.
#pragma once

#include <nessie/result.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace nnti {
struct PeerId;
}
namespace nssi {
class Runtime;
struct RuntimeOptions;
}  // namespace nssi

namespace nessie {

class Budget;
class Config;
namespace service {
class Worker;
}

/// A provider whom another one uses, in the same process or elsewhere.
struct UsedProvider {
  std::string where;         ///< as nssi::connect_to() takes it
  std::uint32_t number = 0;  ///< of its operations
};

/// What a provider stands on. Outlives it.
struct ProviderContext {
  nssi::Runtime &runtime;        ///< shared by all providers of the process
  std::string name;              ///< the only one of this name in the process
  std::uint32_t number = 0;      ///< its operations' provider number
  std::string pool;              ///< whose threads run its handlers; empty: the one that drives
  const Config &config;          ///< the process's settings, and over them the provider's own, as "TYPE.KEY"
  Budget &budget;                ///< the memory that all providers share: each pool opens an account
  service::Worker &main_thread;  ///< work for the thread that began in main(), as of libraries that insist on that
  /// Those that it uses, by role. Those in this process were started before.
  std::map<std::string, UsedProvider> uses;
  /// Ends the process as SIGTERM does. Any thread.
  std::function<void()> end_process;
};

/// What it does is on the thread that drives the runtime, unless it is said. It is destroyed after its runtime.
class Provider {
 public:
  virtual ~Provider() = default;
  /// What it has and does now, in a few words, as "files open: 2, clients: 3": `nessie status` shows them. None of its
  /// other functions runs meanwhile, but handlers in a pool may.
  virtual std::string describe() const { return {}; }
  /// Numbers of its own, for Prometheus and `nessie status --json`: calls `tell(name, labels, value)` for each, where
  /// labels are pairs of name and value. As describe().
  using Labels = std::vector<std::pair<std::string, std::string>>;
  using Tell = std::function<void(const std::string &name, const Labels &labels, double value)>;
  virtual void measure(const Tell &tell) const { (void)tell; }
  /// A peer died, or left. Every provider is told, whoever the peer has called.
  virtual void peer_lost(nnti::PeerId peer);
  /// The process is to end: finish what was acknowledged. Returns when that is done. A fiber; requests go on coming,
  /// and other providers finish beside it.
  virtual void quiesce() {}
  /// Whether what it has acknowledged is lost if it is not let finish. Who then asks the process a second time to end
  /// has to wait all the same.
  virtual bool holds_data() const { return false; }
  /// The last call, when nothing drives any more: ends what would use the runtime. On the thread of main().
  virtual void stop() {}
  /// After stop(): what the process is to exit with, if nothing worse has happened. 0: all went well.
  virtual int exit_code() const { return 0; }
};

/// What there can be providers of.
struct ProviderType {
  std::string name;
  /// Roles that it uses others in, as types of providers; one that ends in '?' may be left out.
  std::vector<std::string> uses = {};
  /// Adds to the options of the runtime what its providers need of it. kInvalidArgument: a setting cannot be read.
  std::function<Status(const Config &config, nssi::RuntimeOptions &options)> prepare = {};
  /// Adds its operations. An error says what to correct; nothing of it is left then.
  std::function<Result<std::unique_ptr<Provider>>(const ProviderContext &context)> start = {};
  /// Its handlers may run in a pool, several at once; otherwise its state is the driving thread's.
  bool takes_pool = false;
  /// Only one in a process: it needs the thread of main(), or a name of the machine's.
  bool is_single = false;
};

}  // namespace nessie
