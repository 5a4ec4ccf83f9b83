// SPDX-License-Identifier: BSD-3-Clause
#include "box_text.hpp"

#include <gtest/gtest.h>

namespace nessie::cli {
namespace {

using streams::Box;

Box box_in(std::string_view text, const streams::Extents &shape) {
  const auto parsed = BoxText::parse(text);
  EXPECT_TRUE(parsed.ok()) << parsed.error().message;
  const auto box = parsed->in(shape);
  EXPECT_TRUE(box.ok()) << box.error().message;
  return *box;
}

std::string trouble(std::string_view text, const streams::Extents &shape = {10, 20}) {
  const auto parsed = BoxText::parse(text);
  if (!parsed.ok()) return parsed.error().message;
  const auto box = parsed->in(shape);
  return box.ok() ? "" : box.error().message;
}

TEST(BoxText, IsHalfOpenAsInPython) {
  EXPECT_EQ(box_in("T[0:9,:,5]", {10, 20, 30}), (Box{{0, 0, 5}, {9, 20, 1}}));
  EXPECT_EQ(box_in("T[ 2 : , :4 ]", {10, 20}), (Box{{2, 0}, {8, 4}}));
}

TEST(BoxText, CountsFromTheEndWhatIsNegative) { EXPECT_EQ(box_in("T[-1,-3:-1]", {10, 20}), (Box{{9, 17}, {1, 2}})); }

TEST(BoxText, TakesAllOfWhatItDoesNotSay) {
  EXPECT_EQ(box_in("T", {10, 20}), (Box{{0, 0}, {10, 20}}));
  EXPECT_EQ(box_in("T[3]", {10, 20}), (Box{{3, 0}, {1, 20}}));
  EXPECT_EQ(box_in("t", {}), (Box{{}, {}}));
  EXPECT_EQ(BoxText::parse("fluid/T[3]")->variable, "fluid/T");
}

TEST(BoxText, EndsWhereTheDimensionDoes) {
  EXPECT_EQ(box_in("T[5:99]", {10}), (Box{{5}, {5}}));
  EXPECT_EQ(box_in("T[7:3]", {10}), (Box{{7}, {0}}));
}

TEST(BoxText, PointsToWhatCannotBeMeant) {
  EXPECT_NE(trouble("T[0:9,x5]").find("\nT[0:9,x5]\n      ^ here an element"), std::string::npos);
  EXPECT_NE(trouble("T[0,]").find("\nT[0,]\n    ^ here an element"), std::string::npos);
  EXPECT_NE(trouble("T[]").find("\nT[]\n  ^ here an element"), std::string::npos);
  EXPECT_NE(trouble("T[0:9:2]").find("\n     ^ steps are not supported"), std::string::npos);
  EXPECT_NE(trouble("T[0").find("\n   ^ here ] is expected"), std::string::npos);
  EXPECT_NE(trouble("[0]").find("\n^ here the name"), std::string::npos);
  EXPECT_NE(trouble("T[0,0,7]").find("\n      ^ it has 2 dimensions only"), std::string::npos);
  EXPECT_NE(trouble("T[0,20]").find("\n    ^ element 20 is out of bounds for dimension 1, which has 20"),
            std::string::npos);
  EXPECT_NE(trouble("T[-11]").find("element -11 is out of bounds"), std::string::npos);
}

}  // namespace
}  // namespace nessie::cli
