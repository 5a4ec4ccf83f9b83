! SPDX-License-Identifier: BSD-3-Clause
! Serves arrays.x until it is killed. The array may be larger than this process's memory: it is pulled and pushed a piece
! at a time. client.f90 has the commands.
module arrays_service
  use, intrinsic :: iso_c_binding
  use nssi
  use arrays_rpc
  implicit none
  private

  type, extends(ARRAYS_ONE_server), public :: arrays_server
  contains
    procedure :: scale => scale_array
  end type

  integer(c_int64_t), parameter :: most = 65536 ! elements

contains

  ! What data are pulled into is a target, because somebody else than the compiler's code writes it, and on the heap,
  ! because stacks have 1 MiB.
  recursive function scale_array(self, request, argument1, outcome) result(status)
    class(arrays_server), intent(inout) :: self
    type(nssi_request), intent(inout) :: request
    real(c_double), intent(in) :: argument1
    real(c_double), intent(inout) :: outcome
    type(nessie_status) :: status
    real(c_double), allocatable, target :: piece(:)
    integer(c_int64_t) :: at, count
    outcome = 0
    count = request%data_bytes() / 8
    do at = 0, count - 1, most
      if (allocated(piece)) deallocate (piece)
      allocate (piece(min(count - at, most)))
      status = request%get_data(piece, 8 * at)
      if (.not. status%ok()) return
      piece = piece * argument1
      outcome = outcome + sum(piece)
      status = request%put_data(piece, 8 * at)
      if (.not. status%ok()) return
    end do
    associate (unused => self)
    end associate
  end function
end module

program server
  use nssi
  use arrays_service
  implicit none
  type(nssi_runtime) :: runtime
  type(arrays_server), target :: service
  call demand(runtime%open())
  call demand(service%add_to(runtime))
  call demand(runtime%announce('file:bulk.contact'))
  call demand(runtime%run())

contains

  subroutine demand(status)
    type(nessie_status), intent(in) :: status
    if (status%ok()) return
    print '(a)', status%message
    stop 1
  end subroutine
end program
