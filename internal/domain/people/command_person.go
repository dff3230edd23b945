package people

import (
	"bytes"
	"crypto/subtle"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// named finds a person by id or by name.
func (c *State) named(name string) (found *Person) {
	if r, ok := c.People.Find(name); ok {
		return c.People.Get(r)
	}
	c.People.Since(catalog.Place{}, func(x *Person) bool {
		if x.Name == name {
			found = x
		}
		return found == nil
	})
	return found
}

func (c *State) mustName(name string) (Person, error) {
	if x := c.named(name); x != nil {
		return *x, nil
	}
	return Person{}, domain.Refuse(domain.NotFound, "there is no person %.200q", name)
}

// CreatePerson adds one of the cell's own people, without a passkey. A repeat finds the person.
type CreatePerson struct {
	Person Person // ID, Name, Groups, CreatedBy

	// Result: Person, as stored.
}

// Decide emits PersonChanged.
func (cmd *CreatePerson) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	x := &cmd.Person
	if _, err := domain.ParseID[ID](x.ID); err != nil {
		return domain.Refuse(domain.Invalid, "person %.100q: %v", x.ID, err)
	}
	if err := CheckName(x.Name); err != nil {
		return err
	}
	if _, err := domain.ParseID[ID](x.Name); err == nil {
		return domain.Refuse(domain.Invalid, "name %q: want one that is not a person's id", x.Name)
	}
	x.Groups = sortedGroups(x.Groups)
	if err := checkGroups(x.Groups); err != nil {
		return err
	}
	if r, ok := t.People.Find(x.ID); ok {
		if old := t.People.Get(r); old.Name != x.Name || !slices.Equal(old.Groups, x.Groups) {
			return domain.Refuse(domain.Conflict, "person %s exists already", x.ID)
		}
		*x = *t.People.Get(r)
		return nil
	}
	if old := t.named(x.Name); old != nil {
		return domain.Refuse(domain.Conflict, "a person with the name %q exists already", x.Name)
	}
	if n := t.People.Len(); n >= PeopleMax {
		return domain.Refuse(domain.LimitExceeded, "%d people exist, which is the limit; an identity provider can have more", n)
	}
	*x = Person{ID: x.ID, Name: x.Name, Groups: x.Groups, Created: t.Now, CreatedBy: Short(x.CreatedBy, textMax)}
	t.Emit(&PersonChanged{*x})
	x.Changed = t.Number()
	return nil
}

// ChangePerson changes a person's groups. The roles of the person's sessions change at once.
type ChangePerson struct {
	Person string // id or name
	Groups []string
	Roles  access.RoleSet // given by these groups

	// Result
	ID string
}

// Decide emits PersonChanged, and SignInChanged or SignInsEnded for the person's sessions.
func (cmd *ChangePerson) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	groups := sortedGroups(cmd.Groups)
	if err := checkGroups(groups); err != nil {
		return err
	}
	x, err := t.mustName(cmd.Person)
	switch {
	case err != nil:
		return err
	case !cmd.Roles.Known():
		return domain.Refuse(domain.Invalid, "roles %#x: want known ones", uint8(cmd.Roles))
	}
	cmd.ID, x.Groups = x.ID, groups
	t.Emit(&PersonChanged{x})
	holder := Own + "/" + x.ID
	if cmd.Roles == 0 {
		t.endAllOf(holder, NoRole)
		return nil
	}
	for _, id := range t.of[holder] {
		r, _ := t.SignIns.Find(id)
		s := *t.SignIns.Get(r)
		s.Groups, s.Roles = groups, cmd.Roles
		t.Emit(&SignInChanged{s})
	}
	return nil
}

// RemovePerson removes a person with all passkeys and sessions.
type RemovePerson struct {
	Person string // id or name

	// Result
	ID string
}

// Decide emits SignInsEnded and PersonRemoved.
func (cmd *RemovePerson) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	x, err := t.mustName(cmd.Person)
	if err != nil {
		return err
	}
	cmd.ID = x.ID
	t.endAllOf(Own+"/"+x.ID, NoLongerKnown)
	t.Emit(&PersonRemoved{x.ID})
	return nil
}

// IssueEnrolment creates the link with which a person registers a passkey. It voids an earlier link.
type IssueEnrolment struct {
	Person string // id or name
	Hash   string // of the link's secret
	Valid  time.Duration
	By     string // principal

	// Result
	ID      string
	Expires domain.Time
}

// Decide emits PersonChanged.
func (cmd *IssueEnrolment) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	switch {
	case cmd.Hash == "" || len(cmd.Hash) > hashMax:
		return domain.Refuse(domain.Invalid, "hash of %d bytes: want 1 to %d", len(cmd.Hash), hashMax)
	case cmd.Valid < time.Second || cmd.Valid > EnrolmentLifeMax:
		return domain.Refuse(domain.Invalid, "valid %v: want 1s to %v", cmd.Valid, EnrolmentLifeMax)
	}
	x, err := t.mustName(cmd.Person)
	if err != nil {
		return err
	}
	cmd.ID, cmd.Expires = x.ID, t.Now.Add(cmd.Valid)
	if x.Enrolment.Hash == cmd.Hash {
		cmd.Expires = x.Enrolment.Expires
		return nil
	}
	if n := len(x.Passkeys); n >= PasskeysMax {
		return domain.Refuse(domain.LimitExceeded, "%s has %d passkeys, which is the limit; remove one", x.Name, n)
	}
	x.Enrolment = Enrolment{Hash: cmd.Hash, Issued: t.Now, Expires: cmd.Expires, By: Short(cmd.By, textMax)}
	t.Emit(&PersonChanged{x})
	return nil
}

