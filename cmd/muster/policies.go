package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/localdoor"
	"github.com/musterhq/muster/internal/operator"
	"github.com/musterhq/muster/internal/policy"
)

type policiesCommand struct {
	Create policiesCreate `cmd:"" help:"Create a policy from a file. It takes effect once it is attached."`
	Update policiesUpdate `cmd:"" help:"Replace the document of a policy. It takes effect before the command returns."`
	Show   policiesShow   `cmd:"" help:"Show the document of a policy, and where it is attached."`
	List   policiesList   `cmd:"" help:"List all policies."`
	Delete policiesDelete `cmd:"" help:"Delete a policy that is attached to nothing."`
	Attach policiesAttach `cmd:"" help:"Attach a policy to an access key, a role or a group. From then on, everything that no policy allows is refused."`
	Detach policiesDetach `cmd:"" help:"Detach a policy from an access key, a role or a group."`
}

// policyDoor reads and changes the policies of a running service.
type policyDoor interface {
	Policies(ctx context.Context) ([]keyring.PolicyDocument, error)
	Policy(ctx context.Context, name string) (keyring.PolicyDocument, error)
	CreatePolicy(ctx context.Context, x keyring.PolicyChange) (keyring.PolicyDocument, error)
	UpdatePolicy(ctx context.Context, x keyring.PolicyChange) (keyring.PolicyDocument, error)
	DeletePolicy(ctx context.Context, name string) error
	AttachPolicy(ctx context.Context, name, target string) error
	DetachPolicy(ctx context.Context, name, target string) error
	ExplainAccess(ctx context.Context, q keyring.AccessQuestion) (keyring.AccessAnswer, error)
}

// policiesAt selects the service whose policies the command reads or changes. The service must run: without it there are no requests for policies to restrict.
type policiesAt struct{ runningService }

func (a *policiesAt) door(env environment, reason string) (policyDoor, error) {
	remote, local, err := a.reach(env, reason, "policies are changed while the service runs")
	switch {
	case err != nil:
		return nil, err
	case remote != nil:
		return &serverPolicies{*remote}, nil
	}
	return local, nil
}

var _ policyDoor = (*localdoor.Client)(nil)

// serverPolicies reaches the policies of a service over the network.
type serverPolicies struct{ remoteService }

func (s *serverPolicies) Policies(ctx context.Context) ([]keyring.PolicyDocument, error) {
	var all operator.PolicyList
	err := s.call(ctx, http.MethodGet, operator.PoliciesPath, nil, &all)
	return all.Policies, err
}

func (s *serverPolicies) Policy(ctx context.Context, name string) (d keyring.PolicyDocument, err error) {
	err = s.call(ctx, http.MethodGet, pathOfPolicy(name, ""), nil, &d)
	return d, err
}

func (s *serverPolicies) CreatePolicy(ctx context.Context, x keyring.PolicyChange) (d keyring.PolicyDocument, err error) {
	err = s.call(ctx, http.MethodPost, operator.PoliciesPath, x, &d)
	return d, err
}

func (s *serverPolicies) UpdatePolicy(ctx context.Context, x keyring.PolicyChange) (d keyring.PolicyDocument, err error) {
	path := pathOfPolicy(x.Name, "/update")
	x.Name = ""
	err = s.call(ctx, http.MethodPost, path, x, &d)
	return d, err
}

func (s *serverPolicies) DeletePolicy(ctx context.Context, name string) error {
	return s.call(ctx, http.MethodPost, pathOfPolicy(name, "/delete"), struct{}{}, &struct{}{})
}

func (s *serverPolicies) AttachPolicy(ctx context.Context, name, target string) error {
	return s.call(ctx, http.MethodPost, pathOfPolicy(name, "/attach"), operator.PolicyTarget{Target: target}, &struct{}{})
}

func (s *serverPolicies) DetachPolicy(ctx context.Context, name, target string) error {
	return s.call(ctx, http.MethodPost, pathOfPolicy(name, "/detach"), operator.PolicyTarget{Target: target}, &struct{}{})
}

