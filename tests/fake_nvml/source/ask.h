/* What every function of the library begins with: who is asked, and what the text file says of it. */

#ifndef FAKE_NVML_ASK_H
#define FAKE_NVML_ASK_H

#include "layouts.h"
#include "table.h"

/* nvml.h, nvmlReturn_t: the codes that are returned here without being asked for. */
typedef enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    TIMEOUT = 10,
    FUNCTION_NOT_FOUND = 13,
    VERSION_MISMATCH = 25,
    GPU_NOT_FOUND = 28,
} code_t;

typedef struct handle *device_t;

#define ARGUMENTS(...) arguments((const long long[]){0, ##__VA_ARGS__}, \
                                 sizeof((const long long[]){0, ##__VA_ARGS__}) / sizeof(long long))

/* Makes arguments of an array whose first element does not count. */
struct arguments arguments(const long long *values, size_t count);

/* Counts a start or an end of the library; a start that is too much is an end that is too few. */
void started(void);
code_t stopped(void);
code_t running(void);

/* Whether the library runs, and a caller means the struct that a function takes. */
code_t expected(unsigned int version, unsigned int wanted);

/* nvml.h, NVML_STRUCT_VERSION: how a caller says which struct it means. */
#define VERSION(type, number) ((unsigned int)(sizeof(type) | (number) << 24))

/* Finds what the file says of a call. SUCCESS: `*line` has the values. Waits as long as the file
 * says, for ever if it does. Nothing said is NOT_SUPPORTED. */
code_t ask(struct who who, const char *call, struct arguments arguments, const struct line **line);

/* The same for a part of a call that asks for many: a line without arguments is about the whole. */
code_t ask_part(
    struct who who, const char *call, struct arguments arguments, const struct line **line);

/* The same for a call that needs no words of the file to be a success. */
code_t permitted(struct who who, const char *call, struct arguments arguments);

/* Whether a call that waits is still a success, as far as the file says. */
code_t still_permitted(struct who who, const char *call);

/* The line that answers a call, or NULL, without a call being made. */
const struct line *said(struct who who, const char *call);

/* The first word that answers a call as text, or "". */
const char *text_of(struct who who, const char *call);

/* How many GPUs there are; and whether the file has any line of a GPU or an instance. */
int gpus(void);
bool exists(struct who who);

/* A handle is good until the library is stopped or another UUID is in its place. nvml.h promises no
 * more; a real one is often good for longer. */
code_t open_handle(struct who who, device_t *device);
code_t who_is(device_t device, struct who *who);

/* The two together, which is how nearly every function begins. */
code_t ask_device(
    device_t device, const char *call, struct arguments arguments, const struct line **line);

/* Writes the words of an entry where they belong; what is not named stays as it is. */
void fill(const struct line *line, const struct entry *entry, const struct layout *layout, void *to);

/* Writes one word as a number or a text of a kind, or ends the process if it is none. */
void write_word(
    const struct line *line, const struct word *word, enum kind kind, void *to, size_t room);

/* The one entry of a line that is no list, and its first word; or the process ends. */
const struct entry *values_of(const struct line *line);
const struct word *word_of(const struct line *line);

/* The word of an entry by its name, or NULL. */
const struct word *named(const struct entry *entry, const char *name);

#endif
