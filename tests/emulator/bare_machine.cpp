// The least of an operating system that one static Linux program needs, so that it can run in Bochs with AMX: Linux
// doesn't hand out the tiles without XFD, which Bochs 3.1 doesn't emulate. Started by a multiboot loader; it switches
// to 64 bits, allows AVX-512 and the tiles, and starts the program that PROGRAM names, on one thread and without
// protection. The program's system calls come here; it prints to the first serial port. in_bochs.py builds and starts
// it.
#include <cstddef>
#include <cstdint>

asm(R"(
.section .start, "awx"
.code32
header:
  .long 0x1BADB002, 0x10000, -(0x1BADB002 + 0x10000)  # multiboot 1, with the addresses of a flat file
  .long header, header, 0, bss_end, start
start:
  cli
  mov $boot_stack, %esp
  movl $pages_3 + 3, pages_4
  movl $pages_2 + 3, pages_3
  mov $pages_2, %edi          # 512 pages of 2 MiB: the first GiB where it is
  mov $0x83, %eax
1:
  mov %eax, (%edi)
  add $0x200000, %eax
  add $8, %edi
  cmp $pages_2 + 4096, %edi
  jb 1b
  mov %cr4, %eax
  or $0x40620, %eax           # physical address extension, SSE and its exceptions, XSAVE
  mov %eax, %cr4
  mov $pages_4, %eax
  mov %eax, %cr3
  mov $0xC0000080, %ecx
  rdmsr
  or $0x101, %eax             # 64 bits, `syscall`
  wrmsr
  mov %cr0, %eax
  and $0xFFFFFFF3, %eax
  or $0x80000023, %eax        # paging, and the floating point unit's own exceptions
  mov %eax, %cr0
  lgdt segments_at
  ljmp $8, $start_64
.code64
start_64:
  mov $16, %eax
  mov %eax, %ss
  mov %eax, %ds
  mov %eax, %es
  xor %eax, %eax
  mov %eax, %fs
  mov %eax, %gs
  xor %ecx, %ecx
  xgetbv
  or $0x600E7, %eax           # x87, SSE, AVX, AVX-512, tile configuration and tiles
  xsetbv
  mov $boot_stack, %rsp
  call begin
1:
  hlt
  jmp 1b
.align 8
segments:
  .quad 0, 0x00AF9A000000FFFF, 0x00CF92000000FFFF
segments_at:
  .word . - segments - 1
  .quad segments

.text
.global on_system_call
on_system_call:               # return address in rcx, flags in r11; the program's stack serves, below its red zone
  lea -128(%rsp), %rsp
  push %rbp
  mov %rsp, %rbp
  push %rcx
  push %r11
  push %rdi
  push %rsi
  push %rdx
  push %r10
  push %r8
  push %r9
  mov %rax, %rcx
  push %r9
  push %r8
  push %r10
  push %rdx
  push %rsi
  push %rdi
  mov %rcx, %rdi
  mov %rsp, %rsi
  and $-16, %rsp
  call system_call
  lea -64(%rbp), %rsp
  pop %r9
  pop %r8
  pop %r10
  pop %rdx
  pop %rsi
  pop %rdi
  pop %r11
  pop %rcx
  pop %rbp
  lea 128(%rsp), %rsp
  jmp *%rcx
.global on_invalid_instruction
on_invalid_instruction:       # the program is compiled without a red zone
  push %r15
  push %r14
  push %r13
  push %r12
  push %r11
  push %r10
  push %r9
  push %r8
  push %rdi
  push %rsi
  push %rbp
  push %rsp
  push %rbx
  push %rdx
  push %rcx
  push %rax
  mov %rsp, %rdi
  mov %rsp, %rbx
  and $-16, %rsp
  call invalid_instruction
  mov %rbx, %rsp
  pop %rax
  pop %rcx
  pop %rdx
  pop %rbx
  add $8, %rsp
  pop %rbp
  pop %rsi
  pop %rdi
  pop %r8
  pop %r9
  pop %r10
  pop %r11
  pop %r12
  pop %r13
  pop %r14
  pop %r15
  iretq
.global on_fault
on_fault:
  mov %rsp, %rdi
  and $-16, %rsp
  call fault

.data
.global program, program_end
.align 16
program:
  .incbin ")" PROGRAM R"("
program_end:
.bss
.align 4096
pages_4: .skip 4096
pages_3: .skip 4096
pages_2: .skip 4096
.skip 65536
boot_stack:
.text
)");

