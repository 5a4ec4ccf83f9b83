// SPDX-License-Identifier: BSD-3-Clause
#include "services/streams/sinks/layout.hpp"

#include <base/config.hpp>

#include <fmt/core.h>

#include <cctype>
#include <set>

namespace nessie::streams::sinks {

namespace {

constexpr const char *kDimensions = "dimensions";  ///< an attribute by which writers name them: "z y x"

/// `name`, or with a number behind it if `is_taken` says so.
template <class IsTaken> std::string free_name(const std::string &name, IsTaken is_taken) {
  if (!is_taken(name)) return name;
  for (int number = 2;; ++number)
    if (auto other = fmt::format("{}_{}", name, number); !is_taken(other)) return other;
}

const Attribute *find_attribute(const std::vector<Attribute> &all, std::string_view variable, std::string_view name) {
  const auto found =
      std::ranges::find_if(all, [&](const auto &each) { return each.variable == variable && each.name == name; });
  return found == all.end() ? nullptr : &*found;
}

/// What a layout is made for.
struct Wish {
  Variable variable;
  bool varies = false;
};

/// As a file has it: room for at least one element, and the fill value that only an attribute says.
Wish wish_for(const Variable &variable, const std::vector<Attribute> &attributes) {
  Wish wish{variable, false};
  for (auto &extent : wish.variable.shape) {
    wish.varies |= extent == 0;
    extent = std::max<std::int64_t>(extent, 1);
  }
  const auto *fill = find_attribute(attributes, variable.name, marks::kFillValue);
  if (variable.fill.empty() && fill != nullptr && fill->type == variable.type &&
      fill->value.size() == size_of(variable.type))
    wish.variable.fill = fill->value;
  return wish;
}

class Planner {
 public:
  Planner(const Origin &origin, const std::vector<Wish> &wishes, const std::vector<Attribute> &attributes)
      : attributes_(attributes) {
    layout_.origin = origin;
    for (const auto &wish : wishes) name(wish);
    layout_.step_name = free_name(names_.contains("step") ? "stream_step" : "step",
                                  [this](const auto &name) { return names_.contains(name); });
    names_.insert(layout_.step_name);
    for (std::size_t index = 0; index < wishes.size(); ++index) lay_out(layout_.variables[index], wishes[index]);
  }
  Layout result() && { return std::move(layout_); }

 private:
  void name(const Wish &wish) {
    FileVariable named{wish.variable, file_name(wish.variable.name), {}, {}, {}};
    named.name = free_name(named.name, [this](const auto &name) { return names_.contains(name); });
    names_.insert(named.name);
    layout_.variables.push_back(std::move(named));
  }

  void lay_out(FileVariable &variable, const Wish &wish) {
    const auto names = names_given_to(wish.variable);
    for (std::size_t at = 0; at < wish.variable.shape.size(); ++at) {
      const auto length = wish.variable.shape[at];
      variable.dimensions.push_back(
          dimension(names.empty() ? fmt::format("n{}", length) : names[at], length, variable));
    }
    if (!wish.varies) return;
    variable.shape_name =
        free_name(variable.name + "_shape", [this](const auto &name) { return names_.contains(name); });
    names_.insert(variable.shape_name);
    const auto rank = static_cast<std::int64_t>(wish.variable.shape.size());
    variable.shape_dimension = dimension(fmt::format("n{}", rank), rank, FileVariable{});
  }

  /// What the writer calls its dimensions; empty: it does not say.
  std::vector<std::string> names_given_to(const Variable &variable) const {
    const auto *said = find_attribute(attributes_, variable.name, kDimensions);
    if (said == nullptr || said->type != Type::kChar) return {};
    auto names = split({reinterpret_cast<const char *>(said->value.data()), said->value.size()}, " ,\t\n");
    if (names.size() != variable.shape.size()) return {};
    for (auto &each : names) each = file_name(each);
    return names;
  }

  /// One of that length, not yet among those of `variable`; new, if there is none by that name.
  std::string dimension(const std::string &wanted, std::int64_t length, const FileVariable &variable) {
    auto name = free_name(wanted, [&](const auto &each) {
      if (std::ranges::count(variable.dimensions, each) != 0 || !may_be_dimension(each, length)) return true;
      const auto had = std::ranges::find(layout_.dimensions, each, &std::pair<std::string, std::int64_t>::first);
      return had != layout_.dimensions.end() && had->second != length;
    });
    if (std::ranges::count(layout_.dimensions, std::pair(name, length)) == 0)
      layout_.dimensions.emplace_back(name, length);
    return name;
  }

