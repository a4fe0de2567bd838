/* GPM: metrics between two samples of one GPU or instance. */

#define _GNU_SOURCE
#include "ask.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#define LEAST_S 0.1 /* nvml.h: so far must two samples be apart */
#define METRICS "nvmlGpmMetricsGet"
#define DRAM 10 /* nvml.h, NVML_GPM_METRIC_DRAM_BW_UTIL */

struct gpm_sample {
    struct who who;
    double at_s; /* 0 before anything was sampled */
};

struct gpm_metric {
    unsigned int id;
    code_t code;
    double value;
    const char *short_name, *long_name, *unit;
};

struct gpm_metrics {
    unsigned int version, count;
    struct gpm_sample *first, *second;
    struct gpm_metric metrics[];
};

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool supported(struct who who) {
    const struct line *line = said(who, "nvmlGpmQueryDeviceSupport");
    nvmlGpmSupport_t support = {0, 0};
    if (line) fill(line, values_of(line), &nvmlGpmSupport_t_layout, &support);
    return support.isSupportedDevice;
}

code_t nvmlGpmQueryDeviceSupport(device_t device, nvmlGpmSupport_t *support) {
    struct who who;
    code_t code = expected(support->version, 1);
    if (!code) code = who_is(device, &who);
    if (!code) code = permitted(who, __func__, ARGUMENTS());
    if (!code) support->isSupportedDevice = supported(who);
    return code;
}

code_t nvmlGpmSampleAlloc(struct gpm_sample **sample) {
    code_t code = running();
    if (!code) *sample = calloc(1, sizeof **sample);
    return code;
}

code_t nvmlGpmSampleFree(struct gpm_sample *sample) {
    free(sample);
    return SUCCESS;
}

static code_t take(struct who who, const char *call, struct gpm_sample *sample) {
    if (!sample) return INVALID_ARGUMENT;
    code_t code = permitted(who, call, ARGUMENTS());
    if (code) return code;
    if (!supported(who)) return NOT_SUPPORTED;
    *sample = (struct gpm_sample){who, now_s()};
    return SUCCESS;
}

code_t nvmlGpmSampleGet(device_t device, struct gpm_sample *sample) {
    struct who who;
    code_t code = who_is(device, &who);
    return code ? code : take(who, __func__, sample);
}

/* The instance of a GPU is known by its number, which is not its slot. */
code_t nvmlGpmMigSampleGet(
    device_t device, unsigned int instance, struct gpm_sample *sample) {
    struct who who;
    code_t code = who_is(device, &who);
    if (code) return code;
    for (int slot = 0; slot < MOST_SLOTS; slot++) {
        struct who part = {who.gpu, slot};
        const struct line *line = said(part, "nvmlDeviceGetGpuInstanceId");
        unsigned int number;
        if (!line) continue;
        write_word(line, word_of(line), U32, &number, sizeof number);
        if (number == instance) return take(part, __func__, sample);
    }
    return INVALID_ARGUMENT;
}

static void read_metric(struct who who, double apart_s, struct gpm_metric *metric) {
    const struct line *line;
    metric->short_name = metric->long_name = "a metric of the fake NVML";
    metric->unit = "";
    metric->value = 0.0;
    metric->code = ask_part(who, METRICS, ARGUMENTS(metric->id), &line);
    if (metric->code == NOT_SUPPORTED && !line) metric->code = INVALID_ARGUMENT;
    if (metric->code) return;
    write_word(line, word_of(line), F64, &metric->value, 0);
    /* As an H200 does: no number for the memory's bandwidth, and 0 for all others. */
    if (apart_s < LEAST_S) metric->value = metric->id == DRAM ? NAN : 0.0;
}

code_t nvmlGpmMetricsGet(struct gpm_metrics *asked) {
    if (running()) return UNINITIALIZED;
    if (asked->version != 1) return VERSION_MISMATCH;
    struct gpm_sample *first = asked->first, *second = asked->second;
    if (!first || !second || first == second) return INVALID_ARGUMENT;
    if (first->at_s == 0 || second->at_s == 0) return INVALID_ARGUMENT;
    struct who who = second->who;
    if (first->who.gpu != who.gpu || first->who.slot != who.slot) return INVALID_ARGUMENT;
    code_t code = permitted(who, METRICS, ARGUMENTS());
    if (code) return code;
    for (unsigned int i = 0; i < asked->count; i++) {
        read_metric(who, second->at_s - first->at_s, &asked->metrics[i]);
    }
    return SUCCESS;
}
