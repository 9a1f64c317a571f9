/* Replays a recorded story to a device and prints what it said and did, for comparison with another
 * implementation. Standard input, numbers in decimal unless said otherwise:
 *
 *   I joints boot now tick state_period     then for each joint: min max velocity acceleration stop park
 *   R now hex                               bytes received
 *   T now faults valid                      a tick; with valid 1 then for each joint: position velocity
 *
 * After each T one line: torque, position and velocity of each joint, then the bytes sent in hex. */
#include "firmware_protocol.h"
#include <inttypes.h>
#include <stdio.h>

static fp_device device;
static fp_config config;

static int begin(void)
{
    uint32_t boot, now;
    if (scanf("%" SCNu8 "%" SCNu32 "%" SCNu32 "%" SCNu16 "%" SCNu32, &config.joints, &boot, &now, &config.tick_us, &config.state_period_us) != 5) {
        return -1;
    }
    if (config.joints > FP_MAX_JOINTS) {
        return -1;
    }
    for (size_t j = 0; j < config.joints; j++) {
        fp_limits *limits = &config.limits[j];
        if (scanf("%" SCNd32 "%" SCNd32 "%" SCNu32 "%" SCNu32 "%" SCNu32 "%" SCNd32, &limits->position_min_urad,
                  &limits->position_max_urad, &limits->velocity_max_urad_s, &limits->acceleration_max_urad_s2,
                  &limits->stop_urad_s2, &config.park_urad[j]) != 6) {
            return -1;
        }
    }
    return fp_device_init(&device, &config, boot, now);
}

static int receive(void)
{
    static char text[8192];
    uint32_t now;
    unsigned byte;
    if (scanf("%" SCNu32 "%8191s", &now, text) != 2) {
        return -1;
    }
    for (size_t at = 0; sscanf(text + at, "%2x", &byte) == 1; at += 2) {
        uint8_t one = (uint8_t)byte;
        fp_device_receive(&device, &one, 1, now);
    }
    return 0;
}

static void print_bytes(void)
{
    uint8_t bytes[FP_OUTBOX_BYTES];
    size_t len = fp_device_transmit(&device, bytes, sizeof bytes);
    putchar(' ');
    for (size_t i = 0; i < len; i++) {
        printf("%02x", bytes[i]);
    }
    putchar('\n');
}

static int tick(void)
{
    fp_drives drives = {0};
    fp_setpoints out;
    uint32_t now;
    if (scanf("%" SCNu32 "%" SCNu16 "%d", &now, &drives.faults, &drives.measured_valid) != 3) {
        return -1;
    }
    for (size_t j = 0; drives.measured_valid && j < config.joints; j++) {
        if (scanf("%" SCNd32 "%" SCNd32, &drives.measured[j].position_urad, &drives.measured[j].velocity_urad_s) != 2) {
            return -1;
        }
    }
    fp_device_tick(&device, now, &drives, &out);
    printf("%d", out.torque);
    for (size_t j = 0; j < config.joints; j++) {
        printf(" %" PRId32 " %" PRId32, out.joints[j].position_urad, out.joints[j].velocity_urad_s);
    }
    print_bytes();
    return 0;
}

int main(void)
{
    char verb;
    while (scanf(" %c", &verb) == 1) {
        int wrong = verb == 'I' ? begin() : verb == 'R' ? receive() : verb == 'T' ? tick() : -1;
        if (wrong) {
            fprintf(stderr, "cannot do %c\n", verb);
            return 1;
        }
    }
    return 0;
}
