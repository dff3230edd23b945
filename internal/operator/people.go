package operator

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/domain/people"
	"github.com/musterhq/muster/internal/domain/spelling"
)

// People is the part of the people's door that this door needs.
type People interface {
	// OwnRoles returns the roles given by groups of the cell's own people.
	OwnRoles(groups []string) access.RoleSet
	// OwnGroups returns the names of the groups that give roles.
	OwnGroups() []string
	// NewEnrolment returns the secret of a link for registering a passkey, and its hash.
	NewEnrolment() (secret, hash string)
	EnrolmentLink(person, secret string) string
	// WhyNoPasskeys returns why the cell's own people cannot sign in; empty: they can.
	WhyNoPasskeys() string
	// End ends a sign-in session. When it returns, this node refuses all credentials from the session.
	End(ctx context.Context, id string, cause people.Cause) error
	// EndAll ends all sessions of a person, PROVIDER/SUBJECT, and returns how many there were.
	EndAll(ctx context.Context, holder string, cause people.Cause) (int, error)
}

// enrolmentSeconds is the default validity of a link.
const enrolmentSeconds = 24 * 60 * 60

// Person is one of the cell's own people.
type Person struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Groups    []string  `json:"groups"`
	Roles     []string  `json:"roles"` // given by the groups
	Created   time.Time `json:"created"`
	CreatedBy string    `json:"createdBy,omitempty"`
	Passkeys  []Passkey `json:"passkeys"`
	// EnrolmentExpires is when the link for registering a passkey expires; absent: there is none.
	EnrolmentExpires time.Time `json:"enrolmentExpires,omitzero"`
}

// Passkey is one of a person.
type Passkey struct {
	ID      string    `json:"id"` // base64url
	Name    string    `json:"name,omitempty"`
	Created time.Time `json:"created"`
	Used    time.Time `json:"used,omitzero"`
}

// SignIn is a sign-in session.
type SignIn struct {
	ID       string    `json:"id"`
	Person   string    `json:"person"` // PROVIDER/SUBJECT
	Name     string    `json:"name,omitempty"`
	Groups   []string  `json:"groups"`
	Roles    []string  `json:"roles"`
	Started  time.Time `json:"started"`
	Expires  time.Time `json:"expires"`
	Checked  time.Time `json:"checked"` // when the provider last confirmed the person
	CheckBy  time.Time `json:"checkBy"` // the session ends then without another confirmation
	Used     time.Time `json:"used"`    // to the minute
	Address  string    `json:"address,omitempty"`
	Agent    string    `json:"agent,omitempty"`
	Provider string    `json:"provider"`
}

// PeopleList is the answer to GET people.
type PeopleList struct {
	People  []Person `json:"people"`
	SignIns []SignIn `json:"signIns"`
	More    bool     `json:"more,omitempty"` // there are more sessions than are listed
}

// NewPerson is the body of POST people.
type NewPerson struct {
	Name         string   `json:"name"`
	Groups       []string `json:"groups"`
	ValidSeconds int64    `json:"validSeconds,omitempty"` // of the link: 1 second to people.EnrolmentLifeMax; 0: one day
}

// PersonGroups is the body of POST people/{person}/groups.
type PersonGroups struct {
	Groups []string `json:"groups"`
}

// NewEnrolment is the body of POST people/{person}/enrol.
type NewEnrolment struct {
	ValidSeconds int64 `json:"validSeconds,omitempty"` // see NewPerson
}

// Enrolment is the answer to the two requests that make a link, once.
type Enrolment struct {
	ID      string    `json:"id"` // of the person
	Link    string    `json:"link"`
	Expires time.Time `json:"expires"`
	// Warnings say what the person's groups do not give, when the person is new.
	Warnings []string `json:"warnings,omitempty"`
}

// EndSignIns is the body of POST people/end-sessions: one of the two.
type EndSignIns struct {
	Session string `json:"session,omitempty"`
	Person  string `json:"person,omitempty"` // PROVIDER/SUBJECT, or id or name of one of the cell's own people
}

// EndedSignIns is the answer.
type EndedSignIns struct {
	Ended int `json:"ended"`
}

// PersonNamed is the answer to other changes.
type PersonNamed struct {
	ID string `json:"id"`
	// Warnings say what the person's groups do not give, when these have changed.
	Warnings []string `json:"warnings,omitempty"`
}

// signInsPage is how many sessions a list has at most.
const signInsPage = 1_000

func (d *Door) peopleRoutes() {
	d.handle("GET people", d.ofPeople("list people", d.listPeople))
	d.handle("POST people", d.ofPeople("add people", changing(http.StatusCreated, d.newPerson)))
	d.handle("POST people/end-sessions", d.ofPeople("end sign-in sessions", changing(http.StatusOK, d.endSignIns)))
	d.handle("POST people/{person}/groups", d.ofPeople("change people", changing(http.StatusOK, d.changePerson)))
	d.handle("POST people/{person}/enrol", d.ofPeople("enrol people", changing(http.StatusCreated, d.enrolPerson)))
	d.handle("POST people/{person}/remove", d.ofPeople("remove people", d.removePerson))
	d.handle("POST people/{person}/passkeys/{passkey}/remove", d.ofPeople("remove passkeys", d.removePasskey))
}

