// SPDX-License-Identifier: BSD-3-Clause
#include "services/streams/sinks/step_file.hpp"

#include "services/streams/sinks/slabs.hpp"

#include <fmt/core.h>

#include <cstdlib>
#include <cstring>
#include <map>

namespace nessie::streams::sinks {

namespace {

constexpr std::int32_t kLayoutVersion = 1;
constexpr std::size_t kAttributeHead = 64;  ///< what an attribute takes in a header, at most, besides name and value

std::span<const std::byte> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte *>(text.data()), text.size()};
}

template <class T> std::span<const std::byte> as_bytes(const T &value) {
  return std::as_bytes(std::span<const T, 1>(&value, 1));
}

std::string text_of(const std::vector<Attribute> &all, std::string_view name) {
  for (const auto &each : all)
    if (each.name == name && each.type == Type::kChar)
      return {reinterpret_cast<const char *>(each.value.data()), each.value.size()};
  return {};
}

std::int64_t no_step() {
  std::int64_t value = 0;
  std::memcpy(&value, usual_fill(Type::kInt64).data(), sizeof value);
  return value;
}

/// How much more a header takes when the attributes are as they are now; 0: each takes the place of one of its size.
std::size_t growth(const std::vector<Attribute> &before, const std::vector<Attribute> &now) {
  std::size_t bytes = 0;
  for (const auto &each : now) {
    const bool has_place = std::ranges::any_of(before, [&](const Attribute &had) {
      return had.variable == each.variable && had.name == each.name && had.type == each.type &&
             had.value.size() == each.value.size();
    });
    if (!has_place) bytes += each.name.size() + each.value.size() + kAttributeHead;
  }
  return bytes;
}

Error not_ours(const char *what) {
  return {Code::kBadMessage, fmt::format("the file was not written by Nessie from a stream: {}", what)};
}

}  // namespace

// --- definitions ------------------------------------------------------------------------------------------------------

Result<StepFile> StepFile::define(NetcdfFile file, Layout layout, std::size_t reserve_bytes) {
  StepFile defined(std::move(file));
  defined.layout_ = std::move(layout), defined.reserve_ = reserve_bytes;
  if (auto done = defined.define_all(); !done.ok()) return done.error();
  return defined;
}

Status StepFile::put_text(int variable, const char *name, std::string_view text) {
  return file_.put_attribute(variable, name, Type::kChar, as_bytes(text));
}

Status StepFile::define_all() {
  std::map<std::string, int> dimensions;
  const auto steps = file_.define_dimension(layout_.step_name, 0);
  if (!steps.ok()) return steps.error();
  for (const auto &[name, length] : layout_.dimensions) {
    const auto made = file_.define_dimension(name, length);
    if (!made.ok()) return made.error();
    dimensions[name] = *made;
  }
  const auto numbers = file_.define_variable(layout_.step_name, Type::kInt64, {*steps});
  if (!numbers.ok()) return numbers.error();
  step_id_ = *numbers;
  if (auto put = put_text(step_id_, "long_name", "number of the step"); !put.ok()) return put;
  for (const auto &variable : layout_.variables)
    if (auto defined = define_one(variable, *steps, dimensions); !defined.ok()) return defined;
  if (auto put = file_.put_attribute(kGlobal, marks::kLayout, Type::kInt32, as_bytes(kLayoutVersion)); !put.ok())
    return put;
  if (auto put = put_text(kGlobal, marks::kStream, layout_.origin.stream); !put.ok()) return put;
  if (auto put = put_text(kGlobal, marks::kIdentity, fmt::format("{:016x}", layout_.origin.identity)); !put.ok())
    return put;
  if (auto put = put_text(kGlobal, marks::kStep, layout_.step_name); !put.ok()) return put;
  if (auto put = put_attributes(layout_.attributes); !put.ok()) return put;
  return file_.end_definitions(reserve_);
}

