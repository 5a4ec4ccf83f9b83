! SPDX-License-Identifier: BSD-3-Clause
! What a Fortran program can see of MPI_COMM_WORLD, by `use mpi_f08`, one fact a line.
module callbacks
  use mpi_f08
  implicit none
contains
  subroutine hear(comm, code)
    type(MPI_Comm) :: comm
    integer :: code, rank
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    if (rank == 0) print '(A, L2)', 'an error on the world:', comm == MPI_COMM_WORLD
  end subroutine

  subroutine copied(comm, keyval, state, value, copy, flag, ierr)
    type(MPI_Comm) :: comm
    integer :: keyval, ierr, rank
    integer(MPI_ADDRESS_KIND) :: state, value, copy
    logical :: flag
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    if (rank == 0) print '(A, L2, I4)', 'an attribute is copied from the world:', comm == MPI_COMM_WORLD, state
    copy = value
    flag = .true.
    ierr = MPI_SUCCESS
  end subroutine

  subroutine removed(comm, keyval, value, state, ierr)
    type(MPI_Comm) :: comm
    integer :: keyval, ierr, rank
    integer(MPI_ADDRESS_KIND) :: value, state
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    if (rank == 0) print '(A, 2I4)', 'an attribute is removed:', value, state   ! Open MPI 4 says of another communicator
    ierr = MPI_SUCCESS
  end subroutine
end module

program world
  use mpi_f08
  use callbacks
  implicit none
  integer :: rank, size, total, keyval, result, length, ierr
  integer, asynchronous :: sent, got
  integer(MPI_ADDRESS_KIND) :: value, state
  logical :: flag
  type(MPI_Comm) :: copy
  type(MPI_Errhandler) :: handler
  type(MPI_Request) :: requests(2)
  character(len=MPI_MAX_OBJECT_NAME) :: name
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call MPI_Allreduce(rank + 1, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call say('processes:', size)
  call say('the sum of ranks:', total)
  sent = rank
  call MPI_Irecv(got, 1, MPI_INTEGER, modulo(rank - 1, size), 0, MPI_COMM_WORLD, requests(1))
  call MPI_Isend(sent, 1, MPI_INTEGER, modulo(rank + 1, size), 0, MPI_COMM_WORLD, requests(2))
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
  call say('around the ring:', got)
  call MPI_Comm_get_name(MPI_COMM_WORLD, name, length)
  if (rank == 0) print '(A, 1X, A)', 'the name:', name(1:length)
  state = 42
  call MPI_Comm_create_keyval(copied, removed, keyval, state)
  value = 7
  call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, value)
  value = 0
  call MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, value, flag)
  call say('the attribute:', int(value))
  call MPI_Comm_dup(MPI_COMM_WORLD, copy)
  call MPI_Comm_compare(MPI_COMM_WORLD, copy, result)
  call say('with its copy:', merge(1, 0, result == MPI_CONGRUENT))
  call MPI_Comm_free(copy)
  call MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval)
  call MPI_Comm_free_keyval(keyval)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag)
  call say('there is a largest tag:', merge(1, 0, flag .and. value > 1000))
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, value, flag)
  call say('the number of the program:', merge(int(value), -1, flag))
  call MPI_Comm_create_errhandler(hear, handler)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler)
  call MPI_Errhandler_free(handler)
  call MPI_Send(sent, 1, MPI_INTEGER, size, 0, MPI_COMM_WORLD, ierr)
  call say('the send failed:', merge(1, 0, ierr /= MPI_SUCCESS))
  call MPI_Finalize()
contains
  subroutine say(what, number)
    character(len=*), intent(in) :: what
    integer, intent(in) :: number
    if (rank == 0) print '(A, I12)', what, number
  end subroutine
end program
