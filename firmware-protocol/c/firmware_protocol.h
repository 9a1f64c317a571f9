/* The device side of the firmware protocol in C99: no allocation, no dependency, no input or output.
 *
 * Bytes, instants and measurements go in; set-points and bytes come out. SPEC.md is the normative
 * text. This port answers every stream of bytes with the same bytes as the Rust crate; a test holds
 * the two against each other.
 *
 * Units: positions in microradians, speeds in microradians a second, time in microseconds of the
 * device's clock, which wraps.
 *
 * A device is not to be called from two contexts at once: receive bytes into a buffer of your own in
 * the interrupt, and hand them over where you tick.
 */
#ifndef FIRMWARE_PROTOCOL_H
#define FIRMWARE_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#define FP_MAJOR 1u
#define FP_MINOR 0u
#define FP_MAX_JOINTS 8u
#define FP_QUEUE_DEPTH 64u
#define FP_PAYLOAD_MAX 200u
#define FP_BODY_MAX (FP_PAYLOAD_MAX + 6u)
#define FP_FRAME_MAX (FP_BODY_MAX + 3u)
#define FP_OUTBOX_BYTES 1024u
#define FP_LOG_TEXT_MAX 120u
#define FP_NO_JOINT 0xFFu

/* Limits of time; SPEC.md says what each is for. */
#define FP_DEADMAN_US 150000u
#define FP_LOST_HOST_US 1000000u
#define FP_BEAT_US 50000u
#define FP_LEAD_US 20000u
#define FP_JOIN_US 1000u
#define FP_AHEAD_MAX_US 2000000u
#define FP_ANCHOR_URAD 5000u
#define FP_DURATION_MIN_US 5000u
#define FP_STALL_US 20000u
#define FP_STOP_MIN_US 10000u

/* Bounds of a configuration. */
#define FP_POSITION_MAX_URAD 134217728
#define FP_VELOCITY_MAX_URAD_S 50000000u
#define FP_ACCELERATION_MIN_URAD_S2 10000u
#define FP_ACCELERATION_MAX_URAD_S2 1000000000u
#define FP_STOP_TIME_MAX_S 4u
#define FP_TICK_MIN_US 200u
#define FP_TICK_MAX_US 2000u

enum fp_kind {
    FP_HELLO = 0x00, FP_BEAT = 0x01, FP_TIME_REQ = 0x02, FP_SEGMENT = 0x03, FP_HOLD = 0x04,
    FP_RESUME = 0x05, FP_FLUSH = 0x06, FP_CLEAR_FAULT = 0x07, FP_TORQUE = 0x08, FP_PARK = 0x09,
    FP_HELLO_ACK = 0x20, FP_TIME_RESP = 0x21, FP_SEGMENT_ACK = 0x22, FP_STATE = 0x23, FP_LOG = 0x24,
    FP_ESTOP = 0x3F
};

enum fp_lost_host { FP_LOST_HOLD = 0, FP_LOST_PARK = 1, FP_LOST_TORQUE_OFF = 2 };

enum fp_mode {
    FP_UNPAIRED = 0, FP_DISARMED = 1, FP_IDLE = 2, FP_RUNNING = 3, FP_STOPPING = 4,
    FP_HELD = 5, FP_STOPPED = 6, FP_PARKING = 7, FP_ESTOPPED = 8, FP_FAULT = 9
};

enum fp_cause {
    FP_CAUSE_NONE = 0, FP_CAUSE_HOLD = 1, FP_CAUSE_FLUSH = 2, FP_CAUSE_HELLO = 3, FP_CAUSE_DEADMAN = 4,
    FP_CAUSE_UNDERRUN = 5, FP_CAUSE_LATE = 6, FP_CAUSE_DISCONTINUOUS = 7, FP_CAUSE_LIMIT = 8,
    FP_CAUSE_ESTOP = 9, FP_CAUSE_DRIVE = 10, FP_CAUSE_STALLED = 11
};

enum fp_segment_status {
    FP_ACCEPTED = 0, FP_DUPLICATE = 1, FP_GAP = 2, FP_STALE = 3, FP_FULL = 4, FP_NOT_READY = 5,
    FP_SHAPE = 6, FP_LATE = 7, FP_DISCONTINUOUS = 8, FP_POSITION = 9, FP_VELOCITY = 10,
    FP_ACCELERATION = 11, FP_NO_STOP = 12
};

enum fp_result {
    FP_DONE = 0, FP_WRONG_MODE = 1, FP_WRONG_NONCE = 2, FP_LATCHED = 3, FP_MOVING = 4,
    FP_NO_POSITION = 5, FP_WRONG_VERSION = 6
};

enum fp_log_level { FP_INFO = 0, FP_WARNING = 1, FP_ERROR = 2 };

typedef struct {
    int32_t position_urad;
    int32_t velocity_urad_s;
} fp_knot;

typedef struct {
    int32_t position_min_urad;
    int32_t position_max_urad;
    uint32_t velocity_max_urad_s;
    uint32_t acceleration_max_urad_s2;
    uint32_t stop_urad_s2; /* at least twice acceleration_max */
} fp_limits;

