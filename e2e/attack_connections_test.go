package e2e

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"

	"github.com/musterhq/muster/internal/waittest"
)

// attackDescriptors is the descriptor limit that the service has under attacks on its connections: what many systems allow.
const attackDescriptors = 1024

// limitedService starts a service in production mode with a limit of descriptors and the flags of `more`.
func limitedService(t *testing.T, descriptors int, args ...string) (*service, *gamelift.Client) {
	t.Helper()
	prlimit, err := exec.LookPath("prlimit")
	if err != nil {
		cannotRun(t, "no prlimit here")
	}
	s := newService(t, append(args, "--dev=false")...)
	s.wrap = []string{prlimit, "--nofile=" + strconv.Itoa(descriptors)}
	id, secret := s.key("admin")
	s.start()
	return s, s.apiWith(id, secret)
}

// attackers are connections that a test opens without a credential.
type attackers struct {
	t     *testing.T
	to    string
	mu    sync.Mutex
	conns []net.Conn
	open  atomic.Int64 // of those that the service has not closed
}

func (s *service) attackers() *attackers {
	a := &attackers{t: s.t, to: s.address}
	s.t.Cleanup(a.close)
	return a
}

// connect opens a connection, sends a text, and waits in the background until the service closes the connection. It reports
// whether sending succeeded: a service that defends itself may already have closed it.
func (a *attackers) connect(say string) bool {
	// Linux lets this machine connect from all of 127/8.
	a.mu.Lock()
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+len(a.conns)%50))}
	a.mu.Unlock()
	c, err := (&net.Dialer{LocalAddr: from}).Dial("tcp", a.to)
	if err != nil {
		return false
	}
	a.mu.Lock()
	a.conns = append(a.conns, c)
	a.mu.Unlock()
	a.open.Add(1)
	go func() {
		defer a.open.Add(-1)
		_, _ = io.Copy(io.Discard, c)
	}()
	_, err = io.WriteString(c, say)
	return err == nil
}

func (a *attackers) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.conns {
		_ = c.Close()
	}
	a.conns = nil
}

// honestWriter makes calls that must succeed, on its own connections.
type honestWriter struct {
	t     *testing.T
	api   *gamelift.Client
	made  []string
	label string
}

// write creates locations, one call after another.
func (h *honestWriter) write(n int) {
	h.t.Helper()
	for range n {
		name := fmt.Sprintf("custom-%s-%d", h.label, len(h.made))
		if _, err := h.api.CreateLocation(h.t.Context(), &gamelift.CreateLocationInput{LocationName: &name}); err != nil {
			h.t.Fatalf("honest write %d: %v", len(h.made), err)
		}
		h.made = append(h.made, name)
	}
}

// check finds all that was acknowledged.
func (h *honestWriter) check(api *gamelift.Client) {
	h.t.Helper()
	known := map[string]bool{}
	pages := gamelift.NewListLocationsPaginator(api, &gamelift.ListLocationsInput{Limit: aws.Int32(100)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(h.t.Context())
		must(h.t, err)
		for _, l := range page.Locations {
			known[aws.ToString(l.LocationName)] = true
		}
	}
	for _, name := range h.made {
		if !known[name] {
			h.t.Errorf("location %s was acknowledged and is lost", name)
		}
	}
}

// 1,100 connections without a credential, at a descriptor limit of 1,024: honest clients connect and write, during it and
// after it, and nothing that was acknowledged is lost.
func TestAttackConnectionsExhaustDescriptors(t *testing.T) {
	t.Parallel()
	s, admin := limitedService(t, attackDescriptors, "--limit-locations", "1000000", "--snapshot-every", "1MiB")
	h := &honestWriter{t: t, api: admin, label: "a"}
	h.write(5)
	a := s.attackers()
	for i := range 1100 {
		a.connect([]string{"", "GET / HTTP/1.1\r\nHost: x\r\n", "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"}[i%3])
		if i%100 == 0 { // on a new connection
			n := &honestWriter{t: t, api: s.freshClient(admin), label: fmt.Sprintf("during-%d", i)}
			n.write(3)
			h.made = append(h.made, n.made...)
		}
	}
	h.label = "full"
	h.writesUntilSnapshot(s)
	if open := a.open.Load(); open >= attackDescriptors {
		t.Errorf("%d connections without a credential are open at a limit of %d descriptors", open, attackDescriptors)
	}
	a.close()
	h.label = "after"
	h.write(20)
	s.staysHealthy()
	h.check(admin)
	s.kill()
	s.start()
	h.check(s.freshClient(admin))
}

// writesUntilSnapshot writes until the journal has opened new files.
func (h *honestWriter) writesUntilSnapshot(s *service) {
	h.t.Helper()
	before := strings.Count(s.logs.tail(1<<20), "snapshot saved")
	for strings.Count(s.logs.tail(1<<20), "snapshot saved") == before {
		h.write(200)
	}
}

// freshClient returns a client with the credentials of another one and its own connections.
func (s *service) freshClient(of *gamelift.Client) *gamelift.Client {
	c, err := of.Options().Credentials.Retrieve(s.t.Context())
	must(s.t, err)
	return s.apiWith(c.AccessKeyID, c.SecretAccessKey)
}

// Request headers that never end, connections that send nothing, half of a TLS handshake, upgrades without any frame,
// and connections that stay open after an anonymous request: the service ends each within seconds, and no other client
// notices.
func TestAttackSlowConnectionsEnd(t *testing.T) {
	t.Parallel()
	certPath, keyPath := inFiles(t, newAuthority(t).certificate("127.0.0.1", x509.ExtKeyUsageServerAuth))
	s, admin := limitedService(t, attackDescriptors, "--player-flow", "--tls-cert", certPath, "--tls-key", keyPath)
	hello := clientHelloStart
	upgrade := func(path, more string) string {
		return "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" + more + "\r\n"
	}
	for name, say := range map[string]string{
		"silent":                       "",
		"half a head":                  "POST / HTTP/1.1\r\nHost: x\r\nX-A: ",
		"half a TLS record":            hello,
		"idle after health":            "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
		"idle after a refused call":    "POST / HTTP/1.1\r\nHost: x\r\nX-Amz-Target: GameLift.ListFleets\r\nContent-Length: 2\r\n\r\n{}",
		"refused game server":          upgrade("/?pID=p&FleetId=f&ComputeId=c&Authorization=x", ""),
		"refused stream of a player":   upgrade("/playerflow/v1/player/stream", "Sec-WebSocket-Protocol: playerflow.v1\r\nAuthorization: Bearer x\r\n"),
		"half an upgrade":              strings.TrimSuffix(upgrade("/playerflow/v1/player/stream", ""), "\r\n"),
		"upgrade with bytes behind it": upgrade("/?pID=p&FleetId=f&ComputeId=c", "") + "\x81",
		"anonymous event stream":       "GET /session/v1/events?clientId=x HTTP/1.1\r\nHost: x\r\n\r\n",
		"anonymous pipeline":           strings.Repeat("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 50),
		"anonymous login":              "POST /playerflow/v1/player/Session.Login HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := s.in(t).attackers()
			for range 20 {
				a.connect(say)
			}
			h := &honestWriter{t: t, api: s.in(t).freshClient(admin), label: strings.ReplaceAll(name, " ", "-")}
			h.write(5)
			waittest.Until(t, "the service to close connections that have presented no credential", func() bool { return a.open.Load() == 0 })
			h.write(1)
			h.check(admin)
		})
	}
}

