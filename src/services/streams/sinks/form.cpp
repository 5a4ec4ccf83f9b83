// SPDX-License-Identifier: BSD-3-Clause
#include "services/streams/sinks/form.hpp"

#include "services/streams/sinks/netcdf.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace nessie::streams::sinks {

namespace {

using staging::ClassicAttribute;
using staging::ClassicVariable;

constexpr const char *kFillValue = "_FillValue";

bool is_coordinate(const ClassicVariable &variable) {
  return variable.dimensions.size() == 1 && variable.dimensions.front() == variable.name;
}

bool has_records(const Form &form) { return std::ranges::any_of(form.variables, &ClassicVariable::is_record); }

bool is_taken(const Form &form, const std::string &name) {
  return form.find(name) != nullptr || std::ranges::count(form.dimensions, name, &staging::ClassicDimension::name) != 0;
}

/// Files without records, of which each is to be one.
void add_dimension_of_files(Form &form) {
  auto records = std::ranges::find(form.dimensions, 0, &staging::ClassicDimension::length);
  if (records == form.dimensions.end())
    records = form.dimensions.insert(form.dimensions.begin(), {is_taken(form, "step") ? "stream_step" : "step", 0});
  for (auto &variable : form.variables) {
    if (is_coordinate(variable)) continue;
    variable.is_record = true;
    variable.shape.insert(variable.shape.begin(), 0);
    variable.dimensions.insert(variable.dimensions.begin(), records->name);
  }
}

void leave_out(Form &form, const Step &step) {
  const auto before = form.variables.size();
  std::erase_if(form.variables, [&](const auto &variable) { return !step.is_wanted(variable.name); });
  if (form.variables.size() == before) return;
  std::erase_if(form.dimensions, [&](const auto &dimension) {
    return std::ranges::none_of(form.variables, [&](const ClassicVariable &variable) {
      return std::ranges::count(variable.dimensions, dimension.name) != 0;
    });
  });
}

/// Those of `after` that `before` has not. False: it is not what one gets by adding and changing.
bool add_changes(const std::string &variable, const std::vector<ClassicAttribute> &before,
                 const std::vector<ClassicAttribute> &after, std::vector<Attribute> &changes) {
  if (after.size() < before.size()) return false;
  for (std::size_t at = 0; at < after.size(); ++at) {
    const auto &now = after[at];
    if (at < before.size() && before[at].name != now.name) return false;
    if (at < before.size() && before[at] == now) continue;
    if (!variable.empty() && now.name == kFillValue) return false;  // what is filled already has the other one
    changes.push_back({variable, now.name, static_cast<Type>(now.type), now.value});
  }
  return true;
}

}  // namespace

Result<Form> form_of(const Step &step) {
  const auto *source = step.source();
  if (source == nullptr || source->header == nullptr)
    return Error{Code::kBadMessage, fmt::format("step {} does not say how its file is", step.number())};
  auto form = staging::parse_classic_header(*source->header);
  if (!form.ok()) return form;
  leave_out(*form, step);
  if (source->kind == Source::Kind::kNumberedFile && !has_records(*form)) add_dimension_of_files(*form);
  return form;
}

bool has_same_definitions(const Form &a, const Form &b) {
  return a.dimensions == b.dimensions &&
         std::ranges::equal(a.variables, b.variables, [](const ClassicVariable &one, const ClassicVariable &other) {
           return one.name == other.name && one.type == other.type && one.dimensions == other.dimensions;
         });
}

Status check_extends(const Form &before, const Form &after) {
  for (std::size_t at = 0; at < before.variables.size(); ++at) {
    const auto &had = before.variables[at];
    const bool is_alike =
        at < after.variables.size() && after.variables[at].type == had.type && after.variables[at].shape == had.shape;
    if (!is_alike)
      return Error{Code::kUnsupported,
                   fmt::format("the variable '{}' has another type or shape, or is not there, in what follows: it "
                               "cannot be in the same file; record it into a file of its own",
                               had.name)};
  }
  return {};
}

std::optional<std::vector<Attribute>> changed_attributes(const Form &before, const Form &after) {
  std::vector<Attribute> changes;
  if (!add_changes({}, before.attributes, after.attributes, changes)) return std::nullopt;
  for (std::size_t at = 0; at < after.variables.size(); ++at)
    if (!add_changes(after.variables[at].name, before.variables[at].attributes, after.variables[at].attributes,
                     changes))
      return std::nullopt;
  return changes;
}

Box in_records(const ClassicVariable &variable, std::int64_t first_record, const Box &box) {
  if (!variable.is_record) return box;
  auto place = box;
  if (place.start.size() < variable.shape.size()) {
    place.start.insert(place.start.begin(), 0);
    place.count.insert(place.count.begin(), 1);
  }
  place.start.front() += first_record;
  return place;
}

Box all_of(const ClassicVariable &variable, std::int64_t records) {
  auto all = whole({variable.shape.begin(), variable.shape.end()});
  if (variable.is_record) all.count.front() = records;
  return all;
}

Box one_record(const ClassicVariable &variable, std::int64_t record) {
  auto place = all_of(variable, 1);
  if (variable.is_record) place.start.front() = record;
  return place;
}

std::vector<std::byte> fill_of(const ClassicVariable &variable) {
  const auto said = std::ranges::find(variable.attributes, kFillValue, &ClassicAttribute::name);
  const auto type = static_cast<Type>(variable.type);
  const bool fits =
      said != variable.attributes.end() && said->type == variable.type && said->value.size() == size_of(type);
  return fits ? said->value : usual_fill(type);
}

}  // namespace nessie::streams::sinks
