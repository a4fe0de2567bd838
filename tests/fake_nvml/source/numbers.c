/* Functions that give one number or a few, or a text. */

#include "ask.h"

/* A place to which a value is written. */
struct place {
    enum kind kind;
    void *to;
};

static code_t give(
    device_t device, const char *call, struct arguments arguments, const struct place *places,
    size_t count) {
    const struct line *line;
    code_t code = ask_device(device, call, arguments, &line);
    if (code) return code;
    const struct entry *entry = values_of(line);
    if (entry->count != count) refuse(line, "%s gives %zu values", call, count);
    for (size_t i = 0; i < count; i++) {
        write_word(line, &entry->words[i], places[i].kind, places[i].to, 0);
    }
    return SUCCESS;
}

static code_t give_text(
    device_t device, const char *call, struct arguments arguments, char *text, size_t room) {
    const struct line *line;
    code_t code = ask_device(device, call, arguments, &line);
    if (code) return code;
    if (word_of(line)->length >= room) return INSUFFICIENT_SIZE;
    write_word(line, word_of(line), TEXT, text, room);
    return SUCCESS;
}

#define PLACES(...) (const struct place[]){__VA_ARGS__}, \
                    sizeof((struct place[]){__VA_ARGS__}) / sizeof(struct place)

#define NUMBER(name, kind) \
    code_t name(device_t device, C_##kind *value) { \
        return give(device, __func__, ARGUMENTS(), PLACES({kind, value})); \
    }

/* Of something that the caller names: a clock, a fan, a link. */
#define NUMBER_OF(name, kind) \
    code_t name(device_t device, unsigned int which, C_##kind *value) { \
        return give(device, __func__, ARGUMENTS(which), PLACES({kind, value})); \
    }

#define NUMBER_OF_2(name, kind) \
    code_t name( \
        device_t device, unsigned int first, unsigned int second, C_##kind *value) { \
        return give(device, __func__, ARGUMENTS(first, second), PLACES({kind, value})); \
    }

#define NUMBERS_2(name, kind) \
    code_t name(device_t device, C_##kind *first, C_##kind *second) { \
        return give(device, __func__, ARGUMENTS(), PLACES({kind, first}, {kind, second})); \
    }

#define WORDS(name) \
    code_t name(device_t device, char *text, unsigned int room) { \
        return give_text(device, __func__, ARGUMENTS(), text, room); \
    }

WORDS(nvmlDeviceGetUUID)
WORDS(nvmlDeviceGetName)
WORDS(nvmlDeviceGetSerial)
WORDS(nvmlDeviceGetBoardPartNumber)
WORDS(nvmlDeviceGetVbiosVersion)
WORDS(nvmlDeviceGetInforomImageVersion)

code_t nvmlDeviceGetInforomVersion(
    device_t device, unsigned int object, char *text, unsigned int room) {
    return give_text(device, __func__, ARGUMENTS(object), text, room);
}

/* nvml.h, NVML_GSP_FIRMWARE_VERSION_BUF_SIZE: the caller is trusted to have so much room. */
code_t nvmlDeviceGetGspFirmwareVersion(device_t device, char *text) {
    return give_text(device, __func__, ARGUMENTS(), text, 0x40);
}

NUMBER(nvmlDeviceGetMinorNumber, U32)
NUMBER(nvmlDeviceGetBrand, U32)
NUMBER(nvmlDeviceGetArchitecture, U32)
NUMBER(nvmlDeviceGetBoardId, U32)
NUMBER(nvmlDeviceGetBusType, U32)
NUMBER(nvmlDeviceGetMultiGpuBoard, U32)
NUMBER(nvmlDeviceGetModuleId, U32)
NUMBER(nvmlDeviceGetNumaNodeId, U32)
NUMBER(nvmlDeviceGetIrqNum, U32)
NUMBER(nvmlDeviceGetNumGpuCores, U32)
NUMBER(nvmlDeviceGetMemoryBusWidth, U32)
NUMBER(nvmlDeviceGetInforomConfigurationChecksum, U32)
NUMBERS_2(nvmlDeviceGetCudaComputeCapability, I32)
NUMBERS_2(nvmlDeviceGetGspFirmwareMode, U32)

NUMBER(nvmlDeviceGetPersistenceMode, U32)
NUMBER(nvmlDeviceGetComputeMode, U32)
NUMBER(nvmlDeviceGetDisplayMode, U32)
NUMBER(nvmlDeviceGetDisplayActive, U32)
NUMBER(nvmlDeviceGetAccountingMode, U32)
NUMBER(nvmlDeviceGetVirtualizationMode, U32)
NUMBER(nvmlDeviceGetDefaultEccMode, U32)
NUMBERS_2(nvmlDeviceGetEccMode, U32)
NUMBERS_2(nvmlDeviceGetMigMode, U32)
NUMBER(nvmlDeviceGetMaxMigDeviceCount, U32)
NUMBER(nvmlDeviceGetGpuInstanceId, U32)
NUMBER(nvmlDeviceGetComputeInstanceId, U32)

