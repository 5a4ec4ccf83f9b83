// SPDX-License-Identifier: BSD-3-Clause
// For tests: files in memory, whose descriptors are given to others.
#pragma once

#include <base/fd.hpp>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace nnti::given {

inline nessie::Fd file_with(std::string_view text) {
  nessie::Fd file(::memfd_create("given", MFD_CLOEXEC));
  EXPECT_EQ(::write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  return file;
}

inline std::string text_in(int descriptor) {
  std::string text(64, '\0');
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(::pread(descriptor, text.data(), text.size(), 0), 0)));
  return text;
}

}  // namespace nnti::given
