// SPDX-License-Identifier: BSD-3-Clause
// What programs say, as it travels, and back.
#pragma once

#include <nessie/streams.hpp>
#include <services/streams/geometry.hpp>

namespace streams {

namespace api = nessie::streams;

inline ElementType to_wire(api::Type type) { return static_cast<ElementType>(type); }
inline api::Type from_wire(ElementType type) { return static_cast<api::Type>(type); }
inline Box to_wire(const api::Box &box) { return {box.start, box.count}; }
inline Lasting to_wire(api::Durability durability) {
  return durability == api::Durability::kLogged ? Lasting::kInLog : Lasting::kInMemory;
}
inline VariableArgs to_wire(const api::Variable &variable) {
  return {variable.name, to_wire(variable.type), variable.shape, variable.fill, variable.is_constant};
}
inline api::Variable from_wire(const VariableArgs &variable) {
  return {variable.name, from_wire(variable.type), variable.shape, variable.fill, variable.is_constant};
}
inline AttributeArgs to_wire(const api::Attribute &attribute) {
  return {attribute.variable, attribute.name, to_wire(attribute.type), attribute.value};
}
inline api::Attribute from_wire(const AttributeArgs &attribute) {
  return {attribute.variable, attribute.name, from_wire(attribute.type), attribute.value};
}

}  // namespace streams
