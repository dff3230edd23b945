package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/linkclient"
	"github.com/musterhq/muster/internal/waittest"
)

// withSettings starts a production service with a settings file, and returns the name of the file.
func withSettings(t *testing.T, text string, args ...string) (s *service, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "muster.json")
	replaceFile(t, file, text)
	s = newService(t, append(args, "--dev=false", "--config", file)...)
	s.key("admin")
	s.start()
	return s, file
}

// commandAs is commandFails with an access key in the environment.
func (s *service) commandAs(id, secret string, args ...string) (string, error) {
	cmd := exec.Command(musterBinary, args...)
	cmd.Env = cleanEnvironment("HOME="+s.t.TempDir(), "AWS_ACCESS_KEY_ID="+id, "AWS_SECRET_ACCESS_KEY="+secret)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// replaceFile replaces a file atomically.
func replaceFile(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path+".new", []byte(text), 0o600))
	must(t, os.Rename(path+".new", path))
}

// A change of the settings file is in force after the command, after a signal and after a call of the operators' API. A file with a mistake changes nothing, and the answer
// locates the mistake. A flag overrides the file.
func TestReload(t *testing.T) {
	t.Parallel()
	s, file := withSettings(t, `{"limit-fleets": 5}`, "--log-events", "7")
	local := []string{"reload", "--data", s.data}

	replaceFile(t, file, "{\n\"limit-fleets\": 6,\n\"log-events\": 3,\n\"snapshot-every\": \"9MiB\"}")
	out := s.command(append(local, "--reason", "the cup begins")...)
	for _, want := range []string{"In force now:\n  limit-fleets: 5 → 6  (" + file + ":2)\n", "Need a restart:\n  snapshot-every: 128MiB → 9MiB  (" + file + ":4)\n", "log-events: " + file + ":3 is overridden by --log-events\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("the answer has no %q:\n%s", want, out)
		}
	}
	log := s.command("audit", "list", "--data", s.data, "--listen", s.address, "--json")
	for _, want := range []string{"settings", "limit-fleets", "the cup begins"} {
		if !strings.Contains(log, want) {
			t.Errorf("the audit log has no %q:\n%s", want, log)
		}
	}

	must(t, os.WriteFile(file, []byte("{\n\"limit-fleets\": 7,\n\"log-le"), 0o600)) // half-written, by a program that does not replace it atomically
	if out, err := s.commandFails(local...); err == nil || !strings.Contains(out, file+":3: ") || !strings.Contains(out, "nothing was changed") {
		t.Errorf("half a file: %v\n%s", err, out)
	}
	replaceFile(t, file, "{\n\"limit-fleets\": 7,\n\"log-level\": \"loud\",\n\"reservation\": \"soon\",\n\"link-grace\": \"long\"}")
	out, err := s.commandFails(local...)
	if err == nil {
		t.Errorf("mistakes: %s", out)
	}
	for _, want := range []string{file + `:4: reservation: "soon": want a time`, file + `:5: link-grace: "long": want a time`} {
		if !strings.Contains(out, want) {
			t.Errorf("the answer has no %q:\n%s", want, out)
		}
	}
	replaceFile(t, file, "{\"limit-fleets\": 7,\n\"log-level\": \"loud\"}")
	if out, err := s.commandFails(local...); err == nil || !strings.Contains(out, file+`:2: log-level "loud": want one of debug`) {
		t.Errorf("a value of the wrong kind: %v\n%s", err, out)
	}

	replaceFile(t, file, `{"limit-fleets": 7, "log-format": "json"}`)
	s.command(local...)
	waittest.Until(t, "a line of the log in JSON", func() bool { return strings.HasPrefix(s.logs.tail(1), "{\"time\":") }) // the answer may be here before the line is
	replaceFile(t, file, `{"limit-fleets": 7}`)
	s.command(local...)

	replaceFile(t, file, `{"limit-fleets": 8, "log-level": "debug"}`)
	must(t, s.cmd.Process.Signal(syscall.SIGHUP))
	waittest.Until(t, "the signal to be carried out", func() bool { return strings.Contains(s.logs.String(), `changed="log-level limit-fleets"`) })

	replaceFile(t, file, `{}`)
	for _, role := range []string{"readonly", "backend", "client"} {
		id, secret := s.key(role)
		if out, err := s.commandAs(id, secret, "reload", "--server", s.url()); err == nil || !strings.Contains(out, "which may not reload settings") {
			t.Errorf("a key with the role %s: %v\n%s", role, err, out)
		}
	}
	id, secret := s.key("admin")
	answer, err := s.commandAs(id, secret, "reload", "--server", s.url(), "--json")
	must(t, err)
	var done struct {
		Changed []struct{ Setting, Before, After, From string }
	}
	must(t, json.Unmarshal([]byte(answer), &done))
	if len(done.Changed) != 2 || done.Changed[0].Setting != "log-level" || done.Changed[0].After != "info" || done.Changed[1].After != "10000" || done.Changed[1].From != "default" {
		t.Errorf("settings that the file no longer has: %s", answer)
	}
}

