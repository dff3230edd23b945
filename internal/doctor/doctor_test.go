package doctor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/attention"
	"github.com/musterhq/muster/internal/operator"
	"github.com/musterhq/muster/internal/settings"
)

func healthy(t *testing.T) *Config {
	s := settings.Defaults()
	s.Data, s.Listen, s.DiskReserve = filepath.Join(t.TempDir(), "data"), "127.0.0.1:0", 1
	return &Config{Settings: s, Endpoint: "http://127.0.0.1:1", NoSDK: "not in this test"}
}

// want requires a finding of a check at a level, whose text and next step contain these words.
func want(t *testing.T, found []Finding, check string, level Level, words ...string) {
	t.Helper()
	for _, f := range found {
		if f.Check != check || f.Level != level {
			continue
		}
		said := f.Found + " → " + f.Do
		for _, word := range words {
			if !strings.Contains(said, word) {
				t.Errorf("%s says %q, want it to name %q", check, said, word)
			}
		}
		return
	}
	t.Errorf("no %s of %s; found %+v", level, check, found)
}

func TestSettingsAndDirectory(t *testing.T) {
	c := healthy(t)
	c.Settings.Listen = "nowhere"
	want(t, Examine(t.Context(), c), "settings", Failure, "listen")

	c = healthy(t)
	c.Settings.PublicURL = "https://muster.example.com"
	want(t, Examine(t.Context(), c), "settings", Warning, "muster.example.com", "--trusted-proxies", "127.0.0.1")

	c = healthy(t)
	want(t, Examine(t.Context(), c), "data directory", Skipped, "does not exist")
	if err := os.WriteFile(c.Settings.Data, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, Examine(t.Context(), c), "data directory", Failure, "not a directory")
	if runtime.GOOS == "windows" {
		return // it has no such modes
	}
	c = healthy(t)
	if err := os.MkdirAll(c.Settings.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	want(t, Examine(t.Context(), c), "data directory", OK)
	pending := filepath.Join(c.Settings.Data, "installation.pending")
	if err := os.WriteFile(pending, []byte(`{"format":1,"id":"11111111-2222-4333-8444-555555555555","restores":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, Examine(t.Context(), c), "data directory", Failure, "was interrupted", "muster restore")
	if err := os.Remove(pending); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(c.Settings.Data, 0o777); err != nil {
		t.Fatal(err)
	}
	want(t, Examine(t.Context(), c), "data directory", Failure, "chmod 700")
	if left, err := os.ReadDir(c.Settings.Data); err != nil || len(left) != 0 {
		t.Errorf("the examination has left %v (%v)", left, err)
	}
}

func TestDisk(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // other systems do not tell
	}
	c := healthy(t)
	c.Settings.DiskReserve = 1 << 62
	want(t, Examine(t.Context(), c), "disk space", Failure, "--disk-reserve")
	if _, lost := volatileDisk("/dev/shm"); lost { // not everywhere
		c.Settings.Data = "/dev/shm"
		want(t, Examine(t.Context(), c), "disk", Failure, "in memory")
	}
}

func TestPorts(t *testing.T) {
	c := healthy(t)
	want(t, Examine(t.Context(), c), "port of --listen", OK, "is free")

	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	go func() {
		for {
			conn, err := other.Accept()
			if err != nil {
				return
			}
			conn.Close() // speaks no HTTP
		}
	}()
	c.Settings.Listen = other.Addr().String()
	found := Examine(t.Context(), c)
	want(t, found, "port of --listen", Failure, "is using port")
	if runtime.GOOS == "linux" {
		want(t, found, "port of --listen", Failure, "doctor.test (process ") // the test itself
	}

	for _, health := range []string{`{"status":"ok"}`, `{"damaged":["block 7"],"status":"ok"}`, `{"reason":"the disk is full","status":"failed"}`} {
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(health)) }))
		defer service.Close()
		c.Settings.Listen = strings.TrimPrefix(service.URL, "http://")
		x := &examination{Config: c}
		x.ports(t.Context())
		want(t, x.found, "port of --listen", OK, "service of Muster")

		// A service on a port below 1024 has a right to it that this user lacks.
		x = &examination{Config: c}
		denied := &net.OpError{Op: "listen", Err: os.NewSyscallError("bind", syscall.EACCES)}
		x.port(t.Context(), "listen", c.Settings.Listen, denied)
		want(t, x.found, "port of --listen", OK, "service of Muster")
		x.port(t.Context(), "operator-listen", "127.0.0.1:1", denied)
		want(t, x.found, "port of --operator-listen", Failure, "may not bind port 1")
	}
}

func TestPublicURL(t *testing.T) {
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/healthz" {
				w.WriteHeader(status)
				_, _ = w.Write([]byte(body))
				return
			}
			http.NotFound(w, r)
		}
	}
	for _, x := range []struct {
		name    string
		handler http.HandlerFunc
		check   string
		level   Level
		word    string
	}{
		{"another program", answer(200, "<html>hello"), "public URL", Failure, "is not Muster"},
		{"an error of a proxy", answer(502, "bad gateway"), "public URL", Failure, "502"},
		{"a service that cannot work", answer(503, `{"status":"failed"}`), "public URL", Failure, "log of the service"},
		{"one that says why", answer(503, `{"reason":"the disk is full","status":"failed"}`+"\n"), "public URL", Failure, `"status":"failed"} → read the log`},
		{"a node that is not ready", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/healthz" {
				answer(200, `{"status":"ok"}`)(w, r)
				return
			}
			http.Error(w, "this node of the cluster has not caught up yet; use another node", http.StatusServiceUnavailable)
		}, "WebSockets", Failure, "→ look at the answer of /readyz"},
		{"a proxy without WebSockets", answer(200, `{"status":"ok"}`), "WebSockets", Failure, "Upgrade"},
		{"a wrong clock", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
			answer(200, `{"status":"ok"}`)(w, r)
		}, "clock of the service", Failure, "60 minutes"},
		{"endless headers", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("x", 1<<20))
		}, "public URL", Failure, "header"},
	} {
		t.Run(x.name, func(t *testing.T) {
			server := httptest.NewServer(x.handler)
			defer server.Close()
			c := healthy(t)
			c.Endpoint, c.Settings.PublicURL = server.URL, server.URL
			want(t, Examine(t.Context(), c), x.check, x.level, x.word)
		})
	}

	c := healthy(t)
	c.Endpoint = "http://127.0.0.1:1"
	want(t, Examine(t.Context(), c), "public URL", Failure, "start the service")
	c.Endpoint = "https://muster.invalid"
	want(t, Examine(t.Context(), c), "public URL", Failure, "does not resolve")

	server := httptest.NewTLSServer(answer(200, `{"status":"ok"}`))
	defer server.Close()
	c.Endpoint = server.URL
	want(t, Examine(t.Context(), c), "public URL", Failure, "an authority that clients trust")
}

// certificate writes a certificate and its key.
func certificate(t *testing.T, host string, from, until time.Time) (chain, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host}, NotBefore: from, NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	chain, key = filepath.Join(t.TempDir(), "chain.pem"), filepath.Join(t.TempDir(), "key.pem")
	for path, block := range map[string]*pem.Block{chain: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return chain, key
}

func TestCertificateFiles(t *testing.T) {
	now := time.Now()
	const dayLong = 24 * time.Hour
	for _, x := range []struct {
		name, host  string
		from, until time.Time
		level       Level
		word        string
	}{
		{"valid", "muster.example.com", now.Add(-dayLong), now.Add(90 * dayLong), OK, "muster.example.com"},
		{"valid for a short time by design", "muster.example.com", now.Add(-dayLong), now.Add(5 * dayLong), OK, ""},
		{"expired", "muster.example.com", now.Add(-90 * dayLong), now.Add(-dayLong), Failure, "it expired on"},
		{"expires soon", "muster.example.com", now.Add(-80 * dayLong), now.Add(10 * dayLong), Warning, "expires on"},
		{"not yet valid", "muster.example.com", now.Add(dayLong), now.Add(90 * dayLong), Failure, "clock"},
		{"of another host", "other.example.com", now.Add(-dayLong), now.Add(90 * dayLong), Failure, "not for muster.example.com"},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := healthy(t)
			c.Settings.TLSCert, c.Settings.TLSKey = certificate(t, x.host, x.from, x.until)
			c.Settings.PublicURL = "https://muster.example.com"
			examined := &examination{Config: c}
			examined.certificateFiles(t.Context())
			want(t, examined.found, "certificate", x.level, x.word)
		})
	}
	c := healthy(t)
	c.Settings.TLSCert, c.Settings.TLSKey = "/nowhere/chain.pem", "/nowhere/key.pem"
	examined := &examination{Config: c}
	examined.certificateFiles(t.Context())
	want(t, examined.found, "certificate", Failure, "/nowhere/chain.pem")
}

// fake answers as a service would.
type fake struct {
	overview operator.Overview
	hosts    operator.HostList
	err      error
}

func (f *fake) Overview(context.Context) (*operator.Overview, error) { return &f.overview, f.err }
func (f *fake) Hosts(context.Context) (*operator.HostList, error)    { return &f.hosts, nil }

func TestService(t *testing.T) {
	ask := func(f *fake) []Finding {
		c := healthy(t)
		c.Service, c.Version = f, "v2"
		x := &examination{Config: c}
		x.service(t.Context())
		x.cluster(t.Context())
		x.agents(t.Context())
		return x.found
	}
	quiet := operator.Overview{Attention: &attention.Found{}}
	want(t, ask(&fake{overview: quiet}), "service", OK, "nothing needs attention")
	want(t, ask(&fake{err: errors.New("no service answers")}), "service", Failure, "no service answers")
	for reason, do := range map[error]string{syscall.ECONNREFUSED: "with other settings", errors.New("no such host"): "finding about the public URL"} {
		x := &examination{Config: healthy(t)}
		x.Service, x.Running = &fake{err: reason}, true // a service runs on the data directory
		x.service(t.Context())
		want(t, x.found, "service", Failure, do)
	}
	want(t, ask(&fake{overview: operator.Overview{Attention: &attention.Found{Items: []attention.Item{{What: "host rack-1 is silent.", Next: "Look at its network."}}}}}),
		"service", Warning, "rack-1", "Look at its network")

	nodes := func(members ...operator.Member) *fake {
		o := quiet
		o.Cluster = &operator.Cluster{Leader: "a", Members: members}
		return &fake{overview: o}
	}
	voter := func(id string) operator.Member { return operator.Member{ID: id, Role: "voter", Version: "v2"} }
	missing := voter("c")
	missing.Missing = true
	old := voter("c")
	old.Version = "v1"
	late := voter("c")
	late.Behind = 1_000_000
	want(t, ask(nodes(voter("a"), voter("b"), voter("c"))), "cluster", OK, "3 with a vote")
	want(t, ask(nodes(voter("a"), voter("b"))), "cluster", Warning, "third node")
	want(t, ask(nodes(voter("a"), voter("b"), missing)), "cluster", Failure, "node c", "cluster remove")
	want(t, ask(nodes(voter("a"), voter("b"), old)), "cluster", Warning, "different versions")
	want(t, ask(nodes(voter("a"), voter("b"), late)), "cluster", Warning, "entries behind")

	hosts := operator.HostList{Hosts: []operator.Host{{Name: "rack-1", Version: "v1"}, {Name: "rack-2", Version: "v2"}}}
	want(t, ask(&fake{overview: quiet, hosts: hosts}), "agents", Warning, "rack-1", "v1")
	hosts.Hosts[0].Revoked = time.Now() // it has no agent any more
	want(t, ask(&fake{overview: quiet, hosts: hosts}), "agents", OK, "1 host, all with this version")
}

func TestInitSDK(t *testing.T) {
	c := healthy(t)
	c.InitSDK = func(context.Context, *tls.Config) error { return errors.New("refused") }
	x := &examination{Config: c}
	x.sdk(t.Context())
	want(t, x.found, "InitSDK", Failure, "refused")
	if Worst(x.found) != Failure {
		t.Errorf("the worst is %s", Worst(x.found))
	}
}

// silent listens, accepts connections and never answers, like a stopped process.
func silent(t *testing.T) (url string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return "http://" + l.Addr().String()
}

// A service that hangs is asked once: checks that need its answers say so at once, and no firewall is blamed for an address of this machine.
func TestServiceThatHangs(t *testing.T) {
	never := &fake{err: errors.New("it was asked")}
	noSDK := func(context.Context, *tls.Config) error { return errors.New("it was asked") }

	c := healthy(t)
	c.Endpoint, c.Service, c.InitSDK, c.Hangs = silent(t), never, noSDK, errors.New("nothing comes")
	c.Settings.Listen = strings.TrimPrefix(c.Endpoint, "http://")
	var told []Finding
	c.Tell = func(f Finding) { told = append(told, f) }
	began := time.Now()
	found := Examine(t.Context(), c)
	if took := time.Since(began); took > localPatience {
		t.Errorf("the examination took %v", took)
	}
	if !slices.Equal(found, told) {
		t.Errorf("it told %+v, and found %+v", told, found)
	}
	want(t, found, "service", Failure, "does not answer", "nothing comes", "restart the service")
	want(t, found, "InitSDK", Skipped, "does not answer")
	for _, f := range found {
		if strings.Contains(f.Found, "it was asked") || strings.Contains(f.Do, "firewall") {
			t.Errorf("%+v", f)
		}
	}

	c = healthy(t)
	c.Endpoint, c.Service, c.InitSDK = silent(t), never, noSDK
	c.Settings.PublicURL = c.Endpoint
	x := &examination{Config: c}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	x.publicURL(short)
	x.service(t.Context())
	x.sdk(t.Context())
	want(t, x.found, "public URL", Failure, "restart the service")
	want(t, x.found, "service", Skipped, "does not answer")
	want(t, x.found, "InitSDK", Skipped, "does not answer")

	x.Endpoint = "http://192.0.2.1"
	if do := x.whyUnreachable(&net.OpError{Op: "dial", Err: context.DeadlineExceeded}); !strings.Contains(do, "firewall") {
		t.Errorf("an address of another machine to which no packet comes: %s", do)
	}
}

// An examination that is interrupted before all checks were made does not look like one without findings.
func TestUnfinishedExamination(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	want(t, Examine(ctx, healthy(t)), "time", Failure, "remaining checks")
}
