! SPDX-License-Identifier: BSD-3-Clause
! Serves greeting.x, and calls it, in one process.
module greeter_service
  use, intrinsic :: iso_c_binding
  use nssi
  use greeting_xdr
  use greeting_rpc
  implicit none
  private

  type, extends(GREETER_ONE_server), public :: greeter_server
  contains
    procedure :: repeat => repeat_greeting
  end type

contains

  recursive function repeat_greeting(self, request, argument1, argument2, outcome) result(status)
    class(greeter_server), intent(inout) :: self
    type(nssi_request), intent(inout) :: request
    type(greeting), intent(in) :: argument1
    integer(c_int32_t), intent(in) :: argument2
    type(greeting), intent(inout) :: outcome
    type(nessie_status) :: status
    outcome%text = argument1%text
    outcome%times = argument1%times * argument2
    if (request%op() /= GREETER_ONE_REPEAT) status = nessie_error(nessie_internal, 'another operation')
    associate (unused => self)
    end associate
  end function
end module

program greeter
  use, intrinsic :: iso_c_binding
  use nssi
  use greeting_xdr
  use greeting_rpc
  use greeter_service
  implicit none
  type(nssi_runtime) :: runtime
  type(greeter_server), target :: service
  type(GREETER_ONE_client) :: client
  type(greeting) :: answer
  integer(c_int64_t) :: peer
  call demand(runtime%open())
  call demand(service%add_to(runtime))
  call demand(runtime%connect(runtime%url(), peer, timeout_ms=10000))
  client = GREETER_ONE_client(runtime, peer)
  call demand(client%repeat(greeting('hello', 21), 2, answer, timeout_ms=10000))
  print '(2a, i0)', answer%text, ' ', answer%times
  call demand(runtime%close())

contains

  subroutine demand(status)
    type(nessie_status), intent(in) :: status
    if (status%ok()) return
    print '(a)', status%message
    stop 1
  end subroutine
end program
