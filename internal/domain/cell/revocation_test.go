package cell

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// revoking is a cell at a time that the test moves.
type revoking struct {
	*Cell
	now domain.Time
}

func newRevoking(t *testing.T) *revoking {
	x := &revoking{New(DefaultConfig()), domain.TimeOf(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))}
	if err := x.do(&kernel.RaiseLevel{To: x.KnownLevel()}); err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *revoking) do(cmd kernel.Command) error {
	_, err := x.Execute(cmd, &kernel.Env{Now: x.now, Number: 1})
	return err
}

func (x *revoking) list() []access.Revocation {
	v := x.View()
	return v.Revocations()
}

func TestRevocationsOfCredentials(t *testing.T) {
	x := newRevoking(t)
	for _, bad := range []*access.RevokeCredentials{
		{}, {Session: "ASIA1", Holder: "lobby"}, {Session: "ASIA1", IssuedUntil: x.now}, {Holder: "lobby", IssuedUntil: x.now + 1},
		{Session: strings.Repeat("x", 129)}, {Holder: strings.Repeat("x", 257)},
		{Certificate: "studio/1", Holder: "lobby"}, {Certificate: "studio/1", IssuedUntil: x.now}, {Holder: "lobby", Until: x.now}, {Certificate: "studio/"}, {Certificate: "/1"}, {Certificate: "1"},
		{Certificate: "studio/1G"}, {Certificate: "sha256:12"}, {Certificate: "studio/" + strings.Repeat("1", 65)}, {Certificate: "sha256:" + strings.Repeat("A", 64)},
	} {
		if refusal, ok := errors.AsType[*domain.Refusal](x.do(bad)); !ok || refusal.Reason != domain.Invalid {
			t.Errorf("%.60v: %v, want Invalid", bad, refusal)
		}
	}
	do := func(cmd *access.RevokeCredentials) {
		t.Helper()
		if err := x.do(cmd); err != nil {
			t.Fatal(err)
		}
	}
	began := x.now
	do(&access.RevokeCredentials{Session: "ASIA1", By: access.Actor{Principal: "ops", Door: "local"}})
	do(&access.RevokeCredentials{Holder: "lobby"})
	x.now = x.now.Add(time.Hour)
	do(&access.RevokeCredentials{Holder: "lobby", IssuedUntil: began.Add(-time.Hour)}) // which must not shorten the one in force
	want := []access.Revocation{
		{Session: "ASIA1", At: began, Until: began.Add(access.CredentialsLifeMax), By: access.Actor{Principal: "ops", Door: "local"}},
		{Holder: "lobby", IssuedUntil: began, At: x.now, Until: began.Add(access.CredentialsLifeMax)},
	}
	if got := x.list(); !slices.Equal(got, want) {
		t.Errorf("revocations\n%+v, want\n%+v", got, want)
	}

	var stored bytes.Buffer
	if err := x.Freeze().Write(&stored); err != nil {
		t.Fatal(err)
	}
	loaded := New(DefaultConfig())
	if err := loaded.Load(&stored); err != nil {
		t.Fatal(err)
	}
	if v := loaded.View(); !slices.Equal(v.Revocations(), want) {
		t.Errorf("the snapshot has %+v, want %+v", v.Revocations(), want)
	}

	x.now = began.Add(access.CredentialsLifeMax)
	do(&access.RevokeCredentials{Session: "ASIA2"})
	if got := x.list(); len(got) != 1 || got[0].Session != "ASIA2" {
		t.Errorf("once all the credentials have expired, the revocations are %+v, want that of ASIA2 alone", got)
	}
}

// The revocation of a certificate stays until the last credentials that it may have given have expired.
func TestRevocationsOfCertificates(t *testing.T) {
	x := newRevoking(t)
	began := x.now
	for name, until := range map[string]domain.Time{"studio/1": 0, "studio/2": began.Add(time.Hour), "sha256:" + strings.Repeat("a", 64): began.Add(-time.Hour)} {
		if err := x.do(&access.RevokeCredentials{Certificate: name, Until: until}); err != nil {
			t.Fatal(err)
		}
	}
	until := map[string]domain.Time{}
	for _, r := range x.list() {
		until[r.Certificate] = r.Until
	}
	want := map[string]domain.Time{"studio/1": began.Add(access.CertificateLifeMax), "studio/2": began.Add(time.Hour + access.CredentialsLifeMax), "sha256:" + strings.Repeat("a", 64): began.Add(access.CredentialsLifeMax)}
	if !maps.Equal(until, want) {
		t.Errorf("they end at %v, want %v", until, want)
	}
	for i := range access.CertificatesRevokedMax - 3 {
		if err := x.do(&access.RevokeCredentials{Certificate: fmt.Sprintf("hosts/%x", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if refusal, ok := errors.AsType[*domain.Refusal](x.do(&access.RevokeCredentials{Certificate: "hosts/ffff"})); !ok || refusal.Reason != domain.LimitExceeded {
		t.Errorf("one too many: %v, want LimitExceeded", refusal)
	}
	if err := x.do(&access.RevokeCredentials{Session: "ASIA1"}); err != nil {
		t.Errorf("a session beside them: %v", err)
	}
}

func TestRevocationsMax(t *testing.T) {
	x := newRevoking(t)
	for i := range access.RevocationsMax {
		if err := x.do(&access.RevokeCredentials{Session: fmt.Sprint("ASIA", i)}); err != nil {
			t.Fatal(err)
		}
	}
	one := &access.RevokeCredentials{Session: "ASIAmore"}
	if refusal, ok := errors.AsType[*domain.Refusal](x.do(one)); !ok || refusal.Reason != domain.LimitExceeded {
		t.Errorf("one too many: %v, want LimitExceeded", refusal)
	}
	if err := x.do(&access.RevokeCredentials{Session: "ASIA0"}); err != nil {
		t.Errorf("one that is in force: %v", err)
	}
	x.now = x.now.Add(access.CredentialsLifeMax)
	if err := x.do(one); err != nil {
		t.Errorf("after the others are over: %v", err)
	}
}

func TestRolesCover(t *testing.T) {
	all := []access.Role{access.NoRole, access.Admin, access.Backend, access.Client, access.ReadOnly}
	covers := map[access.Role]string{access.Admin: "admin backend client readonly", access.Backend: "backend client readonly", access.Client: "client", access.ReadOnly: "readonly"}
	for _, r := range all {
		for _, other := range all {
			if want := other.Known() && slices.Contains(strings.Fields(covers[r]), other.String()); r.Covers(other) != want {
				t.Errorf("%s covers %s: %t, want %t", r, other, !want, want)
			}
		}
	}
}