NUMBER(nvmlDeviceGetPowerUsage, U32)
NUMBER(nvmlDeviceGetPowerState, U32)
NUMBER(nvmlDeviceGetPowerSource, U32)
NUMBER(nvmlDeviceGetPowerManagementMode, U32)
NUMBER(nvmlDeviceGetPowerManagementLimit, U32)
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, U32)
NUMBER(nvmlDeviceGetEnforcedPowerLimit, U32)
NUMBERS_2(nvmlDeviceGetPowerManagementLimitConstraints, U32)
NUMBER(nvmlDeviceGetTotalEnergyConsumption, U64)

NUMBER_OF(nvmlDeviceGetTemperature, U32)
NUMBER_OF(nvmlDeviceGetTemperatureThreshold, U32)
NUMBER(nvmlDeviceGetNumFans, U32)
NUMBER(nvmlDeviceGetFanSpeed, U32)
NUMBER_OF(nvmlDeviceGetFanSpeed_v2, U32)
NUMBER_OF(nvmlDeviceGetTargetFanSpeed, U32)
NUMBERS_2(nvmlDeviceGetMinMaxFanSpeed, U32)

NUMBER(nvmlDeviceGetPerformanceState, U32)
NUMBER_OF(nvmlDeviceGetClockInfo, U32)
NUMBER_OF(nvmlDeviceGetMaxClockInfo, U32)
NUMBER_OF(nvmlDeviceGetApplicationsClock, U32)
NUMBER_OF(nvmlDeviceGetDefaultApplicationsClock, U32)
NUMBER_OF(nvmlDeviceGetMaxCustomerBoostClock, U32)
NUMBER_OF_2(nvmlDeviceGetClock, U32)
NUMBER(nvmlDeviceGetAdaptiveClockInfoStatus, U32)
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, U64)
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, U64)
NUMBER(nvmlDeviceGetSupportedClocksEventReasons, U64)
NUMBER(nvmlDeviceGetSupportedClocksThrottleReasons, U64)

NUMBERS_2(nvmlDeviceGetEncoderUtilization, U32)
NUMBERS_2(nvmlDeviceGetDecoderUtilization, U32)
NUMBERS_2(nvmlDeviceGetJpgUtilization, U32)
NUMBERS_2(nvmlDeviceGetOfaUtilization, U32)
NUMBER_OF(nvmlDeviceGetEncoderCapacity, U32)

code_t nvmlDeviceGetEncoderStats(
    device_t device, C_U32 *sessions, C_U32 *frames, C_U32 *latency) {
    return give(
        device, __func__, ARGUMENTS(), PLACES({U32, sessions}, {U32, frames}, {U32, latency}));
}

NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, U32)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, U32)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, U32)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, U32)
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, U32)
NUMBER(nvmlDeviceGetPcieLinkMaxSpeed, U32)
NUMBER(nvmlDeviceGetPcieSpeed, U32)
NUMBER(nvmlDeviceGetPcieReplayCounter, U32)
NUMBER_OF(nvmlDeviceGetPcieThroughput, U32)

NUMBER_OF(nvmlDeviceGetNvLinkState, U32)
NUMBER_OF(nvmlDeviceGetNvLinkVersion, U32)
NUMBER_OF(nvmlDeviceGetNvLinkRemoteDeviceType, U32)
NUMBER_OF_2(nvmlDeviceGetNvLinkCapability, U32)
NUMBER_OF_2(nvmlDeviceGetNvLinkErrorCounter, U64)

NUMBER_OF_2(nvmlDeviceGetTotalEccErrors, U64)
NUMBER(nvmlDeviceGetRetiredPagesPendingStatus, U32)

code_t nvmlDeviceGetMemoryErrorCounter(
    device_t device, unsigned int type, unsigned int counter, unsigned int location, C_U64 *value) {
    return give(device, __func__, ARGUMENTS(type, counter, location), PLACES({U64, value}));
}

code_t nvmlDeviceGetRemappedRows(
    device_t device, C_U32 *corrected, C_U32 *uncorrected, C_U32 *pending, C_U32 *failed) {
    return give(
        device, __func__, ARGUMENTS(),
        PLACES({U32, corrected}, {U32, uncorrected}, {U32, pending}, {U32, failed}));
}

NUMBER(nvmlDeviceGetSupportedEventTypes, U64)
