! SPDX-License-Identifier: BSD-3-Clause
! How calls are made, waited for and ended, and what handlers see of their callers. One runtime is client and service: it
! serves while it waits.
module runtime_test_parts
  use, intrinsic :: iso_c_binding
  use expectations
  use nssi
  implicit none

  integer(c_int32_t), parameter :: op_hold = 0, op_echo = 1, op_who = 2, program_number = 536871168

  type, extends(nssi_handler) :: gate_t
    type(nssi_runtime), pointer :: runtime => null()
    integer :: held = 0, holding = 0 ! requests by now; at the moment
    logical :: is_open = .false.
    integer(c_int32_t) :: role = -1
    integer(c_int8_t) :: identity(16) = 0
  contains
    procedure :: serve => gate_serve
  end type

  ! Takes the result of a call, frees it, and calls again.
  type, extends(nssi_callback) :: teller_t
    type(nssi_runtime), pointer :: runtime => null()
    type(nssi_call), pointer :: call => null()
    type(nssi_service) :: service
    integer :: times = 0
  contains
    procedure :: over => teller_over
  end type

contains

  recursive subroutine gate_serve(self, request)
    class(gate_t), intent(inout) :: self
    type(nssi_request), intent(inout) :: request
    type(nessie_status) :: status
    integer(c_int8_t), pointer, contiguous :: bytes(:)
    select case (request%op())
    case (op_hold)
      self%held = self%held + 1
      self%holding = self%holding + 1
      do while (.not. self%is_open .and. status%ok())
        status = self%runtime%sleep(1)
        if (status%ok()) status = request%check()
      end do
      self%holding = self%holding - 1
      if (status%ok()) status = request%reply()
    case (op_echo)
      status = request%args(bytes)
      status = request%reply(bytes)
    case default
      self%role = request%role()
      status = request%caller_identity(self%identity)
      if (status%ok()) status = request%reply()
    end select
  end subroutine

  recursive subroutine teller_over(self)
    class(teller_t), intent(inout) :: self
    type(nssi_call) :: next
    integer(c_int8_t), parameter :: three(3) = [1_c_int8_t, 2_c_int8_t, 3_c_int8_t]
    integer(c_int8_t), pointer, contiguous :: bytes(:)
    call expect_ok(self%call%wait(0), 'the call that is over')
    call self%call%free()
    call expect_ok(self%runtime%start(self%service, op_echo, three, next), 'start the next')
    call expect_ok(next%take(bytes), 'the next')
    call expect(all(bytes == three), 'the result of the next')
    call next%free()
    self%times = self%times + 1
  end subroutine
end module

program runtime_test
  use, intrinsic :: iso_c_binding
  use nssi
  use runtime_test_parts
  implicit none
  type(nssi_runtime), target :: runtime
  type(gate_t), target :: gate
  type(nssi_service) :: service
  integer(c_int8_t) :: none(0)

  call open_all()
  call check_who_calls()
  call check_one_way()
  call check_busy()
  call check_callback()
  call check_multicast()
  call check_stop()
  call expect_ok(runtime%close(), 'close')

