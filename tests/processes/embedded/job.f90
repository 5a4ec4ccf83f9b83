! SPDX-License-Identifier: BSD-3-Clause
! Tells the level of threads that MPI has, whatever was asked for: with servers in its processes it is the highest.
program job
  use mpi_f08
  implicit none
  integer :: level
  call MPI_Init()
  call MPI_Query_thread(level)
  print '(l1)', level == MPI_THREAD_MULTIPLE
  call MPI_Finalize()
end program job
