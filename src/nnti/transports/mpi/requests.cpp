// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/mpi/requests.hpp"

#include <algorithm>

namespace nnti::mpi {

std::size_t RequestSet::poll(std::vector<Finished> &finished) {
  if (requests_.empty()) return 0;
  indices_.resize(requests_.size());
  statuses_.resize(requests_.size());
  int count = 0;
  const int rc =
      MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, indices_.data(), statuses_.data());
  if (count == MPI_UNDEFINED || count <= 0) return 0;
  const auto done = static_cast<std::size_t>(count);
  for (std::size_t i = 0; i < done; ++i) {
    const auto &status = statuses_[i];
    int cancelled = 0, size_bytes = 0;
    MPI_Test_cancelled(&status, &cancelled);
    if (!cancelled) MPI_Get_count(&status, MPI_BYTE, &size_bytes);
    finished.push_back({works_[static_cast<std::size_t>(indices_[i])],
                        rc == MPI_ERR_IN_STATUS ? status.MPI_ERROR : MPI_SUCCESS, cancelled != 0, size_bytes});
  }
  std::sort(indices_.begin(), indices_.begin() + count);
  for (std::size_t i = done; i-- > 0;) remove(static_cast<std::size_t>(indices_[i]));
  return done;
}

void RequestSet::cancel(const Work &work) {
  for (std::size_t i = 0; i < works_.size(); ++i)
    if (works_[i] == &work) MPI_Cancel(&requests_[i]);
}

void RequestSet::remove(std::size_t index) {
  requests_[index] = requests_.back();
  works_[index] = works_.back();
  requests_.pop_back();
  works_.pop_back();
}

}  // namespace nnti::mpi