func (s *serverPolicies) ExplainAccess(ctx context.Context, q keyring.AccessQuestion) (a keyring.AccessAnswer, err error) {
	query := url.Values{"who": {q.Who}, "action": {q.Action}, "resource": {q.Resource}, "source-ip": {q.SourceIP}, "tag": q.Tags, "request-tag": q.NewTags}
	err = s.call(ctx, http.MethodGet, operator.ExplainAccessPath+"?"+query.Encode(), nil, &a)
	return a, err
}

func pathOfPolicy(name, rest string) string {
	return operator.PoliciesPath + "/" + url.PathEscape(name) + rest
}

// policyFile is a document in a file or on standard input.
type policyFile struct {
	File string `arg:"" placeholder:"FILE" help:"File with the document, JSON; - is standard input."`
}

func (f *policyFile) read() (json.RawMessage, error) {
	var text []byte
	var err error
	if f.File == "-" {
		text, err = io.ReadAll(io.LimitReader(os.Stdin, policy.DocumentMax+1))
	} else {
		text, err = os.ReadFile(f.File)
	}
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	if _, err := policy.Parse(string(text)); err != nil { // the service would report the same without the file name
		return nil, fmt.Errorf("%s: %w", f.File, err)
	}
	return text, nil
}

type policiesCreate struct {
	policiesAt
	reasonFlag
	Name string `arg:"" help:"Name of the policy."`
	policyFile
}

func (c *policiesCreate) Run(ctx context.Context, stdout io.Writer, env environment) error {
	document, err := c.read()
	if err != nil {
		return err
	}
	door, err := c.door(env, c.Reason)
	if err != nil {
		return err
	}
	if _, err := door.CreatePolicy(ctx, keyring.PolicyChange{Name: c.Name, Document: document}); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "policy %s is created; attach it with `muster policies attach %[1]s TARGET`\n", c.Name)
	return err
}

type policiesUpdate struct {
	policiesAt
	reasonFlag
	Name string `arg:"" help:"Name of the policy."`
	policyFile
	Version *uint64 `placeholder:"NUMBER" help:"Version of the document that the new one is based on, as show prints it: the update is refused if the document has changed since. Default: the current one."`
}

func (c *policiesUpdate) Run(ctx context.Context, stdout io.Writer, env environment) error {
	document, err := c.read()
	if err != nil {
		return err
	}
	door, err := c.door(env, c.Reason)
	if err != nil {
		return err
	}
	if c.Version == nil {
		was, err := door.Policy(ctx, c.Name)
		if err != nil {
			return err
		}
		c.Version = &was.Version
	}
	p, err := door.UpdatePolicy(ctx, keyring.PolicyChange{Name: c.Name, Document: document, Version: *c.Version})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "policy %s is at version %d, and in force for %s\n", c.Name, p.Version, targets(p.Attached))
	return err
}

type policiesShow struct {
	policiesAt
	Name string `arg:"" help:"Name of the policy."`
}

// Run prints only the document to a pipe, so that it can be edited and passed to update.
func (c *policiesShow) Run(ctx context.Context, stdout io.Writer, env environment) error {
	door, err := c.door(env, "")
	if err != nil {
		return err
	}
	p, err := door.Policy(ctx, c.Name)
	if err != nil {
		return err
	}
	var shown bytes.Buffer
	if err := json.Indent(&shown, p.Document, "", "  "); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "version %d of %s, by %s; attached to %s\n", p.Version, p.Updated.Format(time.RFC3339), printable(p.UpdatedBy.String()), targets(p.Attached))
	_, err = fmt.Fprintln(stdout, shown.String())
	return err
}

func targets(attached []string) string {
	return cmp.Or(printable(strings.Join(attached, ", ")), "nothing")
}

type policiesList struct{ policiesAt }

