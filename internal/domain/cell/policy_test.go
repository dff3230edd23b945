package cell

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/kernel"
)

func policyHall(t *testing.T) *world {
	w := newWorld(t, DefaultConfig())
	w.answers("raise the level", &kernel.RaiseLevel{To: w.cell.KnownLevel()}, 0)
	for _, id := range []string{"ann", "bob"} {
		w.answers("make a key", &access.CreateAccessKey{Key: access.Key{ID: id, Role: access.Admin}}, 0)
	}
	return w
}

func (w *world) attached() (all []string) {
	v := w.cell.View()
	for _, a := range v.PolicyAttachments() {
		all = append(all, a.Policy+" "+a.Target.String())
	}
	return all
}

func key(id string) access.Target { return access.Target{Kind: access.KeyTarget, Name: id} }

// A policy has versions, of which an update must name the present one, and stays as long as it is attached.
func TestPolicies(t *testing.T) {
	w := policyHall(t)
	check := w.answers
	role := access.Target{Kind: access.RoleTarget, Name: "backend"}
	group := access.Target{Kind: access.GroupTarget, Name: "Level Designers"}
	for _, name := range []string{"", "a b", "a/b", strings.Repeat("x", access.PolicyNameMax+1), "ä"} {
		check("a bad name", &access.CreatePolicy{Name: name, Text: "one"}, domain.Invalid)
	}
	for _, text := range []string{"", "\xff", strings.Repeat("x", access.PolicyTextMax+1)} {
		check("a bad text", &access.CreatePolicy{Name: "ci", Text: text}, domain.Invalid)
	}
	check("create", &access.CreatePolicy{Name: "ci", Text: "one"}, 0)
	check("create it again", &access.CreatePolicy{Name: "ci", Text: "one"}, 0)
	check("create another one of the name", &access.CreatePolicy{Name: "ci", Text: "two"}, domain.Conflict)

	update := &access.UpdatePolicy{Name: "ci", Text: "two", Version: 1, By: access.Actor{Principal: "bob"}}
	check("update", update, 0)
	if p := update.Policy; p.Version != 2 || p.Text != "two" || p.UpdatedBy.Principal != "bob" {
		t.Errorf("updated: %+v", p)
	}
	check("update again", &access.UpdatePolicy{Name: "ci", Text: "two", Version: 1}, 0)
	check("update what somebody has changed", &access.UpdatePolicy{Name: "ci", Text: "three", Version: 1}, domain.Conflict)
	check("update without a version", &access.UpdatePolicy{Name: "ci", Text: "three"}, domain.Conflict)
	check("update another one", &access.UpdatePolicy{Name: "qa", Text: "three", Version: 1}, domain.NotFound)

	check("attach another one", &access.AttachPolicy{Policy: "qa", Target: role}, domain.NotFound)
	for _, bad := range []access.Target{{}, {Kind: 9, Name: "x"}, {Kind: access.RoleTarget, Name: "root"}, {Kind: access.GroupTarget}, {Kind: access.GroupTarget, Name: "a\nb"}} {
		check("attach to "+bad.String(), &access.AttachPolicy{Policy: "ci", Target: bad}, domain.Invalid)
	}
	check("attach to no key", &access.AttachPolicy{Policy: "ci", Target: key("eve")}, domain.NotFound)
	for _, target := range []access.Target{role, group, key("ann"), key("ann"), key("bob")} {
		check("attach", &access.AttachPolicy{Policy: "ci", Target: target}, 0)
	}
	check("delete what is attached", &access.DeletePolicy{Name: "ci"}, domain.Conflict)
	check("detach", &access.DetachPolicy{Policy: "ci", Target: role}, 0)
	check("detach again", &access.DetachPolicy{Policy: "ci", Target: role}, domain.NotFound)
	check("revoke a key", &access.RevokeAccessKey{ID: "bob"}, 0)
	check("attach to a revoked key", &access.AttachPolicy{Policy: "ci", Target: key("bob")}, domain.Conflict)
	if got, want := w.attached(), []string{"ci group:Level Designers", "ci key:ann"}; !slices.Equal(got, want) {
		t.Errorf("attached %q, want %q", got, want)
	}

	var stored bytes.Buffer
	if err := w.cell.Freeze().Write(&stored); err != nil {
		t.Fatal(err)
	}
	loaded := New(DefaultConfig())
	if err := loaded.Load(&stored); err != nil {
		t.Fatal(err)
	}
	was, is := w.cell.View(), loaded.View()
	if !slices.Equal(is.Policies(), was.Policies()) || !slices.Equal(is.PolicyAttachments(), was.PolicyAttachments()) {
		t.Errorf("the snapshot has %+v, %+v", is.Policies(), is.PolicyAttachments())
	}

	for _, target := range []access.Target{group, key("ann")} {
		check("detach", &access.DetachPolicy{Policy: "ci", Target: target}, 0)
	}
	check("delete", &access.DeletePolicy{Name: "ci"}, 0)
	check("delete again", &access.DeletePolicy{Name: "ci"}, domain.NotFound)
}

func TestPolicyLimits(t *testing.T) {
	w := policyHall(t)
	for i := range access.PoliciesMax {
		w.answers("create", &access.CreatePolicy{Name: fmt.Sprint("p", i), Text: "one"}, 0)
	}
	w.answers("one policy too many", &access.CreatePolicy{Name: "more", Text: "one"}, domain.LimitExceeded)
	for i := range access.AttachmentsOfTargetMax {
		w.answers("attach", &access.AttachPolicy{Policy: fmt.Sprint("p", i), Target: key("ann")}, 0)
	}
	w.answers("one too many for the key", &access.AttachPolicy{Policy: "p100", Target: key("ann")}, domain.LimitExceeded)
	w.answers("one that it has", &access.AttachPolicy{Policy: "p0", Target: key("ann")}, 0)
	for i := range access.AttachmentsMax - access.AttachmentsOfTargetMax {
		w.answers("attach", &access.AttachPolicy{Policy: fmt.Sprint("p", i%10), Target: access.Target{Kind: access.GroupTarget, Name: fmt.Sprint("group-", i/10)}}, 0)
	}
	w.answers("one attachment too many", &access.AttachPolicy{Policy: "p0", Target: access.Target{Kind: access.GroupTarget, Name: "more"}}, domain.LimitExceeded)
}

// The audit log has what a change of a policy or of a target did.
func TestPoliciesAreAudited(t *testing.T) {
	w := policyHall(t)
	w.must(given(&access.CreatePolicy{Name: "ci", Text: "one"}))
	w.must(given(&access.UpdatePolicy{Name: "ci", Text: "two", Version: 1}))
	w.must(given(&access.AttachPolicy{Policy: "ci", Target: key("ann")}))
	var got []string
	for _, e := range w.log() {
		line := e.Kind + " " + e.ID
		for _, c := range e.Changes {
			if c.Field != "SHA256" {
				line += fmt.Sprintf(" %s:%q>%q", c.Field, c.Before, c.After)
			}
		}
		got = append(got, line)
	}
	want := []string{`policy ci Text:"">"one" Version:"">"1"`, `policy ci Text:"one">"two" Version:"1">"2"`, `access key ann Policies:"">"ci"`}
	if !slices.Equal(got, want) {
		t.Errorf("entries\n%s, want\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
