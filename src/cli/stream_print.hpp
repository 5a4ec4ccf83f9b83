// SPDX-License-Identifier: BSD-3-Clause
// Streams, steps and elements, for people and as JSON.
#pragma once

#include <nessie/streams.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <span>
#include <string>

namespace nessie::cli {

/// A line.
std::string describe_line(const streams::StreamInfo &stream);
/// All that is known of it.
std::string describe(const streams::StreamInfo &stream);
nlohmann::ordered_json to_json(const streams::StreamInfo &stream);

/// "double (4, 8)", "constant int32".
std::string describe_type(const streams::Variable &variable);

/// One element, or of kChar all of them, as text.
std::string text_of(streams::Type type, std::span<const std::byte> elements);
/// What text_of() says, as JSON: a number, or a string.
nlohmann::ordered_json json_of(streams::Type type, std::span<const std::byte> elements);

/// Elements of a box in C order: nested lists, one row a line, as NumPy has them.
std::string text_of(streams::Type type, const streams::Extents &count, std::span<const std::byte> elements);
nlohmann::ordered_json json_of(streams::Type type, const streams::Extents &count, std::span<const std::byte> elements);

}  // namespace nessie::cli