Status StepFile::define_one(const FileVariable &variable, int steps, const std::map<std::string, int> &dimensions) {
  std::vector<int> of_it, of_shape;
  if (!variable.variable.is_constant) of_it.push_back(steps), of_shape.push_back(steps);
  for (const auto &name : variable.dimensions) of_it.push_back(dimensions.at(name));
  const auto made = file_.define_variable(variable.name, variable.variable.type, of_it);
  if (!made.ok()) return made.error();
  ids_.push_back({*made, -1});
  const auto &fill = variable.variable.fill;
  if (auto put = fill.empty() ? Status() : file_.define_fill(*made, fill); !put.ok()) return put;
  if (variable.name != variable.variable.name)
    if (auto put = put_text(*made, marks::kVariable, variable.variable.name); !put.ok()) return put;
  if (variable.shape_name.empty()) return {};
  of_shape.push_back(dimensions.at(variable.shape_dimension));
  const auto shape = file_.define_variable(variable.shape_name, Type::kInt64, of_shape);
  if (!shape.ok()) return shape.error();
  ids_.back().shape = *shape;
  return put_text(*made, marks::kShape, variable.shape_name);
}

Status StepFile::put_attributes(const std::vector<Attribute> &attributes) {
  for (const auto &each : attributes) {
    const auto of = std::ranges::find(layout_.variables, each.variable,
                                      [](const FileVariable &variable) { return variable.variable.name; });
    if (!each.variable.empty() && of == layout_.variables.end()) continue;
    const int variable = each.variable.empty() ? kGlobal : ids_[of - layout_.variables.begin()].variable;
    if (auto put = file_.put_attribute(variable, each.name, each.type, each.value); !put.ok()) return put;
  }
  return {};
}

Status StepFile::update_attributes(const Step &step) {
  std::vector<Attribute> changed;
  for (auto &each : attributes_for(layout_, step))
    if (std::ranges::count(layout_.attributes, each) == 0) changed.push_back(std::move(each));
  if (changed.empty()) return {};
  const auto more = growth(layout_.attributes, changed);
  if (auto again = more == 0 ? Status() : file_.define_again(); !again.ok()) return again;
  if (auto put = put_attributes(changed); !put.ok()) return put;
  if (auto end = more == 0 ? Status() : file_.end_definitions(0); !end.ok()) return end;
  reserve_ -= more;
  for (auto &each : changed) {
    std::erase_if(layout_.attributes,
                  [&](const Attribute &had) { return had.variable == each.variable && had.name == each.name; });
    layout_.attributes.push_back(std::move(each));
  }
  return {};
}

bool StepFile::has_room(const Step &step) const {
  return sinks::has_room(layout_, step) && growth(layout_.attributes, attributes_for(layout_, step)) <= reserve_;
}

// --- a file that is there ---------------------------------------------------------------------------------------------

Result<StepFile> StepFile::open(NetcdfFile file) {
  StepFile opened(std::move(file));
  if (auto read = opened.read_layout(); !read.ok()) return read.error();
  return opened;
}

Status StepFile::read_layout() {
  const auto dimensions = file_.dimensions();
  if (!dimensions.ok()) return dimensions.error();
  const auto variables = file_.variables();
  if (!variables.ok()) return variables.error();
  const auto marked = file_.attributes(kGlobal);
  if (!marked.ok()) return marked.error();
  const auto version = std::ranges::find(*marked, marks::kLayout, &Attribute::name);
  if (version == marked->end() || !std::ranges::equal(version->value, as_bytes(kLayoutVersion)))
    return not_ours("it has no attribute nessie_layout that is 1");
  layout_.origin = {text_of(*marked, marks::kStream),
                    std::strtoull(text_of(*marked, marks::kIdentity).c_str(), nullptr, 16)};
  layout_.step_name = text_of(*marked, marks::kStep);
  std::int64_t records = -1;
  for (const auto &each : *dimensions) {
    if (each.is_unlimited && each.name == layout_.step_name) records = each.length;
    if (!each.is_unlimited) layout_.dimensions.emplace_back(each.name, each.length);
  }
  if (records < 0) return not_ours("it has no unlimited dimension that its attribute nessie_step names");
  for (const auto &each : *marked)
    if (!each.name.starts_with("nessie_")) layout_.attributes.push_back(each);
  std::vector<std::string> shapes;
  for (std::size_t number = 0; number < variables->size(); ++number)
    if (auto read = read_variable(static_cast<int>(number), *variables, *dimensions, shapes); !read.ok()) return read;
  std::erase_if(layout_.variables,
                [&](const FileVariable &each) { return std::ranges::count(shapes, each.name) != 0; });
  std::erase_if(ids_, [&](const Numbers &each) {
    return std::ranges::count(shapes, (*variables)[static_cast<std::size_t>(each.variable)].name) != 0;
  });
  return read_numbers(records);
}

