"""Pods, as the kubelet tells of them over its PodResources socket, and as cgroups and the API add.

`kubelet` asks; `messages` are its words on the wire, `resources` ours. `ids` and `slices` say which
GPU a device id or a claim means, `given` puts them together. `names` and `pods` know more of a pod
than the kubelet tells. `source` is all of it as a source of owners.
"""