typedef struct {
    uint8_t joints; /* 1..FP_MAX_JOINTS */
    fp_limits limits[FP_MAX_JOINTS];
    int32_t park_urad[FP_MAX_JOINTS];
    uint16_t tick_us;         /* FP_TICK_MIN_US..FP_TICK_MAX_US */
    uint32_t state_period_us; /* at least 5000 */
    uint8_t firmware[12];     /* ASCII, zeros behind */
    uint8_t reset_cause;
} fp_config;

/* What the drives say, given to every tick. */
typedef struct {
    int measured_valid;
    fp_knot measured[FP_MAX_JOINTS];
    uint16_t faults; /* one bit for each joint */
} fp_drives;

/* What the drives shall do until the next tick. */
typedef struct {
    int torque;
    fp_knot joints[FP_MAX_JOINTS];
} fp_setpoints;

typedef struct {
    uint8_t version;
    uint8_t kind;
    uint8_t sequence;
    const uint8_t *payload;
    size_t len;
} fp_frame;

enum fp_received { FP_NOTHING = 0, FP_FRAME = 1, FP_ESTOP_SEEN = 2 };

typedef struct {
    uint8_t body[FP_BODY_MAX];
    size_t len;
    uint8_t block_left;
    uint8_t started;
    uint8_t spoilt;
    uint8_t finished;
    uint8_t estop_matched;
    uint32_t frames;
    uint32_t corrupt;
} fp_decoder;

/* Everything below is the library's own. */

typedef struct {
    int64_t p, a, b, c;
} fp_cubic;

typedef struct {
    fp_cubic cubics[FP_MAX_JOINTS];
    fp_knot end[FP_MAX_JOINTS];
    uint32_t start_us;
    uint32_t duration_us;
} fp_curve;

typedef struct {
    fp_knot end[FP_MAX_JOINTS];
    uint16_t duration_us;
} fp_queued;

typedef struct {
    fp_queued queue[FP_QUEUE_DEPTH];
    size_t first;
    size_t queued;
    int has_curve;
    fp_curve curve;
    uint32_t next_us;
    uint32_t now_us;
    uint32_t fraction;
    uint32_t rate;
    fp_knot here[FP_MAX_JOINTS];
    fp_knot tail[FP_MAX_JOINTS];
    uint32_t tail_us;
    int open;
} fp_path;

typedef struct {
    fp_knot from[FP_MAX_JOINTS];
    uint32_t duration_us[FP_MAX_JOINTS];
    uint32_t elapsed_us;
} fp_brake;

typedef struct {
    fp_config config;
    fp_decoder decoder;
    uint8_t outbox[FP_OUTBOX_BYTES];
    size_t out_first;
    size_t out_len;
    fp_path path;
    fp_brake brake;
    fp_drives drives;
    uint8_t mode;
    uint8_t cause;
    uint8_t drop;
    uint8_t parking;
    uint8_t torque;
    uint8_t paired;
    uint8_t lost_host;
    uint8_t lost_host_served;
    uint32_t boot_id;
    uint32_t clock_us;
    uint32_t silence_us;
    uint32_t since_beat_us;
    uint32_t since_state_us;
    uint16_t epoch;
    uint16_t next_index;
    uint32_t latches;
    uint32_t nonce;
    uint16_t ignored;
    uint8_t command;
    uint8_t result;
    uint8_t sequence;
} fp_device;

/* CRC-32C; of "123456789" it is 0xE3069283. */
uint32_t fp_crc32c(const uint8_t *bytes, size_t len);

/* Writes one frame to out, which holds FP_FRAME_MAX bytes; returns its length, 0 if the payload is too long. */
size_t fp_encode(uint8_t kind, uint8_t sequence, const uint8_t *payload, size_t len, uint8_t *out);

void fp_decoder_init(fp_decoder *decoder);

/* Takes one byte. On FP_FRAME the frame's payload stays valid until the next byte. */
enum fp_received fp_decoder_push(fp_decoder *decoder, uint8_t byte, fp_frame *frame);

/* 0 if the configuration keeps every rule of SPEC.md, -1 otherwise; then the device must not be used.
 * boot_id must differ from boot to boot. */
int fp_device_init(fp_device *device, const fp_config *config, uint32_t boot_id, uint32_t now_us);

/* Takes bytes off the wire. An emergency stop in them takes effect before this returns. */
void fp_device_receive(fp_device *device, const uint8_t *bytes, size_t len, uint32_t now_us);

/* Moves time on; call it every tick_us. */
void fp_device_tick(fp_device *device, uint32_t now_us, const fp_drives *drives, fp_setpoints *out);

/* Copies at most len bytes that wait to be sent to out; returns how many. */
size_t fp_device_transmit(fp_device *device, uint8_t *out, size_t len);

/* Stops at once, as ESTOP does; for a switch wired to the controller. */
void fp_device_emergency_stop(fp_device *device);

/* Sends a line for people; text beyond FP_LOG_TEXT_MAX bytes is cut. */
void fp_device_log(fp_device *device, enum fp_log_level level, const char *text, size_t len);

#endif
