// SPDX-License-Identifier: BSD-3-Clause
#include "services/streams/sinks/layout.hpp"

#include "services/streams/sinks/testing/memory_step.hpp"

#include <gtest/gtest.h>

namespace nessie::streams::sinks {
namespace {

using testing::MemoryStep;
using testing::text_attribute;
using Names = std::vector<std::string>;

const Origin kFlow{"flow", 7};

Variable array(std::string name, Extents shape, bool is_constant = false) {
  return {std::move(name), Type::kDouble, std::move(shape), {}, is_constant};
}

MemoryStep step_with(const std::vector<Variable> &variables, std::uint64_t number = 0) {
  MemoryStep step(number);
  for (const auto &each : variables) step.add(each, std::vector<double>{});
  return step;
}

TEST(FileLayout, NamesDimensionsByLengthsAndNoneTwiceInAVariable) {
  const auto layout = layout_of(kFlow, step_with({array("T", {4, 8, 8}), array("p", {8}), array("t", {})}));
  EXPECT_EQ(layout.step_name, "step");
  EXPECT_EQ(layout.variables[0].dimensions, (Names{"n4", "n8", "n8_2"}));
  EXPECT_EQ(layout.variables[1].dimensions, Names{"n8"});
  EXPECT_EQ(layout.variables[2].dimensions, Names{});
  EXPECT_EQ(layout.dimensions.size(), 3u);
}

TEST(FileLayout, TakesTheWritersNamesOfDimensions) {
  auto step = step_with({array("T", {2, 8}), array("x", {8}, true), array("U", {2, 9})});
  step.say(text_attribute("T", "dimensions", "z x")).say(text_attribute("U", "dimensions", "z x"));
  const auto layout = layout_of(kFlow, step);
  EXPECT_EQ(layout.variables[0].dimensions, (Names{"z", "x"}));
  EXPECT_EQ(layout.variables[2].dimensions, (Names{"z", "x_2"}));  // another length
}

TEST(FileLayout, GivesNoDimensionTheNameOfAVariableThatIsNotItsCoordinates) {
  auto step = step_with({array("T", {2, 8}), array("x", {2, 8}), array("n2", {4}), array("step", {})});
  step.say(text_attribute("T", "dimensions", "z x"));
  const auto layout = layout_of(kFlow, step);
  EXPECT_EQ(layout.variables[0].dimensions, (Names{"z", "x_2"}));
  EXPECT_EQ(layout.variables[1].dimensions, (Names{"n2_2", "n8"}));
  EXPECT_EQ(layout.step_name, "stream_step");
}

TEST(FileLayout, NamesThatNetcdfDoesNotTakeAreReplaced) {
  EXPECT_EQ(file_name("fluid/T"), "fluid.T");
  EXPECT_EQ(file_name("+x"), "_+x");
  EXPECT_EQ(file_name("a\tb "), "a_b_");
  const auto layout = layout_of(kFlow, step_with({array("a/b", {}), array("a.b", {})}));
  EXPECT_EQ(layout.variables[0].name, "a.b");
  EXPECT_EQ(layout.variables[1].name, "a.b_2");
}

TEST(FileLayout, HasRoomForTheShapesThatItWasMadeFor) {
  const auto layout = layout_of(kFlow, step_with({array("T", {4, 8}), array("p", {8})}));
  EXPECT_TRUE(has_room(layout, step_with({array("p", {8})}, 1)));
  EXPECT_FALSE(has_room(layout, step_with({array("p", {7})}, 1)));  // nothing says yet how many there are
  EXPECT_FALSE(has_room(layout, step_with({array("p", {9})}, 1)));
  EXPECT_FALSE(has_room(layout, step_with({array("q", {8})}, 1)));
}

TEST(FileLayout, ThatIsWidenedHasRoomForAllAndSaysTheShape) {
  const auto first = layout_of(kFlow, step_with({array("p", {100}), array("q", {8})}));
  const auto wider = widened(first, step_with({array("p", {101}), array("r", {0})}, 1));
  ASSERT_TRUE(wider.ok());
  EXPECT_EQ(wider->variables[0].variable.shape, Extents{125});
  EXPECT_EQ(wider->variables[0].shape_name, "p_shape");
  EXPECT_EQ(wider->variables[1].shape_name, "");
  EXPECT_EQ(wider->variables[2].variable.shape, Extents{1});
  EXPECT_TRUE(has_room(*wider, step_with({array("p", {3}), array("q", {8}), array("r", {0})}, 2)));
  const auto far = widened(*wider, step_with({array("p", {1000})}, 2));
  EXPECT_EQ(far->variables[0].variable.shape, Extents{1000});
}

TEST(FileLayout, CannotMakeAConstantOfWhatChanges) {
  const auto layout = layout_of(kFlow, step_with({array("p", {8})}));
  const auto wider = widened(layout, step_with({array("p", {8}, true)}, 1));
  EXPECT_EQ(wider.code(), Code::kUnsupported);
}

TEST(FileLayout, KeepsAttributesOfItsVariablesAndNoneOfOurOwn) {
  auto step = step_with({array("T", {4})});
  step.say(text_attribute("", "title", "a flow")).say(text_attribute("T", "units", "K"));
  step.say(text_attribute("other", "units", "m")).say(text_attribute("", "nessie_step", "x"));
  step.say({"T", "_FillValue", Type::kDouble, testing::bytes_of(std::vector<double>{-1})});
  const auto layout = layout_of(kFlow, step);
  ASSERT_EQ(layout.attributes.size(), 2u);
  EXPECT_EQ(layout.attributes[0].name, "title");
  EXPECT_EQ(layout.attributes[1].name, "units");
  EXPECT_EQ(layout.variables[0].variable.fill, testing::bytes_of(std::vector<double>{-1}));
}

}  // namespace
}  // namespace nessie::streams::sinks
