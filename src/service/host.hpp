// SPDX-License-Identifier: BSD-3-Clause
// Providers that share a process: one runtime, one budget of memory, one thread of main(). What nessied makes of flags,
// files and signals ends here; tests and programs that embed a service begin here.
#pragma once

#include <base/budget.hpp>
#include <base/config.hpp>
#include <nessie/provider.hpp>
#include <nssi/nssi.hpp>
#include <service/worker.hpp>

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace nessie::service {

struct HostOptions {
  nssi::RuntimeOptions runtime;    ///< with the configuration of the process
  std::uint64_t memory_bytes = 0;  ///< of all providers together; 0: no limit but their own
  Worker *main_thread = nullptr;   ///< somebody else's, whom run() leaves it to; null: the thread that calls run()
  /// What was accepted when all have quiesced may take so long to be answered, and its answers to be fetched.
  std::chrono::milliseconds patience{10'000};
};

/// What the composition says of one provider.
struct ProviderPlace {
  std::string name;
  std::string type = {};
  std::uint32_t number = 0;
  std::string pool = {};
  std::vector<GivenSetting> settings = {};        ///< whole names: "staging.mode"
  std::map<std::string, UsedProvider> uses = {};  ///< by role
};

class Host {
 public:
  using Start = std::function<Result<std::unique_ptr<Provider>>(const ProviderContext &)>;

  /// Errors as nssi::Runtime::open().
  static Result<std::unique_ptr<Host>> open(HostOptions options);
  /// Stops the providers, the last that was started first, destroys the runtime, and then them.
  ~Host();
  Host(const Host &) = delete;

  nssi::Runtime &runtime() { return *runtime_; }
  /// Starts a provider beside those that there are. Before run(), or on the thread that drives. Its error, if there is
  /// one: nothing of it is left.
  Result<Provider *> start(ProviderPlace place, const Start &start);
  /// Drives the runtime, on a thread of its own, and does the main thread's work here, until end().
  void run();
  /// Has all providers quiesce, side by side, then answers what was accepted, and makes run() return. Asked again, it
  /// ends at once, unless a provider holds data. Any thread; not after finish().
  void end();
  /// After run(): stops the providers as the destructor does, and returns the first exit code that is not 0.
  int finish();

 private:
  struct Hosted {
    ProviderPlace place;
    Config config;
    std::unique_ptr<ProviderContext> context;
    std::unique_ptr<Provider> provider;
  };
  explicit Host(HostOptions options) : options_(std::move(options)), budget_(options_.memory_bytes) {}
  void add_to(nssi::Statistics &all);
  void quiesce();
  void quiesce_all();
  bool holds_data() const;

  const HostOptions options_;
  Budget budget_;
  Worker own_main_thread_;
  std::list<Hosted> hosted_;     ///< in the order in which they were started
  std::mutex describing_mutex_;  ///< whoever asks for statistics may do so before and after anything drives
  std::vector<const Hosted *> described_;
  std::unique_ptr<nssi::Runtime> owned_runtime_;
  nssi::Runtime *runtime_ = nullptr;  ///< the same, also for fibers that end with it
  std::atomic<int> asked_to_end_{0};
  bool is_finished_ = false;  ///< the providers were stopped: nobody begins to quiesce any more
};

}  // namespace nessie::service
