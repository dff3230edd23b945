package providers

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/people/providertest"
)

// Logout tokens may come from anywhere. Wrong ones do not make this service ask the provider again and again, and do not block the provider's own logouts.
func TestAttackLogoutFlood(t *testing.T) {
	real, other := providertest.New(t), providertest.New(t)
	asks, answer := make(chan struct{}, 100), make(chan struct{})
	var hangs atomic.Bool
	real.Serve = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/keys" && hangs.Load() {
			asks <- struct{}{}
			<-answer
		}
		return false
	}
	content, err := json.Marshal(map[string]any{"providers": []any{real.Settings(t, "studio", map[string][]string{"admin": {"ops"}})}})
	if err != nil {
		t.Fatal(err)
	}
	file, err := parse(content)
	if err != nil {
		t.Fatal(err)
	}
	p, ahead := file.Providers[0], time.Duration(0)
	p.now = func() time.Time { return time.Now().Add(ahead) }
	claims := func(id string) map[string]any {
		now := p.now().Unix()
		return map[string]any{"iss": real.URL, "aud": real.ClientID, "iat": now, "exp": now + 120, "jti": id, "sub": "ann", "events": map[string]any{logoutEvent: map[string]any{}}}
	}
	logout := func(token string) error { _, err := p.Logout(t.Context(), token); return err }
	wrong := func() string { return other.Signed(claims("x")) } // by the id of the provider's key
	unknown := func() string {
		_, rest, _ := strings.Cut(wrong(), ".")
		return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","kid":"made-up"}`)) + "." + rest
	}

	if err := logout(real.Signed(claims("a"))); err != nil {
		t.Fatal(err)
	}
	before := real.Asked("/keys")
	for range 20 {
		if logout(wrong()) == nil || logout(unknown()) == nil {
			t.Fatal("a wrong token is taken")
		}
	}
	if n := real.Asked("/keys") - before; n > 1 {
		t.Errorf("40 wrong tokens caused %d requests for keys, want at most 1", n)
	}

	// While wrong tokens wait for a slow provider, its logouts get through.
	ahead += time.Hour
	hangs.Store(true)
	done := make(chan error, logoutsAtOnce)
	for range logoutsAtOnce {
		go func() { done <- logout(unknown()) }()
	}
	<-asks
	for len(p.logouts) < logoutsAtOnce {
		time.Sleep(time.Millisecond)
	}
	if err := logout(unknown()); !errors.Is(err, ErrBusy) {
		t.Errorf("a wrong token behind %d that wait: %v", logoutsAtOnce, err)
	}
	if err := logout(real.Signed(claims("b"))); err != nil {
		t.Errorf("a logout beside wrong ones: %v", err)
	}
	close(answer)
	for range logoutsAtOnce {
		if <-done == nil {
			t.Error("a wrong token is taken")
		}
	}

	// A key that the provider has changed is fetched, even after earlier requests for it.
	hangs.Store(false)
	ahead += time.Hour
	if err := real.NewKey("k2"); err != nil {
		t.Fatal(err)
	}
	if err := logout(real.Signed(claims("c"))); err != nil {
		t.Errorf("a logout by a new key: %v", err)
	}

	// If it is too soon for that request, the provider is told to repeat the logout, and forged tokens cause no further requests meanwhile.
	ahead += time.Hour
	if err := logout(unknown()); err == nil || errors.Is(err, ErrTooSoon) {
		t.Errorf("a wrong token for which the keys were fetched: %v", err)
	}
	if err := real.NewKey("k2b"); err != nil {
		t.Fatal(err)
	}
	early := real.Signed(claims("early"))
	before = real.Asked("/keys")
	if err := logout(early); !errors.Is(err, ErrTooSoon) {
		t.Errorf("a logout by a new key soon after a wrong token: %v, want ErrTooSoon", err)
	}
	if err := other.NewKey("k2"); err != nil {
		t.Fatal(err)
	}
	if err := logout(wrong()); err == nil || errors.Is(err, ErrTooSoon) {
		t.Errorf("a wrong signature by a known key: %v", err)
	}
	if n := real.Asked("/keys") - before; n > 0 {
		t.Errorf("%d requests for keys within %v of the last one", n, logoutKeysEvery)
	}
	ahead += logoutKeysEvery
	if err := logout(early); err != nil {
		t.Errorf("the repeated logout: %v", err)
	}

	// A key that the provider has withdrawn counts for as long as its metadata at most.
	ahead += discoveryKept
	old := real.Signed(claims("d"))
	if err := real.NewKey("k3"); err != nil {
		t.Fatal(err)
	}
	if logout(old) == nil {
		t.Error("a logout by a key that was withdrawn a day ago is taken")
	}
}

// Keys that could not be fetched say nothing about a logout token, neither to the request that has fetched them nor to others soon after it.
func TestLogoutsWhileTheKeysCannotBeFetched(t *testing.T) {
	real := providertest.New(t)
	var down atomic.Bool
	asks, answer := make(chan struct{}, 1), make(chan struct{})
	real.Serve = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/keys" || !down.Load() {
			return false
		}
		asks <- struct{}{}
		<-answer
		http.Error(w, "down", http.StatusServiceUnavailable)
		return true
	}
	p, ahead := only(t, real), time.Duration(0)
	p.now = func() time.Time { return time.Now().Add(ahead) }
	logout := func(id string) error {
		now := p.now().Unix()
		_, err := p.Logout(t.Context(), real.Signed(map[string]any{"iss": real.URL, "aud": real.ClientID, "iat": now, "exp": now + 120, "jti": id, "sub": "ann", "events": map[string]any{logoutEvent: map[string]any{}}}))
		return err
	}
	down.Store(true)
	done := make(chan error, 2)
	go func() { done <- logout("a") }()
	<-asks
	go func() { done <- logout("b") }()
	for len(p.logouts) < 2 {
		time.Sleep(time.Millisecond)
	}
	close(answer)
	for range 2 {
		if err := <-done; !errors.Is(err, ErrUnreachable) {
			t.Errorf("a logout at the same time: %v, want ErrUnreachable", err)
		}
	}
	if err := logout("c"); !errors.Is(err, ErrUnreachable) {
		t.Errorf("a logout soon after: %v, want ErrUnreachable", err)
	}
	down.Store(false)
	ahead += logoutKeysEvery
	if err := logout("c"); err != nil {
		t.Errorf("the repeated logout: %v", err)
	}
}
