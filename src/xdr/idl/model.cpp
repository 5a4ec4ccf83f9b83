// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/model.hpp"

namespace xdr::idl {

std::vector<const Declaration *> members_of(const Definition &definition) {
  std::vector<const Declaration *> members;
  if (const auto *it = std::get_if<Struct>(&definition))
    for (const auto &field : it->fields) members.push_back(&field);
  if (const auto *it = std::get_if<Union>(&definition)) {
    members.push_back(&it->discriminant);
    for (const auto &arm : it->arms) members.push_back(&arm.declaration);
  }
  if (const auto *it = std::get_if<Typedef>(&definition)) members.push_back(&it->declaration);
  return members;
}

}  // namespace xdr::idl
