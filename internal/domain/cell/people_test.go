package cell

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/people"
)

// signing is a cell in which people sign in.
type signing struct {
	*testing.T
	*revoking
	made uint64
}

func newSigning(t *testing.T) *signing { return &signing{T: t, revoking: newRevoking(t)} }

func (x *signing) must(cmd kernel.Command) {
	x.Helper()
	if err := x.do(cmd); err != nil {
		x.Fatalf("%T: %v", cmd, err)
	}
	if err := checkPeople(x.Cell); err != nil {
		x.Fatal(err)
	}
	if err := checkDeadlines(x.Cell); err != nil {
		x.Fatal(err)
	}
}

func (x *signing) refuses(reason domain.Reason, cmd kernel.Command) {
	x.Helper()
	if refusal, ok := errors.AsType[*domain.Refusal](x.do(cmd)); !ok || refusal.Reason != reason {
		x.Errorf("%T: %v, want %v", cmd, refusal, reason)
	}
}

func (x *signing) id() domain.UUID {
	x.made++
	r := rand.New(rand.NewPCG(x.made, 1))
	var id domain.UUID
	for i := range id {
		id[i] = byte(r.Uint32())
	}
	return id
}

func (x *signing) start(provider, subject string) *people.StartSession {
	return &people.StartSession{
		SignIn: people.SignIn{ID: people.SignInID(x.id()).String(), Kind: people.Browser, Provider: provider, Subject: subject, Name: "Ann", Groups: []string{"ops", "dev", "ops"}, Roles: access.Roles(access.Backend)},
		Valid:  12 * time.Hour, Check: 15 * time.Minute,
	}
}

func (x *signing) signedIn(provider, subject string) people.SignIn {
	x.Helper()
	cmd := x.start(provider, subject)
	if v := x.View(); provider == people.Own {
		person, _ := v.Person(subject)
		cmd.SignIn.Groups = person.Groups
	}
	x.must(cmd)
	return cmd.SignIn
}

func (x *signing) tick() {
	x.Helper()
	for {
		cmd := &kernel.Tick{}
		x.must(cmd)
		if !cmd.More {
			return
		}
	}
}

func (x *signing) goesOn(id string) bool {
	v := x.View()
	_, ok := v.SignIn(id)
	return ok
}

func TestSignInSession(t *testing.T) {
	x := newSigning(t)
	s := x.signedIn("studio", "ann")
	if s.Holder() != "studio/ann" || strings.Join(s.Groups, " ") != "dev ops" || s.Expires != x.now.Add(12*time.Hour) || s.CheckBy != x.now.Add(15*time.Minute) {
		t.Errorf("the session is %+v", s)
	}
	repeat := x.start("studio", "ann")
	repeat.SignIn.ID = s.ID
	if x.must(repeat); repeat.SignIn.Started != s.Started {
		t.Errorf("a repeat found %+v", repeat.SignIn)
	}
	other := x.start("studio", "bob")
	other.SignIn.ID = s.ID
	x.refuses(domain.Conflict, other)

	for name, change := range map[string]func(*people.StartSession){
		"id":             func(c *people.StartSession) { c.SignIn.ID = "signin-1" },
		"kind":           func(c *people.StartSession) { c.SignIn.Kind = 0 },
		"provider":       func(c *people.StartSession) { c.SignIn.Provider = "a/b" },
		"no provider":    func(c *people.StartSession) { c.SignIn.Provider = "" },
		"no subject":     func(c *people.StartSession) { c.SignIn.Subject = "" },
		"long subject":   func(c *people.StartSession) { c.SignIn.Subject = strings.Repeat("x", 250) },
		"subject":        func(c *people.StartSession) { c.SignIn.Subject = "a\nb" },
		"unknown role":   func(c *people.StartSession) { c.SignIn.Roles = 1 },
		"refresh":        func(c *people.StartSession) { c.SignIn.Refresh = make([]byte, people.RefreshMax+1) },
		"group":          func(c *people.StartSession) { c.SignIn.Groups = []string{"a\nb"} },
		"valid":          func(c *people.StartSession) { c.Valid = people.SessionLifeMax + 1 },
		"check":          func(c *people.StartSession) { c.Check = 0 },
		"long group":     func(c *people.StartSession) { c.SignIn.Groups = []string{strings.Repeat("g", people.GroupMax+1)} },
		"id of a person": func(c *people.StartSession) { c.SignIn.ID = people.ID(x.id()).String() },
	} {
		cmd := x.start("studio", "ann")
		change(cmd)
		if refusal, ok := errors.AsType[*domain.Refusal](x.do(cmd)); !ok || refusal.Reason != domain.Invalid {
			t.Errorf("%s: %v, want Invalid", name, refusal)
		}
	}
	many := x.start("studio", "ann")
	for i := range people.GroupsMax + 1 {
		many.SignIn.Groups = append(many.SignIn.Groups, fmt.Sprint(i))
	}
	x.refuses(domain.LimitExceeded, many)
	none := x.start("studio", "ann")
	none.SignIn.Roles = 0
	x.refuses(domain.Conflict, none)
	x.refuses(domain.NotFound, x.start(people.Own, "ann"))
}

