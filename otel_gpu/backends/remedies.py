"""What to do when the driver does not open, by NVML's return code."""

from __future__ import annotations

from collections.abc import Mapping

from otel_gpu.model import Code

REMEDIES: Mapping[int, str] = {
    Code.NO_PERMISSION: (
        "This user may not open /dev/nvidiactl. Its mode is usually crw-rw-rw-: add the user to "
        "the group that owns it, or load the nvidia module with NVreg_DeviceFileMode=0666"
    ),
    Code.DRIVER_NOT_LOADED: (
        "Load the kernel module (modprobe nvidia) on a host. In a container, pass the devices: "
        "docker run --gpus all, or runtimeClassName: nvidia in Kubernetes"
    ),
    Code.LIBRARY_NOT_FOUND: (
        "Install the NVIDIA driver on a host. In a container, use the NVIDIA runtime with "
        "NVIDIA_DRIVER_CAPABILITIES=utility; if only libnvidia-ml.so.<version> is there, run "
        "ldconfig"
    ),
    Code.OPERATING_SYSTEM: (
        "Something other than the driver's device file stands at /dev/nvidiactl, or is mounted "
        "over it: ls -l /dev/nvidia* should show character devices of major 195"
    ),
    Code.LIB_RM_VERSION_MISMATCH: (
        "After a driver upgrade, reload the kernel module or reboot. In a container, restart it "
        "so that the host's library is mounted again, and remove any libnvidia-ml from the image "
        "and from LD_LIBRARY_PATH"
    ),
    Code.UNKNOWN: (
        "In a container, systemctl daemon-reload on the host can take the devices away: restart "
        "the container, and on the host run nvidia-ctk system create-dev-char-symlinks "
        "--create-all, or use CDI. Else look for Xid in the kernel log"
    ),
}
