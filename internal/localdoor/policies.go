package localdoor

import (
	"context"
	"net/http"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/keyring"
)

// Paths of policies. No policy applies at this door, so a policy that locks out every administrator can be detached here.
const (
	policiesPath      = "/v1/policies/list"
	policyPath        = "/v1/policies/show"
	createPolicyPath  = "/v1/policies/create"
	updatePolicyPath  = "/v1/policies/update"
	deletePolicyPath  = "/v1/policies/delete"
	attachPolicyPath  = "/v1/policies/attach"
	detachPolicyPath  = "/v1/policies/detach"
	explainAccessPath = "/v1/access/explain"
)

type policyRequest struct {
	keyring.PolicyChange
	Target string `json:"target,omitempty"` // to attach to, or detach from
	sender
}

func (d *Door) policyPaths(mux *http.ServeMux) {
	keys := d.config.Keys
	mux.HandleFunc("POST "+policiesPath, d.wrap(func(r *http.Request, _ []byte) (any, error) { return keys.Policies(r.Context()) }))
	mux.HandleFunc("POST "+policyPath, d.wrap(func(r *http.Request, body []byte) (any, error) {
		in, err := read[policyRequest](body)
		if err != nil {
			return nil, err
		}
		return keys.Policy(r.Context(), in.Name)
	}))
	mux.HandleFunc("POST "+createPolicyPath, d.wrap(changing(d, "policies create", func(ctx context.Context, by access.Actor, in *policyRequest) (any, error) {
		return keys.CreatePolicy(ctx, by, in.PolicyChange)
	})))
	mux.HandleFunc("POST "+updatePolicyPath, d.wrap(changing(d, "policies update", func(ctx context.Context, by access.Actor, in *policyRequest) (any, error) {
		return keys.UpdatePolicy(ctx, by, in.Name, in.PolicyChange)
	})))
	mux.HandleFunc("POST "+deletePolicyPath, d.wrap(changing(d, "policies delete", func(ctx context.Context, by access.Actor, in *policyRequest) (any, error) {
		return struct{}{}, keys.DeletePolicy(ctx, by, in.Name)
	})))
	mux.HandleFunc("POST "+attachPolicyPath, d.wrap(changing(d, "policies attach", func(ctx context.Context, by access.Actor, in *policyRequest) (any, error) {
		return struct{}{}, keys.AttachPolicy(ctx, by, in.Name, in.Target)
	})))
	mux.HandleFunc("POST "+detachPolicyPath, d.wrap(changing(d, "policies detach", func(ctx context.Context, by access.Actor, in *policyRequest) (any, error) {
		return struct{}{}, keys.DetachPolicy(ctx, by, in.Name, in.Target)
	})))
	mux.HandleFunc("POST "+explainAccessPath, d.wrap(func(_ *http.Request, body []byte) (any, error) {
		in, err := read[keyring.AccessQuestion](body)
		if err != nil {
			return nil, err
		}
		return keys.ExplainAccess(in, d.config.RolesOf)
	}))
}

// Policies returns all policies by name, without their documents.
func (c *Client) Policies(ctx context.Context) (all []keyring.PolicyDocument, err error) {
	err = c.call(ctx, policiesPath, struct{}{}, &all)
	return all, err
}

// Policy returns a policy with its document.
func (c *Client) Policy(ctx context.Context, name string) (d keyring.PolicyDocument, err error) {
	err = c.call(ctx, policyPath, c.policy(keyring.PolicyChange{Name: name}, ""), &d)
	return d, err
}

// CreatePolicy creates a policy.
func (c *Client) CreatePolicy(ctx context.Context, x keyring.PolicyChange) (d keyring.PolicyDocument, err error) {
	err = c.call(ctx, createPolicyPath, c.policy(x, ""), &d)
	return d, err
}

// UpdatePolicy replaces the document of a policy.
func (c *Client) UpdatePolicy(ctx context.Context, x keyring.PolicyChange) (d keyring.PolicyDocument, err error) {
	err = c.call(ctx, updatePolicyPath, c.policy(x, ""), &d)
	return d, err
}

// DeletePolicy removes a policy that is attached to nothing.
func (c *Client) DeletePolicy(ctx context.Context, name string) error {
	return c.call(ctx, deletePolicyPath, c.policy(keyring.PolicyChange{Name: name}, ""), &struct{}{})
}

// AttachPolicy attaches a policy to a target. When it returns, the policy is in force at every door of the node.
func (c *Client) AttachPolicy(ctx context.Context, name, target string) error {
	return c.call(ctx, attachPolicyPath, c.policy(keyring.PolicyChange{Name: name}, target), &struct{}{})
}

// DetachPolicy detaches a policy from a target.
func (c *Client) DetachPolicy(ctx context.Context, name, target string) error {
	return c.call(ctx, detachPolicyPath, c.policy(keyring.PolicyChange{Name: name}, target), &struct{}{})
}

// ExplainAccess explains whether a principal may take an action.
func (c *Client) ExplainAccess(ctx context.Context, q keyring.AccessQuestion) (a keyring.AccessAnswer, err error) {
	err = c.call(ctx, explainAccessPath, q, &a)
	return a, err
}

func (c *Client) policy(x keyring.PolicyChange, target string) policyRequest {
	return policyRequest{x, target, c.sender()}
}
