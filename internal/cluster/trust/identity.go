package trust

import (
	"crypto/tls"
	"fmt"
	"sync"
	"time"
)

// Identity is one node's identity: it proves which node it is, and verifies peers. All methods may be called concurrently.
type Identity struct {
	id  NodeID
	now func() time.Time

	mu        sync.Mutex
	authority *Authority
	current   *tls.Certificate // nil: none has been issued yet
	issued    time.Time        // when, by the wall clock
}

// NewIdentity returns the identity of a node. now is its clock; nil: time.Now.
func NewIdentity(id NodeID, a *Authority, now func() time.Time) (*Identity, error) {
	if err := id.Check(); err != nil {
		return nil, err
	}
	if now == nil {
		now = time.Now
	}
	i := &Identity{id: id, now: now, authority: a}
	_, err := i.certificate() // an authority that cannot sign should fail the start, not the first handshake
	return i, err
}

// Node returns the id of this node.
func (i *Identity) Node() NodeID { return i.id }

// Authority returns the authority in force.
func (i *Identity) Authority() *Authority {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.authority
}

// Use puts another authority of the same cluster in force, for new connections.
func (i *Identity) Use(a *Authority) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if a.cluster != i.authority.cluster {
		return &Foreign{Cluster: a.cluster, Want: i.authority.cluster}
	}
	i.authority, i.current = a, nil
	return nil
}

// certificate returns the node's certificate. It issues a new one if there is none, half of its validity is over, or the clock was set
// back.
func (i *Identity) certificate() (*tls.Certificate, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.now().Round(0) // peers compare wall clocks; a monotonic one stands still while a machine sleeps
	if i.current != nil && !now.Before(i.issued) && now.Before(i.issued.Add(certificateLife/2)) {
		return i.current, nil
	}
	own, err := i.authority.issue(i.id, now)
	if err != nil {
		return nil, fmt.Errorf("issue the certificate of node %s: %w", i.id, err)
	}
	// The authority's certificate is included, because a joining node has only its fingerprint.
	i.current = &tls.Certificate{Certificate: [][]byte{own.cert.Raw, i.authority.pairs[0].cert.Raw}, PrivateKey: own.key, Leaf: own.cert}
	i.issued = now
	return i.current, nil
}

// Server returns the TLS configuration for connections from other nodes. The caller adds the protocols.
func (i *Identity) Server() *tls.Config {
	c := i.ServerForJoin()
	c.ClientAuth = tls.RequireAnyClientCert // verified below
	c.VerifyConnection = func(s tls.ConnectionState) error { return i.verify(s, asClient, "") }
	return c
}

// ServerForJoin returns the TLS configuration for connections from nodes without a certificate. The caller adds the protocols.
func (i *Identity) ServerForJoin() *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		SessionTicketsDisabled: true,
		Time:                   i.now,
		GetCertificate:         func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return i.certificate() },
	}
}

// Client returns the TLS configuration for a connection to a node; without an id, to any node of the cluster. The caller adds the
// protocol.
func (i *Identity) Client(to NodeID) *tls.Config {
	return &tls.Config{
		MinVersion:           tls.VersionTLS13,
		Time:                 i.now,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return i.certificate() },
		InsecureSkipVerify:   true, // #nosec G402 -- it would compare names; VerifyConnection checks everything else
		VerifyConnection:     func(s tls.ConnectionState) error { return i.verify(s, asServer, to) },
	}
}
