package trust

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// clock is a wall clock that tests set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: start} }

func (c *clock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newNode(t testing.TB, id NodeID, a *Authority, c *clock) *Identity {
	t.Helper()
	i, err := NewIdentity(id, a, c.time)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// handshake connects a client to a server, and returns the error of each: a client learns that it was refused with the first byte it reads.
func handshake(t testing.TB, server, client *tls.Config) (seen tls.ConnectionState, serverErr, clientErr error) {
	t.Helper()
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	accepted := make(chan error, 1)
	go func() {
		c := tls.Server(there, server)
		err := c.Handshake()
		if err == nil {
			seen = c.ConnectionState()
			_, err = c.Write([]byte{1})
		}
		accepted <- err
		there.Close()
	}()
	c := tls.Client(here, client)
	if clientErr = c.Handshake(); clientErr == nil {
		_, clientErr = io.ReadFull(c, make([]byte, 1))
	}
	here.Close()
	err := <-accepted
	return seen, err, clientErr
}

// handshakeWith returns the server's error in a handshake between a node of a and a client with the certificates own and chain.
func handshakeWith(t testing.TB, a *Authority, own pair, chain ...pair) error {
	t.Helper()
	c := tls.Certificate{Certificate: [][]byte{own.cert.Raw}, PrivateKey: own.key}
	for _, p := range chain {
		c.Certificate = append(c.Certificate, p.cert.Raw)
	}
	_, err, _ := handshake(t, newNode(t, "server", a, newClock()).Server(),
		&tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{c}})
	return err
}

func TestNodesOfOneClusterTrustEachOther(t *testing.T) {
	a := newCluster(t, cluster)
	n1, n2 := newNode(t, "n1", a, newClock()), newNode(t, "n2", a, newClock())
	for _, want := range []NodeID{"n1", ""} {
		seen, serverErr, clientErr := handshake(t, n1.Server(), n2.Client(want))
		if serverErr != nil || clientErr != nil || Peer(seen) != "n2" || seen.Version != tls.VersionTLS13 {
			t.Errorf("to %q: %v, %v, peer %q, version %x", want, serverErr, clientErr, Peer(seen), seen.Version)
		}
	}
	_, _, clientErr := handshake(t, n1.Server(), n2.Client("n3"))
	if !errors.Is(clientErr, ErrOtherNode) || !strings.Contains(clientErr.Error(), "n1") || !strings.Contains(clientErr.Error(), "n3") {
		t.Errorf("another node than the one that was dialed: %v, want ErrOtherNode with both", clientErr)
	}
}

// TestStrangers checks which peers a node refuses, as server and as client, and its errors.
func TestStrangers(t *testing.T) {
	a := newCluster(t, cluster)
	node := newNode(t, "n1", a, newClock())
	sameCluster := newNode(t, "n2", newCluster(t, cluster), newClock()) // has the id, not the key
	otherCluster := newNode(t, "n2", newCluster(t, another), newClock())
	misnamed := newAuthority(another, a.pairs...) // has the key, and another id
	wrongName := newNode(t, "n2", misnamed, newClock())
	for name, x := range map[string]struct {
		peer *Identity
		want error
	}{
		"wrong authority":          {sameCluster, ErrUntrusted},
		"authority of another one": {otherCluster, ErrUntrusted},
		"another cluster":          {wrongName, ErrOtherCluster},
	} {
		if _, serverErr, clientErr := handshake(t, node.Server(), x.peer.Client("")); !errors.Is(clientErr, x.want) || serverErr == nil {
			t.Errorf("%s dials: server %v, client %v; want %v", name, serverErr, clientErr, x.want)
		}
		careless := x.peer.Client("")
		careless.VerifyConnection = nil
		if _, serverErr, clientErr := handshake(t, node.Server(), careless); !errors.Is(serverErr, x.want) || clientErr == nil {
			t.Errorf("%s dials without a look: server %v, client %v; want %v", name, serverErr, clientErr, x.want)
		}
		open := x.peer.Server()
		open.VerifyConnection = nil
		if _, _, clientErr := handshake(t, open, node.Client("")); !errors.Is(clientErr, x.want) {
			t.Errorf("%s is dialed: %v, want %v", name, clientErr, x.want)
		}
	}

	none := node.Client("")
	none.GetClientCertificate = nil
	if _, serverErr, clientErr := handshake(t, node.Server(), none); serverErr == nil || clientErr == nil {
		t.Errorf("no certificate: server %v, client %v", serverErr, clientErr)
	}
	if err := node.verify(tls.ConnectionState{}, asClient, ""); !errors.Is(err, ErrNoCertificate) {
		t.Errorf("no certificate: %v", err)
	}
	old := node.Client("")
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if _, serverErr, clientErr := handshake(t, node.Server(), old); serverErr == nil || clientErr == nil {
		t.Errorf("TLS 1.2: server %v, client %v", serverErr, clientErr)
	}
}

// Certificates that the authority has signed, but that are not a node's.
func TestCertificatesOfOtherKinds(t *testing.T) {
	a := newCluster(t, cluster)
	uri := func(text string) []*url.URL {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return []*url.URL{u}
	}
	whole := uri("muster://" + cluster.String() + "/n2")
	for name, change := range map[string]func(*x509.Certificate){
		"no name":           func(c *x509.Certificate) { c.URIs = nil },
		"two names":         func(c *x509.Certificate) { c.URIs = append(c.URIs, c.URIs[0]) },
		"another scheme":    func(c *x509.Certificate) { c.URIs = uri("https://" + cluster.String() + "/n2") },
		"no cluster":        func(c *x509.Certificate) { c.URIs = uri("muster://x/n2") },
		"capitals":          func(c *x509.Certificate) { c.URIs = uri("muster://" + strings.ToUpper(cluster.String()) + "/n2") },
		"a user":            func(c *x509.Certificate) { c.URIs = uri("muster://x@" + cluster.String() + "/n2") },
		"a port":            func(c *x509.Certificate) { c.URIs = uri("muster://" + cluster.String() + ":1/n2") },
		"no node":           func(c *x509.Certificate) { c.URIs = uri("muster://" + cluster.String()) },
		"an empty node":     func(c *x509.Certificate) { c.URIs = uri("muster://" + cluster.String() + "/") },
		"a long path":       func(c *x509.Certificate) { c.URIs = uri("muster://" + cluster.String() + "/n2/n3") },
		"a query":           func(c *x509.Certificate) { c.URIs = uri("muster://" + cluster.String() + "/n2?x") },
		"not for clients":   func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} },
		"for signing mails": func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageEmailProtection} },
	} {
		template := &x509.Certificate{
			SerialNumber: big.NewInt(2), URIs: whole, NotBefore: start.Add(-time.Hour), NotAfter: start.Add(time.Hour),
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}
		change(template)
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.CreateCertificate(rand.Reader, template, a.pairs[0].cert, key.Public(), a.pairs[0].key)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		if err := handshakeWith(t, a, pair{cert, key}); !errors.Is(err, ErrUntrusted) {
			t.Errorf("%s: %v, want ErrUntrusted", name, err)
		}
	}
	if err := handshakeWith(t, a, a.pairs[0]); !errors.Is(err, ErrUntrusted) {
		t.Errorf("the authority itself: %v, want ErrUntrusted", err)
	}
}

