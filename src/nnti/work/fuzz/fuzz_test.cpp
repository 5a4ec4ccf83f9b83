// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/work/fuzz/fuzz.hpp"
#include "nnti/work/fuzz/mutate.hpp"

#include <gtest/gtest.h>

namespace {

TEST(EngineFuzz, ContextHearsAnything) {
  nnti::fuzz::feed(nnti::fuzz::hear_peer, nnti::fuzz::conversations_with_a_context(), 4'000);
}

}  // namespace
