// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/finalize.hpp>

#include <mpi.h>

#include <memory>
#include <utility>

namespace interpose {

namespace {

using Work = std::function<void()>;

int run(MPI_Comm, int, void *attribute, void *) {
  const std::unique_ptr<Work> work(static_cast<Work *>(attribute));
  (*work)();
  return MPI_SUCCESS;
}

}  // namespace

// The first thing that MPI_Finalize() does is to delete the attributes of MPI_COMM_SELF.
void at_finalize(Work work) {
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, run, &key, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, std::make_unique<Work>(std::move(work)).release());
  MPI_Comm_free_keyval(&key);  // it lives on in the attribute
}

}  // namespace interpose
