// SPDX-License-Identifier: BSD-3-Clause
// Atomic variables: each open transport has an array of them, which a service's peers change and which takes what they
// fetch.
#include <compat/trios/nssi_paper.hpp>

#include <compat/trios/nssi_standard.hpp>

#include <compat/trios/atomic_variables.hpp>
#include <xdr/codec.hpp>

#include <atomic>
#include <map>
#include <mutex>
#include <vector>

namespace nssi::trios::paper {
namespace {

struct FetchAdd {
  std::uint64_t variable = 0;
  std::int64_t operand = 0;
  template <class A> void xdr(A &a) { a(variable, operand); }
};

using Variables = std::vector<std::atomic<std::int64_t>>;

std::mutex mutex;
std::map<int, std::shared_ptr<Variables>> opened;  ///< by transport; of one that was closed they stay

/// Null, with the error noted, if the transport is not open.
std::shared_ptr<Variables> variables_of(int transport) {
  if (!is_open(transport)) return nullptr;
  std::lock_guard lock(mutex);
  return opened[transport];
}

int no_such_variable() { return fail(NSSI_EINVAL, "there is no such atomic variable"); }

void answer(Variables &variables, Request &request) {
  const auto wanted = xdr::decode<FetchAdd>(request.args());
  if (!wanted.ok()) return (void)request.reply_error(wanted.error());
  if (wanted->variable >= variables.size())
    return (void)request.reply_error({Code::kInvalidArgument, "the service has no such atomic variable"});
  (void)request.reply(xdr::encode(variables[wanted->variable].fetch_add(wanted->operand)));
}

}  // namespace

void add_fetch_add(int transport, Runtime &runtime) {
  auto variables = std::make_shared<Variables>(nnti::trios::variables_wanted());
  Handler handler = [variables](Request &request) { answer(*variables, request); };
  auto status =
      runtime.add_operation({kStandard, 0, kFetchAddOp, "fetch_add", HandlerKind::kShort, std::move(handler)});
  if (!status.ok()) return;
  std::lock_guard lock(mutex);
  opened[transport] = std::move(variables);
}

int fetch_add(int transport, std::uint64_t peer, std::uint64_t remote, std::uint64_t local, std::int64_t operand) {
  const auto variables = variables_of(transport);
  if (!variables) return NSSI_ENOTINIT;
  if (local >= variables->size()) return no_such_variable();
  Bytes result;
  const int code = call_standard(transport, peer, kFetchAddOp, xdr::encode(FetchAdd{remote, operand}), -1, result);
  if (code != NSSI_OK) return code;
  const auto former = xdr::decode<std::int64_t>(result);
  if (!former.ok()) return to_trios(c_api::fail(former.error()));
  (*variables)[local] = *former;
  return NSSI_OK;
}

int read_variable(int transport, std::uint64_t index, std::int64_t &value) {
  const auto variables = variables_of(transport);
  if (!variables) return NSSI_ENOTINIT;
  if (index >= variables->size()) return no_such_variable();
  value = (*variables)[index];
  return NSSI_OK;
}

}  // namespace nssi::trios::paper
