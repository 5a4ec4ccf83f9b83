! SPDX-License-Identifier: BSD-3-Clause
! Says how many processes it sees.
program shares_a_job
  use mpi
  implicit none
  integer :: rank, size, code
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, size, code)
  if (rank == 0) print '(i0, a)', size, ' in Fortran'
  call MPI_Finalize(code)
end program
