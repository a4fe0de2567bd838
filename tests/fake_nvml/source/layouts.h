/* The structs of NVML that are filled here, each as one list of its members in their order.
 *
 * From a list come the struct itself, the table by which the text file's words find their members
 * (layouts.c), and the description that the tests hold against pynvml's own structs. An inner
 * struct stands in its outer one member by member, which is the same memory.
 */

#ifndef FAKE_NVML_LAYOUTS_H
#define FAKE_NVML_LAYOUTS_H

#include <stddef.h>

enum kind { U8, U16, U32, I32, U64, I64, F64, TEXT, BYTES };

typedef unsigned char C_U8;
typedef unsigned short C_U16;
typedef unsigned int C_U32;
typedef int C_I32;
typedef unsigned long long C_U64;
typedef long long C_I64;
typedef double C_F64;
typedef char C_TEXT;
typedef unsigned char C_BYTES;

/* A list is given S, the struct's name, and two macros: one for a member, one for an array. */

#define UTILIZATION(S, M, A) M(S, U32, gpu) M(S, U32, memory)

#define MEMORY(S, M, A) M(S, U64, total) M(S, U64, free) M(S, U64, used)

#define MEMORY_V2(S, M, A) \
    M(S, U32, version) M(S, U64, total) M(S, U64, reserved) M(S, U64, free) M(S, U64, used)

#define BAR1_MEMORY(S, M, A) M(S, U64, bar1Total) M(S, U64, bar1Free) M(S, U64, bar1Used)

#define PCI_INFO(S, M, A) \
    A(S, TEXT, busIdLegacy, 16) M(S, U32, domain) M(S, U32, bus) M(S, U32, device) \
    M(S, U32, pciDeviceId) M(S, U32, pciSubSystemId) A(S, TEXT, busId, 32)

#define PROCESS_INFO_V1(S, M, A) M(S, U32, pid) M(S, U64, usedGpuMemory)

#define PROCESS_INFO_V2(S, M, A) \
    M(S, U32, pid) M(S, U64, usedGpuMemory) M(S, U32, gpuInstanceId) M(S, U32, computeInstanceId)

#define PROCESS_UTILIZATION_SAMPLE(S, M, A) \
    M(S, U32, pid) M(S, U64, timeStamp) M(S, U32, smUtil) M(S, U32, memUtil) \
    M(S, U32, encUtil) M(S, U32, decUtil)

#define PROCESS_UTILIZATION_INFO(S, M, A) \
    M(S, U64, timeStamp) M(S, U32, pid) M(S, U32, smUtil) M(S, U32, memUtil) M(S, U32, encUtil) \
    M(S, U32, decUtil) M(S, U32, jpgUtil) M(S, U32, ofaUtil)

#define TEMPERATURE(S, M, A) M(S, U32, version) M(S, U32, sensorType) M(S, I32, temperature)

#define MARGIN_TEMPERATURE(S, M, A) M(S, U32, version) M(S, I32, marginTemperature)

#define FAN_SPEED_INFO(S, M, A) M(S, U32, version) M(S, U32, fan) M(S, U32, speed)

#define ROW_REMAPPER_HISTOGRAM(S, M, A) \
    M(S, U32, max) M(S, U32, high) M(S, U32, partial) M(S, U32, low) M(S, U32, none)

#define REMAPPED_ROWS_V2(S, M, A) \
    M(S, U32, corrActiveRemaps) M(S, U32, corrInactiveRemaps) M(S, U32, uncActiveRemaps) \
    M(S, U32, uncInactiveRemaps) M(S, U32, bPending) M(S, U32, bFailureOccurred)

#define ECC_SRAM_ERROR_STATUS(S, M, A) \
    M(S, U32, version) M(S, U64, aggregateUncParity) M(S, U64, aggregateUncSecDed) \
    M(S, U64, aggregateCor) M(S, U64, volatileUncParity) M(S, U64, volatileUncSecDed) \
    M(S, U64, volatileCor) M(S, U64, aggregateUncBucketL2) M(S, U64, aggregateUncBucketSm) \
    M(S, U64, aggregateUncBucketPcie) M(S, U64, aggregateUncBucketMcu) \
    M(S, U64, aggregateUncBucketOther) M(S, U32, bThresholdExceeded)

#define REPAIR_STATUS(S, M, A) \
    M(S, U32, version) M(S, U32, bChannelRepairPending) M(S, U32, bTpcRepairPending)

#define UNREPAIRABLE_MEMORY(S, M, A) M(S, U32, bUnrepairableMemory)

#define C2C_MODE_INFO(S, M, A) M(S, U32, isC2cEnabled)

#define ADDRESSING_MODE(S, M, A) M(S, U32, version) M(S, U32, value)

#define VIOLATION_TIME(S, M, A) M(S, U64, referenceTime) M(S, U64, violationTime)

#define FABRIC_INFO(S, M, A) \
    A(S, BYTES, clusterUuid, 16) M(S, U32, status) M(S, U32, cliqueId) M(S, U8, state)

#define FABRIC_INFO_V2(S, M, A) M(S, U32, version) FABRIC_INFO(S, M, A) M(S, U32, healthMask)

#define FABRIC_INFO_V3(S, M, A) FABRIC_INFO_V2(S, M, A) M(S, U8, healthSummary)

#define INSTANCE_PROFILE(S, M, A) \
    M(S, U32, id) M(S, U32, isP2pSupported) M(S, U32, sliceCount) M(S, U32, instanceCount) \
    M(S, U32, multiprocessorCount) M(S, U32, copyEngineCount) M(S, U32, decoderCount) \
    M(S, U32, encoderCount) M(S, U32, jpegCount) M(S, U32, ofaCount) M(S, U64, memorySizeMB)

