#include "firmware_protocol.h"

#define SECOND_US 1000000
#define POSITION_ONE 64
#define FULL_RATE 65536u
#define NEWER_MAX 127u
/* CRC-32C of the canonical schema text, as SPEC.md prints it. */
#define SCHEMA_HASH 0x10D9F3A1u

static const uint8_t ESTOP_BYTES[9] = {0x00, 0x02, 0x7F, 0x05, 0xA8, 0xA9, 0x41, 0xA9, 0x00};

/* ---- arithmetic that C leaves to the compiler, pinned down ---- */

static int32_t as_signed(uint32_t word)
{
    return word <= 0x7FFFFFFFu ? (int32_t)word : (int32_t)(word - 0x80000000u) - 0x7FFFFFFF - 1;
}

static int32_t as_signed16(uint16_t half)
{
    return half <= 0x7FFFu ? (int32_t)half : (int32_t)half - 0x10000;
}

static int64_t shift_right(int64_t value, unsigned bits)
{
    return value >= 0 ? value >> bits : ~(~value >> bits);
}

static int64_t magnitude(int64_t value)
{
    return value < 0 ? -value : value;
}

static int sign(int64_t value)
{
    return (value > 0) - (value < 0);
}

static int32_t saturate(int64_t value)
{
    if (value > INT32_MAX) {
        return INT32_MAX;
    }
    return value < INT32_MIN ? INT32_MIN : (int32_t)value;
}

