package operator

import (
	"net/http"
	"strings"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/policy"
)

// call is what policies call a request, and the roles that may make it.
type call struct {
	action policy.Action
	may    identity.Roles
}

// calls has every request of this door, by its pattern. Their resource is policy.AnyResource.
var calls = map[string]call{
	"GET " + FeedPath:               {policy.MustBe("muster:Service.Feed"), identity.MayLook},
	"GET logs/{id...}":              {policy.MustBe("muster:Service.ReadOutput"), identity.MayLook},
	"POST computes/rotate-token":    {policy.MustBe("muster:Service.RotateComputeToken"), identity.MayAdminister},
	"POST console/links":            {policy.MustBe("muster:Service.CreateConsoleLink"), identity.MayLook},
	"GET keys":                      {policy.MustBe("muster:Service.ListKeys"), identity.MayAdminister},
	"POST keys":                     {policy.MustBe("muster:Service.CreateKey"), identity.MayAdminister},
	"POST keys/{id}/revoke":         {policy.MustBe("muster:Service.RevokeKey"), identity.MayAdminister},
	"POST keys/revoke-credentials":  {policy.MustBe("muster:Service.RevokeCredentials"), identity.MayAdminister},
	"GET " + PoliciesPath:           {policy.MustBe("muster:Service.ListPolicies"), identity.MayAdminister},
	"POST " + PoliciesPath:          {policy.MustBe("muster:Service.CreatePolicy"), identity.MayAdminister},
	"GET policies/{name}":           {policy.MustBe("muster:Service.ShowPolicy"), identity.MayAdminister},
	"POST policies/{name}/update":   {policy.MustBe("muster:Service.UpdatePolicy"), identity.MayAdminister},
	"POST policies/{name}/delete":   {policy.MustBe("muster:Service.DeletePolicy"), identity.MayAdminister},
	"POST policies/{name}/attach":   {policy.MustBe("muster:Service.AttachPolicy"), identity.MayAdminister},
	"POST policies/{name}/detach":   {policy.MustBe("muster:Service.DetachPolicy"), identity.MayAdminister},
	"GET " + ExplainAccessPath:      {policy.MustBe("muster:Service.ExplainAccess"), identity.MayAdminister},
	"GET hosts":                     {policy.MustBe("muster:Service.ListHosts"), identity.MayLook},
	"POST hosts/tokens":             {policy.MustBe("muster:Service.CreateHostToken"), identity.MayAdminister},
	"POST hosts/tokens/{id}/revoke": {policy.MustBe("muster:Service.RevokeHostToken"), identity.MayAdminister},
	"POST hosts/{host}/revoke":      {policy.MustBe("muster:Service.RevokeHost"), identity.MayAdminister},
	"POST hosts/{host}/drain":       {policy.MustBe("muster:Service.DrainHost"), identity.MayAdminister},
	"GET rollouts":                  {policy.MustBe("muster:Service.ListRollouts"), identity.MayLook},
	"POST rollouts":                 {policy.MustBe("muster:Service.StartRollout"), identity.MayAdminister},
	"POST rollouts/undo":            {policy.MustBe("muster:Service.UndoRollout"), identity.MayAdminister},
	"GET " + AuditPath:              {policy.MustBe("muster:Service.ListAudit"), identity.MayAdminister},
	"GET " + AuditPath + "/verify":  {policy.MustBe("muster:Service.VerifyAudit"), identity.MayAdminister},
	"GET " + OverviewPath:           {policy.MustBe("muster:Service.Overview"), identity.MayLook},

	"GET " + OverviewPath + "/fleets/{id}":           {policy.MustBe("muster:Service.Overview"), identity.MayLook},
	"GET " + OverviewPath + "/game-sessions/{id...}": {policy.MustBe("muster:Service.Overview"), identity.MayLook},
	"GET " + OverviewPath + "/queues/{id}":           {policy.MustBe("muster:Service.Overview"), identity.MayLook},
	"GET " + OverviewPath + "/players/{id...}":       {policy.MustBe("muster:Service.Overview"), identity.MayLook},
	"GET " + FindPath + "/{id...}":                   {policy.MustBe("muster:Service.Find"), identity.MayLook},
	"GET explain/{kind}/{id...}":                     {policy.MustBe("muster:Service.Explain"), identity.MayLook},
}

// Actions returns the actions of this door, with the roles that may take them.
func Actions() map[policy.Action]identity.Roles {
	all := map[policy.Action]identity.Roles{}
	for _, c := range calls {
		all[c.action] = c.may
	}
	return all
}

// handle serves a request by its method and path without Prefix. It panics if calls does not have it.
func (d *Door) handle(pattern string, h http.HandlerFunc) { d.handleAs(pattern, pattern, h) }

// handleAs is handle for a pattern that calls has under another name.
func (d *Door) handleAs(name, pattern string, h http.HandlerFunc) {
	c, ok := calls[name]
	if !ok {
		panic("operator: no action for " + name)
	}
	method, path, _ := strings.Cut(pattern, " ")
	d.routes.HandleFunc(method+" "+Prefix+path, h)
	d.actions[method+" "+Prefix+path] = c.action
}

// mayDo asks the policies of the principal about a request.
func (d *Door) mayDo(r *http.Request, by *identity.Principal) error {
	if !by.Restricted() {
		return nil
	}
	_, pattern := d.routes.Handler(r)
	action, ok := d.actions[pattern]
	if !ok { // no request of this door: it answers that
		return nil
	}
	return by.MayDo(policy.Request{Action: action, Resource: policy.AnyResource})
}
