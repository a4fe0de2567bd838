// Writes an answer of the kubelet's PodResources API, encoded by the kubelet's own types, so that
// our reduced table of messages is held to the real wire format:
//
//	go run . > answer.bin
package main

import (
	"os"

	"google.golang.org/protobuf/proto"
	v1 "k8s.io/kubelet/pkg/apis/podresources/v1"
)

func main() {
	topology := &v1.TopologyInfo{Nodes: []*v1.NUMANode{{ID: 1}}}
	share := "share-1"
	answer := &v1.ListPodResourcesResponse{PodResources: []*v1.PodResources{
		{
			Name: "train-0", Namespace: "research", CpuIds: []int64{0, 1},
			Containers: []*v1.ContainerResources{
				{
					Name: "main", CpuIds: []int64{0, 1, 300},
					Memory: []*v1.ContainerMemory{{MemoryType: "hugepages-1Gi", Size: 1 << 34, Topology: topology}},
					Devices: []*v1.ContainerDevices{
						{ResourceName: "nvidia.com/gpu", DeviceIds: []string{"GPU-a", "GPU-b"}, Topology: topology},
						{ResourceName: "nvidia.com/mig-1g.10gb", DeviceIds: []string{"MIG-c"}},
					},
				},
				{Name: "sidecar"},
			},
		},
		{
			Name: "infer-0", Namespace: "production",
			Containers: []*v1.ContainerResources{{
				Name: "main",
				DynamicResources: []*v1.DynamicResource{
					{
						ClaimName: "one", ClaimNamespace: "production",
						ClaimResources: []*v1.ClaimResource{{
							CdiDevices: []*v1.CDIDevice{{Name: "k8s.gpu.nvidia.com/claim=one-gpu-0"}},
							DriverName: "gpu.nvidia.com", PoolName: "node-1", DeviceName: "gpu-0",
							ShareId: &share,
						}},
					},
					{ClaimName: "two", ClaimNamespace: "production"},
				},
			}},
		},
	}}
	encoded, err := proto.Marshal(answer)
	if err != nil {
		panic(err)
	}
	os.Stdout.Write(encoded)
}