#define INSTANCE_PROFILE_V2(S, M, A) \
    M(S, U32, version) INSTANCE_PROFILE(S, M, A) A(S, TEXT, name, 96)

#define DEVICE_ATTRIBUTES(S, M, A) \
    M(S, U32, multiprocessorCount) M(S, U32, sharedCopyEngineCount) \
    M(S, U32, sharedDecoderCount) M(S, U32, sharedEncoderCount) M(S, U32, sharedJpegCount) \
    M(S, U32, sharedOfaCount) M(S, U32, gpuInstanceSliceCount) \
    M(S, U32, computeInstanceSliceCount) M(S, U64, memorySizeMB)

#define ENCODER_SESSION(S, M, A) \
    M(S, U32, sessionId) M(S, U32, pid) M(S, U32, vgpuInstance) M(S, U32, codecType) \
    M(S, U32, hResolution) M(S, U32, vResolution) M(S, U32, averageFps) M(S, U32, averageLatency)

#define FBC_STATS(S, M, A) M(S, U32, sessionsCount) M(S, U32, averageFPS) M(S, U32, averageLatency)

#define GRID_FEATURE(S, M, A) \
    M(S, U32, featureCode) M(S, U32, featureState) A(S, TEXT, licenseInfo, 128) \
    A(S, TEXT, productName, 128) M(S, U32, featureEnabled) M(S, U32, year) M(S, U16, month) \
    M(S, U16, day) M(S, U16, hour) M(S, U16, min) M(S, U16, sec) M(S, U8, status)

#define CONF_COMPUTE_STATE(S, M, A) \
    M(S, U32, environment) M(S, U32, ccFeature) M(S, U32, devToolsMode)

#define CONF_COMPUTE_MEMORY(S, M, A) \
    M(S, U64, protectedMemSizeKib) M(S, U64, unprotectedMemSizeKib)

#define GPM_SUPPORT(S, M, A) M(S, U32, version) M(S, U32, isSupportedDevice)

#define STRUCTS(X) \
    X(nvmlUtilization_t, UTILIZATION) \
    X(nvmlMemory_t, MEMORY) \
    X(nvmlMemory_v2_t, MEMORY_V2) \
    X(nvmlBAR1Memory_t, BAR1_MEMORY) \
    X(nvmlPciInfo_t, PCI_INFO) \
    X(nvmlProcessInfo_v1_t, PROCESS_INFO_V1) \
    X(nvmlProcessInfo_v2_t, PROCESS_INFO_V2) \
    X(nvmlProcessUtilizationSample_t, PROCESS_UTILIZATION_SAMPLE) \
    X(nvmlProcessUtilizationInfo_v1_t, PROCESS_UTILIZATION_INFO) \
    X(nvmlTemperature_v1_t, TEMPERATURE) \
    X(nvmlMarginTemperature_v1_t, MARGIN_TEMPERATURE) \
    X(nvmlFanSpeedInfo_t, FAN_SPEED_INFO) \
    X(nvmlRowRemapperHistogramValues, ROW_REMAPPER_HISTOGRAM) \
    X(nvmlRemappedRowsInfo_v2_t, REMAPPED_ROWS_V2) \
    X(nvmlEccSramErrorStatus_v1_t, ECC_SRAM_ERROR_STATUS) \
    X(nvmlRepairStatus_t, REPAIR_STATUS) \
    X(nvmlUnrepairableMemory_v1_t, UNREPAIRABLE_MEMORY) \
    X(nvmlC2cModeInfo_v1_t, C2C_MODE_INFO) \
    X(nvmlDeviceAddressingMode_t, ADDRESSING_MODE) \
    X(nvmlViolationTime_t, VIOLATION_TIME) \
    X(nvmlGpuFabricInfo_t, FABRIC_INFO) \
    X(nvmlGpuFabricInfo_v2_t, FABRIC_INFO_V2) \
    X(nvmlGpuFabricInfo_v3_t, FABRIC_INFO_V3) \
    X(nvmlGpuInstanceProfileInfo_t, INSTANCE_PROFILE) \
    X(nvmlGpuInstanceProfileInfo_v2_t, INSTANCE_PROFILE_V2) \
    X(nvmlDeviceAttributes, DEVICE_ATTRIBUTES) \
    X(nvmlEncoderSession_t, ENCODER_SESSION) \
    X(nvmlFBCStats_t, FBC_STATS) \
    X(nvmlGridLicensableFeature_v4_t, GRID_FEATURE) \
    X(nvmlConfComputeSystemState_t, CONF_COMPUTE_STATE) \
    X(nvmlConfComputeMemSizeInfo_t, CONF_COMPUTE_MEMORY) \
    X(nvmlGpmSupport_t, GPM_SUPPORT)

#define DECLARED(S, kind, name) C_##kind name;
#define DECLARED_ARRAY(S, kind, name, length) C_##kind name[length];
#define STRUCT(S, list) typedef struct S { list(S, DECLARED, DECLARED_ARRAY) } S;

STRUCTS(STRUCT)

/* Where a member is, and how much room there is for it. */
struct member {
    const char *name;
    enum kind kind;
    size_t offset, size;
};

struct layout {
    const char *name;
    size_t size, count;
    const struct member *members;
};

#define DESCRIBED(S, list) extern const struct layout S##_layout;
STRUCTS(DESCRIBED)

#endif
