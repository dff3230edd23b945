package people

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/people"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/enginetest"
)

// The nodes of a cluster agree on when a sign-in that one of them began is over at the others, whose clocks may differ.
func TestSignInAtANodeWithAnotherClock(t *testing.T) {
	x := newHouse(t, map[string]any{})
	x.ahead.Store(int64(time.Hour))
	begun := func(path string) *http.Request {
		t.Helper()
		r := httptest.NewRequest("POST", x.base()+path, strings.NewReader(`{"back":"/"}`))
		r.Header.Set("Origin", x.base())
		w := httptest.NewRecorder()
		x.Door.ServeHTTP(w, r)
		r = httptest.NewRequest("GET", "/", nil)
		for _, c := range w.Result().Cookies() {
			r.AddCookie(c)
		}
		return r
	}
	r := begun("/signin/passkey/begin")
	if _, session, err := x.challenge(httptest.NewRecorder(), r); err != nil || !session.Expires.IsZero() {
		t.Errorf("%v, the library's own end is %v", err, session.Expires)
	}
	x.ahead.Add(int64(passkeyLife))
	if _, ok := x.unsealed(r); ok {
		t.Error("the sign-in goes on by the clock of this machine")
	}
}

// post sends what the script of a page at an origin sends.
func (x *house) post(path, origin, body string, cookies ...*http.Cookie) (status int, text string, set []*http.Cookie) {
	x.Helper()
	r, err := http.NewRequest("POST", x.base()+path, strings.NewReader(body))
	if err != nil {
		x.Fatal(err)
	}
	r.Header.Set("Origin", origin)
	for _, c := range cookies {
		r.AddCookie(c)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		x.Fatal(err)
	}
	defer answer.Body.Close()
	content, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(content), answer.Cookies()
}

// A passkey that cannot be looked up is not a wrong one.
func TestPasskeyWithoutALeader(t *testing.T) {
	x := newHouse(t, map[string]any{})
	_, _, cookies := x.post("/signin/passkey/begin", x.base(), `{"back":"/"}`)
	good := x.Door.engine
	x.Door.engine = enginetest.Open(t, engine.Config{Cell: cell.DefaultConfig(), Peers: enginetest.Leaderless{}, Patience: time.Millisecond})
	handle := base64.RawURLEncoding.EncodeToString(make([]byte, len(people.ID{})))
	answer := `{"id":"AQ","rawId":"AQ","type":"public-key","response":{"clientDataJSON":"e30","authenticatorData":"` + base64.RawURLEncoding.EncodeToString(make([]byte, 37)) + `","signature":"AA","userHandle":"` + handle + `"}}`
	if status, text, _ := x.post("/signin/passkey/finish", x.base(), answer, cookies...); status != http.StatusServiceUnavailable || strings.Contains(text, wrongPasskey) || strings.Contains(x.log.String(), "sign-in failed") {
		t.Errorf("%d %s, want 503\n%s", status, text, x.log)
	}
	x.Door.engine = good
	if status, text, _ := x.post("/signin/passkey/finish", x.base(), answer, cookies...); status != http.StatusUnauthorized || !strings.Contains(text, wrongPasskey) {
		t.Errorf("with a leader: %d %s, want 401", status, text)
	}
}
