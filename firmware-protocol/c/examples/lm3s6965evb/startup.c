/* Vector table, reset and the two functions that a compiler may call without being asked. */
#include <stddef.h>
#include <stdint.h>

extern uint32_t _data_load, _data_start, _data_end, _bss_start, _bss_end, _stack_top;

int main(void);
void timer0_handler(void);
void uart0_handler(void);

void *memcpy(void *to, const void *from, size_t len)
{
    unsigned char *out = to;
    const unsigned char *in = from;
    while (len-- > 0) {
        *out++ = *in++;
    }
    return to;
}

void *memset(void *to, int value, size_t len)
{
    unsigned char *out = to;
    while (len-- > 0) {
        *out++ = (unsigned char)value;
    }
    return to;
}

/* A controller that has lost its way must not go on driving: start anew, with torque off. */
static void fault_handler(void)
{
    *(volatile uint32_t *)0xE000ED0Cu = 0x05FA0004u;
    for (;;) {
    }
}

void reset_handler(void)
{
    uint32_t *from = &_data_load;
    for (uint32_t *to = &_data_start; to < &_data_end; to++) {
        *to = *from++;
    }
    for (uint32_t *to = &_bss_start; to < &_bss_end; to++) {
        *to = 0;
    }
    main();
    fault_handler();
}

typedef void (*handler)(void);

struct vectors {
    void *stack;
    handler handlers[15 + 20];
};

__attribute__((section(".vectors"), used)) static const struct vectors vectors = {
    &_stack_top,
    {reset_handler, fault_handler, fault_handler, fault_handler, fault_handler, fault_handler, /* to usage fault */
     0, 0, 0, 0, fault_handler, fault_handler, 0, fault_handler, fault_handler,
     fault_handler, fault_handler, fault_handler, fault_handler, fault_handler, uart0_handler, fault_handler, fault_handler,
     fault_handler, fault_handler, fault_handler, fault_handler, fault_handler, fault_handler, fault_handler,
     fault_handler, fault_handler, fault_handler, fault_handler, timer0_handler}};
