! SPDX-License-Identifier: BSD-3-Clause
! What a Fortran program can see of MPI_COMM_WORLD, by mpif.h or by `use mpi`, one fact a line.
subroutine hear(comm, code)
#include "binding.inc"
  integer :: comm, code, rank, ierr
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  if (rank == 0) print '(A, L2)', 'an error on the world:', comm == MPI_COMM_WORLD
end subroutine

subroutine copied(comm, keyval, state, value, copy, flag, ierr)
#include "binding.inc"
  integer :: comm, keyval, ierr, rank
  integer(MPI_ADDRESS_KIND) :: state, value, copy
  logical :: flag
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  if (rank == 0) print '(A, L2, I4)', 'an attribute is copied from the world:', comm == MPI_COMM_WORLD, state
  copy = value
  flag = .true.
  ierr = MPI_SUCCESS
end subroutine

subroutine removed(comm, keyval, value, state, ierr)
#include "binding.inc"
  integer :: comm, keyval, ierr, rank
  integer(MPI_ADDRESS_KIND) :: state, value
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  if (rank == 0) print '(A, 2I4)', 'an attribute is removed:', value, state   ! Open MPI 4 says of another communicator
  ierr = MPI_SUCCESS
end subroutine

program world
#include "binding.inc"
  external :: hear, copied, removed
  integer :: rank, size, total, ierr, keyval, copy, handler, result, length
  integer(MPI_ADDRESS_KIND) :: value, state
  logical :: flag
  character(len=MPI_MAX_OBJECT_NAME) :: name
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  call MPI_Allreduce(rank + 1, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call say('processes:', size)
  call say('the sum of ranks:', total)
  call MPI_Comm_get_name(MPI_COMM_WORLD, name, length, ierr)
  if (rank == 0) print '(A, 1X, A)', 'the name:', name(1:length)
  state = 42
  call MPI_Comm_create_keyval(copied, removed, keyval, state, ierr)
  value = 7
  call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, value, ierr)
  value = 0
  call MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, value, flag, ierr)
  call say('the attribute:', int(value))
  call MPI_Comm_dup(MPI_COMM_WORLD, copy, ierr)
  call MPI_Comm_compare(MPI_COMM_WORLD, copy, result, ierr)
  call say('with its copy:', merge(1, 0, result == MPI_CONGRUENT))
  value = 0
  call MPI_Comm_get_attr(copy, keyval, value, flag, ierr)
  call say('the attribute of the copy:', int(value))
  call MPI_Comm_free(copy, ierr)
  call MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval, ierr)
  call MPI_Comm_free_keyval(keyval, ierr)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierr)
  call say('there is a largest tag:', merge(1, 0, flag .and. value > 1000))
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, value, flag, ierr)
  call say('the number of the program:', merge(int(value), -1, flag))
  call MPI_Comm_create_errhandler(hear, handler, ierr)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler, ierr)
  call MPI_Errhandler_free(handler, ierr)
  call MPI_Send(rank, 1, MPI_INTEGER, size, 0, MPI_COMM_WORLD, ierr)
  call say('the send failed:', merge(1, 0, ierr /= MPI_SUCCESS))
  call MPI_Finalize(ierr)
contains
  subroutine say(what, number)
    character(len=*), intent(in) :: what
    integer, intent(in) :: number
    if (rank == 0) print '(A, I12)', what, number
  end subroutine
end program
