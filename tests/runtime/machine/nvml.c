/* A stand-in for NVIDIA's driver library: one whole GPU, and one that is cut, with one slice in its second place. */
#include <stdio.h>
#include <string.h>

typedef void *device;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory;
typedef struct {
    unsigned processors, engines, decoders, encoders, jpeg, ofa, slices, compute;
    unsigned long long mb;
} attributes;

static const long SLICE = 10;

int nvmlInitWithFlags(unsigned flags) { return 0; }
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned number, device *found) { *found = (device)(long)(number + 1); return 0; }

int nvmlDeviceGetMigMode(device gpu, unsigned *current, unsigned *pending) {
    if ((long)gpu != 2) return 3; /* cannot be cut */
    *current = *pending = 1;
    return 0;
}

int nvmlDeviceGetMaxMigDeviceCount(device gpu, unsigned *count) { *count = 2; return 0; }

int nvmlDeviceGetMigDeviceHandleByIndex(device gpu, unsigned number, device *found) {
    if (number == 0) return 6; /* no slice there */
    *found = (device)SLICE;
    return 0;
}

int nvmlDeviceGetAttributes_v2(device slice, attributes *found) {
    memset(found, 0, sizeof *found);
    found->slices = 1;
    return 0;
}

int nvmlDeviceGetUUID(device found, char *text, unsigned size) {
    snprintf(text, size, "%s-%ld", (long)found == SLICE ? "MIG" : "GPU", (long)found);
    return 0;
}

int nvmlDeviceGetMemoryInfo_v2(device found, memory *info) {
    if (info->version != (sizeof *info | 2 << 24)) return 25; /* of another version */
    if ((long)found == 2) return 3; /* the GPU that is cut has no memory of its own */
    info->used = (long)found == SLICE ? 1500000000ull : 11200000000ull;
    return 0;
}
