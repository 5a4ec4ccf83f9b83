// SPDX-License-Identifier: BSD-3-Clause
// What a file is to be like in which the steps of an unmodified program's files are: docs/streams-formats.md. Nothing
// here touches a file.
#pragma once

#include "services/streams/sinks/step.hpp"

#include <services/staging/client/classic_header.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace nessie::streams::sinks {

/// Of it, what a file's header says of where things lie, or how many records there are, counts for nothing.
using Form = staging::ClassicHeader;

/// What a file is like that has the step, as it is of a program's files; without variables that are not wanted.
/// kBadMessage: its source has no header.
Result<Form> form_of(const Step &step);

/// Whether the dimensions and variables are alike; then only attributes may differ.
bool has_same_definitions(const Form &a, const Form &b);
/// Whether what a file of form `before` has can be in one of form `after`: variables may be called otherwise, and have
/// others behind them. Others: which one cannot.
Status check_extends(const Form &before, const Form &after);
/// Attributes that are new or have changed, with `variable` empty for the file's own. Nothing: they are not what one
/// gets by adding to those there were, or changing them.
std::optional<std::vector<Attribute>> changed_attributes(const Form &before, const Form &after);

/// Where in a file elements are that a step has as `box`: of a record variable, or of one that its file has without
/// records, behind `first_record`.
Box in_records(const staging::ClassicVariable &variable, std::int64_t first_record, const Box &box);
/// All of a fixed variable, or so many of its records.
Box all_of(const staging::ClassicVariable &variable, std::int64_t records);
/// One record of it, or all of a fixed variable.
Box one_record(const staging::ClassicVariable &variable, std::int64_t record);
/// What an element has that nobody has written.
std::vector<std::byte> fill_of(const staging::ClassicVariable &variable);

}  // namespace nessie::streams::sinks