  /// A variable that is called as a dimension is taken for its coordinates: it must look so.
  bool may_be_dimension(const std::string &name, std::int64_t length) const {
    if (!names_.contains(name)) return true;
    const auto same = std::ranges::find(layout_.variables, name, &FileVariable::name);
    return same != layout_.variables.end() && same->variable.is_constant && same->variable.shape == Extents{length};
  }

  const std::vector<Attribute> &attributes_;
  std::set<std::string> names_;  ///< of variables
  Layout layout_;
};

const FileVariable *find_in(const Layout &layout, std::string_view name) {
  for (const auto &each : layout.variables)
    if (each.variable.name == name) return &each;
  return nullptr;
}

bool is_inside(const Extents &shape, const Extents &room) {
  for (std::size_t at = 0; at < shape.size(); ++at)
    if (shape[at] > room[at]) return false;
  return true;
}

bool has_room(const FileVariable &variable, const Variable &now) {
  const auto &room = variable.variable;
  return room.is_constant == now.is_constant && room.shape.size() == now.shape.size() &&
         is_inside(now.shape, room.shape) && (!variable.shape_name.empty() || now.shape == room.shape);
}

void widen(Wish &wish, const Variable &now) {
  for (std::size_t at = 0; at < wish.variable.shape.size(); ++at) {
    auto &room = wish.variable.shape[at];
    wish.varies |= now.shape[at] != room;
    if (now.shape[at] > room) room = std::max(now.shape[at], room + room / 4);
  }
}

}  // namespace

std::string file_name(std::string_view name) {
  std::string result(name);
  for (auto &each : result) {
    const auto byte = static_cast<unsigned char>(each);
    if (each == '/') each = '.';
    if (byte < ' ' || byte == 0x7f) each = '_';
  }
  if (!result.empty() && result.back() == ' ') result.back() = '_';
  const auto first = result.empty() ? '\0' : result.front();
  const bool may_begin = std::isalnum(static_cast<unsigned char>(first)) != 0 || first == '_' || (first & 0x80) != 0;
  return may_begin ? result : "_" + result;
}

Layout layout_of(const Origin &origin, const Step &step) {
  std::vector<Wish> wishes;
  for (const auto &each : step.variables()) wishes.push_back(wish_for(each, step.attributes()));
  auto layout = Planner(origin, wishes, step.attributes()).result();
  layout.attributes = attributes_for(layout, step);
  return layout;
}

bool has_room(const Layout &layout, const Step &step) {
  return std::ranges::all_of(step.variables(), [&](const Variable &now) {
    const auto *variable = find_in(layout, now.name);
    return variable != nullptr && has_room(*variable, now);
  });
}

Result<Layout> widened(const Layout &layout, const Step &step) {
  std::vector<Wish> wishes;
  for (const auto &each : layout.variables) wishes.push_back({each.variable, !each.shape_name.empty()});
  for (const auto &now : step.variables()) {
    const auto had = std::ranges::find(wishes, now.name, [](const Wish &wish) { return wish.variable.name; });
    if (had == wishes.end()) {
      wishes.push_back(wish_for(now, step.attributes()));
      continue;
    }
    if (had->variable.is_constant != now.is_constant || had->variable.shape.size() != now.shape.size())
      return Error{Code::kUnsupported,
                   fmt::format("'{}' {} in the steps before {}, and {} from then on: a file cannot have both; "
                               "record these steps in a file of their own",
                               now.name, had->variable.is_constant ? "is a constant" : "changes with the step",
                               step.number(), now.is_constant ? "is a constant" : "changes with it")};
    widen(*had, now);
  }
  auto attributes = step.attributes();
  for (const auto &each : layout.attributes)  // those of variables that this step has not
    if (find_attribute(attributes, each.variable, each.name) == nullptr) attributes.push_back(each);
  auto wider = Planner(layout.origin, wishes, attributes).result();
  wider.attributes = attributes_for(wider, step);
  for (const auto &each : layout.attributes)
    if (find_attribute(wider.attributes, each.variable, each.name) == nullptr) wider.attributes.push_back(each);
  return wider;
}

std::vector<Attribute> attributes_for(const Layout &layout, const Step &step) {
  std::vector<Attribute> result;
  for (auto each : step.attributes()) {
    each.name = file_name(each.name);
    if (each.name == marks::kFillValue || each.name.starts_with("nessie_") || size_of(each.type) == 0) continue;
    if (!each.variable.empty() && find_in(layout, each.variable) == nullptr) continue;
    if (find_attribute(result, each.variable, each.name) == nullptr) result.push_back(std::move(each));
  }
  return result;
}

}  // namespace nessie::streams::sinks
