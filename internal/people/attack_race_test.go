package people

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/kernel"
	domainpeople "github.com/musterhq/muster/internal/domain/people"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/people/providertest"
)

var issuing = audit.Origin{Door: audit.DoorAPI, Operation: "GetRoleCredentials"}

// An attacker who has stolen a sign-in asks for credentials and uses them as fast as possible while its person signs out. None of them works when the sign-out is answered.
func TestAttackSignOutRace(t *testing.T) {
	x := studio(t, providertest.New(t), nil)
	for range 10 {
		b := x.browser()
		b.get("/signin/start/studio?back=/")
		id := b.session()
		var mu sync.Mutex
		var issued []identity.Credentials
		var lives []interface{ Err() error }
		begun, over := make(chan struct{}, 64), make(chan struct{})
		var thieves sync.WaitGroup
		for range 4 {
			thieves.Go(func() {
				for {
					select {
					case <-over:
						return
					default:
					}
					person, ok := x.Session(t.Context(), id)
					if !ok {
						return
					}
					c, err := x.Issue(t.Context(), issuing, &person, access.Backend, time.Hour)
					if err != nil {
						continue
					}
					key, err := x.ring.With(c.ID, c.Token, "192.0.2.1")
					mu.Lock()
					issued = append(issued, c)
					if err == nil {
						lives = append(lives, key.Life())
					}
					mu.Unlock()
					select {
					case begun <- struct{}{}:
					default:
					}
				}
			})
		}
		<-begun
		if err := x.End(t.Context(), id, domainpeople.SignedOut); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		for _, c := range issued {
			if _, err := x.ring.With(c.ID, c.Token, "192.0.2.1"); err == nil {
				t.Error("credentials work after the sign-out")
			}
		}
		mu.Unlock()
		close(over)
		thieves.Wait()
		for _, c := range issued { // also those that were under way
			if _, err := x.ring.With(c.ID, c.Token, "192.0.2.1"); err == nil {
				t.Error("credentials that were issued meanwhile work after the sign-out")
			}
		}
		for _, life := range lives {
			if life.Err() == nil {
				t.Error("what credentials have opened goes on after the sign-out")
			}
		}
	}
}

// An administrator is moved to another group at the provider, but still has administrators' credentials, streams, and a program that remembers the old roles.
func TestAttackGroupsChange(t *testing.T) {
	p := providertest.New(t)
	p.Person("ann", map[string]any{"groups": []string{"ops"}})
	x := studio(t, p, nil)
	b := x.browser()
	b.get("/signin/start/studio?back=/")
	id := b.session()
	before, ok := x.Session(t.Context(), id)
	if !ok || !before.Roles.Covers(access.Admin) {
		t.Fatalf("the person is %+v", before)
	}
	issue := func(who *Person, role access.Role) identity.Credentials {
		t.Helper()
		c, err := x.Issue(t.Context(), issuing, who, role, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	with := func(c identity.Credentials) (identity.AccessKey, error) {
		return x.ring.With(c.ID, c.Token, "192.0.2.1")
	}
	admin, reader := issue(&before, access.Admin), issue(&before, access.ReadOnly)
	key, err := with(admin)
	if err != nil {
		t.Fatal(err)
	}
	stream := key.Life()
	p.Person("ann", map[string]any{"groups": []string{"dev"}})
	x.due(id)
	x.pass()
	if _, err := with(admin); err == nil || stream.Err() == nil {
		t.Errorf("administrators' credentials after the change: %v, their streams: %v", err, stream.Err())
	}
	if _, err := with(reader); err != nil {
		t.Errorf("credentials that the new group gives as well: %v", err)
	}
	if _, err := with(issue(&before, access.Admin)); err == nil {
		t.Error("a program that remembers the old roles gets credentials that work")
	}
	if now, _ := x.Session(t.Context(), id); now.Roles.Covers(access.Admin) {
		t.Errorf("the roles are %s", now.Roles)
	} else if _, err := x.Issue(t.Context(), issuing, &now, access.Admin, time.Hour); err != ErrNoRole {
		t.Errorf("credentials above the new role: %v", err)
	}
	if _, body := b.get("/thing"); !strings.HasPrefix(body, "studio/ann backend") {
		t.Errorf("the browser is %s", body)
	}
}

// Neither the answer to a wrong link or passkey nor the work for it reveals whether a person exists. The test compares allocations, because its clock is not precise enough.
func TestAttackWhoExists(t *testing.T) {
	x := newHouse(t, map[string]any{})
	person := &domainpeople.CreatePerson{Person: domainpeople.Person{ID: domainpeople.ID{1}.String(), Name: "ann"}}
	_, hash := x.NewEnrolment()
	for _, cmd := range []kernel.Command{person, &domainpeople.IssueEnrolment{Person: "ann", Hash: hash, Valid: time.Hour}} {
		if err := x.engine.Do(t.Context(), cmd); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(path, body string) (answer string) {
		r := httptest.NewRequest(http.MethodPost, x.base()+path, strings.NewReader(body))
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		w := httptest.NewRecorder()
		x.ServeHTTP(w, r)
		return w.Result().Status + w.Body.String()
	}
	link := func(id domainpeople.ID) string {
		return `{"link":"` + id.String() + `.` + strings.Repeat("x", 43) + `"}`
	}
	known, unknown := link(domainpeople.ID{1}), link(domainpeople.ID{2})
	const path = "/signin/enrol/begin"
	if a, b := ask(path, known), ask(path, unknown); a != b {
		t.Errorf("a wrong link of a person: %s; of nobody: %s", a, b)
	}
	work := func(body string) float64 { return testing.AllocsPerRun(200, func() { ask(path, body) }) }
	if a, b := work(known), work(unknown); max(a, b) > 1.1*min(a, b) {
		t.Errorf("a wrong link of a person takes %v allocations, one of nobody %v", a, b)
	}
}
