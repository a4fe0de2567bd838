/* Functions that fill one struct. */

#include "ask.h"

static code_t give(
    device_t device, const char *call, struct arguments arguments, const struct layout *layout,
    void *to) {
    const struct line *line;
    code_t code = ask_device(device, call, arguments, &line);
    if (!code) fill(line, values_of(line), layout, to);
    return code;
}

#define PLAIN(name, type) \
    code_t name(device_t device, type *value) { \
        return give(device, __func__, ARGUMENTS(), &type##_layout, value); \
    }

#define PLAIN_OF(name, type) \
    code_t name(device_t device, unsigned int which, type *value) { \
        return give(device, __func__, ARGUMENTS(which), &type##_layout, value); \
    }

#define VERSIONED(name, type, number) \
    code_t name(device_t device, type *value) { \
        code_t code = expected(value->version, VERSION(type, number)); \
        return code ? code : give(device, __func__, ARGUMENTS(), &type##_layout, value); \
    }

PLAIN(nvmlDeviceGetUtilizationRates, nvmlUtilization_t)
PLAIN(nvmlDeviceGetMemoryInfo, nvmlMemory_t)
PLAIN(nvmlDeviceGetBAR1MemoryInfo, nvmlBAR1Memory_t)
PLAIN(nvmlDeviceGetConfComputeMemSizeInfo, nvmlConfComputeMemSizeInfo_t)
PLAIN(nvmlDeviceGetConfComputeProtectedMemoryUsage, nvmlMemory_t)
PLAIN(nvmlDeviceGetPciInfo_v3, nvmlPciInfo_t)
PLAIN_OF(nvmlDeviceGetNvLinkRemotePciInfo_v2, nvmlPciInfo_t)
PLAIN_OF(nvmlDeviceGetViolationStatus, nvmlViolationTime_t)
PLAIN(nvmlDeviceGetFBCStats, nvmlFBCStats_t)
PLAIN(nvmlDeviceGetRowRemapperHistogram, nvmlRowRemapperHistogramValues)
PLAIN(nvmlDeviceGetRemappedRows_v2, nvmlRemappedRowsInfo_v2_t)
VERSIONED(nvmlDeviceGetSramEccErrorStatus, nvmlEccSramErrorStatus_v1_t, 1)
VERSIONED(nvmlDeviceGetRepairStatus, nvmlRepairStatus_t, 1)
PLAIN(nvmlDeviceGetUnrepairableMemoryFlag_v1, nvmlUnrepairableMemory_v1_t)
PLAIN(nvmlDeviceGetC2cModeInfoV, nvmlC2cModeInfo_v1_t)
VERSIONED(nvmlDeviceGetAddressingMode, nvmlDeviceAddressingMode_t, 1)
VERSIONED(nvmlDeviceGetMarginTemperature, nvmlMarginTemperature_v1_t, 1)
PLAIN(nvmlDeviceGetGpuFabricInfo, nvmlGpuFabricInfo_t)
PLAIN(nvmlDeviceGetAttributes_v2, nvmlDeviceAttributes)
PLAIN_OF(nvmlDeviceGetGpuInstanceProfileInfo, nvmlGpuInstanceProfileInfo_t)

/* An H200's library takes a version that it does not know for a function that it does not have. */
code_t nvmlDeviceGetMemoryInfo_v2(device_t device, nvmlMemory_v2_t *value) {
    code_t code = expected(value->version, VERSION(*value, 2));
    if (code == VERSION_MISMATCH) return FUNCTION_NOT_FOUND;
    return code ? code : give(device, __func__, ARGUMENTS(), &nvmlMemory_v2_t_layout, value);
}

code_t nvmlDeviceGetTemperatureV(device_t device, nvmlTemperature_v1_t *value) {
    code_t code = expected(value->version, VERSION(*value, 1));
    if (code) return code;
    struct arguments sensor = ARGUMENTS(value->sensorType);
    return give(device, __func__, sensor, &nvmlTemperature_v1_t_layout, value);
}

code_t nvmlDeviceGetFanSpeedRPM(device_t device, nvmlFanSpeedInfo_t *value) {
    code_t code = expected(value->version, VERSION(*value, 1));
    if (code) return code;
    return give(device, __func__, ARGUMENTS(value->fan), &nvmlFanSpeedInfo_t_layout, value);
}

code_t nvmlDeviceGetGpuInstanceProfileInfoV(
    device_t device, unsigned int profile, nvmlGpuInstanceProfileInfo_v2_t *value) {
    code_t code = expected(value->version, VERSION(*value, 2));
    if (code) return code;
    return give(
        device, __func__, ARGUMENTS(profile), &nvmlGpuInstanceProfileInfo_v2_t_layout, value);
}

/* Takes the second and the third struct. The number is the call's argument in the file, so that
 * `nvmlDeviceGetGpuFabricInfoV(3) error 25` makes a driver that knows the second one only. */
code_t nvmlDeviceGetGpuFabricInfoV(device_t device, nvmlGpuFabricInfo_v3_t *value) {
    if (value->version == VERSION(nvmlGpuFabricInfo_v2_t, 2)) {
        return give(device, __func__, ARGUMENTS(2), &nvmlGpuFabricInfo_v2_t_layout, value);
    }
    code_t code = expected(value->version, VERSION(nvmlGpuFabricInfo_v3_t, 3));
    if (code) return code;
    return give(device, __func__, ARGUMENTS(3), &nvmlGpuFabricInfo_v3_t_layout, value);
}
