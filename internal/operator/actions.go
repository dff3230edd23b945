package operator

import (
	"net/http"
	"strings"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/permit"
	"github.com/musterhq/muster/internal/policy"
)

// call is a request's policy action and the roles that may make it.
type call struct {
	action policy.Action
	may    identity.Roles
}

// calls lists every request of this door by pattern. Their resource is policy.AnyResource, except for those in resources.
var calls = map[string]call{
	"GET " + FeedPath:                     {policy.MustBe("muster:Service.Feed"), identity.MayLook},
	"GET logs/{id...}":                    {policy.MustBe(policy.ReadOutput), identity.MayLook},
	"POST computes/rotate-token":          {policy.MustBe("muster:Service.RotateComputeToken"), identity.MayAdminister},
	"POST console/links":                  {policy.MustBe("muster:Service.CreateConsoleLink"), identity.MayLook},
	"GET keys":                            {policy.MustBe("muster:Service.ListKeys"), identity.MayAdminister},
	"POST keys":                           {policy.MustBe("muster:Service.CreateKey"), identity.MayAdminister},
	"POST keys/{id}/rotate":               {policy.MustBe("muster:Service.RotateKey"), identity.MayAdminister},
	"POST keys/{id}/finish-rotation":      {policy.MustBe("muster:Service.RevokeKey"), identity.MayAdminister},
	"POST keys/{id}/revoke":               {policy.MustBe("muster:Service.RevokeKey"), identity.MayAdminister},
	"POST keys/{id}/limit":                {policy.MustBe("muster:Service.LimitKey"), identity.MayAdminister},
	"POST keys/revoke-credentials":        {policy.MustBe("muster:Service.RevokeCredentials"), identity.MayAdminister},
	"GET " + SecretPath:                   {policy.MustBe("muster:Service.ListSecrets"), identity.MayAdminister},
	"POST secret/rotate":                  {policy.MustBe("muster:Service.RotateSecret"), identity.MayAdminister},
	"POST secret/{number}/retire":         {policy.MustBe("muster:Service.RetireSecret"), identity.MayAdminister},
	"GET " + PoliciesPath:                 {policy.MustBe("muster:Service.ListPolicies"), identity.MayAdminister},
	"POST " + PoliciesPath:                {policy.MustBe("muster:Service.CreatePolicy"), identity.MayAdminister},
	"GET policies/{name}":                 {policy.MustBe("muster:Service.ShowPolicy"), identity.MayAdminister},
	"POST policies/{name}/update":         {policy.MustBe("muster:Service.UpdatePolicy"), identity.MayAdminister},
	"POST policies/{name}/delete":         {policy.MustBe("muster:Service.DeletePolicy"), identity.MayAdminister},
	"POST policies/{name}/attach":         {policy.MustBe("muster:Service.AttachPolicy"), identity.MayAdminister},
	"POST policies/{name}/detach":         {policy.MustBe("muster:Service.DetachPolicy"), identity.MayAdminister},
	"GET " + ExplainAccessPath:            {policy.MustBe("muster:Service.ExplainAccess"), identity.MayAdminister},
	"GET hosts":                           {policy.MustBe("muster:Service.ListHosts"), identity.MayLook},
	"POST hosts/tokens":                   {policy.MustBe("muster:Service.CreateHostToken"), identity.MayAdminister},
	"POST hosts/tokens/{id}/revoke":       {policy.MustBe("muster:Service.RevokeHostToken"), identity.MayAdminister},
	"POST hosts/tokens/{id}/revoke-hosts": {policy.MustBe("muster:Service.RevokeHost"), identity.MayAdminister},
	"POST hosts/{host}/revoke":            {policy.MustBe("muster:Service.RevokeHost"), identity.MayAdminister},
	"POST hosts/{host}/drain":             {policy.MustBe("muster:Service.DrainHost"), identity.MayAdminister},
	"GET rollouts":                        {policy.MustBe("muster:Service.ListRollouts"), identity.MayLook},
	"POST rollouts":                       {policy.MustBe("muster:Service.StartRollout"), identity.MayAdminister},
	"POST rollouts/undo":                  {policy.MustBe("muster:Service.UndoRollout"), identity.MayAdminister},
	"GET " + AuditPath:                    {policy.MustBe("muster:Service.ListAudit"), identity.MayAdminister},
	"GET " + AuditPath + "/verify":        {policy.MustBe("muster:Service.VerifyAudit"), identity.MayAdminister},
	"GET " + OverviewPath:                 {policy.MustBe("muster:Service.Overview"), identity.MayLook},

	"POST " + SupportBundlePath: {policy.MustBe("muster:Service.CreateSupportBundle"), identity.MayAdminister},
	"POST " + ReloadPath:        {policy.MustBe("muster:Service.ReloadSettings"), identity.MayAdminister},

	"GET people":                                     {policy.MustBe("muster:Service.ListPeople"), identity.MayAdminister},
	"POST people":                                    {policy.MustBe("muster:Service.AddPerson"), identity.MayAdminister},
	"POST people/end-sessions":                       {policy.MustBe("muster:Service.EndSignIns"), identity.MayAdminister},
	"POST people/{person}/groups":                    {policy.MustBe("muster:Service.ChangePerson"), identity.MayAdminister},
	"POST people/{person}/enrol":                     {policy.MustBe("muster:Service.EnrolPerson"), identity.MayAdminister},
	"POST people/{person}/remove":                    {policy.MustBe("muster:Service.RemovePerson"), identity.MayAdminister},
	"POST people/{person}/passkeys/{passkey}/remove": {policy.MustBe("muster:Service.RemovePasskey"), identity.MayAdminister},

	"GET " + OverviewPath + "/fleets/{id}":           {policy.MustBe("muster:Service.Overview"), identity.MayLook},
	"GET " + OverviewPath + "/game-sessions/{id...}": {policy.MustBe("muster:Service.Overview"), identity.MayLook},
	"GET " + OverviewPath + "/queues/{id}":           {policy.MustBe("muster:Service.Overview"), identity.MayLook},
	"GET " + OverviewPath + "/players/{id...}":       {policy.MustBe("muster:Service.Overview"), identity.MayLook},
	"GET " + FindPath + "/{id...}":                   {policy.MustBe("muster:Service.Find"), identity.MayLook},
	"GET explain/{kind}/{id...}":                     {policy.MustBe("muster:Service.Explain"), identity.MayLook},
}

