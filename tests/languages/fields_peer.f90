! SPDX-License-Identifier: BSD-3-Clause
! README.md says what peers do.
program fields_peer
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: output_unit
  use nssi
  use fields_service
  use fields_calls
  implicit none
  type(nssi_runtime), target :: runtime
  type(field_server), target :: server
  type(second_server), target :: second

  if (word(1) == 'serve') then
    call serve()
  else
    call call_all()
  end if

contains

  function word(index) result(text)
    integer, intent(in) :: index
    character(len=:), allocatable :: text
    integer :: length
    call get_command_argument(index, length=length)
    allocate (character(len=length) :: text)
    call get_command_argument(index, text)
  end function

  subroutine demand(status)
    type(nessie_status), intent(in) :: status
    if (status%ok()) return
    print '(2a)', 'error: ', status%message
    error stop 1
  end subroutine

  function options(connects_only) result(made)
    logical, intent(in) :: connects_only
    type(nssi_options) :: made
    made%transports = word(2)
    made%settings = 'nnti.ofi.provider = tcp' // new_line('a') // 'nnti.ofi.address = 127.0.0.1'
    made%connects_only = connects_only
  end function

  subroutine serve()
    type(nessie_status) :: status
    call demand(runtime%open(options(.false.)))
    server%runtime => runtime
    call demand(server%add_to(runtime))
    call demand(second%add_to(runtime, 5))
    status = server%add_to(runtime)
    if (status%code /= nessie_exists) error stop 2
    if (command_argument_count() > 2) call demand(runtime%announce(word(3), 'fields', 20000))
    print '(a)', runtime%url()
    flush (output_unit)
    call demand(runtime%run())
    call demand(runtime%close())
  end subroutine

  subroutine call_all()
    integer(c_int64_t) :: peer
    integer :: faults
    call demand(runtime%open(options(.true.)))
    peer = 0
    call demand(runtime%connect_to(word(3), peer, 20000))
    faults = check_all(runtime, peer)
    call demand(runtime%close())
    print '(i0, a)', faults, ' faults'
    flush (output_unit)
    if (faults /= 0) stop 1
  end subroutine
end program
