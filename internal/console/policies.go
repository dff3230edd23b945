package console

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/policy"
)

// policyEditorPage is the template of the editor of policies.
const policyEditorPage = "policy-editor"

// policyList lists all policies by name.
var policyList = list[keyring.PolicyDocument]{
	name: "policies", label: "Policies", most: access.PoliciesMax, empty: "There are no policies: only the roles decide.",
	columns: []column[keyring.PolicyDocument]{
		{name: "name", head: "Policy", value: func(p *keyring.PolicyDocument) value { return linked(p.Name, policyPath(p.Name)) }},
		{name: "version", head: "Version", value: func(p *keyring.PolicyDocument) value { return number(int(p.Version)) }},
		{name: "attached", head: "Attached to", value: func(p *keyring.PolicyDocument) value { return several(p.Attached) }},
		{name: "updated", head: "Changed", value: func(p *keyring.PolicyDocument) value { return moment(p.Updated) }},
		{name: "updated-by", head: "Changed by", value: func(p *keyring.PolicyDocument) value { return words(p.UpdatedBy.String()) }},
		{name: "created", head: "Created", hidden: true, value: func(p *keyring.PolicyDocument) value { return moment(p.Created) }},
		{name: "created-by", head: "Created by", hidden: true, value: func(p *keyring.PolicyDocument) value { return words(p.CreatedBy.String()) }},
	},
	id: func(p *keyring.PolicyDocument) string { return p.Name },
	offers: func(p *keyring.PolicyDocument) []offered {
		return []offered{{action: "change-policy", id: p.Name}, {action: "attach-policy", id: p.Name}, {action: "delete-policy", id: p.Name}}
	},
	rows: func(d *Door, r *http.Request, query url.Values, most int) (all []keyring.PolicyDocument, next url.Values, err error) {
		if err := d.forAdmins(r, "policies", "muster:Service.ListPolicies"); err != nil {
			return nil, nil, err
		}
		if all, err = d.config.Keyring.Policies(r.Context()); err != nil {
			return nil, nil, err
		}
		all = slices.DeleteFunc(all, func(p keyring.PolicyDocument) bool { return p.Name <= query.Get("after") })
		all, next = cut(all, most, func(p *keyring.PolicyDocument) url.Values { return after(p.Name) })
		return all, next, nil
	},
}

// policyPath returns the path of a policy's page below Prefix.
func policyPath(name string) string { return "policies/" + url.PathEscape(name) }

// policyView is the page of a policy.
type policyView struct {
	keyring.PolicyDocument
	Text string
}