// seconds lists the requests that need permission for a second action besides the one in calls.
var seconds = map[string]policy.Action{
	"POST hosts/tokens/{id}/revoke-hosts": policy.MustBe("muster:Service.RevokeHostToken"),
}

// resources lists the requests that change fleets and aliases, with functions that name the resources. If such a function names
// none, the resource is policy.AnyResource.
var resources = map[string]func(q *permit.Request, r *http.Request, body []byte){
	"POST computes/rotate-token": func(q *permit.Request, r *http.Request, _ []byte) { nameFleet(q, r.URL.Query().Get("fleet")) },
	"POST rollouts": func(q *permit.Request, _ *http.Request, body []byte) {
		var in NewRollout
		if readKeyBody(body, &in) == nil && in.Alias != "" {
			q.Name(permit.AliasNamed, in.Alias)
			nameFleet(q, in.To)
		}
	},
	"POST rollouts/undo": func(q *permit.Request, _ *http.Request, body []byte) {
		var in RolloutUndo
		if readKeyBody(body, &in) == nil && in.Alias != "" {
			q.Name(permit.AliasNamed, in.Alias)
		}
	},
	"POST hosts/tokens": func(q *permit.Request, _ *http.Request, body []byte) {
		var in NewHostToken
		if readKeyBody(body, &in) == nil {
			nameFleet(q, in.Fleet)
		}
	},
}

func nameFleet(q *permit.Request, idOrARN string) {
	if idOrARN == "" {
		return
	}
	q.Name(permit.Fleet, idOrARN[strings.LastIndexByte(idOrARN, '/')+1:])
}

// Actions returns the actions of this door, with the roles that may take them.
func Actions() map[policy.Action]identity.Roles {
	all := map[policy.Action]identity.Roles{}
	for _, c := range calls {
		all[c.action] = c.may
	}
	return all
}

// handle serves a request by its method and path without Prefix. h authorizes the request. It panics if the pattern is not in calls.
func (d *Door) handle(pattern string, h http.HandlerFunc) { d.handleAs(pattern, pattern, h) }

// handleAs is handle for a pattern that has another name in calls.
func (d *Door) handleAs(name, pattern string, h http.HandlerFunc) {
	c, ok := calls[name]
	if !ok {
		panic("operator: no action for " + name)
	}
	method, path, _ := strings.Cut(pattern, " ")
	d.routes.HandleFunc(method+" "+Prefix+path, h)
	d.actions[method+" "+Prefix+path] = named{c.action, seconds[name], resources[name]}
}

// named is a request's action, a second one or none, and the function that names its resources; nil: none.
type named struct {
	action    policy.Action
	second    policy.Action
	resources func(q *permit.Request, r *http.Request, body []byte)
}

// mayDo checks the principal's policies for a request.
func (d *Door) mayDo(r *http.Request, by *identity.Principal, body []byte) error {
	if !by.Restricted() {
		return nil
	}
	x, ok := d.actions[r.Pattern]
	if !ok { // not a request of this door, which will answer so
		return nil
	}
	q := permit.Request{By: by, Engine: d.engine}
	if x.resources != nil {
		x.resources(&q, r, body)
	}
	err := q.May(r.Context(), x.action)
	if err == nil && x.second != 0 {
		err = q.May(r.Context(), x.second)
	}
	return err
}
