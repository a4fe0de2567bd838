/* The library's state and its handles, and the search for the line that answers a call. */

#define _GNU_SOURCE
#include "ask.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct handle {
    struct handle *next;
    struct who who;
    const char *uuid; /* of who was there when it was opened */
    int generation;   /* the start of the library that it belongs to */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct handle *handles;
static int starts, generation;

struct arguments arguments(const long long *values, size_t count) {
    struct arguments made = {(unsigned int)count - 1, {0}};
    memcpy(made.values, values + 1, made.count * sizeof *values);
    return made;
}

void started(void) {
    pthread_mutex_lock(&lock);
    generation += starts++ == 0;
    pthread_mutex_unlock(&lock);
}

code_t stopped(void) {
    pthread_mutex_lock(&lock);
    code_t code = starts ? SUCCESS : UNINITIALIZED;
    starts -= starts > 0;
    pthread_mutex_unlock(&lock);
    return code;
}

code_t running(void) { return starts ? SUCCESS : UNINITIALIZED; }

code_t expected(unsigned int version, unsigned int wanted) {
    if (running()) return UNINITIALIZED;
    return version == wanted ? SUCCESS : VERSION_MISMATCH;
}

static bool same(struct who one, struct who other) {
    return one.gpu == other.gpu && one.slot == other.slot;
}

static bool covers(const struct line *line, const struct arguments *arguments) {
    if (line->arguments.count > arguments->count) return false;
    size_t size = line->arguments.count * sizeof *line->arguments.values;
    return !memcmp(line->arguments.values, arguments->values, size);
}

enum look { WHOLE_CALL, PART_OF_CALL, NO_CALL };

/* Finds the last line that holds, and how many milliseconds the slow ones ask for. */
static struct line *search(
    struct who who, const char *call, struct arguments arguments, enum look look,
    unsigned int *slow) {
    struct table *table = current_table();
    struct line *found = NULL;
    for (struct line *line = table ? table->last : NULL; line; line = line->next) {
        bool every = !strcmp(line->call, "*");
        if (!same(line->who, who) || (!every && strcmp(line->call, call))) continue;
        if (!covers(line, &arguments)) continue;
        if (look == PART_OF_CALL && !line->arguments.count) continue;
        unsigned int before = line->asked;
        line->asked += look != NO_CALL;
        if (before < line->after) continue;
        if (line->manner == SLOW) {
            *slow += line->amount;
        } else if (!found) {
            found = line;
        }
    }
    return found;
}

static code_t find(
    struct who who, const char *call, struct arguments arguments, enum look look, code_t otherwise,
    const struct line **line) {
    unsigned int slow = 0;
    pthread_mutex_lock(&lock);
    *line = search(who, call, arguments, look, &slow);
    pthread_mutex_unlock(&lock);
    struct timespec delay = {slow / 1000, slow % 1000 * 1000000L};
    while (slow && nanosleep(&delay, &delay)) continue;
    if (!*line) return otherwise;
    while ((*line)->manner == HANG) pause();
    return (*line)->manner == ERROR ? (code_t)(*line)->amount : SUCCESS;
}

code_t ask(struct who who, const char *call, struct arguments arguments, const struct line **line) {
    return find(who, call, arguments, WHOLE_CALL, NOT_SUPPORTED, line);
}

code_t ask_part(
    struct who who, const char *call, struct arguments arguments, const struct line **line) {
    return find(who, call, arguments, PART_OF_CALL, NOT_SUPPORTED, line);
}

code_t permitted(struct who who, const char *call, struct arguments arguments) {
    const struct line *line;
    return find(who, call, arguments, WHOLE_CALL, SUCCESS, &line);
}

code_t still_permitted(struct who who, const char *call) {
    unsigned int slow;
    pthread_mutex_lock(&lock);
    const struct line *line = search(who, call, ARGUMENTS(), NO_CALL, &slow);
    pthread_mutex_unlock(&lock);
    return line && line->manner == ERROR ? (code_t)line->amount : SUCCESS;
}

const struct line *said(struct who who, const char *call) {
    struct table *table = current_table();
    for (struct line *line = table ? table->last : NULL; line; line = line->next) {
        if (same(line->who, who) && !strcmp(line->call, call) && line->manner == ANSWER) {
            return line;
        }
    }
    return NULL;
}

const char *text_of(struct who who, const char *call) {
    const struct line *line = said(who, call);
    return line ? word_of(line)->text : "";
}

int gpus(void) {
    struct table *table = current_table();
    return table ? table->gpus : 0;
}

bool exists(struct who who) {
    struct table *table = current_table();
    struct line *line = table ? table->last : NULL;
    while (line && !same(line->who, who)) line = line->next;
    return line != NULL;
}

static bool good(const struct handle *handle) {
    return handle->generation == generation &&
           !strcmp(handle->uuid, text_of(handle->who, "nvmlDeviceGetUUID"));
}

code_t open_handle(struct who who, device_t *device) {
    pthread_mutex_lock(&lock);
    struct handle *handle = handles;
    while (handle && !(same(handle->who, who) && good(handle))) handle = handle->next;
    if (!handle) {
        handle = malloc(sizeof *handle);
        *handle = (struct handle){handles, who, text_of(who, "nvmlDeviceGetUUID"), generation};
        handles = handle;
    }
    pthread_mutex_unlock(&lock);
    *device = handle;
    return SUCCESS;
}

code_t who_is(device_t device, struct who *who) {
    if (running()) return UNINITIALIZED;
    pthread_mutex_lock(&lock);
    /* A pointer that was never given out is looked for, not followed. */
    struct handle *handle = handles;
    while (handle && handle != device) handle = handle->next;
    bool known = handle && good(handle);
    if (known) *who = handle->who;
    pthread_mutex_unlock(&lock);
    return known ? SUCCESS : INVALID_ARGUMENT;
}

code_t ask_device(
    device_t device, const char *call, struct arguments arguments, const struct line **line) {
    struct who who;
    code_t code = who_is(device, &who);
    return code ? code : ask(who, call, arguments, line);
}
