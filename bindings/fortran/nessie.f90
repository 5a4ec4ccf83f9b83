! SPDX-License-Identifier: BSD-3-Clause
! What all of Nessie's Fortran shares: how an operation ended, and texts of C.
module nessie
  use, intrinsic :: iso_c_binding, only: c_int32_t, c_int64_t, c_ptr, c_char
  implicit none
  private

  ! What functions of Nessie return. It is about the operation that returned it; `message` says what to do, and is
  ! allocated unless all went well.
  type, public :: nessie_status
    integer(c_int32_t) :: code = 0   ! nessie_ok, or one of those below
    integer(c_int32_t) :: scope = 0  ! the largest thing that is lost: nessie_scope_operation, ...
    integer(c_int32_t) :: cause = 0  ! errno, or the transport's own code; 0: there is none
    integer(c_int64_t) :: retry_after_ms = 0 ! with nessie_busy, where it is known: when there may be room
    character(len=:), allocatable :: message
  contains
    procedure :: ok => is_ok
  end type

  ! The table of nessie/codes.h.
  integer(c_int32_t), parameter, public :: nessie_ok = 0, nessie_timed_out = 1, nessie_peer_lost = 2, &
    nessie_refused = 3, nessie_invalid_argument = 4, nessie_out_of_range = 5, nessie_not_found = 6, &
    nessie_exists = 7, nessie_unsupported = 8, nessie_no_memory = 9, nessie_busy = 10, nessie_bad_message = 11, &
    nessie_io = 12, nessie_cancelled = 13, nessie_no_result = 14, nessie_internal = 15, nessie_too_large = 16, &
    nessie_interrupted = 17, nessie_unavailable = 18
  integer(c_int32_t), parameter, public :: nessie_scope_operation = 0, nessie_scope_peer = 1, &
    nessie_scope_service = 2, nessie_scope_process = 3

  public :: nessie_error, nessie_text

  interface
    function nessie_fortran_text_size(text) result(size) bind(C)
      import :: c_ptr, c_int64_t
      type(c_ptr), value :: text
      integer(c_int64_t) :: size
    end function
    subroutine nessie_fortran_text(text, to, size) bind(C)
      import :: c_ptr, c_char, c_int64_t
      type(c_ptr), value :: text
      character(kind=c_char), intent(inout) :: to(*)
      integer(c_int64_t), value :: size
    end subroutine
  end interface

contains

  ! What C has at `from`, up to its zero.
  recursive function nessie_text(from) result(text)
    type(c_ptr), intent(in) :: from
    character(len=:), allocatable :: text
    allocate (character(len=nessie_fortran_text_size(from)) :: text)
    call nessie_fortran_text(from, text, len(text, c_int64_t))
  end function

  pure logical function is_ok(self)
    class(nessie_status), intent(in) :: self
    is_ok = self%code == nessie_ok
  end function

  pure function nessie_error(code, message, scope, cause) result(status)
    integer(c_int32_t), intent(in) :: code
    character(len=*), intent(in) :: message
    integer(c_int32_t), intent(in), optional :: scope, cause
    type(nessie_status) :: status
    status%code = code
    status%message = message
    if (present(scope)) status%scope = scope
    if (present(cause)) status%cause = cause
  end function
end module