// Open reports whether a link with this hash can be used at a time.
func (x *Enrolment) Open(hash string, now domain.Time) bool {
	return x.Hash != "" && subtle.ConstantTimeCompare([]byte(x.Hash), []byte(hash)) == 1 && now < x.Expires
}

// AddPasskey stores a passkey that was registered with a link, and voids the link.
type AddPasskey struct {
	Person  string // id
	Hash    string // of the link's secret
	Passkey Passkey
}

// Decide emits PersonChanged.
func (cmd *AddPasskey) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	p := &cmd.Passkey
	switch {
	case len(p.ID) == 0 || len(p.ID) > credentialMax:
		return domain.Refuse(domain.Invalid, "id of the passkey has %d bytes: want 1 to %d", len(p.ID), credentialMax)
	case len(p.Key) == 0 || len(p.Key) > keyMax:
		return domain.Refuse(domain.Invalid, "public key of the passkey has %d bytes: want 1 to %d", len(p.Key), keyMax)
	case len(p.Model) != 0 && len(p.Model) != 16:
		return domain.Refuse(domain.Invalid, "model of the passkey has %d bytes: want 16 or none", len(p.Model))
	}
	r, ok := t.People.Find(cmd.Person)
	if !ok {
		return domain.Refuse(domain.NotFound, "the link was used, or has expired")
	}
	x := *t.People.Get(r)
	switch same := func(y Passkey) bool { return bytes.Equal(y.ID, p.ID) }; {
	case !x.Enrolment.Open(cmd.Hash, t.Now):
		return domain.Refuse(domain.NotFound, "the link was used, or has expired")
	case slices.ContainsFunc(x.Passkeys, same):
		return domain.Refuse(domain.Conflict, "%s has this passkey already", x.Name)
	case len(x.Passkeys) >= PasskeysMax:
		return domain.Refuse(domain.LimitExceeded, "%s has %d passkeys, which is the limit; remove one", x.Name, len(x.Passkeys))
	}
	p.Name, p.Created, p.Used, p.Challenge = Short(p.Name, NameMax), t.Now, 0, 0
	x.Enrolment, x.Passkeys = Enrolment{}, append(slices.Clone(x.Passkeys), *p)
	t.Emit(&PersonChanged{x})
	return nil
}

// RemovePasskey removes a passkey. The person's sessions end, because the passkey may have started them.
type RemovePasskey struct {
	Person string // id or name
	ID     []byte

	// Result
	PersonID string
}

// Decide emits PersonChanged and SignInsEnded.
func (cmd *RemovePasskey) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	x, err := t.mustName(cmd.Person)
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(x.Passkeys), func(y Passkey) bool { return bytes.Equal(y.ID, cmd.ID) })
	if len(left) == len(x.Passkeys) {
		return domain.Refuse(domain.NotFound, "%s has no such passkey", x.Name)
	}
	cmd.PersonID, x.Passkeys = x.ID, left
	t.Emit(&PersonChanged{x})
	t.endAllOf(Own+"/"+x.ID, EndedByAdmin)
	return nil
}

// UsePasskey records that a person has proved possession of a passkey by signing a challenge. Only the caller whose command succeeds may start a
// session.
type UsePasskey struct {
	Person    string // id
	ID        []byte
	Count     uint32
	Flags     uint8
	Challenge domain.Time // when the challenge was issued

	// Result
	Name   string
	Groups []string
}

// Decide emits PersonChanged. A challenge that is not later than the last one was signed before, and a counter that does not increase means that
// the passkey was cloned: https://www.w3.org/TR/webauthn-3/#sctn-sign-counter
func (cmd *UsePasskey) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, ok := t.People.Find(cmd.Person)
	if !ok {
		return domain.Refuse(domain.NotFound, "there is no such passkey")
	}
	x := *t.People.Get(r)
	at := slices.IndexFunc(x.Passkeys, func(y Passkey) bool { return bytes.Equal(y.ID, cmd.ID) })
	if at < 0 {
		return domain.Refuse(domain.NotFound, "there is no such passkey")
	}
	switch p := &x.Passkeys[at]; {
	case cmd.Challenge <= p.Challenge:
		return domain.Refuse(domain.Conflict, "this answer of the passkey was used already")
	case (cmd.Count != 0 || p.Count != 0) && cmd.Count <= p.Count:
		return domain.Refuse(domain.Conflict, "the passkey counts %d signatures, and has counted %d before: another device may have a copy of it", cmd.Count, p.Count)
	}
	x.Passkeys = slices.Clone(x.Passkeys)
	p := &x.Passkeys[at]
	p.Count, p.Flags, p.Used, p.Challenge = cmd.Count, cmd.Flags, t.Now, cmd.Challenge
	t.Emit(&PersonChanged{x})
	cmd.Name, cmd.Groups = x.Name, x.Groups
	return nil
}
