// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/observe/inspection.hpp>

#include <nssi/statistics.hpp>

#include <inspect_rpc.hpp>

namespace nssi {

namespace {

namespace FIRST = inspect::NSSI_INSPECT::FIRST;

class Inspection final : public FIRST::Server {
 public:
  explicit Inspection(Runtime &runtime) : runtime_(runtime) {}
  Outcome<std::string> STATISTICS(Request &) override { return to_json(runtime_.statistics()); }

 private:
  Runtime &runtime_;
};

}  // namespace

bool is_inspection(const Interface &interface) { return interface.program == FIRST::kInterface.program; }

Result<std::shared_ptr<void>> offer_inspection(Runtime &runtime) {
  auto inspection = std::make_shared<Inspection>(runtime);
  if (auto status = inspection->add_to(runtime); !status.ok()) return status.error();
  return std::shared_ptr<void>(inspection);
}

}  // namespace nssi
