// SPDX-License-Identifier: BSD-3-Clause
// Job scripts, whatever became of them: what is rewritten is the same but for what was inserted, and stays as it is.
#include "slurm_diff.hpp"
#include "slurm_job.hpp"
#include "slurm_rewrite.hpp"

#include <base/testing/fuzz.hpp>

#include <algorithm>
#include <string>
#include <string_view>

using namespace nessie::fuzz;
using namespace nessie::cli;

namespace {

const std::string kInFront = "nessie run -- ";

std::string without(std::string text, const std::string &part) {
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at)) text.erase(at, part.size());
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const std::string script(reinterpret_cast<const char *>(data), size);
  (void)advise(read_directives(script), true);
  const auto first = rewrite(script, kInFront);
  if (!first) return 0;
  require(without(first->text, kInFront) == without(script, kInFront));
  require((first->text == script) == unified_diff(script, first->text, "a", "b").empty());
  const auto again = rewrite(first->text, kInFront);
  require(again.ok() && again->text == first->text);
  return 0;
}

std::vector<nessie::fuzz::Bytes> nessie::fuzz::seeds() {
  std::vector<Bytes> seeds;
  for (const std::string_view text :
       {"#!/bin/bash\n#SBATCH -n 8 --mem=4G\nmodule load x\nsrun ./sim \\\n  in.nml > out 2>&1 &\nwait\n",
        "for i in 1 2; do ( cd \"$i\" && mpirun -np 4 ./a ) || exit; done\ncase $1 in a|b) srun ./a;; *) srun ./b; "
        "esac\n",
        "RUN=\"srun -n 4\"\nX=1 time $RUN ./a | tee `hostname`.log\ncat > f <<-'E'\n\tsrun\n\tE\n",
        "if [[ $a =~ (x|y) ]]; then n=$(srun ./a $((1 + 2)) ${b:-\"c\"}); fi\nf() { srun a : b; }\na=(srun 'x y')\n"}) {
    const auto *begin = reinterpret_cast<const std::byte *>(text.data());
    seeds.emplace_back(begin, begin + text.size());
  }
  return seeds;
}