extern "C" {
extern const std::byte program[];
void on_system_call();
void on_fault();
void on_invalid_instruction();
void begin();
std::int64_t system_call(std::int64_t number, const std::uint64_t* arguments);
void invalid_instruction(std::uint64_t* registers);
void fault(const std::uint64_t* stack);
void* memcpy(void* to, const void* from, std::size_t bytes);
}

namespace {

constexpr std::uint64_t heap_begin = 64 << 20, heap_end = 192 << 20, maps_end = 1000 << 20;
std::uint64_t heap = heap_begin, maps = heap_end;

void out(std::uint16_t port, std::uint8_t byte) {
  asm volatile("outb %0, %1" : : "a"(byte), "Nd"(port));
}

// 0x20: the serial port takes a byte; 0x40: it has sent all.
void wait_for_port(std::uint8_t ready) {
  std::uint8_t status = 0;
  while (!(status & ready)) asm volatile("inb %1, %0" : "=a"(status) : "Nd"(static_cast<std::uint16_t>(0x3FD)));
}

void print(const char* text, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    wait_for_port(0x20);
    out(0x3F8, static_cast<std::uint8_t>(text[i]));
  }
}

void print(const char* text) {
  for (; *text; ++text) print(text, 1);
}

void print(std::uint64_t number) {
  for (int shift = 60; shift >= 0; shift -= 4) print(&"0123456789abcdef"[number >> shift & 15], 1);
}

// Bochs ends when it reads this word at this port.
[[noreturn]] void end() {
  wait_for_port(0x40);
  for (const char* word = "Shutdown"; *word; ++word) out(0x8900, static_cast<std::uint8_t>(*word));
  while (true) asm volatile("hlt");
}

void write_register(std::uint32_t number, std::uint64_t value) {
  asm volatile("wrmsr"
               :
               : "c"(number), "a"(static_cast<std::uint32_t>(value)), "d"(static_cast<std::uint32_t>(value >> 32)));
}

template <class T>
T at(const std::byte* place) {
  T value;
  memcpy(&value, place, sizeof value);
  return value;
}

// Copies what the ELF file wants in memory; memory is zero before.
std::uint64_t load_program() {
  const std::byte* const header = program + at<std::uint64_t>(program + 32);
  for (int i = 0; i < at<std::uint16_t>(program + 56); ++i) {
    const std::byte* const segment = header + 56 * i;
    if (at<std::uint32_t>(segment) != 1) continue;
    memcpy(reinterpret_cast<void*>(at<std::uint64_t>(segment + 16)), program + at<std::uint64_t>(segment + 8),
           at<std::uint64_t>(segment + 32));
  }
  return at<std::uint64_t>(program + 24);
}

void catch_faults() {
  static std::uint64_t gates[2 * 32];
  for (int i = 0; i < 32; ++i) {
    const auto handler = reinterpret_cast<std::uint64_t>(i == 6 ? &on_invalid_instruction : &on_fault);
    gates[2 * i] = (handler & 0xFFFF) | 8 << 16 | 0x8E00ULL << 32 | (handler >> 16 & 0xFFFF) << 48;
    gates[2 * i + 1] = handler >> 32;
  }
  struct __attribute__((packed)) {
    std::uint16_t size = sizeof gates - 1;
    const void* place = gates;
  } table;
  asm volatile("lidt %0" : : "m"(table));
}

std::int64_t allocate(std::uint64_t bytes) {
  constexpr std::uint64_t page = 1 << 21;
  const std::uint64_t begin = maps;
  if (bytes > maps_end - begin) return -12;  // ENOMEM
  maps += (bytes + page - 1) / page * page;
  return static_cast<std::int64_t>(begin);
}

}  // namespace

