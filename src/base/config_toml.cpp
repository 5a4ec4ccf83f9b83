// SPDX-License-Identifier: BSD-3-Clause
#include "base/config.hpp"

#include "base/toml_text.hpp"

#include <fmt/format.h>

#include <functional>

namespace nessie {

namespace {

Error at(std::size_t line, std::size_t column, std::string_view what) {
  return {Code::kInvalidArgument, fmt::format("line {}, column {}: {}", line, column, what)};
}
Error at(const toml::source_region &where, std::string_view what) {
  return at(where.begin.line, where.begin.column, what);
}

/// Tables become parts of names.
class Flattener {
 public:
  using Take = std::function<void(std::string name, std::string value, std::size_t line)>;
  explicit Flattener(Take take) : take_(std::move(take)) {}

  Status add(const toml::table &table, const std::string &prefix) {
    for (const auto &[key, node] : table) {
      const auto name = prefix + std::string(key.str());
      const auto *inner = node.as_table();
      auto status = inner != nullptr ? add(*inner, name + ".") : add_value(name, node);
      if (!status.ok()) return status;
    }
    return {};
  }

 private:
  Status add_value(const std::string &name, const toml::node &node) {
    auto text = toml_text(node);
    if (!text && node.is_array())
      return at(node.source(), fmt::format("no setting takes what is in the array {}", name));
    if (!text) return at(node.source(), fmt::format("no setting takes what {} is given", name));
    take_(name, *std::move(text), node.source().begin.line);
    return {};
  }
  Take take_;
};

}  // namespace

Result<Config> Config::parse_toml(std::string_view text) {
  toml::table table;
  if (const auto fault = parse_toml_text(text, table)) return at(fault->line, fault->column, fault->what);
  Config config;
  auto status = Flattener([&](std::string name, std::string value, std::size_t line) {
                  config.file_.insert_or_assign(std::move(name), Line{std::move(value), line});
                }).add(table, "");
  if (!status.ok()) return status.error();
  return config;
}

}  // namespace nessie