// ofPeople is forAdmins where people sign in.
func (d *Door) ofPeople(what string, do handler) http.HandlerFunc {
	return d.forAdmins(what, func(w http.ResponseWriter, r *http.Request, by access.Actor, body []byte) error {
		if d.config.People == nil {
			return domain.Refuse(domain.NotFound, "this service has no sign-in for people")
		}
		return do(w, r, by, body)
	})
}

func namesOf(roles access.RoleSet) []string {
	names := []string{}
	for _, r := range roles.List() {
		names = append(names, r.String())
	}
	return names
}

func (d *Door) listPeople(w http.ResponseWriter, r *http.Request, _ access.Actor, _ []byte) error {
	list := PeopleList{People: []Person{}, SignIns: []SignIn{}}
	now := domain.TimeOf(d.engine.Now())
	err := d.engine.Read(r.Context(), func(v *cell.View) error {
		for _, p := range v.People() {
			x := Person{ID: p.ID, Name: p.Name, Groups: slices.Concat([]string{}, p.Groups), Roles: namesOf(d.config.People.OwnRoles(p.Groups)), Created: p.Created.Std(), CreatedBy: p.CreatedBy, Passkeys: []Passkey{}}
			for _, k := range p.Passkeys {
				key := Passkey{ID: base64.RawURLEncoding.EncodeToString(k.ID), Name: k.Name, Created: k.Created.Std()}
				if k.Used != 0 {
					key.Used = k.Used.Std()
				}
				x.Passkeys = append(x.Passkeys, key)
			}
			if p.Enrolment.Expires > now {
				x.EnrolmentExpires = p.Enrolment.Expires.Std()
			}
			list.People = append(list.People, x)
		}
		all := v.SignIns(catalog.Place{}, signInsPage+1)
		if list.More = len(all) > signInsPage; list.More {
			all = all[:signInsPage]
		}
		for _, s := range all {
			list.SignIns = append(list.SignIns, SignIn{
				ID: s.ID, Person: s.Holder(), Provider: s.Provider, Name: s.Name, Groups: slices.Concat([]string{}, s.Groups), Roles: namesOf(s.Roles), Started: s.Started.Std(), Expires: s.Expires.Std(),
				Checked: s.Checked.Std(), CheckBy: s.CheckBy.Std(), Used: s.Used.Std(), Address: s.Address, Agent: s.Agent,
			})
		}
		return nil
	})
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, list)
	return nil
}

// mayEnrol refuses links that could not be used, and such that others on the way could use.
func (d *Door) mayEnrol(r *http.Request, seconds *int64) error {
	if why := d.config.People.WhyNoPasskeys(); why != "" {
		return domain.Refuse(domain.Conflict, "the link could not be used: %s", why)
	}
	if !d.config.Private(r) {
		return domain.Refuse(domain.Invalid, "the answer contains a link that registers a passkey: use https")
	}
	if *seconds == 0 {
		*seconds = enrolmentSeconds
	}
	if most := int64(people.EnrolmentLifeMax / time.Second); *seconds < 1 || *seconds > most {
		return domain.Refuse(domain.Invalid, "validSeconds %d: want 1 to %d", *seconds, most)
	}
	return nil
}

// newPerson adds a person and answers with the link, once. Nothing logs an answer.
func (d *Door) newPerson(r *http.Request, by access.Actor, in *NewPerson) (any, error) {
	if err := d.mayEnrol(r, &in.ValidSeconds); err != nil {
		return nil, err
	}
	warnings, err := d.warningsOf(r.Context(), in.Name, in.Groups) // before the change: an error after it would look as if nothing had changed
	if err != nil {
		return nil, err
	}
	cmd := &people.CreatePerson{Person: people.Person{ID: people.ID(domain.UUID(uuid.New())).String(), Name: in.Name, Groups: in.Groups, CreatedBy: by.Cut().Principal}}
	if err := d.engine.Do(r.Context(), cmd); err != nil {
		return nil, err
	}
	d.log.Info("person added", "person", cmd.Person.Name, "groups", len(in.Groups), "principal", by.Principal)
	link, err := d.newLink(r, by, cmd.Person.ID, in.ValidSeconds, warnings)
	if refused, ok := errors.AsType[*domain.Refusal](err); ok {
		detailed := *refused
		detailed.Detail = "the person was added, but has no enrolment link: " + refused.Detail
		return nil, &detailed
	}
	return link, err
}

