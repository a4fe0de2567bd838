/* Who is there: GPUs, MIG instances, and the handles to both. */

#include "ask.h"

#include <string.h>

code_t nvmlDeviceGetCount_v2(unsigned int *count) {
    code_t code = running();
    if (code) return code;
    const struct line *line;
    code = ask(LIBRARY, __func__, ARGUMENTS(), &line);
    if (code == NOT_SUPPORTED && !line) {
        *count = (unsigned int)gpus();
        return SUCCESS;
    }
    if (!code) write_word(line, word_of(line), U32, count, sizeof *count);
    return code;
}

code_t nvmlDeviceGetCount(unsigned int *count) { return nvmlDeviceGetCount_v2(count); }

code_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, device_t *device) {
    struct who who = {(int)index, WHOLE};
    code_t code = running();
    if (code) return code;
    if (!exists(who)) return INVALID_ARGUMENT;
    code = permitted(who, __func__, ARGUMENTS());
    return code ? code : open_handle(who, device);
}

code_t nvmlDeviceGetHandleByIndex(unsigned int index, device_t *device) {
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

/* Opens the GPU or the instance of which a call says a text. */
static code_t handle_by(const char *text, const char *call, device_t *device) {
    code_t code = running();
    if (code) return code;
    for (int gpu = 0; gpu < gpus(); gpu++) {
        for (int slot = WHOLE; slot < MOST_SLOTS; slot++) {
            struct who who = {gpu, slot};
            if (strcmp(text_of(who, call), text)) continue;
            code = permitted((struct who){gpu, WHOLE}, "nvmlDeviceGetHandleByIndex_v2", ARGUMENTS());
            return code ? code : open_handle(who, device);
        }
    }
    return NOT_FOUND;
}

code_t nvmlDeviceGetHandleByUUID(const char *uuid, device_t *device) {
    return handle_by(uuid, "nvmlDeviceGetUUID", device);
}

code_t nvmlDeviceGetHandleBySerial(const char *serial, device_t *device) {
    return handle_by(serial, "nvmlDeviceGetSerial", device);
}

code_t nvmlDeviceGetHandleByPciBusId_v2(const char *address, device_t *device) {
    code_t code = running();
    if (code) return code;
    for (int gpu = 0; gpu < gpus(); gpu++) {
        const struct line *line = said((struct who){gpu, WHOLE}, "nvmlDeviceGetPciInfo_v3");
        const struct word *word = line ? named(values_of(line), "busId") : NULL;
        if (!word || strcmp(word->text, address)) continue;
        return nvmlDeviceGetHandleByIndex_v2((unsigned int)gpu, device);
    }
    return NOT_FOUND;
}

code_t nvmlDeviceGetIndex(device_t device, unsigned int *index) {
    struct who who;
    code_t code = who_is(device, &who);
    if (!code) code = permitted(who, __func__, ARGUMENTS());
    if (!code) *index = (unsigned int)who.gpu;
    return code;
}

code_t nvmlDeviceIsMigDeviceHandle(device_t device, unsigned int *answer) {
    struct who who;
    code_t code = who_is(device, &who);
    if (!code) *answer = who.slot != WHOLE;
    return code;
}

code_t nvmlDeviceGetMigDeviceHandleByIndex(
    device_t device, unsigned int slot, device_t *instance) {
    struct who who;
    code_t code = who_is(device, &who);
    if (!code) code = permitted(who, __func__, ARGUMENTS(slot));
    if (code) return code;
    struct who part = {who.gpu, (int)slot};
    if (who.slot != WHOLE) return INVALID_ARGUMENT;
    return exists(part) ? open_handle(part, instance) : NOT_FOUND;
}

code_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device_t instance, device_t *device) {
    struct who who;
    code_t code = who_is(instance, &who);
    if (code) return code;
    if (who.slot == WHOLE) return INVALID_ARGUMENT;
    return open_handle((struct who){who.gpu, WHOLE}, device);
}

/* A question about two GPUs: the other one's index stands before the argument, if there is any. */
static code_t between(
    device_t one, device_t other, const char *call, struct arguments more, unsigned int *value) {
    struct who who, peer;
    const struct line *line;
    code_t code = who_is(one, &who);
    if (!code) code = who_is(other, &peer);
    if (code) return code;
    struct arguments both = {more.count + 1, {peer.gpu, more.values[0]}};
    code = ask(who, call, both, &line);
    if (!code) write_word(line, word_of(line), U32, value, sizeof *value);
    return code;
}

code_t nvmlDeviceGetP2PStatus(
    device_t one, device_t other, unsigned int capability, unsigned int *status) {
    return between(one, other, __func__, ARGUMENTS(capability), status);
}

code_t nvmlDeviceGetTopologyCommonAncestor(
    device_t one, device_t other, unsigned int *level) {
    return between(one, other, __func__, ARGUMENTS(), level);
}
