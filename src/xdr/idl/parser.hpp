// SPDX-License-Identifier: BSD-3-Clause
// From the text of an interface file to its definitions.
#pragma once

#include "xdr/idl/model.hpp"

#include <string_view>
#include <variant>

namespace xdr::idl {

/// The definitions of a file, or its first fault. Checked, and complete: what the generators start from.
std::variant<Interface, Fault> read(std::string_view source);

/// Only what the grammar demands: names are not resolved.
std::variant<Interface, Fault> parse(std::string_view source);

/// Resolves names and values. The first rule that is broken; empty: none.
std::optional<Fault> check(Interface &interface);

}  // namespace xdr::idl
