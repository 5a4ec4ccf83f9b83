! SPDX-License-Identifier: BSD-3-Clause
! For tests: what has to be so, or ends the program.
module expectations
  use nessie, only: nessie_status
  implicit none
  private
  public :: expect, expect_ok

contains

  subroutine expect(is_so, what)
    logical, intent(in) :: is_so
    character(len=*), intent(in) :: what
    if (is_so) return
    print '(2a)', 'not so: ', what
    stop 1
  end subroutine

  subroutine expect_ok(status, what)
    type(nessie_status), intent(in) :: status
    character(len=*), intent(in) :: what
    if (status%ok()) return
    print '(4a)', 'failed: ', what, ': ', status%message
    stop 1
  end subroutine

end module
