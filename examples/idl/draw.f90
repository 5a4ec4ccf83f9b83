! SPDX-License-Identifier: BSD-3-Clause
! Writes a value of drawing.x as bytes (XDR, RFC 4506), which are the same in every language, and reads it again.
!
!   $ build/idl_draw_f90
!   00000003 74776F00 00000001 00000001 00000002 00000001 3FE00000 00000000
!   00000001 00000000 00000000 00000002 00000002 68690000 00000000
!   two: a circle of radius 0.5 at (1, 2), hi at (0, 0)
!   cut off: refused
program draw
  use, intrinsic :: iso_c_binding
  use nessie
  use drawing_xdr
  implicit none
  type(drawing) :: two, copy, half
  type(nessie_status) :: status
  integer(c_int8_t), allocatable :: bytes(:)
  integer :: i

  two%title = 'two'
  allocate (two%first(2)) ! a list is an array of its links
  two%first(1)%at = point(1, 2)
  two%first(1)%what%is = CIRCLE
  two%first(1)%what%radius = 0.5d0
  two%first(2)%what%is = LABEL
  two%first(2)%what%text = 'hi'

  call demand(xdr_encode(two, bytes)) ! an error where a value breaks a rule of the interface
  call print_hexadecimal()

  call demand(xdr_decode(bytes, copy))
  write (*, '(2a)', advance='no') copy%title, ': '
  do i = 1, size(copy%first)
    if (i > 1) write (*, '(a)', advance='no') ', '
    call print_element(copy%first(i))
  end do
  print *

  status = xdr_decode(bytes(:size(bytes) - 4), half) ! whatever is wrong with bytes from elsewhere, it is told
  print '(2a)', 'cut off: ', trim(merge('read   ', 'refused', status%ok()))

contains

  subroutine print_hexadecimal()
    integer :: at
    do at = 1, size(bytes), 32
      print '(7(4z2.2, 1x), 4z2.2)', bytes(at:min(at + 31, size(bytes)))
    end do
  end subroutine

  subroutine print_element(it)
    type(element), intent(in) :: it
    if (it%what%is == CIRCLE) then
      write (*, '(a, f3.1)', advance='no') 'a circle of radius ', it%what%radius
    else
      write (*, '(a)', advance='no') it%what%text
    end if
    write (*, '(a, i0, a, i0, a)', advance='no') ' at (', it%at%x, ', ', it%at%y, ')'
  end subroutine

  ! Ends the program unless all went well.
  subroutine demand(status)
    type(nessie_status), intent(in) :: status
    if (status%ok()) return
    print '(a)', status%message
    stop 1
  end subroutine
end program
