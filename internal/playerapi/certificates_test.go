package playerapi

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/playerapi/objects"
)

// A certificate that the port has checked stands for an access key, as long as that works; each call has its roles.
func TestCredentials(t *testing.T) {
	x := newLobby(t, nil)
	key := func(role identity.Role) identity.AccessKey {
		k, err := x.keys.Create(t.Context(), access.Actor{}, keyring.New{Role: role})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	backend, admin, reader, client, revoked := key(identity.Backend), key(identity.Admin), key(identity.ReadOnly), key(identity.Client), key(identity.Backend)
	second := key(identity.Backend) // of the same service account: the next secret, while the first is good still
	if _, err := x.keys.Revoke(t.Context(), access.Actor{}, revoked.ID, true); err != nil {
		t.Fatal(err)
	}
	named := func(name string, uris ...string) *x509.Certificate {
		c := &x509.Certificate{Subject: pkix.Name{CommonName: name}}
		for _, text := range uris {
			u, _ := url.Parse(text)
			c.URIs = append(c.URIs, u)
		}
		return c
	}
	const urn = "urn:muster:access-key:"
	const issue, look, audit = "partner/Identity.IssueLoginTicket", "partner/Flow.GetPlayers", "operator/Operator.Audit"
	bodies := map[string]string{issue: `{"player_id":"ann"}`, look: `{"player_ids":["ann"]}`, audit: `{"reason":"test"}`}
	for _, c := range []struct {
		name, call  string
		certificate *x509.Certificate
		checked     bool
		token       string
		status      int
	}{
		{"a name", issue, named(backend.ID), true, "", 200},
		{"a URI", issue, named("lobby.example.com", "https://lobby.example.com", urn+backend.ID), true, "", 200},
		{"a URI goes before the name", issue, named(admin.ID, urn+client.ID), true, "", 403},
		{"two keys", issue, named("", urn+backend.ID, urn+admin.ID), true, "", 401},
		{"nobody's name", issue, named("lobby.example.com"), true, "", 401},
		{"no name", issue, named(""), true, "", 401},
		{"a certificate that was not checked", issue, named(backend.ID), false, "", 401},
		{"a revoked key", issue, named(revoked.ID), true, "", 401},
		{"a role that may not", audit, named(backend.ID), true, "", 403},
		{"an operator", audit, named(admin.ID), true, "", 200},
		{"a key beside it, which counts", issue, named(admin.ID), true, client.ID + "." + client.Secret, 403},
		{"a wrong key beside it", issue, named(admin.ID), true, backend.ID + ".x", 401},
		{"the first secret", issue, nil, false, backend.ID + "." + backend.Secret, 200},
		{"the second secret", issue, nil, false, second.ID + "." + second.Secret, 200},
		{"another's secret", issue, nil, false, backend.ID + "." + second.Secret, 401},
		{"who looks at players", look, nil, false, reader.ID + "." + reader.Secret, 200},
		{"who looks at everything", audit, nil, false, reader.ID + "." + reader.Secret, 200},
		{"who only looks", issue, nil, false, reader.ID + "." + reader.Secret, 403},
		{"a game client", look, nil, false, client.ID + "." + client.Secret, 403},
	} {
		realm := x.door.Partner()
		if c.call == audit {
			realm = x.door.Operator()
		}
		r := httptest.NewRequestWithContext(t.Context(), "POST", objects.Prefix+c.call, strings.NewReader(bodies[c.call]))
		r.Header.Set("Content-Type", "application/json")
		r.RemoteAddr = "203.0.113.1:1"
		r.TLS = &tls.ConnectionState{}
		if c.certificate != nil {
			r.TLS.PeerCertificates = []*x509.Certificate{c.certificate}
			if c.checked {
				r.TLS.VerifiedChains = [][]*x509.Certificate{{c.certificate}}
			}
		}
		if c.token != "" {
			r.Header.Set("Authorization", "Bearer "+c.token)
		}
		w := httptest.NewRecorder()
		realm.ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("%s: %d %s, want %d", c.name, w.Code, w.Body, c.status)
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), "POST", objects.Prefix+issue, strings.NewReader(bodies[issue]))
	r.Header.Set("Content-Type", "application/json")
	r.RemoteAddr = "203.0.113.1:1"
	r.SetBasicAuth(backend.ID, backend.Secret)
	w := httptest.NewRecorder()
	x.door.Partner().ServeHTTP(w, r)
	if w.Code != 403 || !strings.Contains(w.Body.String(), "without TLS") {
		t.Errorf("a key over a connection that can be overheard: %d %s", w.Code, w.Body)
	}
}
