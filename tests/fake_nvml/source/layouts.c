/* The tables of layouts.h, and their description as text for the tests. */

#include "layouts.h"

#include <stdio.h>

#define MEMBER(S, kind, name) {#name, kind, offsetof(S, name), sizeof(((S *)0)->name)},
#define MEMBER_ARRAY(S, kind, name, length) MEMBER(S, kind, name)

#define TABLE(S, list) \
    static const struct member S##_members[] = {list(S, MEMBER, MEMBER_ARRAY)}; \
    const struct layout S##_layout = { \
        #S, sizeof(S), sizeof S##_members / sizeof *S##_members, S##_members};

STRUCTS(TABLE)

#define ADDRESS(S, list) &S##_layout,

static const struct layout *const all[] = {STRUCTS(ADDRESS)};

/* Writes "NAME SIZE MEMBER OFFSET SIZE MEMBER OFFSET SIZE ..." for each struct, one a line. */
void fake_nvml_layouts(char *text, unsigned int room) {
    FILE *page = fmemopen(text, room, "w");
    for (size_t place = 0; place < sizeof all / sizeof *all; place++) {
        const struct layout *layout = all[place];
        fprintf(page, "%s %zu", layout->name, layout->size);
        for (size_t i = 0; i < layout->count; i++) {
            const struct member *member = &layout->members[i];
            fprintf(page, " %s %zu %zu", member->name, member->offset, member->size);
        }
        fputc('\n', page);
    }
    fclose(page);
}
