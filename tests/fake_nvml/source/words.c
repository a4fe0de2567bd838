/* The words of a line as the numbers, texts and structs of C. */

#include "ask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static unsigned long long natural(
    const struct line *line, const struct word *word, unsigned long long most) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(word->text, &end, 0);
    if (!word->length || *end || errno || *word->text == '-' || value > most) {
        refuse(line, "'%s' is no number from 0 to %llu", word->text, most);
    }
    return value;
}

static long long integer(
    const struct line *line, const struct word *word, long long least, long long most) {
    char *end;
    errno = 0;
    long long value = strtoll(word->text, &end, 0);
    if (!word->length || *end || errno || value < least || value > most) {
        refuse(line, "'%s' is no number from %lld to %lld", word->text, least, most);
    }
    return value;
}

static double real(const struct line *line, const struct word *word) {
    char *end;
    double value = strtod(word->text, &end);
    if (!word->length || *end) refuse(line, "'%s' is no number", word->text);
    return value;
}

static void text(const struct line *line, const struct word *word, char *to, size_t room) {
    if (word->length > room) refuse(line, "'%s' is longer than %zu", word->text, room);
    memset(to, 0, room);
    memcpy(to, word->text, word->length);
}

void write_word(
    const struct line *line, const struct word *word, enum kind kind, void *to, size_t room) {
    switch (kind) {
    case U8: *(C_U8 *)to = (C_U8)natural(line, word, 0xff); break;
    case U16: *(C_U16 *)to = (C_U16)natural(line, word, 0xffff); break;
    case U32: *(C_U32 *)to = (C_U32)natural(line, word, 0xffffffff); break;
    case U64: *(C_U64 *)to = natural(line, word, ~0ULL); break;
    case I32: *(C_I32 *)to = (C_I32)integer(line, word, -0x80000000LL, 0x7fffffff); break;
    case I64: *(C_I64 *)to = integer(line, word, -__LONG_LONG_MAX__ - 1, __LONG_LONG_MAX__); break;
    case F64: *(C_F64 *)to = real(line, word); break;
    case TEXT: text(line, word, to, room - 1); break;
    case BYTES: text(line, word, to, room); break;
    }
}

const struct entry *values_of(const struct line *line) {
    if (line->count != 1) refuse(line, "%s gives no list", line->call);
    return line->entries;
}

const struct word *word_of(const struct line *line) {
    const struct entry *entry = values_of(line);
    if (!entry->count || *entry->words->name) refuse(line, "it says no value");
    return entry->words;
}

const struct word *named(const struct entry *entry, const char *name) {
    for (size_t i = 0; i < entry->count; i++) {
        if (!strcmp(entry->words[i].name, name)) return &entry->words[i];
    }
    return NULL;
}

static const struct member *member(
    const struct line *line, const struct layout *layout, const char *name) {
    for (size_t i = 0; i < layout->count; i++) {
        if (!strcmp(layout->members[i].name, name)) return &layout->members[i];
    }
    refuse(line, "%s has no member '%s'", layout->name, name);
}

void fill(
    const struct line *line, const struct entry *entry, const struct layout *layout, void *to) {
    for (size_t i = 0; i < entry->count; i++) {
        const struct word *word = &entry->words[i];
        const struct member *found = member(line, layout, word->name);
        write_word(line, word, found->kind, (char *)to + found->offset, found->size);
    }
}
