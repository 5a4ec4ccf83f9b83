! SPDX-License-Identifier: BSD-3-Clause
! XDR (RFC 4506) to and from bytes, for what `nessie idl --language fortran` makes. Programs call the xdr_encode(),
! xdr_decode() and xdr_free() of their own module; this one has what those are made of.
!
! Design notes. A value is walked three times: xdr_size adds up its bytes, and finds what breaks a rule of the interface;
! xdr_put writes; xdr_get reads bytes that may be anything, and after the first fault gives zeros and nothing. Each comes
! for a scalar, a vector (T[n]), an array (T<>) and an optional (T *) of numbers here, and of an interface's types in its
! module: the generic names are the same. Numbers are swapped by cursor.cpp, arrays of them by vector instructions.
module nessie_xdr
  use, intrinsic :: iso_c_binding
  use nessie
  implicit none
  private

  type, bind(C), public :: xdr_sizer
    integer(c_int64_t) :: size_bytes = 0
    type(c_ptr) :: fault = c_null_ptr
  end type
  type, bind(C), public :: xdr_writer
    type(c_ptr) :: at = c_null_ptr, end = c_null_ptr
  end type
  type, bind(C), public :: xdr_reader
    type(c_ptr) :: begin = c_null_ptr, at = c_null_ptr, end = c_null_ptr, fault = c_null_ptr
    integer(c_int64_t) :: fault_offset = 0
    integer(c_int32_t) :: depth = 0
  end type

  ! As cursor.cpp numbers them.
  integer(c_int32_t), parameter, public :: xdr_bad_enum = 1, xdr_bad_arm = 2, xdr_other_arm = 3, xdr_no_memory = 4, &
    xdr_trailing_bytes = 5, xdr_empty_list = 6
  ! Bound of what has none.
  integer(c_int64_t), parameter, public :: xdr_any = 4294967295_c_int64_t

  public :: xdr_prepare, xdr_reader_of, xdr_finish, xdr_refuse, xdr_enter, xdr_leave, xdr_failed
  public :: xdr_size_count, xdr_put, xdr_get, xdr_put_vector, xdr_get_vector, xdr_put_count, xdr_get_count
  public :: xdr_size_array, xdr_put_array, xdr_get_array, xdr_size_optional, xdr_put_optional, xdr_get_optional
  public :: xdr_size_string, xdr_put_string, xdr_get_string, xdr_size_bytes, xdr_put_bytes, xdr_get_bytes
  public :: xdr_size_text, xdr_put_text, xdr_size_octets, xdr_put_octets, xdr_put_opaque, xdr_get_opaque, &
    xdr_put_structs, xdr_get_structs, xdr_put_words, xdr_get_words, &
    xdr_get_flag

  interface xdr_refuse
    subroutine nessie_fortran_size_fail(sizer, fault) bind(C)
      import :: xdr_sizer, c_int32_t
      type(xdr_sizer), intent(inout) :: sizer
      integer(c_int32_t), value :: fault
    end subroutine
    subroutine nessie_fortran_get_fail(reader, fault) bind(C)
      import :: xdr_reader, c_int32_t
      type(xdr_reader), intent(inout) :: reader
      integer(c_int32_t), value :: fault
    end subroutine
  end interface

  ! A number; a logical.
  interface xdr_put
    subroutine nessie_fortran_put_int(writer, it) bind(C)
      import :: xdr_writer, c_int32_t
      type(xdr_writer), intent(inout) :: writer
      integer(c_int32_t), intent(in) :: it
    end subroutine
    subroutine nessie_fortran_put_hyper(writer, it) bind(C)
      import :: xdr_writer, c_int64_t
      type(xdr_writer), intent(inout) :: writer
      integer(c_int64_t), intent(in) :: it
    end subroutine
    subroutine nessie_fortran_put_float(writer, it) bind(C)
      import :: xdr_writer, c_float
      type(xdr_writer), intent(inout) :: writer
      real(c_float), intent(in) :: it
    end subroutine
    subroutine nessie_fortran_put_double(writer, it) bind(C)
      import :: xdr_writer, c_double
      type(xdr_writer), intent(inout) :: writer
      real(c_double), intent(in) :: it
    end subroutine
    module procedure :: put_logical
  end interface
  interface xdr_get
    subroutine nessie_fortran_get_int(reader, it) bind(C)
      import :: xdr_reader, c_int32_t
      type(xdr_reader), intent(inout) :: reader
      integer(c_int32_t), intent(out) :: it
    end subroutine
    subroutine nessie_fortran_get_hyper(reader, it) bind(C)
      import :: xdr_reader, c_int64_t
      type(xdr_reader), intent(inout) :: reader
      integer(c_int64_t), intent(out) :: it
    end subroutine
    subroutine nessie_fortran_get_float(reader, it) bind(C)
      import :: xdr_reader, c_float
      type(xdr_reader), intent(inout) :: reader
      real(c_float), intent(out) :: it
    end subroutine
    subroutine nessie_fortran_get_double(reader, it) bind(C)
      import :: xdr_reader, c_double
      type(xdr_reader), intent(inout) :: reader
      real(c_double), intent(out) :: it
    end subroutine
    module procedure :: get_logical
  end interface

  interface xdr_put_vector
    module procedure :: put_vector_int, put_vector_hyper, put_vector_float, put_vector_double, put_vector_logical
  end interface
  interface xdr_get_vector
    module procedure :: get_vector_int, get_vector_hyper, get_vector_float, get_vector_double, get_vector_logical
  end interface
  interface xdr_size_array
    module procedure :: size_array_int, size_array_hyper, size_array_float, size_array_double, size_array_logical
  end interface
  interface xdr_put_array
    module procedure :: put_array_int, put_array_hyper, put_array_float, put_array_double, put_array_logical
  end interface
  interface xdr_get_array
    module procedure :: get_array_int, get_array_hyper, get_array_float, get_array_double, get_array_logical
  end interface
  interface xdr_size_optional
    module procedure :: size_optional_int, size_optional_hyper, size_optional_float, size_optional_double, &
      size_optional_logical
  end interface
  interface xdr_put_optional
    module procedure :: put_optional_int, put_optional_hyper, put_optional_float, put_optional_double, &
      put_optional_logical
  end interface
  interface xdr_get_optional
    module procedure :: get_optional_int, get_optional_hyper, get_optional_float, get_optional_double, &
      get_optional_logical
  end interface

  interface
    ! A count of elements that have `element_bytes` each; 0: they are added one by one.
    subroutine xdr_size_count(sizer, count, most, element_bytes) bind(C, name='nessie_fortran_size_count')
      import :: xdr_sizer, c_int64_t
      type(xdr_sizer), intent(inout) :: sizer
      integer(c_int64_t), value :: count, most, element_bytes
    end subroutine
    subroutine nessie_fortran_put_numbers(writer, numbers, count, bytes) bind(C)
      import :: xdr_writer, c_int64_t, c_int32_t
      type(xdr_writer), intent(inout) :: writer
      type(*), intent(in) :: numbers(*)
      integer(c_int64_t), value :: count
      integer(c_int32_t), value :: bytes
    end subroutine
    subroutine nessie_fortran_get_numbers(reader, numbers, count, bytes) bind(C)
      import :: xdr_reader, c_int64_t, c_int32_t
      type(xdr_reader), intent(inout) :: reader
      type(*), intent(inout) :: numbers(*)
      integer(c_int64_t), value :: count
      integer(c_int32_t), value :: bytes
    end subroutine
    ! `structs` of numbers and nothing else, `slots` of 8 bytes each; bit i of `wide`: slot i is one number.
    subroutine xdr_put_structs(writer, structs, count, slots, wide) bind(C, name='nessie_fortran_put_structs')
      import :: xdr_writer, c_int64_t, c_int32_t
      type(xdr_writer), intent(inout) :: writer
      type(*), intent(in) :: structs(*)
      integer(c_int64_t), value :: count
      integer(c_int32_t), value :: slots, wide
    end subroutine
    subroutine xdr_get_structs(reader, structs, count, slots, wide) bind(C, name='nessie_fortran_get_structs')
      import :: xdr_reader, c_int64_t, c_int32_t
      type(xdr_reader), intent(inout) :: reader
      type(*), intent(inout) :: structs(*)
      integer(c_int64_t), value :: count
      integer(c_int32_t), value :: slots, wide
    end subroutine
    subroutine nessie_fortran_put_bytes(writer, bytes, count) bind(C)
      import :: xdr_writer, c_int64_t, c_ptr
      type(xdr_writer), intent(inout) :: writer
      type(c_ptr), value :: bytes
      integer(c_int64_t), value :: count
    end subroutine
    subroutine nessie_fortran_get_bytes(reader, bytes, count) bind(C)
      import :: xdr_reader, c_int64_t, c_ptr
      type(xdr_reader), intent(inout) :: reader
      type(c_ptr), value :: bytes
      integer(c_int64_t), value :: count
    end subroutine
    function nessie_fortran_get_flag(reader) result(flag) bind(C)
      import :: xdr_reader, c_int32_t
      type(xdr_reader), intent(inout) :: reader
      integer(c_int32_t) :: flag
    end function
    ! `least_bytes`: of an element.
    function xdr_get_count(reader, most, least_bytes) result(count) bind(C, name='nessie_fortran_get_count')
      import :: xdr_reader, c_int64_t
      type(xdr_reader), intent(inout) :: reader
      integer(c_int64_t), value :: most, least_bytes
      integer(c_int64_t) :: count
    end function
    function nessie_fortran_enter(reader) result(may) bind(C)
      import :: xdr_reader, c_int32_t
      type(xdr_reader), intent(inout) :: reader
      integer(c_int32_t) :: may
    end function
  end interface

