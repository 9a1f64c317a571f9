/* Checks frozen bytes: each line of standard input is "kind sequence payload frame", numbers and bytes
 * in hexadecimal, "-" for no payload. Says how many lines were right; fails at the first that is not. */
#include "firmware_protocol.h"
#include <stdio.h>
#include <string.h>

static size_t unhex(const char *text, uint8_t *out, size_t room)
{
    size_t len = 0;
    unsigned byte;
    while (len < room && sscanf(text + 2 * len, "%2x", &byte) == 1) {
        out[len++] = (uint8_t)byte;
    }
    return len;
}

static int encodes(unsigned kind, unsigned sequence, const uint8_t *payload, size_t len, const uint8_t *want, size_t want_len)
{
    uint8_t out[FP_FRAME_MAX];
    size_t got = fp_encode((uint8_t)kind, (uint8_t)sequence, payload, len, out);
    return got == want_len && memcmp(out, want, got) == 0;
}

static int decodes(unsigned kind, unsigned sequence, const uint8_t *payload, size_t len, const uint8_t *bytes, size_t bytes_len)
{
    fp_decoder decoder;
    fp_frame frame;
    enum fp_received got = FP_NOTHING;
    fp_decoder_init(&decoder);
    for (size_t i = 0; i < bytes_len; i++) {
        got = fp_decoder_push(&decoder, bytes[i], &frame);
    }
    if (got == FP_ESTOP_SEEN) {
        return kind == FP_ESTOP && len == 0;
    }
    return got == FP_FRAME && frame.version == FP_MAJOR && frame.kind == kind && frame.sequence == sequence &&
           frame.len == len && memcmp(frame.payload, payload, len) == 0;
}

int main(void)
{
    static char payload_text[512], frame_text[512];
    uint8_t payload[FP_PAYLOAD_MAX], frame[FP_FRAME_MAX];
    unsigned kind, sequence, lines = 0;
    if (fp_crc32c((const uint8_t *)"123456789", 9) != 0xE3069283u) {
        fprintf(stderr, "crc32c is wrong\n");
        return 1;
    }
    while (scanf("%x %x %511s %511s", &kind, &sequence, payload_text, frame_text) == 4) {
        size_t len = payload_text[0] == '-' ? 0 : unhex(payload_text, payload, sizeof payload);
        size_t frame_len = unhex(frame_text, frame, sizeof frame);
        lines++;
        if (!encodes(kind, sequence, payload, len, frame, frame_len) || !decodes(kind, sequence, payload, len, frame, frame_len)) {
            fprintf(stderr, "line %u differs\n", lines);
            return 1;
        }
    }
    printf("%u\n", lines);
    return 0;
}