contains

  subroutine open_all()
    type(nssi_options) :: options
    integer(c_int32_t) :: op
    options%transports = 'inproc'
    options%settings = 'operator_credential = ' // repeat('ab', 32) // new_line('a') // 'nssi.limit.requests = 2'
    call expect_ok(runtime%open(options), 'open')
    gate%runtime => runtime
    do op = op_hold, op_who
      call expect_ok(runtime%add_operation(program_number, 1, 0, op, 'gate', nssi_fiber, gate), 'add an operation')
    end do
    service%program = program_number
    service%version = 1
    call expect_ok(runtime%connect(runtime%url(), service%peer), 'connect')
  end subroutine

  ! A call that its handler holds.
  subroutine hold(call, one_way)
    type(nssi_call), intent(inout) :: call
    logical, intent(in), optional :: one_way
    integer :: before
    before = gate%held
    call expect_ok(runtime%start(service, op_hold, none, call, one_way=one_way), 'start one that is held')
    do while (gate%held == before)
      call expect_ok(runtime%sleep(0), 'sleep')
    end do
  end subroutine

  subroutine check_who_calls()
    type(nssi_call) :: call
    call expect_ok(runtime%start(service, op_who, none, call), 'start')
    call expect_ok(call%wait(), 'who')
    call call%free()
    call expect(gate%role == nssi_operator, 'the role of an operator')
    call expect(any(gate%identity /= 0), 'an identity')
  end subroutine

  subroutine check_one_way()
    type(nssi_call) :: call
    integer(c_int8_t), pointer, contiguous :: bytes(:)
    gate%is_open = .false.
    call hold(call, one_way=.true.)
    call expect_ok(call%take(bytes), 'a one-way call whose handler is held')
    call expect(size(bytes) == 0 .and. call%is_one_way(), 'its result')
    call call%free()
    gate%is_open = .true.
    do while (gate%holding > 0)
      call expect_ok(runtime%sleep(1), 'sleep')
    end do
  end subroutine

  subroutine check_busy()
    type(nssi_call) :: calls(3)
    type(nessie_status) :: status
    gate%is_open = .false.
    call hold(calls(1))
    call hold(calls(2))
    call expect_ok(runtime%start(service, op_echo, none, calls(3), fail_when_busy=.true.), 'start one too many')
    status = calls(3)%wait()
    call expect(status%code == nessie_busy .and. status%retry_after_ms > 0, 'a service that is busy')
    call calls(3)%free()
    call expect_ok(runtime%start(service, op_echo, none, calls(3)), 'start one that waits')
    status = calls(3)%wait(1)
    call expect(status%code == nessie_timed_out .and. status%retry_after_ms == 0, 'one that waits')
    gate%is_open = .true.
    call expect_ok(nssi_wait_all(calls), 'all of them')
    call calls(1)%free()
    call calls(2)%free()
    call calls(3)%free()
  end subroutine

  subroutine check_callback()
    type(nssi_call), target :: call
    type(teller_t), target :: teller
    type(nessie_status) :: status
    gate%is_open = .false.
    call hold(call)
    teller%runtime => runtime
    teller%call => call
    teller%service = service
    call expect_ok(call%when_over(teller), 'when over')
    status = call%when_over(teller)
    call expect(status%code == nessie_exists, 'one callback for each call')
    gate%is_open = .true.
    do while (teller%times == 0)
      call expect_ok(runtime%sleep(1), 'sleep')
    end do
    call expect(.not. call%is_open(), 'a call that its callback has freed')
    call hold_and_free(teller)
  end subroutine

  ! Nobody is told of a call that is freed.
  subroutine hold_and_free(teller)
    type(teller_t), intent(inout), target :: teller
    type(nssi_call) :: call
    gate%is_open = .false.
    call hold(call)
    call expect_ok(call%when_over(teller), 'when over')
    call call%free()
    do while (gate%holding > 0)
      call expect_ok(runtime%sleep(1), 'sleep')
    end do
    call expect(teller%times == 1, 'nobody is told')
    gate%is_open = .true.
  end subroutine

  subroutine check_multicast()
    type(nssi_service) :: services(2)
    type(nssi_call) :: calls(2)
    type(nessie_status) :: status
    integer(c_int8_t), pointer, contiguous :: bytes(:)
    services = service
    services(2)%provider = 9
    status = runtime%multicast(services, op_echo, [7_c_int8_t], calls(:1))
    call expect(status%code == nessie_invalid_argument, 'more services than calls')
    call expect_ok(runtime%multicast(services, op_echo, [7_c_int8_t], calls), 'multicast')
    status = nssi_wait_all(calls)
    call expect(status%code == nessie_not_found, 'a service that is not there')
    call expect_ok(calls(1)%take(bytes), 'the one that is there')
    call expect(all(bytes == [7_c_int8_t]), 'its result')
    call calls(1)%free()
    call calls(2)%free()
  end subroutine

  ! What was accepted ends at the deadline here.
  subroutine check_stop()
    type(nssi_call) :: call
    type(nessie_status) :: status
    gate%is_open = .false.
    call hold(call)
    call expect_ok(runtime%stop_when_done(20), 'stop when done')
    call expect_ok(runtime%run(), 'run')
    status = call%wait(0)
    call expect(status%code == nessie_timed_out, 'a handler that was not done in time')
    gate%is_open = .true.
    call expect_ok(runtime%stop_when_done(), 'stop when done')
    call expect_ok(runtime%run(), 'run')
    call expect_ok(call%wait(), 'what was accepted')
    call call%free()
  end subroutine
end program
