// SPDX-License-Identifier: BSD-3-Clause
#include "services/streams/sinks/file_copy.hpp"

#include "services/streams/sinks/disk.hpp"
#include "services/streams/sinks/slabs.hpp"
#include "services/streams/sinks/step_file.hpp"

#include <base/log.hpp>
#include <base/printable.hpp>

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

namespace nessie::streams::sinks {

namespace {

constexpr std::size_t kAttributeHead = 64;  ///< what an attribute takes in a header, at most, besides name and value
constexpr const char *kAllOfIt = "(all)";   ///< what is behind, of a file that is a step each time

/// What there is between a file's header and the first of its variables.
std::size_t room_behind_header(const Form &form) {
  std::uint64_t begin = form.bytes.size();
  for (const auto &variable : form.variables)
    begin = begin == form.bytes.size() ? variable.begin : std::min(begin, variable.begin);
  return begin > form.bytes.size() ? begin - form.bytes.size() : 0;
}

Status put_attributes(NetcdfFile &file, int varid, const std::vector<staging::ClassicAttribute> &attributes) {
  for (const auto &each : attributes)
    if (auto put = file.put_attribute(varid, each.name, static_cast<Type>(each.type), each.value); !put.ok())
      return put;
  return {};
}

/// In their order, so that numbers are those of the form.
Status define(NetcdfFile &file, const Form &form) {
  std::map<std::string, int> dimensions;
  for (const auto &each : form.dimensions) {
    const auto made = file.define_dimension(each.name, each.length);
    if (!made.ok()) return made.error();
    dimensions[each.name] = *made;
  }
  if (auto put = put_attributes(file, kGlobal, form.attributes); !put.ok()) return put;
  for (const auto &each : form.variables) {
    std::vector<int> its;
    for (const auto &name : each.dimensions) its.push_back(dimensions.at(name));
    const auto made = file.define_variable(each.name, static_cast<Type>(each.type), its);
    if (!made.ok()) return made.error();
    if (auto put = put_attributes(file, *made, each.attributes); !put.ok()) return put;
  }
  return file.end_definitions(kHeaderReserve);
}

Status fill(NetcdfFile &file, const Form &form, int varid, std::int64_t record) {
  const auto &variable = form.variables[static_cast<std::size_t>(varid)];
  const auto type = static_cast<Type>(variable.type);
  const auto value = fill_of(variable);
  const auto all = one_record(variable, record);
  auto slab = slab_for(all, type);
  fill_slab(slab, value);
  return for_each_slab(all, type, [&](const Box &box) { return file.put(varid, box, slab.data()); });
}

}  // namespace

// --- a file that is there ---------------------------------------------------------------------------------------------

Result<std::unique_ptr<FileCopy>> FileCopy::open(const RecordOptions &options) {
  std::unique_ptr<FileCopy> copy(new FileCopy(options));
  struct stat there {};
  if (::stat(options.path.c_str(), &there) != 0) return copy;
  if (auto opened = copy->open_file(); !opened.ok()) return opened.error();
  return copy;
}

Status FileCopy::open_file() {
  auto fd = open_locked(options_.path);
  if (!fd.ok()) return fd.error();
  auto list = StepList::open(options_.path);
  if (!list.ok()) return list.error();
  if (!is_same(list->origin(), options_.origin)) return of_another(options_.path, list->origin(), options_.origin);
  auto form = read_header(*fd, options_.path);
  if (!form.ok()) return Error{form.code(), fmt::format("{}: {}", printable(options_.path), form.error().message)};
  auto file = NetcdfFile::open(options_.path, true);
  if (!file.ok()) return file.error();
  file_.emplace(*std::move(file)), fd_ = *std::move(fd);
  list_.emplace(*std::move(list));
  form_ = *std::move(form), room_ = room_behind_header(form_);
  if (!list_->last()) return {};
  next_ = list_->last()->number + 1;
  behind_ = list_->last()->behind;
  return {};
}

std::uint64_t FileCopy::wanted() const { return next_; }

// --- steps ------------------------------------------------------------------------------------------------------------

Result<Form> FileCopy::form_for(const Step &step) {
  const auto *source = step.source();
  if (source != nullptr && source->header != nullptr && source->header == next_header_) return next_form_;
  auto form = form_of(step);
  if (form.ok()) next_form_ = *form, next_header_ = source->header;
  return form;
}

Status FileCopy::take(Step &step) {
  if (step.number() < wanted())
    return Error{Code::kOutOfRange, fmt::format("step {} is in {} already", step.number(), printable(options_.path))};
  auto form = form_for(step);
  if (!form.ok()) return form.error();
  const bool is_file = step.source()->kind == Source::Kind::kFile;
  auto taken = is_file ? take_file(*std::move(form), step) : take_records(*std::move(form), step);
  if (taken.ok()) next_ = step.number() + 1;
  return taken;
}

/// What is gone was written over: there will be another step, when that is complete.
Status FileCopy::take_file(Form form, Step &step) {
  auto written = write_anew(std::move(form), step);
  if (written.code() == Code::kNotFound) {
    behind_.insert(kAllOfIt);
    return list_->add({step.number(), 0, behind_});
  }
  if (!written.ok()) return written;
  behind_.clear();
  return list_->add({step.number(), 0});
}

/// Data first, then what says that they are there: whatever is on the disk is true.
Status FileCopy::take_records(Form form, Step &step) {
  const auto records_after = records_with(form, step);
  bool has_room = file_ && has_same_definitions(form_, form);
  if (has_room) {
    const auto changed = change_attributes(form);
    if (!changed.ok()) return changed.error();
    has_room = *changed;
  }
  if (!has_room) {
    if (auto written = write_anew(std::move(form), step); !written.ok()) return written;
  } else {
    if (auto written = write(*file_, form_, step); !written.ok()) return written;
    if (auto given = file_->sync(); !given.ok()) return given;
    if (auto synced = sync_file(fd_, options_.path); !synced.ok()) return synced;
  }
  return list_->add({step.number(), records_after, behind_});
}

std::int64_t FileCopy::first_record_of(const Step &step) const {
  const bool is_one = step.source()->kind == Source::Kind::kRecord;
  return is_one && step.source()->record >= 0 ? step.source()->record : records();
}

std::int64_t FileCopy::records_with(const Form &form, const Step &step) const {
  const auto &source = *step.source();
  if (source.kind == Source::Kind::kRecord) return std::max(records(), source.record + 1);
  for (const auto &variable : form.variables) {
    const auto *now = find(step, variable.name);
    if (variable.is_record && now != nullptr)
      return records() + (now->shape.size() < variable.shape.size() ? 1 : now->shape.front());
  }
  return records();
}

// --- writing ----------------------------------------------------------------------------------------------------------

Status FileCopy::write_anew(Form form, Step &step) {
  const bool has_old = file_ && step.source()->kind != Source::Kind::kFile;
  if (has_old)
    if (auto fits = check_extends(form_, form); !fits.ok()) return fits;
  if (!list_) {
    auto list = StepList::create(options_.path, options_.origin);
    if (!list.ok()) return list.error();
    list_.emplace(*std::move(list));
  }
  if (has_old) log::info("{} is written anew: its program has defined it anew", options_.path), ++rewrites_;
  const auto beside = options_.path + ".new";
  auto fd = open_locked(beside, O_CREAT);
  if (!fd.ok()) return fd.error();
  const auto failed = [&](const Error &error) { return (void)::unlink(beside.c_str()), error; };
  auto file = NetcdfFile::create(beside, form.format);
  if (!file.ok()) return failed(file.error());
  if (auto made = make_file(*file, form, step); !made.ok()) return failed(made.error());
  if (auto synced = sync_file(*fd, beside); !synced.ok()) return failed(synced.error());
  if (auto placed = put_in_place(beside, options_.path, file_.has_value()); !placed.ok()) return failed(placed.error());
  file_.emplace(*std::move(file)), fd_ = *std::move(fd);
  form_ = std::move(form), room_ = kHeaderReserve;
  return sync_folder_of(options_.path);
}

/// With what the old file has, and the step.
Status FileCopy::make_file(NetcdfFile &file, const Form &form, Step &step) {
  if (auto defined = define(file, form); !defined.ok()) return defined;
  const bool is_file = step.source()->kind == Source::Kind::kFile;
  const auto old = file_ && !is_file ? form_.variables.size() : 0;
  for (auto varid = old; varid < form.variables.size(); ++varid) {
    const auto &variable = form.variables[varid];
    const auto number = static_cast<int>(varid);
    if (!variable.is_record && find(step, variable.name) == nullptr)
      if (auto filled = fill(file, form, number, 0); !filled.ok()) return filled;
    for (std::int64_t record = 0; variable.is_record && file_ && !is_file && record < records(); ++record)
      if (auto filled = fill(file, form, number, record); !filled.ok()) return filled;
  }
  if (auto copied = old > 0 ? copy_old(file) : Status(); !copied.ok()) return copied;
  if (auto written = write(file, form, step); !written.ok()) return written;
  return file.sync();
}

Status FileCopy::copy_old(NetcdfFile &to) {
  for (std::size_t at = 0; at < form_.variables.size(); ++at) {
    const auto &variable = form_.variables[at];
    const auto type = static_cast<Type>(variable.type);
    const auto number = static_cast<int>(at);
    const auto all = all_of(variable, records());
    auto slab = slab_for(all, type);
    auto copied = for_each_slab(all, type, [&](const Box &box) {
      auto got = file_->get(number, box, slab.data());
      return got.ok() ? to.put(number, box, slab.data()) : got;
    });
    if (!copied.ok()) return copied;
  }
  return {};
}

/// False: there is no room for them, or they are not what one gets by changing those there are.
Result<bool> FileCopy::change_attributes(const Form &form) {
  const auto changes = changed_attributes(form_, form);
  if (!changes) return false;
  std::size_t more = 0;
  for (const auto &each : *changes) more += each.name.size() + each.value.size() + kAttributeHead;
  if (more > room_) return false;
  if (changes->empty()) return true;
  if (auto again = file_->define_again(); !again.ok()) return again.error();
  for (const auto &each : *changes) {
    const auto *of = each.variable.empty() ? nullptr : form.find(each.variable);
    const int varid = of == nullptr ? kGlobal : static_cast<int>(of - form.variables.data());
    if (auto put = file_->put_attribute(varid, each.name, each.type, each.value); !put.ok()) return put.error();
  }
  if (auto ended = file_->end_definitions(0); !ended.ok()) return ended.error();
  room_ -= more;
  form_ = form;
  return true;
}

Status FileCopy::write(NetcdfFile &file, const Form &form, Step &step) {
  const auto count = static_cast<int>(form.variables.size());
  for (auto record = records(); record < first_record_of(step); ++record)
    for (int varid = 0; varid < count; ++varid)
      if (form.variables[static_cast<std::size_t>(varid)].is_record)
        if (auto filled = fill(file, form, varid, record); !filled.ok()) return filled;
  for (int varid = 0; varid < count; ++varid)
    if (auto written = write_variable(file, form, varid, step); !written.ok()) return written;
  return {};
}

Status FileCopy::write_variable(NetcdfFile &file, const Form &form, int varid, Step &step) {
  const auto &variable = form.variables[static_cast<std::size_t>(varid)];
  const auto *now = find(step, variable.name);
  const auto first = first_record_of(step);
  const bool has_record = variable.is_record && records_with(form, step) > first;
  if (now == nullptr) return has_record ? fill(file, form, varid, first) : Status();
  if (!variable.is_record && !step.is_new(*now)) return {};
  auto copied = copy_slabs(step, *now, [&](const Box &box, const void *data) {
    return file.put(varid, in_records(variable, first, box), data);
  });
  if (copied.ok()) behind_.erase(variable.name);
  const bool is_gone = copied.code() == Code::kNotFound && step.source()->kind != Source::Kind::kFile;
  return is_gone ? note_gone(file, form, varid, step) : copied;
}

/// It was written over since. A fixed variable is put again when that is complete.
Status FileCopy::note_gone(NetcdfFile &file, const Form &form, int varid, const Step &step) {
  const auto &variable = form.variables[static_cast<std::size_t>(varid)];
  log::warning("{}: '{}' of step {} is gone: {}", options_.path, variable.name, step.number(),
               variable.is_record ? "it has fill values there" : "it has what comes later, if that does");
  if (variable.is_record)
    ++missing_;
  else
    behind_.insert(variable.name);
  const auto end = variable.is_record ? records_with(form, step) : first_record_of(step) + 1;
  for (auto record = first_record_of(step); record < end; ++record)
    if (auto filled = fill(file, form, varid, record); !filled.ok()) return filled;
  return {};
}

Status FileCopy::finish() {
  if (!file_) return {};
  auto closed = file_->close();
  file_.reset();
  return closed;
}

}  // namespace nessie::streams::sinks
