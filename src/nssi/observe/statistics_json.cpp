// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/statistics.hpp>

#include <nlohmann/json.hpp>

namespace nssi {

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const TimeHistogram &times) {
  Json buckets = Json::array();
  for (const auto &[up_to_ns, count] : times.buckets) buckets.push_back({up_to_ns, count});
  return {{"count", times.count},
          {"sum_ns", times.sum_ns},
          {"max_ns", times.max_ns},
          {"p50_ns", times.percentile_ns(0.5)},
          {"p99_ns", times.percentile_ns(0.99)},
          {"buckets", std::move(buckets)}};
}

Json json_of(const std::vector<ErrorCount> &errors) {
  Json result = Json::object();
  for (const auto &[code, count] : errors) result[nessie_code_name(static_cast<int>(code))] = count;
  return result;
}

Json json_of(const Interface &interface, std::uint32_t provider) {
  return {{"program", interface.program}, {"version", interface.version}, {"provider", provider}};
}

Json json_of(const OperationStatistics &it) {
  auto result = json_of(it.interface, it.provider);
  result.update(Json{{"op", it.op},
                     {"name", it.name},
                     {"calls", it.calls},
                     {"errors", json_of(it.errors)},
                     {"dropped", it.dropped},
                     {"turned_away", it.turned_away},
                     {"sent_again", it.sent_again},
                     {"args_bytes", it.args_bytes},
                     {"result_bytes", it.result_bytes},
                     {"pulled_bytes", it.pulled_bytes},
                     {"pushed_bytes", it.pushed_bytes},
                     {"viewed_bytes", it.viewed_bytes},
                     {"queueing", json_of(it.queueing)},
                     {"execution", json_of(it.execution)},
                     {"transfer", json_of(it.transfer)}});
  return result;
}

Json json_of(const ServiceStatistics &it) {
  auto result = json_of(it.interface, it.provider);
  result.update(Json{{"requests", it.requests},
                     {"bytes", it.bytes},
                     {"callers_waiting", it.callers_waiting},
                     {"limits",
                      {{"requests", it.limits.requests},
                       {"requests_of_caller", it.limits.requests_of_caller},
                       {"bytes", it.limits.bytes},
                       {"bytes_of_caller", it.limits.bytes_of_caller}}}});
  return result;
}

Json json_of(const CallerStatistics &it) {
  return {{"session", it.session},
          {"transport", it.transport},
          {"calls", it.calls},
          {"errors", it.errors},
          {"in_bytes", it.in_bytes},
          {"out_bytes", it.out_bytes},
          {"in_progress", it.in_progress},
          {"queueing", json_of(it.queueing)},
          {"execution", json_of(it.execution)},
          {"transfer", json_of(it.transfer)}};
}

Json json_of(const CallStatistics &it) {
  Json result{{"peer", it.peer}};
  result.update(json_of(it.interface, it.provider));
  result.update(Json{{"op", it.op},
                     {"calls", it.calls},
                     {"errors", json_of(it.errors)},
                     {"sent_again", it.sent_again},
                     {"held_back", it.held_back},
                     {"args_bytes", it.args_bytes},
                     {"result_bytes", it.result_bytes},
                     {"round_trip", json_of(it.round_trip)}});
  return result;
}

Json json_of(const MemoryStatistics &it) {
  return {{"name", it.name}, {"used_bytes", it.used_bytes}, {"high_bytes", it.high_bytes}};
}

Json json_of(const ProviderStatistics &it) {
  Json figures = Json::array();
  for (const auto &figure : it.figures) {
    Json labels = Json::object();
    for (const auto &[name, value] : figure.labels) labels[name] = value;
    figures.push_back({{"name", figure.name}, {"labels", std::move(labels)}, {"value", figure.value}});
  }
  return {{"name", it.name}, {"type", it.type},   {"provider", it.number},
          {"pool", it.pool}, {"state", it.state}, {"figures", std::move(figures)}};
}

template <class T> Json list_of(const std::vector<T> &all) {
  Json result = Json::array();
  for (const auto &each : all) result.push_back(json_of(each));
  return result;
}

}  // namespace

std::string to_json(const Statistics &statistics) {
  const Json all{{"is_counted", statistics.is_counted},          {"uptime_ns", statistics.uptime_ns},
                 {"prometheus", statistics.prometheus},          {"refused", statistics.refused},
                 {"operations", list_of(statistics.operations)}, {"services", list_of(statistics.services)},
                 {"callers", list_of(statistics.callers)},       {"calls", list_of(statistics.calls)},
                 {"memory", list_of(statistics.memory)},         {"providers", list_of(statistics.providers)}};
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace nssi
