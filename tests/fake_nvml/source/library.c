/* The library itself: start and end, what it says of the system, and its words for return codes. */

#include "ask.h"

#include <string.h>

#define ALLOW_NO_GPUS 1u /* nvml.h, NVML_INIT_FLAG_NO_GPUS */

code_t nvmlInitWithFlags(unsigned int flags) {
    if (!current_table()) return DRIVER_NOT_LOADED;
    code_t code = permitted(LIBRARY, __func__, ARGUMENTS());
    if (code) return code;
    if (!gpus() && !(flags & ALLOW_NO_GPUS)) return GPU_NOT_FOUND;
    started();
    return SUCCESS;
}

code_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

code_t nvmlInit(void) { return nvmlInitWithFlags(0); }

code_t nvmlShutdown(void) {
    code_t code = permitted(LIBRARY, __func__, ARGUMENTS());
    return code ? code : stopped();
}

static code_t ask_system(
    const char *call, struct arguments arguments, enum kind kind, void *to, size_t room) {
    const struct line *line;
    code_t code = running();
    if (!code) code = ask(LIBRARY, call, arguments, &line);
    if (!code) write_word(line, word_of(line), kind, to, room);
    return code;
}

code_t nvmlSystemGetDriverVersion(char *text, unsigned int room) {
    return ask_system(__func__, ARGUMENTS(), TEXT, text, room);
}

code_t nvmlSystemGetNVMLVersion(char *text, unsigned int room) {
    return ask_system(__func__, ARGUMENTS(), TEXT, text, room);
}

code_t nvmlSystemGetCudaDriverVersion(int *number) {
    return ask_system(__func__, ARGUMENTS(), I32, number, sizeof *number);
}

code_t nvmlSystemGetCudaDriverVersion_v2(int *number) {
    return ask_system(__func__, ARGUMENTS(), I32, number, sizeof *number);
}

code_t nvmlSystemGetProcessName(unsigned int pid, char *text, unsigned int room) {
    return ask_system(__func__, ARGUMENTS(pid), TEXT, text, room);
}

code_t nvmlUnitGetCount(unsigned int *number) {
    return ask_system(__func__, ARGUMENTS(), U32, number, sizeof *number);
}

code_t nvmlSystemGetConfComputeState(nvmlConfComputeSystemState_t *state) {
    const struct line *line;
    code_t code = running();
    if (!code) code = ask(LIBRARY, __func__, ARGUMENTS(), &line);
    if (!code) fill(line, values_of(line), &nvmlConfComputeSystemState_t_layout, state);
    return code;
}

const char *nvmlErrorString(code_t code) {
    switch (code) {
    case SUCCESS: return "the fake NVML did it";
    case UNINITIALIZED: return "the fake NVML was not started";
    case INVALID_ARGUMENT: return "the fake NVML cannot make sense of an argument";
    case NOT_SUPPORTED: return "the fake NVML was told nothing of this";
    case DRIVER_NOT_LOADED: return "the fake NVML has no file to read";
    default: return "the fake NVML was told to return this code";
    }
}

/* What a function does that has no body here: a stub for each is made when the library is built.
 * The first argument of nearly all is a device; what is none is looked for in vain. */
code_t unanswered(device_t device, const char *call) {
    struct who who = LIBRARY;
    code_t code = running();
    if (code) return code;
    if (!strncmp(call, "nvmlDevice", strlen("nvmlDevice"))) code = who_is(device, &who);
    if (code) return code;
    const struct line *line;
    code = ask(who, call, ARGUMENTS(), &line);
    if (!code) refuse(line, "the fake NVML cannot give values for %s: write its body", call);
    return code;
}