// systemd is told when a reload begins and ends.
func TestReloadUnderSystemd(t *testing.T) {
	t.Parallel()
	manager := newSystemd(t)
	s := newService(t)
	s.env = manager.env
	s.start()
	manager.until("WATCHDOG=1")
	must(t, s.cmd.Process.Signal(syscall.SIGHUP))
	manager.until("RELOADING=1\nMONOTONIC_USEC=", "STATUS=reloads its settings")
	manager.until("READY=1\n")
	manager.until("WATCHDOG=1")
}

// certificateFor writes a new certificate with a serial number, and its key.
func certificateFor(t *testing.T, cert, key string, serial int64) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	form := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "muster.test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, private.Public(), private)
	must(t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	replaceFile(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})))
	replaceFile(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
}

// The certificate changes under load: each handshake gets the old or the new one, none fails, and existing connections stay.
func TestReloadOfCertificatesUnderLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certificateFor(t, cert, key, 1)
	s, file := withSettings(t, `{"tls-cert": "`+cert+`", "tls-key": "`+key+`"}`)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()

	var newest atomic.Int64
	handshake := func() (int64, error) {
		c, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(ctx, "tcp", s.address)
		if err != nil {
			return 0, err
		}
		defer c.Close()
		return c.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64(), nil
	}
	kept := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: 1}}
	connections := atomic.Int32{}
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
		if !c.Reused {
			connections.Add(1)
		}
	}})
	id, secret := s.key("readonly")
	request := func() error { // with a key: a connection without a credential ends after a minute
		r, err := http.NewRequestWithContext(traced, http.MethodGet, "https://"+s.address+"/healthz", nil)
		if err != nil {
			return err
		}
		r.SetBasicAuth(id, secret)
		answer, err := kept.Do(r)
		if err == nil {
			_, err = io.Copy(io.Discard, answer.Body) // otherwise the connection would not be reused
			answer.Body.Close()
		}
		return err
	}
	must(t, request())
	var load sync.WaitGroup
	for range 4 {
		load.Go(func() {
			for ctx.Err() == nil {
				serial, err := handshake()
				if err != nil && ctx.Err() == nil {
					t.Errorf("a handshake during reloads: %v", err)
					return
				}
				if serial > 0 {
					newest.Store(max(newest.Load(), serial))
				}
			}
		})
	}
	load.Go(func() {
		for ctx.Err() == nil {
			if err := request(); err != nil && ctx.Err() == nil {
				t.Errorf("a request on a connection that exists: %v", err)
				return
			}
		}
	})
	for serial := int64(2); serial <= 6; serial++ {
		certificateFor(t, cert, key, serial)
		out := s.command("reload", "--data", s.data)
		if !strings.Contains(out, "tls-cert: "+cert+" was read again") {
			t.Errorf("certificate %d: %s", serial, out)
		}
		got, err := handshake()
		must(t, err)
		if got != serial {
			t.Errorf("after the reload the port shows certificate %d, want %d", got, serial)
		}
	}
	must(t, os.WriteFile(key, []byte("no key"), 0o600))
	if out, err := s.commandFails("reload", "--data", s.data); err == nil || !strings.Contains(out, "tls-cert: certificate") {
		t.Errorf("a certificate without its key: %v\n%s", err, out)
	}
	replaceFile(t, file, `{}`)
	if out := s.command("reload", "--data", s.data); !strings.Contains(out, "tls-cert: "+cert+" → -") || !strings.Contains(out, "TLS with certificate files is turned on or off") {
		t.Errorf("without a certificate: %s", out)
	}
	got, err := handshake()
	must(t, err)
	if got != 6 {
		t.Errorf("after a reload that failed the port shows certificate %d, want 6", got)
	}
	stop()
	load.Wait()
	if n := connections.Load(); n != 1 {
		t.Errorf("the client that keeps its connection needed %d, want 1: a reload closed one", n)
	}
}

// Many concurrent reloads, while a game server and clients are connected, change only what the file changes.
func TestReloadsInParallel(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "muster.json")
	replaceFile(t, file, `{"limit-fleets": 50}`)
	s := startService(t, "--config", file, "--player-flow")
	p := s.prepare()
	c, err := linkclient.Dial(t.Context(), linkclient.Options{URL: s.ws(), Process: "server", Compute: p.compute, Fleet: p.fleet, Token: p.token})
	must(t, err)
	defer c.Drop()
	must(t, c.Activate(t.Context(), 7777))
	var work sync.WaitGroup
	for i := range 3 {
		work.Go(func() {
			for range 4 {
				if i == 0 {
					replaceFile(t, file, `{"limit-fleets": 51, "client-address-rate": 7, "notify-events": "http://127.0.0.1:9/hook", "player-origins": "https://a.example"}`)
					must(t, s.cmd.Process.Signal(syscall.SIGHUP))
				}
				if out, err := s.commandFails("reload", "--data", s.data); err != nil {
					t.Errorf("a reload: %v\n%s", err, out)
				}
			}
		})
	}
	work.Wait()
	must(t, c.Heartbeat(t.Context(), true))
	if out := s.command("reload", "--data", s.data); !strings.Contains(out, "Nothing changed") {
		t.Errorf("the last reload: %s", out)
	}
}
