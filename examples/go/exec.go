package main

import (
	"bytes"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
)

// Exec runs a command in the first container of a sandbox and returns what it prints.
func Exec(ctx context.Context, config *rest.Config, namespace string, sandbox Sandbox, command []string) (string, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	request := client.CoreV1().RESTClient().Post().
		Resource("pods").Namespace(namespace).Name(sandbox.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(config, "GET", request.URL().String())
	if err != nil {
		return "", err
	}
	var out, complaints bytes.Buffer
	if err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &complaints}); err != nil {
		return "", fmt.Errorf("run %q in %s: %w: %s", command, sandbox.Name, err, complaints.String())
	}
	return out.String(), nil
}
