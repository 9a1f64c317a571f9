/* A controller for a make-believe arm of five joints on a Stellaris LM3S6965 (Cortex-M3, 50 MHz).
 *
 * UART0 at 1 Mbaud carries the protocol: an interrupt fills a ring, the main loop empties it. SysTick
 * runs free and gives the clock, in microseconds. Timer 0 wakes the core each millisecond. Where a real controller would talk to
 * its drives, `joints_step` lets five drives follow their set-points. The arm has the joints of an
 * SO-101, and stands where that one rests when it boots. */
#include "firmware_protocol.h"

#define REG(address) (*(volatile uint32_t *)(address))
#define RCC REG(0x400FE060u)
#define RIS REG(0x400FE050u)
#define RCGC1 REG(0x400FE104u)
#define RCGC2 REG(0x400FE108u)
#define GPIOA_AFSEL REG(0x40004420u)
#define GPIOA_DEN REG(0x4000451Cu)
#define UART_DR REG(0x4000C000u)
#define UART_FR REG(0x4000C018u)
#define UART_IBRD REG(0x4000C024u)
#define UART_FBRD REG(0x4000C028u)
#define UART_LCRH REG(0x4000C02Cu)
#define UART_CTL REG(0x4000C030u)
#define UART_IM REG(0x4000C038u)
#define UART_ICR REG(0x4000C044u)
#define TIMER0_CFG REG(0x40030000u)
#define TIMER0_TAMR REG(0x40030004u)
#define TIMER0_CTL REG(0x4003000Cu)
#define TIMER0_IMR REG(0x40030018u)
#define TIMER0_ICR REG(0x40030024u)
#define TIMER0_TAILR REG(0x40030028u)
#define SYST_CSR REG(0xE000E010u)
#define SYST_RVR REG(0xE000E014u)
#define SYST_CVR REG(0xE000E018u)
#define NVIC_ISER0 REG(0xE000E100u)

#define CLOCK_MHZ 50u
#define TICK_US 1000u
#define SYSTICK_MAX 0xFFFFFFu
#define UART0_IRQ 5u
#define TIMER0_IRQ 19u
#define UART_RX_EMPTY (1u << 4)
#define UART_TX_FULL (1u << 5)
#define UART_RX_INTERRUPTS ((1u << 4) | (1u << 6)) /* level, and time-out below it */
#define PLL_LOCK_SPINS 100000u
#define RING_BYTES 2048u
#define JOINTS 5u

/* Ranges, the same to both sides, and the pose in which it rests; in microradians, base first. */
static const int32_t ends[JOINTS] = {1919860, 1745330, 1690000, 1658060, 2792530};
static const int32_t rest[JOINTS] = {0, -1500000, 1200000, 800000, 48700};

static volatile uint8_t ring[RING_BYTES];
static volatile uint32_t ring_in;
static volatile uint32_t ring_out;
__attribute__((section(".noinit"))) static uint32_t boots;

static fp_device device;
static fp_drives drives;
static fp_setpoints setpoints;

/* A byte that finds the ring full is lost; the checksum of its frame tells. */
void uart0_handler(void)
{
    UART_ICR = UART_RX_INTERRUPTS;
    while (!(UART_FR & UART_RX_EMPTY)) {
        uint8_t byte = (uint8_t)(UART_DR & 0xFFu);
        if (ring_in - ring_out < RING_BYTES) {
            ring[ring_in % RING_BYTES] = byte;
            ring_in++;
        }
    }
}

/* Only there to wake the core. */
void timer0_handler(void)
{
    TIMER0_ICR = 1u;
}

/* Microseconds since boot; wraps. SysTick runs down through 24 bits, 335 ms, and this must be called
 * more often than that, from the main loop only. No interrupt counts, so none can be missed. */
static uint32_t now_us(void)
{
    static uint32_t last, cycles, us;
    uint32_t now = SYST_CVR;
    cycles += (last - now) & SYSTICK_MAX;
    last = now;
    us += cycles / CLOCK_MHZ;
    cycles %= CLOCK_MHZ;
    return us;
}

/* 8 MHz crystal, PLL, 200 MHz / 4. */
static void clock_begin(void)
{
    uint32_t rcc = (RCC & ~0x07C027F3u) | (3u << 23) | (1u << 22) | (0xEu << 6) | (1u << 11);
    RCC = rcc;
    RCC = rcc & ~(1u << 13);
    for (uint32_t spins = 0; spins < PLL_LOCK_SPINS && !(RIS & (1u << 6)); spins++) {
    }
    RCC = rcc & ~((1u << 13) | (1u << 11));
    SYST_RVR = SYSTICK_MAX;
    SYST_CVR = 0;
    SYST_CSR = 5; /* on, from the core's clock, without interrupt */
}