void* memcpy(void* to, const void* from, std::size_t bytes) {
  void* const result = to;
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
  return result;
}

void begin() {
  out(0x3FB, 3);  // the serial port sends bytes of 8 bits
  catch_faults();
  write_register(0xC0000081, 8ULL << 32);  // code segment of system calls
  write_register(0xC0000082, reinterpret_cast<std::uint64_t>(&on_system_call));
  write_register(0xC0000084, 0);
  const std::uint64_t entry = load_program();
  static const std::uint64_t random[2] = {1, 2};
  static const char name[] = "program", alone[] = "--alone";
  const auto place = [](const void* of) { return reinterpret_cast<std::uint64_t>(of); };
  alignas(16) static std::uint64_t stack[(1 << 20) + 24];  // 8 MiB below what Linux puts there
  const std::uint64_t words[] = {2,                        // arguments
                                 place(name), place(alone),
                                 0,
                                 0,  // environment
                                 3,           place(program + at<std::uint64_t>(program + 32)),
                                 4,           56,
                                 5,           at<std::uint16_t>(program + 56),
                                 6,           4096,
                                 9,           entry,
                                 25,          place(random),
                                 0,           0};
  memcpy(stack + (1 << 20), words, sizeof words);
  asm volatile("mov %0, %%rsp; xor %%edx, %%edx; xor %%ebp, %%ebp; jmp *%1" : : "r"(stack + (1 << 20)), "r"(entry));
}

std::int64_t system_call(std::int64_t number, const std::uint64_t* a) {
  switch (number) {
    case 1:  // write
      print(reinterpret_cast<const char*>(a[1]), a[2]);
      return static_cast<std::int64_t>(a[2]);
    case 9:  // mmap
      return allocate(a[1]);
    case 12:  // brk
      if (a[0] >= heap_begin && a[0] <= heap_end) heap = a[0];
      return static_cast<std::int64_t>(heap);
    case 10:  // mprotect
    case 11:  // munmap
    case 13:  // rt_sigaction
    case 14:  // rt_sigprocmask
    case 28:  // madvise
      return 0;
    case 39:   // getpid
    case 186:  // gettid
    case 218:  // set_tid_address
      return 2;
    case 158:  // arch_prctl: the thread's data; the tiles
      if (a[0] == 0x1002) return write_register(0xC0000100, a[1]), 0;
      return a[0] == 0x1023 && a[1] == 18 ? 0 : -22;
    case 60:   // exit
    case 231:  // exit_group
      end();
    default:
      return -38;  // ENOSYS
  }
}

void fault(const std::uint64_t* stack) {
  print("fault; stack:");
  for (int i = 0; i < 4; ++i) print(" "), print(stack[i]);
  print("\n");
  end();
}

// Bochs 3.1 knows STTILECFG by a wrong bit (VEX.W), and stores a tile's rows and bytes in each other's place. This
// stores them for a program that uses the right one, with an address in one register. registers: rax to r15 in the
// order of their numbers, then the program's position.
void invalid_instruction(std::uint64_t* registers) {
  const auto* const code = reinterpret_cast<const std::uint8_t*>(registers[16]);
  const bool is_sttilecfg = code[0] == 0xC4 && (code[1] & 0xDF) == 0xC2 && code[2] == 0x79 && code[3] == 0x49 &&
                            code[4] < 8 && code[4] != 4 && code[4] != 5;
  if (!is_sttilecfg) return fault(registers + 16);
  std::uint8_t stored[64];
  asm volatile(".byte 0xC4, 0xE2, 0xF9, 0x49, 0x07" : : "D"(stored) : "memory");
  auto* const to = reinterpret_cast<std::uint8_t*>(registers[code[4] + (code[1] & 0x20 ? 0 : 8)]);
  for (int i = 0; i < 64; ++i) to[i] = i < 16 ? stored[i] : 0;
  for (int tile = 0; tile < 8; ++tile) {
    to[16 + 2 * tile] = stored[48 + tile];
    to[48 + tile] = stored[16 + 2 * tile];
  }
  registers[16] += 5;
}
