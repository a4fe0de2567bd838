/* Reads the text file: lines, their words, and when the file is another one than before. */

#define _GNU_SOURCE
#include "table.h"

#include <ctype.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A line while it is read, and the place in it. */
struct cursor {
    struct line *line;
    char *at;
};

_Noreturn void refuse(const struct line *line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "fake NVML: %s, line %d: ", getenv("FAKE_NVML"), line->number);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    _Exit(70);
}

static void skip_blanks(struct cursor *cursor) {
    while (isblank((unsigned char)*cursor->at)) cursor->at++;
}

static bool ended(struct cursor *cursor) {
    skip_blanks(cursor);
    return !*cursor->at;
}

/* Takes characters up to a blank, or to one of `ends`, and terminates them in place. */
static char *token(struct cursor *cursor, const char *ends, char *end) {
    skip_blanks(cursor);
    char *start = cursor->at;
    size_t length = strcspn(start, ends);
    *end = start[length];
    start[length] = '\0';
    cursor->at = start + length + (*end != '\0');
    return start;
}

static char *plain(struct cursor *cursor) {
    char end;
    return token(cursor, " \t", &end);
}

static long long number(struct cursor *cursor, const char *text) {
    char *end;
    long long value = strtoll(text, &end, 0);
    if (!*text || *end) refuse(cursor->line, "'%s' is no whole number", text);
    return value;
}

static int place(struct cursor *cursor, const char *text, int most) {
    long long value = number(cursor, text);
    if (value < 0 || value >= most) refuse(cursor->line, "%lld is not under %d", value, most);
    return (int)value;
}

static bool took(struct cursor *cursor, const char *keyword) {
    skip_blanks(cursor);
    size_t length = strlen(keyword);
    char after = strncmp(cursor->at, keyword, length) ? 'x' : cursor->at[length];
    if (after && !isblank((unsigned char)after)) return false;
    cursor->at += length;
    return true;
}

static int hex(struct cursor *cursor, const char *digits) {
    char two[3] = {digits[0], digits[0] ? digits[1] : '\0', '\0'};
    char *end;
    long value = strtol(two, &end, 16);
    if (end != two + 2) refuse(cursor->line, "\\x is not followed by two hexadecimal digits");
    return (int)value;
}

/* Takes text in quotes and decodes it where it stands: \" \\ and \xNN. */
static struct word quoted(struct cursor *cursor, const char *name) {
    char *from = cursor->at + 1, *to = from;
    struct word word = {name, from, 0};
    for (; *from != '"'; from++) {
        if (!*from) refuse(cursor->line, "a quote is not closed");
        bool escaped = *from == '\\';
        if (escaped) from++;
        if (escaped && *from == 'x') {
            *to++ = (char)hex(cursor, from + 1);
            from += 2;
        } else {
            *to++ = *from;
        }
    }
    cursor->at = from + 1;
    *to = '\0';
    word.length = (size_t)(to - word.text);
    return word;
}

static struct word word(struct cursor *cursor) {
    skip_blanks(cursor);
    if (*cursor->at == '"') return quoted(cursor, "");
    char end, *text = token(cursor, " \t=", &end), *name = "";
    if (end == '=') {
        name = text;
        if (*cursor->at == '"') return quoted(cursor, name);
        text = plain(cursor);
    }
    return (struct word){name, text, strlen(text)};
}

static struct entry entry(struct cursor *cursor) {
    struct word *words = NULL;
    size_t count = 0;
    while (!ended(cursor) && !took(cursor, ";")) {
        words = realloc(words, (count + 1) * sizeof *words);
        words[count++] = word(cursor);
    }
    return (struct entry){words, count};
}

static void read_entries(struct cursor *cursor) {
    struct line *line = cursor->line;
    while (!ended(cursor)) {
        line->entries = realloc(line->entries, (line->count + 1) * sizeof *line->entries);
        line->entries[line->count++] = entry(cursor);
    }
}

static void read_manner(struct cursor *cursor) {
    struct line *line = cursor->line;
    if (took(cursor, "after")) line->after = (unsigned int)number(cursor, plain(cursor));
    if (took(cursor, "hang")) {
        line->manner = HANG;
    } else if (took(cursor, "error")) {
        line->manner = ERROR;
        line->amount = (unsigned int)number(cursor, plain(cursor));
    } else if (took(cursor, "slow")) {
        line->manner = SLOW;
        line->amount = (unsigned int)number(cursor, plain(cursor));
    } else if (!took(cursor, "none")) {
        if (!strcmp(line->call, "*") || ended(cursor)) refuse(line, "it does not say what happens");
        read_entries(cursor);
    }
    if (!ended(cursor)) refuse(line, "'%s' is too much", cursor->at);
}

/* Splits NAME(1,2) into the name and its arguments. */
static void read_call(struct cursor *cursor) {
    struct line *line = cursor->line;
    line->call = plain(cursor);
    char *open = strchr(line->call, '(');
    if (!open) return;
    *open = '\0';
    struct cursor inside = {line, open + 1};
    for (char end = ','; end == ',';) {
        char *text = token(&inside, ",)", &end);
        if (!end) refuse(line, "a parenthesis is not closed");
        if (line->arguments.count == MOST_ARGUMENTS) refuse(line, "there are too many arguments");
        line->arguments.values[line->arguments.count++] = number(cursor, text);
    }
}

static void read_who(struct cursor *cursor) {
    struct who *who = &cursor->line->who;
    *who = LIBRARY;
    if (took(cursor, "system")) return;
    if (!took(cursor, "gpu")) refuse(cursor->line, "it begins with neither 'gpu' nor 'system'");
    char *text = plain(cursor), *dot = strchr(text, '.');
    if (dot) {
        *dot = '\0';
        who->slot = place(cursor, dot + 1, MOST_SLOTS);
    }
    who->gpu = place(cursor, text, MOST_GPUS);
}

static void read_line(struct table *table, char *text, int number) {
    struct line *line = calloc(1, sizeof *line);
    struct cursor cursor = {line, text};
    line->number = number;
    if (ended(&cursor) || *cursor.at == '#') return;
    read_who(&cursor);
    read_call(&cursor);
    read_manner(&cursor);
    if (line->who.gpu >= table->gpus) table->gpus = line->who.gpu + 1;
    line->next = table->last;
    table->last = line;
}

static struct table *read_table(FILE *file) {
    struct table *table = calloc(1, sizeof *table);
    int number = 0;
    for (;;) {
        char *text = NULL;
        size_t room = 0;
        ssize_t length = getline(&text, &room, file);
        if (length < 0) return table;
        text[strcspn(text, "\n")] = '\0';
        read_line(table, text, ++number);
    }
}

static bool same(const struct stat *one, const struct stat *other) {
    return one->st_ino == other->st_ino && one->st_size == other->st_size &&
           one->st_mtim.tv_sec == other->st_mtim.tv_sec &&
           one->st_mtim.tv_nsec == other->st_mtim.tv_nsec;
}

static struct table *newest(const char *path) {
    static struct table *table;
    static struct stat read;
    struct stat now;
    if (stat(path, &now)) return NULL;
    if (table && same(&now, &read)) return table;
    FILE *file = fopen(path, "r");
    if (!file) return NULL;
    fstat(fileno(file), &read);
    table = read_table(file);
    fclose(file);
    return table;
}

struct table *current_table(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const char *path = getenv("FAKE_NVML");
    if (!path) return NULL;
    pthread_mutex_lock(&lock);
    struct table *table = newest(path);
    pthread_mutex_unlock(&lock);
    return table;
}
