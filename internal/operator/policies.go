package operator

import (
	"net/http"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/keyring"
)

const (
	// PoliciesPath is the path where GET lists policies, and POST creates one. GET PoliciesPath/NAME returns one with its document; POST
	// PoliciesPath/NAME/update, delete, attach and detach change it.
	PoliciesPath = "policies"
	// ExplainAccessPath is the path where GET explains whether a principal may do something. The query names who, action and resource, and may have
	// source-ip, tag=KEY=VALUE and request-tag=KEY=VALUE.
	ExplainAccessPath = "access/explain"
)

// PolicyList is the answer to GET policies.
type PolicyList struct {
	Policies []keyring.PolicyDocument `json:"policies"`
}

// PolicyTarget is the body of POST policies/{name}/attach and detach.
type PolicyTarget struct {
	Target string `json:"target"` // key:ID, role:NAME, group:NAME, or the id of a key
}

// policyRoutes registers the paths of policies. Only administrators may read policies, because they reveal what others may do.
func (d *Door) policyRoutes() {
	const change = "change policies"
	d.handle("GET "+PoliciesPath, d.forAdmins(change, d.listPolicies))
	d.handle("POST "+PoliciesPath, d.forAdmins(change, changing(http.StatusCreated, d.createPolicy)))
	d.handle("GET policies/{name}", d.forAdmins(change, d.showPolicy))
	d.handle("POST policies/{name}/update", d.forAdmins(change, changing(http.StatusOK, d.updatePolicy)))
	d.handle("POST policies/{name}/delete", d.forAdmins(change, changing(http.StatusOK, d.deletePolicy)))
	d.handle("POST policies/{name}/attach", d.forAdmins(change, changing(http.StatusOK, d.attachPolicy)))
	d.handle("POST policies/{name}/detach", d.forAdmins(change, changing(http.StatusOK, d.detachPolicy)))
	d.handle("GET "+ExplainAccessPath, d.forAdmins("ask what others may do", d.explainAccess))
}

func (d *Door) listPolicies(w http.ResponseWriter, r *http.Request, _ access.Actor, _ []byte) error {
	all, err := d.config.Keys.Policies(r.Context())
	return reply(w, http.StatusOK, PolicyList{all}, err)
}

func (d *Door) showPolicy(w http.ResponseWriter, r *http.Request, _ access.Actor, _ []byte) error {
	p, err := d.config.Keys.Policy(r.Context(), r.PathValue("name"))
	return reply(w, http.StatusOK, p, err)
}

func (d *Door) createPolicy(r *http.Request, by access.Actor, in *keyring.PolicyChange) (any, error) {
	return d.config.Keys.CreatePolicy(r.Context(), by, *in)
}

func (d *Door) updatePolicy(r *http.Request, by access.Actor, in *keyring.PolicyChange) (any, error) {
	return d.config.Keys.UpdatePolicy(r.Context(), by, r.PathValue("name"), *in)
}

func (d *Door) deletePolicy(r *http.Request, by access.Actor, _ *struct{}) (any, error) {
	return struct{}{}, d.config.Keys.DeletePolicy(r.Context(), by, r.PathValue("name"))
}

func (d *Door) attachPolicy(r *http.Request, by access.Actor, in *PolicyTarget) (any, error) {
	return struct{}{}, d.config.Keys.AttachPolicy(r.Context(), by, r.PathValue("name"), in.Target)
}

func (d *Door) detachPolicy(r *http.Request, by access.Actor, in *PolicyTarget) (any, error) {
	return struct{}{}, d.config.Keys.DetachPolicy(r.Context(), by, r.PathValue("name"), in.Target)
}

func (d *Door) explainAccess(w http.ResponseWriter, r *http.Request, _ access.Actor, _ []byte) error {
	q := r.URL.Query()
	a, err := d.config.Keys.ExplainAccess(keyring.AccessQuestion{
		Who: q.Get("who"), Action: q.Get("action"), Resource: q.Get("resource"), SourceIP: q.Get("source-ip"), Tags: q["tag"], NewTags: q["request-tag"],
	}, d.config.RolesOf)
	return reply(w, http.StatusOK, a, err)
}
