package gameserver

import (
	"context"

	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/model/result"
)

// ExternalCertificate is the path of the TLS certificate with which this host shows itself to players, as the compute was
// registered with; empty when there is none. The service tells it to processes that are ready, others get ErrNotReady.
func (s *Server) ExternalCertificate(ctx context.Context) (path string, err error) {
	s.mu.Lock()
	at := s.stage
	s.mu.Unlock()
	if at == fresh || at == connected {
		return "", &Error{Call: "ExternalCertificate", Kind: ErrNotReady}
	}
	answer, err := fetch(ctx, s, "ExternalCertificate", func() (result.GetComputeCertificateResult, error) {
		return s.sdk.GetComputeCertificate()
	})
	return answer.CertificatePath, err
}

// InternalCertificate would be the path of a certificate for servers among themselves. No service has one: it is always
// ErrUnsupported, and there for games that ask for both.
func (s *Server) InternalCertificate(context.Context) (path string, err error) {
	return "", &Error{Call: "InternalCertificate", Kind: ErrUnsupported}
}
