// Command kubelet serves the kubelet's PodResources API v1 on a Unix socket. It speaks with the
// types of Kubernetes, so that our own table of messages is held to the real wire format:
//
//	kubelet [--version v1] SOCKET ANSWER.json
//	kubelet --dump FILE ANSWER.json
//
// The JSON is a list of pods. Its members are the fields of the official api.proto, by the names
// that they have there; only cdi_devices is shorter, a list of names.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/kubelet/pkg/apis/podresources/v1"
)

func main() {
	version := flag.String("version", "v1", "version of the API; there is only v1")
	dump := flag.String("dump", "", "write the encoded answer of List to this `file`, and exit")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: kubelet [--version v1] SOCKET ANSWER.json")
		fmt.Fprintln(flag.CommandLine.Output(), "       kubelet --dump FILE ANSWER.json")
		flag.PrintDefaults()
	}
	flag.Parse()

	var err error
	switch {
	case *version != "v1":
		err = fmt.Errorf("version %s is not served; v1 is", *version)
	case *dump != "" && flag.NArg() == 1:
		err = write(*dump, flag.Arg(0))
	case *dump == "" && flag.NArg() == 2:
		err = serve(flag.Arg(0), flag.Arg(1))
	default:
		flag.Usage()
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubelet:", err)
		os.Exit(1)
	}
}

func write(file, source string) error {
	answer, err := read(source)
	if err != nil {
		return err
	}
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(answer)
	if err != nil {
		return err
	}
	return os.WriteFile(file, encoded, 0o644)
}

func serve(socket, source string) error {
	// A mistake in the file is better said now than as a status that a test has to find.
	if _, err := read(source); err != nil {
		return err
	}
	if err := clear(socket); err != nil {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	v1.RegisterPodResourcesListerServer(server, &lister{source: source})

	ended, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	go func() {
		<-ended.Done()
		server.Stop() // at once: a client that keeps its connection must not hold a test up
	}()

	fmt.Println("serving", socket)
	return server.Serve(listener)
}

// clear removes the socket of a server that was killed, as the real kubelet does when it starts.
// Anything else at that path is a mistake in the order of the arguments.
func clear(socket string) error {
	found, err := os.Lstat(socket)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case found.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is there and is no socket", socket)
	}
	return os.Remove(socket)
}

type lister struct {
	v1.UnimplementedPodResourcesListerServer

	source string
}

func (l *lister) List(
	context.Context, *v1.ListPodResourcesRequest,
) (*v1.ListPodResourcesResponse, error) {
	return l.answer()
}

// Get says NOT_FOUND, which is what a client would look for. A real kubelet gives such an error no
// code of its own, so it arrives as UNKNOWN.
func (l *lister) Get(
	_ context.Context, asked *v1.GetPodResourcesRequest,
) (*v1.GetPodResourcesResponse, error) {
	answer, err := l.answer()
	if err != nil {
		return nil, err
	}
	for _, pod := range answer.GetPodResources() {
		if pod.GetNamespace() == asked.GetPodNamespace() && pod.GetName() == asked.GetPodName() {
			return &v1.GetPodResourcesResponse{PodResources: pod}, nil
		}
	}
	return nil, status.Errorf(codes.NotFound,
		"pod %s in namespace %s not found", asked.GetPodName(), asked.GetPodNamespace())
}

func (l *lister) GetAllocatableResources(
	context.Context, *v1.AllocatableResourcesRequest,
) (*v1.AllocatableResourcesResponse, error) {
	return &v1.AllocatableResourcesResponse{}, nil
}

// answer reads the file at every call, so that a test can change what is said.
func (l *lister) answer() (*v1.ListPodResourcesResponse, error) {
	answer, err := read(l.source)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return answer, nil
}

func read(source string) (*v1.ListPodResourcesResponse, error) {
	text, err := os.ReadFile(source)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // a float64 does not hold every size of memory
	var pods any
	if err := decoder.Decode(&pods); err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	spelled, err := json.Marshal(map[string]any{"pod_resources": spellOut(pods)})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	answer := &v1.ListPodResourcesResponse{}
	if err := protojson.Unmarshal(spelled, answer); err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	return answer, nil
}

// spellOut turns each name in cdi_devices into the message that the API has there.
func spellOut(value any) any {
	switch value := value.(type) {
	case []any:
		for at, each := range value {
			value[at] = spellOut(each)
		}
	case map[string]any:
		for key, each := range value {
			names, listed := each.([]any)
			if key != "cdi_devices" || !listed {
				value[key] = spellOut(each)
				continue
			}
			for at, name := range names {
				names[at] = map[string]any{"name": name}
			}
		}
	}
	return value
}
