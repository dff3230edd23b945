package sim

import (
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/people"
)

func (w *Wishes) ownPerson(v *cell.View) people.Person {
	all := v.People()
	if len(all) == 0 {
		return people.Person{ID: people.ID(w.uuid()).String()}
	}
	return all[w.chance.IntN(len(all))]
}

func (w *Wishes) signIn(v *cell.View) people.SignIn {
	all := v.SignIns(catalog.Place{}, 100)
	if len(all) == 0 {
		return people.SignIn{ID: people.SignInID(w.uuid()).String()}
	}
	return all[w.chance.IntN(len(all))]
}

func (w *Wishes) groups() (groups []string) {
	for range w.chance.IntN(3) {
		groups = append(groups, fmt.Sprint("group-", w.chance.IntN(3)))
	}
	return groups
}

// roles returns random roles; sometimes none.
func (w *Wishes) roles() access.RoleSet {
	if w.oneIn(5) {
		return 0
	}
	return access.Roles(access.Role(1+w.chance.IntN(4)), access.Role(1+w.chance.IntN(4)))
}

func startSignIn(w *Wishes, v *cell.View) kernel.Command {
	cmd := &people.StartSession{
		SignIn: people.SignIn{ID: people.SignInID(w.uuid()).String(), Kind: people.Browser, Provider: "studio", Subject: fmt.Sprint("subject-", w.chance.IntN(3)), Name: "Ann", Groups: w.groups(), Roles: w.roles(), Address: "192.0.2.1"},
		Valid:  time.Duration(1+w.chance.IntN(600)) * time.Second, Check: time.Duration(1+w.chance.IntN(600)) * time.Second,
	}
	if w.oneIn(3) {
		x := w.ownPerson(v)
		cmd.SignIn.Provider, cmd.SignIn.Subject, cmd.SignIn.Groups = people.Own, x.ID, x.Groups
	} else if w.oneIn(2) {
		cmd.SignIn.Refresh = []byte("sealed")
	}
	return cmd
}

func renewSignIn(w *Wishes, v *cell.View) kernel.Command {
	x := w.signIn(v)
	groups := w.groups()
	if x.Provider == people.Own && !w.oneIn(5) {
		groups = x.Groups
	}
	return &people.RenewSession{ID: x.ID, Groups: groups, Roles: w.roles(), Check: time.Duration(1+w.chance.IntN(600)) * time.Second}
}

func endSignIn(w *Wishes, v *cell.View) kernel.Command {
	x := w.signIn(v)
	if w.oneIn(3) {
		return &people.EndSessionsOf{Holder: x.Holder(), Cause: people.EndedByAdmin}
	}
	return &people.EndSession{ID: x.ID, Cause: people.SignedOut}
}

func noteUses(w *Wishes, v *cell.View) kernel.Command {
	return &people.NoteUses{Uses: []people.Use{{ID: w.signIn(v).ID, At: w.now, Address: "192.0.2.2"}, {ID: w.signIn(v).ID, At: w.now + 1}}}
}

func addPerson(w *Wishes, _ *cell.View) kernel.Command {
	return &people.CreatePerson{Person: people.Person{ID: people.ID(w.uuid()).String(), Name: fmt.Sprint("person ", w.chance.IntN(4)), Groups: w.groups(), CreatedBy: "ops"}}
}

func changePerson(w *Wishes, v *cell.View) kernel.Command {
	return &people.ChangePerson{Person: w.ownPerson(v).Name, Groups: w.groups(), Roles: w.roles()}
}

func removePerson(w *Wishes, v *cell.View) kernel.Command {
	x := w.ownPerson(v)
	if len(x.Passkeys) > 0 && w.oneIn(2) {
		return &people.RemovePasskey{Person: x.ID, ID: x.Passkeys[0].ID}
	}
	return &people.RemovePerson{Person: x.ID}
}

func issueEnrolment(w *Wishes, v *cell.View) kernel.Command {
	return &people.IssueEnrolment{Person: w.ownPerson(v).ID, Hash: fmt.Sprint("hash-", w.chance.IntN(9)), Valid: time.Duration(1+w.chance.IntN(600)) * time.Second, By: "ops"}
}

func addPasskey(w *Wishes, v *cell.View) kernel.Command {
	x := w.ownPerson(v)
	return &people.AddPasskey{Person: x.ID, Hash: x.Enrolment.Hash, Passkey: people.Passkey{ID: fmt.Append(nil, "credential-", w.number()), Key: []byte("key"), Name: "laptop"}}
}

func usePasskey(w *Wishes, v *cell.View) kernel.Command {
	x := w.ownPerson(v)
	cmd := &people.UsePasskey{Person: x.ID, Count: uint32(w.chance.IntN(9)), Challenge: w.now + domain.Time(w.chance.IntN(3))}
	if n := len(x.Passkeys); n > 0 {
		cmd.ID = x.Passkeys[w.chance.IntN(n)].ID
	}
	return cmd
}

// checkSignIns: a sign-in session whose end was acknowledged never comes back.
func (w *World) checkSignIns(v *cell.View) {
	for _, id := range w.known.signInsEnded {
		if _, ok := v.SignIn(id); ok {
			w.violated("sign-in session %s was ended, and goes on", id)
		}
	}
}
