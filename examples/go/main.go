// Command claim takes sandboxes from a warmpool pool, uses them and gives them back: one sandbox, one that does not come in
// time, and a batch.
//
//	go run . -pool python -- hostname
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// The end of a claim whose program died: without it the sandbox would stay.
const lifetimeSeconds int64 = 600

func main() {
	namespace := flag.String("namespace", "default", "namespace of the pool")
	pool := flag.String("pool", "python", "pool to claim from")
	timeout := flag.Duration("timeout", time.Minute, "how long to wait for a claim")
	batch := flag.Int64("batch", 3, "sandboxes in the batch")
	flag.Parse()

	// ^C ends the wait, and the claim is released.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := configure()
	if err != nil {
		log.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	user := &user{config, client.Resource(claims).Namespace(*namespace), *namespace, *pool, *timeout, flag.Args()}
	for _, example := range []func(context.Context) error{
		user.oneSandbox,
		user.aTimeout,
		func(ctx context.Context) error { return user.aBatch(ctx, *batch) },
	} {
		if err := example(ctx); err != nil {
			log.Fatal(err)
		}
	}
}

// configure reads the kubeconfig, or the ServiceAccount in a pod.
func configure() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
}

type user struct {
	config    *rest.Config
	claims    dynamic.ResourceInterface
	namespace string
	pool      string
	timeout   time.Duration
	command   []string
}

// oneSandbox claims a sandbox, runs the command in it if there is one, and releases it.
func (u *user) oneSandbox(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, u.timeout)
	defer cancel()
	claim, err := Bind(ctx, u.claims, map[string]any{
		"poolRef":         map[string]any{"name": u.pool},
		"lifetimeSeconds": lifetimeSeconds,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, claim.Release()) }()
	sandbox := claim.Sandboxes[0]
	fmt.Printf("one: %s has %s at %s after %.3f s\n", claim.Name, sandbox.Name, sandbox.IP, claim.WaitSeconds)
	if len(u.command) == 0 {
		return nil
	}
	said, err := Exec(ctx, u.config, u.namespace, sandbox, u.command)
	if err != nil {
		return err
	}
	fmt.Printf("one: %s printed %s\n", strings.Join(u.command, " "), strings.TrimSpace(said))
	return nil
}

// aTimeout waits a second for a pool that does not exist. Bind then deletes the claim.
func (u *user) aTimeout(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := Bind(ctx, u.claims, map[string]any{
		"poolRef":         map[string]any{"name": u.pool + "-missing"},
		"lifetimeSeconds": lifetimeSeconds,
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("a claim on a pool that does not exist ended with %w", err)
	}
	fmt.Printf("timeout: %v\n", err)
	return nil
}

// aBatch claims several sandboxes, which are bound all together or not at all.
func (u *user) aBatch(ctx context.Context, size int64) (err error) {
	ctx, cancel := context.WithTimeout(ctx, u.timeout)
	defer cancel()
	claim, err := Bind(ctx, u.claims, map[string]any{
		"poolRef":         map[string]any{"name": u.pool},
		"replicas":        size,
		"lifetimeSeconds": lifetimeSeconds,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, claim.Release()) }()
	for _, sandbox := range claim.Sandboxes {
		fmt.Printf("batch: %s has %s at %s\n", claim.Name, sandbox.Name, sandbox.IP)
	}
	return nil
}
