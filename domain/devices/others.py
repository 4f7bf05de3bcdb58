"""Memory of devices that no replica owns: somebody else uses it, so that nothing is started there.

What a driver reports names no replica, since a replica may have processes that Rollway does not know. But a device
that a replica owns, or has just left, is the replica's; what is in use on any other device is used by no replica.

    device    owner                      in use    of others
    0         a replica                  70 GB
    1         none                       11 GB     11 GB: no new replica gets it
    2         none                       0.4 GB               a desktop, or what the driver itself needs
    3         one that left 2 s ago      70 GB                its driver frees it (`release_seconds`)
"""

from collections.abc import Collection

from domain.devices.needs import Capacity, gpus_of

OTHERS_FROM_GB = 1.0
"""Less memory than this in use on a device is no obstacle."""


def memory_of_others(in_use: Capacity, own_devices: Collection[tuple[str, str]]) -> dict[str, dict[str, float]]:
    """By kind and device, the gigabytes in use that are no replica's. `owned`: the devices of replicas, with kinds."""
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
    """Whether GPUs are named as their driver names them, so that it can be asked for one of them."""
    return any(not device.isdecimal() for device in gpus_of(resources))
