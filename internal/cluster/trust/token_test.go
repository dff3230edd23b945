package trust

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/logtest"
)

func newToken(t testing.TB, a *Authority) Token {
	t.Helper()
	token, err := NewToken(a, "10.0.0.1:8090", "[::1]:8090", "node-1.example.com:8090")
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestTokens(t *testing.T) {
	token := newToken(t, newCluster(t, cluster))
	text := token.Text()
	if strings.ContainsAny(text, " \n'\"$`\\") || !strings.HasPrefix(text, "muster-join-1/10.0.0.1:8090,[::1]:8090,") {
		t.Errorf("the text is %q", text)
	}
	for _, x := range []string{text, "  " + text + "\r\n"} {
		if got, err := ParseToken(x); err != nil || !reflect.DeepEqual(got, token) {
			t.Errorf("%q: got %v, %v", x, got, err)
		}
	}
	other := newToken(t, newCluster(t, cluster))
	if other.ID == token.ID || other.Secret == token.Secret {
		t.Error("two tokens have the same id or secret")
	}
	hash := token.Secret.Hash()
	if !hash.Matches(token.Secret) || hash.Matches(other.Secret) || hash.Matches(Secret{}) {
		t.Error("the hash matches another secret than its own")
	}
	for _, addresses := range [][]string{nil, make([]string, 9), {"10.0.0.1"}, {"10.0.0.1:0"}, {":8090"}, {"a:b"}, {"a/b:1"}, {"a,b:1"}, {"a b:1"}, {"a:65536"}} {
		if _, err := NewToken(newCluster(t, cluster), addresses...); err == nil {
			t.Errorf("addresses %q were accepted", addresses)
		}
	}
}

func TestTokensThatAreNone(t *testing.T) {
	good := newToken(t, newCluster(t, cluster)).Text()
	parts := strings.Split(good, "/")
	with := func(n int, part string) string {
		changed := append([]string{}, parts...)
		changed[n] = part
		return strings.Join(changed, "/")
	}
	for text, part := range map[string]string{
		"":                                       "token",
		"hello":                                  "token",
		parts[4]:                                 "token",
		"muster-join-2" + good[13:]:              "token",
		good[:len(good)-len(parts[4])-1]:         "token",
		good + "/x":                              "token",
		good + strings.Repeat(" /", 3000):        "token",
		with(1, ""):                              "address",
		with(1, parts[4]):                        "address",
		with(1, "10.0.0.1:8090,"):                "address",
		with(1, "10.0.0.1"):                      "address",
		with(1, strings.Repeat("a:1,", 8)+"a:1"): "address",
		with(1, "ä:1"):                           "address",
		with(2, parts[2][1:]):                    "fingerprint",
		with(2, parts[2][1:]+"!"):                "fingerprint",
		with(3, ""):                              "id",
		with(3, strings.ToUpper("abcdefabcdefabcd")): "id",
		with(3, "abcd"):    "id",
		with(4, ""):        "secret",
		good[:len(good)-1]: "secret",
		good + "x":         "secret",
		with(4, parts[4][:20]+"\n"+parts[4][21:]): "secret",
		with(4, parts[4][:42]+"_"):                "secret", // has bits that no byte has
	} {
		token, err := ParseToken(text)
		wrong, ok := errors.AsType[*TokenError](err)
		if !ok || wrong.Part != part || !reflect.DeepEqual(token, Token{}) {
			t.Errorf("%q: got %v, %v; want an error about the %s", text, token, err, part)
		} else if strings.Contains(err.Error(), parts[4][:8]) {
			t.Errorf("%q: the error contains the secret: %v", text, err)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add(newToken(f, newCluster(f, cluster)).Text())
	f.Add("muster-join-1/a:1/x/y/z")
	f.Fuzz(func(t *testing.T, text string) {
		token, err := ParseToken(text)
		if err == nil && token.Text() != strings.TrimSpace(text) {
			t.Errorf("%q is read as %q", text, token.Text())
		}
	})
}

func TestSecretsAreNotPrinted(t *testing.T) {
	token := newToken(t, newCluster(t, cluster))
	var log logtest.Log
	for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(handler).Info("joins", "token", token, "secret", token.Secret)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d", "%q"} {
		fmt.Fprintf(&log, format+"\n", token)
		fmt.Fprintf(&log, format+"\n", token.Secret)
		fmt.Fprintf(&log, format+"\n", &token)
	}
	content, err := json.Marshal(token)
	fmt.Fprintln(&log, string(content), err)
	out := log.String()
	for _, spelled := range []string{token.Secret.Text(), fmt.Sprintf("%x", token.Secret[:]), fmt.Sprint(token.Secret[:])[1:20], fmt.Sprintf("%d,%d", token.Secret[0], token.Secret[1])} {
		if strings.Contains(out, spelled) {
			t.Errorf("%q is in\n%s", spelled, out)
		}
	}
}

// TestJoinClients: a node that joins trusts the authority of its token alone.
func TestJoinClients(t *testing.T) {
	a := newCluster(t, cluster)
	node := newNode(t, "n1", a, newClock())
	token := newToken(t, a)
	clientOf := func(token Token) *tls.Config { return token.Client(newClock().time) }
	seen, serverErr, clientErr := handshake(t, node.ServerForJoin(), clientOf(token))
	if serverErr != nil || clientErr != nil || len(seen.PeerCertificates) != 0 {
		t.Errorf("the right token: %v, %v, %d certificates", serverErr, clientErr, len(seen.PeerCertificates))
	}
	if _, serverErr, clientErr := handshake(t, node.Server(), clientOf(token)); serverErr == nil || clientErr == nil {
		t.Errorf("at the members' door: server %v, client %v", serverErr, clientErr)
	}
	refused := func(what string, server *tls.Config, token Token, want error) {
		t.Helper()
		if _, _, clientErr := handshake(t, server, clientOf(token)); !errors.Is(clientErr, want) {
			t.Errorf("%s: %v, want %v", what, clientErr, want)
		}
	}
	refused("another fingerprint", node.ServerForJoin(), newToken(t, newCluster(t, cluster)), ErrUntrusted)
	serve := func(own pair, chain ...pair) *tls.Config {
		c := tls.Certificate{Certificate: [][]byte{own.cert.Raw}, PrivateKey: own.key}
		for _, p := range chain {
			c.Certificate = append(c.Certificate, p.cert.Raw)
		}
		return &tls.Config{Certificates: []tls.Certificate{c}}
	}
	other, err := newCluster(t, cluster).issue("n1", start)
	if err != nil {
		t.Fatal(err)
	}
	refused("the right authority behind the certificate of another one", serve(other, a.pairs[0]), token, ErrUntrusted)
	own, err := a.issue("n1", start)
	if err != nil {
		t.Fatal(err)
	}
	refused("no authority in the chain", serve(own), token, ErrUntrusted)
	refused("the authority in place of a node", serve(a.pairs[0]), token, ErrUntrusted)
	later := newClock()
	later.add(48 * time.Hour)
	refused("a certificate that is not valid yet", newNode(t, "n1", a, later).ServerForJoin(), token, ErrNotYetValid)

	both, err := a.WithNext(start)
	if err != nil {
		t.Fatal(err)
	}
	switched, err := both.Switched()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Use(both); err != nil {
		t.Fatal(err)
	}
	if _, _, clientErr := handshake(t, node.ServerForJoin(), clientOf(token)); clientErr != nil {
		t.Errorf("a token from before the first step: %v", clientErr)
	}
	if err := node.Use(switched); err != nil {
		t.Fatal(err)
	}
	refused("a token from before the switch", node.ServerForJoin(), token, ErrUntrusted)
}
