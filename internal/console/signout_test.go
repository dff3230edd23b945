package console

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/access"
	domainpeople "github.com/musterhq/muster/internal/domain/people"
	"github.com/musterhq/muster/internal/people"
	"github.com/musterhq/muster/internal/people/providers"
	"github.com/musterhq/muster/internal/signin"
)

// A person whose sign-in the service could not end is told so.
func TestSignOutThatFails(t *testing.T) {
	x := newDesk(t)
	ring := x.withKeys()
	file, err := providers.ReadFile("")
	if err != nil {
		t.Fatal(err)
	}
	door, err := people.NewDoor(people.Config{
		Engine: x.engine, Secret: x.secret, Keys: ring, URL: "https://muster.example", File: file, Private: x.config.Private, Secure: x.config.Secure, Signins: signin.New(signin.Config{}).Door("sign_in"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(door.Close)
	x.config.People = door
	start := &domainpeople.StartSession{
		SignIn: domainpeople.SignIn{ID: "signin-00000000-0000-4000-8000-000000000001", Kind: domainpeople.Browser, Provider: "corp", Subject: "ann", Roles: access.Roles(access.ReadOnly)}, Valid: time.Hour, Check: time.Hour,
	}
	x.do(start)
	if err := ring.Await(t.Context(), start.SignIn.Changed); err != nil {
		t.Fatal(err)
	}
	if err := x.engine.Close(); err != nil {
		t.Fatal(err)
	}
	id := base64.RawURLEncoding.EncodeToString([]byte(start.SignIn.ID))
	r := httptest.NewRequest("POST", Prefix+"/sign-out", nil)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.AddCookie(&http.Cookie{Name: "__Host-muster-sign-in", Value: id + "." + base64.RawURLEncoding.EncodeToString(x.secret.SignInSignature("session\x00"+id))})
	w := httptest.NewRecorder()
	x.ServeHTTP(w, r)
	x.wantPage(w.Result(), http.StatusServiceUnavailable, people.NotEnded)
	if cookies := w.Result().Cookies(); len(cookies) != 2 || cookies[0].MaxAge >= 0 || cookies[1].MaxAge >= 0 {
		t.Errorf("the cookies are %v", cookies)
	}
}
