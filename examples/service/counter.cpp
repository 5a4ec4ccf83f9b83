// SPDX-License-Identifier: BSD-3-Clause
// counter.x, to be hosted by nessied. Setting counter.begin: what new counters begin at.
#include <counter_rpc.hpp>
#include <nessie/module.hpp>

#include <map>
#include <string>

class Counter final : public nessie::Provider, counter::COUNTER::ONE::Server {
 public:
  /// What nessied calls for each [[provider]] of this type.
  static nessie::Result<std::unique_ptr<nessie::Provider>> start(const nessie::ProviderContext &context) {
    const auto begin = context.config.get_int("counter.begin", 0);
    if (!begin) return begin.error();
    auto made = std::make_unique<Counter>(*begin);
    if (auto status = made->add_to(context.runtime, context.number, context.pool); !status.ok()) return status.error();
    return std::unique_ptr<nessie::Provider>(std::move(made));
  }

  explicit Counter(std::int64_t begin) : begin_(begin) {}

  // All handlers run on one thread, and need no lock.
  nssi::Outcome<std::int64_t> ADD(nssi::Request &, const std::string &name, std::int64_t amount) override {
    return values_.try_emplace(name, begin_).first->second += amount;
  }
  nssi::Outcome<std::int64_t> VALUE(nssi::Request &, const std::string &name) override {
    const auto found = values_.find(name);
    if (found == values_.end()) return nssi::Error{nssi::Code::kNotFound, "nobody has counted " + name};
    return found->second;
  }

 private:
  const std::int64_t begin_;
  std::map<std::string, std::int64_t> values_;
};

NESSIE_MODULE("counter", Counter)