func TestClocksApart(t *testing.T) {
	a := newCluster(t, cluster)
	for name, x := range map[string]struct {
		apart time.Duration // how far the peer is ahead of the node
		want  error
	}{
		"an hour ahead":    {time.Hour, nil},
		"an hour behind":   {-time.Hour, nil},
		"two days ahead":   {48 * time.Hour, ErrNotYetValid},
		"two years behind": {-2 * 365 * 24 * time.Hour, ErrExpired},
	} {
		c := newClock()
		c.add(x.apart)
		peer := newNode(t, "n2", a, c)
		careless := peer.Client("")
		careless.VerifyConnection = nil
		_, serverErr, clientErr := handshake(t, newNode(t, "n1", a, newClock()).Server(), careless)
		if !errors.Is(serverErr, x.want) || (clientErr == nil) != (x.want == nil) {
			t.Errorf("%s: server %v, client %v; want %v", name, serverErr, clientErr, x.want)
		}
	}
}

func TestCertificatesAreRenewed(t *testing.T) {
	a, c := newCluster(t, cluster), newClock()
	n1, n2 := newNode(t, "n1", a, c), newNode(t, "n2", a, newClock())
	serial := func() string {
		t.Helper()
		seen, _, _ := handshake(t, n1.Server(), n1.Client("n1"))
		if Peer(seen) != "n1" {
			t.Fatal("no connection")
		}
		return seen.PeerCertificates[0].SerialNumber.String()
	}
	first := serial()
	if serial() != first {
		t.Error("another certificate for each connection")
	}
	c.add(15*24*time.Hour - time.Second)
	if serial() != first {
		t.Error("renewed before half of its life")
	}
	c.add(time.Second)
	second := serial()
	if second == first {
		t.Error("not renewed after half of its life")
	}
	c.add(-15 * 24 * time.Hour) // the clock was wrong, and is set right
	if serial() == second {
		t.Error("a certificate from the future stays in use")
	}
	if _, serverErr, clientErr := handshake(t, n1.Server(), n2.Client("n1")); serverErr != nil || clientErr != nil {
		t.Errorf("after the clock was set back: %v, %v", serverErr, clientErr)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				c.add(16 * 24 * time.Hour)
				if _, err := n1.certificate(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// Nodes in all states that can coexist during a replacement of the authority reach each other. Nodes that missed it do not.
func TestNodesDuringAReplacement(t *testing.T) {
	old := newCluster(t, cluster)
	both, err := old.WithNext(start)
	if err != nil {
		t.Fatal(err)
	}
	switched, err := both.Switched()
	if err != nil {
		t.Fatal(err)
	}
	steps := []*Authority{old, both, switched, switched.Alone()}
	for i, a := range steps {
		for j, b := range steps {
			n1, n2 := newNode(t, "n1", old, newClock()), newNode(t, "n2", old, newClock())
			for _, err := range []error{n1.Use(a), n2.Use(b)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			_, serverErr, clientErr := handshake(t, n1.Server(), n2.Client("n1"))
			if near := i-j <= 1 && j-i <= 1; near != (serverErr == nil && clientErr == nil) {
				t.Errorf("after step %d and after step %d: server %v, client %v", i, j, serverErr, clientErr)
			}
		}
	}
	n1 := newNode(t, "n1", old, newClock())
	if _, ok := errors.AsType[*Foreign](n1.Use(newCluster(t, another))); !ok || n1.Authority() != old {
		t.Error("a node takes the authority of another cluster")
	}
}