static uint32_t saturate_u32(uint64_t value)
{
    return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

static uint32_t add_saturating(uint32_t a, uint32_t b)
{
    return saturate_u32((uint64_t)a + b);
}

static uint32_t distance_u32(int32_t a, int32_t b)
{
    return (uint32_t)magnitude((int64_t)a - b);
}

static uint64_t square_root(uint64_t value)
{
    uint64_t root = 0;
    uint64_t bit = (uint64_t)1 << 62;
    while (bit > value) {
        bit >>= 2;
    }
    for (; bit != 0; bit >>= 2) {
        if (value >= root + bit) {
            value -= root + bit;
            root = (root >> 1) + bit;
        } else {
            root >>= 1;
        }
    }
    return root;
}

/* ---- little endian ---- */

static void put16(uint8_t *out, uint16_t value)
{
    out[0] = (uint8_t)(value & 0xFFu);
    out[1] = (uint8_t)(value >> 8);
}

static void put32(uint8_t *out, uint32_t value)
{
    put16(out, (uint16_t)(value & 0xFFFFu));
    put16(out + 2, (uint16_t)(value >> 16));
}

static uint16_t get16(const uint8_t *from)
{
    return (uint16_t)(from[0] | (uint16_t)(from[1] << 8));
}

static uint32_t get32(const uint8_t *from)
{
    return (uint32_t)get16(from) | ((uint32_t)get16(from + 2) << 16);
}

/* ---- frames ---- */

uint32_t fp_crc32c(const uint8_t *bytes, size_t len)
{
    /* Four bits at a time: 64 bytes of table rather than 1024. */
    static const uint32_t table[16] = {
        0x00000000u, 0x105EC76Fu, 0x20BD8EDEu, 0x30E349B1u, 0x417B1DBCu, 0x5125DAD3u, 0x61C69362u, 0x7198540Du,
        0x82F63B78u, 0x92A8FC17u, 0xA24BB5A6u, 0xB21572C9u, 0xC38D26C4u, 0xD3D3E1ABu, 0xE330A81Au, 0xF36E6F75u};
    uint32_t crc = 0xFFFFFFFFu;
    for (size_t i = 0; i < len; i++) {
        crc ^= bytes[i];
        crc = (crc >> 4) ^ table[crc & 15u];
        crc = (crc >> 4) ^ table[crc & 15u];
    }
    return ~crc;
}

size_t fp_encode(uint8_t kind, uint8_t sequence, const uint8_t *payload, size_t len, uint8_t *out)
{
    uint8_t body[FP_BODY_MAX];
    if (kind > 0x3Fu || len > FP_PAYLOAD_MAX) {
        return 0;
    }
    body[0] = (uint8_t)(FP_MAJOR << 6 | kind);
    body[1] = sequence;
    for (size_t i = 0; i < len; i++) {
        body[2 + i] = payload[i];
    }
    put32(body + 2 + len, fp_crc32c(body, 2 + len));
    size_t code_at = 1;
    size_t at = 2;
    out[0] = 0;
    for (size_t i = 0; i < len + 6; i++) {
        if (body[i] != 0) {
            out[at++] = body[i];
        } else {
            out[code_at] = (uint8_t)(at - code_at);
            code_at = at++;
        }
    }
    out[code_at] = (uint8_t)(at - code_at);
    out[at++] = 0;
    return at;
}

static void clear_body(fp_decoder *decoder)
{
    decoder->len = 0;
    decoder->block_left = 0;
    decoder->started = 0;
    decoder->spoilt = 0;
}

void fp_decoder_init(fp_decoder *decoder)
{
    clear_body(decoder);
    decoder->finished = 0;
    decoder->estop_matched = 0;
    decoder->frames = 0;
    decoder->corrupt = 0;
}

static void keep(fp_decoder *decoder, uint8_t byte)
{
    if (decoder->len < FP_BODY_MAX) {
        decoder->body[decoder->len++] = byte;
    } else {
        decoder->spoilt = 1;
    }
}

static void unstuff(fp_decoder *decoder, uint8_t byte)
{
    if (decoder->block_left > 0) {
        decoder->block_left--;
        keep(decoder, byte);
        return;
    }
    if (byte == 0xFFu) {
        decoder->spoilt = 1;
    }
    if (decoder->started) {
        keep(decoder, 0);
    }
    decoder->started = 1;
    decoder->block_left = (uint8_t)(byte - 1u);
}

static int completes_estop(fp_decoder *decoder, uint8_t byte)
{
    if (ESTOP_BYTES[decoder->estop_matched] == byte) {
        decoder->estop_matched++;
    } else {
        decoder->estop_matched = byte == 0;
    }
    if (decoder->estop_matched < sizeof ESTOP_BYTES) {
        return 0;
    }
    decoder->estop_matched = 1;
    return 1;
}

static int check(const fp_decoder *decoder, fp_frame *frame)
{
    const uint8_t *body = decoder->body;
    if (decoder->spoilt || decoder->block_left > 0 || decoder->len < 6) {
        return 0;
    }
    size_t covered = decoder->len - 4;
    if (fp_crc32c(body, covered) != get32(body + covered)) {
        return 0;
    }
    frame->version = body[0] >> 6;
    frame->kind = body[0] & 0x3Fu;
    frame->sequence = body[1];
    frame->payload = body + 2;
    frame->len = covered - 2;
    return 1;
}

enum fp_received fp_decoder_push(fp_decoder *decoder, uint8_t byte, fp_frame *frame)
{
    if (decoder->finished) {
        clear_body(decoder);
        decoder->finished = 0;
    }
    if (completes_estop(decoder, byte)) {
        clear_body(decoder);
        decoder->frames = add_saturating(decoder->frames, 1);
        return FP_ESTOP_SEEN;
    }
    if (byte != 0) {
        unstuff(decoder, byte);
        return FP_NOTHING;
    }
    if (!decoder->started) {
        return FP_NOTHING;
    }
    decoder->finished = 1;
    if (check(decoder, frame)) {
        decoder->frames = add_saturating(decoder->frames, 1);
        return FP_FRAME;
    }
    decoder->corrupt = add_saturating(decoder->corrupt, 1);
    return FP_NOTHING;
}

/* ---- limits ---- */

static uint32_t brake_us(int32_t velocity_urad_s, uint32_t rate_urad_s2)
{
    uint64_t speed = (uint64_t)magnitude(velocity_urad_s) * SECOND_US;
    uint64_t rate = rate_urad_s2 == 0 ? 1 : rate_urad_s2;
    return saturate_u32(speed / rate + (speed % rate != 0));
}

static uint32_t stop_us(const fp_config *config, const fp_knot *from)
{
    uint32_t longest_us = FP_STOP_MIN_US;
    for (size_t j = 0; j < config->joints; j++) {
        uint32_t us = brake_us(from[j].velocity_urad_s, config->limits[j].acceleration_max_urad_s2);
        longest_us = us > longest_us ? us : longest_us;
    }
    return longest_us;
}

static uint32_t travel_us(int32_t from_urad, int32_t to_urad, const fp_limits *limits)
{
    uint64_t distance = distance_u32(to_urad, from_urad);
    uint64_t by_speed = distance * 1500000u / limits->velocity_max_urad_s;
    uint64_t by_acceleration =
        square_root(6 * distance * SECOND_US / limits->acceleration_max_urad_s2 * SECOND_US);
    return saturate_u32((by_speed > by_acceleration ? by_speed : by_acceleration) + 2000u);
}

static fp_knot after_stop(fp_knot knot, uint32_t duration_us)
{
    int64_t way = (int64_t)knot.velocity_urad_s * (int64_t)duration_us / (2 * SECOND_US);
    fp_knot stopped = {saturate(knot.position_urad + way), 0};
    return stopped;
}

static int inside(int64_t position_urad, const fp_limits *limits)
{
    return position_urad >= limits->position_min_urad && position_urad <= limits->position_max_urad;
}

static uint8_t prove_joint(fp_knot from, fp_knot to, int64_t duration_us, const fp_limits *limits)
{
    int64_t start = from.position_urad, end = to.position_urad;
    int64_t leave = from.velocity_urad_s, arrive = to.velocity_urad_s;
    int64_t speed_max = limits->velocity_max_urad_s;
    if (magnitude(arrive) > speed_max || magnitude(end - start) * SECOND_US > speed_max * duration_us) {
        return FP_VELOCITY;
    }
    if (!inside(end, limits) || !inside(start + leave * duration_us / (3 * SECOND_US), limits) ||
        !inside(end - arrive * duration_us / (3 * SECOND_US), limits)) {
        return FP_POSITION;
    }
    int64_t mean = 6 * (end - start) * SECOND_US / duration_us;
    int64_t first = (mean - 4 * leave - 2 * arrive) * SECOND_US / duration_us;
    int64_t last = (2 * leave + 4 * arrive - mean) * SECOND_US / duration_us;
    int64_t rounding = (int64_t)6 * SECOND_US * SECOND_US / (duration_us * duration_us) + 6 * SECOND_US / duration_us;
    int64_t hardest = magnitude(first) > magnitude(last) ? magnitude(first) : magnitude(last);
    if (hardest > (int64_t)limits->acceleration_max_urad_s2 + rounding) {
        return FP_ACCELERATION;
    }
    int64_t peak = leave;
    if (sign(first) * sign(last) < 0) {
        int64_t until_us = duration_us * first / (first - last);
        peak = leave + first * until_us / (2 * SECOND_US);
    }
    return magnitude(peak) > speed_max + rounding * duration_us / SECOND_US + 1 ? FP_VELOCITY : FP_ACCEPTED;
}

static uint8_t prove(const fp_config *config, const fp_knot *from, const fp_knot *to, uint16_t duration_us, uint8_t *joint)
{
    uint32_t stopping_us = stop_us(config, to);
    for (uint8_t j = 0; j < config->joints; j++) {
        uint8_t status = prove_joint(from[j], to[j], duration_us, &config->limits[j]);
        if (status == FP_ACCEPTED && !inside(after_stop(to[j], stopping_us).position_urad, &config->limits[j])) {
            status = FP_NO_STOP;
        }
        if (status != FP_ACCEPTED) {
            *joint = j;
            return status;
        }
    }
    return FP_ACCEPTED;
}

/* ---- curves ---- */

static int64_t travel(int32_t velocity_urad_s, uint32_t duration_us)
{
    return (int64_t)velocity_urad_s * (int64_t)duration_us * POSITION_ONE / SECOND_US;
}

static void curve_between(fp_curve *curve, size_t joints, const fp_knot *from, const fp_knot *to, uint32_t start_us, uint32_t duration_us)
{
    for (size_t j = 0; j < joints; j++) {
        int64_t distance = ((int64_t)to[j].position_urad - from[j].position_urad) * POSITION_ONE;
        int64_t leave = travel(from[j].velocity_urad_s, duration_us);
        int64_t arrive = travel(to[j].velocity_urad_s, duration_us);
        curve->cubics[j].p = (int64_t)from[j].position_urad * POSITION_ONE;
        curve->cubics[j].a = leave;
        curve->cubics[j].b = 3 * distance - 2 * leave - arrive;
        curve->cubics[j].c = leave + arrive - 2 * distance;
        curve->end[j] = to[j];
    }
    curve->start_us = start_us;
    curve->duration_us = duration_us;
}

static fp_knot cubic_at(const fp_cubic *cubic, int64_t progress, uint32_t duration_us)
{
    int64_t cu = shift_right(cubic->c * progress, 24);
    int64_t bu = shift_right((cubic->b + cu) * progress, 24);
    int64_t position = cubic->p + shift_right((cubic->a + bu) * progress, 24);
    int64_t slope = cubic->a + shift_right((2 * cubic->b + 3 * cu) * progress, 24);
    fp_knot knot = {saturate(shift_right(position + POSITION_ONE / 2, 6)),
                    saturate(slope * SECOND_US / ((int64_t)duration_us * POSITION_ONE))};
    return knot;
}

static int curve_at(const fp_curve *curve, size_t joints, uint32_t now_us, uint32_t fraction, fp_knot *out)
{
    uint32_t elapsed_us = now_us - curve->start_us;
    if (elapsed_us >= curve->duration_us) {
        return 0;
    }
    int64_t elapsed = (int64_t)elapsed_us * 256 + (fraction >> 8);
    int64_t progress = elapsed * 65536 / (int64_t)curve->duration_us;
    for (size_t j = 0; j < joints; j++) {
        out[j] = cubic_at(&curve->cubics[j], progress, curve->duration_us);
    }
    return 1;
}

/* ---- the path ---- */

enum step { ON_THE_WAY, RAN_DRY, FINISHED };

static uint8_t path_free(const fp_path *path)
{
    return (uint8_t)(FP_QUEUE_DEPTH - path->queued);
}

static void path_scaled(const fp_device *device, fp_knot *out)
{
    for (size_t j = 0; j < device->config.joints; j++) {
        out[j] = device->path.here[j];
        out[j].velocity_urad_s = saturate((int64_t)out[j].velocity_urad_s * (int64_t)device->path.rate / (int64_t)FULL_RATE);
    }
}

static void path_drop_rest(fp_device *device)
{
    fp_path *path = &device->path;
    path->has_curve = 0;
    path->queued = 0;
    path->rate = FULL_RATE;
    path->open = 0;
    for (size_t j = 0; j < device->config.joints; j++) {
        path->here[j].velocity_urad_s = 0;
    }
}

static void path_stand(fp_device *device, const fp_knot *at)
{
    for (size_t j = 0; j < device->config.joints; j++) {
        device->path.here[j].position_urad = at[j].position_urad;
        device->path.here[j].velocity_urad_s = 0;
    }
}

static void path_rest_at(fp_path *path, uint32_t now_us)
{
    path->now_us = now_us;
    path->fraction = 0;
    path->next_us = now_us;
    path->tail_us = now_us;
}

static void path_travel_to_park(fp_device *device)
{
    fp_path *path = &device->path;
    fp_knot end[FP_MAX_JOINTS];
    uint32_t duration_us = 1;
    for (size_t j = 0; j < device->config.joints; j++) {
        int32_t to_urad = device->config.park_urad[j];
        uint32_t us = travel_us(path->here[j].position_urad, to_urad, &device->config.limits[j]);
        duration_us = us > duration_us ? us : duration_us;
        end[j].position_urad = to_urad;
        end[j].velocity_urad_s = path->here[j].velocity_urad_s;
    }
    curve_between(&path->curve, device->config.joints, path->here, end, path->now_us, duration_us);
    path->has_curve = 1;
    path->next_us = path->now_us + duration_us;
}

static uint32_t rate_change(const fp_device *device, uint32_t step_us)
{
    uint64_t change = FULL_RATE;
    for (size_t j = 0; j < device->config.joints; j++) {
        uint64_t allowed = (uint64_t)device->config.limits[j].acceleration_max_urad_s2 * step_us / SECOND_US;
        uint64_t speed = (uint64_t)magnitude(device->path.here[j].velocity_urad_s);
        uint64_t divisor = speed + allowed == 0 ? 1 : speed + allowed;
        uint64_t own = allowed * FULL_RATE / divisor;
        change = own < change ? own : change;
    }
    return change == 0 ? 1 : (uint32_t)change;
}

static void path_slow(fp_device *device, uint32_t step_us)
{
    uint32_t change = rate_change(device, step_us);
    device->path.rate = device->path.rate > change ? device->path.rate - change : 0;
}

static void path_quicken(fp_device *device, uint32_t step_us)
{
    if (device->path.rate < FULL_RATE) {
        uint32_t rate = device->path.rate + rate_change(device, step_us);
        device->path.rate = rate < FULL_RATE ? rate : FULL_RATE;
    }
}

/* Begins the next queued segment, the tail if there is none, or finishes where nothing moves. */
static enum step path_begin_next(fp_device *device)
{
    fp_path *path = &device->path;
    size_t joints = device->config.joints;
    fp_knot end[FP_MAX_JOINTS];
    int still = 1;
    if (path->queued > 0) {
        const fp_queued *next = &path->queue[path->first];
        curve_between(&path->curve, joints, path->here, next->end, path->next_us, next->duration_us);
        path->has_curve = 1;
        path->first = (path->first + 1) % FP_QUEUE_DEPTH;
        path->queued--;
        return ON_THE_WAY;
    }
    for (size_t j = 0; j < joints; j++) {
        still = still && path->here[j].velocity_urad_s == 0;
    }
    if (still) {
        return FINISHED;
    }
    uint32_t duration_us = stop_us(&device->config, path->here);
    for (size_t j = 0; j < joints; j++) {
        end[j] = after_stop(path->here[j], duration_us);
    }
    curve_between(&path->curve, joints, path->here, end, path->next_us, duration_us);
    path->has_curve = 1;
    return RAN_DRY;
}

static enum step path_settle(fp_device *device)
{
    fp_path *path = &device->path;
    enum step step = ON_THE_WAY;
    for (size_t turn = 0; turn <= FP_QUEUE_DEPTH; turn++) {
        if (path->has_curve) {
            if (curve_at(&path->curve, device->config.joints, path->now_us, path->fraction, path->here)) {
                return step;
            }
            for (size_t j = 0; j < device->config.joints; j++) {
                path->here[j] = path->curve.end[j];
            }
            path->next_us = path->curve.start_us + path->curve.duration_us;
            path->has_curve = 0;
        }
        if (as_signed(path->now_us - path->next_us) < 0) {
            return step;
        }
        enum step begun = path_begin_next(device);
        if (begun == FINISHED) {
            return begun;
        }
        step = begun == RAN_DRY ? RAN_DRY : step;
    }
    return step;
}

static enum step path_advance(fp_device *device, uint32_t step_us)
{
    fp_path *path = &device->path;
    uint64_t moved = (uint64_t)step_us * path->rate + path->fraction;
    path->fraction = (uint32_t)(moved % FULL_RATE);
    path->now_us += (uint32_t)(moved / FULL_RATE);
    return path_settle(device);
}

/* ---- the brake ---- */

static void brake_begin(fp_device *device)
{
    fp_brake *brake = &device->brake;
    path_scaled(device, brake->from);
    for (size_t j = 0; j < device->config.joints; j++) {
        brake->duration_us[j] = brake_us(brake->from[j].velocity_urad_s, device->config.limits[j].stop_urad_s2);
    }
    brake->elapsed_us = 0;
}

static int brake_at_rest(const fp_device *device)
{
    for (size_t j = 0; j < device->config.joints; j++) {
        if (device->brake.elapsed_us < device->brake.duration_us[j]) {
            return 0;
        }
    }
    return 1;
}

static void brake_now(const fp_device *device, fp_knot *out)
{
    const fp_brake *brake = &device->brake;
    for (size_t j = 0; j < device->config.joints; j++) {
        uint32_t duration_us = brake->duration_us[j];
        int64_t elapsed_us = brake->elapsed_us < duration_us ? brake->elapsed_us : duration_us;
        int64_t speed = brake->from[j].velocity_urad_s;
        int64_t lost = (int64_t)device->config.limits[j].stop_urad_s2 * elapsed_us / SECOND_US;
        lost = lost < magnitude(speed) ? lost : magnitude(speed);
        int64_t left = speed - lost * sign(speed);
        int64_t way = (speed + left) * elapsed_us / (2 * SECOND_US);
        out[j].position_urad = saturate(brake->from[j].position_urad + way);
        out[j].velocity_urad_s = elapsed_us == (int64_t)duration_us ? 0 : saturate(left);
    }
}

/* ---- the device: sending ---- */

static void send(fp_device *device, uint8_t kind, const uint8_t *payload, size_t len)
{
    uint8_t frame[FP_FRAME_MAX];
    size_t size = fp_encode(kind, device->sequence++, payload, len, frame);
    if (device->out_len + size > FP_OUTBOX_BYTES) {
        return;
    }
    for (size_t i = 0; i < size; i++) {
        device->outbox[(device->out_first + device->out_len++) % FP_OUTBOX_BYTES] = frame[i];
    }
}

size_t fp_device_transmit(fp_device *device, uint8_t *out, size_t len)
{
    size_t count = len < device->out_len ? len : device->out_len;
    for (size_t i = 0; i < count; i++) {
        out[i] = device->outbox[device->out_first];
        device->out_first = (device->out_first + 1) % FP_OUTBOX_BYTES;
    }
    device->out_len -= count;
    return count;
}

void fp_device_log(fp_device *device, enum fp_log_level level, const char *text, size_t len)
{
    uint8_t payload[1 + FP_LOG_TEXT_MAX];
    size_t kept = len < FP_LOG_TEXT_MAX ? len : FP_LOG_TEXT_MAX;
    payload[0] = (uint8_t)level;
    for (size_t i = 0; i < kept; i++) {
        payload[1 + i] = (uint8_t)text[i];
    }
    send(device, FP_LOG, payload, 1 + kept);
}

static int latched(const fp_device *device)
{
    return device->mode == FP_ESTOPPED || device->mode == FP_FAULT;
}

static int moving(const fp_device *device)
{
    if (latched(device)) {
        return !brake_at_rest(device);
    }
    return device->mode == FP_RUNNING || device->mode == FP_STOPPING || device->mode == FP_PARKING;
}

static void setpoints(const fp_device *device, fp_setpoints *out)
{
    out->torque = device->torque;
    if (latched(device)) {
        brake_now(device, out->joints);
    } else {
        path_scaled(device, out->joints);
    }
}

static void send_hello_ack(fp_device *device)
{
    uint8_t payload[28 + 20 * FP_MAX_JOINTS] = {FP_MAJOR, FP_MINOR, FP_QUEUE_DEPTH, 0};
    const fp_config *config = &device->config;
    payload[3] = config->reset_cause;
    put32(payload + 4, SCHEMA_HASH);
    put32(payload + 8, device->boot_id);
    put16(payload + 12, device->epoch);
    put16(payload + 14, config->tick_us);
    for (size_t i = 0; i < 12; i++) {
        payload[16 + i] = config->firmware[i];
    }
    for (size_t j = 0; j < config->joints; j++) {
        uint8_t *out = payload + 28 + 20 * j;
        put32(out, (uint32_t)config->limits[j].position_min_urad);
        put32(out + 4, (uint32_t)config->limits[j].position_max_urad);
        put32(out + 8, config->limits[j].velocity_max_urad_s);
        put32(out + 12, config->limits[j].acceleration_max_urad_s2);
        put32(out + 16, config->limits[j].stop_urad_s2);
    }
    send(device, FP_HELLO_ACK, payload, 28 + 20 * (size_t)config->joints);
}

static void send_state(fp_device *device)
{
    uint8_t payload[32 + 12 * FP_MAX_JOINTS];
    fp_setpoints commanded;
    int shifted = device->mode == FP_RUNNING || device->mode == FP_STOPPING || device->mode == FP_HELD;
    int valid = device->drives.measured_valid;
    setpoints(device, &commanded);
    put32(payload, device->clock_us);
    put32(payload + 4, device->boot_id);
    put32(payload + 8, shifted ? device->clock_us - device->path.now_us : 0);
    put32(payload + 12, device->nonce);
    put16(payload + 16, device->epoch);
    put16(payload + 18, device->drives.faults);
    put16(payload + 20, (uint16_t)(device->decoder.corrupt & 0xFFFFu));
    put16(payload + 22, device->ignored);
    payload[24] = device->mode;
    payload[25] = device->cause;
    payload[26] = (uint8_t)((device->torque ? 1 : 0) | (moving(device) ? 2 : 0) | (valid ? 4 : 0));
    payload[27] = path_free(&device->path);
    payload[28] = device->command;
    payload[29] = device->result;
    put16(payload + 30, 0);
    for (size_t j = 0; j < device->config.joints; j++) {
        uint8_t *out = payload + 32 + 12 * j;
        put32(out, (uint32_t)commanded.joints[j].position_urad);
        put32(out + 4, valid ? (uint32_t)device->drives.measured[j].position_urad : 0);
        put32(out + 8, valid ? (uint32_t)device->drives.measured[j].velocity_urad_s : 0);
    }
    send(device, FP_STATE, payload, 32 + 12 * (size_t)device->config.joints);
}

/* ---- the device: modes ---- */

static void hear_host(fp_device *device)
{
    device->silence_us = 0;
    device->lost_host_served = 0;
}

static void new_epoch(fp_device *device)
{
    device->epoch++;
    device->next_index = 0;
}

static uint8_t resting_mode(const fp_device *device)
{
    if (device->torque) {
        return FP_IDLE;
    }
    return device->paired ? FP_DISARMED : FP_UNPAIRED;
}

static void stop(fp_device *device, uint8_t drop, uint8_t cause)
{
    if (device->mode == FP_RUNNING || device->mode == FP_PARKING) {
        device->mode = FP_STOPPING;
    } else if (device->mode == FP_STOPPING && drop) {
        /* It only must not keep its queue any more. */
    } else if (device->mode == FP_IDLE && !drop) {
        device->mode = FP_HELD;
    } else if (device->mode == FP_HELD && drop) {
        path_drop_rest(device);
        device->mode = FP_STOPPED;
    } else {
        return;
    }
    device->drop = drop;
    device->cause = cause;
}

static void latch(fp_device *device, uint8_t mode, uint8_t cause)
{
    if (latched(device)) {
        return;
    }
    brake_begin(device);
    path_drop_rest(device);
    device->mode = mode;
    device->cause = cause;
    device->parking = 0;
    device->latches++;
    device->nonce = (device->boot_id + device->latches * 0x9E3779B9u) | 1u;
    new_epoch(device);
}

void fp_device_emergency_stop(fp_device *device)
{
    latch(device, FP_ESTOPPED, FP_CAUSE_ESTOP);
}

static void torque_off(fp_device *device)
{
    new_epoch(device);
    path_drop_rest(device);
    device->torque = 0;
    device->parking = 0;
    if (!latched(device)) {
        device->mode = resting_mode(device);
    }
}

static void begin_park(fp_device *device)
{
    new_epoch(device);
    path_drop_rest(device);
    path_rest_at(&device->path, device->clock_us);
    path_travel_to_park(device);
    device->parking = 1;
    device->mode = FP_PARKING;
}

/* A null policy is a HELLO of another version. */
static void hello(fp_device *device, const uint8_t *policy, uint8_t sequence)
{
    device->paired = policy != NULL;
    device->lost_host = policy != NULL ? *policy : FP_LOST_HOLD;
    device->command = sequence;
    device->result = device->paired ? FP_DONE : FP_WRONG_VERSION;
    hear_host(device);
    new_epoch(device);
    stop(device, 1, FP_CAUSE_HELLO);
    if (device->mode == FP_UNPAIRED || device->mode == FP_DISARMED) {
        device->mode = resting_mode(device);
    }
    send_hello_ack(device);
}

/* ---- the device: commands ---- */

static uint8_t command_hold(fp_device *device)
{
    if (latched(device)) {
        return FP_LATCHED;
    }
    if (!device->torque) {
        return FP_WRONG_MODE;
    }
    stop(device, 0, FP_CAUSE_HOLD);
    return FP_DONE;
}

static uint8_t command_resume(fp_device *device)
{
    if (device->mode == FP_HELD && device->parking) {
        device->mode = FP_PARKING;
    } else if (device->mode == FP_HELD && device->path.open) {
        device->mode = FP_RUNNING;
    } else if (device->mode == FP_HELD || device->mode == FP_STOPPED) {
        device->mode = FP_IDLE;
    } else {
        return device->mode == FP_STOPPING ? FP_MOVING : FP_WRONG_MODE;
    }
    device->cause = FP_CAUSE_NONE;
    return FP_DONE;
}

static uint8_t command_flush(fp_device *device)
{
    new_epoch(device);
    if (moving(device)) {
        stop(device, 1, FP_CAUSE_FLUSH);
    } else {
        path_drop_rest(device);
        device->parking = 0;
        device->mode = FP_IDLE;
        device->cause = FP_CAUSE_NONE;
    }
    return FP_DONE;
}

static uint8_t command_clear_fault(fp_device *device, uint32_t nonce)
{
    fp_knot at[FP_MAX_JOINTS];
    if (!latched(device)) {
        return FP_WRONG_MODE;
    }
    if (moving(device)) {
        return FP_MOVING;
    }
    if (nonce != device->nonce) {
        return FP_WRONG_NONCE;
    }
    brake_now(device, at);
    path_stand(device, at);
    path_rest_at(&device->path, device->clock_us);
    device->nonce = 0;
    device->cause = FP_CAUSE_NONE;
    device->mode = resting_mode(device);
    return FP_DONE;
}

static uint8_t command_torque_on(fp_device *device)
{
    if (device->torque) {
        return FP_DONE;
    }
    if (!device->drives.measured_valid) {
        return FP_NO_POSITION;
    }
    for (size_t j = 0; j < device->config.joints; j++) {
        if (!inside(device->drives.measured[j].position_urad, &device->config.limits[j])) {
            return FP_NO_POSITION;
        }
    }
    path_stand(device, device->drives.measured);
    path_rest_at(&device->path, device->clock_us);
    new_epoch(device);
    device->torque = 1;
    device->cause = FP_CAUSE_NONE;
    device->mode = FP_IDLE;
    return FP_DONE;
}

static uint8_t command_torque_off(fp_device *device)
{
    if (moving(device)) {
        return FP_MOVING;
    }
    torque_off(device);
    return FP_DONE;
}

static uint8_t command_park(fp_device *device)
{
    if (moving(device)) {
        return FP_MOVING;
    }
    device->cause = FP_CAUSE_NONE;
    begin_park(device);
    return FP_DONE;
}

static uint8_t execute(fp_device *device, const fp_frame *frame)
{
    if (frame->kind == FP_HOLD) {
        return command_hold(device);
    }
    if (!device->paired) {
        return FP_WRONG_MODE;
    }
    if (frame->kind == FP_CLEAR_FAULT) {
        return command_clear_fault(device, get32(frame->payload));
    }
    if (frame->kind == FP_TORQUE && frame->payload[0] == 0) {
        return command_torque_off(device);
    }
    if (latched(device)) {
        return FP_LATCHED;
    }
    if (frame->kind == FP_TORQUE) {
        return command_torque_on(device);
    }
    if (!device->torque) {
        return FP_WRONG_MODE;
    }
    switch (frame->kind) {
    case FP_RESUME: return command_resume(device);
    case FP_FLUSH: return command_flush(device);
    default: return command_park(device);
    }
}

static void command(fp_device *device, const fp_frame *frame)
{
    uint8_t age = (uint8_t)(frame->sequence - device->command);
    device->since_state_us = device->config.state_period_us;
    if (age >= 1 && age <= NEWER_MAX) {
        device->command = frame->sequence;
        device->result = execute(device, frame);
    } else if (frame->kind == FP_HOLD) {
        stop(device, 0, FP_CAUSE_HOLD);
    } else if (age != 0) {
        device->ignored++;
    }
}

/* ---- the device: segments ---- */

typedef struct {
    uint16_t epoch, index, duration_us;
    uint32_t start_us;
    size_t joints;
    fp_knot end[FP_MAX_JOINTS];
} segment;

static int takes_segments(const fp_device *device)
{
    int kept = device->path.open && !device->parking;
    switch (device->mode) {
    case FP_IDLE: return 1;
    case FP_RUNNING:
    case FP_HELD: return kept;
    case FP_STOPPING: return kept && !device->drop;
    default: return 0;
    }
}

static uint8_t judge_place(const fp_device *device, const segment *it)
{
    if (!device->paired || !takes_segments(device)) {
        return FP_NOT_READY;
    }
    if (it->epoch != device->epoch) {
        return FP_STALE;
    }
    int32_t ahead = as_signed16((uint16_t)(it->index - device->next_index));
    if (ahead != 0) {
        return ahead > 0 ? FP_GAP : FP_DUPLICATE;
    }
    return it->joints == device->config.joints ? FP_ACCEPTED : FP_SHAPE;
}

static uint8_t judge_anchor(const fp_device *device, const segment *it, uint8_t *joint)
{
    int32_t ahead_us = as_signed(it->start_us - device->clock_us);
    if (device->mode != FP_IDLE) {
        return FP_DISCONTINUOUS;
    }
    if (ahead_us < (int32_t)FP_LEAD_US) {
        return FP_LATE;
    }
    if (ahead_us > (int32_t)FP_AHEAD_MAX_US) {
        return FP_DISCONTINUOUS;
    }
    for (uint8_t j = 0; j < device->config.joints; j++) {
        uint32_t off_urad = distance_u32(device->path.here[j].position_urad, it->end[j].position_urad);
        if (off_urad > FP_ANCHOR_URAD || it->end[j].velocity_urad_s != 0) {
            *joint = j;
            return FP_DISCONTINUOUS;
        }
    }
    return FP_ACCEPTED;
}

static uint8_t judge_piece(const fp_device *device, const segment *it, uint8_t *joint)
{
    const fp_path *path = &device->path;
    int64_t off_us = magnitude(as_signed(it->start_us - path->tail_us));
    if (!path->open || off_us > (int64_t)FP_JOIN_US) {
        return FP_DISCONTINUOUS;
    }
    if (it->duration_us < FP_DURATION_MIN_US) {
        return FP_SHAPE;
    }
    if (as_signed(path->tail_us - path->now_us) < (int32_t)FP_LEAD_US) {
        return FP_LATE;
    }
    if (path_free(path) == 0) {
        return FP_FULL;
    }
    return prove(&device->config, path->tail, it->end, it->duration_us, joint);
}

static void accept(fp_device *device, const segment *it)
{
    fp_path *path = &device->path;
    device->next_index++;
    if (it->duration_us == 0) {
        path_rest_at(path, device->clock_us);
        path->open = 1;
        path->next_us = it->start_us;
        path->tail_us = it->start_us;
        for (size_t j = 0; j < device->config.joints; j++) {
            path->tail[j] = path->here[j];
        }
        device->mode = FP_RUNNING;
        device->cause = FP_CAUSE_NONE;
        return;
    }
    fp_queued *slot = &path->queue[(path->first + path->queued++) % FP_QUEUE_DEPTH];
    slot->duration_us = it->duration_us;
    for (size_t j = 0; j < device->config.joints; j++) {
        slot->end[j] = it->end[j];
        path->tail[j] = it->end[j];
    }
    path->tail_us += it->duration_us;
}

static uint8_t cause_of(uint8_t status)
{
    switch (status) {
    case FP_LATE: return FP_CAUSE_LATE;
    case FP_DISCONTINUOUS: return FP_CAUSE_DISCONTINUOUS;
    case FP_POSITION:
    case FP_VELOCITY:
    case FP_ACCELERATION:
    case FP_NO_STOP: return FP_CAUSE_LIMIT;
    default: return FP_CAUSE_NONE;
    }
}

static void take_segment(fp_device *device, const segment *it)
{
    uint8_t payload[12];
    uint8_t joint = FP_NO_JOINT;
    uint8_t status = judge_place(device, it);
    if (status == FP_ACCEPTED) {
        status = it->duration_us == 0 ? judge_anchor(device, it, &joint) : judge_piece(device, it, &joint);
    }
    if (status == FP_ACCEPTED) {
        accept(device, it);
    }
    if (cause_of(status) != FP_CAUSE_NONE) {
        device->cause = cause_of(status);
        new_epoch(device);
        stop(device, 1, cause_of(status));
    }
    put16(payload, device->epoch);
    put16(payload + 2, device->next_index);
    payload[4] = path_free(&device->path);
    payload[5] = status;
    payload[6] = joint;
    payload[7] = (uint8_t)(it->index & 0xFFu);
    put32(payload + 8, device->path.tail_us);
    send(device, FP_SEGMENT_ACK, payload, sizeof payload);
}

static int receive_segment(fp_device *device, const fp_frame *frame)
{
    segment it;
    if (frame->len < 18 || (frame->len - 10) % 8 != 0 || (frame->len - 10) / 8 > FP_MAX_JOINTS) {
        return 0;
    }
    it.epoch = get16(frame->payload);
    it.index = get16(frame->payload + 2);
    it.start_us = get32(frame->payload + 4);
    it.duration_us = get16(frame->payload + 8);
    it.joints = (frame->len - 10) / 8;
    for (size_t j = 0; j < it.joints; j++) {
        it.end[j].position_urad = as_signed(get32(frame->payload + 10 + 8 * j));
        it.end[j].velocity_urad_s = as_signed(get32(frame->payload + 14 + 8 * j));
    }
    take_segment(device, &it);
    return 1;
}

/* ---- the device: receiving ---- */

static int receive_hello(fp_device *device, const fp_frame *frame)
{
    if (frame->len != 4 || frame->payload[2] > FP_LOST_TORQUE_OFF || frame->payload[3] != 0) {
        return 0;
    }
    hello(device, frame->payload[0] == FP_MAJOR ? frame->payload + 2 : NULL, frame->sequence);
    return 1;
}

static int receive_command(fp_device *device, const fp_frame *frame)
{
    size_t want = frame->kind == FP_CLEAR_FAULT ? 4 : frame->kind == FP_TORQUE ? 1 : 0;
    if (frame->len != want || (frame->kind == FP_TORQUE && frame->payload[0] > 1)) {
        return 0;
    }
    command(device, frame);
    return 1;
}

static int receive_time_req(fp_device *device, const fp_frame *frame, uint32_t now_us)
{
    uint8_t payload[12];
    if (frame->len != 4) {
        return 0;
    }
    put32(payload, get32(frame->payload));
    put32(payload + 4, now_us);
    put32(payload + 8, now_us);
    send(device, FP_TIME_RESP, payload, sizeof payload);
    return 1;
}

/* Whether the frame meant anything to a device. */
static int dispatch(fp_device *device, const fp_frame *frame, uint32_t now_us)
{
    if (frame->version != FP_MAJOR) {
        if (frame->kind != FP_HELLO) {
            return 0;
        }
        hello(device, NULL, frame->sequence);
        return 1;
    }
    switch (frame->kind) {
    case FP_HELLO: return receive_hello(device, frame);
    case FP_TIME_REQ: return receive_time_req(device, frame, now_us);
    case FP_SEGMENT: return receive_segment(device, frame);
    case FP_HOLD:
    case FP_RESUME:
    case FP_FLUSH:
    case FP_CLEAR_FAULT:
    case FP_TORQUE:
    case FP_PARK: return receive_command(device, frame);
    case FP_BEAT:
        if (frame->len == 4) {
            hear_host(device);
        }
        return frame->len == 4;
    case FP_ESTOP:
        if (frame->len == 0) {
            fp_device_emergency_stop(device);
        }
        return frame->len == 0;
    default: return 0;
    }
}

void fp_device_receive(fp_device *device, const uint8_t *bytes, size_t len, uint32_t now_us)
{
    fp_frame frame;
    for (size_t i = 0; i < len; i++) {
        switch (fp_decoder_push(&device->decoder, bytes[i], &frame)) {
        case FP_ESTOP_SEEN: fp_device_emergency_stop(device); break;
        case FP_FRAME:
            if (!dispatch(device, &frame, now_us)) {
                device->ignored++;
            }
            break;
        case FP_NOTHING: break;
        }
    }
}

/* ---- the device: ticking ---- */

static void serve_lost_host(fp_device *device)
{
    device->lost_host_served = 1;
    device->cause = FP_CAUSE_DEADMAN;
    if (device->lost_host == FP_LOST_PARK) {
        begin_park(device);
    } else if (device->lost_host == FP_LOST_TORQUE_OFF) {
        torque_off(device);
    }
}

static void watch_host(fp_device *device, uint32_t elapsed_us)
{
    device->silence_us = add_saturating(device->silence_us, elapsed_us);
    if (!device->torque || latched(device) || device->lost_host_served) {
        return;
    }
    if (device->silence_us > FP_DEADMAN_US) {
        stop(device, 0, FP_CAUSE_DEADMAN);
    }
    if (device->silence_us > FP_LOST_HOST_US && (device->mode == FP_HELD || device->mode == FP_STOPPED)) {
        serve_lost_host(device);
    }
}

static uint32_t watch_ticks(fp_device *device, uint32_t elapsed_us)
{
    if (elapsed_us <= FP_STALL_US) {
        return elapsed_us;
    }
    if (moving(device) && !latched(device)) {
        stop(device, 0, FP_CAUSE_STALLED);
    }
    return device->config.tick_us;
}

static void come_to_rest(fp_device *device, int finished)
{
    if (device->mode != FP_STOPPING) {
        path_drop_rest(device);
        device->parking = 0;
        device->mode = device->lost_host_served ? FP_HELD : FP_IDLE;
    } else if (!device->drop) {
        device->mode = FP_HELD;
    } else {
        path_drop_rest(device);
        device->parking = 0;
        device->mode = device->cause == FP_CAUSE_FLUSH ? FP_IDLE : FP_STOPPED;
    }
    if (finished && device->mode == FP_HELD) {
        path_drop_rest(device);
        device->parking = 0;
    }
}

static void run_dry(fp_device *device)
{
    if (device->mode == FP_STOPPING && device->drop) {
        return;
    }
    new_epoch(device);
    device->mode = FP_STOPPING;
    device->drop = 1;
    device->cause = FP_CAUSE_UNDERRUN;
}

static void advance_path(fp_device *device, uint32_t step_us)
{
    switch (path_advance(device, step_us)) {
    case ON_THE_WAY: break;
    case RAN_DRY: run_dry(device); break;
    case FINISHED: come_to_rest(device, 1); return;
    }
    if (device->mode == FP_STOPPING && device->path.rate == 0) {
        come_to_rest(device, 0);
    }
}

static void follow_measured(fp_device *device)
{
    if (device->drives.measured_valid) {
        path_stand(device, device->drives.measured);
        if (latched(device)) {
            brake_begin(device);
        }
    }
    path_rest_at(&device->path, device->clock_us);
}

static void advance_brake(fp_device *device, uint32_t step_us)
{
    fp_knot now[FP_MAX_JOINTS];
    device->brake.elapsed_us = add_saturating(device->brake.elapsed_us, step_us);
    brake_now(device, now);
    path_stand(device, now);
    path_rest_at(&device->path, device->clock_us);
}

static void advance(fp_device *device, uint32_t step_us)
{
    if (!device->torque) {
        follow_measured(device);
        return;
    }
    switch (device->mode) {
    case FP_RUNNING:
    case FP_PARKING:
        path_quicken(device, step_us);
        advance_path(device, step_us);
        break;
    case FP_STOPPING:
        if (device->cause != FP_CAUSE_UNDERRUN || device->path.rate != FULL_RATE) {
            path_slow(device, step_us);
        }
        advance_path(device, step_us);
        break;
    case FP_ESTOPPED:
    case FP_FAULT: advance_brake(device, step_us); break;
    case FP_HELD: break;
    default: path_rest_at(&device->path, device->clock_us); break;
    }
}

static void report(fp_device *device, uint32_t elapsed_us)
{
    uint8_t clock[4];
    device->since_beat_us = add_saturating(device->since_beat_us, elapsed_us);
    device->since_state_us = add_saturating(device->since_state_us, elapsed_us);
    if (device->since_beat_us >= FP_BEAT_US) {
        device->since_beat_us = 0;
        put32(clock, device->clock_us);
        send(device, FP_BEAT, clock, sizeof clock);
    }
    if (device->since_state_us >= device->config.state_period_us) {
        device->since_state_us = 0;
        send_state(device);
    }
}

void fp_device_tick(fp_device *device, uint32_t now_us, const fp_drives *drives, fp_setpoints *out)
{
    uint32_t elapsed_us = now_us - device->clock_us;
    device->clock_us = now_us;
    device->drives = *drives;
    if (drives->faults != 0 && device->torque) {
        latch(device, FP_FAULT, FP_CAUSE_DRIVE);
    }
    watch_host(device, elapsed_us);
    advance(device, watch_ticks(device, elapsed_us));
    report(device, elapsed_us);
    setpoints(device, out);
}

/* ---- the device: beginning ---- */

static int joint_is_fine(const fp_limits *limits, int32_t park_urad)
{
    uint32_t acceleration = limits->acceleration_max_urad_s2;
    return limits->position_min_urad <= limits->position_max_urad &&
           limits->position_min_urad >= -FP_POSITION_MAX_URAD && limits->position_max_urad <= FP_POSITION_MAX_URAD &&
           limits->velocity_max_urad_s >= 1 && limits->velocity_max_urad_s <= FP_VELOCITY_MAX_URAD_S &&
           acceleration >= FP_ACCELERATION_MIN_URAD_S2 && acceleration <= FP_ACCELERATION_MAX_URAD_S2 &&
           limits->velocity_max_urad_s / acceleration < FP_STOP_TIME_MAX_S &&
           limits->stop_urad_s2 >= 2 * acceleration && limits->stop_urad_s2 <= 2 * FP_ACCELERATION_MAX_URAD_S2 &&
           inside(park_urad, limits);
}

static int config_is_fine(const fp_config *config)
{
    if (config->joints == 0 || config->joints > FP_MAX_JOINTS || config->tick_us < FP_TICK_MIN_US || config->tick_us > FP_TICK_MAX_US ||
        config->state_period_us < 5000 || config->reset_cause > 5) {
        return 0;
    }
    for (size_t j = 0; j < config->joints; j++) {
        if (!joint_is_fine(&config->limits[j], config->park_urad[j])) {
            return 0;
        }
    }
    return 1;
}

int fp_device_init(fp_device *device, const fp_config *config, uint32_t boot_id, uint32_t now_us)
{
    static const fp_device zero;
    *device = zero;
    if (!config_is_fine(config)) {
        return -1;
    }
    device->config = *config;
    fp_decoder_init(&device->decoder);
    path_rest_at(&device->path, now_us);
    device->path.rate = FULL_RATE;
    device->boot_id = boot_id;
    device->clock_us = now_us;
    device->epoch = (uint16_t)(boot_id & 0xFFFFu);
    return 0;
}
