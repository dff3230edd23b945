package gameserver

import (
	"context"

	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/model/result"
)

// ExternalCertificate returns the path of the TLS certificate with which the compute was registered, for connections of players; empty
// if there is none. It fails with ErrNotReady before NotifyProcessReady.
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

// InternalCertificate always fails with ErrUnsupported, because no service has certificates for connections between servers. It exists for
// games of engines that ask for both certificates.
func (s *Server) InternalCertificate(context.Context) (path string, err error) {
	return "", &Error{Call: "InternalCertificate", Kind: ErrUnsupported}
}
