package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// Another operator may serve a resource of the same name, so the group is always part of it.
var claims = schema.GroupVersionResource{Group: "warmpool.dev", Version: "v1alpha1", Resource: "sandboxclaims"}

// Sandbox is a pod that belongs to a claim.
type Sandbox struct {
	Name string `json:"name"`
	IP   string `json:"ip"`
	Node string `json:"node"`
}

// Claim is a claim whose sandboxes are all bound and Ready.
type Claim struct {
	Name        string
	Sandboxes   []Sandbox
	WaitSeconds float64

	uid    types.UID
	client dynamic.ResourceInterface
}

// Bind creates a claim and waits until its sandboxes are Ready. It deletes the claim again when that fails, or when ctx ends
// before: nobody else would release what the claim has got meanwhile.
func Bind(ctx context.Context, client dynamic.ResourceInterface, spec map[string]any) (*Claim, error) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "warmpool.dev/v1alpha1",
		"kind":       "SandboxClaim",
		"metadata":   map[string]any{"generateName": "example-"},
		"spec":       spec,
	}}
	// The end of ctx must not cut off the creation: the claim could be stored, and nobody would know its name.
	creation, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	created, err := client.Create(creation, object, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create the claim: %w", err)
	}
	claim := &Claim{Name: created.GetName(), uid: created.GetUID(), client: client}
	if err := claim.wait(ctx); err != nil {
		if released := claim.Release(); released != nil {
			return nil, fmt.Errorf("%w; and the claim %s is still there: %w", err, claim.Name, released)
		}
		return nil, err
	}
	return claim, nil
}

// wait follows a watch of this one claim. UntilWithSync lists and watches anew when a watch breaks.
func (c *Claim) wait(ctx context.Context) error {
	only := fields.OneTermEqualSelector("metadata.name", c.Name).String()
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = only
			return c.client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = only
			return c.client.Watch(ctx, options)
		},
	}
	reason := "no status yet"
	_, err := watchtools.UntilWithSync(ctx, source, &unstructured.Unstructured{}, nil, func(event watch.Event) (bool, error) {
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok || object.GetUID() != c.uid {
			return false, nil
		}
		if event.Type == watch.Deleted {
			return false, fmt.Errorf("claim %s was deleted", c.Name)
		}
		var status Status
		if err := status.read(object); err != nil {
			return false, err
		}
		reason = status.condition("Bound").Reason
		switch status.Phase {
		case "Failed", "Expired":
			bound := status.condition("Bound")
			return false, fmt.Errorf("claim %s is %s: %s: %s", c.Name, status.Phase, bound.Reason, bound.Message)
		case "Bound":
			c.Sandboxes, c.WaitSeconds = status.Sandboxes, status.WaitSeconds
			return status.condition("Ready").Status == metav1.ConditionTrue, nil
		}
		return false, nil
	})
	if ctx.Err() != nil {
		return fmt.Errorf("claim %s is not Ready in time (%s): %w", c.Name, reason, ctx.Err())
	}
	return err
}

// Release deletes the claim, and Kubernetes deletes its sandboxes. It takes a context of its own, because it is also called
// when the caller's has ended. The UID makes sure that no later claim of the same name is deleted.
func (c *Claim) Release() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return c.client.Delete(ctx, c.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &c.uid}})
}

// Status is what the operator writes into a claim, as far as this program reads it.
type Status struct {
	Phase       string             `json:"phase"`
	Sandboxes   []Sandbox          `json:"sandboxes"`
	WaitSeconds float64            `json:"waitSeconds"`
	Conditions  []metav1.Condition `json:"conditions"`
}

func (s *Status) read(object *unstructured.Unstructured) error {
	status, _, err := unstructured.NestedMap(object.Object, "status")
	if err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(status, s)
}

// condition returns the condition of a type; an empty one when the status does not have it.
func (s *Status) condition(kind string) metav1.Condition {
	for _, condition := range s.Conditions {
		if condition.Type == kind {
			return condition
		}
	}
	return metav1.Condition{}
}
