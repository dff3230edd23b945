package console

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/access"
)

func TestPaceBoundsTheShareOfRefreshes(t *testing.T) {
	var p pace
	begin := time.Unix(1000, 0)
	const cost = 2 * time.Millisecond
	now, spent := begin, time.Duration(0)
	for range 2000 {
		now = now.Add(p.reserve(now))
		p.spent(cost)
		spent += cost
	}
	if share, most := spent, now.Sub(begin)/refreshShare+refreshBurst+10*cost; share > most {
		t.Errorf("refreshes took %s within %s; want %s at most", share, now.Sub(begin), most)
	}
	if ideal := spent * refreshShare; now.Sub(begin) > ideal+time.Second {
		t.Errorf("%s of refreshes took %s; want about %s", spent, now.Sub(begin), ideal)
	}
}

func TestPaceLetsFewPagesRefreshAtOnce(t *testing.T) {
	var p pace
	now := time.Unix(1000, 0)
	for second := range 60 {
		for range 5 {
			if wait := p.reserve(now); wait > 0 {
				t.Fatalf("second %d: a sign waits %s", second, wait)
			}
			p.spent(2 * time.Millisecond)
		}
		now = now.Add(time.Second)
	}
}

func TestPaceForgetsAnOutrageousCost(t *testing.T) {
	var p pace
	now := time.Unix(1000, 0)
	p.reserve(now)
	p.spent(time.Hour)
	if wait := p.reserve(now); wait != refreshLatest {
		t.Errorf("a sign waits %s; want %s", wait, refreshLatest)
	}
}

func TestSharedPagesEndWithTheChange(t *testing.T) {
	var s shared
	s.put(5, "admin /console/", []byte("five"))
	if got := s.get(5, "admin /console/"); string(got) != "five" {
		t.Errorf("got %q", got)
	}
	if got := s.get(6, "admin /console/"); got != nil {
		t.Errorf("a page of entry 5 was shown after entry 6: %q", got)
	}
	if got := s.get(5, "readonly /console/"); got != nil {
		t.Errorf("a page for administrators was shown to another role: %q", got)
	}
	s.put(6, "admin /console/", []byte("six"))
	s.put(5, "admin /console/hosts", []byte("late"))
	if got := s.get(5, "admin /console/hosts"); got != nil {
		t.Errorf("a late page was kept: %q", got)
	}
	s.put(6, "admin /console/hosts", make([]byte, sharedBytesMax))
	if got := s.get(6, "admin /console/hosts"); got != nil {
		t.Errorf("%d bytes were kept beyond the bound", len(got))
	}
}

// A refresh equals the part of the page that follows the state, for the same role, and is the same when it is shared.
func TestRefreshIsPartOfThePage(t *testing.T) {
	x := newDesk(t)
	for _, key := range []string{"ADMIN", "LOOK"} {
		c := x.signedInAs(key)
		whole := text(t, x.get(Prefix+"/fleets", c))
		for range 2 {
			part := text(t, x.refreshed(Prefix+"/fleets", c))
			if !strings.HasPrefix(part, `<main id="main"`) || !strings.Contains(whole, part) {
				t.Errorf("%s got %s", key, part)
			}
		}
	}
	if r := x.refreshed(Prefix+"/keys", x.signedInAs("LOOK")); r.StatusCode != http.StatusForbidden {
		t.Errorf("a page for administrators was shown to another role: %d", r.StatusCode)
	}
	if r := x.refreshed(Prefix + "/fleets"); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("a page was shown without a sign-in: %d", r.StatusCode)
	}
}

// A page that a person's policies deny is not answered from the pages of others, and theirs does not become the page of others.
func TestRefreshObeysPolicies(t *testing.T) {
	x := newDesk(t)
	x.withKeys()
	x.keys.Publish(keysNamed("ADMIN", access.Admin, "BOUND", access.Admin))
	err := x.keys.PublishPolicies([]access.Policy{{Name: "p", Text: `{"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "muster:Console.Look", "Resource": "*"}}`}},
		[]access.PolicyAttachment{{Policy: "p", Target: access.Target{Kind: access.KeyTarget, Name: "BOUND"}}})
	if err != nil {
		t.Fatal(err)
	}
	admin, bound := x.signedInAs("ADMIN"), x.signedInAs("BOUND")
	for _, path := range []string{"/keys", "/policies", "/people", "/audit"} {
		for range 2 {
			x.wantPage(x.refreshed(Prefix+path, admin), http.StatusOK)
			x.wantPage(x.refreshed(Prefix+path, bound), http.StatusForbidden, "is not authorized to perform")
		}
	}
	audited := false
	x.config.Feed = func(_ context.Context, _ url.Values, mayAudit bool) ([]byte, error) {
		audited = mayAudit
		return []byte(`{"entries": []}`), nil
	}
	for key, want := range map[*http.Cookie]bool{bound: false, admin: true} {
		if x.refreshed(Prefix+"/events/fleet/fleet-1", key); audited != want {
			t.Errorf("the events had entries of the audit log: %t", audited)
		}
	}
}

func (x *desk) refreshed(path string, cookies ...*http.Cookie) *http.Response {
	r := httptest.NewRequest("GET", path, nil)
	r.Header.Set("HX-Request", "true")
	r.Header.Set("HX-Target", "main")
	for _, c := range cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	x.ServeHTTP(w, r)
	return w.Result()
}
