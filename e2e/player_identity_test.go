package e2e

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/gorilla/websocket"

	"github.com/musterhq/muster/internal/porttest"
	"github.com/musterhq/muster/internal/waittest"
)

// authority signs certificates for servers and clients. All authorities have the same name, so a client also presents its certificate to
// servers that trust another authority.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	made int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	a.key = key
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, key.Public(), key)
	must(t, err)
	a.cert, err = x509.ParseCertificate(der)
	must(t, err)
	return a
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// certificate returns a certificate with a name, for a client, or for a server on this machine and at other addresses.
func (a *authority) certificate(name string, usage x509.ExtKeyUsage, others ...net.IP) tls.Certificate {
	a.t.Helper()
	a.made++
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(a.t, err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1 + a.made), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage}, DNSNames: []string{"localhost"}, IPAddresses: append(others, net.IPv4(127, 0, 0, 1)),
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, key.Public(), a.key)
	must(a.t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// inFiles writes a certificate into files for the service.
func inFiles(t *testing.T, c tls.Certificate) (cert, key string) {
	t.Helper()
	cert, key = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	must(t, err)
	must(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}), 0o600))
	must(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	return cert, key
}

// caller returns an HTTP client over TLS, perhaps with a certificate of its own.
func caller(t *testing.T, trusted *x509.CertPool, own ...tls.Certificate) *http.Client {
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, Certificates: own}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func post(t *testing.T, c *http.Client, address, body string, headers ...string) (status int, o object, err error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
	must(t, err)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := c.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	must(t, json.NewDecoder(answer.Body).Decode(&o))
	return answer.StatusCode, o, nil
}

// A studio in production: everything uses TLS, its backend authenticates with a certificate, players with tokens that the backend
// signed, and the client is a page in a browser. Single-use tokens stay used after a kill, and a lost answer is
// given again.
func TestPlayerIdentityOverTLS(t *testing.T) {
	t.Parallel()
	ours, foreign := newAuthority(t), newAuthority(t)
	cert, key := inFiles(t, ours.certificate("muster", x509.ExtKeyUsageServerAuth))
	clients := filepath.Join(t.TempDir(), "clients.pem")
	must(t, os.WriteFile(clients, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ours.cert.Raw}), 0o600))
	public, private, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	keys := filepath.Join(t.TempDir(), "keys.json")
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: public, KeyID: "lobby-1"}}})
	must(t, err)
	must(t, os.WriteFile(keys, set, 0o600))
	const page = "https://play.example.com"
	partner := porttest.Free(t)
	s := newService(t, "--dev=false", "--player-flow", "--tls-cert", cert, "--tls-key", key, "--partner-listen", partner, "--partner-client-ca", clients,
		"--player-login-keys", keys, "--player-origins", page, "--trusted-proxies", "127.0.0.1")
	id, _ := s.key("backend")
	s.start()

	const issue = "/playerflow/v1/partner/Identity.IssueLoginTicket"
	backend := caller(t, ours.pool(), ours.certificate(id, x509.ExtKeyUsageClientAuth))
	for _, c := range []struct {
		name   string
		client *http.Client
		want   int // 0: not even a handshake
	}{
		{"the backend", backend, 200},
		{"nobody", caller(t, ours.pool()), 401},
		{"somebody else", caller(t, ours.pool(), ours.certificate("lobby", x509.ExtKeyUsageClientAuth)), 401},
		{"a server", caller(t, ours.pool(), ours.certificate(id, x509.ExtKeyUsageServerAuth)), 0},
		{"the certificate of another authority", caller(t, ours.pool(), foreign.certificate(id, x509.ExtKeyUsageClientAuth)), 0},
	} {
		status, o, err := post(t, c.client, "https://"+partner+issue, `{"player_id":"ann"}`)
		if status != c.want || (err != nil) != (c.want == 0) {
			t.Errorf("%s: %d %v, %v, want %d", c.name, status, o, err, c.want)
		}
	}

	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: private}, (&jose.SignerOptions{}).WithHeader("kid", "lobby-1"))
	must(t, err)
	claims, _ := json.Marshal(object{"sub": "ann", "jti": "one", "exp": time.Now().Add(5 * time.Minute).Unix()})
	signed, err := signer.Sign(claims)
	must(t, err)
	token, err := signed.CompactSerialize()
	must(t, err)
	player := caller(t, ours.pool())
	base := "https://" + s.address + "/playerflow/v1/player/"
	login := func(request string) (int, object) {
		body, _ := json.Marshal(object{"provider": "backend", "token": token})
		status, o, err := post(t, player, base+"Session.Login", string(body), "X-Request-Id", request, "Origin", page)
		must(t, err)
		return status, o
	}
	status, first := login("r")
	if status != 200 || !strings.HasPrefix(first.text("stream_url"), "wss://") {
		t.Fatalf("login by a signed token: %d %v", status, first)
	}
	s.kill()
	s.start()
	if status, o := login("r"); status != 200 || o.text("access_token") != first.text("access_token") {
		t.Errorf("the repeat after a kill: %d %v, want the first answer %v", status, o, first)
	}
	if status, o := login("another"); status != 401 {
		t.Errorf("the signed token a second time, after a kill: %d %v", status, o)
	}

	preflight, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, base+"Session.GetFlow", nil)
	must(t, err)
	preflight.Header = http.Header{"Origin": {page}, "Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"authorization"}}
	answer, err := player.Do(preflight)
	must(t, err)
	answer.Body.Close()
	if answer.StatusCode != 204 || answer.Header.Get("Access-Control-Allow-Origin") != page || !strings.Contains(answer.Header.Get("Access-Control-Allow-Headers"), "Authorization") {
		t.Errorf("preflight: %d %v", answer.StatusCode, answer.Header)
	}

	// As in a web page: only the headers that a browser sends, so the token is a subprotocol.
	stream := func(origin string) (*websocket.Conn, *http.Response, error) {
		dialer := websocket.Dialer{TLSClientConfig: &tls.Config{RootCAs: ours.pool()}}
		return dialer.Dial(first.text("stream_url"),
			http.Header{"Origin": {origin}, "Sec-WebSocket-Protocol": {"playerflow.v1, bearer." + first.text("access_token")}})
	}
	ann := &flowPlayer{t: t, service: s, name: "ann", more: make(chan struct{})}
	socket, _, err := stream(page)
	must(t, err)
	defer func() { _ = socket.NetConn().Close() }()
	go ann.read(socket)
	ann.until("hello")
	ann.until("OnSync")
	if _, answer, err := stream("https://evil.example"); err == nil || answer != nil && answer.StatusCode == 101 {
		t.Errorf("a foreign page has a stream: %v", answer)
	}

	// The certificate ends with its key.
	s.command("keys", "revoke", "--data", s.data, id)
	waittest.Until(t, "the revoked key to be refused", func() bool {
		status, _, err := post(t, backend, (&url.URL{Scheme: "https", Host: partner, Path: issue}).String(), `{"player_id":"ann"}`)
		return err == nil && status == 401
	})
}
