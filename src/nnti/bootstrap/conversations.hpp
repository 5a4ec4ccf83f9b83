// SPDX-License-Identifier: BSD-3-Clause
// Well-formed inputs for the fuzz targets of the bootstrap: each page by itself, and all of them.
#pragma once

#include "base/testing/fuzz.hpp"
#include "nnti/bootstrap/bootstrap.hpp"

namespace nnti::bootstrap {

inline std::vector<nessie::fuzz::Bytes> conversations() {
  using nessie::fuzz::Bytes;
  std::vector<Bytes> corpus;
  Bytes all;
  for (auto type : {PageType::kHello, PageType::kChallenge, PageType::kProof, PageType::kWelcome, PageType::kRefusal,
                    PageType::kTransport}) {
    Bytes page;
    encode_page(type, 0, Bytes(50, std::byte{1}), page);
    corpus.push_back(page);
    all.insert(all.end(), page.begin(), page.end());
  }
  corpus.push_back(all);
  return corpus;
}

}  // namespace nnti::bootstrap
