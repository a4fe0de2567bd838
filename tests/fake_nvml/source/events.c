/* Event sets, of GPUs and of the system: events are numbered lines of the file.
 *
 * A set delivers, in the order of their numbers, the events that came after it was told to. It
 * looks at the file again and again, because a test adds events while a call waits.
 */

#define _GNU_SOURCE
#include "ask.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK_MS 5
#define EVENT "event"
#define ALL 0xffffffffu /* nvml.h: the event is the whole GPU's */

/* What one GPU, or the system, was registered for, and since which event. */
struct registration {
    unsigned long long types;
    long long since;
};

struct event_set {
    struct registration gpus[MOST_GPUS], system;
    long long seen; /* the number of the last event that was delivered */
};

struct event_data {
    device_t device;
    unsigned long long type, data;
    unsigned int gpu_instance, compute_instance;
};

struct system_event {
    unsigned long long type;
    unsigned int gpu;
};

static long long number_of(const struct line *line) {
    if (strcmp(line->call, EVENT)) return 0;
    if (line->arguments.count != 1) refuse(line, "an event has one number: event(1)");
    return line->arguments.values[0];
}

static long long newest(void) {
    long long newest = 0;
    struct table *table = current_table();
    for (struct line *line = table ? table->last : NULL; line; line = line->next) {
        if (number_of(line) > newest) newest = number_of(line);
    }
    return newest;
}

/* What was registered before stays so. */
static void add(struct registration *registration, unsigned long long types) {
    if (!registration->types) registration->since = newest();
    registration->types |= types;
}

static unsigned long long member(
    const struct line *line, const char *name, unsigned long long otherwise) {
    const struct word *word = named(values_of(line), name);
    unsigned long long value = otherwise;
    if (word) write_word(line, word, U64, &value, 0);
    return value;
}

static bool wanted(const struct event_set *set, const struct line *line) {
    const struct registration *registration =
        line->who.gpu == SYSTEM ? &set->system : &set->gpus[line->who.gpu];
    long long number = number_of(line);
    return number > set->seen && number > registration->since &&
           (member(line, "eventType", 0) & registration->types);
}

/* The next event that the set was told to deliver, or NULL. */
static const struct line *next(const struct event_set *set) {
    const struct line *found = NULL;
    struct table *table = current_table();
    for (struct line *line = table ? table->last : NULL; line; line = line->next) {
        bool sooner = !found || number_of(line) < number_of(found);
        if (number_of(line) && sooner && wanted(set, line)) found = line;
    }
    return found;
}

/* Waits for the next event, for so long; ends when the call is refused meanwhile. */
static code_t wait_for(
    const char *call, struct event_set *set, unsigned int timeout_ms, const struct line **line) {
    code_t code = permitted(LIBRARY, call, ARGUMENTS());
    for (unsigned int waited_ms = 0;; waited_ms += LOOK_MS) {
        if (!code) code = running();
        if (code) return code;
        if ((*line = next(set))) break;
        if (waited_ms >= timeout_ms) return TIMEOUT;
        nanosleep(&(struct timespec){0, LOOK_MS * 1000000L}, NULL);
        code = still_permitted(LIBRARY, call);
    }
    set->seen = number_of(*line);
    return SUCCESS;
}

static code_t make(const char *call, struct event_set **set) {
    code_t code = running();
    if (!code) code = permitted(LIBRARY, call, ARGUMENTS());
    if (!code) *set = calloc(1, sizeof **set);
    return code;
}

code_t nvmlEventSetCreate(struct event_set **set) { return make(__func__, set); }

code_t nvmlEventSetFree(struct event_set *set) {
    free(set);
    return running();
}

code_t nvmlDeviceRegisterEvents(
    device_t device, unsigned long long types, struct event_set *set) {
    struct who who;
    code_t code = who_is(device, &who);
    if (!code) code = permitted(who, __func__, ARGUMENTS());
    if (code) return code;
    const struct line *line = said(who, "nvmlDeviceGetSupportedEventTypes");
    unsigned long long supported = 0;
    if (line) write_word(line, word_of(line), U64, &supported, 0);
    /* Types that are not supported are left out, as an H200 does; an instance has no events. */
    if (!(types & supported) || who.slot != WHOLE) return NOT_SUPPORTED;
    add(&set->gpus[who.gpu], types & supported);
    return SUCCESS;
}

static code_t wait_for_gpu(
    const char *call, struct event_set *set, struct event_data *data, unsigned int timeout_ms) {
    const struct line *line;
    code_t code = running();
    if (!code) code = wait_for(call, set, timeout_ms, &line);
    if (code) return code;
    data->type = member(line, "eventType", 0);
    data->data = member(line, "eventData", 0);
    data->gpu_instance = (unsigned int)member(line, "gpuInstanceId", ALL);
    data->compute_instance = (unsigned int)member(line, "computeInstanceId", ALL);
    return open_handle((struct who){line->who.gpu, WHOLE}, &data->device);
}

code_t nvmlEventSetWait_v2(
    struct event_set *set, struct event_data *data, unsigned int timeout_ms) {
    return wait_for_gpu(__func__, set, data, timeout_ms);
}

code_t nvmlEventSetWait(
    struct event_set *set, struct event_data *data, unsigned int timeout_ms) {
    return wait_for_gpu(__func__, set, data, timeout_ms);
}

struct system_set_request {
    unsigned int version;
    struct event_set *set;
};

struct system_register_request {
    unsigned int version;
    unsigned long long types;
    struct event_set *set;
};

struct system_wait_request {
    unsigned int version, timeout_ms;
    struct event_set *set;
    struct system_event *events;
    unsigned int room, count;
};

/* A library that does not run does not look at a request, which then may be none. */
#define CHECKED(request) \
    (running() ? UNINITIALIZED : expected((request)->version, VERSION(*(request), 1)))

code_t nvmlSystemEventSetCreate(struct system_set_request *request) {
    code_t code = CHECKED(request);
    return code ? code : make(__func__, &request->set);
}

code_t nvmlSystemEventSetFree(struct system_set_request *request) {
    code_t code = CHECKED(request);
    if (!code) free(request->set);
    return code;
}

code_t nvmlSystemRegisterEvents(struct system_register_request *request) {
    code_t code = CHECKED(request);
    if (!code) code = permitted(LIBRARY, __func__, ARGUMENTS());
    if (!code) add(&request->set->system, request->types);
    return code;
}

code_t nvmlSystemEventSetWait(struct system_wait_request *request) {
    const struct line *line;
    code_t code = CHECKED(request);
    if (code) return code;
    if (!request->events || !request->room) return INVALID_ARGUMENT;
    request->count = 0;
    code = wait_for(__func__, request->set, request->timeout_ms, &line);
    if (code) return code;
    request->events->type = member(line, "eventType", 0);
    request->events->gpu = (unsigned int)member(line, "gpuId", 0);
    request->count = 1;
    return SUCCESS;
}