// A session ends at the first of: its expiry, a check that did not happen, and a check that found no role.
func TestSignInSessionEnds(t *testing.T) {
	x := newSigning(t)
	checked, silent, out := x.signedIn("studio", "ann"), x.signedIn("studio", "bob"), x.signedIn("studio", "cid")
	x.now = x.now.Add(15*time.Minute - time.Millisecond)
	renew := &people.RenewSession{ID: checked.ID, Name: "Ann B.", Groups: []string{"admins"}, Roles: access.Roles(access.Admin), Check: 15 * time.Minute}
	x.must(renew)
	if s := renew.SignIn; s.Name != "Ann B." || s.Roles != access.Roles(access.Admin) || s.Expires != checked.Expires || s.CheckBy != x.now.Add(15*time.Minute) {
		t.Errorf("the check left %+v", s)
	}
	x.must(&people.RenewSession{ID: out.ID, Check: time.Minute})
	if x.goesOn(out.ID) {
		t.Error("a session goes on without a role")
	}
	if x.tick(); !x.goesOn(silent.ID) {
		t.Error("a session has ended before its check was due")
	}
	x.now++
	if x.tick(); x.goesOn(silent.ID) || !x.goesOn(checked.ID) {
		t.Error("want the session that nobody has confirmed to end, and the other one to go on")
	}
	for x.now < checked.Expires-1 {
		x.now = min(x.now.Add(10*time.Minute), checked.Expires-1)
		x.must(&people.RenewSession{ID: checked.ID, Groups: []string{"admins"}, Roles: access.Roles(access.Admin), Check: 15 * time.Minute})
	}
	x.now++
	if x.tick(); x.goesOn(checked.ID) {
		t.Error("a session that is confirmed again and again has not expired")
	}
	x.refuses(domain.NotFound, &people.RenewSession{ID: checked.ID, Roles: access.Roles(access.Admin), Check: time.Minute})
	ended := &people.EndSession{ID: checked.ID, Cause: people.SignedOut}
	if x.must(ended); ended.Holder != "" {
		t.Errorf("a session ended twice: %+v", ended)
	}
	x.refuses(domain.Invalid, &people.EndSession{ID: checked.ID})
}

func TestSignInSessionsAreEnded(t *testing.T) {
	x := newSigning(t)
	one, two, other := x.signedIn("studio", "ann"), x.signedIn("studio", "ann"), x.signedIn("studio", "bob")
	x.must(&people.EndSession{ID: one.ID, Cause: people.SignedOut})
	if x.goesOn(one.ID) || !x.goesOn(two.ID) {
		t.Error("want one of two sessions to end")
	}
	x.signedIn("studio", "ann")
	all := &people.EndSessionsOf{Holder: "studio/ann", Cause: people.EndedByAdmin}
	if x.must(all); all.Ended != 2 || x.goesOn(two.ID) || !x.goesOn(other.ID) {
		t.Errorf("%d sessions of a person were ended, want 2", all.Ended)
	}
}

func TestSignInSessionsMax(t *testing.T) {
	x := newSigning(t)
	first := x.signedIn("studio", "ann")
	for range people.SessionsOfPersonMax {
		x.now++
		x.signedIn("studio", "ann")
	}
	if v := x.View(); len(v.SignInsOf("studio/ann")) != people.SessionsOfPersonMax || x.goesOn(first.ID) {
		t.Error("want the oldest session to make room for a new one of the person")
	}
	for i := range people.SessionsMax - people.SessionsOfPersonMax {
		if err := x.do(x.start("studio", fmt.Sprint("subject-", i))); err != nil {
			t.Fatal(err)
		}
	}
	x.refuses(domain.LimitExceeded, x.start("studio", "one more"))
	x.signedIn("studio", "ann") // instead of an older one
	x.now = x.now.Add(time.Hour)
	x.tick()
	if v := x.View(); len(v.SignIns(catalog.Place{}, 10)) != 0 {
		t.Error("sessions are left")
	}
}