/// Adds it to the layout, and to `shapes` what it says is no variable of the stream's.
Status StepFile::read_variable(int number, const std::vector<NetcdfVariable> &all,
                               const std::vector<NetcdfDimension> &dimensions, std::vector<std::string> &shapes) {
  const auto &it = all[static_cast<std::size_t>(number)];
  if (it.name == layout_.step_name) return (void)(step_id_ = number), Status();
  auto attributes = file_.attributes(number);
  if (!attributes.ok()) return attributes.error();
  FileVariable variable{{it.name, it.type, {}, {}, true}, it.name, {}, text_of(*attributes, marks::kShape), {}};
  if (auto name = text_of(*attributes, marks::kVariable); !name.empty()) variable.variable.name = name;
  for (const int each : it.dimensions) {
    const auto &dimension = dimensions[static_cast<std::size_t>(each)];
    if (dimension.is_unlimited) {
      variable.variable.is_constant = false;
      continue;
    }
    variable.variable.shape.push_back(dimension.length);
    variable.dimensions.push_back(dimension.name);
  }
  Numbers ids{number, -1};
  if (!variable.shape_name.empty()) {
    const auto shape = std::ranges::find(all, variable.shape_name, &NetcdfVariable::name);
    if (shape == all.end() || shape->type != Type::kInt64 || shape->dimensions.empty())
      return not_ours("the variable that another one's attribute nessie_shape names is none, or no int64");
    ids.shape = static_cast<int>(shape - all.begin());
    variable.shape_dimension = dimensions[static_cast<std::size_t>(shape->dimensions.back())].name;
    shapes.push_back(variable.shape_name);
  }
  for (auto &each : *attributes) {
    if (each.name == marks::kFillValue) variable.variable.fill = each.value;
    if (each.name == marks::kFillValue || each.name.starts_with("nessie_")) continue;
    each.variable = variable.variable.name;
    layout_.attributes.push_back(std::move(each));
  }
  ids_.push_back(ids);
  layout_.variables.push_back(std::move(variable));
  return {};
}

Status StepFile::read_numbers(std::int64_t records) {
  if (step_id_ < 0) return not_ours("the numbers of its steps are missing");
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(records));
  if (auto got = records == 0 ? Status() : file_.get(step_id_, {{0}, {records}}, numbers.data()); !got.ok()) return got;
  for (const auto each : numbers) {
    if (each < 0) break;  // it was begun, and not finished
    if (!numbers_.empty() && static_cast<std::uint64_t>(each) <= numbers_.back())
      return not_ours("the numbers of its steps do not grow");
    numbers_.push_back(static_cast<std::uint64_t>(each));
  }
  return {};
}

// --- steps ------------------------------------------------------------------------------------------------------------

Box StepFile::in_file(std::size_t index, const Box &box, std::size_t record) const {
  if (layout_.variables[index].variable.is_constant) return box;
  Box result = box;
  result.start.insert(result.start.begin(), static_cast<std::int64_t>(record));
  result.count.insert(result.count.begin(), 1);
  return result;
}

Status StepFile::write(Step &step) {
  const auto record = static_cast<std::int64_t>(numbers_.size()), none = no_step();
  if (auto put = file_.put(step_id_, {{record}, {1}}, &none); !put.ok()) return put;
  for (std::size_t index = 0; index < ids_.size(); ++index)
    if (auto written = write_variable(index, step); !written.ok()) return written;
  has_constants_ = true;
  return update_attributes(step);
}

