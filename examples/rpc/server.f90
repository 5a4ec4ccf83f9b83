! SPDX-License-Identifier: BSD-3-Clause
! Serves roots.x until it is killed. client.f90 has the commands.
module roots_service
  use, intrinsic :: iso_c_binding
  use nssi
  use roots_rpc
  implicit none
  private

  type, extends(ROOTS_ONE_server), public :: roots_server
    type(nssi_runtime), pointer :: runtime => null()
  contains
    procedure :: root
  end type

contains

  ! Each request has a user-level thread of its own: while this one sleeps, others go on, perhaps in here.
  recursive function root(self, request, argument1, argument2, outcome) result(status)
    class(roots_server), intent(inout) :: self
    type(nssi_request), intent(inout) :: request
    real(c_double), intent(in) :: argument1
    integer(c_int32_t), intent(in) :: argument2
    real(c_double), intent(inout) :: outcome
    type(nessie_status) :: status
    if (argument1 < 0) then
      status = nessie_error(nessie_invalid_argument, 'no root of a negative number: take its absolute')
      return
    end if
    outcome = sqrt(argument1)
    status = self%runtime%sleep(argument2)
  end function
end module

program server
  use nssi
  use roots_service
  implicit none
  type(nssi_runtime), target :: runtime
  type(roots_server), target :: service
  call demand(runtime%open())
  service%runtime => runtime
  call demand(service%add_to(runtime))
  call demand(runtime%announce('file:rpc.contact'))
  call demand(runtime%run())

contains

  subroutine demand(status)
    type(nessie_status), intent(in) :: status
    if (status%ok()) return
    print '(a)', status%message
    stop 1
  end subroutine
end program
