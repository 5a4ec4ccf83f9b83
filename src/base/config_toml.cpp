// SPDX-License-Identifier: BSD-3-Clause
#include "base/config.hpp"

#include <fmt/format.h>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <functional>

namespace nessie {

namespace {

Error at(const toml::source_region &where, std::string_view what) {
  return {Code::kInvalidArgument, fmt::format("line {}, column {}: {}", where.begin.line, where.begin.column, what)};
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
    std::string text;
    const auto *array = node.as_array();
    if (array == nullptr && !append(node, text))
      return at(node.source(), fmt::format("no setting takes what {} is given", name));
    for (std::size_t i = 0; array != nullptr && i < array->size(); ++i) {
      if (i != 0) text += ' ';
      if (!append(*array->get(i), text))
        return at(node.source(), fmt::format("no setting takes what is in the array {}", name));
    }
    take_(name, std::move(text), node.source().begin.line);
    return {};
  }
  static bool append(const toml::node &node, std::string &text) {
    if (const auto value = node.value_exact<std::string>())
      text += *value;
    else if (const auto flag = node.value_exact<bool>())
      text += *flag ? "true" : "false";
    else if (const auto integer = node.value_exact<std::int64_t>())
      text += std::to_string(*integer);
    else if (const auto number = node.value_exact<double>())
      text += fmt::format("{}", *number);
    else
      return false;
    return true;
  }
  Take take_;
};

}  // namespace

Result<Config> Config::parse_toml(std::string_view text) {
  const auto parsed = toml::parse(text);
  if (!parsed) return at(parsed.error().source(), parsed.error().description());
  Config config;
  auto status = Flattener([&](std::string name, std::string value, std::size_t line) {
                  config.file_.insert_or_assign(std::move(name), Line{std::move(value), line});
                }).add(parsed.table(), "");
  if (!status.ok()) return status.error();
  return config;
}

}  // namespace nessie