static void uart_begin(void)
{
    RCGC1 |= 1u;
    RCGC2 |= 1u;
    (void)RCGC2; /* the peripherals need three cycles to wake */
    (void)RCGC2;
    GPIOA_AFSEL |= 3u;
    GPIOA_DEN |= 3u;
    UART_CTL = 0;
    UART_IBRD = 3; /* 50 MHz / (16 * 1 Mbaud) = 3 + 8/64 */
    UART_FBRD = 8;
    UART_LCRH = 0x70; /* 8N1, FIFOs on */
    UART_IM = UART_RX_INTERRUPTS;
    UART_CTL = 0x301;
    NVIC_ISER0 = 1u << UART0_IRQ;
}

static void timer_begin(void)
{
    RCGC1 |= 1u << 16;
    (void)RCGC1;
    (void)RCGC1;
    TIMER0_CTL = 0;
    TIMER0_CFG = 0;
    TIMER0_TAMR = 2; /* periodic */
    TIMER0_TAILR = CLOCK_MHZ * TICK_US - 1u;
    TIMER0_IMR = 1;
    TIMER0_CTL = 1;
    NVIC_ISER0 = 1u << TIMER0_IRQ;
}

static fp_config configuration(void)
{
    fp_config config = {0};
    static const uint8_t name[12] = "lm3s6965 1.0";
    config.joints = JOINTS;
    config.tick_us = TICK_US;
    config.state_period_us = 10000;
    config.reset_cause = 0;
    for (size_t i = 0; i < sizeof name; i++) {
        config.firmware[i] = name[i];
    }
    for (size_t j = 0; j < JOINTS; j++) {
        fp_limits limits = {-ends[j], ends[j], 4000000, 40000000, 90000000};
        config.limits[j] = limits;
        config.park_urad[j] = rest[j];
    }
    return config;
}

/* Five ideal integrators: each takes its set-point's speed and makes up what it lags behind in 8 ms. */
static void joints_step(uint32_t elapsed_us)
{
    for (size_t j = 0; j < JOINTS; j++) {
        fp_knot *is = &drives.measured[j];
        const fp_knot *told = &setpoints.joints[j];
        if (!setpoints.torque) {
            is->velocity_urad_s = 0;
            continue;
        }
        is->velocity_urad_s = told->velocity_urad_s + (told->position_urad - is->position_urad) * (elapsed_us <= 8000 ? 125 : 1000000 / (int32_t)elapsed_us);
        is->position_urad += (int32_t)((int64_t)is->velocity_urad_s * elapsed_us / 1000000);
    }
}

static void receive(void)
{
    while (ring_out != ring_in) {
        uint8_t byte = ring[ring_out % RING_BYTES];
        ring_out++;
        fp_device_receive(&device, &byte, 1, now_us());
    }
}

static void transmit(void)
{
    uint8_t byte;
    while (!(UART_FR & UART_TX_FULL) && fp_device_transmit(&device, &byte, 1) == 1) {
        UART_DR = byte;
    }
}

/* Nobody can hear a device before it hears a host, so the boot id waits for the first byte and takes
 * the microsecond at which that came: with the counter it differs after warm and after cold starts. */
static uint32_t boot_id(void)
{
    while (ring_in == ring_out) {
        (void)now_us();
        __asm__ volatile("wfi");
    }
    boots++;
    return (boots * 0x9E3779B9u) ^ (now_us() * 0x85EBCA6Bu) ^ SYST_CVR;
}

int main(void)
{
    clock_begin();
    uart_begin();
    timer_begin();
    fp_config config = configuration();
    if (fp_device_init(&device, &config, boot_id(), now_us()) != 0) {
        return 1;
    }
    for (size_t j = 0; j < JOINTS; j++) {
        drives.measured[j].position_urad = rest[j];
    }
    drives.measured_valid = 1;
    fp_device_log(&device, FP_INFO, "five joints, make-believe", 25);
    uint32_t ticked_us = now_us();
    for (;;) {
        receive();
        transmit();
        uint32_t us = now_us();
        if (us - ticked_us >= TICK_US) {
            joints_step(us - ticked_us);
            ticked_us = us;
            fp_device_tick(&device, us, &drives, &setpoints);
        } else if (!(UART_FR & UART_TX_FULL)) {
            __asm__ volatile("wfi"); /* a byte or the timer wakes it, within a millisecond */
        }
    }
}
