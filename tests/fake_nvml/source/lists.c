/* Functions that fill an array, whose length the caller first asks for. */

#include "ask.h"

#include <stdlib.h>

#define BUFFER 72 /* entries that an H200 says it has room for */

/* Tells the length, and fills as much as there is room for: at most `*count`, when there is an
 * array. What a size that is too small means is different from list to list. */
static code_t give(
    const struct line *line, const struct layout *layout, void *array, unsigned int *count,
    code_t too_small) {
    bool fits = array && *count >= line->count;
    *count = (unsigned int)line->count;
    if (!line->count) return SUCCESS;
    if (!fits) return too_small;
    for (size_t i = 0; i < line->count; i++) {
        fill(line, &line->entries[i], layout, (char *)array + i * layout->size);
    }
    return SUCCESS;
}

#define LIST(name, type, too_small) \
    code_t name(device_t device, unsigned int *count, type *array) { \
        const struct line *line; \
        code_t code = ask_device(device, __func__, ARGUMENTS(), &line); \
        return code ? code : give(line, &type##_layout, array, count, too_small); \
    }

LIST(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t, INSUFFICIENT_SIZE)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t, INSUFFICIENT_SIZE)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_v2_t, INSUFFICIENT_SIZE)
LIST(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t, INSUFFICIENT_SIZE)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t, INSUFFICIENT_SIZE)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_v2_t, INSUFFICIENT_SIZE)
LIST(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t, INSUFFICIENT_SIZE)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t, INSUFFICIENT_SIZE)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_v2_t, INSUFFICIENT_SIZE)
LIST(nvmlDeviceGetEncoderSessions, nvmlEncoderSession_t, SUCCESS)

/* Gives the entries of a buffer that the caller has not seen yet; one of time 0 is always new. The
 * length of the buffer is what a caller without an array gets, whatever is in it; nothing new is an
 * error. */
static code_t newer(
    const struct line *line, const struct layout *layout, void *array, unsigned int *count,
    unsigned long long seen_us) {
    struct line found = *line;
    found.entries = calloc(line->count + 1, sizeof *found.entries);
    found.count = 0;
    for (size_t i = 0; i < line->count; i++) {
        const struct word *time = named(&line->entries[i], "timeStamp");
        C_U64 time_us;
        if (!time) refuse(line, "an entry has no timeStamp");
        write_word(line, time, U64, &time_us, 0);
        if (!time_us || time_us > seen_us) found.entries[found.count++] = line->entries[i];
    }
    code_t code = found.count ? SUCCESS : NOT_FOUND;
    if (!array || *count < found.count) {
        *count = BUFFER + (unsigned int)line->count;
        code = INSUFFICIENT_SIZE;
    } else if (!code) {
        code = give(&found, layout, array, count, INSUFFICIENT_SIZE);
    }
    free(found.entries);
    return code;
}

code_t nvmlDeviceGetProcessUtilization(
    device_t device, nvmlProcessUtilizationSample_t *array, unsigned int *count,
    unsigned long long seen_us) {
    const struct line *line;
    code_t code = ask_device(device, __func__, ARGUMENTS(), &line);
    if (code) return code;
    return newer(line, &nvmlProcessUtilizationSample_t_layout, array, count, seen_us);
}

struct processes {
    unsigned int version, count;
    unsigned long long seen_us;
    nvmlProcessUtilizationInfo_v1_t *array;
};

code_t nvmlDeviceGetProcessesUtilizationInfo(device_t device, struct processes *list) {
    const struct line *line;
    const struct layout *layout = &nvmlProcessUtilizationInfo_v1_t_layout;
    code_t code = expected(list->version, VERSION(*list, 1));
    if (!code) code = ask_device(device, __func__, ARGUMENTS(), &line);
    return code ? code : newer(line, layout, list->array, &list->count, list->seen_us);
}

static void addresses(
    const struct line *line, const char *name, unsigned long long *array) {
    for (size_t i = 0; i < line->count; i++) {
        const struct word *word = named(&line->entries[i], name);
        if (!word) refuse(line, "an entry has no %s", name);
        write_word(line, word, U64, &array[i], 0);
    }
}

static code_t retired(
    device_t device, const char *call, unsigned int cause, unsigned int *count,
    unsigned long long *pages, unsigned long long *times) {
    const struct line *line;
    code_t code = ask_device(device, call, ARGUMENTS(cause), &line);
    if (code) return code;
    /* pynvml passes no array of times when it asks for the length: only the count is looked at. */
    bool fits = *count >= line->count;
    *count = (unsigned int)line->count;
    if (!fits) return INSUFFICIENT_SIZE;
    addresses(line, "address", pages);
    if (times) addresses(line, "timestamp", times);
    return SUCCESS;
}

code_t nvmlDeviceGetRetiredPages(
    device_t device, unsigned int cause, unsigned int *count, unsigned long long *pages) {
    return retired(device, __func__, cause, count, pages, NULL);
}

code_t nvmlDeviceGetRetiredPages_v2(
    device_t device, unsigned int cause, unsigned int *count, unsigned long long *pages,
    unsigned long long *times) {
    return retired(device, __func__, cause, count, pages, times);
}

#define MOST_FEATURES 3

struct features {
    int supported;
    unsigned int count;
    nvmlGridLicensableFeature_v4_t features[MOST_FEATURES];
};

code_t nvmlDeviceGetGridLicensableFeatures_v4(device_t device, struct features *features) {
    const struct line *line;
    code_t code = ask_device(device, __func__, ARGUMENTS(), &line);
    if (code) return code;
    if (line->count > MOST_FEATURES) refuse(line, "%zu features are too many", line->count);
    features->supported = line->count > 0;
    features->count = (unsigned int)line->count;
    for (size_t i = 0; i < line->count; i++) {
        const struct layout *layout = &nvmlGridLicensableFeature_v4_t_layout;
        fill(line, &line->entries[i], layout, &features->features[i]);
    }
    return SUCCESS;
}
