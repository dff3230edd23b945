package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	domainpeople "github.com/musterhq/muster/internal/domain/people"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/people"
)

// waysToSignIn returns the buttons of the sign-in page besides the form for access keys. They lead back to that page, which then calls takeOver.
func (d *Door) waysToSignIn(to string) (ways []people.Way) {
	if d.config.People == nil {
		return nil
	}
	back := Prefix + "/sign-in?to=" + url.QueryEscape(to)
	ways = d.config.People.Ways(back)
	if d.config.People.Passkeys() {
		ways = append(ways, people.Way{Title: "a passkey", Path: people.SignInPath(back)})
	}
	return ways
}

// takeOver signs a browser in if its person has signed in to this service, with temporary credentials of the person's highest role.
func (d *Door) takeOver(w http.ResponseWriter, r *http.Request, to string) (done bool) {
	if d.config.People == nil {
		return false
	}
	person, ok := d.config.People.Browser(r)
	if !ok {
		return false
	}
	for _, role := range []identity.Role{identity.Admin, identity.Backend, identity.ReadOnly} {
		if !person.Roles.Covers(role) {
			continue
		}
		by := audit.Origin{Door: audit.DoorConsole, Address: d.config.Proxies.Of(r), Agent: r.UserAgent(), Operation: "SignIn"}
		c, err := d.config.People.Issue(r.Context(), by, &person, role, sessionLife)
		if err != nil {
			d.log.Error("a person could not be signed in to the console", "person", person.Holder(), "error", err)
			d.writeSignIn(w, r, http.StatusServiceUnavailable, signInForm{To: to, Problem: "Signing in failed inside the service; the log has the cause. Try again."})
			return true
		}
		d.enter(w, r, c.ID+"."+c.Token, to, "person")
		return true
	}
	d.writeSignIn(w, r, http.StatusForbidden, signInForm{To: to, Problem: "You are signed in as " + person.Name + ", with the role " + person.Roles.String() + ", which may not look at the console."})
	return true
}

// signInList lists the sign-in sessions of people, the oldest first.
var signInList = list[domainpeople.SignIn]{
	name: "sign-ins", label: "Sign-in sessions", most: 200, empty: "Nobody is signed in.",
	columns: []column[domainpeople.SignIn]{
		{name: "name", head: "Name", value: func(x *domainpeople.SignIn) value { return words(x.Name) }},
		{name: "person", head: "Person", value: func(x *domainpeople.SignIn) value { return code(x.Holder()) }},
		{name: "roles", head: "Roles", value: func(x *domainpeople.SignIn) value { return words(x.Roles.String()) }},
		{name: "groups", head: "Groups", value: func(x *domainpeople.SignIn) value { return several(x.Groups) }},
		{name: "started", head: "Signed in", value: func(x *domainpeople.SignIn) value { return instant(x.Started) }},
		{name: "used", head: "Used", value: func(x *domainpeople.SignIn) value { return instant(x.Used) }},
		{name: "address", head: "From", value: func(x *domainpeople.SignIn) value { return words(x.Address) }},
		{name: "expires", head: "Expires", value: func(x *domainpeople.SignIn) value { return instant(x.Expires) }},
		{name: "checked", head: "Confirmed", hidden: true, value: func(x *domainpeople.SignIn) value { return instant(x.Checked) }},
		{name: "check-by", head: "To be confirmed by", hidden: true, value: func(x *domainpeople.SignIn) value { return instant(x.CheckBy) }},
		{name: "program", head: "Program", hidden: true, value: func(x *domainpeople.SignIn) value { return words(x.Agent) }},
		{name: "id", head: "Session", hidden: true, value: func(x *domainpeople.SignIn) value { return code(x.ID) }},
	},
	id:     func(x *domainpeople.SignIn) string { return x.ID },
	offers: func(x *domainpeople.SignIn) []offered { return []offered{{action: "end-sign-in", id: x.ID}} },
	rows: func(d *Door, r *http.Request, query url.Values, most int) (all []domainpeople.SignIn, next url.Values, err error) {
		if err := d.forAdmins(r, "people", "muster:Service.ListPeople"); err != nil {
			return nil, nil, err
		}
		err = d.engine.Read(r.Context(), func(v *cell.View) error { all = v.SignIns(place(query), most+1); return nil })
		all, next = cut(all, most, func(x *domainpeople.SignIn) url.Values { return since(x.Started, x.ID) })
		return all, next, err
	},
}

// peopleView is the page of the people and their sessions.
type peopleView struct {
	People []domainpeople.Person
	Table  *table
}

func (d *Door) people(r *http.Request, t *table) (*content, error) {
	x := &peopleView{Table: t}
	err := d.engine.Read(r.Context(), func(v *cell.View) error { x.People = v.People(); return nil })
	return &content{Title: "People", Section: "people", page: "people", Data: x, Command: "muster people list"}, err
}

var peopleActions = []*action{{
	name: "end-sign-in", text: "End session", done: "The session has ended.", section: "people", object: true, may: identity.MayAdminister, service: "muster:Service.EndSignIns",
	prepare: func(d *Door, r *http.Request, f *form) error {
		return d.engine.Read(r.Context(), func(v *cell.View) error {
			x, ok := v.SignIn(f.ID)
			if !ok {
				return domain.Refuse(domain.NotFound, "There is no sign-in session %.100q.", f.ID)
			}
			name := strings.TrimSpace(x.Name)
			if name == "" {
				name = x.Subject
			}
			f.Title, f.Grave = "End a session of "+name, true
			f.Effect = "The tokens and credentials of this session are refused at once, and its connections end. The person can sign in again unless the provider refuses."
			return nil
		})
	},
	command: func(f *form) string {
		return terminal("muster people end-session "+shellWord(f.ID), option{"--reason", f.value(reasonField), ""})
	},
	do: func(ctx context.Context, d *Door, _ *actor, f *form) (string, error) {
		if d.config.People == nil {
			return "", errors.New("people do not sign in here")
		}
		return "people", d.config.People.End(ctx, f.ID, domainpeople.EndedByAdmin)
	},
}}