contains

  ! --- whole values ---------------------------------------------------------------------------------------------------

  recursive function xdr_reader_of(bytes) result(reader)
    integer(c_int8_t), intent(in), target, contiguous :: bytes(:)
    type(xdr_reader) :: reader
    call span(bytes, reader%begin, reader%end)
    reader%at = reader%begin
  end function

  recursive subroutine span(bytes, begin, end)
    integer(c_int8_t), intent(in), target, contiguous :: bytes(:)
    type(c_ptr), intent(out) :: begin, end
    begin = c_null_ptr
    end = c_null_ptr
    if (size(bytes) == 0) return
    begin = c_loc(bytes(1))
    end = transfer(transfer(begin, 0_c_intptr_t) + size(bytes, kind=c_intptr_t), end)
  end subroutine

  ! Memory for what was sized, and a writer into it. nessie_invalid_argument: a value breaks a rule of its interface.
  recursive function xdr_prepare(sizer, bytes, writer) result(status)
    type(xdr_sizer), intent(in) :: sizer
    integer(c_int8_t), allocatable, intent(inout), target :: bytes(:)
    type(xdr_writer), intent(out) :: writer
    type(nessie_status) :: status
    integer :: failed
    if (c_associated(sizer%fault)) then
      status = nessie_error(nessie_invalid_argument, nessie_text(sizer%fault))
      return
    end if
    allocate (bytes(sizer%size_bytes), stat=failed)
    if (failed /= 0) then
      status = nessie_error(nessie_no_memory, 'there is not memory enough for the encoded value')
    else
      call span(bytes, writer%at, writer%end)
    end if
  end function

  ! nessie_bad_message: the bytes are not the encoding of one value.
  recursive function xdr_finish(reader) result(status)
    type(xdr_reader), intent(inout) :: reader
    type(nessie_status) :: status
    character(len=20) :: offset
    ! Of no bytes at all both are null, which c_associated() does not take for equal.
    if (c_associated(reader%at) .and. .not. c_associated(reader%at, reader%end)) &
      call xdr_refuse(reader, xdr_trailing_bytes)
    if (.not. xdr_failed(reader)) return
    write (offset, '(i0)') reader%fault_offset
    status = nessie_error(nessie_bad_message, 'cannot decode the message: at byte ' // trim(offset) // ', ' // &
      nessie_text(reader%fault))
  end function

  recursive logical function xdr_failed(reader)
    type(xdr_reader), intent(in) :: reader
    xdr_failed = c_associated(reader%fault)
  end function

  ! A struct or a union begins, and ends; false: it may not.
  recursive logical function xdr_enter(reader)
    type(xdr_reader), intent(inout) :: reader
    xdr_enter = nessie_fortran_enter(reader) /= 0
  end function
  recursive subroutine xdr_leave(reader)
    type(xdr_reader), intent(inout) :: reader
    reader%depth = reader%depth - 1
  end subroutine

  ! --- counts, and structs of numbers -----------------------------------------------------------------------------------

  recursive subroutine xdr_put_count(writer, count)
    type(xdr_writer), intent(inout) :: writer
    integer(c_int64_t), intent(in) :: count
    call xdr_put(writer, unsigned_word(count))
  end subroutine
  pure function unsigned_word(count) result(word)
    integer(c_int64_t), intent(in) :: count
    integer(c_int32_t) :: word
    word = int(merge(count - 4294967296_c_int64_t, count, count > huge(word)), c_int32_t)
  end function

  ! `structs` of numbers of 4 bytes and nothing else, `count` in all.
  recursive subroutine xdr_put_words(writer, structs, count)
    type(xdr_writer), intent(inout) :: writer
    type(*), intent(in) :: structs(*)
    integer(c_int64_t), intent(in) :: count
    call nessie_fortran_put_numbers(writer, structs, count, 4_c_int32_t)
  end subroutine
  recursive subroutine xdr_get_words(reader, structs, count)
    type(xdr_reader), intent(inout) :: reader
    type(*), intent(inout) :: structs(*)
    integer(c_int64_t), intent(in) :: count
    call nessie_fortran_get_numbers(reader, structs, count, 4_c_int32_t)
  end subroutine

  ! --- strings and opaque bytes -------------------------------------------------------------------------------------------

  ! One that is not allocated has no characters.
  recursive subroutine xdr_size_string(sizer, it, most)
    type(xdr_sizer), intent(inout) :: sizer
    character(len=:), allocatable, intent(in) :: it
    integer(c_int64_t), intent(in) :: most
    integer(c_int64_t) :: count
    count = 0
    if (allocated(it)) count = len(it, c_int64_t)
    call size_padded(sizer, count, most)
  end subroutine
  recursive subroutine xdr_put_string(writer, it)
    type(xdr_writer), intent(inout) :: writer
    character(len=:), allocatable, intent(in), target :: it
    if (allocated(it)) then
      call xdr_put_count(writer, len(it, c_int64_t))
      call nessie_fortran_put_bytes(writer, c_loc(it), len(it, c_int64_t))
    else
      call xdr_put(writer, 0_c_int32_t)
    end if
  end subroutine
  recursive subroutine xdr_get_string(reader, it, most)
    type(xdr_reader), intent(inout) :: reader
    character(len=:), allocatable, intent(inout), target :: it
    integer(c_int64_t), intent(in) :: most
    integer(c_int64_t) :: count
    integer :: failed
    count = xdr_get_count(reader, most, 1_c_int64_t)
    if (allocated(it)) deallocate (it)
    allocate (character(len=count) :: it, stat=failed)
    if (failed /= 0) then
      call xdr_refuse(reader, xdr_no_memory)
    else
      call nessie_fortran_get_bytes(reader, c_loc(it), count)
    end if
  end subroutine

  ! The same of what is no component.
  recursive subroutine xdr_size_text(sizer, it, most)
    type(xdr_sizer), intent(inout) :: sizer
    character(len=*), intent(in) :: it
    integer(c_int64_t), intent(in) :: most
    call size_padded(sizer, len(it, c_int64_t), most)
  end subroutine
  recursive subroutine xdr_put_text(writer, it)
    type(xdr_writer), intent(inout) :: writer
    character(len=*), intent(in), target :: it
    call xdr_put_count(writer, len(it, c_int64_t))
    call nessie_fortran_put_bytes(writer, c_loc(it), len(it, c_int64_t))
  end subroutine

  recursive subroutine size_padded(sizer, count, most)
    type(xdr_sizer), intent(inout) :: sizer
    integer(c_int64_t), intent(in) :: count, most
    call xdr_size_count(sizer, count, most, 0_c_int64_t)
    sizer%size_bytes = sizer%size_bytes + (count + 3) / 4 * 4
  end subroutine

  recursive subroutine xdr_size_bytes(sizer, it, most)
    type(xdr_sizer), intent(inout) :: sizer
    integer(c_int8_t), allocatable, intent(in) :: it(:)
    integer(c_int64_t), intent(in) :: most
    integer(c_int64_t) :: count
    count = 0
    if (allocated(it)) count = size(it, kind=c_int64_t)
    call size_padded(sizer, count, most)
  end subroutine
  recursive subroutine xdr_put_bytes(writer, it)
    type(xdr_writer), intent(inout) :: writer
    integer(c_int8_t), allocatable, intent(in) :: it(:)
    if (allocated(it)) then
      call xdr_put_count(writer, size(it, kind=c_int64_t))
      call xdr_put_opaque(writer, it)
    else
      call xdr_put(writer, 0_c_int32_t)
    end if
  end subroutine
  recursive subroutine xdr_get_bytes(reader, it, most)
    type(xdr_reader), intent(inout) :: reader
    integer(c_int8_t), allocatable, intent(inout) :: it(:)
    integer(c_int64_t), intent(in) :: most
    integer(c_int64_t) :: count
    integer :: failed
    count = xdr_get_count(reader, most, 1_c_int64_t)
    if (allocated(it)) then
      if (size(it, kind=c_int64_t) /= count) deallocate (it)
    end if
    failed = 0
    if (.not. allocated(it)) allocate (it(count), stat=failed)
    if (failed /= 0) then
      call xdr_refuse(reader, xdr_no_memory)
    else
      call xdr_get_opaque(reader, it)
    end if
  end subroutine

  ! The same of what is no component.
  recursive subroutine xdr_size_octets(sizer, it, most)
    type(xdr_sizer), intent(inout) :: sizer
    integer(c_int8_t), intent(in) :: it(:)
    integer(c_int64_t), intent(in) :: most
    call size_padded(sizer, size(it, kind=c_int64_t), most)
  end subroutine
  recursive subroutine xdr_put_octets(writer, it)
    type(xdr_writer), intent(inout) :: writer
    integer(c_int8_t), intent(in), target, contiguous :: it(:)
    call xdr_put_count(writer, size(it, kind=c_int64_t))
    call xdr_put_opaque(writer, it)
  end subroutine

  recursive subroutine xdr_put_opaque(writer, it)
    type(xdr_writer), intent(inout) :: writer
    integer(c_int8_t), intent(in), target, contiguous :: it(:)
    type(c_ptr) :: begin, end
    call span(it, begin, end)
    call nessie_fortran_put_bytes(writer, begin, size(it, kind=c_int64_t))
  end subroutine
  recursive subroutine xdr_get_opaque(reader, it)
    type(xdr_reader), intent(inout) :: reader
    integer(c_int8_t), intent(inout), target, contiguous :: it(:)
    type(c_ptr) :: begin, end
    call span(it, begin, end)
    call nessie_fortran_get_bytes(reader, begin, size(it, kind=c_int64_t))
  end subroutine

  ! --- logicals -----------------------------------------------------------------------------------------------------------

  recursive subroutine put_logical(writer, it)
    type(xdr_writer), intent(inout) :: writer
    logical, intent(in) :: it
    call xdr_put(writer, merge(1_c_int32_t, 0_c_int32_t, it))
  end subroutine
  recursive subroutine get_logical(reader, it)
    type(xdr_reader), intent(inout) :: reader
    logical, intent(out) :: it
    it = xdr_get_flag(reader)
  end subroutine
  recursive logical function xdr_get_flag(reader)
    type(xdr_reader), intent(inout) :: reader
    xdr_get_flag = nessie_fortran_get_flag(reader) /= 0
  end function
  recursive subroutine put_vector_logical(writer, it)
    type(xdr_writer), intent(inout) :: writer
    logical, intent(in), contiguous :: it(:)
    integer(c_int64_t) :: i
    do i = 1, size(it, kind=c_int64_t)
      call put_logical(writer, it(i))
    end do
  end subroutine
  recursive subroutine get_vector_logical(reader, it)
    type(xdr_reader), intent(inout) :: reader
    logical, intent(inout), contiguous :: it(:)
    integer(c_int64_t) :: i
    do i = 1, size(it, kind=c_int64_t)
      call get_logical(reader, it(i))
    end do
  end subroutine

  ! --- vectors of numbers -------------------------------------------------------------------------------------------------