func TestUsesOfSignIns(t *testing.T) {
	x := newSigning(t)
	s := x.signedIn("studio", "ann")
	x.now = x.now.Add(time.Minute)
	x.must(&people.NoteUses{Uses: []people.Use{{ID: s.ID, At: x.now.Add(time.Hour), Address: "192.0.2.9"}, {ID: "signin-gone", At: x.now}}})
	x.must(&people.NoteUses{Uses: []people.Use{{ID: s.ID, At: s.Started, Address: "192.0.2.8"}}})
	v := x.View()
	if s, _ := v.SignIn(s.ID); s.Used != x.now || s.Address != "192.0.2.9" {
		t.Errorf("used at %d from %s", s.Used, s.Address)
	}
	x.refuses(domain.Invalid, &people.NoteUses{Uses: make([]people.Use, people.UsesMax+1)})
}

// person adds a person with one passkey.
func (x *signing) person(name string) people.Person {
	x.Helper()
	cmd := &people.CreatePerson{Person: people.Person{ID: people.ID(x.id()).String(), Name: name, Groups: []string{"dev"}, CreatedBy: "ops"}}
	x.must(cmd)
	x.must(&people.IssueEnrolment{Person: name, Hash: "hash of " + name, Valid: time.Hour, By: "ops"})
	x.must(&people.AddPasskey{Person: cmd.Person.ID, Hash: "hash of " + name, Passkey: people.Passkey{ID: []byte("passkey of " + name), Key: []byte("key")}})
	v := x.View()
	p, _ := v.Person(cmd.Person.ID)
	return p
}

func TestPeople(t *testing.T) {
	x := newSigning(t)
	ann := x.person("ann")
	x.refuses(domain.Conflict, &people.CreatePerson{Person: people.Person{ID: people.ID(x.id()).String(), Name: "ann"}})
	x.refuses(domain.Conflict, &people.CreatePerson{Person: people.Person{ID: ann.ID, Name: "bob"}})
	x.must(&people.CreatePerson{Person: people.Person{ID: ann.ID, Name: "ann", Groups: []string{"dev"}}})
	for _, name := range []string{"", " ann", "a\x00", strings.Repeat("x", people.NameMax+1), ann.ID} {
		x.refuses(domain.Invalid, &people.CreatePerson{Person: people.Person{ID: people.ID(x.id()).String(), Name: name}})
	}
	s := x.signedIn(people.Own, ann.ID)
	change := &people.ChangePerson{Person: "ann", Groups: []string{"admins"}, Roles: access.Roles(access.Admin)}
	if x.must(change); change.ID != ann.ID {
		t.Errorf("the changed person is %q, want %s", change.ID, ann.ID)
	}
	v := x.View()
	if now, _ := v.SignIn(s.ID); now.Roles != access.Roles(access.Admin) || len(now.Groups) != 1 || now.Groups[0] != "admins" {
		t.Errorf("after a change of the groups, the session has %v by %q", now.Roles, now.Groups)
	}
	x.must(&people.ChangePerson{Person: "ann", Groups: []string{"guests"}})
	if x.goesOn(s.ID) {
		t.Error("the session of a person without a role goes on")
	}
	s = x.signedIn(people.Own, ann.ID)
	x.must(&people.RemovePerson{Person: "ann"})
	if v := x.View(); x.goesOn(s.ID) || len(v.People()) != 0 {
		t.Error("the person is gone, and the session goes on")
	}
	x.refuses(domain.NotFound, &people.RemovePerson{Person: "ann"})
	x.refuses(domain.NotFound, &people.ChangePerson{Person: "ann"})
	x.refuses(domain.NotFound, x.start(people.Own, ann.ID))
	for i := range people.PeopleMax {
		x.must(&people.CreatePerson{Person: people.Person{ID: people.ID(x.id()).String(), Name: fmt.Sprint("person ", i)}})
	}
	x.refuses(domain.LimitExceeded, &people.CreatePerson{Person: people.Person{ID: people.ID(x.id()).String(), Name: "one more"}})
}