// clientHelloStart is the head of a TLS record and the beginning of its content.
const clientHelloStart = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"

// A client that makes an anonymous request now and then keeps its connection for at most a minute. An answer announces the end, so that
// it does not send its next request on a closed connection.
func TestAttackIdleKeepAlive(t *testing.T) {
	t.Parallel()
	s, _ := limitedService(t, attackDescriptors)
	c, err := net.Dial("tcp", s.address)
	must(t, err)
	defer c.Close()
	in := bufio.NewReader(c)
	ended := false
	waittest.Until(t, "an answer that ends the connection", func() bool {
		_, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		must(t, err)
		answer, err := http.ReadResponse(in, nil)
		must(t, err)
		_, err = io.Copy(io.Discard, answer.Body)
		must(t, err)
		answer.Body.Close()
		ended = answer.Close
		return ended
	})
	if _, err := in.ReadByte(); err != io.EOF {
		t.Errorf("after the last answer: got %v, want the end of the connection", err)
	}
}

// A flood of silent connections closes its own oldest ones, and not those of clients that have presented a credential.
func TestAttackFloodLeavesHonestConnections(t *testing.T) {
	t.Parallel()
	s, admin := limitedService(t, attackDescriptors)
	h := &honestWriter{t: t, api: admin, label: "kept"}
	h.write(1)
	first, err := net.Dial("tcp", s.address)
	must(t, err)
	defer first.Close()
	pressedOut := make(chan struct{})
	go func() {
		defer close(pressedOut)
		_, _ = io.Copy(io.Discard, first)
	}()
	a := s.attackers()
	for range 2000 {
		a.connect("GET / HTTP/1.1\r\n")
	}
	<-pressedOut
	h.write(50) // on the connection that it has
}

// Idle TLS connections without a request also end.
func TestAttackIdleTLS(t *testing.T) {
	t.Parallel()
	certPath, keyPath := inFiles(t, newAuthority(t).certificate("127.0.0.1", x509.ExtKeyUsageServerAuth))
	s, admin := limitedService(t, attackDescriptors, "--tls-cert", certPath, "--tls-key", keyPath)
	var open atomic.Int64
	for range 50 {
		c, err := tls.Dial("tcp", s.address, &tls.Config{InsecureSkipVerify: true})
		must(t, err)
		t.Cleanup(func() { _ = c.Close() })
		open.Add(1)
		go func() {
			defer open.Add(-1)
			_, _ = io.Copy(io.Discard, c)
		}()
	}
	h := &honestWriter{t: t, api: admin, label: "tls"}
	h.write(5)
	waittest.Until(t, "silent TLS connections to be closed", func() bool { return open.Load() == 0 })
	h.write(5)
}

// The health pages reveal to strangers only whether the service works.
func TestAttackHealthTellsStrangersNothing(t *testing.T) {
	t.Parallel()
	s, _ := limitedService(t, attackDescriptors)
	for _, path := range []string{"/healthz", "/readyz"} {
		resp, err := http.Get(s.url() + path)
		must(t, err)
		body, err := io.ReadAll(resp.Body)
		must(t, err)
		resp.Body.Close()
		if got := strings.TrimSpace(string(body)); got != `{"status":"ok"}` {
			t.Errorf("%s: got %s, want the status alone", path, got)
		}
	}
}
