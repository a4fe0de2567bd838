/* Values with a type of their own: the fields that travel many in one call, and ring buffers. */

#include "ask.h"

#include <string.h>
#include <time.h>

union value {
    C_F64 real;
    C_U32 word;
    C_U64 natural;
    C_I64 integer;
    C_I32 small;
    C_U16 half;
};

struct field {
    unsigned int id, scope;
    long long time_us, latency_us;
    unsigned int type;
    code_t code;
    union value value;
};

/* nvml.h, nvmlValueType_t: its numbers are the places here. */
static const struct {
    const char *name;
    enum kind kind;
} types[] = {
    {"double", F64}, {"uint", U32}, {"ulong", U64}, {"ull", U64},
    {"sll", I64},    {"int", I32},  {"ushort", U16},
};

static unsigned int write_value(
    const struct line *line, const struct entry *entry, union value *value) {
    for (unsigned int type = 0; type < sizeof types / sizeof *types; type++) {
        const struct word *word = named(entry, types[type].name);
        if (!word) continue;
        write_word(line, word, types[type].kind, value, 0);
        return type;
    }
    refuse(line, "it names no type: double, uint, ulong, ull, sll, int or ushort");
}

static long long now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static void optional(
    const struct line *line, const struct entry *entry, const char *name, long long *to) {
    const struct word *word = named(entry, name);
    if (word) write_word(line, word, I64, to, 0);
}

/* A field that is refused gets its code and nothing else, a value no more bytes than its type has. */
static void read_field(struct who who, struct field *field) {
    const struct line *line;
    struct arguments which = ARGUMENTS(field->id, field->scope);
    field->code = ask_part(who, "nvmlDeviceGetFieldValues", which, &line);
    if (field->code) return;
    const struct entry *entry = values_of(line);
    field->time_us = now_us();
    field->latency_us = 1;
    field->type = write_value(line, entry, &field->value);
    optional(line, entry, "timestamp", &field->time_us);
    optional(line, entry, "latencyUsec", &field->latency_us);
}

code_t nvmlDeviceGetFieldValues(device_t device, int count, struct field *fields) {
    struct who who;
    code_t code = who_is(device, &who);
    if (!code) code = permitted(who, __func__, ARGUMENTS());
    if (code) return code;
    if (count < 1) return INVALID_ARGUMENT;
    for (int i = 0; i < count; i++) read_field(who, &fields[i]);
    return SUCCESS;
}

struct sample {
    unsigned long long time_us;
    union value value;
};

/* Reads an entry of a ring buffer if the caller has not seen it; gives whether it is new. */
static bool read_sample(
    const struct line *line, const struct entry *entry, unsigned long long seen_us,
    unsigned int *type, struct sample *sample) {
    const struct word *time = named(entry, "timeStamp");
    if (!time) refuse(line, "a sample has no timeStamp");
    memset(sample, 0, sizeof *sample);
    write_word(line, time, U64, &sample->time_us, 0);
    *type = write_value(line, entry, &sample->value);
    return sample->time_us > seen_us;
}

/* The length of the ring is what a caller without an array gets, whatever is in it; who has too
 * little room gets the oldest. */
code_t nvmlDeviceGetSamples(
    device_t device, unsigned int kind, unsigned long long seen_us, unsigned int *type,
    unsigned int *count, struct sample *samples) {
    const struct line *line;
    code_t code = ask_device(device, __func__, ARGUMENTS(kind), &line);
    if (code) return code;
    unsigned int found = 0, room = samples ? *count : 0;
    struct sample sample;
    for (size_t i = 0; i < line->count; i++) {
        bool new = read_sample(line, &line->entries[i], seen_us, type, &sample);
        if (new && found < room) samples[found++] = sample;
    }
    if (samples && !found) return NOT_FOUND;
    *count = samples ? found : (unsigned int)line->count + 1;
    return SUCCESS;
}