// A change of a person between two commands of a sign-in or of a check is not undone by the second one.
func TestSessionsHaveTheGroupsOfTheirPerson(t *testing.T) {
	x := newSigning(t)
	ann := x.person("ann")
	begun := x.start(people.Own, ann.ID)
	begun.SignIn.Groups = ann.Groups
	s := x.signedIn(people.Own, ann.ID)
	x.must(&people.ChangePerson{Person: "ann", Groups: []string{"guests"}, Roles: access.Roles(access.ReadOnly)})
	x.refuses(domain.Conflict, begun)
	x.refuses(domain.Conflict, &people.RenewSession{ID: s.ID, Groups: ann.Groups, Roles: s.Roles, Check: time.Minute})
	v := x.View()
	if now, _ := v.SignIn(s.ID); now.Roles != access.Roles(access.ReadOnly) {
		t.Errorf("the session has %v by %q", now.Roles, now.Groups)
	}
	x.must(&people.RenewSession{ID: s.ID, Groups: []string{"guests", "guests"}, Roles: access.Roles(access.ReadOnly), Check: time.Minute})

	begun.SignIn.Groups, begun.Passkey = []string{"guests"}, ann.Passkeys[0].ID
	x.must(&people.RemovePasskey{Person: "ann", ID: ann.Passkeys[0].ID})
	x.refuses(domain.Conflict, begun)
}

// A link registers one passkey, until it expires or another one is issued.
func TestEnrolment(t *testing.T) {
	x := newSigning(t)
	ann := x.person("ann")
	add := func(hash string) *people.AddPasskey {
		return &people.AddPasskey{Person: ann.ID, Hash: hash, Passkey: people.Passkey{ID: fmt.Append(nil, x.id()), Key: []byte("key")}}
	}
	x.refuses(domain.NotFound, add("hash of ann")) // it was used
	x.refuses(domain.NotFound, add(""))
	x.must(&people.IssueEnrolment{Person: "ann", Hash: "a", Valid: time.Hour})
	x.must(&people.IssueEnrolment{Person: "ann", Hash: "b", Valid: time.Hour})
	x.refuses(domain.NotFound, add("a"))
	twice := add("b")
	twice.Passkey.ID = ann.Passkeys[0].ID
	x.refuses(domain.Conflict, twice)
	x.now = x.now.Add(time.Hour)
	x.refuses(domain.NotFound, add("b"))
	for i := 1; i < people.PasskeysMax; i++ {
		x.must(&people.IssueEnrolment{Person: "ann", Hash: "c", Valid: time.Hour})
		x.must(add("c"))
	}
	x.refuses(domain.LimitExceeded, &people.IssueEnrolment{Person: "ann", Hash: "d", Valid: time.Hour})
	s := x.signedIn(people.Own, ann.ID)
	remove := &people.RemovePasskey{Person: "ann", ID: ann.Passkeys[0].ID}
	if x.must(remove); remove.PersonID != ann.ID {
		t.Errorf("the passkey was of %q, want %s", remove.PersonID, ann.ID)
	}
	if x.goesOn(s.ID) {
		t.Error("a passkey was removed, and the session of its person goes on")
	}
	x.refuses(domain.NotFound, &people.RemovePasskey{Person: "ann", ID: ann.Passkeys[0].ID})
	x.refuses(domain.NotFound, &people.UsePasskey{Person: ann.ID, ID: ann.Passkeys[0].ID, Challenge: x.now})
	x.must(&people.IssueEnrolment{Person: "ann", Hash: "d", Valid: time.Hour})
	for _, bad := range []people.Passkey{{Key: []byte("key")}, {ID: []byte("id")}, {ID: make([]byte, 1024), Key: []byte("key")}, {ID: []byte("id"), Key: make([]byte, 4096)}, {ID: []byte("id"), Key: []byte("key"), Model: []byte("m")}} {
		x.refuses(domain.Invalid, &people.AddPasskey{Person: ann.ID, Hash: "d", Passkey: bad})
	}
}

// An answer of a passkey works once, and a copied authenticator is noticed by its counter.
func TestPasskeyIsUsedOnce(t *testing.T) {
	x := newSigning(t)
	ann := x.person("ann")
	use := func(count uint32, challenge domain.Time) *people.UsePasskey {
		return &people.UsePasskey{Person: ann.ID, ID: ann.Passkeys[0].ID, Count: count, Challenge: challenge}
	}
	x.must(use(0, x.now))
	x.refuses(domain.Conflict, use(0, x.now))
	x.must(use(0, x.now+1))
	x.must(use(7, x.now+2))
	x.refuses(domain.Conflict, use(7, x.now+3))
	x.refuses(domain.Conflict, use(0, x.now+3))
	last := use(8, x.now+3)
	if x.must(last); last.Name != "ann" || len(last.Groups) != 1 {
		t.Errorf("the person is %q in %q", last.Name, last.Groups)
	}
}
