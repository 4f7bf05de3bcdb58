"""Memory in use on devices that no replica owns: somebody else uses it, so no replica is started there.

A driver's report names no replica, since a replica may have processes that Rollway does not know. So memory in use on
a device that a replica owns, or has just left, counts as the replica's; on any other device no replica uses it.

    device    owner                      in use    of others
    0         a replica                  70 GB
    1         none                       11 GB     11 GB: no new replica gets the device
    2         none                       0.4 GB               a desktop, or the driver itself
    3         a replica left 2 s ago     70 GB                the driver frees it (`release_seconds`)
"""

from collections.abc import Collection

from domain.devices.needs import Capacity, gpus_of

OTHERS_FROM_GB = 1.0
"""The memory in use from which a device gets no replica."""


def memory_of_others(in_use: Capacity, own_devices: Collection[tuple[str, str]]) -> dict[str, dict[str, float]]:
    """By kind and device, the gigabytes that no replica uses. `own_devices`: the kinds and devices of replicas."""
    by_kind = {
        kind: {
            device: round(gigabytes, 1)
            for device, gigabytes in devices.items()
            if gigabytes >= OTHERS_FROM_GB and (kind, device) not in own_devices
        }
        for kind, devices in in_use.items()
    }
    return {kind: devices for kind, devices in by_kind.items() if devices}


def others_in_words(host: str, memory: Capacity) -> list[str]:
    """E.g. ["gpu-2 device 1: 11 GB used by no replica"]."""
    return [
        f"{host} device {device}: {gigabytes:.0f} GB used by no replica"
        for devices in memory.values()
        for device, gigabytes in devices.items()
    ]


def knows_its_driver(resources: Capacity) -> bool:
    """Whether GPUs have the names that their driver gives them, so that the driver can report their memory."""
    return any(not device.isdecimal() for device in gpus_of(resources))