// warningsOf says which groups have no effect, and that a person has no role. Neither is refused: the settings can give roles to a group, and an
// administrator can attach a policy to it, after people are in it.
func (d *Door) warningsOf(ctx context.Context, name string, groups []string) (warnings []string, err error) {
	restricted := map[string]bool{}
	err = d.engine.Read(ctx, func(v *cell.View) error {
		for _, a := range v.PolicyAttachments() {
			if a.Target.Kind == access.GroupTarget {
				restricted[a.Target.Name] = true
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	giving := d.config.People.OwnGroups()
	for _, g := range slices.Compact(slices.Sorted(slices.Values(groups))) {
		if restricted[g] || slices.Contains(giving, g) {
			continue
		}
		w := fmt.Sprintf("the group %q gives no role, and no policy is attached to it", g)
		if near, ok := spelling.Nearest(g, giving); ok {
			w += fmt.Sprintf("; did you mean %q?", near)
		}
		warnings = append(warnings, w)
	}
	if d.config.People.OwnRoles(groups) == 0 {
		w := name + " has no role and cannot sign in"
		if len(giving) > 0 {
			w += "; groups that give a role: " + excerpt.Begin(strings.Join(giving, ", "), 500)
		}
		warnings = append(warnings, w)
	}
	return warnings, nil
}

// newLink makes the link with which a person registers a passkey.
func (d *Door) newLink(r *http.Request, by access.Actor, person string, seconds int64, warnings []string) (any, error) {
	secret, hash := d.config.People.NewEnrolment()
	cmd := &people.IssueEnrolment{Person: person, Hash: hash, Valid: time.Duration(seconds) * time.Second, By: by.Cut().Principal}
	if err := d.engine.Do(r.Context(), cmd); err != nil {
		return nil, err
	}
	d.log.Info("enrolment link made", "person", cmd.ID, "principal", by.Principal)
	return Enrolment{ID: cmd.ID, Link: d.config.People.EnrolmentLink(cmd.ID, secret), Expires: cmd.Expires.Std(), Warnings: warnings}, nil
}

func (d *Door) enrolPerson(r *http.Request, by access.Actor, in *NewEnrolment) (any, error) {
	if err := d.mayEnrol(r, &in.ValidSeconds); err != nil {
		return nil, err
	}
	return d.newLink(r, by, r.PathValue("person"), in.ValidSeconds, nil)
}

func (d *Door) changePerson(r *http.Request, by access.Actor, in *PersonGroups) (any, error) {
	warnings, err := d.warningsOf(r.Context(), r.PathValue("person"), in.Groups) // before the change, as in newPerson
	if err != nil {
		return nil, err
	}
	cmd := &people.ChangePerson{Person: r.PathValue("person"), Groups: in.Groups, Roles: d.config.People.OwnRoles(in.Groups)}
	if err := d.engine.Do(r.Context(), cmd); err != nil {
		return nil, err
	}
	d.log.Info("groups of a person changed", "person", cmd.Person, "groups", len(in.Groups), "principal", by.Principal)
	return PersonNamed{ID: cmd.ID, Warnings: warnings}, nil
}

func (d *Door) removePerson(w http.ResponseWriter, r *http.Request, by access.Actor, _ []byte) error {
	cmd := &people.RemovePerson{Person: r.PathValue("person")}
	if err := d.engine.Do(r.Context(), cmd); err != nil {
		return err
	}
	d.log.Info("person removed", "person", cmd.ID, "principal", by.Principal)
	answer(w, http.StatusOK, PersonNamed{ID: cmd.ID})
	return nil
}

func (d *Door) removePasskey(w http.ResponseWriter, r *http.Request, by access.Actor, _ []byte) error {
	id, err := base64.RawURLEncoding.DecodeString(r.PathValue("passkey"))
	if err != nil {
		return domain.Refuse(domain.Invalid, "passkey %.100q: want the id that the list of people has", r.PathValue("passkey"))
	}
	cmd := &people.RemovePasskey{Person: r.PathValue("person"), ID: id}
	if err := d.engine.Do(r.Context(), cmd); err != nil {
		return err
	}
	d.log.Info("passkey removed", "person", cmd.Person, "principal", by.Principal)
	answer(w, http.StatusOK, PersonNamed{ID: cmd.PersonID})
	return nil
}

func (d *Door) endSignIns(r *http.Request, _ access.Actor, in *EndSignIns) (any, error) {
	if (in.Session == "") == (in.Person == "") {
		return nil, domain.Refuse(domain.Invalid, "session %.100q and person %.100q: want exactly one of them", in.Session, in.Person)
	}
	if in.Session != "" {
		var known bool
		if err := d.engine.Read(r.Context(), func(v *cell.View) error { _, known = v.SignIn(in.Session); return nil }); err != nil {
			return nil, err
		}
		if !known {
			return nil, domain.Refuse(domain.NotFound, "there is no sign-in session %.100q", in.Session)
		}
		if err := d.config.People.End(r.Context(), in.Session, people.EndedByAdmin); err != nil {
			return nil, err
		}
		return EndedSignIns{1}, nil
	}
	holder := in.Person
	err := d.engine.Read(r.Context(), func(v *cell.View) error {
		if p, ok := v.PersonNamed(in.Person); ok {
			holder = people.Own + "/" + p.ID
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	n, err := d.config.People.EndAll(r.Context(), holder, people.EndedByAdmin)
	return EndedSignIns{n}, err
}