Status StepFile::write_variable(std::size_t index, Step &step) {
  const auto &variable = layout_.variables[index].variable;
  const auto *now = find(step, variable.name);
  if (variable.is_constant && has_constants_ && (now == nullptr || !step.is_new(*now))) return {};
  const bool is_whole = now != nullptr && now->shape == variable.shape;
  if (auto filled = is_whole ? Status() : fill(index); !filled.ok()) return filled;
  if (auto copied = now == nullptr ? Status() : copy(index, *now, step); !copied.ok()) return copied;
  return put_shape(index, now == nullptr ? Extents(variable.shape.size(), -1) : now->shape);
}

Status StepFile::fill(std::size_t index) {
  const auto &variable = layout_.variables[index].variable;
  const auto value = variable.fill.empty() ? usual_fill(variable.type) : variable.fill;
  const auto all = whole(variable.shape);
  auto slab = slab_for(all, variable.type);
  fill_slab(slab, value);
  return for_each_slab(all, variable.type, [&](const Box &box) {
    return file_.put(ids_[index].variable, in_file(index, box, numbers_.size()), slab.data());
  });
}

Status StepFile::copy(std::size_t index, const Variable &now, Step &step) {
  return copy_slabs(step, now, [&](const Box &box, const void *data) {
    return file_.put(ids_[index].variable, in_file(index, box, numbers_.size()), data);
  });
}

Status StepFile::put_shape(std::size_t index, const Extents &shape) {
  if (ids_[index].shape < 0) return {};
  const auto rank = static_cast<std::int64_t>(shape.size());
  return file_.put(ids_[index].shape, in_file(index, {{0}, {rank}}, numbers_.size()), shape.data());
}

Status StepFile::mark(std::uint64_t number) {
  const auto value = static_cast<std::int64_t>(number), record = static_cast<std::int64_t>(numbers_.size());
  if (auto put = file_.put(step_id_, {{record}, {1}}, &value); !put.ok()) return put;
  numbers_.push_back(number);
  return {};
}

Result<std::vector<Variable>> StepFile::variables(std::size_t record) {
  std::vector<Variable> all;
  for (std::size_t index = 0; index < ids_.size(); ++index) {
    auto variable = layout_.variables[index].variable;
    if (ids_[index].shape >= 0) {
      const auto rank = static_cast<std::int64_t>(variable.shape.size());
      Extents shape(variable.shape.size());
      if (auto got = file_.get(ids_[index].shape, in_file(index, {{0}, {rank}}, record), shape.data()); !got.ok())
        return got.error();
      if (shape.front() < 0) continue;  // it was not put
      for (std::size_t at = 0; at < shape.size(); ++at)
        if (shape[at] < 0 || shape[at] > variable.shape[at])
          return not_ours("a variable's shape is larger than the room that it has");
      variable.shape = shape;
    }
    all.push_back(std::move(variable));
  }
  return all;
}

Status StepFile::get(std::size_t record, const Variable &variable, const Box &box, std::span<std::byte> destination) {
  for (std::size_t index = 0; index < ids_.size(); ++index)
    if (layout_.variables[index].variable.name == variable.name)
      return elements_of(box) * size_of(variable.type) > destination.size()
                 ? Error{Code::kOutOfRange, "the box is larger than the memory for it"}
                 : file_.get(ids_[index].variable, in_file(index, box, record), destination.data());
  return Error{Code::kNotFound, fmt::format("there is no variable '{}' in this step", variable.name)};
}

// --- its steps -----------------------------------------------------------------------------------------------------------

Result<FileStep> FileStep::open(StepFile &file, std::size_t record) {
  auto variables = file.variables(record);
  if (!variables.ok()) return variables.error();
  return FileStep(file, record, *std::move(variables));
}

}  // namespace nessie::streams::sinks