func (c *policiesList) Run(ctx context.Context, stdout io.Writer, env environment) error {
	door, err := c.door(env, "")
	if err != nil {
		return err
	}
	all, err := door.Policies(ctx)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tVERSION\tUPDATED\tBY\tATTACHED TO")
	for _, p := range all {
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\n", p.Name, p.Version, p.Updated.Format(time.RFC3339), printable(p.UpdatedBy.String()), targets(p.Attached))
	}
	return table.Flush()
}

type policiesDelete struct {
	policiesAt
	reasonFlag
	Name string `arg:"" help:"Name of the policy."`
}

func (c *policiesDelete) Run(ctx context.Context, stdout io.Writer, env environment) error {
	door, err := c.door(env, c.Reason)
	if err != nil {
		return err
	}
	if err := door.DeletePolicy(ctx, c.Name); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "policy %s is deleted\n", c.Name)
	return err
}

// policyTarget names a policy, and the target to attach it to or detach it from.
type policyTarget struct {
	policiesAt
	reasonFlag
	Name   string `arg:"" help:"Name of the policy."`
	Target string `arg:"" help:"Id of an access key, role:NAME, group:NAME, host:ID, or host:* for all agents."`
}

func (c *policyTarget) change(ctx context.Context, stdout io.Writer, env environment, do func(d policyDoor, ctx context.Context, name, target string) error, now string) error {
	door, err := c.door(env, c.Reason)
	if err != nil {
		return err
	}
	if err := do(door, ctx, c.Name, c.Target); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "policy %s is %s for %s\n", c.Name, now, c.Target)
	return err
}

type policiesAttach struct{ policyTarget }

func (c *policiesAttach) Run(ctx context.Context, stdout io.Writer, env environment) error {
	return c.change(ctx, stdout, env, policyDoor.AttachPolicy, "in force")
}

type policiesDetach struct{ policyTarget }

func (c *policiesDetach) Run(ctx context.Context, stdout io.Writer, env environment) error {
	return c.change(ctx, stdout, env, policyDoor.DetachPolicy, "no longer in force")
}

type accessCommand struct {
	Explain accessExplain `cmd:"" help:"Show whether an access key, role or group may do something, and which role, policy and statement decides."`
	Actions accessActions `cmd:"" help:"List the actions that policies can name."`
}

type accessExplain struct {
	policiesAt
	Who        string   `arg:"" help:"Id of an access key, role:NAME, group:NAME, host:ID, or the ARN of a session."`
	Action     string   `arg:"" help:"Such as gamelift:CreateFleet."`
	Resource   string   `arg:"" default:"*" help:"ARN of the resource, or *."`
	SourceIP   string   `name:"source-ip" placeholder:"ADDRESS" help:"Address of the client."`
	Tag        []string `placeholder:"KEY=VALUE" sep:"none" help:"Tag of the resource."`
	RequestTag []string `name:"request-tag" placeholder:"KEY=VALUE" sep:"none" help:"Tag that the request gives to the resource."`
	Format     string   `enum:"text,json" default:"text" help:"text for people, json for programs."`
}

func (c *accessExplain) Run(ctx context.Context, stdout io.Writer, env environment) error {
	door, err := c.door(env, "")
	if err != nil {
		return err
	}
	a, err := door.ExplainAccess(ctx, keyring.AccessQuestion{Who: c.Who, Action: c.Action, Resource: c.Resource, SourceIP: c.SourceIP, Tags: c.Tag, NewTags: c.RequestTag})
	if err != nil {
		return err
	}
	if c.Format == "json" {
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(a)
	}
	verdict := "DENIED"
	if a.Allowed {
		verdict = "ALLOWED"
	}
	fmt.Fprintf(stdout, "%s  %s\n", verdict, printable(a.Why))
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "who\t%s\nrole\t%s\npolicies\t%s\n", printable(a.Who), cmp.Or(a.Role, "-"), cmp.Or(strings.Join(a.Policies, ", "), "-"))
	return table.Flush()
}

type accessActions struct{}

// Run prints the actions. It needs no service.
func (accessActions) Run(stdout io.Writer) error {
	_, err := fmt.Fprintln(stdout, strings.Join(policy.Actions(), "\n"))
	return err
}
