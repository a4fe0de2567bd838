/* The text file that says what the machine is and how it answers, as a table in memory.
 *
 *     system  nvmlSystemGetDriverVersion      "580.159.04"
 *     gpu 0   nvmlDeviceGetUUID               "GPU-1"
 *     gpu 0   nvmlDeviceGetPowerUsage         123457
 *     gpu 0   nvmlDeviceGetClockInfo(1)       1515
 *     gpu 0   nvmlDeviceGetEccMode            1 0
 *     gpu 0   nvmlDeviceGetMemoryInfo_v2      total=9 reserved=1 free=3 used=5
 *     gpu 0   nvmlDeviceGetFieldValues(186,0) uint=683069
 *     gpu 0   nvmlDeviceGetFieldValues(230)   error 3
 *     gpu 0   nvmlGpmMetricsGet(2)            93.75
 *     gpu 0   nvmlDeviceGetComputeRunningProcesses_v3  pid=7 usedGpuMemory=5 ; pid=8
 *     gpu 0   nvmlDeviceGetEncoderSessions    none
 *     gpu 0   event(1)                        eventType=8 eventData=31
 *     gpu 0.3 nvmlDeviceGetUUID               "MIG-1"
 *     gpu 1   *                               after 10 error 15
 *     gpu 1   nvmlDeviceGetTemperatureV       hang
 *     gpu 1   nvmlDeviceGetFieldValues        slow 50
 *
 * A line is: who is asked (the library, a GPU, the MIG instance in a slot of a GPU), which function
 * with which arguments, and what it says: values, `none` for an empty list, `error CODE`, `hang`
 * for ever, or `slow MILLISECONDS` before the answer of another line. `after N` lets the line begin
 * with the call that follows N others, counted from the moment when the file was read. `*` is every
 * function. Arguments may be left out from the end. Of several lines that hold, the last one wins.
 *
 * The file is read again when it is another file than before. A line that makes no sense ends the
 * process with a message: a test must not go on with a machine that it did not mean.
 */

#ifndef FAKE_NVML_TABLE_H
#define FAKE_NVML_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#define MOST_GPUS 64
#define WHOLE (-1)   /* the slot of a GPU that is no instance */
#define MOST_SLOTS 8 /* of one GPU: seven instances, counted from 0 */
#define SYSTEM (-1)
#define MOST_ARGUMENTS 4

struct who {
    int gpu, slot;
};

static const struct who LIBRARY = {SYSTEM, WHOLE};

struct arguments {
    unsigned int count;
    long long values[MOST_ARGUMENTS];
};

struct word {
    const char *name; /* "" where the value stands alone */
    const char *text; /* zero-terminated, without quotes; `length` counts zeros inside */
    size_t length;
};

struct entry {
    const struct word *words;
    size_t count;
};

enum manner { ANSWER, ERROR, HANG, SLOW };

struct line {
    struct line *next; /* the one above it in the file */
    int number;
    struct who who;
    const char *call;
    struct arguments arguments;
    unsigned int after, asked;
    enum manner manner;
    unsigned int amount; /* the code of an ERROR, the milliseconds of SLOW */
    struct entry *entries;
    size_t count;
};

struct table {
    struct line *last; /* of the file */
    int gpus;          /* one more than the highest that is named */
};

/* The table of the file as it is now, or NULL while FAKE_NVML names none that can be read. What it
 * once gave stays in memory, because an answer may still be read from it. */
struct table *current_table(void);

/* Ends the process, naming the line. */
_Noreturn void refuse(const struct line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
