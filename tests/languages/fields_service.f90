! SPDX-License-Identifier: BSD-3-Clause
! The service of fields.x in Fortran.
module fields_service
  use, intrinsic :: iso_c_binding
  use nssi
  use fields_xdr
  use fields_rpc
  implicit none
  private

  type, extends(FIELDS_ONE_server), public :: field_server
    type(nssi_runtime), pointer :: runtime => null()
  contains
    procedure :: kind_of
    procedure :: nothing
    procedure :: add
    procedure :: measure
    procedure :: scale => scale_field
    procedure :: ramp
    procedure :: greet
    procedure :: blend
    procedure :: find
    procedure :: reverse
    procedure :: mirror
    procedure :: half
    procedure :: echo
    procedure :: pick
    procedure :: shift
    procedure :: rest
    procedure :: refuse
    procedure :: repeat => repeat_title
  end type

  type, extends(FIELDS_TWO_server), public :: second_server
  contains
    procedure :: add => add_three
  end type

contains

  recursive function kind_of(self, op) result(kind)
    class(field_server), intent(in) :: self
    integer(c_int32_t), intent(in) :: op
    integer(c_int32_t) :: kind
    kind = merge(nssi_short, nssi_fiber, op == FIELDS_ONE_ADD .and. associated(self%runtime))
  end function

  recursive function nothing(self, request) result(status)
    class(field_server), intent(inout) :: self
    type(nssi_request), intent(inout) :: request
    type(nessie_status) :: status
    if (request%op() /= FIELDS_ONE_NOTHING .or. .not. associated(self%runtime)) &
      status = nessie_error(nessie_internal, 'another operation was asked for')
  end function

  recursive function add(self, request, argument1, argument2, outcome) result(status)
    class(field_server), intent(inout) :: self
    type(nssi_request), intent(inout) :: request
    integer(c_int32_t), intent(in) :: argument1
    integer(c_int64_t), intent(in) :: argument2
    integer(c_int64_t), intent(inout) :: outcome
    type(nessie_status) :: status
    if (request%caller() < 0) status = self%nothing(request)
    outcome = argument1 + argument2
  end function

  recursive function add_three(self, request, argument1, argument2, argument3, outcome) result(status)
    class(second_server), intent(inout) :: self
    type(nssi_request), intent(inout) :: request
    integer(c_int32_t), intent(in) :: argument1, argument2, argument3
    integer(c_int32_t), intent(inout) :: outcome
    type(nessie_status) :: status
    if (request%op() /= FIELDS_TWO_ADD) status = nessie_error(nessie_internal, 'another operation was asked for')
    outcome = argument1 + argument2 + argument3
    associate (unused => self)
    end associate
  end function

  ! --- bulk data ------------------------------------------------------------------------------------------------------

  ! All of the caller's data.
  recursive function pull(request, field) result(status)
    type(nssi_request), intent(inout) :: request
    real(c_double), allocatable, target, intent(inout) :: field(:)
    type(nessie_status) :: status
    allocate (field(request%data_bytes() / 8))
    status = request%get_data(field)
  end function

  recursive function measure(self, request, outcome) result(status)
    class(field_server), intent(inout) :: self
    type(nssi_request), intent(inout) :: request
    type(moments), intent(inout) :: outcome
    type(nessie_status) :: status
    real(c_double), allocatable, target :: field(:)
    status = pull(request, field)
    if (status%ok()) outcome = moments(sum(field), minval(field), maxval(field))
    associate (unused => self)
    end associate
  end function

  recursive function scale_field(self, request, argument1) result(status)
    class(field_server), intent(inout) :: self
    type(nssi_request), intent(inout) :: request
    real(c_double), intent(in) :: argument1
    type(nessie_status) :: status
    real(c_double), allocatable, target :: field(:)
    status = pull(request, field)
    if (.not. status%ok()) return
    field = field * argument1
    status = request%put_data(field)
    associate (unused => self)
    end associate
  end function

  ! In two halves, the second one first.
  recursive function ramp(self, request, argument1) result(status)
    class(field_server), intent(inout) :: self
    type(nssi_request), intent(inout) :: request
    integer(c_int32_t), intent(in) :: argument1
    type(nessie_status) :: status
    real(c_double), allocatable, target :: field(:)
    integer :: i, middle
    allocate (field(request%data_bytes() / 8))
    do i = 1, size(field)
      field(i) = i * argument1
    end do
    middle = size(field) / 2
    status = request%put_data(field(middle + 1:), 8_c_int64_t * middle)
    if (status%ok()) status = request%put_data(field(:middle))
    associate (unused => self)
    end associate
  end function

  ! --- values of every kind -------------------------------------------------------------------------------------------

  recursive function greet(self, request, argument1, argument2, outcome) result(status)
    class(field_server), intent(inout) :: self
    type(nssi_request), intent(inout) :: request
    character(len=*), intent(in) :: argument1, argument2
    character(len=:), allocatable, intent(inout) :: outcome
    type(nessie_status) :: status
    outcome = 'hello ' // argument1 // ', ' // argument2
    if (request%op() /= FIELDS_ONE_GREET) status = self%nothing(request)
  end function

  recursive function blend(self, request, argument1, argument2, outcome) result(status)
    class(field_server), intent(inout) :: self
    type(nssi_request), intent(inout) :: request
    real(c_double), intent(in) :: argument1(4)
    real(c_float), intent(in) :: argument2
    real(c_double), intent(inout) :: outcome(4)
    type(nessie_status) :: status
    outcome = argument1 * argument2
    if (request%op() /= FIELDS_ONE_BLEND) status = self%nothing(request)
  end function

  recursive function find(self, request, argument1, argument2, outcome) result(status)
    class(field_server), intent(inout) :: self
    type(nssi_request), intent(inout) :: request
    type(stamp), intent(in) :: argument1
    logical, intent(in) :: argument2
    type(found), intent(inout) :: outcome
    type(nessie_status) :: status
    outcome%is_here = argument2
    if (argument2) outcome%what = argument1
    if (request%op() /= FIELDS_ONE_FIND) status = self%nothing(request)
  end function

  recursive function reverse(self, request, argument1, outcome) result(status)
    class(field_server), intent(inout) :: self
    type(nssi_request), intent(inout) :: request
    type(stop), allocatable, intent(in) :: argument1(:)
    type(stop), allocatable, intent(inout) :: outcome(:)
    type(nessie_status) :: status
    outcome = argument1(size(argument1):1:-1)
    if (request%op() /= FIELDS_ONE_REVERSE) status = self%nothing(request)
  end function

  recursive function mirror(self, request, argument1, outcome) result(status)
    class(field_server), intent(inout) :: self
    type(nssi_request), intent(inout) :: request
    type(tree), intent(in) :: argument1
    type(tree), intent(inout) :: outcome
    type(nessie_status) :: status
    call turn(argument1, outcome)
    if (request%op() /= FIELDS_ONE_MIRROR) status = self%nothing(request)
  end function
  recursive subroutine turn(from, to)
    type(tree), intent(in) :: from
    type(tree), intent(inout) :: to
    integer :: i, n
    to%value = from%value
    if (.not. associated(from%children)) return
    n = size(from%children)
    allocate (to%children(n))
    do i = 1, n
      call turn(from%children(i), to%children(n + 1 - i))
    end do
  end subroutine

  recursive function half(self, request, argument1, outcome) result(status)
    class(field_server), intent(inout) :: self
    type(nssi_request), intent(inout) :: request
    integer(c_int32_t), allocatable, intent(in) :: argument1
    integer(c_int32_t), allocatable, intent(inout) :: outcome
    type(nessie_status) :: status
    if (allocated(argument1)) outcome = argument1 / 2
    if (request%op() /= FIELDS_ONE_HALF) status = self%nothing(request)
  end function

  recursive function echo(self, request, argument1, outcome) result(status)
    class(field_server), intent(inout) :: self
    type(nssi_request), intent(inout) :: request
    integer(c_int8_t), intent(in) :: argument1(:)
    integer(c_int8_t), allocatable, intent(inout) :: outcome(:)
    type(nessie_status) :: status
    outcome = argument1
    if (request%op() /= FIELDS_ONE_ECHO) status = self%nothing(request)
  end function

  recursive function pick(self, request, argument1, argument2, outcome) result(status)
    class(field_server), intent(inout) :: self
    type(nssi_request), intent(inout) :: request
    type(title), intent(in) :: argument1(:)
    integer(c_int32_t), intent(in) :: argument2(:)
    type(title), allocatable, intent(inout) :: outcome(:)
    type(nessie_status) :: status
    outcome = argument1(argument2)
    if (request%op() /= FIELDS_ONE_PICK) status = self%nothing(request)
  end function

  recursive function shift(self, request, argument1, argument2, outcome) result(status)
    class(field_server), intent(inout) :: self
    type(nssi_request), intent(inout) :: request
    type(moments), intent(in) :: argument1(:)
    real(c_double), intent(in) :: argument2
    type(moments), allocatable, intent(inout) :: outcome(:)
    type(nessie_status) :: status
    outcome = argument1
    outcome%least = outcome%least + argument2
    outcome%greatest = outcome%greatest + argument2
    if (request%op() /= FIELDS_ONE_SHIFT) status = self%nothing(request)
  end function

  ! --- time and errors ------------------------------------------------------------------------------------------------

  recursive function rest(self, request, argument1, outcome) result(status)
    class(field_server), intent(inout) :: self
    type(nssi_request), intent(inout) :: request
    integer(c_int32_t), intent(in) :: argument1
    integer(c_int32_t), intent(inout) :: outcome
    type(nessie_status) :: status
    status = self%runtime%sleep(argument1)
    outcome = argument1
    if (request%time_left_ms() == 0) status = nessie_error(nessie_timed_out, 'nobody waits any more')
  end function

  recursive function refuse(self, request, argument1, outcome) result(status)
    class(field_server), intent(inout) :: self
    type(nssi_request), intent(inout) :: request
    integer(c_int32_t), intent(in) :: argument1
    integer(c_int32_t), intent(inout) :: outcome
    type(nessie_status) :: status
    outcome = 0
    status = nessie_error(nessie_io, 'No space left on device: free some', nessie_scope_service, argument1)
    if (request%op() /= FIELDS_ONE_REFUSE) status = self%nothing(request)
  end function

  recursive function repeat_title(self, request, argument1, argument2, outcome) result(status)
    class(field_server), intent(inout) :: self
    type(nssi_request), intent(inout) :: request
    character(len=*), intent(in) :: argument1
    integer(c_int32_t), intent(in) :: argument2
    character(len=:), allocatable, intent(inout) :: outcome
    type(nessie_status) :: status
    integer :: i
    outcome = ''
    do i = 1, argument2
      outcome = outcome // argument1
    end do
    if (request%op() /= FIELDS_ONE_REPEAT) status = self%nothing(request)
  end function
end module
