// SPDX-License-Identifier: BSD-3-Clause
// Which requests of a client have been carried out, so that one that is sent again, after its server has died and is
// back, is not carried out twice. The client numbers them, and says up to which it has its answers.
#pragma once

#include <staging.hpp>

#include <cstdint>
#include <map>

namespace staging {

class Done {
 public:
  std::uint64_t answered() const { return answered_; }
  /// Those that were carried out, and may not have their answers: each with its file.
  const std::map<std::uint64_t, FileToken> &later() const { return later_; }
  bool has(std::uint64_t number) const { return number <= answered_ || later_.contains(number); }
  /// `answered`: all up to this one have their answers.
  void add(std::uint64_t number, std::uint64_t answered, FileToken file) {
    later_.try_emplace(number, file);
    if (answered <= answered_) return;
    answered_ = answered;
    later_.erase(later_.begin(), later_.upper_bound(answered));
  }

 private:
  std::uint64_t answered_ = 0;
  std::map<std::uint64_t, FileToken> later_;
};

}  // namespace staging
