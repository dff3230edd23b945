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
	d.handle("POST "+PoliciesPath, d.forAdmins(change, d.createPolicy))
	d.handle("GET policies/{name}", d.forAdmins(change, d.showPolicy))
	d.handle("POST policies/{name}/update", d.forAdmins(change, d.updatePolicy))
	d.handle("POST policies/{name}/delete", d.forAdmins(change, d.deletePolicy))
	d.handle("POST policies/{name}/attach", d.forAdmins(change, d.attachPolicy))
	d.handle("POST policies/{name}/detach", d.forAdmins(change, d.detachPolicy))
	d.handle("GET "+ExplainAccessPath, d.forAdmins("ask what others may do", d.explainAccess))
}

func (d *Door) listPolicies(w http.ResponseWriter, r *http.Request, _ access.Actor, _ []byte) error {
	all, err := d.config.Keys.Policies(r.Context())
	if err == nil {
		answer(w, http.StatusOK, PolicyList{all})
	}
	return err
}

func (d *Door) showPolicy(w http.ResponseWriter, r *http.Request, _ access.Actor, _ []byte) error {
	p, err := d.config.Keys.Policy(r.Context(), r.PathValue("name"))
	if err == nil {
		answer(w, http.StatusOK, p)
	}
	return err
}

func (d *Door) createPolicy(w http.ResponseWriter, r *http.Request, by access.Actor, body []byte) error {
	var in keyring.PolicyChange
	if err := readKeyBody(body, &in); err != nil {
		return err
	}
	p, err := d.config.Keys.CreatePolicy(r.Context(), by, in)
	if err == nil {
		answer(w, http.StatusCreated, p)
	}
	return err
}

func (d *Door) updatePolicy(w http.ResponseWriter, r *http.Request, by access.Actor, body []byte) error {
	var in keyring.PolicyChange
	if err := readKeyBody(body, &in); err != nil {
		return err
	}
	p, err := d.config.Keys.UpdatePolicy(r.Context(), by, r.PathValue("name"), in)
	if err == nil {
		answer(w, http.StatusOK, p)
	}
	return err
}

func (d *Door) deletePolicy(w http.ResponseWriter, r *http.Request, by access.Actor, body []byte) error {
	if err := readKeyBody(body, &struct{}{}); err != nil {
		return err
	}
	err := d.config.Keys.DeletePolicy(r.Context(), by, r.PathValue("name"))
	if err == nil {
		answer(w, http.StatusOK, struct{}{})
	}
	return err
}

func (d *Door) attachPolicy(w http.ResponseWriter, r *http.Request, by access.Actor, body []byte) error {
	var in PolicyTarget
	if err := readKeyBody(body, &in); err != nil {
		return err
	}
	err := d.config.Keys.AttachPolicy(r.Context(), by, r.PathValue("name"), in.Target)
	if err == nil {
		answer(w, http.StatusOK, struct{}{})
	}
	return err
}

func (d *Door) detachPolicy(w http.ResponseWriter, r *http.Request, by access.Actor, body []byte) error {
	var in PolicyTarget
	if err := readKeyBody(body, &in); err != nil {
		return err
	}
	err := d.config.Keys.DetachPolicy(r.Context(), by, r.PathValue("name"), in.Target)
	if err == nil {
		answer(w, http.StatusOK, struct{}{})
	}
	return err
}

func (d *Door) explainAccess(w http.ResponseWriter, r *http.Request, _ access.Actor, _ []byte) error {
	q := r.URL.Query()
	a, err := d.config.Keys.ExplainAccess(keyring.AccessQuestion{
		Who: q.Get("who"), Action: q.Get("action"), Resource: q.Get("resource"), SourceIP: q.Get("source-ip"), Tags: q["tag"], NewTags: q["request-tag"],
	}, d.config.RolesOf)
	if err == nil {
		answer(w, http.StatusOK, a)
	}
	return err
}