#define VECTOR
#define BYTES 4
#define NUMBER integer(c_int32_t)
#define NAMED(what) what/**/_int
#include "numbers.inc"
#undef NUMBER
#undef NAMED
#define NUMBER real(c_float)
#define NAMED(what) what/**/_float
#include "numbers.inc"
#undef BYTES
#undef NUMBER
#undef NAMED
#define BYTES 8
#define NUMBER integer(c_int64_t)
#define NAMED(what) what/**/_hyper
#include "numbers.inc"
#undef NUMBER
#undef NAMED
#define NUMBER real(c_double)
#define NAMED(what) what/**/_double
#include "numbers.inc"
#undef VECTOR

  ! --- arrays and optionals of numbers and logicals -----------------------------------------------------------------------

#include "numbers.inc"
#undef NUMBER
#undef NAMED
#define NUMBER integer(c_int64_t)
#define NAMED(what) what/**/_hyper
#include "numbers.inc"
#undef BYTES
#undef NUMBER
#undef NAMED
#define BYTES 4
#define NUMBER integer(c_int32_t)
#define NAMED(what) what/**/_int
#include "numbers.inc"
#undef NUMBER
#undef NAMED
#define NUMBER real(c_float)
#define NAMED(what) what/**/_float
#include "numbers.inc"
#undef NUMBER
#undef NAMED
#define NUMBER logical
#define NAMED(what) what/**/_logical
#include "numbers.inc"
end module
