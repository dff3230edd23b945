package console

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/signin"
)

// code makes a link for a key of the state, and returns what follows the hash.
func (x *desk) code(key string) string {
	x.t.Helper()
	path, _, err := x.Link(x.t.Context(), key)
	if err != nil {
		x.t.Fatal(err)
	}
	page, code, _ := strings.Cut(path, "#")
	if page != linkPath {
		x.t.Fatalf("the link leads to %s", page)
	}
	return code
}

// redeem sends the form of a link, with further headers in pairs.
func (x *desk) redeem(code string, headers ...string) *http.Response {
	r := httptest.NewRequest("POST", linkPath, strings.NewReader(url.Values{"code": {code}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	x.ServeHTTP(w, r)
	return w.Result()
}

func newLinkDesk(t *testing.T) *desk {
	x := newDesk(t)
	if err := x.engine.Do(t.Context(), &access.CreateAccessKey{Key: access.Key{ID: "LOOK", Role: access.ReadOnly}}); err != nil {
		t.Fatal(err)
	}
	return x
}

func TestLinkSignsInOnce(t *testing.T) {
	x := newLinkDesk(t)
	code := x.code("LOOK")
	for name, refused := range map[string]struct {
		response *http.Response
		status   int
	}{
		"a form of another site":     {x.redeem(code, "Sec-Fetch-Site", "cross-site"), http.StatusForbidden},
		"an open connection":         {x.redeem(code, "Open", "1"), http.StatusForbidden},
		"half a link":                {x.redeem(code[:len(code)-1]), http.StatusUnauthorized},
		"without a signature":        {x.redeem(strings.Split(code, ".")[0]), http.StatusUnauthorized},
		"nothing":                    {x.redeem(""), http.StatusUnauthorized},
		"signed, but never made":     {x.redeem("NONE." + x.secret.ConsoleLinkSignature("NONE")), http.StatusUnauthorized},
		"a form that is much larger": {x.redeem(strings.Repeat("x", signInBytesMax)), http.StatusBadRequest},
		"a look at the page":         {x.get(linkPath), http.StatusOK},
	} {
		if refused.response.StatusCode != refused.status || len(refused.response.Cookies()) != 0 {
			t.Errorf("%s: %d with %d cookies, want %d", name, refused.response.StatusCode, len(refused.response.Cookies()), refused.status)
		}
		if strings.Contains(text(t, refused.response), code) {
			t.Errorf("%s: the page has the code", name)
		}
	}
	r := x.redeem(" " + code + "\n")
	if r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != Prefix+"/" || len(r.Cookies()) != 1 {
		t.Fatalf("the link: %d, %s", r.StatusCode, r.Header.Get("Location"))
	}
	if page := x.get(Prefix+"/fleets", r.Cookies()[0]); page.StatusCode != http.StatusOK {
		t.Errorf("signed in by the link: %d", page.StatusCode)
	}
	if again := x.redeem(code); again.StatusCode != http.StatusUnauthorized || !strings.Contains(text(t, again), "was used") || len(again.Cookies()) != 0 {
		t.Errorf("the second time: %d", again.StatusCode)
	}
}

func TestLinkOfARevokedKey(t *testing.T) {
	x := newLinkDesk(t)
	code := x.code("LOOK")
	if err := x.engine.Do(t.Context(), &access.RevokeAccessKey{ID: "LOOK"}); err != nil {
		t.Fatal(err)
	}
	if r := x.redeem(code); r.StatusCode != http.StatusUnauthorized || !strings.Contains(text(t, r), "revoked") || len(r.Cookies()) != 0 {
		t.Errorf("the link of a revoked key: %d", r.StatusCode)
	}
	if _, _, err := x.Link(t.Context(), "LOOK"); err == nil {
		t.Error("a revoked key got a link")
	}
}

// However many requests redeem a link at once, at however many doors, only one succeeds.
func TestLinkForOneOfMany(t *testing.T) {
	x := newLinkDesk(t)
	code := x.code("LOOK")
	other := NewDoor(x.config)
	t.Cleanup(other.Close)
	doors := []*desk{x, {Door: other, t: t}}
	var in atomic.Int32
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			if r := doors[i%2].redeem(code); len(r.Cookies()) > 0 {
				in.Add(1)
			}
		})
	}
	all.Wait()
	if in.Load() != 1 {
		t.Errorf("%d browsers are signed in", in.Load())
	}
}

func TestGuessedLinksAreSlowed(t *testing.T) {
	x := newLinkDesk(t)
	for range 1000 {
		if r := x.redeem("GUESS.GUESS"); r.StatusCode == http.StatusTooManyRequests && r.Header.Get("Retry-After") != "" {
			if r := x.redeem(x.code("LOOK")); r.StatusCode != http.StatusSeeOther { // whose owner others at the address must not lock out
				t.Errorf("a link among guesses: %d", r.StatusCode)
			}
			return
		}
	}
	t.Error("no guess was slowed")
}

func TestLinkInDevelopmentMode(t *testing.T) {
	x := newDesk(t)
	c := x.config
	c.Dev, c.Signins = true, signin.New(signin.Config{CountOnly: true}).Door("console")
	d := NewDoor(c)
	t.Cleanup(d.Close)
	if path, expires, err := d.Link(t.Context(), "any"); path != Prefix+"/" || !expires.IsZero() || err != nil {
		t.Errorf("got %s until %v, %v", path, expires, err)
	}
}
