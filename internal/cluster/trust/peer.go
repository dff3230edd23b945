package trust

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// The reasons for refusing a peer's certificate; errors wrap them with details.
var (
	ErrNoCertificate = errors.New("the peer presents no certificate")
	ErrUntrusted     = errors.New("the peer's certificate was not issued by a trusted authority")
	ErrExpired       = errors.New("the peer's certificate has expired")
	ErrNotYetValid   = errors.New("the peer's certificate is not valid yet")
	ErrOtherCluster  = errors.New("the peer belongs to another cluster")
	ErrOtherNode     = errors.New("the peer is another node")
)

const (
	asClient = x509.ExtKeyUsageClientAuth
	asServer = x509.ExtKeyUsageServerAuth
)

// Peer returns the node at the other end of a connection after a handshake with the configuration of Server or Client.
func Peer(s tls.ConnectionState) NodeID {
	if len(s.PeerCertificates) == 0 {
		return ""
	}
	_, node, _ := namesOf(s.PeerCertificates[0]) // it was verified
	return node
}

// verify verifies the peer of a connection; want may be empty.
func (i *Identity) verify(s tls.ConnectionState, role x509.ExtKeyUsage, want NodeID) error {
	a := i.Authority()
	node, err := verifyPeer(s, a.pool, a.cluster, role, i.now())
	if err != nil {
		return err
	}
	if want != "" && node != want {
		return fmt.Errorf("%w: it is %s; want %s", ErrOtherNode, node, want)
	}
	return nil
}

// Trusts returns why the peer of an established connection would now be refused, or nil; the authority may have been replaced since.
func (i *Identity) Trusts(s tls.ConnectionState) error {
	a := i.Authority()
	_, err := verifyPeer(s, a.pool, a.cluster, x509.ExtKeyUsageAny, i.now())
	return err
}

func verifyPeer(s tls.ConnectionState, authorities *x509.CertPool, cluster uuid.UUID, role x509.ExtKeyUsage, now time.Time) (NodeID, error) {
	if len(s.PeerCertificates) == 0 {
		return "", ErrNoCertificate
	}
	cert := s.PeerCertificates[0]
	_, err := cert.Verify(x509.VerifyOptions{Roots: authorities, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{role}})
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		// Both times help to find the wrong clock.
		if now.Before(invalid.Cert.NotBefore) {
			return "", fmt.Errorf("%w: it is from %s, and this node's clock says %s", ErrNotYetValid, invalid.Cert.NotBefore.UTC(), now.UTC())
		}
		return "", fmt.Errorf("%w: it was valid until %s, and this node's clock says %s", ErrExpired, invalid.Cert.NotAfter.UTC(), now.UTC())
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	named, node, err := namesOf(cert)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrUntrusted, err)
	case named != cluster:
		return "", fmt.Errorf("%w: it belongs to cluster %s; want %s", ErrOtherCluster, named, cluster)
	case node == "":
		return "", fmt.Errorf("%w: the certificate names no node", ErrUntrusted)
	}
	return node, nil
}