// policyPage shows a policy with its document and its attachments.
func (d *Door) policyPage(r *http.Request) (*content, error) {
	if err := d.forAdmins(r, "policies", "muster:Service.ShowPolicy"); err != nil {
		return nil, err
	}
	p, err := d.config.Keyring.Policy(r.Context(), r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	return &content{Title: "Policy " + p.Name, Section: "policies", page: "policy", Data: &policyView{p, string(p.Document)}, Command: "muster policies show " + shellWord(p.Name)}, nil
}

// accessView is the page that explains who may do what.
type accessView struct {
	Who, Action, Resource, Source, Tags string
	Actions                             []string
	Problem                             string // of the question; empty: none
	Answer                              *keyring.AccessAnswer
}

// access answers who may do what, and why.
func (d *Door) access(r *http.Request) (*content, error) {
	if err := d.forAdmins(r, "policies", "muster:Service.ExplainAccess"); err != nil {
		return nil, err
	}
	q := r.URL.Query()
	trimmed := func(name string) string { return strings.TrimSpace(q.Get(name)) }
	x := &accessView{Who: trimmed("who"), Action: trimmed("action"), Resource: trimmed("resource"), Source: trimmed("source"), Tags: trimmed("tags"), Actions: policy.Actions()}
	var tags []string
	if x.Tags != "" {
		for tag := range strings.SplitSeq(x.Tags, ",") {
			tags = append(tags, strings.TrimSpace(tag))
		}
	}
	resource := x.Resource
	if resource == "" {
		resource = policy.AnyResource
	}
	command := []option{{"--source-ip", x.Source, ""}}
	for _, tag := range tags {
		command = append(command, option{"--tag", tag, ""})
	}
	who, action := "WHO", "ACTION"
	if x.Who != "" {
		who = shellWord(x.Who)
	}
	if x.Action != "" {
		action = shellWord(x.Action)
	}
	c := &content{Title: "Who may do what", Section: "policies", page: "access", Still: true, Data: x, Command: terminal("muster access explain "+who+" "+action+" "+shellWord(resource), command...)}
	if x.Who == "" && x.Action == "" {
		return c, nil
	}
	answer, err := d.config.Keyring.ExplainAccess(keyring.AccessQuestion{Who: x.Who, Action: x.Action, Resource: resource, SourceIP: x.Source, Tags: tags}, d.config.RolesOf)
	if refused, ok := errors.AsType[*domain.Refusal](err); ok {
		x.Problem = capital(refused.Detail) + "."
		return c, nil
	}
	x.Answer = &answer
	return c, err
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// policyEditor is the content of the policy editor: the form, and the mistakes in the document.
type policyEditor struct {
	*actionPage
	Findings []policyMark
}

// Field returns a field for the template.
func (e *policyEditor) Field(name string) *field { return e.field(name) }

// Named reports whether the form asks for a name.
func (e *policyEditor) Named() bool {
	return slices.ContainsFunc(e.Fields, func(x *field) bool { return x.Name == "name" })
}

// Seen returns the hidden field with the policy as it was when the form was made; nil for a new one.
func (e *policyEditor) Seen() *field {
	if e.Now == "" {
		return nil
	}
	return e.field(seenField)
}

// policyMark is a mistake and its position in the document.
type policyMark struct {
	Line, Column int
	Problem      string
	Before, At   string // the line before the mistake, and from it on
}

// mistakesIn returns the mistakes in a document: at most one, because the parser stops at the first.
func mistakesIn(document string) []policyMark {
	_, err := policy.Parse(document)
	mistake, ok := errors.AsType[*policy.Mistake](err)
	if !ok {
		return nil
	}
	x := policyMark{Problem: mistake.Error()}
	x.Line, x.Column = mistake.Place(document)
	lines := strings.Split(document, "\n")
	line := []rune(lines[min(x.Line, len(lines))-1])
	at := min(x.Column-1, len(line))
	x.Before, x.At = string(line[max(0, at-excerptMax):at]), string(line[at:min(len(line), at+excerptMax)])
	return []policyMark{x}
}

func (d *Door) writePolicyEditor(w http.ResponseWriter, r *http.Request, status int, p *actionPage, by identity.AccessKey) {
	e := &policyEditor{p, mistakesIn(p.value("body"))}
	d.write(w, r, status, &content{Title: e.Title, Section: "policies", page: policyEditorPage, Editor: true, Data: e}, by)
}

// checkPolicy shows the mistakes in a document while a person writes it. It changes nothing.
func (d *Door) checkPolicy(w http.ResponseWriter, r *http.Request, by identity.AccessKey) {
	if !d.ownPage(r) {
		d.write(w, r, http.StatusForbidden, &content{Title: http.StatusText(http.StatusForbidden), page: "refusal", Data: "A page of another site sent this form. Nothing was checked."}, by)
		return
	}
	values, err := readForm(w, r, formBytesMax)
	if err != nil {
		d.refuse(w, r, err, by)
		return
	}
	a := actions["create-policy"]
	f := &form{Title: a.text, Fields: policyFields("", values.Get("body"))}
	f.finish()
	f.fill(url.Values{"name": {values.Get("name")}, reasonField: {values.Get(reasonField)}})
	d.writePolicyEditor(w, r, http.StatusOK, &actionPage{form: f, Text: a.text, Path: Prefix + "/do/" + a.name, Command: a.command(f), May: d.mayNot(a, by.Role)}, by)
}

// targetChoices returns suggestions for what a policy can be attached to.
func targetChoices(v *cell.View) (all []pick) {
	for _, role := range []access.Role{access.Admin, access.Backend, access.Client, access.ReadOnly} {
		all = append(all, pick{"role:" + role.String(), "all principals with the role " + role.String()})
	}
	all = append(all, pick{"host:" + access.EveryHost, "the agents of all hosts"})
	for _, k := range v.AccessKeys() {
		if k.Works() && len(all) < choicesMax {
			all = append(all, pick{"key:" + k.ID, strings.TrimSpace("access key " + k.Name)})
		}
	}
	return all
}
